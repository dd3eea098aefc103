//! Real commands below a real supervisor, which is this very test program started again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the engine that is killed says what it started")]

mod harness;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{block_on, is_alive, job, supervised, trial, wait_until_dead};
use libtest_mimic::Arguments;
use tokio::io::AsyncReadExt;
use windlass_sandbox::{CommandStatus, Exit, LaunchError, Launcher, ShellCommand, ShellProcess};

fn main() {
    windlass_sandbox::run_if_supervisor();
    if std::env::args().nth(1).as_deref() == Some("engine") {
        return engine_that_will_be_killed();
    }
    let tests = vec![
        trial("exit_codes_and_signals_are_told", exit_codes_and_signals_are_told),
        trial("output_is_merged_in_order", output_is_merged_in_order),
        trial("a_script_cannot_tell_that_it_is_watched", a_script_cannot_tell_that_it_is_watched),
        trial("the_last_directory_is_reported", the_last_directory_is_reported),
        trial("a_file_is_sourced_first", a_file_is_sourced_first),
        trial("there_is_no_terminal_and_no_input", there_is_no_terminal_and_no_input),
        trial("only_the_standard_descriptors_are_inherited", only_the_standard_descriptors_are_inherited),
        trial("what_a_command_leaves_behind_lives_until_the_tree_is_dropped", leftovers_live_and_die),
        trial("a_deaf_process_is_killed_after_two_seconds", a_deaf_process_is_killed),
        trial("a_process_that_keeps_moving_is_killed", a_process_that_keeps_moving_is_killed),
        trial("nothing_survives_the_kill_of_the_engine", nothing_survives_the_kill_of_the_engine),
        trial("the_shell_dies_with_its_supervisor", the_shell_dies_with_its_supervisor),
        trial("a_dead_tree_leaves_no_child_to_collect", a_dead_tree_leaves_no_child_to_collect),
        trial("what_cannot_start_is_explained", what_cannot_start_is_explained),
        trial("starting_is_quick", starting_is_quick),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// Runs to the end of the output and tells how the command ended.
async fn finish(mut process: ShellProcess) -> (String, Exit) {
    let mut output = Vec::new();
    process.output.read_to_end(&mut output).await.unwrap();
    let exit = process.exit.recv().await;
    (String::from_utf8(output).unwrap(), exit)
}

/// The outcome is the same with and without a supervisor.
fn check(job: &ShellCommand, output: &str, status: CommandStatus) -> Option<PathBuf> {
    let run = |launcher: Launcher| block_on(async { finish(launcher.start(job).unwrap()).await });
    let (direct, supervised) = (run(Launcher::direct()), run(supervised()));
    assert_eq!(direct, supervised, "{}", job.script);
    assert_eq!((supervised.0.as_str(), supervised.1.status), (output, status), "{}", job.script);
    supervised.1.cwd
}

fn exit_codes_and_signals_are_told() {
    check(&job("true"), "", CommandStatus::Code(0));
    check(&job("exit 7"), "", CommandStatus::Code(7));
    check(&job("kill -KILL $$"), "", CommandStatus::Signal(9));
    check(&job("-x 2>/dev/null"), "", CommandStatus::Code(127));
    check(&job("if"), "bash: -c: line 2: syntax error: unexpected end of file\n", CommandStatus::Code(2));
}

fn output_is_merged_in_order() {
    check(
        &job("for i in 1 2 3; do echo out $i; echo err $i >&2; done"),
        "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n",
        CommandStatus::Code(0),
    );
}

fn a_script_cannot_tell_that_it_is_watched() {
    let scripts = [
        "echo $0 $# $? $LINENO \"${BASH_ENV-unset}\"",
        "\n\nnot-a-command",
        "cat <<X\nhere $?\nX\nexit 3",
        "false",
        "f() { return 4; }\nf",
        "set -x\ntrue",
        "set -e\nfalse\necho no",
        "set -u\necho $nothing",
        "(exit 5)",
        "echo a | cat; exit ${PIPESTATUS[0]}",
        "bash -c 'echo ${BASH_ENV-unset}'",
        "trap 'echo mine' EXIT",
        "kill -TERM $$",
        "type ls | head -c 9",
        "alias",
    ];
    for script in scripts {
        let run = |should_track_cwd| {
            block_on(async {
                finish(supervised().start(&ShellCommand { should_track_cwd, ..job(script) }).unwrap()).await
            })
        };
        let (plain, watched) = (run(false), run(true));
        assert_eq!((plain.0, plain.1.status), (watched.0, watched.1.status), "{script}");
    }
}

fn the_last_directory_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a b/new\nline")).unwrap();
    std::os::unix::fs::symlink("a b", root.join("link")).unwrap();
    let end = |script: &str, should_track_cwd| {
        check(
            &ShellCommand { should_track_cwd, cwd: root.clone(), ..job(script) },
            "",
            CommandStatus::Code(0),
        )
    };
    assert_eq!(end("true", true), Some(root.clone()));
    assert_eq!(end("cd 'a b'", true), Some(root.join("a b")));
    assert_eq!(end("cd link; exit", true), Some(root.join("a b")));
    assert_eq!(end("cd 'a b/new\nline'", true), Some(root.join("a b/new\nline")));
    assert_eq!(end("(cd 'a b')", true), Some(root.clone()));
    assert_eq!(end("pwd() { :; }; cd 'a b'", true), Some(root.join("a b")));
    assert_eq!(end("cd 'a b'", false), None);
    assert_eq!(end("cd 'a b'; trap : EXIT", true), None);
    assert_eq!(end("cd 'a b'; exec true", true), None);
}

fn a_file_is_sourced_first() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("it's");
    fs::write(&source, "export FROM_FILE=yes\n").unwrap();
    for should_track_cwd in [false, true] {
        let job =
            ShellCommand { source: Some(source.clone()), should_track_cwd, ..job("echo $FROM_FILE $LINENO") };
        check(&job, "yes 1\n", CommandStatus::Code(0));
    }
}

