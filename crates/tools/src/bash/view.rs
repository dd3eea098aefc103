//! A command that showed one file lets the conversation know that file.

use std::path::Path;

use windlass_protocol::FileSeen;

use crate::fingerprint::{content_hash, seen_file};

/// Larger files are not read again only to be remembered.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the conversation now knows of the file at `resolved`, of which a command printed `printed`. The file counts as
/// seen whole only if that is exactly its content, and text.
pub(crate) fn seen_by_command(resolved: &Path, printed: Option<&[u8]>) -> Option<FileSeen> {
    if resolved.metadata().ok()?.len() > BYTES_MAX {
        return None;
    }
    let mut seen = seen_file(resolved, false).ok()?;
    seen.whole = printed
        .is_some_and(|printed| content_hash(printed) == seen.hash && std::str::from_utf8(printed).is_ok());
    Some(seen)
}

#[cfg(test)]
mod tests {
    use windlass_ports::HiddenPaths;

    use super::super::commands::{LineContext, LineJudgement, line_facts};

    fn check(line: &str, expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let (cwd, hidden) = (&dir.path().canonicalize().unwrap(), HiddenPaths::default());
        let facts = line_facts(line, LineContext { cwd, root: cwd, hidden: &hidden }, LineJudgement::ByWords);
        assert_eq!(facts.run.unwrap().shows, expected.map(|name| cwd.join(name)), "{line}");
    }

    #[test]
    fn one_file_is_shown() {
        for line in [
            "cat f",
            "cat -n f",
            "cat -- f",
            "nl f",
            "nl -ba f",
            "nl -b a f",
            "bat f",
            "bat -pP f",
            "bat --style=plain -r 1:5 f",
            "batcat f",
            "head f",
            "head -20 f",
            "head -n 20 f",
            "head -n20 f",
            "head --lines=20 f",
            "tail -n +5 f",
            "sed -n 5p f",
            "sed -n '5,10p' f",
            "sed -n '5,$p' f",
            "sed -n '5,+3p;$p' f",
            "grep x f",
            "grep -n x f",
            "grep -in -A 3 'a b' f",
            "grep x f -n",
            "egrep 'a|b' f",
            "fgrep -A3 x f",
            "rg x f",
            "rg -n -C 2 x f",
            "grep -e x f",
            "sed -n -e 5p f",
            "cat ./f",
        ] {
            check(line, Some("f"));
        }
    }

    #[test]
    fn anything_else_is_no_view() {
        for line in [
            "cat",
            "cat -",
            "cat a b",
            "cat -n",
            "cat f | head",
            "cat f > g",
            "cat < f",
            "cat --help f",
            "head -n f",
            "tail -f f",
            "sed 5p f",
            "sed -n 5d f",
            "sed -n '5,10p;w out' f",
            "sed -n '/x/p' f",
            "sed -n -i 5p f",
            "sed -ni 5p f",
            "sed -n 5p a b",
            "sed -n 5p",
            "sed -n p f",
            "grep f",
            "grep -r x f",
            "grep -c x f",
            "grep -l x f",
            "grep x a b",
            "rg x",
            "rg --pre cmd x f",
            "rg -l x f",
            "wc f",
            "less f",
            "./cat f",
            "cat f; rm f",
        ] {
            check(line, None);
        }
    }
}
