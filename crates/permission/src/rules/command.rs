//! Patterns of commands: `npm run build`, `git log *`, `npm test:*`.

use windlass_protocol::{CommandFacts, CommandWord, FoundCommand, PlainCommand};

use super::RestrictionMatch::{self, May, No, Yes};
use super::input::runs_input;
use super::position_set::PositionSet;
use super::text::is_listed;

/// Stands between two words. A word that holds it is never equal to a pattern.
const SEPARATOR: char = '\u{1f}';

/// Programs that run what they are told: a pattern that begins with one of them says nothing about what runs.
const INTERPRETERS: &str = "bash sh zsh dash ksh fish python node deno bun ruby perl php lua awk gawk env sudo doas su xargs ssh eval \
    exec npx bunx pnpx uvx npm pnpm yarn make docker podman nix tclsh just tsx ts-node pypy busybox timeout nohup nice time source pwsh \
    powershell java kotlin scala groovy julia Rscript osascript expect watch parallel";

/// Programs that run what they are told only behind one of the words below.
const RUNNERS: &str =
    "uv poetry pipx pipenv pdm hatch rye go cargo kubectl conda mamba mise asdf devbox pixi";
const RUNS: &str = "run exec x shell";

/// Programs that take words for what they are: names of things, subcommands, text.
const TAKE_WORDS: &str = "git hg svn gh glab docker podman kubectl helm npm pnpm yarn bun cargo rustup go pip pip3 uv poetry conda brew \
    apt apt-get dnf yum pacman apk snap gem bundle composer aws gcloud az terraform systemctl make echo printf grep egrep fgrep rg ag \
    sed cut tr ls cat head tail wc mkdir touch cp mv ln rm which whereis type command man info test [ [[ export local declare alias read \
    for set";

/// So many places of a name are looked at.
const PLACES_MAX: usize = 16;

/// A pattern of commands, word by word: how a word is quoted makes no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    tokens: Vec<Token>,
    /// So many of the tokens at the beginning are characters, and nothing else fits there.
    literal: usize,
    /// The program, as far as it is characters.
    name: String,
    /// What the last word ends with, behind the last star.
    ending: String,
    /// As it was written, for lines that are allowed as a whole.
    text: String,
    /// It lets an interpreter, or whatever a package manager is told to, run anything.
    pub(crate) is_broad: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// Anything, over several words too.
    Any,
    /// Anything within a word: a star inside quotes.
    AnyInWord,
    /// The end of the command, or of a word; what follows may be anything.
    Boundary,
}

/// Why a star does not cover a command that it fits.
pub(crate) struct UncoveredProgram {
    /// The word that has another program run. `None` if what is run must be given in all its words.
    pub(crate) told: Option<CommandWord>,
    /// A pattern that would cover it, if there is one.
    pub(crate) pattern: Option<String>,
}

