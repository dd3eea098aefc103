//! Which characters a person can see.

use windlass_text::invisible::invisible;

/// More blanks in a row may push text out of sight.
const BLANKS_MAX: usize = 20;

/// Whether a line holds something that a person cannot see or would not get to see.
pub(crate) fn hides_something(line: &str) -> bool {
    has_long_gap(line) || check(line).is_err()
}

/// Refuses a line with invisible characters in it.
pub(crate) fn check(line: &str) -> Result<(), String> {
    let mut before = ' ';
    for c in line.chars() {
        if is_invisible(c, before) {
            return Err(format!("it contains the invisible character U+{:04X}", u32::from(c)));
        }
        before = c;
    }
    Ok(())
}

fn is_invisible(c: char, before: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // The selector that makes a symbol colourful, and nothing else.
        '\u{fe0f}' => before < '\u{2190}' || before.is_alphanumeric() || before == '\u{fe0f}',
        _ => invisible(c).is_some(),
    }
}

fn has_long_gap(line: &str) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    line.as_bytes().split(|byte| !is_blank(byte)).any(|gap| gap.len() > BLANKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(line: &str, expected: bool) {
        assert_eq!(hides_something(line), expected, "{line:?}");
    }

    #[test]
    fn what_cannot_be_seen_is_found() {
        for line in
            ["ls -l", "echo 'a\tb'\nls", "echo „größer“ – 日本 ✓ → 🎉", "echo ⚠\u{fe0f}", "echo e\u{301}"]
        {
            check_line(line, false);
        }
        for hidden in [
            "\0",
            "\r",
            "\u{1b}[0m",
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "\u{ad}",
            "\u{200b}",
            "\u{200d}",
            "\u{202e}",
            "\u{2066}",
            "\u{2028}",
            "\u{3000}",
            "\u{feff}",
            "\u{e0041}",
            "\u{fe01}",
            "\u{e0100}",
            "\u{3164}",
            "\u{e000}",
            "\u{b}",
            "\u{c}",
        ] {
            check_line(&format!("ls {hidden}x"), true);
        }
        check_line("ls a\u{fe0f}", true);
        check_line(&format!("ls{}-l", " ".repeat(20)), false);
        check_line(&format!("ls{}; sh x", " ".repeat(21)), true);
        check_line(&format!("ls{}sh x", "\n".repeat(21)), true);
    }
}
