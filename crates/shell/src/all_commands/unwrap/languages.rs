//! Languages whose code stands in command lines, and the words in them that run something.

use std::sync::LazyLock;

use crate::names::{Sieve, has_name as has};

pub(in crate::all_commands) struct Language {
    pub(super) names: &'static str,
    /// Letters of options whose value is code.
    pub(super) letters: &'static str,
    /// Other words behind which code follows.
    pub(super) before: &'static str,
    /// Words that run something.
    pub(super) calls: &'static str,
    /// Words that run something if one of the modules is there, or another text without which they do not.
    pub(super) usual_calls: &'static str,
    pub(super) modules: &'static str,
    /// Words behind which anything may be run.
    pub(super) opaque: &'static str,
    /// Texts that run something: backquotes and their like.
    pub(super) backquotes: &'static [&'static str],
    /// What begins a value in a text: `"$x"`.
    pub(super) values: &'static [char],
    /// For programs that take commands line by line: what stands in front of a command for the shell.
    pub(super) marks: &'static [&'static str],
    /// Any word may name a file.
    pub(super) edits: bool,
    /// For code that is mostly commands: what a shell gets to run of it.
    pub(super) translate: Option<fn(&str) -> Vec<String>>,
}

pub(super) const NONE: Language = Language {
    names: "",
    letters: "",
    before: "",
    calls: "",
    usual_calls: "",
    modules: "",
    opaque: "",
    backquotes: &[],
    values: &[],
    marks: &[],
    edits: false,
    translate: None,
};

const RUBY: Language = Language {
    names: "ruby jruby irb",
    letters: "e",
    calls: "system exec spawn popen popen2 popen2e popen3 capture2 capture2e capture3 pipeline syscall",
    usual_calls: "open",
    modules: "|",
    opaque: "eval instance_eval class_eval",
    backquotes: &["`", "%x"],
    values: &['#'],
    ..NONE
};

/// Commands line by line, those for the shell behind a mark.
const EDITS: Language = Language { names: "ed red ex", marks: &["!"], edits: true, ..NONE };

/// The same for editors that take them only with an option.
pub(super) static EDITING: Language = EDITS;

/// Words behind which anything may be run, in languages of which not much more is known.
const OPAQUE: &str = "system system2 exec shell run cmd spawn execute popen command process open pipe os sh qx qqx \
    execv execve execvp execvpe fork_exec create_process create_process_env open_process open_process_in open_process_out \
    open_process_full open_process_args_in subprocess callCommand callProcess readProcess readProcessWithExitCode readCreateProcess \
    rawSystem runCommand runProcess runInteractiveCommand runInteractiveProcess spawnCommand spawnProcess createProcess";

const PYTHON: Language = Language {
    names: "python python2 python3 pypy pypy3",
    letters: "c",
    calls: "system popen Popen check_output check_call getoutput getstatusoutput execv execve execvp execvpe execl execlp \
            execle execlpe spawnl spawnle spawnlp spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp startfile \
            create_subprocess_shell create_subprocess_exec fork_exec",
    usual_calls: "run call spawn",
    modules: "subprocess pty",
    opaque: "exec eval ctypes",
    ..NONE
};

const LANGUAGES: &[Language] = &[
    PYTHON,
    Language { names: "ipython ipython3", marks: &["!"], ..PYTHON },
    Language {
        names: "node nodejs deno bun tsx ts-node",
        letters: "ep",
        before: "--eval --print eval",
        calls: "execSync execFileSync spawnSync execFile",
        usual_calls: "exec spawn fork run Command",
        modules: "child_process Bun Deno execa shelljs",
        opaque: "eval",
        backquotes: &["$`"],
        ..NONE
    },
    Language {
        names: "perl perl5",
        letters: "eE",
        calls: "system exec readpipe syscall",
        usual_calls: "open",
        modules: "|",
        opaque: "qx eval",
        backquotes: &["`"],
        values: &['$', '@'],
        ..NONE
    },
    RUBY,
    Language {
        names: "rake",
        letters: "eEp",
        before: "--execute --execute-print --execute-continue",
        calls: "sh ruby system exec spawn popen popen2 popen2e popen3 capture2 capture2e capture3 pipeline syscall",
        ..RUBY
    },
    Language {
        names: "php",
        letters: "rRBE",
        before: "--run",
        calls: "system exec shell_exec passthru popen proc_open pcntl_exec",
        opaque: "eval assert",
        backquotes: &["`"],
        values: &['$'],
        ..NONE
    },
    Language {
        names: "lua luajit lua5.1 lua5.3 lua5.4",
        letters: "e",
        calls: "execute popen",
        opaque: "loadstring",
        ..NONE
    },
    Language {
        names: "R Rscript julia elixir iex erl groovy guile octave jshell scala tclsh expect osascript emacs emacsclient \
                swipl ghc runghc runhaskell sbcl racket ocaml raku clojure clj bb crystal kotlin swift janet clisp ecl csi gsi",
        letters: "ecgr",
        before: "--eval --expr eval",
        opaque: OPAQUE,
        backquotes: &["`", "qx{"],
        ..NONE
    },
    Language {
        names: "mix",
        letters: "e",
        before: "--eval eval",
        opaque: OPAQUE,
        backquotes: &["`"],
        ..NONE
    },
    Language {
        names: "sqlite3",
        marks: &[".shell ", ".system "],
        backquotes: &[".read", ".load", ".import |"],
        ..NONE
    },
    Language {
        names: "psql mysql mariadb",
        marks: &["\\!", "system "],
        backquotes: &["\\i", "\\o |", "\\g |", "\\copy ", "source "],
        ..NONE
    },
    EDITS,
    Language { names: "sftp ftp lftp ncftp smbclient", marks: &["!"], ..NONE },
    Language { names: "gnuplot", marks: &["!", "shell "], opaque: OPAQUE, backquotes: &["`"], ..NONE },
    Language { names: "dc", marks: &["!"], ..NONE },
    Language { names: "m4", marks: &["syscmd("], backquotes: &["builtin(", "indir("], ..NONE },
    Language {
        names: "gdb lldb",
        marks: &["shell ", "platform shell ", "!"],
        backquotes: &["python", "source ", "pipe ", "guile", "command script", "command source"],
        ..NONE
    },
];

pub(super) const AWKS: &str = "awk gawk mawk nawk";

static KNOWN: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(LANGUAGES.iter().map(|language| language.names)));

pub(super) fn language(program: &str) -> Option<&'static Language> {
    if !KNOWN.may_have(program) {
        return None;
    }
    LANGUAGES.iter().find(|language| has(language.names, program))
}