impl CommandPattern {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads what stands between the parentheses. `None` if it says nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let body = ending(text);
        let mut reader = Reader::default();
        reader.read(body.unwrap_or(text));
        let mut tokens = reader.tokens;
        if tokens.is_empty() {
            return None;
        }
        if body.is_some() {
            tokens.extend([Token::Boundary, Token::Any]);
        }
        let head: String = tokens
            .iter()
            .map_while(|token| match token {
                Token::Char(c) => Some(*c),
                Token::Any | Token::AnyInWord | Token::Boundary => None,
            })
            .collect();
        let words: Vec<&str> = head.split(SEPARATOR).collect();
        let literal = head.chars().count();
        let ending = last_word_ending(&tokens);
        let (name, text) = (words[0].to_owned(), text.to_owned());
        let pattern = Self { tokens, literal, name, ending, text, is_broad: false };
        Some(Self { is_broad: pattern.lets_anything_run(&words), ..pattern })
    }

    /// A pattern that means these words and no others; `None` if they cannot be written as one.
    pub(crate) fn literal(words: &[CommandWord]) -> Option<String> {
        let plain = |word: &str| !word.chars().any(|c| c.is_control() || c == SEPARATOR);
        let written = |word: &CommandWord| word.as_known().filter(|word| plain(word)).map(escape);
        let text = words.iter().map(written).collect::<Option<Vec<_>>>()?.join(" ");
        let reads_back = Self::parse(&text).is_some_and(|pattern| pattern.is_exact() && pattern.is(words));
        reads_back.then_some(text)
    }

    /// Whether it means one list of words and no other.
    fn is_exact(&self) -> bool {
        self.literal == self.tokens.len()
    }

    /// Whether an allow rule with this pattern covers a command. A part that is not known is covered only where anything is.
    pub(crate) fn covers(&self, command: &PlainCommand) -> bool {
        if self.is_exact() {
            return self.is(&command.words) || self.is(&command.whole);
        }
        // A star in a directory does not lead out of it again: `scripts/*`.
        let climbs = |word: &CommandWord| word.to_string().split('/').skip(1).any(|part| part == "..");
        let may_cover = !command.is_exact_only
            && command.spelled.is_none_or(|count| self.spells(&command.words, count))
            && !(self.text.contains("/*") && command.words.iter().any(climbs));
        may_cover && self.is(&command.words)
    }

    /// Why a star of an allow rule does not cover a command that it fits; `None` if it fits none, or covers it.
    pub(crate) fn holds_back(&self, command: &PlainCommand) -> Option<UncoveredProgram> {
        if self.is_exact() || self.covers(command) || !self.is(&command.words) {
            return None;
        }
        let count =
            command.spelled.filter(|_| !command.is_exact_only).map(|count| count.min(command.words.len()));
        let told = count.and_then(|count| command.words[..count].last()).cloned();
        let wide = count.and_then(|count| Some(format!("{} *", Self::literal(&command.words[..count])?)));
        let allows = |text: &String| Self::parse(text).is_some_and(|pattern| pattern.covers(command));
        Some(UncoveredProgram {
            told,
            pattern: wide.filter(allows).or_else(|| Self::literal(&command.words)),
        })
    }

    /// Whether what stands in front of the first star would be these words to their ends, if it fits.
    fn spells(&self, words: &[CommandWord], count: usize) -> bool {
        let count = count.min(words.len());
        let length = characters(&words[..count]).count();
        let ends = |token: Option<&Token>| matches!(token, None | Some(Token::Boundary));
        self.literal > length || (self.literal == length && ends(self.tokens.get(length)))
    }

    /// Whether it lets anything run, by the words in front of its first star.
    fn lets_anything_run(&self, words: &[&str]) -> bool {
        if self.is_exact() {
            return runs_input(words);
        }
        let name = self.name.as_str();
        let ends = matches!(self.tokens.get(self.literal), None | Some(Token::Boundary));
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let runs = words.get(1).is_none_or(|word| is_listed(RUNS, word));
        let is_runner = is_listed(INTERPRETERS, plain) || is_listed(RUNNERS, name) && runs;
        (words.len() == 1 && !ends) || is_runner
    }

    /// A pattern that means this very line as a whole; `None` if it would mean others too.
    pub(crate) fn literal_line(line: &str) -> Option<String> {
        let pattern = Self::parse(line)?;
        pattern.is_exact().then_some(pattern.text)
    }

    /// Whether an allow rule is this very line, whatever the line is.
    pub(crate) fn is_line(&self, line: &str) -> bool {
        self.text == line.trim()
    }

    /// Whether a deny or ask rule with this pattern means something in a line.
    pub(crate) fn restricts(&self, facts: &CommandFacts) -> RestrictionMatch {
        if self.is_line(&facts.line) {
            return Yes;
        }
        let found = facts.found.iter().map(|command| self.restricts_found(command));
        let plain =
            facts.plain.iter().flatten().map(|command| RestrictionMatch::sure(self.is(line_words(command))));
        found.chain(plain).max().unwrap_or(No)
    }

    /// The command by its name and by the last part of it: `/bin/rm` is `rm`.
    fn restricts_found(&self, command: &FoundCommand) -> RestrictionMatch {
        let Some((name, rest)) = command.words.split_first() else { return No };
        let base = base_name(name);
        let by_base = base.as_ref().map_or(No, |base| self.compare(std::iter::once(base).chain(rest)));
        match self.compare(command.words.iter()).max(by_base) {
            No => May.min(self.restricts_behind(name, rest)),
            seen => seen,
        }
    }

    /// A program that is not known may run the rest of its words.
    fn restricts_behind(&self, program: &CommandWord, words: &[CommandWord]) -> RestrictionMatch {
        let begins = |at: &usize| !self.name.is_empty() && words[*at].base_name() == Some(&self.name);
        let mut places = (0..words.len()).filter(begins).take(PLACES_MAX).peekable();
        if places.peek().is_none()
            || program.base_name().is_some_and(|program| is_listed(TAKE_WORDS, program))
        {
            return No;
        }
        let name = CommandWord::from(self.name.as_str());
        let run = |at: usize| self.compare(std::iter::once(&name).chain(&words[at + 1..]));
        places.map(run).max().unwrap_or(No)
    }

    fn compare<'a>(
        &self,
        words: impl DoubleEndedIterator<Item = &'a CommandWord> + Clone,
    ) -> RestrictionMatch {
        if self.runs(words.clone(), Reading::Sure) {
            return Yes;
        }
        let unknown = words.clone().any(|word| !word.is_known());
        if unknown && self.runs(words, Reading::Possible) { May } else { No }
    }

    fn is(&self, words: &[CommandWord]) -> bool {
        self.runs(words.iter(), Reading::Sure)
    }

    fn runs<'a>(
        &self,
        words: impl DoubleEndedIterator<Item = &'a CommandWord> + Clone,
        reading: Reading,
    ) -> bool {
        let mut text = characters(words.clone());
        let mut at = 0;
        // Most patterns part from a command within its first characters.
        while at < self.literal {
            match text.next() {
                Some(Some(c)) if self.tokens[at] == Token::Char(c) => at += 1,
                Some(None) if reading == Reading::Possible => {
                    let mut walk = Walk::new(&self.tokens, at);
                    return walk.take(None, reading) && walk.takes_all(text, reading);
                }
                Some(_) | None => return false,
            }
        }
        let ends_apart =
            |last: &CommandWord| reading == Reading::Sure && !last.end().ends_with(&*self.ending);
        !words.last().is_some_and(ends_apart) && Walk::new(&self.tokens, at).takes_all(text, reading)
    }
}

