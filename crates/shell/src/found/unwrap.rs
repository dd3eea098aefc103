//! What a command runs that stands in its own arguments.

use super::files::below_root;
use super::word::Argument;
use crate::effect::has_name as has;
use crate::places::Places;

/// A command as it was found.
pub(super) struct Seen<'a> {
    /// The last part of its name.
    pub(super) base: &'a str,
    pub(super) arguments: &'a [Argument],
    pub(super) places: &'a Places,
    /// Something is piped into it.
    pub(super) is_piped: bool,
    /// The command before it.
    pub(super) last: &'a [Argument],
}

/// What is inside a command.
#[derive(Default)]
pub(super) struct Inside {
    /// Commands it runs.
    pub(super) commands: Vec<Vec<Argument>>,
    /// Texts it runs as scripts.
    pub(super) scripts: Vec<String>,
    /// Variables it sets.
    pub(super) sets: Vec<String>,
    /// It may set any variable.
    pub(super) sets_anything: bool,
    pub(super) enters: Option<Places>,
    pub(super) runs_input: bool,
    pub(super) unseen: Option<&'static str>,
}

/// A program that runs the command in its arguments.
struct Wrapper {
    names: &'static str,
    /// Letters of options that take a value.
    valued: &'static str,
    /// Operands in front of the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper { names: "sudo", valued: "CDghpRrtTuU", operands: 0 },
    Wrapper { names: "doas", valued: "Cu", operands: 0 },
    Wrapper { names: "env", valued: "uCS", operands: 0 },
    Wrapper { names: "timeout", valued: "ks", operands: 1 },
    Wrapper { names: "nice", valued: "n", operands: 0 },
    Wrapper { names: "ionice", valued: "cn", operands: 0 },
    Wrapper { names: "stdbuf", valued: "ioe", operands: 0 },
    Wrapper {
        names: "nohup setsid command builtin exec busybox toybox noglob coproc chronic unbuffer fakeroot catchsegv",
        valued: "a",
        operands: 0,
    },
    Wrapper { names: "time gtime", valued: "fo", operands: 0 },
    Wrapper { names: "flock", valued: "wE", operands: 1 },
    Wrapper { names: "chrt taskset chroot", valued: "p", operands: 1 },
    Wrapper { names: "strace ltrace", valued: "eopsSuEaXPbO", operands: 0 },
    Wrapper { names: "xargs", valued: "aEILnPsd", operands: 0 },
    Wrapper { names: "watch", valued: "n", operands: 0 },
];

/// Programs that run some of their last arguments, with options that are not known here: every word may begin the command.
const RUNNERS: &str = "npx bunx pnpx uvx nix-shell systemd-run firejail bwrap proot unshare nsenter numactl prlimit setarch linux32 \
    linux64 setpriv gosu su-exec tini dumb-init torify torsocks proxychains proxychains4 xvfb-run dbus-run-session entr rlwrap \
    caffeinate cpulimit daemonize start-stop-daemon cross-env dotenv parallel runuser pkexec script ssh gdb valgrind perf \
    hyperfine watchexec nodemon concurrently screen tmux chpst softlimit cgexec sg newgrp setuidgid uvicorn with-env chamber";

/// Programs that do the same only behind one of these words.
const RUNNERS_BEHIND: &[(&str, &str)] = &[
    ("docker podman nerdctl lxc kubectl oc", "exec run debug"),
    ("npm pnpm yarn bun corepack", "exec x dlx"),
    ("uv poetry pipenv pipx hatch pdm rye conda mamba", "run runpip x exec"),
    ("mise rtx asdf direnv bundle aws-vault devbox op rustup vagrant", "exec run x ssh"),
    ("nix", "run shell develop"),
];

/// Runners that hand one of their words to a shell.
const RUNNERS_OF_TEXT: &str = "tmux screen npx bunx npm pnpm vagrant nix-shell concurrently nodemon watchexec hyperfine entr parallel xvfb-run sg nix";

