//! What the end of a command means: success, failure, or an answer that happens to be a non-zero code.

use windlass_sandbox::CommandStatus;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExitMeaning {
    pub(crate) is_failure: bool,
    /// What the status says, in words; nothing for a plain success.
    pub(crate) words: Option<String>,
    /// Why a non-zero code is no failure.
    pub(crate) interpretation: Option<&'static str>,
}

/// What the end of `command` means; `said` is the end of what it printed.
pub(crate) fn meaning(command: &str, status: CommandStatus, said: &str) -> ExitMeaning {
    let failed = |words: String| ExitMeaning { is_failure: true, words: Some(words), interpretation: None };
    match status {
        CommandStatus::Code(0) => ExitMeaning { is_failure: false, words: None, interpretation: None },
        CommandStatus::Code(code) => match (code, answer_of(command)) {
            (1, Some(answer)) => ExitMeaning {
                is_failure: false,
                words: Some(format!("Exit code 1: {answer}")),
                interpretation: Some(answer),
            },
            _ => failed(format!("Exit code {code}{}", behind_code(code, said))),
        },
        CommandStatus::Signal(signal) => failed(format!("Ended by signal {signal}{}", signal_name(signal))),
        CommandStatus::NotStarted(errno) => {
            failed(format!("Cannot start bash: {}", std::io::Error::from_raw_os_error(errno)))
        }
        CommandStatus::Lost => failed(
            "The process that supervised the command was killed, so its exit status is unknown. All its \
             processes have been ended."
                .to_owned(),
        ),
    }
}

/// What bash's special codes mean, if the output agrees: other failures use the numbers too.
fn behind_code(code: i32, said: &str) -> String {
    let any = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
    match code {
        126 if any(&["ermission denied", "annot execute", "s a directory"]) => {
            " (found, but cannot be executed)".to_owned()
        }
        127 if any(&["command not found"]) => " (command not found)".to_owned(),
        129..=192 => signal_name(code - 128),
        _ => String::new(),
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT: aborted",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL: killed, possibly out of memory",
        10 => "SIGUSR1",
        11 => "SIGSEGV: invalid memory access",
        12 => "SIGUSR2",
        13 => "SIGPIPE: its output was closed",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return String::new(),
    };
    format!(" ({name})")
}

/// What exit code 1 answers, for commands where it is an answer. The code is that of the last part of the last line;
/// where it could come from more than one command (`a && b`), all of them must be such commands.
fn answer_of(command: &str) -> Option<&'static str> {
    let mut answer = None;
    for part in last_list(command) {
        answer = Some(answer_of_words(part)?);
    }
    answer
}

fn answer_of_words(part: &str) -> Option<&'static str> {
    let mut words = part.split_whitespace().skip_while(|word| is_assignment(word));
    let name = words.next()?;
    match name.rsplit('/').next()? {
        "grep" | "rg" | "egrep" | "fgrep" => Some("nothing matched"),
        "find" => Some("some places could not be searched"),
        "diff" => Some("the files differ"),
        "test" | "[" => Some("the condition is false"),
        "git" => match words.find(|word| !word.starts_with('-'))? {
            "diff" => Some("there are differences"),
            "grep" => Some("nothing matched"),
            _ => None,
        },
        _ => None,
    }
}

fn is_assignment(word: &str) -> bool {
    let name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split_once('=').is_some_and(|(left, _)| name(left))
}

/// The commands of the last list, each the last of its pipeline: of `a; b | c && d`, that is `c` and `d`.
fn last_list(command: &str) -> Vec<&str> {
    let command = command.trim_end_matches([' ', '\t', '\n', ';']);
    let mut parts = vec![];
    let mut start = 0;
    let mut quote = None;
    let mut characters = command.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                characters.next();
            }
            // Behind an operator the line goes on.
            (None, '\n') if command[start..at].trim().is_empty() => {}
            (None, ';' | '\n') => {
                parts.clear();
                start = at + 1;
            }
            (None, '|' | '&') => {
                let before = command[..at].chars().next_back();
                let next = characters.peek().map(|&(_, next)| next);
                if next == Some(c) {
                    characters.next();
                    parts.push(&command[start..at]);
                    start = at + 2;
                } else if c == '|' || before == Some('|') {
                    start = at + 1;
                } else if !matches!(before, Some('>' | '<')) && next != Some('>') {
                    parts.clear();
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    parts.push(&command[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_signals_in_words() {
        let check = |command: &str, status: CommandStatus, is_failure: bool, words: &str| {
            let meaning = meaning(command, status, "bash: line 1: mkae: command not found\n");
            assert_eq!(
                (meaning.is_failure, meaning.words.unwrap_or_default().as_str()),
                (is_failure, words),
                "{command}"
            );
        };
        check("make", CommandStatus::Code(0), false, "");
        check("make", CommandStatus::Code(2), true, "Exit code 2");
        check("mkae", CommandStatus::Code(127), true, "Exit code 127 (command not found)");
        check("a", CommandStatus::Code(139), true, "Exit code 139 (SIGSEGV: invalid memory access)");
        check("a", CommandStatus::Signal(15), true, "Ended by signal 15 (SIGTERM)");
        check("grep x f", CommandStatus::Code(1), false, "Exit code 1: nothing matched");
        check("grep x f", CommandStatus::Code(2), true, "Exit code 2");
        check(
            "a",
            CommandStatus::NotStarted(2),
            true,
            "Cannot start bash: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn a_special_code_is_explained_only_if_the_output_agrees() {
        let check = |code: i32, said: &str, expected: &str| {
            let words = meaning("x", CommandStatus::Code(code), said).words.unwrap();
            assert_eq!(words, format!("Exit code {code}{expected}"), "{said}");
        };
        check(127, "bash: line 1: x: command not found", " (command not found)");
        check(127, "bash: line 1: nothing: unbound variable", "");
        check(127, "bash: line 1: ./x: No such file or directory", "");
        check(126, "bash: line 1: ./x: Permission denied", " (found, but cannot be executed)");
        check(126, "bash: line 1: ./x: Is a directory", " (found, but cannot be executed)");
        check(126, "", "");
    }

    #[test]
    fn exit_code_one_may_be_an_answer() {
        let check = |command: &str, is_answer: bool| {
            assert_eq!(!meaning(command, CommandStatus::Code(1), "").is_failure, is_answer, "{command}");
        };
        for name in ["grep a b", "rg a", "egrep a", "fgrep a", "find .", "diff a b", "test -f a", "[ -f a ]"]
        {
            check(name, true);
        }
        check("git diff --exit-code", true);
        check("git -c x=y grep a", false);
        check("git --no-pager grep a", true);
        check("git status", false);
        check("LC_ALL=C /usr/bin/grep a b", true);
        check("cat f | grep a", true);
        check("make; grep a f;\n", true);
        check("make\ngrep a f", true);
        check("grep a f | head", false);
        check("grep a f; make", false);
        check("test -d a && make", false);
        check("make && grep a f", false);
        check("test -d a && grep b c", true);
        check("grep 'a|b;c' f", true);
        check("grep \"a\\\"|b\" f", true);
        check("make 2>&1 | grep a", true);
        check("make |& grep a", true);
        check("make && make |& grep a", false);
        check("make &> log | grep a", true);
        check("make &&\ngrep a f", false);
        check("make ||\n\n  grep a f", false);
        check("make |\ngrep a", true);
        check("diff a b & false", false);
        check("make & grep a f", true);
        check("grepper a", false);
        check("", false);
    }
}