/// The words in the line, without the one for words from the input: a denial holds whatever follows.
fn line_words(command: &PlainCommand) -> &[CommandWord] {
    match command.words.split_last() {
        Some((last, words))
            if *last == CommandWord::unknown() && !command.whole.ends_with(&command.words) =>
        {
            words
        }
        _ => &command.words,
    }
}

/// The characters that tokens end with, as far as they are of one word.
fn last_word_ending(tokens: &[Token]) -> String {
    let chars = tokens.iter().rev().map_while(|token| match token {
        // What a pattern has in the place of another character cannot be looked for in a word.
        Token::Char(c) if !matches!(*c, SEPARATOR | char::REPLACEMENT_CHARACTER) => Some(*c),
        Token::Char(_) | Token::Any | Token::AnyInWord | Token::Boundary => None,
    });
    chars.collect::<Vec<_>>().into_iter().rev().collect()
}

/// The words one character after the other, with what stands between two of them; `None` for what is not known.
fn characters<'a>(words: impl IntoIterator<Item = &'a CommandWord>) -> impl Iterator<Item = Option<char>> {
    let known = |c| if c == SEPARATOR { char::REPLACEMENT_CHARACTER } else { c };
    words.into_iter().enumerate().flat_map(move |(at, word)| {
        let before = (at > 0).then_some(Some(SEPARATOR));
        before.into_iter().chain(word.letters().map(move |letter| letter.map(known)))
    })
}

