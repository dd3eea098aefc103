//! The strict reading: a closed subset of bash in which every command is what it looks like.
//!
//! Whatever is not understood exactly makes the line not plain, also where bash would do nothing bad with it.

mod scan;
mod strip;
#[cfg(test)]
mod tests;
mod word;

use crate::analysis::BYTES_MAX;
use crate::effect::{self, Facts};
use crate::places::{Places, named, path_text};
use crate::visible;
use crate::{Effect, NamedPath, NotPlain, PlainCommand, Word};
use scan::{HereDocument, Redirection, Token};
pub(crate) use strip::Stripped;
use word::RawWord;

type Result<T> = std::result::Result<T, NotPlain>;

/// Words that bash treats as grammar when they stand where a command name would.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

fn no(reason: &str) -> NotPlain {
    NotPlain(reason.to_owned())
}

/// Every command of a line, or why it is not plain.
pub(crate) fn read(line: &str) -> Result<Vec<PlainCommand>> {
    if line.len() > BYTES_MAX {
        return Err(NotPlain(format!("it is longer than {BYTES_MAX} bytes")));
    }
    visible::check(line)?;
    let mut reader = Reader {
        line,
        at: 0,
        ahead: None,
        token_start: 0,
        last_end: 0,
        documents: Vec::new(),
        body: None,
        printed: None,
        here: Places::default(),
        bindings: Vec::new(),
        names: Vec::new(),
        incoming: Vec::new(),
        depth: 0,
        substitutions: 0,
        commands: Vec::new(),
    };
    reader.list("")?;
    if !reader.documents.is_empty() {
        return Err(no("a here document is not closed"));
    }
    if reader.commands.is_empty() {
        return Err(no("there is no command"));
    }
    Ok(reader.commands)
}

/// The state of reading a line.
struct Reader<'a> {
    line: &'a str,
    at: usize,
    ahead: Option<Token>,
    /// Where the token that was looked at last begins.
    token_start: usize,
    /// Where the token that was taken last ends.
    last_end: usize,
    /// Here documents whose lines are still to come.
    documents: Vec<HereDocument>,
    /// The here document that was read last.
    body: Option<String>,
    /// What the last command prints, if it is `cat` with a here document.
    printed: Option<String>,
    /// Where the next command may run.
    here: Places,
    /// What variables of loops hold.
    bindings: Vec<Binding>,
    /// What the stage of a pipeline before the next command prints names of, if it does.
    names: Vec<NamedPath>,
    /// The same for the condition of a loop, which may read them.
    incoming: Vec<NamedPath>,
    depth: usize,
    /// How many of these levels are substitutions.
    substitutions: usize,
    commands: Vec<PlainCommand>,
}

/// What a variable holds while a loop runs.
struct Binding {
    name: String,
    /// The words of the loop.
    words: Vec<Word>,
    /// Or names that came in, from where the loop stands.
    names: Vec<NamedPath>,
    here: Places,
}

/// Where the shell may be after a command, by whether it succeeded.
#[derive(Clone)]
struct After {
    success: Places,
    failure: Places,
}

impl After {
    fn same(places: &Places) -> Self {
        Self { success: places.clone(), failure: places.clone() }
    }

    fn any(&self) -> Places {
        self.success.or(&self.failure)
    }
}

/// The parts of a simple command.
#[derive(Default)]
struct Parts {
    words: Vec<Word>,
    reads: Vec<NamedPath>,
    writes: Vec<NamedPath>,
    network: Option<String>,
    has_assignment: bool,
    has_document: bool,
    has_redirection: bool,
    sets_separator: bool,
}

impl Parts {
    /// Takes one more word: an assignment, the name, or an argument.
    fn take_word(&mut self, word: RawWord, reader: &Reader<'_>) -> Result<()> {
        if !self.words.is_empty() {
            self.words.extend(reader.expand(word)?);
            return Ok(());
        }
        if let Some((name, value)) = word.assignment() {
            if name == "IFS" && value.letters.is_empty() {
                self.sets_separator = true;
            } else if !strip::is_harmless_assignment(&name, &value) {
                return Err(NotPlain(format!("it sets {name}")));
            }
            self.has_assignment = true;
            return Ok(());
        }
        if word.is_odd_assignment() {
            return Err(no("it sets a variable"));
        }
        let is_continued = word.is_continued;
        let mut words = word.expand()?.into_iter();
        let Some(name) = words.next() else { return Err(no("the name of a command is missing")) };
        check_name(&name)?;
        if is_continued || words.len() > 0 {
            return Err(no("the name of a command is not plain"));
        }
        self.words.push(name);
        Ok(())
    }
}

