//! Commands that work against their supervisor, and programs that end while commands run. Everything a command started
//! ends nevertheless. The supervisor, and every engine that ends, is this very test program started again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "an engine says what it started")]

mod harness;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use harness::{block_on, is_alive, supervised, trial, wait_until_dead};
use libtest_mimic::Arguments;
use tokio::io::AsyncReadExt;
use windlass_sandbox::{CommandStatus, Launcher, ShellCommand, ShellProcess, wait_for_trees};

fn main() {
    windlass_sandbox::run_if_supervisor();
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "idle-engine", script] => return idle_engine(script),
        [_, role @ ("engine" | "engine-to-be-killed"), script] => return engine(role, script),
        _ => {}
    }
    let tests = vec![
        trial("looking_for_the_text_of_a_command_does_not_find_its_supervisor", the_text_is_not_found),
        trial("nothing_survives_the_kill_of_the_supervisor", nothing_survives_the_kill_of_the_supervisor),
        trial("nothing_survives_where_the_leader_of_the_session_is_out_of_sight", leader_out_of_sight),
        trial("other_children_survive_the_kill_of_a_supervisor", other_children_survive),
        trial("a_supervisor_that_was_stopped_goes_on", a_supervisor_that_was_stopped_goes_on),
        trial("a_supervisor_that_is_stopped_again_and_again_is_replaced", stopped_again_and_again),
        trial(
            "nothing_survives_an_engine_whose_supervisor_is_stopped",
            engine_killed_with_stopped_supervisor,
        ),
        trial("a_program_can_wait_for_its_commands", a_program_can_wait_for_its_commands),
        trial("waiting_ends_what_works_against_it", waiting_ends_what_works_against_it),
        trial("waiting_for_nothing_takes_no_time", waiting_for_nothing_takes_no_time),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// A command that can work against its supervisor is one whose directory matters afterwards.
fn job(script: &str) -> ShellCommand {
    ShellCommand { should_track_cwd: true, ..harness::job(script) }
}

/// Leaves three processes behind that nothing but a kill ends, says who they are, and goes on.
const DEAF: &str = "deaf='trap \"\" TERM HUP INT; echo $$; while :; do sleep 1; done'
bash -c \"$deaf\" & setsid bash -c \"$deaf\" & (setsid env -i PATH=\"$PATH\" bash -c \"$deaf\" &)
sleep 0.3; echo ready; ";

/// Reads the numbers of processes up to the word "ready".
async fn read_pids(process: &mut ShellProcess) -> Vec<i32> {
    let mut text = String::new();
    while !text.ends_with("ready\n") {
        text.push(process.output.read_u8().await.unwrap().into());
    }
    pids(&text)
}

fn pids(text: &str) -> Vec<i32> {
    let pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(pids.len(), 3, "{text}");
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    pids
}

fn the_text_is_not_found() {
    block_on(async {
        // The command finds itself, as it would in any shell.
        let script = "sleep 4323 & pkill -9 -f 'sleep 4323'; sleep 60";
        let mut process = supervised().start(&job(script)).unwrap();
        assert_eq!(process.exit.recv().await.status, CommandStatus::Signal(9));
        process.tree.wait_until_gone().await;
    });
}

fn nothing_survives_the_kill_of_the_supervisor() {
    block_on(async {
        for rest in ["kill -9 $PPID; sleep 60", "kill -9 $PPID", "exec kill -9 $PPID"] {
            let mut process = supervised().start(&job(&format!("{DEAF}{rest}"))).unwrap();
            let pids = read_pids(&mut process).await;
            let exit = tokio::time::timeout(Duration::from_secs(5), process.exit.recv()).await.unwrap();
            assert_eq!(exit.status, CommandStatus::Lost);
            process.tree.wait_until_gone().await;
            for pid in pids {
                // Collected, not only dead: there is no entry left.
                assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{rest}");
            }
        }
    });
}

/// A program in a container may belong to a session whose leader is outside, so that it has no number inside.
fn leader_out_of_sight() {
    let program = std::env::current_exe().unwrap();
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script]).arg(&program);
        command.arg("nothing_survives_the_kill_of_the_supervisor").arg("--exact").output()
    };
    if !in_namespace("exit 0").is_ok_and(|output| output.status.success()) {
        println!("skipped: no namespace of process numbers can be made here");
        return;
    }
    let output = in_namespace("\"$0\" \"$@\"; exit $?").unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn other_children_survive() {
    block_on(async {
        let mut host_child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut other = supervised().start(&job(&format!("{DEAF}sleep 60"))).unwrap();
        let direct = Launcher::direct().start(&job("sleep 0.5 & sleep 0.6; wait $!")).unwrap();
        let others = read_pids(&mut other).await;
        let mut process = supervised().start(&job("setsid sleep 60 & kill -9 $PPID")).unwrap();
        assert_eq!(process.exit.recv().await.status, CommandStatus::Lost);
        process.tree.wait_until_gone().await;
        assert!(host_child.try_wait().unwrap().is_none() && others.iter().all(|&pid| is_alive(pid)));
        let ShellProcess { mut exit, tree, .. } = direct;
        assert_eq!(exit.recv().await.status, CommandStatus::Code(0));
        tree.wait_until_gone().await;
        host_child.kill().unwrap();
        host_child.wait().unwrap();
        other.tree.stop().await;
        wait_until_dead(&others, Duration::ZERO);
    });
}

