//! Programs that run a command of their own arguments, which may begin at one of several words.

use std::sync::LazyLock;

use super::super::word::Argument;
use super::{Inside, Seen, is_assignment};
use crate::names::{Sieve, behind_letter, firsts, has_name as has};

/// Programs that run some of their last arguments, with options that are not known here: every word may begin the command.
const RUNNERS: &str = "npx bunx pnpx uvx nix-shell systemd-run firejail bwrap proot unshare nsenter numactl prlimit setarch linux32 \
    linux64 setpriv gosu su-exec tini dumb-init torify torsocks tsocks proxychains proxychains4 xvfb-run dbus-run-session entr rlwrap \
    caffeinate cpulimit daemonize start-stop-daemon cross-env dotenv parallel runuser pkexec script ssh gdb valgrind perf \
    hyperfine watchexec nodemon concurrently screen tmux chpst softlimit cgexec sg newgrp setuidgid uvicorn with-env chamber \
    sshpass ssh-agent xterm uxterm urxvt rxvt konsole gnome-terminal alacritty kitty foot wezterm terminator faketime eatmydata runcon \
    schroot dchroot pyenv rbenv nodenv fnm i386 x86_64 uname26 unbuffer chronic ifne pee mispipe errno \
    aa-exec minijail0 nsjail sandbox-exec heaptrack rr ltrace uftrace memusage sem run-one doppler envdir envchain \
    gnome-session-inhibit systemd-inhibit systemd-cat systemd-nspawn machinectl tsp nq \
    qemu-x86_64 qemu-aarch64 qemu-arm box64 wine mpirun mpiexec srun sbatch torchrun coverage kcov pdsh pssh \
    parallel-ssh clush";

/// Programs that do the same only behind one of these words.
const RUNNERS_BEHIND: &[(&str, &str)] = &[
    ("docker podman nerdctl lxc kubectl oc", "exec run debug"),
    ("npm pnpm yarn bun corepack", "exec x dlx"),
    ("uv poetry pipenv pipx hatch pdm rye conda mamba micromamba pixi", "run runpip x exec"),
    ("mise rtx asdf direnv bundle aws-vault devbox op rustup vagrant volta nvm goenv jenv", "exec run x ssh"),
    ("toolbox distrobox flatpak-spawn flatpak", "run enter --host"),
    ("nix", "run shell develop"),
    ("ip", "exec"),
    ("snap", "run"),
    ("stack cabal opam", "exec"),
    ("mix", "cmd"),
    ("salt salt-call salt-ssh", "cmd.run cmd.run_all cmd.run_stdout cmd.shell"),
];

/// Runners that hand one of their words to a shell.
const RUNNERS_OF_TEXT: &str = "tmux screen npx bunx npm pnpm vagrant nix-shell concurrently nodemon watchexec hyperfine entr parallel \
    xvfb-run sg nix xterm uxterm urxvt rxvt konsole gnome-terminal capsh hatch pixi sem \
    pee mispipe snap flatpak salt salt-call salt-ssh pdsh pssh parallel-ssh clush";

static MAY_RUN: LazyLock<Sieve> =
    LazyLock::new(|| Sieve::of(firsts(RUNNERS_BEHIND).chain([RUNNERS, RUNNERS_OF_TEXT, "sudo doas"])));

/// How many words may begin the command of a runner.
const CANDIDATES_MAX: usize = 6;

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

static HAS_SUBCOMMAND: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(firsts(BEFORE_SUBCOMMAND)));

