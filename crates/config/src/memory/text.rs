//! What stands in a memory file: text, comments, code, and the names of other files.

/// The text without comments that stand on lines of their own. Code keeps what looks like one.
pub(super) fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence = Fence::default();
    let mut in_comment = false;
    for line in text.split_inclusive('\n') {
        if !in_comment && (fence.passes(line) || !line.trim_start().starts_with("<!--")) {
            kept.push_str(line);
            continue;
        }
        let behind = line.split_once("-->").map(|(_, rest)| rest);
        in_comment = behind.is_none();
        kept.push_str(behind.filter(|rest| !rest.trim().is_empty()).unwrap_or_default());
    }
    kept
}

/// The files that a text names as `@path`, in order; not those in code.
pub(super) fn imports(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut fence = Fence::default();
    for line in text.lines().filter(|line| !fence.passes(line)) {
        // Every second piece between back-ticks is code.
        for piece in line.split('`').step_by(2) {
            let words = piece.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            let words = words.map(|word| word.trim_end_matches([',', '.', ';', ':', ')', '!', '?']));
            names.extend(words.filter(|word| !word.is_empty()));
        }
    }
    names
}

/// Whether lines stand between the marks of a block of code.
#[derive(Default)]
struct Fence {
    mark: Option<&'static str>,
}

impl Fence {
    /// Takes the next line and says whether it is code or a mark.
    fn passes(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (self.mark, mark) {
            (None, None) => return false,
            (None, Some(_)) => self.mark = mark,
            (Some(open), Some(close)) if open == close => self.mark = None,
            (Some(_), _) => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_code_stays() {
        let check = |text: &str, expected: &str| assert_eq!(without_comments(text), expected);
        check("a\n<!-- x -->\nb\n", "a\nb\n");
        check("a\n<!-- x\ny\n--> z\nb", "a\n z\nb");
        check("a <!-- x --> b\n", "a <!-- x --> b\n");
        check("```\n<!-- x -->\n```\n<!-- y -->\n", "```\n<!-- x -->\n```\n");
        check("a\n<!-- never closed\nb", "a\n");
    }

    #[test]
    fn imports_are_words_outside_of_code() {
        let check = |text: &str, expected: &[&str]| assert_eq!(imports(text), expected, "{text}");
        check("See @README.md and @docs/a.md.\n- @~/mine.md", &["README.md", "docs/a.md", "~/mine.md"]);
        check("mail a@b.c, `@code.md`, @", &[]);
        check("```\n@in-code.md\n```\n~~~\n```\n@too.md\n~~~\n@out.md", &["out.md"]);
    }
}
