//! Programs that no shell reads, below a real supervisor, which is this very test program started again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use harness::{block_on, is_alive, supervised, trial, wait_until_dead};
use libtest_mimic::Arguments;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_sandbox::{
    CommandStatus, LaunchError, Launcher, ProgramBounds, ProgramCommand, ProgramInput, ProgramOutcome,
    ProgramProcess, ShellCommand,
};

fn main() {
    windlass_sandbox::run_if_supervisor();
    let tests = vec![
        trial("streams_are_apart", streams_are_apart),
        trial("a_program_reads_its_input", a_program_reads_its_input),
        trial("arguments_are_passed_as_they_are", arguments_are_passed_as_they_are),
        trial("output_is_bounded", output_is_bounded),
        trial("time_is_bounded_for_the_whole_tree", time_is_bounded),
        trial("nobody_waits_for_who_holds_the_output", nobody_waits),
        trial("what_cannot_start_is_told", what_cannot_start),
        trial("a_conversation_is_possible", a_conversation),
        trial("a_dropped_run_ends_everything", a_dropped_run),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

const BOUNDS: ProgramBounds =
    ProgramBounds { time: Duration::from_secs(20), output_bytes: 1000, error_bytes: 1000 };

fn job(argv: &[&str]) -> ProgramCommand {
    let ShellCommand { cwd, environment, sandbox, .. } = harness::job("");
    ProgramCommand {
        argv: argv.iter().map(OsString::from).collect(),
        input: ProgramInput::Pipe,
        cwd,
        environment,
        sandbox,
    }
}

fn sh(script: &str) -> ProgramCommand {
    job(&["sh", "-c", script])
}

/// The outcome is the same with and without a supervisor.
fn run(job: &ProgramCommand, input: &[u8], bounds: ProgramBounds) -> ProgramOutcome {
    let run = |launcher: Launcher| block_on(async { launcher.run(job, input, bounds).await.unwrap() });
    let (direct, supervised) = (run(Launcher::direct()), run(supervised()));
    assert_eq!(direct, supervised);
    supervised
}

fn check(job: &ProgramCommand, input: &str, expected: (i32, &str, &str)) {
    let finished = run(job, input.as_bytes(), BOUNDS);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (output, errors) = (text(&finished.output.bytes), text(&finished.errors.bytes));
    assert_eq!(finished.exit.unwrap().status, CommandStatus::Code(expected.0), "{errors}");
    assert_eq!((output.as_str(), errors.as_str()), (expected.1, expected.2));
}

fn streams_are_apart() {
    check(&sh("echo out; echo err >&2; exit 2"), "", (2, "out\n", "err\n"));
    let finished = run(&sh("kill -KILL $$"), b"", BOUNDS);
    assert_eq!(finished.exit.unwrap().status, CommandStatus::Signal(9));
}

fn a_program_reads_its_input() {
    check(&job(&["cat"]), "{\"a\":1}\n", (0, "{\"a\":1}\n", ""));
    check(&job(&["true"]), &"x".repeat(1 << 20), (0, "", ""));
    check(&ProgramCommand { input: ProgramInput::Nothing, ..job(&["cat"]) }, "ignored", (0, "", ""));
    let large = "y".repeat(300_000);
    check(&sh("wc -c"), &large, (0, "300000\n", ""));
}

fn arguments_are_passed_as_they_are() {
    let odd = "a b\n$(echo no) 'x' \"y\" *";
    check(&job(&["printf", "%s|", odd, "", "-x"]), "", (0, &format!("{odd}||-x|"), ""));
}

fn output_is_bounded() {
    let finished = run(&sh("head -c 5000 /dev/zero; head -c 1001 /dev/zero >&2; exit 3"), b"", BOUNDS);
    assert_eq!((finished.output.bytes.len(), finished.output.is_cut), (1000, true));
    assert_eq!((finished.errors.bytes.len(), finished.errors.is_cut), (1000, true));
    assert_eq!(finished.exit.unwrap().status, CommandStatus::Code(3));
    let finished = run(&sh("head -c 1000 /dev/zero"), b"", BOUNDS);
    assert_eq!((finished.output.bytes.len(), finished.output.is_cut), (1000, false));
}

fn time_is_bounded() {
    let script = "sleep 300 & echo $!; setsid sleep 300 & echo $!; echo $$; trap '' TERM; wait; sleep 300";
    let bounds = ProgramBounds { time: Duration::from_millis(300), ..BOUNDS };
    let start = Instant::now();
    let finished = block_on(async { supervised().run(&sh(script), b"", bounds).await.unwrap() });
    assert_eq!(finished.exit, None);
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    let text = String::from_utf8(finished.output.bytes).unwrap();
    let pids: Vec<i32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 3);
    wait_until_dead(&pids, Duration::ZERO);
}

fn nobody_waits() {
    let start = Instant::now();
    let finished =
        block_on(async { supervised().run(&sh("sleep 300 & echo $!"), b"", BOUNDS).await.unwrap() });
    assert_eq!(finished.exit.unwrap().status, CommandStatus::Code(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let pid = String::from_utf8(finished.output.bytes).unwrap().trim().parse().unwrap();
    wait_until_dead(&[pid], Duration::ZERO);
}

fn what_cannot_start() {
    let finished = block_on(async { supervised().run(&job(&["/no/such"]), b"x", BOUNDS).await.unwrap() });
    assert_eq!(finished.exit.unwrap().status, CommandStatus::NotStarted(libc::ENOENT));
    let finished = block_on(async { supervised().run(&job(&["/etc/passwd"]), b"x", BOUNDS).await.unwrap() });
    assert_eq!(finished.exit.unwrap().status, CommandStatus::NotStarted(libc::EACCES));
    let finished = block_on(async { supervised().run(&job(&[]), b"x", BOUNDS).await.unwrap() });
    assert!(matches!(finished.exit.unwrap().status, CommandStatus::NotStarted(_)));
    let long = "x".repeat(1 << 20);
    match block_on(async { supervised().run(&job(&["echo", &long]), b"", BOUNDS).await }) {
        Err(LaunchError::TooLong) => {}
        other => panic!("{other:?}"),
    }
}

fn a_conversation() {
    block_on(async {
        let ProgramProcess { input, mut output, mut exit, tree, .. } =
            supervised().start_program(&sh("while read x; do echo got $x; done; exit 6")).unwrap();
        let mut input = input.unwrap();
        for word in ["one", "two"] {
            input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            let mut bytes = vec![0; 8];
            output.read_exact(&mut bytes).await.unwrap();
            assert_eq!(bytes, format!("got {word}\n").as_bytes());
        }
        drop(input);
        assert_eq!(exit.recv().await.status, CommandStatus::Code(6));
        tree.wait_until_gone().await;
    });
}

fn a_dropped_run() {
    let path = std::env::temp_dir().join(format!("windlass-dropped-{}", std::process::id()));
    let script = format!("echo $$ > {}; exec sleep 300", path.display());
    block_on(async {
        let started = supervised();
        let job = sh(&script);
        let run = started.run(&job, b"", BOUNDS);
        assert!(tokio::time::timeout(Duration::from_millis(500), run).await.is_err());
        let pid = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
        assert!(is_alive(pid));
        let start = Instant::now();
        while is_alive(pid) {
            assert!(start.elapsed() < Duration::from_secs(4));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    std::fs::remove_file(path).unwrap();
}
