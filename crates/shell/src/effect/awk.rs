//! `awk`, for programs that only compute and print.

use super::bracket::skip_to;
use super::options::{Operands, READS, Tool};
use super::{Context, Facts, literal, looks};
use crate::Word;
use crate::names::is_name_char;

const AWK: Tool = Tool {
    letters: "F:v:",
    // Not every kind of it knows long options but the usual two, and some take them for the end of the options.
    operands: Operands::TextThenPaths,
    is_harmless: false,
    ..READS
};

/// Words that run something, read another file, or let text decide which function is called.
const REFUSED: [&str; 8] = ["system", "getline", "@", "ARGV", "ARGC", "PROCINFO", "SYMTAB", "FUNCTAB"];

pub(super) fn judge(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let parsed = AWK.parse(arguments)?;
    let (program, files) = parsed.operands.split_first()?;
    if !is_plain_program(literal(program)?) {
        return None;
    }
    let files = files.iter().copied().filter(|word| !is_assignment(&word.text));
    Some(looks(context.paths(files, false)))
}

/// `name=value` is no file if that is a name.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    let is_name = name.chars().all(is_name_char);
    is_name && name.starts_with(|c: char| !c.is_ascii_digit()) && !word.contains('/')
}

/// Whether a program neither runs nor writes anything.
pub(crate) fn is_plain_program(program: &str) -> bool {
    if REFUSED.iter().any(|word| program.contains(word)) {
        return false;
    }
    let mut scan = Scan { rest: program, before: '\n', is_keyword: false, is_length: false, in_print: false };
    while !scan.rest.is_empty() {
        if scan.token().is_none() {
            return false;
        }
    }
    true
}

struct Scan<'a> {
    rest: &'a str,
    /// The last character that was no blank.
    before: char,
    /// The last word was one of the language, behind which a value may begin.
    is_keyword: bool,
    /// The name of that function came last.
    is_length: bool,
    in_print: bool,
}

impl Scan<'_> {
    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Goes over one token; nothing if it may write or run something, or can be read in two ways.
    fn token(&mut self) -> Option<()> {
        let c = self.take()?;
        match c {
            ' ' | '\t' => return Some(()),
            '#' => {
                self.rest = self.rest.trim_start_matches(|c| c != '\n');
                return Some(());
            }
            // A list goes on in the next line.
            '\n' if ",&|".contains(self.before) => return Some(()),
            // Some kinds of it go on there too.
            '\n' if "?:".contains(self.before) => return None,
            '"' => self.quoted('"')?,
            '/' => self.slash()?,
            '|' => self.rest = self.rest.strip_prefix('|')?,
            '>' if self.in_print => return None,
            '\n' | ';' | '{' | '}' => self.in_print = false,
            '\\' => return None,
            c if c.is_ascii_alphabetic() || c == '_' => self.word(c),
            _ => {}
        }
        self.is_keyword &= c.is_ascii_alphabetic();
        self.is_length &= c.is_ascii_alphabetic();
        self.before = c;
        Some(())
    }

    /// A slash begins an expression where a value cannot end, and divides behind a value.
    fn slash(&mut self) -> Option<()> {
        if "\n{};(,!~&|".contains(self.before) {
            return self.quoted('/');
        }
        let is_value = self.before.is_ascii_alphanumeric() || "_]\"".contains(self.before);
        // Without parentheses, some kinds of it do not take that for a value.
        if self.is_length {
            return None;
        }
        // The last slash of all cannot begin an expression, since nothing would end it.
        ((is_value && !self.is_keyword) || !self.rest.contains('/')).then_some(())
    }

    fn word(&mut self, first: char) {
        const KEYWORDS: [&str; 11] =
            ["print", "printf", "return", "in", "case", "else", "do", "delete", "exit", "if", "while"];
        let length = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let (tail, rest) = self.rest.split_at(length);
        let word = format!("{first}{tail}");
        self.is_keyword = KEYWORDS.contains(&word.as_str());
        self.in_print |= matches!(word.as_str(), "print" | "printf");
        self.is_length = word == "length";
        self.rest = rest;
    }

    /// To the end of a string or an expression.
    fn quoted(&mut self, end: char) -> Option<()> {
        self.rest = skip_to(self.rest, end, end == '/')?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, expected: bool) {
        assert_eq!(is_plain_program(program), expected, "{program:?}");
    }

    #[test]
    fn programs_that_only_compute() {
        for program in [
            "{print $1}",
            "{print $1, $NF}",
            "/foo|bar/ {print}",
            "$3 > 100 {print $1}",
            "$3 > 100",
            "NR==5,NR==10",
            "BEGIN{FS=\":\"} {print $1}",
            "{s+=$1} END {print s}",
            "{a[$1]++} END {for (k in a) print k, a[k]}",
            "{printf \"%s|%d\\n\", $1, $2 / 2}",
            "length > 80 {print FILENAME \": \" FNR}",
            "{gsub(/a|b/, \"x\"); print}",
            "$1 ~ /x/ || $2 == \"y\"",
            "{if ($1 > 5) print $1; else print \"small\"}",
            "/[a-z]+/ && !/x/",
            "{print} # all of it",
            "{print ($1 + $2) / 2}",
            "1",
            "",
        ] {
            check(program, true);
        }
    }

    #[test]
    fn programs_that_reach_further() {
        for program in [
            "{system(\"sh x\")}",
            "BEGIN{system(\"x\")}",
            "{print > \"out\"}",
            "{print $1 >> \"out\"}",
            "{print | \"sh\"}",
            "{\"date\" | getline d}",
            "{getline < \"/etc/passwd\"}",
            "{print(1)>\"f\"}",
            "{printf \"x\" > \"f\"}",
            "@load \"x\"",
            "{f=\"x\"; @f()}",
            "BEGIN{ARGV[1]=\"/etc/passwd\"}",
            "{print |& \"x\"}",
            "{print (1) > \"f\"}",
            "{x = 1 / 2; print 3 > \"f\" / 4}",
            "/[/]/ {print > \"f\"}",
            "{print \"a\" \\\n > \"f\"}",
            "{print \"unclosed",
            "{print 1,\n 2 > \"f\"}",
            "{print 1, # why\n 2 > \"f\"}",
            "{print 1 ||\n 2 > \"f\"}",
            "{ print /\"/ > \"out\" /\"/ }",
            "{ return /\"/ }",
            "BEGIN{print \"touch x;\" length /\"/ | \"sh\" ; x = \"/\" } #\"",
            "BEGIN{print length/2}",
            "BEGIN{print 1 ?\n\"a\" : 3 > \"f\"}",
            "BEGIN{print 1 ? 2 : \n 3 > \"f\"}",
            "{ x = /\"/ }",
            "{ if (1) /\"/ ; print > \"out\" /\"/ }",
        ] {
            check(program, false);
        }
    }
}