/// Programs that run text.
const SHELLS: &str =
    "sh bash dash zsh ksh mksh ash rbash fish csh tcsh pwsh powershell xonsh nu elvish rc es";

/// Options whose value is run.
const RUN_OPTIONS: &str = "--exec --extcmd --upload-pack --receive-pack --to-command --use-compress-program --rsh-command --info-script \
    --compress-program --pre --rsh --command --run --shell --tree-filter --index-filter --msg-filter --env-filter --commit-filter \
    --parent-filter --tag-name-filter --pager --open-files-in-pager --call --preview --filter --to-stdout-command --new-volume-script --shell-cmd";

/// Programs in whose code calls are looked for.
const INTERPRETERS: &str = "python python2 python3 perl ruby node nodejs deno bun php lua awk gawk mawk nawk";

/// So many places where `find` begins are told apart.
const ROOTS_MAX: usize = 8;

/// How many words may begin the command of a runner.
const CANDIDATES_MAX: usize = 6;

/// Looks inside a command.
pub(super) fn inside(seen: &Seen<'_>) -> Inside {
    let mut inside = Inside::default();
    let base = seen.base;
    if has(SHELLS, base) {
        shell(seen, &mut inside);
    } else if has(INTERPRETERS, base) {
        for argument in seen.arguments {
            inside.scripts.extend(calls(&argument.text));
            let has_backquote = argument.text.contains('`') && has("perl ruby php lua", base);
            if has_backquote
                || (base == "perl" && argument.text.contains("qx"))
                || (base == "ruby" && argument.text.contains("%x"))
            {
                inside.unseen = Some("code in it runs something");
            }
        }
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| has(wrapper.names, base)) {
        wrapped(wrapper, seen, &mut inside);
    }
    runners(seen, &mut inside);
    subcommands(seen, &mut inside);
    known_options(seen, &mut inside);
    match base {
        "eval" => {
            inside.scripts.push(joined(without_dashes(seen.arguments)));
            if seen.arguments.iter().any(|word| word.is_pattern) {
                inside.unseen = Some("it evaluates names of files");
            }
        }
        "trap" => {
            let script = without_dashes(seen.arguments).first();
            inside.scripts.extend(script.map(|script| script.text.clone()));
        }
        "alias" => inside.scripts.extend(seen.arguments.iter().filter_map(after_equals)),
        "source" | "." => sourced(seen, &mut inside),
        "cd" | "pushd" | "popd" => inside.enters = Some(entered(seen)),
        "jobs" => {
            let at =
                seen.arguments.iter().position(|word| word.text.starts_with('-') && word.text.contains('x'));
            inside.commands.extend(at.map(|at| seen.arguments[at + 1..].to_vec()));
        }
        "find" | "fd" | "fdfind" => executed(seen, &mut inside),
        "git" => git(seen.arguments, &mut inside),
        "watch" | "ssh" | "parallel" | "su" | "runuser" | "script" => {
            inside.scripts.push(remote(base, seen.arguments));
            inside.runs_input = matches!(base, "ssh" | "su");
        }
        "at" | "batch" | "crontab" => scheduled(seen, &mut inside),
        "sed" if seen.arguments.iter().any(|word| may_run_script(&word.text)) => {
            inside.unseen = Some("`sed` runs something");
        }
        "vim" | "vi" | "nvim" | "view" | "ex" | "ed" | "emacs" | "gvim" => {
            let shells = seen.arguments.iter().filter_map(|word| word.text.split_once('!'));
            inside.scripts.extend(shells.map(|(_, script)| script.to_owned()));
        }
        "hash" | "enable" => inside.unseen = Some("it changes what a name means"),
        "read" | "mapfile" | "readarray" | "getopts" | "unset" | "declare" | "local" | "typeset"
        | "readonly" | "export" | "let" | "printf" | "wait" => {
            inside.sets.extend(seen.arguments.iter().map(|word| name_of(&word.text)));
            seen.arguments.iter().for_each(|word| assigned(&word.text, &mut inside));
            // What is only known at run time may be any name, and another name may stand for a variable.
            let is_any = |word: &Argument| {
                word.text.starts_with('\0')
                    || word.is_pattern
                    || (word.text.starts_with('-') && word.text.contains('n'))
            };
            inside.sets_anything = base != "printf" && seen.arguments.iter().any(is_any);
        }
        _ => {}
    }
    inside.sets_anything |= matches!(base, "eval" | "source" | ".");
    run_options(seen.arguments, &mut inside);
    inside
}