/// The last part of a path, if it has several.
fn base_name(word: &CommandWord) -> Option<CommandWord> {
    let pieces = word.pieces();
    let at = pieces.iter().rposition(|piece| piece.contains('/'))?;
    let (_, start) = pieces[at].rsplit_once('/')?;
    let mut base: Vec<String> =
        std::iter::once(start.to_owned()).chain(pieces[at + 1..].iter().cloned()).collect();
    Some(if base.len() == 1 { CommandWord::Known(base.remove(0)) } else { CommandWord::Partial(base) })
}

/// What is before a star that stands for the rest of a command.
fn ending(text: &str) -> Option<&str> {
    let body = text.strip_suffix('*')?;
    let before = body.strip_suffix(':').or_else(|| body.strip_suffix(char::is_whitespace))?;
    let escaped = before.chars().rev().take_while(|&c| c == '\\').count() % 2 == 1;
    (!escaped && !before.trim().is_empty()).then(|| before.trim_end())
}

/// How unknown text is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As something that only a star covers.
    Sure,
    /// As whatever would fit.
    Possible,
}

/// How far in a pattern a text can have come.
struct Walk<'a> {
    tokens: &'a [Token],
    places: PositionSet,
}

impl<'a> Walk<'a> {
    fn new(tokens: &'a [Token], place: usize) -> Self {
        let mut walk = Self { tokens, places: PositionSet::empty_below(tokens.len() + 1) };
        walk.enter(place);
        walk
    }

    /// A star can stand for nothing, so what follows it is reached with it.
    fn enter(&mut self, place: usize) {
        let mut place = place;
        while self.places.insert(place)
            && matches!(self.tokens.get(place), Some(Token::Any | Token::AnyInWord))
        {
            place += 1;
        }
    }

    /// Whether the rest of a text ends where the pattern does.
    fn takes_all(mut self, mut text: impl Iterator<Item = Option<char>>, reading: Reading) -> bool {
        text.all(|c| self.take(c, reading)) && self.is_over()
    }

    /// Goes on by one character; false if the pattern cannot.
    fn take(&mut self, c: Option<char>, reading: Reading) -> bool {
        if c.is_none() && reading == Reading::Possible {
            let Some(first) = self.places.iter().next() else { return false };
            (first..=self.tokens.len()).for_each(|place| _ = self.places.insert(place));
            return true;
        }
        let before = self.places.take();
        for place in before.iter() {
            match self.tokens.get(place) {
                Some(Token::Char(wanted)) if Some(*wanted) == c => self.enter(place + 1),
                Some(Token::Boundary) if c == Some(SEPARATOR) => self.enter(place + 1),
                Some(Token::Any) => self.enter(place),
                Some(Token::AnyInWord) if c.is_some_and(|c| c != SEPARATOR) => self.enter(place),
                Some(Token::Char(_) | Token::Boundary | Token::AnyInWord) | None => (),
            }
        }
        !self.places.is_empty()
    }

    fn is_over(&self) -> bool {
        let ends = |place: usize| matches!(self.tokens.get(place), None | Some(Token::Boundary));
        self.places.iter().any(ends)
    }
}

/// Reads a pattern the way a shell reads words.
#[derive(Default)]
struct Reader {
    tokens: Vec<Token>,
    /// A word was begun, be it an empty one.
    is_in_word: bool,
    /// Blanks came since the last word.
    is_apart: bool,
}

