//! Compound commands, and what the variables of their loops hold.

use super::scan::Token;
use super::word::RawWord;
use super::{After, Reader, Result, is_led, no};
use crate::effect::{self, Facts};
use crate::places::{Places, named, path_text};
use crate::{LineEffect, LinePath, NameEnd, StrictCommand, Word};

/// What a variable holds while a loop runs.
pub(super) struct Binding {
    name: String,
    words: Vec<Word>,
    /// Or names that came in, from where the loop stands.
    names: Vec<LinePath>,
    here: Places,
}

impl Reader<'_> {
    pub(super) fn group(&mut self) -> Result<After> {
        let after = self.list("}")?;
        self.next()?;
        Ok(after)
    }

    pub(super) fn if_clause(&mut self) -> Result<After> {
        let mut ends: Vec<Places> = Vec::new();
        loop {
            let condition = self.list("then")?;
            self.keyword("then")?;
            self.here = condition.success;
            ends.push(self.list("elif else fi")?.any());
            self.here = condition.failure;
            if !self.take_keyword("elif")? {
                break;
            }
        }
        if self.take_keyword("else")? {
            self.here = self.list("fi")?.any();
        }
        self.keyword("fi")?;
        ends.push(self.here.clone());
        let any = ends[1..].iter().fold(ends[0].clone(), |any, end| any.or(end));
        Ok(After::same(&any))
    }

    pub(super) fn loop_clause(&mut self) -> Result<After> {
        let start = self.here.clone();
        let bindings = self.bindings.len();
        self.incoming = std::mem::take(&mut self.names);
        let condition = self.list("do")?;
        self.incoming.clear();
        self.here = condition.any();
        self.keyword("do")?;
        let body = self.list("done")?.any().or(&condition.any());
        self.bindings.truncate(bindings);
        self.keyword("done")?;
        after_loop(&start, &body)
    }

    pub(super) fn for_clause(&mut self) -> Result<After> {
        let start = self.here.clone();
        let name = match self.next()? {
            Token::Word(word) => word.bare().unwrap_or_default(),
            _ => String::new(),
        };
        if !is_loop_variable(&name) {
            return Err(no("a loop sets an unusual variable"));
        }
        self.keyword("in")?;
        let mut words = Vec::new();
        self.peek()?;
        let list_start = self.token_start;
        while let Token::Word(word) = self.peek()?.clone() {
            self.next()?;
            words.extend(word.expand()?);
        }
        self.list_directories(list_start, &words);
        let mut names = Vec::new();
        if let [word] = &mut words[..] {
            names = std::mem::take(&mut word.choices);
        }
        if words.iter().any(|word| word.is_unknown() || word.is_split) {
            words.clear();
        }
        match self.next()? {
            Token::Newline | Token::Operator(";") => {}
            _ => return Err(no("a loop is unusual")),
        }
        self.skip_newlines()?;
        self.keyword("do")?;
        self.bind(Binding { name, words, names, here: start.clone() })?;
        let body = self.list("done")?.any();
        self.bindings.pop();
        self.keyword("done")?;
        after_loop(&start, &body)
    }

    /// To put names in place of patterns, bash looks into directories.
    fn list_directories(&mut self, start: usize, words: &[Word]) {
        let patterns = words.iter().filter(|word| word.is_pattern);
        let reads: Vec<LinePath> =
            patterns.flat_map(|word| named(&path_text(word), true, &self.here)).collect();
        if !reads.is_empty() {
            let facts = Facts { effect: LineEffect::Looks, reads, ..Facts::default() };
            self.push(start, StrictCommand::default(), facts);
        }
    }

    /// A variable that two loops set has no value that is certain.
    fn bind(&mut self, binding: Binding) -> Result<()> {
        if self.is_bound(&binding.name) {
            return Err(no("it sets a variable twice"));
        }
        self.assigned.note_loop(&binding.name)?;
        self.bindings.push(binding);
        Ok(())
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bindings.iter().any(|binding| binding.name == name)
    }

    /// `read` in the condition of a loop takes in the names that are piped into it, one by one.
    pub(super) fn bind_read(&mut self, words: &[Word]) -> Result<()> {
        let Some((_, arguments)) = words.split_first().filter(|(name, _)| name.text == "read") else {
            return Ok(());
        };
        let variables: Vec<&Word> = arguments.iter().skip_while(|word| word.text.starts_with('-')).collect();
        if variables.iter().any(|word| self.is_bound(&word.text)) {
            return Err(no("it sets a variable twice"));
        }
        for variable in &variables {
            self.assigned.note_loop(&variable.text)?;
        }
        let [variable] = &variables[..] else { return Ok(()) };
        let is_raw = arguments[0].text == "-r";
        let is_whole = arguments.len() == if is_raw { 2 } else { 1 };
        let names = std::mem::take(&mut self.incoming);
        // Without the option, what stands behind a backslash is read in another way.
        let end = if is_raw { NameEnd::Trimmed } else { NameEnd::Word };
        let names: Vec<LinePath> = effect::taken(&names, end).collect();
        if is_whole && !names.is_empty() {
            let binding =
                Binding { name: variable.text.clone(), words: Vec::new(), names, here: self.here.clone() };
            self.bindings.push(binding);
        }
        Ok(())
    }

    /// The arguments that a word becomes, with what is known about variables of loops.
    pub(super) fn expand(&self, word: RawWord) -> Result<Vec<Word>> {
        let variable = word.variable.clone();
        let mut words = word.expand()?;
        let (Some(variable), [word]) = (variable, &mut words[..]) else { return Ok(words) };
        match self.bindings.iter().find(|binding| binding.name == variable) {
            Some(binding) => binding.choose(word, &self.here),
            None => self.assigned.fill(&variable, word)?,
        }
        Ok(words)
    }

    pub(super) fn case_clause(&mut self) -> Result<After> {
        let Token::Word(subject) = self.next()? else { return Err(no("a `case` is unusual")) };
        subject.argument_or_unknown();
        self.skip_newlines()?;
        self.keyword("in")?;
        let start = self.here.clone();
        let mut result = start.clone();
        loop {
            self.skip_newlines()?;
            if self.take_keyword("esac")? {
                return Ok(After::same(&result));
            }
            self.case_patterns()?;
            self.here = start.clone();
            self.skip_newlines()?;
            if !self.is_end(";; esac")? {
                result = result.or(&self.list(";; esac")?.any());
            }
            if !(self.take_operator(";;")? || self.is_end("esac")?) {
                return Err(no("a `case` is unusual"));
            }
        }
    }

    fn case_patterns(&mut self) -> Result<()> {
        self.take_operator("(")?;
        loop {
            if !matches!(self.next()?, Token::Word(_)) {
                return Err(no("a `case` is unusual"));
            }
            match self.next()? {
                Token::Operator("|") => {}
                Token::Operator(")") => return Ok(()),
                _ => return Err(no("a `case` is unusual")),
            }
        }
    }

    /// `[[ … ]]` with tests of files and comparisons of text. What bash would compute with is refused.
    pub(super) fn test_clause(&mut self, start: usize) -> Result<After> {
        let mut words = vec![Word::new("[[")];
        loop {
            match self.next()? {
                Token::Word(word) if word.is_bare("]]") => break,
                Token::Word(word) => words.push(word.argument_or_unknown()),
                Token::Operator(operator @ ("&&" | "||")) => {
                    words.push(Word::new(operator));
                }
                _ => return Err(no("it uses `[[` in an unusual way")),
            }
        }
        let Some(paths) = effect::double_bracket(&words[1..]) else {
            return Err(no("it uses `[[` in an unusual way"));
        };
        words.push(Word::new("]]"));
        let reads =
            paths.iter().flat_map(|path| named(&path_text(path), path.is_pattern, &self.here)).collect();
        let command = StrictCommand { whole: words.clone(), words, ..StrictCommand::default() };
        let facts = Facts { effect: LineEffect::Looks, reads, ..Facts::default() };
        self.push(start, command, facts);
        Ok(After::same(&self.here.clone()))
    }
}