fn joined(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| argument.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn name_of(text: &str) -> String {
    text.split(['=', '[']).next().unwrap_or_default().to_owned()
}

fn after_equals(argument: &Argument) -> Option<String> {
    argument.text.split_once('=').map(|(_, value)| value.to_owned())
}

/// A shell: the script in its arguments, or what comes in.
fn shell(seen: &Seen<'_>, inside: &mut Inside) {
    let mut words = seen.arguments.iter();
    let mut is_script = false;
    let mut reads_input = true;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text.starts_with("--") && text.len() > 2 {
            // These take the next word, which could be taken for a script otherwise.
            if matches!(text, "--rcfile" | "--init-file") {
                words.next();
            }
            is_script |= matches!(text, "--command" | "--commands");
        } else if text.starts_with(['-', '+']) && text.len() > 1 && text != "--" {
            is_script |= text.starts_with('-') && text.contains(['c', 'C']);
            if text.to_ascii_lowercase().starts_with("-enc") || text == "-ec" {
                inside.unseen = Some("a shell runs a script that is encoded");
            }
            if text.ends_with(['o', 'O']) {
                words.next();
            }
        } else if text != "-" && text != "--" {
            reads_input = false;
            if is_script {
                inside.scripts.push(text.to_owned());
            }
            if text.contains('\0') || word.is_pattern {
                inside.unseen = Some("a shell runs something that is only known at run time");
            }
            if matches!(text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
                reads_input = true;
            }
            break;
        }
    }
    if reads_input || seen.arguments.iter().any(|word| word.text == "-s") {
        input(seen, inside);
    }
}

/// What comes in is run.
fn input(seen: &Seen<'_>, inside: &mut Inside) {
    inside.runs_input = true;
    if seen.is_piped {
        inside.unseen = Some("a shell runs what is piped into it");
        if let Some((name, printed)) = seen.last.split_first()
            && matches!(name.text.as_str(), "echo" | "printf")
        {
            inside.scripts.push(joined(printed));
        }
    }
}

/// `source` of a file is like running the file; of anything else it is not known what runs.
fn sourced(seen: &Seen<'_>, inside: &mut Inside) {
    inside.enters = Some(Places::unknown());
    let file = seen.arguments.first().map_or("\0", |file| file.text.as_str());
    if file.contains('\0') || file.starts_with("/dev/") || file.starts_with("/proc/") {
        inside.unseen = Some("it sources something that is only known at run time");
    }
}

fn entered(seen: &Seen<'_>) -> Places {
    let target = seen.arguments.iter().find(|word| !word.text.starts_with('-') || word.text == "-");
    match target {
        _ if seen.base == "popd" => Places::unknown(),
        None if seen.base == "pushd" => Places::unknown(),
        None => seen.places.enter(None),
        Some(target) if target.text == "-" || target.text.starts_with('+') || target.is_pattern => {
            Places::unknown()
        }
        Some(target) if target.text.starts_with('~') && !target.is_home => {
            seen.places.enter(Some(&format!("./{}", target.text)))
        }
        Some(target) => seen.places.enter(Some(&target.text)),
    }
}

