//! The strict scanner: a closed subset of bash in which the words of a command are what they look like.

/// Longer lines are not analysed.
const BYTES_MAX: usize = 10_000;

/// Words that bash treats as grammar when they stand where a command name would.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The words of a line that is one simple command of literal words; `None` for every other line.
///
/// Understood are plain unquoted characters, `'…'`, `"…"` without live expansions, and backslash escapes. Any
/// operator, redirection, substitution, glob, tilde, brace, assignment, comment, newline, control character or
/// unusual Unicode character makes the answer `None`, also where bash would take it literally.
///
/// The words are the arguments bash would pass on. What the named program does with them is another question.
///
/// ```
/// # use windlass_shell::simple_command;
/// assert_eq!(simple_command("cat 'my file' a\\ b"), Some(vec!["cat".into(), "my file".into(), "a b".into()]));
/// assert_eq!(simple_command("cat a; rm a"), None);
/// assert_eq!(simple_command("cat $HOME"), None);
/// ```
#[must_use]
pub fn simple_command(line: &str) -> Option<Vec<String>> {
    if line.len() > BYTES_MAX || !line.chars().all(is_plain_to_see) {
        return None;
    }
    let words = words(line)?;
    let name = words.first()?;
    // `%` names a job, and an `=` could make the word an assignment.
    let misread = name.is_empty() || name.starts_with('%') || name.contains('=');
    if misread || RESERVED.contains(&name.as_str()) {
        return None;
    }
    Some(words)
}

/// Printable ASCII, and letters and digits of any script. This leaves out every control character, every blank
/// but the space, and all marks that are invisible or change the direction of text.
fn is_plain_to_see(c: char) -> bool {
    matches!(c, ' '..='~') || (!c.is_ascii() && c.is_alphanumeric())
}

/// Characters that mean themselves outside quotes, wherever in a word they stand.
fn is_literal(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ',' | ':' | '+' | '=' | '@' | '%' | '^')
}

fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == ' ' {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '\'' => single_quoted(&mut chars, word)?,
            '"' => double_quoted(&mut chars, word)?,
            '\\' => word.push(chars.next()?),
            c if is_literal(c) => word.push(c),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

fn single_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '$' | '`' | '!' => return None,
            '\\' => match chars.next()? {
                c @ ('$' | '`' | '"' | '\\') => word.push(c),
                // The backslash stays; what follows it is not special here.
                '!' => return None,
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let words = simple_command(line);
        let words: Option<Vec<&str>> = words.as_ref().map(|words| words.iter().map(String::as_str).collect());
        assert_eq!(words.as_deref(), Some(expected), "{line:?}");
    }

    fn check_refused(line: &str) {
        assert_eq!(simple_command(line), None, "{line:?}");
    }

    #[test]
    fn literal_words_are_decoded() {
        check("ls", &["ls"]);
        check("  ls   -l  ", &["ls", "-l"]);
        check(r"cat a\ b", &["cat", "a b"]);
        check("cat 'a  b'", &["cat", "a  b"]);
        check(r#"cat "a  b"c'd'"#, &["cat", "a  bcd"]);
        check(r#"grep "\$x\"\\\n" f"#, &["grep", r#"$x"\\n"#, "f"]);
        check("echo ''", &["echo", ""]);
        check(r#"echo """#, &["echo", ""]);
        check(r"echo '$(x) `y` * ; ! ~ #'", &["echo", "$(x) `y` * ; ! ~ #"]);
        check(r"echo \$x \* \; \! \~ \#", &["echo", "$x", "*", ";", "!", "~", "#"]);
        check("echo a=b @x +y a,b ^c 50% x:y", &["echo", "a=b", "@x", "+y", "a,b", "^c", "50%", "x:y"]);
        check("cat über 日本", &["cat", "über", "日本"]);
        check("./run if then", &["./run", "if", "then"]);
        check(r#"echo "a\b""#, &["echo", r"a\b"]);
    }

    const REFUSED: &[&str] = &[
        "",
        "   ",
        "a;b",
        "a&b",
        "a|b",
        "a&&b",
        "a||b",
        "a\nb",
        "a &",
        "a>b",
        "a<b",
        "a >>b",
        "a 2>&1",
        "(a)",
        "{ a; }",
        "a {b,c}",
        "a {1..3}",
        "a $b",
        "a ${b}",
        "a $(b)",
        "a `b`",
        "a <(b)",
        "a $'b'",
        "a $\"b\"",
        "a *",
        "a ?",
        "a [b]",
        "a ~",
        "a ~/b",
        "a #b",
        "# a",
        "! a",
        "a !b",
        "a !!",
        "\"a!b\"",
        "a \"$b\"",
        "a \"`b`\"",
        "a \"$(b)\"",
        "a=b",
        "a=b c",
        "a+=b c",
        "'a=b' c",
        "\"a\"=b",
        "if",
        "while",
        "time a",
        "[[ a ]]",
        "coproc a",
        "function a",
        "'if' a",
        "%1",
        "'%1'",
        "'' a",
        "a '",
        "a \"",
        "a \\",
        "a\tb",
        "a '\t'",
        "a \r",
        "a\0b",
        "a '\x1b[0m'",
        "a\x7f",
        "a '\u{202e}b'",
        "a\u{a0}b",
        "a '\u{2028}'",
        "a '\u{feff}'",
        "a '\u{200b}'",
        "a \\\nb",
        "'a\nb'",
        "a \"\\!\"",
        "a '\u{1b}'",
        "a '\u{e0041}'",
    ];

    #[test]
    fn everything_else_is_refused() {
        for line in REFUSED {
            check_refused(line);
        }
        check_refused(&"a".repeat(BYTES_MAX + 1));
    }
}
