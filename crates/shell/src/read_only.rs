//! The short list of commands that only look.

use crate::simple_command;

/// A command that changes nothing, and what it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnlyCommand {
    /// The program's bare name.
    pub name: String,
    /// The files and directories it was told to look at, as written. None: the working directory or nothing.
    pub paths: Vec<String>,
}

/// Recognises one simple command of literal words, without options, from `cat ls head tail wc pwd echo grep`.
///
/// The name must be bare: `./cat` is somebody else's program. A word that begins with `-` is an option, and `+`
/// is one for `head` and `tail`; options are not looked at, so there must be none.
///
/// ```
/// # use windlass_shell::read_only_command;
/// assert_eq!(read_only_command("grep 'fn main' src/main.rs").unwrap().paths, ["src/main.rs"]);
/// assert_eq!(read_only_command("cat -A notes.md"), None);
/// ```
#[must_use]
pub fn read_only_command(line: &str) -> Option<ReadOnlyCommand> {
    let mut words = simple_command(line)?.into_iter();
    let name = words.next()?;
    let operands: Vec<String> = words.collect();
    let is_option = |word: &String| word.starts_with('-') || (word.starts_with('+') && name != "echo");
    if operands.iter().any(is_option) {
        return None;
    }
    let paths = match name.as_str() {
        "cat" | "ls" | "head" | "tail" | "wc" => operands,
        "grep" => operands.into_iter().skip(1).collect(),
        "pwd" | "echo" => Vec::new(),
        _ => return None,
    };
    Some(ReadOnlyCommand { name, paths })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_commands_and_their_paths() {
        let check = |line: &str, expected: Option<(&str, &[&str])>| {
            let expected = expected.map(|(name, paths)| ReadOnlyCommand {
                name: name.into(),
                paths: paths.iter().map(ToString::to_string).collect(),
            });
            assert_eq!(read_only_command(line), expected, "{line}");
        };
        check("cat a 'b c'", Some(("cat", &["a", "b c"])));
        check("ls", Some(("ls", &[])));
        check("ls src", Some(("ls", &["src"])));
        check("head f", Some(("head", &["f"])));
        check("tail f", Some(("tail", &["f"])));
        check("wc f g", Some(("wc", &["f", "g"])));
        check("pwd", Some(("pwd", &[])));
        check("echo hello +1", Some(("echo", &[])));
        check("grep pattern", Some(("grep", &[])));
        check("grep 'a b' f g", Some(("grep", &["f", "g"])));
        for line in [
            "cat -",
            "cat -n f",
            "cat '-n' f",
            "cat f -n",
            "ls -l",
            "grep -r x .",
            "grep x f -r",
            "tail +5 f",
            "echo -e x",
            "./cat f",
            "/bin/cat f",
            "CAT f",
            "rm f",
            "find .",
            "cat f; rm f",
            "cat f > g",
            "cat $f",
            "cat *",
            "sed p f",
            "X=1 cat f",
            "cat f &",
            "time cat f",
            "command cat f",
            "cat \"$(rm f)\"",
            "awk 1 f",
            "",
        ] {
            check(line, None);
        }
    }
}