impl Binding {
    /// Says what a word may be in which the variable is the only unknown part.
    fn choose(&self, word: &mut Word, here: &Places) {
        let has_blank = |text: &str| text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
        let is_split =
            word.is_split && self.words.iter().any(|value| value.is_pattern || has_blank(&value.text));
        if is_split || word.is_pattern {
            return;
        }
        if word.text == "\0" && *here == self.here {
            let end = if word.is_split { NameEnd::Word } else { NameEnd::Nul };
            word.choices.extend(effect::taken(&self.names, end));
        }
        for value in &self.words {
            let is_home = value.is_home && word.text.starts_with('\0');
            let text = word.text.replacen('\0', &value.text, 1);
            let whole = Word { text, is_home, ..Word::default() };
            word.choices.extend(named(&path_text(&whole), value.is_pattern, here));
        }
        word.is_split &= self.words.is_empty();
        word.is_arbitrary &= word.choices.is_empty() || !word.choices.iter().all(is_led);
    }
}

/// A loop whose body goes somewhere else starts there the next time.
fn after_loop(start: &Places, body: &Places) -> Result<After> {
    if !body.iter().all(|place| start.contains(place)) {
        return Err(no("it changes the directory in a loop"));
    }
    Ok(After::same(start))
}

/// A variable that no program looks at.
pub(crate) fn is_loop_variable(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    plain && starts && name.len() <= 10 && !name.contains("proxy") && !name.contains("config")
}