impl Reader {
    fn read(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                c if c.is_whitespace() => self.is_apart = self.is_in_word,
                '*' => self.put(Token::Any),
                '\\' => self.push(chars.next().unwrap_or('\\')),
                '\'' | '"' => match chars.as_str().find(c) {
                    Some(_) => self.read_quoted(c, &mut chars),
                    None => self.push(c),
                },
                c => self.push(c),
            }
        }
    }

    fn read_quoted(&mut self, quote: char, chars: &mut std::str::Chars<'_>) {
        self.begin();
        while let Some(c) = chars.next() {
            match c {
                c if c == quote => return,
                '*' => self.put(Token::AnyInWord),
                '\\' if quote == '"' => self.read_escaped(chars),
                c => self.push(c),
            }
        }
    }

    /// Within double quotes a backslash stays, unless what follows would mean something.
    fn read_escaped(&mut self, chars: &mut std::str::Chars<'_>) {
        match chars.next() {
            Some(c @ ('$' | '`' | '"' | '\\' | '*')) => self.push(c),
            Some(c) => {
                self.push('\\');
                self.push(c);
            }
            None => self.push('\\'),
        }
    }

    fn begin(&mut self) {
        self.is_in_word = true;
        if std::mem::take(&mut self.is_apart) {
            self.tokens.push(Token::Char(SEPARATOR));
        }
    }

    fn put(&mut self, token: Token) {
        self.begin();
        self.tokens.push(token);
    }

    fn push(&mut self, c: char) {
        // Nobody types it, and as a character it would pass for the space between two words.
        let c = if c == SEPARATOR { char::REPLACEMENT_CHARACTER } else { c };
        self.put(Token::Char(c));
    }
}

