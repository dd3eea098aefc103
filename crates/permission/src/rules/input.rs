//! Programs that run what comes from their input, if their words do not say what to run.

use super::text::is_listed;

/// How the words of such a program are read.
struct Program {
    /// What it is called, without a version.
    names: &'static str,
    /// Letters and long options behind which stands what it runs.
    code: &'static str,
    long_code: &'static str,
    /// Letters that make it run its input whatever else is said.
    input: &'static str,
    /// Letters and long options that have a value.
    valued: &'static str,
    long_valued: &'static str,
    /// Words in front of the first operand that are none.
    skipped: &'static str,
    /// With so many operands it is told what to run.
    operands: usize,
    then: OperandMeaning,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandMeaning {
    /// A file and its arguments.
    File,
    /// Another command, from the first operand on.
    Command,
    /// Among other things a command, somewhere.
    Somewhere,
}

const NONE: Program = Program {
    names: "",
    code: "",
    long_code: "",
    input: "",
    valued: "",
    long_valued: "",
    skipped: "",
    operands: 1,
    then: OperandMeaning::File,
};

/// However many operands there are, they do not say what is run.
const NEVER: usize = usize::MAX;

const SHELL: Program = Program {
    names: "bash sh zsh dash ksh mksh ash fish csh tcsh",
    code: "c",
    long_code: "command",
    input: "s",
    valued: "oO",
    long_valued: "rcfile init-file",
    ..NONE
};

#[rustfmt::skip]
const PROGRAMS: [Program; 24] = [
    SHELL,
    Program { names: "python pypy ipython jython", code: "cm", valued: "WX", ..NONE },
    Program {
        names: "node nodejs deno bun tsx ts-node",
        code: "ep",
        long_code: "eval print test version help",
        valued: "rC",
        long_valued: "require import loader experimental-loader conditions env-file",
        skipped: "run",
        ..NONE
    },
    Program { names: "perl", code: "eE", valued: "I", ..NONE },
    Program { names: "ruby jruby irb", code: "e", valued: "IrCE", ..NONE },
    Program { names: "php", code: "rfBRE", valued: "dcz", ..NONE },
    Program { names: "lua luajit", code: "e", valued: "l", ..NONE },
    Program { names: "R Rscript julia octave", code: "ef", long_code: "eval file", ..NONE },
    Program { names: "tclsh wish expect osascript pwsh powershell gnuplot", code: "ce", ..NONE },
    Program { names: "ghci ocaml guile clisp sbcl elixir iex erl swift racket scala groovy", code: "e", ..NONE },
    Program { names: "psql", code: "cfl", long_code: "command file list", operands: NEVER, ..NONE },
    Program { names: "mysql mariadb", code: "e", long_code: "execute", operands: NEVER, ..NONE },
    Program { names: "sqlite", operands: 2, ..NONE },
    Program { names: "ed red ex gdb lldb", operands: NEVER, ..NONE },
    Program { names: "at batch", code: "flrdc", operands: NEVER, ..NONE },
    // Without any of these words they run no input.
    Program { names: "make gmake awk gawk mawk nawk sed vim vi nvim crontab source .", operands: 0, ..NONE },
    Program { names: "su", code: "c", long_code: "command", operands: NEVER, ..NONE },
    Program {
        names: "sudo doas pkexec fakeroot nix-shell",
        valued: "ugpCRTDhrtUa",
        long_valued: "user group prompt chdir chroot host role type command-timeout close-from",
        then: OperandMeaning::Command,
        ..NONE
    },
    Program {
        names: "env",
        input: "S",
        valued: "uC",
        long_valued: "unset chdir",
        operands: 0,
        then: OperandMeaning::Command,
        ..NONE
    },
    Program { names: "exec command builtin nohup time setsid busybox toybox", operands: 0, then: OperandMeaning::Command, ..NONE },
    Program { names: "ssh", valued: "BbcDEeFIiJLlmOopQRSWw", operands: 2, then: OperandMeaning::Somewhere, ..NONE },
    Program { names: "chroot", operands: 2, then: OperandMeaning::Somewhere, ..NONE },
    Program { names: "unshare nsenter newgrp script", then: OperandMeaning::Somewhere, ..NONE },
    Program {
        names: "docker podman nerdctl kubectl oc lxc distrobox toolbox vagrant xargs parallel watch flock ionice chrt taskset nice \
                timeout stdbuf strace ltrace npx bunx pnpx uvx uv poetry pipx pipenv pdm hatch rye conda mamba mise asdf devbox pixi \
                nix rlwrap unbuffer firejail bwrap systemd-run runuser xvfb-run",
        operands: 0,
        then: OperandMeaning::Somewhere,
        ..NONE
    },
];

/// Whether a command runs what comes from its input: its words do not tell what that is.
pub(crate) fn runs_input(words: &[&str]) -> bool {
    runs(words, false)
}

/// `looked_for` says that every later word is looked at anyway: doing so again at each of them would take forever.
fn runs<'a>(words: &[&'a str], is_searched: bool) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let base: &'a str = name.rsplit_once('/').map_or(name, |(_, base)| base);
    let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let is_one = |program: &&Program| is_listed(program.names, base) || is_listed(program.names, plain);
    PROGRAMS.iter().find(is_one).is_some_and(|program| program.runs_input(rest, is_searched))
}