fn a_supervisor_that_was_stopped_goes_on() {
    block_on(async {
        let start = Instant::now();
        let mut process = supervised().start(&job("kill -STOP $PPID; exit 3")).unwrap();
        assert_eq!(process.exit.recv().await.status, CommandStatus::Code(3));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    });
    let stop = || async {
        let mut process = supervised().start(&job(&format!("{DEAF}kill -STOP $PPID; sleep 60"))).unwrap();
        let pids = read_pids(&mut process).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        process.tree.stop().await;
        wait_until_dead(&pids, Duration::ZERO);
        u64::try_from(start.elapsed().as_millis()).unwrap()
    };
    let ms = measured(3000, || block_on(stop()));
    assert!(ms < 3000, "{ms} ms");
}

/// Leaves a deaf process that stops the supervisor all the time.
const STOPPER: &str = "trap '' TERM; while :; do kill -STOP $PPID; sleep 0.001; done";

fn stopped_again_and_again() {
    block_on(async {
        let mut process = supervised().start(&job(&format!("{DEAF}{STOPPER}"))).unwrap();
        let pids = read_pids(&mut process).await;
        tokio::time::timeout(Duration::from_secs(6), process.tree.stop()).await.unwrap();
        wait_until_dead(&pids, Duration::ZERO);
    });
}

/// Starts the command, says what it started, and waits to be killed or, as another engine, goes on to its end.
fn engine(role: &str, script: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let process = runtime.block_on(async {
        let mut process = supervised().start(&job(&format!("{DEAF}{script}"))).unwrap();
        let pids = read_pids(&mut process).await;
        for pid in pids {
            println!("{pid}");
        }
        println!("ready");
        if role == "engine-to-be-killed" {
            std::future::pending::<()>().await;
        }
        process
    });
    drop(runtime);
    let start = Instant::now();
    wait_for_trees(Duration::from_millis(2500));
    println!("waited {}", start.elapsed().as_millis());
    drop(process);
}

fn start_engine(role: &str, script: &str) -> (Child, Vec<i32>, BufReader<std::process::ChildStdout>) {
    let mut engine =
        Command::new("/proc/self/exe").args([role, script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(engine.stdout.take().unwrap());
    let mut text = String::new();
    while !text.ends_with("ready\n") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    (engine, pids(&text), output)
}

fn engine_killed_with_stopped_supervisor() {
    let (mut engine, pids, _output) = start_engine("engine-to-be-killed", "kill -STOP $PPID; sleep 60");
    std::thread::sleep(Duration::from_millis(50));
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_until_dead(&pids, Duration::from_secs(4));
}

/// How long an engine waited for its commands at its end. Nothing of them is left when it has ended.
fn waited(script: &str) -> u64 {
    let (mut engine, pids, mut output) = start_engine("engine", script);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(engine.wait().unwrap().success());
    wait_until_dead(&pids, Duration::ZERO);
    line.trim().strip_prefix("waited ").unwrap().parse().unwrap()
}

/// Measures milliseconds again if they are too many: the machine may be busy. The last measurement counts.
fn measured(limit: u64, measure: impl Fn() -> u64) -> u64 {
    const TRIES: usize = 4;
    let again = (1..TRIES).map(|_| measure()).find(|&ms| ms < limit);
    again.unwrap_or_else(&measure)
}

fn a_program_can_wait_for_its_commands() {
    let ms = measured(2500, || waited("sleep 60"));
    assert!((1900..2500).contains(&ms), "deaf processes have two seconds, then they are killed: {ms} ms");
}

fn waiting_ends_what_works_against_it() {
    for script in ["kill -9 $PPID", STOPPER] {
        let ms = measured(3200, || waited(script));
        assert!(ms < 3200, "{script}: {ms} ms");
    }
}

/// Starts commands that end by themselves, or none, and waits for them.
fn idle_engine(script: &str) {
    if !script.is_empty() {
        block_on(async {
            let process = supervised().start(&job(script)).unwrap();
            process.tree.wait_until_gone().await;
        });
    }
    let start = Instant::now();
    wait_for_trees(Duration::from_millis(2500));
    println!("{}", start.elapsed().as_millis());
}

fn waiting_for_nothing_takes_no_time() {
    for script in ["", "true", "kill -9 $PPID"] {
        let ms = measured(20, || {
            let output = Command::new("/proc/self/exe").args(["idle-engine", script]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        });
        assert!(ms < 20, "{script}: {ms} ms");
    }
}