impl Reader<'_> {
    fn is_operator(&mut self, operator: &str) -> Result<bool> {
        Ok(matches!(self.peek()?, Token::Operator(text) if *text == operator))
    }

    /// Whether a word of the grammar comes next.
    fn is_keyword(&mut self, keyword: &str) -> Result<bool> {
        Ok(matches!(self.peek()?, Token::Word(word) if word.bare().as_deref() == Some(keyword)))
    }

    /// Takes a word of the grammar that must come now.
    fn keyword(&mut self, keyword: &str) -> Result<()> {
        if !self.is_keyword(keyword)? {
            return Err(NotPlain(format!("`{keyword}` is missing")));
        }
        self.next()?;
        Ok(())
    }

    fn skip_newlines(&mut self) -> Result<()> {
        while matches!(self.peek()?, Token::Newline) {
            self.next()?;
        }
        Ok(())
    }

    /// Whether a list ends here: at `)`, at the end of the text, or at one of some words of the grammar.
    fn is_end(&mut self, ends: &str) -> Result<bool> {
        let token = self.peek()?;
        Ok(match token {
            Token::End => ends.is_empty(),
            Token::Operator(operator) => ends.split(' ').any(|end| end == *operator),
            Token::Word(word) => word.bare().is_some_and(|bare| ends.split(' ').any(|end| end == bare)),
            _ => false,
        })
    }

    /// Commands up to one of the ends, separated by spaces in `ends`; none means the end of the text. Takes `)`; leaves
    /// every other end.
    fn list(&mut self, ends: &str) -> Result<After> {
        let mut after = After::same(&self.here);
        let mut is_empty = true;
        loop {
            self.skip_newlines()?;
            if self.is_end(ends)? {
                break;
            }
            is_empty = false;
            let start = self.here.clone();
            after = self.and_or()?;
            if self.is_operator("&")? {
                after = After::same(&start);
                self.next()?;
            } else if self.is_operator(";")? || matches!(self.peek()?, Token::Newline) {
                self.next()?;
            } else if !self.is_end(ends)? {
                return Err(no("there is something unexpected behind a command"));
            }
            self.here = after.any();
        }
        if is_empty && !ends.is_empty() {
            return Err(no("there is nothing where commands should be"));
        }
        if ends == ")" {
            self.next()?;
        }
        Ok(after)
    }

    fn and_or(&mut self) -> Result<After> {
        let mut after = self.pipeline()?;
        loop {
            if self.is_operator("&&")? {
                self.next()?;
                self.here = after.success.clone();
                self.skip_newlines()?;
                let next = self.pipeline()?;
                after = After { failure: after.failure.or(&next.failure), success: next.success };
            } else if self.is_operator("||")? {
                self.next()?;
                self.here = after.failure.clone();
                self.skip_newlines()?;
                let next = self.pipeline()?;
                after = After { success: after.success.or(&next.success), failure: next.failure };
            } else {
                return Ok(after);
            }
        }
    }

    fn pipeline(&mut self) -> Result<After> {
        let is_timed = self.is_keyword("time")?;
        if is_timed {
            self.next()?;
            if self.is_keyword("-p")? {
                self.next()?;
            }
            let misread = matches!(self.peek()?, Token::Word(word) if word.text().starts_with('-'));
            if misread || !matches!(self.peek()?, Token::Word(_) | Token::Operator("(")) {
                return Err(no("it uses `time` in an unusual way"));
            }
        }
        let is_negated = self.is_keyword("!")?;
        if is_negated {
            self.next()?;
            if is_timed || self.is_keyword("!")? {
                return Err(no("it uses `!` in an unusual way"));
            }
        }
        let start = self.here.clone();
        self.names.clear();
        let mut after = self.command()?;
        while self.is_operator("|")? || self.is_operator("|&")? {
            self.next()?;
            self.here = start.clone();
            self.skip_newlines()?;
            self.command()?;
            after = After::same(&start);
        }
        self.names.clear();
        if is_negated {
            after = After { success: after.failure, failure: after.success };
        }
        Ok(after)
    }

    fn command(&mut self) -> Result<After> {
        let start = self.here.clone();
        if self.is_operator("(")? {
            self.next()?;
            if self.rest().starts_with('(') {
                return Err(no("it uses arithmetic"));
            }
            self.nested(|reader| reader.list(")"))?;
            self.here = start.clone();
            self.compound_redirections()?;
            return Ok(After::same(&start));
        }
        let keyword = match self.peek()? {
            Token::Word(word) => word.bare().filter(|bare| RESERVED.contains(&bare.as_str())),
            _ => None,
        };
        let Some(keyword) = keyword else { return self.simple() };
        let command_start = self.token_start;
        self.next()?;
        let after = self.nested(|reader| match keyword.as_str() {
            "{" => reader.group(),
            "if" => reader.if_clause(),
            "while" | "until" => reader.loop_clause(),
            "for" => reader.for_clause(),
            "case" => reader.case_clause(),
            "[[" => reader.test_clause(command_start),
            keyword => Err(NotPlain(format!("it uses `{keyword}`"))),
        })?;
        self.here = start;
        self.compound_redirections()?;
        Ok(after)
    }

    fn group(&mut self) -> Result<After> {
        let after = self.list("}")?;
        self.next()?;
        Ok(after)
    }

    fn if_clause(&mut self) -> Result<After> {
        let mut condition = self.list("then")?;
        self.keyword("then")?;
        self.here = condition.success.clone();
        let mut result = self.list("elif else fi")?.any();
        loop {
            if self.is_keyword("elif")? {
                self.next()?;
                self.here = condition.failure.clone();
                condition = self.list("then")?;
                self.keyword("then")?;
                self.here = condition.success.clone();
                result = result.or(&self.list("elif else fi")?.any());
            } else if self.is_keyword("else")? {
                self.next()?;
                self.here = condition.failure.clone();
                result = result.or(&self.list("fi")?.any());
                self.keyword("fi")?;
                return Ok(After::same(&result));
            } else {
                self.keyword("fi")?;
                return Ok(After::same(&result.or(&condition.failure)));
            }
        }
    }

    fn loop_clause(&mut self) -> Result<After> {
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

    fn for_clause(&mut self) -> Result<After> {
        let start = self.here.clone();
        let name = match self.next()? {
            Token::Word(word) => word.bare().unwrap_or_default(),
            _ => String::new(),
        };
        if !is_loop_variable(&name) {
            return Err(no("its loop sets an unusual variable"));
        }
        self.keyword("in")?;
        let mut words = Vec::new();
        while let Token::Word(word) = self.peek()?.clone() {
            self.next()?;
            words.extend(word.expand()?);
        }
        if words.iter().any(|word| word.is_unknown || word.is_split) {
            words.clear();
        }
        match self.next()? {
            Token::Newline | Token::Operator(";") => {}
            _ => return Err(no("its loop is unusual")),
        }
        self.skip_newlines()?;
        self.keyword("do")?;
        self.bind(Binding { name, words, names: Vec::new(), here: start.clone() })?;
        let body = self.list("done")?.any();
        self.bindings.pop();
        self.keyword("done")?;
        after_loop(&start, &body)
    }

    /// A variable that two loops set has no value that is certain.
    fn bind(&mut self, binding: Binding) -> Result<()> {
        if self.bindings.iter().any(|other| other.name == binding.name) {
            return Err(no("it sets a variable twice"));
        }
        self.bindings.push(binding);
        Ok(())
    }

    /// `read` in the condition of a loop takes in the names that are piped into it, one by one.
    fn bind_read(&mut self, words: &[Word]) -> Result<()> {
        let Some((name, arguments)) = words.split_first().filter(|(name, _)| name.text == "read") else {
            return Ok(());
        };
        let variables: Vec<&Word> = arguments.iter().skip_while(|word| word.text.starts_with('-')).collect();
        let is_set = |word: &Word| self.bindings.iter().any(|binding| binding.name == word.text);
        if variables.iter().any(|word| is_set(word)) {
            return Err(no("it sets a variable twice"));
        }
        let [variable] = &variables[..] else { return Ok(()) };
        let is_whole = arguments[0].text == "-r" && arguments.len() == 2 && name.text == "read";
        let names = std::mem::take(&mut self.incoming);
        if is_whole && !names.is_empty() {
            let binding =
                Binding { name: variable.text.clone(), words: Vec::new(), names, here: self.here.clone() };
            self.bindings.push(binding);
        }
        Ok(())
    }

    /// The arguments that a word becomes, with what is known about variables of loops.
    fn expand(&self, word: RawWord) -> Result<Vec<Word>> {
        let variable = word.variable.clone();
        let mut words = word.expand()?;
        let binding = self.bindings.iter().find(|binding| Some(&binding.name) == variable.as_ref());
        if let ([word], Some(binding)) = (&mut words[..], binding) {
            binding.choose(word, &self.here);
        }
        Ok(words)
    }

    fn case_clause(&mut self) -> Result<After> {
        let Token::Word(subject) = self.next()? else { return Err(no("its `case` is unusual")) };
        subject.argument_or_unknown();
        self.skip_newlines()?;
        self.keyword("in")?;
        let start = self.here.clone();
        let mut result = start.clone();
        loop {
            self.skip_newlines()?;
            if self.is_keyword("esac")? {
                self.next()?;
                return Ok(After::same(&result));
            }
            self.case_patterns()?;
            self.here = start.clone();
            self.skip_newlines()?;
            if !self.is_end(";; esac")? {
                result = result.or(&self.list(";; esac")?.any());
            }
            if self.is_operator(";;")? {
                self.next()?;
            } else if !self.is_keyword("esac")? {
                return Err(no("its `case` is unusual"));
            }
        }
    }

    fn case_patterns(&mut self) -> Result<()> {
        if self.is_operator("(")? {
            self.next()?;
        }
        loop {
            if !matches!(self.next()?, Token::Word(_)) {
                return Err(no("its `case` is unusual"));
            }
            match self.next()? {
                Token::Operator("|") => {}
                Token::Operator(")") => return Ok(()),
                _ => return Err(no("its `case` is unusual")),
            }
        }
    }

    /// `[[ … ]]` with tests of files and comparisons of text. What bash would compute with is refused.
    fn test_clause(&mut self, start: usize) -> Result<After> {
        let mut words = vec![Word { text: "[[".to_owned(), ..Word::default() }];
        loop {
            match self.next()? {
                Token::Word(word) if word.bare().as_deref() == Some("]]") => break,
                Token::Word(word) => words.push(word.argument_or_unknown()),
                Token::Operator(operator @ ("&&" | "||")) => {
                    words.push(Word { text: operator.to_owned(), ..Word::default() });
                }
                _ => return Err(no("it uses `[[` in an unusual way")),
            }
        }
        let Some(paths) = effect::double_bracket(&words[1..]) else {
            return Err(no("it uses `[[` in an unusual way"));
        };
        words.push(Word { text: "]]".to_owned(), ..Word::default() });
        let reads =
            paths.iter().flat_map(|path| named(&path_text(path), path.is_pattern, &self.here)).collect();
        let parts = Parts { words: words.clone(), reads, ..Parts::default() };
        let facts = Facts { effect: Effect::Looks, ..Facts::default() };
        self.push(start, parts, words, facts);
        Ok(After::same(&self.here.clone()))
    }

    /// Redirections behind `)`, `}`, `fi` or `done`.
    fn compound_redirections(&mut self) -> Result<()> {
        let mut parts = Parts::default();
        let mut start = None;
        while let Token::Redirection(redirection) = self.peek()?.clone() {
            start.get_or_insert(self.token_start);
            self.next()?;
            self.redirect(redirection, &mut parts)?;
        }
        let Some(start) = start else { return Ok(()) };
        let facts = Facts { effect: Effect::Looks, ..Facts::default() };
        self.push(start, parts, Vec::new(), facts);
        Ok(())
    }

    fn simple(&mut self) -> Result<After> {
        let mut parts = Parts::default();
        self.peek()?;
        let start = self.token_start;
        let names = std::mem::take(&mut self.names);
        loop {
            match self.peek()?.clone() {
                Token::Word(word) => {
                    self.next()?;
                    parts.take_word(word, self)?;
                }
                Token::Redirection(redirection) => {
                    self.next()?;
                    self.redirect(redirection, &mut parts)?;
                }
                _ => break,
            }
        }
        if parts.words.is_empty() && !parts.has_redirection {
            return Err(no(if parts.has_assignment { "it sets a variable" } else { "a command is missing" }));
        }
        if parts.words.is_empty() && parts.has_assignment {
            return Err(no("it sets a variable"));
        }
        self.finish(start, parts, &names)
    }

    fn finish(&mut self, start: usize, mut parts: Parts, names: &[NamedPath]) -> Result<After> {
        if parts.sets_separator && parts.words.first().is_none_or(|name| name.text != "read") {
            return Err(no("it sets IFS"));
        }
        self.bind_read(&parts.words)?;
        let whole = parts.words.clone();
        let stripped = strip::wrappers(&whole);
        parts.words = whole[stripped.skip..].to_vec();
        effect::refuse_shell_changes(&parts.words)?;
        let facts =
            effect::judge(&parts.words, &effect::Context { here: &self.here, stripped: &stripped, names });
        self.names.clone_from(&facts.names);
        let after = match &facts.enters {
            Some(target) if stripped.in_shell && target.one() == crate::Place::Unknown => After::same(target),
            Some(target) if stripped.in_shell => {
                After { success: target.clone(), failure: self.here.clone() }
            }
            _ => After::same(&self.here),
        };
        let prints = whole.len() == 1 && whole[0].text == "cat" && parts.has_document;
        let only_document = parts.reads.is_empty() && parts.writes.is_empty() && parts.network.is_none();
        self.body = None;
        self.push(start, parts, whole, facts);
        if prints && only_document && matches!(self.peek()?, Token::Newline) {
            // Taking the end of the line reads the document; the list would take it next.
            self.next()?;
            self.printed = self.body.take();
            self.ahead = Some(Token::Newline);
        } else {
            self.printed = None;
        }
        Ok(after)
    }

    fn push(&mut self, start: usize, mut parts: Parts, whole: Vec<Word>, facts: Facts) {
        parts.reads.extend(facts.reads);
        parts.writes.extend(facts.writes);
        // A connection is more than looking.
        let effect = if parts.network.is_some() { Effect::Unknown } else { facts.effect };
        self.commands.push(PlainCommand {
            source: start..self.last_end,
            words: parts.words,
            whole,
            exact_only: facts.exact_only,
            effect,
            reads: parts.reads,
            writes: parts.writes,
            directory: facts.directory.unwrap_or_else(|| self.here.one()),
            network: parts.network,
        });
    }

    fn redirect(&mut self, redirection: Redirection, parts: &mut Parts) -> Result<()> {
        parts.has_redirection = true;
        let kind = redirection.kind;
        if matches!(kind, "<<" | "<<-") {
            // Two documents for one command, or one for another descriptor, are rare and easy to misread.
            if redirection.has_number || parts.has_document {
                return Err(no("it uses here documents in an unusual way"));
            }
            parts.has_document = true;
            return self.document(kind);
        }
        let Token::Word(raw) = self.next()? else { return Err(no("a redirection leads nowhere")) };
        if kind == "<<<" {
            raw.expand()?;
            return Ok(());
        }
        let bare = raw.bare().unwrap_or_default();
        let is_descriptor =
            bare == "-" || (!bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()));
        if matches!(kind, ">&" | "<&") {
            if is_descriptor {
                return Ok(());
            }
            // Bash ends the target behind a dash that comes first.
            if kind == "<&" || redirection.has_number || bare.ends_with('-') || raw.text().starts_with('-') {
                return Err(no("it duplicates a descriptor in an unusual way"));
            }
        }
        let [target] = &self.expand(raw)?[..] else {
            return Err(no("a redirection leads to several places"));
        };
        // What a loop goes through can be read.
        if kind == "<" && !target.choices.is_empty() && !target.is_split {
            parts.reads.extend(target.choices.iter().cloned());
            return Ok(());
        }
        if target.is_unknown || target.is_pattern || target.text.is_empty() {
            return Err(no("a redirection leads to a place that is not plain"));
        }
        self.target(kind, target, parts);
        Ok(())
    }

    fn target(&self, kind: &str, target: &Word, parts: &mut Parts) {
        if ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&target.text.as_str()) {
            return;
        }
        if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| target.text.starts_with(device)) {
            parts.network = Some(target.text.clone());
        }
        let paths = named(&path_text(target), false, &self.here);
        if kind != "<" {
            parts.writes.extend(paths.clone());
        }
        if matches!(kind, "<" | "<>") {
            parts.reads.extend(paths);
        }
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
        if word.text == "\0" && !word.is_split && *here == self.here {
            word.choices.extend(self.names.iter().cloned());
        }
        for value in &self.words {
            let is_home = value.is_home && word.text.starts_with('\0');
            let text = word.text.replacen('\0', &value.text, 1);
            let whole = Word { text, is_home, ..Word::default() };
            word.choices.extend(named(&path_text(&whole), value.is_pattern, here));
        }
        word.is_split &= self.words.is_empty();
    }
}

/// A loop whose body goes somewhere else starts there the next time.
fn after_loop(start: &Places, body: &Places) -> Result<After> {
    if !start.contains_all(body) {
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

/// A command name that means the program or builtin of that name, or a path.
fn check_name(name: &Word) -> Result<()> {
    let text = name.text.as_str();
    if name.is_unknown {
        return Err(no("the name of a command is only known at run time"));
    }
    // `%` names a job, and an `=` could make the word an assignment.
    let misread = text.is_empty() || text.starts_with('%') || (text.contains('=') && !text.contains('/'));
    if name.is_pattern || misread || RESERVED.contains(&text) {
        return Err(no("the name of a command is not plain"));
    }
    Ok(())
}