/// The command behind the options and operands of a wrapper.
fn wrapped(wrapper: &Wrapper, seen: &Seen<'_>, inside: &mut Inside) {
    let arguments = seen.arguments;
    let mut at = 0;
    let mut operands = wrapper.operands;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if text.starts_with('-') && (text.len() > 1 || seen.base == "env") {
            at += 1;
            at += usize::from(takes_next(wrapper, text));
            if seen.base == "env" {
                split_string(text, &arguments[at.saturating_sub(1).min(arguments.len())..], inside);
            }
        } else if is_assignment(text) && has("sudo env doas", seen.base) {
            assigned(text, inside);
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
        } else {
            break;
        }
    }
    at +=
        if arguments.get(at.saturating_sub(1)).is_some_and(|word| word.text == "--") { operands } else { 0 };
    let Some(rest) = arguments.get(at..).filter(|rest| !rest.is_empty()) else { return };
    let mut command = rest.to_vec();
    if seen.base == "xargs" {
        if let Some(mark) = replaced(&arguments[..at]) {
            for word in &mut command {
                word.text = word.text.replace(&mark, "\0");
            }
        }
        command.push(Argument { text: "\0".to_owned(), ..Argument::default() });
    }
    inside.commands.push(command);
    // With an option of a kind that is not known, the command may begin one word later.
    let odd = arguments[..at]
        .iter()
        .any(|word| word.text.starts_with("--") && word.text.len() > 2 && !word.text.contains('='));
    if odd && rest.len() > 1 {
        inside.commands.push(rest[1..].to_vec());
    }
}

/// A program that is run because a variable names it.
fn assigned(text: &str, inside: &mut Inside) {
    let value = text.split_once('=').filter(|(name, _)| names_program(name));
    inside.scripts.extend(value.map(|(_, value)| value.trim_start_matches(['|', '!']).to_owned()));
}

/// What `xargs` replaces by what comes in.
fn replaced(options: &[Argument]) -> Option<String> {
    for (at, option) in options.iter().enumerate() {
        let text = option.text.as_str();
        if let Some(mark) = text.strip_prefix("--replace") {
            return Some(mark.strip_prefix('=').filter(|mark| !mark.is_empty()).unwrap_or("{}").to_owned());
        }
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
            continue;
        };
        if let Some((_, mark)) = letters.split_once('I') {
            let next = options.get(at + 1).map(|word| word.text.clone());
            return if mark.is_empty() {
                next.filter(|mark| !mark.is_empty())
            } else {
                Some(mark.to_owned())
            };
        }
        if let Some((_, mark)) = letters.split_once('i') {
            return Some(if mark.is_empty() { "{}".to_owned() } else { mark.to_owned() });
        }
    }
    None
}

fn takes_next(wrapper: &Wrapper, option: &str) -> bool {
    if option.starts_with("--") || option == "-" {
        return false;
    }
    let position = option[1..].find(|c| wrapper.valued.contains(c));
    position.is_some_and(|position| option[1..].len() == position + 1)
}

/// Whether programs run what a variable holds.
pub(super) fn names_program(variable: &str) -> bool {
    const ENDS: [&str; 14] = [
        "PAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "_COMMAND",
        "ASKPASS",
        "LESSOPEN",
        "LESSCLOSE",
        "EXTERNAL_DIFF",
        "_WRAPPER",
        "BASH_ENV",
        "GIT_SSH",
        "_RUNNER",
        "_EXEC",
    ];
    ENDS.iter().any(|end| variable.ends_with(end))
}

fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `env -S`: its value is split into words, which the words behind it follow.
fn split_string(option: &str, rest: &[Argument], inside: &mut Inside) {
    if let Some(value) = option.strip_prefix("--s") {
        let value = value.split_once('=').map(|(_, value)| value);
        inside
            .scripts
            .extend(value.map(|value| format!("{value} {}", joined(rest.get(1..).unwrap_or_default()))));
        inside.scripts.push(joined(rest));
        return;
    }
    let letters = option.trim_start_matches('-');
    let Some((flags, value)) = letters.split_once('S') else { return };
    if flags.bytes().all(|byte| b"iv0".contains(&byte)) {
        let skip = usize::from(!value.is_empty());
        inside.scripts.push(format!("{value} {}", joined(rest.get(skip..).unwrap_or_default())));
    }
}