/// Commands behind a runner.
pub(super) fn runners(seen: &Seen<'_>, inside: &mut Inside) {
    let base = seen.base;
    if !MAY_RUN.may_have(base) && !is_linker(base) {
        return;
    }
    let behind = RUNNERS_BEHIND.iter().find(|(names, _)| has(names, base));
    let arguments = match behind {
        Some((_, words)) => {
            let at = seen.arguments.iter().take(64).position(|word| has(words, &word.text));
            at.map_or(&[][..], |at| &seen.arguments[at + 1..])
        }
        None if has(RUNNERS, base) || is_linker(base) => seen.arguments,
        None => &[],
    };
    inside.commands.extend(candidates(arguments).map(|at| arguments[at..].to_vec()));
    inside.guesses = inside.commands.len() > 1;
    if has(RUNNERS_OF_TEXT, base) || opens_shell(seen) {
        let is_text = |word: &&Argument| word.text.contains([' ', '\t', '\n', ';']);
        let words = if has("npm pnpm", base) { arguments } else { seen.arguments };
        let texts = words.iter().filter(is_text).take(CANDIDATES_MAX);
        inside.scripts.extend(texts.map(|word| word.text.clone()));
    }
}

/// `sudo -s`: the rest is for a shell.
fn opens_shell(seen: &Seen<'_>) -> bool {
    let opens =
        |word: &Argument| has("--shell --login", &word.text) || behind_letter(&word.text, "si").is_some();
    let options = seen.arguments.iter().take_while(|word| word.text.starts_with('-'));
    has("sudo doas", seen.base) && options.into_iter().any(opens)
}

/// The program that loads others can be asked to run one.
fn is_linker(base: &str) -> bool {
    base.starts_with("ld-linux") || base.starts_with("ld-musl") || base == "ld.so"
}

/// `cmake -E`: the commands it has of its own are much like those of the shell.
pub(super) fn cmake(arguments: &[Argument], inside: &mut Inside) {
    const LIKE: &[(&str, &str)] = &[
        ("remove rm", "rm"),
        ("remove_directory", "rm -r"),
        ("copy copy_if_different copy_if_newer copy_directory copy_directory_if_different", "cp -r"),
        ("rename", "mv"),
        ("touch touch_nocreate", "touch"),
        ("make_directory", "mkdir"),
        ("cat", "cat"),
        ("tar", "tar"),
        ("create_symlink create_hardlink", "ln"),
    ];
    let Some(at) = arguments.iter().position(|word| word.text == "-E") else { return };
    let Some((name, rest)) = arguments.get(at + 1..).and_then(<[Argument]>::split_first) else { return };
    if has("env time chdir", &name.text) {
        inside.commands.extend(candidates(rest).map(|at| rest[at..].to_vec()));
    }
    let like = LIKE.iter().find(|(names, _)| has(names, &name.text));
    let command = |(_, like): &(&str, &str)| -> Vec<Argument> {
        like.split(' ').map(Argument::new).chain(rest.iter().cloned()).collect()
    };
    inside.commands.extend(like.map(command));
}

/// Where the command of a runner may begin.
pub(super) fn candidates(arguments: &[Argument]) -> impl Iterator<Item = usize> + '_ {
    let may_begin = |(_, word): &(usize, &Argument)| {
        let text = word.text.as_str();
        !text.starts_with('-') && !text.is_empty() && !is_assignment(text) && text != "\0"
    };
    arguments.iter().enumerate().filter(may_begin).map(|(at, _)| at).take(CANDIDATES_MAX)
}

/// The same command without the options in front of its subcommand, which rules about the subcommand do not name.
pub(super) fn subcommands(seen: &Seen<'_>, inside: &mut Inside) {
    if !HAS_SUBCOMMAND.may_have(seen.base) {
        return;
    }
    let row = BEFORE_SUBCOMMAND.iter().find(|(names, _)| has(names, seen.base));
    let Some((_, valued)) = row else { return };
    let mut at = 0;
    while let Some(word) =
        seen.arguments.get(at).filter(|word| word.text.starts_with(['-', '+']) && word.text.len() > 1)
    {
        at += if has(valued, &word.text) { 2 } else { 1 };
    }
    let Some(rest) = seen.arguments.get(at..).filter(|rest| at > 0 && !rest.is_empty()) else { return };
    let name = Argument::new(seen.base);
    inside.commands.push([&[name], rest].concat());
}
