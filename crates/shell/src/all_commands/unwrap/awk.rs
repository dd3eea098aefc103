//! Programs of `awk`: what they run, and the files that they write.

use super::super::word::Argument;
use super::Inside;
use super::texts::code_in_files;
use crate::effect::is_plain_awk;
use crate::names::{find_unescaped, has_name as has, is_name_char, letter_group};

#[derive(Debug, PartialEq)]
enum Token {
    Text(String),
    Word(String),
    Sign(char),
}

/// The programs among the arguments of `awk`; a NUL if an option may take one as its value.
fn programs(arguments: &[Argument]) -> Vec<&str> {
    let mut programs = Vec::new();
    let mut has_program = false;
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let letters = letter_group(word);
        if let Some(code) = word.strip_prefix("--source=") {
            has_program = true;
            programs.push(code);
        } else if has("-e --source", word) {
            has_program = true;
            programs.extend(words.next());
        } else if has("-F -v -l -d -o --field-separator --assign", word) {
            programs.extend(words.next().filter(|value| *value == "\0"));
        } else if has("-f -E -i --file --exec --include", word) {
            has_program |= !has("-i --include", word);
            words.next();
        } else if let Some(letters) = letters.filter(|letters| !letters.is_empty()) {
            has_program |= letters.starts_with(['f', 'E']);
            programs.extend(letters.strip_prefix('e'));
        } else if !word.starts_with("--") {
            if !has_program {
                programs.push(word);
            }
            break;
        }
    }
    programs
}

/// What programs of `awk` run.
pub(super) fn interpreted(arguments: &[Argument], inside: &mut Inside) {
    code_in_files(arguments, ("fEilW", "file exec include load"), "Fve", inside);
    for program in programs(arguments) {
        if program.contains('\0') {
            inside.unseen = Some("code in it is only known at run time");
        }
        if is_plain_awk(program) {
            continue;
        }
        inside.mentions.read_code(program);
        let mut scripts = scripts(program);
        let known = scripts.len();
        scripts.retain(|script| script != "\0");
        if scripts.len() < known {
            inside.unseen = Some("code in it runs something");
        }
        inside.scripts.extend(scripts);
    }
}

/// What a program runs. A NUL stands for what is not known.
pub(super) fn scripts(program: &str) -> Vec<String> {
    let tokens = tokens(program);
    let script = |at: usize| match run_at(&tokens, at) {
        Run::Nothing => None,
        Run::Script(script) => Some(match printed(&tokens[..at]) {
            Some(text) if tokens[at] == Token::Sign('|') => format!("echo \"{text}\" | {script}"),
            _ => script.to_owned(),
        }),
        Run::Unknown => Some("\0".to_owned()),
    };
    (0..tokens.len()).filter_map(script).collect()
}

/// What the statement that ends there prints, as it stands in double quotes of a shell.
fn printed(tokens: &[Token]) -> Option<String> {
    let ends = |token: &Token| matches!(token, Token::Sign(';' | '{' | '}' | '\n'));
    let start = tokens.iter().rposition(ends).map_or(0, |at| at + 1);
    let prints = |token: &Token| matches!(token, Token::Word(word) if has("print printf", word));
    let printed = tokens[start..].iter().position(prints).map(|at| &tokens[start + at + 1..])?;
    let mut text = String::new();
    for token in printed {
        match token {
            Token::Text(part) => {
                // In a format these are values.
                let part = part.replace("%s", "$x").replace('\0', "\n");
                part.chars().for_each(|c| {
                    text.extend(matches!(c, '"' | '\\' | '`').then_some('\\'));
                    text.push(c);
                });
            }
            Token::Sign(',') => text.push(' '),
            Token::Sign('(' | ')') => {}
            Token::Word(_) | Token::Sign(_) => text.push_str("${x}"),
        }
    }
    Some(text)
}

/// Whether a program runs something, or may: where it can be read in two ways, it does.
pub(crate) fn runs_something(program: &str) -> bool {
    if is_plain_awk(program) {
        return false;
    }
    let calls = |(at, name): (usize, &str)| {
        let behind = program[at + name.len()..].trim_start_matches([' ', '\t', '\\', '\n']);
        behind.starts_with('(')
    };
    // Behind these a slash divides, and nothing is inside an expression to look for.
    let divides = |(at, _): (usize, &str)| program[at + 2..].trim_start().starts_with('/');
    let is_ambiguous = program.contains('|')
        && (program.match_indices("++").any(divides) || program.match_indices("--").any(divides));
    let tokens = tokens(program);
    is_ambiguous
        || program.match_indices("system").any(calls)
        || (0..tokens.len())
            .any(|at| matches!(tokens[at], Token::Sign(_)) && !matches!(run_at(&tokens, at), Run::Nothing))
}