/// The words of a builtin without the dashes that end its options.
fn without_dashes(arguments: &[Argument]) -> &[Argument] {
    match arguments {
        [dashes, rest @ ..] if dashes.text == "--" => rest,
        _ => arguments,
    }
}

/// Commands behind a runner.
fn runners(seen: &Seen<'_>, inside: &mut Inside) {
    let base = seen.base;
    let behind = RUNNERS_BEHIND.iter().find(|(names, _)| has(names, base));
    let arguments = match behind {
        Some((_, words)) => {
            let at = seen.arguments.iter().take(64).position(|word| has(words, &word.text));
            at.map_or(&[][..], |at| &seen.arguments[at + 1..])
        }
        None if has(RUNNERS, base) => seen.arguments,
        None => &[],
    };
    inside.commands.extend(candidates(arguments).map(|at| arguments[at..].to_vec()));
    if has(RUNNERS_OF_TEXT, base) {
        let is_text = |word: &&Argument| word.text.contains([' ', '\t', '\n', ';']);
        let is_npm = has("npm pnpm", base);
        let texts = if is_npm { arguments } else { seen.arguments };
        inside
            .scripts
            .extend(texts.iter().filter(is_text).take(CANDIDATES_MAX).map(|word| word.text.clone()));
    }
}

/// Options in front of the subcommand that take the next word.
const BEFORE_SUBCOMMAND: &[(&str, &str)] = &[
    (
        "git",
        "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --exec-path --attr-source --list-cmds",
    ),
    (
        "docker podman nerdctl",
        "-H --host --config --context -c -l --log-level --tlscacert --tlscert --tlskey --connection --root",
    ),
    (
        "kubectl oc",
        "-n --namespace --context --kubeconfig --cluster --user -s --server --as --token --request-timeout",
    ),
    ("helm", "-n --namespace --kube-context --kubeconfig"),
    ("npm pnpm yarn", "--prefix -w --workspace -C --dir --filter --cwd --loglevel"),
    ("cargo", "--config -Z -C --color --manifest-path"),
    ("gh", "-R --repo"),
    ("terraform", ""),
    ("aws gcloud az", "--profile --region --project --output --format"),
    ("systemctl", "-H --host -M --machine"),
];

/// The same command without the options in front of its subcommand, which rules about the subcommand do not name.
fn subcommands(seen: &Seen<'_>, inside: &mut Inside) {
    let row = BEFORE_SUBCOMMAND.iter().find(|(names, _)| has(names, seen.base));
    let Some((_, valued)) = row else { return };
    let mut at = 0;
    while let Some(word) =
        seen.arguments.get(at).filter(|word| word.text.starts_with(['-', '+']) && word.text.len() > 1)
    {
        at += if has(valued, &word.text) { 2 } else { 1 };
    }
    let Some(rest) = seen.arguments.get(at..).filter(|rest| at > 0 && !rest.is_empty()) else { return };
    let name = Argument { text: seen.base.to_owned(), ..Argument::default() };
    inside.commands.push([&[name], rest].concat());
}