impl Program {
    fn runs_input(&self, words: &[&str], is_searched: bool) -> bool {
        let (mut at, mut operands) = (0, 0);
        while let Some(&word) = words.get(at) {
            at += 1;
            if is_input(word) {
                return true;
            }
            if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
                let name = long.split_once('=').map_or(long, |(name, _)| name);
                if is_listed(self.long_code, name) {
                    return self.is_code_input(&words[at..]);
                }
                at += usize::from(name == long && is_listed(self.long_valued, name));
                continue;
            }
            if word.len() > 1 && word.starts_with(['-', '+']) && word != "--" {
                let letters = &word[1..];
                let is_known =
                    |c: char| [self.input, self.code, self.valued].iter().any(|list| list.contains(c));
                match letters.char_indices().find(|(_, c)| is_known(*c)) {
                    Some((_, c)) if self.input.contains(c) => return true,
                    Some((_, c)) if self.code.contains(c) => return self.is_code_input(&words[at..]),
                    // A letter that comes last has its value in the next word.
                    Some((place, c)) => at += usize::from(place + c.len_utf8() == letters.len()),
                    None => (),
                }
                continue;
            }
            let is_assignment = self.then == OperandMeaning::Command && word.contains('=');
            if word == "--" || is_assignment || is_listed(self.skipped, word) {
                continue;
            }
            operands += 1;
            match self.then {
                OperandMeaning::Command => return runs(&words[at - 1..], is_searched),
                OperandMeaning::File if operands == self.operands => return false,
                OperandMeaning::Somewhere if !is_searched && runs(&words[at - 1..], true) => return true,
                OperandMeaning::File | OperandMeaning::Somewhere => (),
            }
        }
        operands < self.operands
    }

    /// What a shell is given to run may again be something that runs its input.
    fn is_code_input(&self, rest: &[&str]) -> bool {
        let Some(code) = rest.first() else { return false };
        let runs = |part: &str| runs_input(&part.split_whitespace().collect::<Vec<_>>());
        is_input(code) || self.names == SHELL.names && code.split([';', '|', '&', '\n', '(', ')']).any(runs)
    }
}

fn is_input(word: &str) -> bool {
    let value = word.strip_prefix("-f").or_else(|| word.split_once('=').map(|(_, value)| value));
    let is_name = |word: &str| {
        word == "-"
            || matches!(word, "/dev/stdin" | "/dev/fd/0")
            || word.starts_with("/proc/") && word.ends_with("/fd/0")
    };
    is_name(word) || value.is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_its_input() {
        let check = |line: &str, expected: bool| {
            assert_eq!(runs_input(&line.split('|').collect::<Vec<_>>()), expected, "{line}");
        };
        check("sh", true);
        check("/bin/bash|-eu", true);
        check("bash|-s|--|x", true);
        check("bash|-euo|pipefail", true);
        check("bash|-euo|pipefail|x.sh", false);
        check("bash|--norc", true);
        check("bash|--rcfile|x", true);
        check("bash|-c|make all", false);
        check("bash|-c|cat x; sudo sh", true);
        check("bash|x.sh|-s", false);
        check("sh|/dev/stdin", true);
        check("sh|/proc/self/fd/0", true);
        check("python3.12", true);
        check("python3|-|x", true);
        check("python3|-m|pytest", false);
        check("python3|-Wignore", true);
        check("perl|-ne|print", false);
        check("node|--test", false);
        check("deno|run|-", true);
        check("deno|run|x.ts", false);
        check("sudo|-u|me|sh", true);
        check("sudo|-u|me|sh|x.sh", false);
        check("sudo|apt|install|python3", false);
        check("sudo|-i", true);
        check("sudo|env|A=1|sh", true);
        check("env|A=1|make", false);
        check("env|-S|sh", true);
        check("ssh|-p|22|host", true);
        check("ssh|host|uptime", false);
        check("ssh|host|sh", true);
        check("docker|exec|-i|box|sh", true);
        check("docker|ps", false);
        check("make", false);
        check("make|-f-", true);
        check("make|--file=-", true);
        check("awk|-f|/dev/stdin", true);
        check("crontab|-", true);
        check("crontab|-l", false);
        check("psql|db", true);
        check("psql|-f|x.sql", false);
        check("sqlite3|a.db", true);
        check("sqlite3|a.db|.tables", false);
        check("su|-c|make|me", false);
        check("npm|test", false);
        check("docker|exec|box|sudo|nice|sh", true);
        check(&"docker|sudo|".repeat(200), false);
        check("", false);
    }
}