/// The files that programs of `awk` write.
pub(in crate::all_commands) fn written(arguments: &[Argument]) -> Vec<String> {
    let mut files = Vec::new();
    for program in programs(arguments).into_iter().filter(|program| !is_plain_awk(program)) {
        let tokens = tokens(program);
        let mut in_print = false;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Word(word) if has("print printf", word) => in_print = true,
                Token::Sign(';' | '{' | '}' | '\n') => in_print = false,
                Token::Sign('>') if tokens.get(at + 1) != Some(&Token::Sign('>')) => match tokens.get(at + 1)
                {
                    Some(Token::Text(text)) if is_end(tokens.get(at + 2)) => files.push(text.clone()),
                    Some(Token::Sign('=')) => {}
                    _ if in_print => files.push("\0".to_owned()),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    files
}

/// What something in a program runs.
enum Run<'a> {
    Nothing,
    Script(&'a str),
    Unknown,
}

fn run_at(tokens: &[Token], at: usize) -> Run<'_> {
    let sign = |at: usize, c: char| tokens.get(at) == Some(&Token::Sign(c));
    let before = at.checked_sub(1);
    match &tokens[at] {
        Token::Word(word) if word == "system" => match (tokens.get(at + 2), tokens.get(at + 3)) {
            (Some(Token::Text(script)), Some(Token::Sign(')'))) if sign(at + 1, '(') => Run::Script(script),
            _ => Run::Unknown,
        },
        // A function is called whose name is in a variable, or something is loaded.
        Token::Sign('@') => Run::Unknown,
        Token::Sign('|') if sign(at + 1, '|') || before.is_some_and(|at| sign(at, '|')) => Run::Nothing,
        Token::Sign('|') => {
            let next = if sign(at + 1, '&') { at + 2 } else { at + 1 };
            let script = match tokens.get(next) {
                Some(Token::Word(word)) if word == "getline" => before
                    .filter(|at| is_start(at.checked_sub(1).and_then(|at| tokens.get(at))))
                    .and_then(|at| tokens.get(at)),
                other => other.filter(|_| is_end(tokens.get(next + 1))),
            };
            match script {
                Some(Token::Text(script)) => Run::Script(script),
                _ => Run::Unknown,
            }
        }
        _ => Run::Nothing,
    }
}

/// Whether a text that begins behind a token is all there is.
fn is_start(token: Option<&Token>) -> bool {
    matches!(token, None | Some(Token::Sign('(' | '{' | '}' | ';' | '=' | '!' | '&' | '\n')))
}

/// Whether a text that ends in front of a token is all there is.
fn is_end(token: Option<&Token>) -> bool {
    matches!(token, None | Some(Token::Sign(')' | '}' | ';' | '\n')))
}

fn tokens(program: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '"' => {
                let (text, rest) = text(after);
                tokens.push(Token::Text(text));
                rest
            }
            '#' => after.find('\n').map_or("", |end| &after[end..]),
            '/' if begins_value(tokens.last()) => {
                tokens.push(Token::Word("/".to_owned()));
                behind_expression(after)
            }
            c if is_name_char(c) => {
                let length = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
                &rest[length..]
            }
            ' ' | '\t' => after,
            c => {
                tokens.push(Token::Sign(c));
                after
            }
        };
    }
    tokens
}

/// Whether a slash behind a token begins an expression to look for.
fn begins_value(before: Option<&Token>) -> bool {
    match before {
        None => true,
        Some(Token::Sign(c)) => !matches!(c, ')' | ']'),
        Some(Token::Word(word)) => has("print return if while", word),
        Some(Token::Text(_)) => false,
    }
}

fn behind_expression(rest: &str) -> &str {
    let line = rest.char_indices().take_while(|(_, c)| *c != '\n');
    // Without an end it was no expression after all.
    find_unescaped(line, '/').map_or(rest, |at| &rest[at + 1..])
}

/// A text, and what follows it. What an unusual escape stands for is not known.
fn text(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &rest[at + 1..]),
            '\\' => match chars.next() {
                Some((_, escaped)) if escaped.is_ascii_alphanumeric() => text.push('\0'),
                Some((_, escaped)) => text.push(escaped),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}