/// Options of single programs whose value is run.
fn known_options(seen: &Seen<'_>, inside: &mut Inside) {
    let letters = match seen.base {
        "flock" => "c",
        "compgen" | "complete" | "mapfile" | "readarray" => "C",
        "tar" | "bsdtar" | "gtar" => "IF",
        "man" => "PH",
        "npx" | "npm" | "vagrant" => "c",
        "git" => "O",
        "rsync" => "e",
        "scp" | "sftp" => "S",
        "zip" => "TT",
        _ => return,
    };
    for (at, word) in seen.arguments.iter().enumerate() {
        let Some(option) = word.text.strip_prefix('-').filter(|option| !option.starts_with('-')) else {
            continue;
        };
        let Some((_, value)) = option.split_once(|c| letters.contains(c)) else { continue };
        let next = seen.arguments.get(at + 1).map(|word| word.text.as_str());
        let next = next.map(str::to_owned);
        // The shell itself adds words to these.
        if has("compgen complete mapfile readarray", seen.base) {
            let script = if value.is_empty() { next.unwrap_or_default() } else { value.to_owned() };
            inside.scripts.push(format!("{script} \0"));
            continue;
        }
        // In git this letter has no value of its own but for searches.
        if value.is_empty() && seen.base != "git" {
            inside.scripts.extend(next);
        } else {
            inside.scripts.push(value.to_owned());
        }
    }
}

/// Programs that run what comes in, or what is in a file, at another time.
fn scheduled(seen: &Seen<'_>, inside: &mut Inside) {
    input(seen, inside);
    let has_option = |names: &str| seen.arguments.iter().any(|word| has(names, &word.text));
    let is_later = match seen.base {
        "crontab" => !has_option("-l -r"),
        _ => seen.arguments.iter().any(|word| word.text.starts_with("-f")),
    };
    if is_later {
        inside.unseen = Some("it runs something at another time");
    }
}

/// Whether a script of `sed` may hold the command `e` or that flag of a replacement.
fn may_run_script(word: &str) -> bool {
    let mut before = '\n';
    let mut commands = word.char_indices();
    // The letter at the start of a command, behind a line number, a range or an expression.
    let is_command = commands.any(|(at, c)| {
        let next = word[at + c.len_utf8()..].chars().next();
        let ends = next.is_none_or(|next| matches!(next, ' ' | '\t' | '\n' | ';' | '}'));
        let starts =
            matches!(before, '\n' | ';' | '{' | '}' | '/' | '$' | ' ' | '!' | ',') || before.is_ascii_digit();
        let runs = c == 'e' && starts && (ends || before.is_ascii_digit());
        before = c;
        runs
    });
    let flags = word.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_replacement =
        word.contains('s') && word.contains(['/', '|', ',', '#', '!', ':', '@', '~', '%', '+']);
    let has_flag = flags.len() <= 4
        && flags.contains('e')
        && flags.bytes().all(|byte| b"gpiIeMmw0123456789".contains(&byte));
    is_command || (is_replacement && has_flag)
}

/// Where the command of a runner may begin.
fn candidates(arguments: &[Argument]) -> impl Iterator<Item = usize> + '_ {
    let may_begin = |(_, word): &(usize, &Argument)| {
        let text = word.text.as_str();
        !text.starts_with('-') && !text.is_empty() && !is_assignment(text) && text != "\0"
    };
    arguments.iter().enumerate().filter(may_begin).map(|(at, _)| at).take(CANDIDATES_MAX)
}

/// Where `find` begins.
pub(super) fn roots(arguments: &[Argument]) -> Vec<Argument> {
    let is_option = |word: &&Argument| has("-L -P -H", &word.text) || word.text.starts_with("-O");
    let is_root = |word: &&Argument| !word.text.starts_with(['-', '(', '!']);
    let mut roots: Vec<Argument> =
        arguments.iter().skip_while(is_option).take_while(is_root).take(ROOTS_MAX).cloned().collect();
    if roots.is_empty() {
        roots.push(Argument { text: ".".to_owned(), ..Argument::default() });
    } else if roots.len() == ROOTS_MAX {
        roots.push(Argument { text: "\0".to_owned(), ..Argument::default() });
    }
    roots
}