fn there_is_no_terminal_and_no_input() {
    check(&job("cat; read x; echo $?"), "1\n", CommandStatus::Code(0));
    check(&job("(: </dev/tty) 2>/dev/null || echo none"), "none\n", CommandStatus::Code(0));
    check(&job("ulimit -c"), "0\n", CommandStatus::Code(0));
    check(&job("[ $(ps -o pgid= -p $$) -eq $$ ] && echo leads"), "leads\n", CommandStatus::Code(0));
}

fn only_the_standard_descriptors_are_inherited() {
    // Something that a careless caller left open.
    let leak = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let script = "for i in {0..300}; do [ ! -e /proc/$$/fd/$i ] || echo -n \"$i \"; done";
    check(&job(script), "0 1 2 ", CommandStatus::Code(0));
    let tracked = ShellCommand { should_track_cwd: true, ..job(script) };
    check(&tracked, "0 1 2 250 ", CommandStatus::Code(0));
}

fn lines(output: &str) -> Vec<i32> {
    output.lines().map(|line| line.trim().parse().unwrap()).collect()
}

/// An ordinary daemon, one with a session of its own, and one that detached twice.
const DAEMONS: &str = "sleep 300 >/dev/null 2>&1 & echo $!
setsid sleep 300 >/dev/null 2>&1 & echo $!
(setsid bash -c 'sleep 300 & echo $!; disown' & ) > >(cat) 2>&1
sleep 0.2";

fn leftovers_live_and_die() {
    block_on(async {
        let mut process = supervised().start(&job(DAEMONS)).unwrap();
        let exit = process.exit.recv().await;
        assert_eq!(exit.status, CommandStatus::Code(0));
        let mut output = vec![0; 1000];
        let count = process.output.read(&mut output).await.unwrap();
        let pids = lines(std::str::from_utf8(&output[..count]).unwrap());
        assert_eq!(pids.len(), 3);
        assert!(pids.iter().all(|&pid| is_alive(pid)));
        assert!(!process.tree.is_gone());
        let start = Instant::now();
        process.tree.stop().await;
        assert!(start.elapsed() < Duration::from_millis(1900), "terminated, not killed");
        wait_until_dead(&pids, Duration::ZERO);
    });
}

fn a_deaf_process_is_killed() {
    for launcher in [supervised(), Launcher::direct()] {
        block_on(async {
            let process = launcher.start(&job("trap '' TERM; echo $$; while :; do sleep 1; done")).unwrap();
            let ShellProcess { mut output, tree, mut exit } = process;
            let mut bytes = vec![0; 100];
            let count = output.read(&mut bytes).await.unwrap();
            let pids = lines(std::str::from_utf8(&bytes[..count]).unwrap());
            let start = Instant::now();
            let gone = tree.stop();
            assert!(start.elapsed() < Duration::from_secs(1), "stopping does not wait");
            gone.await;
            let took = start.elapsed();
            assert!((1900..6000).contains(&took.as_millis()), "{took:?}");
            wait_until_dead(&pids, Duration::ZERO);
            assert_eq!(exit.recv().await.status, CommandStatus::Signal(9));
        });
    }
}

/// A process that is another one at every look: it starts its successor and ends.
const RELAY: &str = "trap '' TERM; relay() { (relay) & }; for i in 1 2 3 4; do (while :; do (sleep 0.01 &); sleep 0.005; done) & done; relay & echo go; sleep 100";