/// A word as a pattern that means only it.
fn escape(word: &str) -> String {
    if word.is_empty() {
        return "''".into();
    }
    let plain = |c: char| c.is_alphanumeric() || "_-./,:+=@%^~".contains(c);
    word.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<CommandWord> {
        text.split('|').map(|word| CommandWord::from_marked(word, "$")).collect()
    }

    /// The pattern, the words with `|` between them and `$` for what is not known, and what becomes of them.
    #[track_caller]
    fn check(pattern: &str, command: &str, expected: RestrictionMatch) {
        let pattern = CommandPattern::parse(pattern).unwrap();
        let seen = pattern.restricts_found(&FoundCommand {
            words: words(command),
            reads: vec![],
            writes: vec![],
            removes: vec![],
        });
        assert_eq!(seen, expected, "{pattern:?} {command}");
    }

    #[test]
    fn patterns_mean_words() {
        use RestrictionMatch::{May, No, Yes};
        check("npm run build", "npm|run|build", Yes);
        check("npm run build", "npm|run|build|x", No);
        check("npm run build", "npm|run build", No);
        check("npm 'run build'", "npm|run build", Yes);
        check("ls *", "ls", Yes);
        check("ls *", "ls|-la|x", Yes);
        check("ls *", "lsof", No);
        check("ls:*", "ls", Yes);
        check("ls:*", "ls|x", Yes);
        check("ls:*", "lsx", No);
        check("ls*", "lsof", Yes);
        check("ls*", "ls|x", Yes);
        check("* --version", "node|--version", Yes);
        check("* --version", "a|b|--version", Yes);
        check("* --version", "--version", No);
        check("git * main", "git|push|origin|main", Yes);
        check("git * main", "git|main", No);
        check("git commit -m \"*\"", "git|commit|-m|a b c", Yes);
        check("git commit -m \"*\"", "git|commit|-m|a|--amend", No);
        check("echo \\*", "echo|*", Yes);
        check("echo \\*", "echo|x", No);
        check("a:b *", "a:b|c", Yes);
        check("rm *", "/bin/rm|x", Yes);
        check("/bin/rm *", "/bin/rm|x", Yes);
        check("/bin/rm *", "rm|x", No);
        check("it's *", "it's|x", Yes);
        check("rm *", "rm|$", Yes);
        check("rm *", "$|x", May);
        check("rm -rf *", "rm|$", May);
        check("rm -rf /", "rm|-rf|$", May);
        check("curl *", "wget|$", No);
        check("echo ''", "echo|", Yes);
        check("* *", "a|b", Yes);
    }

    #[test]
    fn a_literal_pattern_means_its_words_and_no_others() {
        for line in
            ["npm|run|x", "echo|*", "git|commit|-m|it's \"a\" $x\\", "a||b", "echo|:*", "x|a  b", "ls|*"]
        {
            let list: Vec<CommandWord> = line.split('|').map(CommandWord::from).collect();
            let text = CommandPattern::literal(&list).unwrap();
            let pattern = CommandPattern::parse(&text).unwrap();
            assert!(pattern.is(&list), "{line}: {text}");
            assert!(pattern.is_exact(), "{line}: {text}");
        }
        assert_eq!(CommandPattern::literal(&["a\nb".into()]), None);
    }

    #[test]
    fn a_rule_with_a_star_has_to_spell_out_what_is_run() {
        let check = |pattern: &str, spelled: Option<usize>, expected: bool| {
            let words = words("rg|--pre|./x|foo");
            let command = PlainCommand {
                text: "rg --pre ./x foo".into(),
                whole: words.clone(),
                words,
                is_exact_only: false,
                spelled,
                effect: windlass_protocol::CommandEffect::Unknown,
                reads: vec![],
                writes: vec![],
                has_network: false,
            };
            assert_eq!(CommandPattern::parse(pattern).unwrap().covers(&command), expected, "{pattern}");
        };
        check("rg:*", None, true);
        check("rg:*", Some(3), false);
        check("rg *", Some(3), false);
        check("*", Some(3), false);
        check("rg * foo", Some(3), false);
        check("rg --pre:*", Some(3), false);
        check("rg --pre ./*", Some(3), false);
        check("rg --pre ./x*", Some(3), false);
        check("rg --pre \"*\" foo", Some(3), false);
        check("rg --pre ./x:*", Some(3), true);
        check("rg --pre ./x *", Some(3), true);
        check("rg --pre ./x f*", Some(3), true);
        check("rg --pre ./x foo", Some(3), true);
        check("rg --pre ./x foo", Some(4), true);
        check("rg --pre ./x foo:*", Some(4), true);
        check("rg --pre ./x foo *", Some(9), true);
        check("rg --pre ./x bar *", Some(3), false);
    }

    #[test]
    fn what_a_program_nobody_knows_is_given_may_run() {
        let check = |pattern: &str, line: &str, expected: RestrictionMatch| {
            let words = line.split(' ').map(CommandWord::from).collect();
            let command = FoundCommand { words, reads: vec![], writes: vec![], removes: vec![] };
            assert_eq!(CommandPattern::parse(pattern).unwrap().restricts_found(&command), expected, "{line}");
        };
        check("rm:*", "wrapped -x rm y", RestrictionMatch::May);
        check("rm:*", "wrapped /bin/rm y", RestrictionMatch::May);
        check("git push *", "wrapped git push origin", RestrictionMatch::May);
        check("git push *", "wrapped git pull", RestrictionMatch::No);
        check("rm:*", "git rm y", RestrictionMatch::No);
        check("rm:*", "docker rm y", RestrictionMatch::No);
        check("rm:*", "wrapped rmdir y", RestrictionMatch::No);
        check("rm:*", "rm y", RestrictionMatch::Yes);
        check("*", "wrapped y", RestrictionMatch::Yes);
    }

    #[test]
    fn a_pattern_that_lets_anything_run_is_broad() {
        let check = |text: &str, expected: bool| {
            assert_eq!(CommandPattern::parse(text).unwrap().is_broad, expected, "{text}");
        };
        for text in [
            "*",
            "py*",
            "python *",
            "python3.12:*",
            "bash -c *",
            "npm run *",
            "uv run *",
            "cargo run *",
            "go run:*",
        ] {
            check(text, true);
        }
        for text in ["kubectl exec *", "cargo *", "timeout *", "pypy3 *", "mise exec *", "java *", "just:*"] {
            check(text, true);
        }
        for text in ["sh", "bash -s", "python3", "python3 -", "sudo sh", "env A=1 node", "ssh host"] {
            check(text, true);
        }
        for text in ["sh x.sh", "python3 a.py", "bash -c make", "sudo make", "make", "ssh host uptime"] {
            check(text, false);
        }
        for text in
            ["cargo test *", "go vet *", "kubectl get *", "uv pip list *", "ls *", "python a.py", "git *"]
        {
            check(text, false);
        }
    }

    #[test]
    fn nothing_is_no_pattern() {
        for text in ["", "  ", "\t"] {
            assert_eq!(CommandPattern::parse(text), None);
        }
        assert!(CommandPattern::parse("*").is_some());
    }
}