/// `find -exec`: what it found stands for `{}`.
fn executed(seen: &Seen<'_>, inside: &mut Inside) {
    let roots = roots(seen.arguments);
    let mut words = seen.arguments.iter();
    while let Some(word) = words.next() {
        if !matches!(
            word.text.as_str(),
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        ) {
            continue;
        }
        let command: Vec<&Argument> =
            words.by_ref().take_while(|word| !matches!(word.text.as_str(), ";" | "+")).collect();
        // Without the mark, the names come last in some of these programs.
        let has_mark = command.iter().any(|word| word.text.contains("{}"));
        for root in roots.iter().take(if has_mark { roots.len() } else { 1 }) {
            let found = below_root(&root.text);
            let put = |word: &&Argument| {
                let is_name = word.text.starts_with("{}");
                let text = word.text.replace("{}", &found);
                let is_home = word.is_home || (is_name && root.is_home);
                let is_other_home = word.is_other_home || (is_name && root.is_other_home);
                Argument { text, is_home, is_other_home, is_pattern: word.is_pattern }
            };
            inside.commands.push(command.iter().map(put).collect());
        }
    }
}

fn git(arguments: &[Argument], inside: &mut Inside) {
    const RUN_KEYS: [&str; 9] = [
        "pager",
        "editor",
        "sshcommand",
        "fsmonitor",
        "external",
        "textconv",
        "command",
        "program",
        "helper",
    ];
    for (at, word) in arguments.iter().enumerate() {
        if let Some((key, value)) = word.text.split_once('=') {
            let key = key.to_ascii_lowercase();
            let runs = RUN_KEYS.iter().any(|name| key.ends_with(name))
                || key.contains("alias.")
                || key.contains("pager.");
            if runs {
                inside.scripts.push(value.trim_start_matches('!').to_owned());
            }
        }
        let rest = &arguments[at + 1..];
        match word.text.as_str() {
            "foreach" => inside.scripts.push(joined(rest)),
            "run" => inside.commands.push(rest.to_vec()),
            "-x" => inside.scripts.extend(rest.first().map(|value| value.text.clone())),
            _ => {}
        }
    }
}

/// What a program makes of all its words, or of the value of `-c`.
fn remote(base: &str, arguments: &[Argument]) -> String {
    if matches!(base, "su" | "runuser" | "script") {
        let is_script = |word: &Argument| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c')
        };
        let at = arguments.iter().position(is_script);
        return at.and_then(|at| arguments.get(at + 1)).map(|word| word.text.clone()).unwrap_or_default();
    }
    let is_option = |word: &&Argument| word.text.starts_with('-');
    let options = arguments.iter().take_while(is_option).count();
    let skip = if base == "ssh" { options + 1 } else { options };
    joined(arguments.get(skip..).unwrap_or_default())
}

/// `--exec=…`, `--exec …` and their like, for any program; and settings that name a program.
fn run_options(arguments: &[Argument], inside: &mut Inside) {
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text.as_str();
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if name.starts_with("--") && has(RUN_OPTIONS, name) {
            let next = arguments.get(at + 1).map(|word| word.text.as_str());
            inside.scripts.extend(value.or(next).map(str::to_owned));
        }
        let setting = ["ProxyCommand=", "LocalCommand=", "exec="]
            .iter()
            .find_map(|name| text.split_once(name).map(|(_, value)| value));
        inside.scripts.extend(setting.map(str::to_owned));
    }
}

/// The texts that code hands to a shell: `system("…")` and its like.
fn calls(code: &str) -> Vec<String> {
    const CALLS: [&str; 12] = [
        "system",
        "popen",
        "exec",
        "execSync",
        "spawn",
        "spawnSync",
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "shell_exec",
    ];
    let mut found = Vec::new();
    for (at, _) in code.match_indices('(') {
        let before = code[..at].trim_end();
        let tail = &before[before.len()
            - before
                .bytes()
                .rev()
                .take(16)
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                .count()..];
        if !CALLS.contains(&tail) {
            continue;
        }
        let rest = code[at + 1..].trim_start_matches(['[', ' ', '\n']);
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { continue };
        let length = rest[1..].find(quote).unwrap_or(rest.len() - 1);
        found.push(rest[1..=length].to_owned());
    }
    found
}
