//! Texts and numbers for people. What a model, a tool or a server wrote is shown without its power over
//! the terminal: no control characters, no characters that reorder or hide others.

/// One line without control characters; runs of blanks become one.
pub(crate) fn line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || (is_unsafe(c) && c.is_control()) {
            if !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else if !is_unsafe(c) {
            clean.push(c);
        }
    }
    clean.trim().to_owned()
}

/// Several lines without control characters; line ends and tabs stay.
pub(crate) fn paragraph(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unsafe(*c)).collect()
}

/// Characters that can change what a terminal shows of others: controls, and marks of direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Cuts a line to a number of columns. A character outside ASCII counts as two, which is never too few.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let width = |c: char| if c.is_ascii() { 1 } else { 2 };
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let mut used = 3;
    let mut short: String = text
        .chars()
        .take_while(|c| {
            used += width(*c);
            used <= columns
        })
        .collect();
    short.push_str("...");
    short
}

/// `340 ms`, `3.2 s` or `2 min 5 s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// A number with its thousands set apart.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A cost; unknown is not zero.
pub(crate) fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| "cost unknown".into(), |usd| format!("${usd:.4}"))
}

/// `1 turn`, `2 turns`.
pub(crate) fn counted(n: u64, thing: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", number(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected);
        check("a\x1b[31mb\x07\u{9b}2Jc", "a [31mb 2Jc");
        check("  two\n\n lines\t", "two lines");
        check("x\u{202e}gnp.exe\u{200b}", "xgnp.exe");
        check("é 日本", "é 日本");
        assert_eq!(paragraph("a\x1b]0;t\x07\n\tb\r\u{202e}"), "a]0;t\n\tb");
    }

    #[test]
    fn lines_are_cut_to_the_terminal() {
        let check = |text: &str, columns, expected: &str| assert_eq!(cut(text, columns), expected);
        check("12345", 5, "12345");
        check("123456", 5, "12...");
        check("日本語", 5, "日...");
        check("abc", 2, "...");
    }

    #[test]
    fn numbers_read_easily() {
        assert_eq!(
            [0, 999, 1000, 59_999, 125_400].map(duration),
            ["0 ms", "999 ms", "1.0 s", "59.9 s", "2 min 5 s"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([cost(Some(0.012_34)), cost(None)], ["$0.0123", "cost unknown"]);
        assert_eq!([counted(1, "turn"), counted(2, "turn")], ["1 turn", "2 turns"]);
    }
}