fn a_process_that_keeps_moving_is_killed() {
    block_on(async {
        let process = supervised().start(&job(RELAY)).unwrap();
        let ShellProcess { mut output, tree, .. } = process;
        output.read_u8().await.unwrap();
        tokio::time::timeout(Duration::from_secs(6), tree.stop()).await.unwrap();
        // The end of the output means that nobody is left to write to it.
        let mut rest = Vec::new();
        let rest = output.read_to_end(&mut rest);
        tokio::time::timeout(Duration::from_secs(5), rest).await.unwrap().unwrap();
    });
}

/// Starts daemons, says who they are, and waits to be killed.
fn engine_that_will_be_killed() {
    block_on(async {
        let mut process =
            supervised().start(&job(&format!("{DAEMONS}\necho $$\ntrap '' TERM; sleep 300"))).unwrap();
        let mut text = String::new();
        while text.matches('\n').count() < 4 {
            text.push(process.output.read_u8().await.unwrap().into());
        }
        println!("{text}\nready");
        std::future::pending::<()>().await;
    });
}

fn nothing_survives_the_kill_of_the_engine() {
    let mut engine = Command::new("/proc/self/exe").arg("engine").stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(engine.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().map(Result::unwrap).take_while(|line| line != "ready").collect();
    let pids: Vec<i32> =
        lines.iter().filter(|line| !line.is_empty()).map(|line| line.parse().unwrap()).collect();
    assert!(pids.len() == 4 && pids.iter().all(|&pid| is_alive(pid)), "{pids:?}");
    let supervisors = children(engine.id());
    assert_eq!(supervisors.len(), 1);
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_until_dead(&pids, Duration::from_secs(4));
    wait_until_dead(&supervisors, Duration::from_secs(4));
}

fn children(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn the_shell_dies_with_its_supervisor() {
    block_on(async {
        let process = supervised().start(&job("echo $$; kill -KILL $PPID; sleep 300")).unwrap();
        let ShellProcess { mut output, mut exit, tree } = process;
        let mut bytes = vec![0; 100];
        let count = output.read(&mut bytes).await.unwrap();
        assert_eq!(exit.recv().await.status, CommandStatus::Lost);
        wait_until_dead(&lines(std::str::from_utf8(&bytes[..count]).unwrap()), Duration::from_secs(4));
        assert!(tree.is_gone());
    });
}

fn a_dead_tree_leaves_no_child_to_collect() {
    block_on(async {
        for script in ["true", "sleep 300", "sleep 300 & exit"] {
            for launcher in [supervised(), Launcher::direct()] {
                let process = launcher.start(&job(&format!("echo $PPID; {script}"))).unwrap();
                let ShellProcess { mut output, tree, .. } = process;
                let mut bytes = vec![0; 100];
                let count = output.read(&mut bytes).await.unwrap();
                let parent = lines(std::str::from_utf8(&bytes[..count]).unwrap())[0];
                tree.stop().await;
                let is_us = parent.unsigned_abs() == std::process::id();
                // Collected, not only dead: there is no entry left.
                assert!(is_us || !Path::new(&format!("/proc/{parent}")).exists(), "{script}");
            }
        }
    });
}

fn what_cannot_start_is_explained() {
    block_on(async {
        let error = Launcher::supervised("/nowhere/windlass".into()).start(&job("true")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/windlass could not be started"), "{error}");
        for launcher in [supervised(), Launcher::direct()] {
            let long = format!("true {}", "x".repeat(1 << 20));
            match launcher.start(&job(&long)) {
                Err(LaunchError::TooLong) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

/// Generous limits and several tries: the machine may be busy. The measured times are for the eyes of whoever runs with
/// `--nocapture`.
fn starting_is_quick() {
    const TRIES: usize = 5;
    let is_quick = |(each, all)| each < Duration::from_millis(60) && all < Duration::from_millis(300);
    let tries: Vec<_> = (0..TRIES).map(|_| block_on(time_starts())).collect();
    println!("one `true`, ten at once: {tries:?}");
    assert!(tries.iter().copied().any(is_quick), "{tries:?}");
}

/// How long one command takes from start to end, and how long ten do.
async fn time_starts() -> (Duration, Duration) {
    let start = Instant::now();
    for _ in 0..20 {
        finish(supervised().start(&job("true")).unwrap()).await;
    }
    let each = start.elapsed() / 20;
    let start = Instant::now();
    let ten: Vec<ShellProcess> = (0..10).map(|_| supervised().start(&job("true")).unwrap()).collect();
    for process in ten {
        finish(process).await;
    }
    (each, start.elapsed())
}
