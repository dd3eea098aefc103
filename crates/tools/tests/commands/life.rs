//! How commands end: with their call, their time, their session, or by themselves.

use std::fs;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;
use windlass_sandbox::Launcher;

use super::{Session, block_on, is_alive, structured, text, trial, until};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        trial("a_killed_supervisor_is_told", a_killed_supervisor_is_told),
        trial("a_call_ends_while_its_daemon_goes_on", a_call_ends_while_its_daemon_goes_on),
        trial("cancelling_returns_at_once_and_ends_the_tree", cancelling_returns_at_once),
        trial("dropping_the_call_ends_the_tree", dropping_the_call_ends_the_tree),
        trial("a_timeout_moves_the_command_to_the_background", a_timeout_moves_to_the_background),
        trial("some_commands_are_stopped_at_their_timeout", some_commands_are_stopped_at_their_timeout),
        trial("a_background_task_can_be_read_and_stopped", a_background_task_can_be_read_and_stopped),
        trial("the_end_of_a_background_task_is_noted", the_end_of_a_background_task_is_noted),
        trial("background_tasks_end_with_the_session", background_tasks_end_with_the_session),
        trial("without_a_supervisor_it_works_too", without_a_supervisor_it_works_too),
    ]
}

fn a_killed_supervisor_is_told() {
    block_on(async {
        let session = Session::new();
        let outcome =
            session.bash(json!({ "command": "setsid sleep 60 & echo $! > pid; kill -9 $PPID" })).await;
        assert!(outcome.is_error && text(&outcome).contains("was killed"), "{}", text(&outcome));
        assert!(!is_alive(&fs::read_to_string(session.project().join("pid")).unwrap()));
    });
}

fn a_call_ends_while_its_daemon_goes_on() {
    block_on(async {
        let session = Session::new();
        let start = Instant::now();
        let command = "(while :; do echo noise; sleep 0.05; done) & echo $! > pid; setsid sleep 300 & echo $! > pid2; echo done";
        let outcome = session.bash(json!({ "command": command })).await;
        let took = start.elapsed();
        assert!(text(&outcome).contains("done") && took < Duration::from_secs(5), "{took:?}");
        let pids = ["pid", "pid2"].map(|name| fs::read_to_string(session.project().join(name)).unwrap());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(pids.iter().all(|pid| is_alive(pid)), "a daemon survives that nobody reads what it says");
        drop(session.tasks);
        until("the daemons end with the session", Duration::from_secs(4), || {
            !pids.iter().any(|pid| is_alive(pid))
        })
        .await;
    });
}

/// Starts a deaf process and waits until it says so.
const DEAF: &str = "trap '' TERM; echo $$ > pid; echo started; setsid bash -c 'trap \"\" TERM; echo $$ > pid2; while :; do sleep 1; done' & while :; do sleep 1; done";

fn cancelling_returns_at_once() {
    block_on(async {
        let session = Session::new();
        let cx = session.context();
        let cancel = cx.cancel.clone();
        let pids = ["pid", "pid2"].map(|name| session.project().join(name));
        let cancelled = async {
            until("it starts", Duration::from_secs(5), || {
                pids.iter().all(|pid| fs::read(pid).is_ok_and(|text| !text.is_empty()))
            })
            .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
            Instant::now()
        };
        let (outcome, at) = tokio::join!(session.bash_in(json!({ "command": DEAF }), cx), cancelled);
        assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
        assert!(
            outcome.is_error && text(&outcome).contains("Interrupted") && text(&outcome).ends_with("started"),
            "{}",
            text(&outcome)
        );
        assert_eq!(structured(&outcome)["interrupted"], true);
        let pids = pids.map(|pid| fs::read_to_string(pid).unwrap());
        until("the tree ends", Duration::from_secs(4), || !pids.iter().any(|pid| is_alive(pid))).await;
    });
}

fn dropping_the_call_ends_the_tree() {
    block_on(async {
        let session = Session::new();
        let pid = session.project().join("pid");
        let call = session.bash(json!({ "command": "echo $$ > pid; sleep 300" }));
        let started =
            until("it starts", Duration::from_secs(5), || fs::read(&pid).is_ok_and(|text| !text.is_empty()));
        tokio::select! {
            _ = call => panic!("it cannot have ended"),
            () = started => {}
        }
        let pid = fs::read_to_string(pid).unwrap();
        until("the tree ends", Duration::from_secs(4), || !is_alive(&pid)).await;
    });
}

fn a_timeout_moves_to_the_background() {
    block_on(async {
        let session = Session::new();
        fs::create_dir(session.project().join("sub")).unwrap();
        let command = "cd sub; echo early; sleep 0.6; echo late; exit 4";
        let outcome = session.bash(json!({ "command": command, "timeout": 300 })).await;
        let seen = text(&outcome);
        assert!(
            !outcome.is_error && seen.contains("timeout of 300 ms") && seen.contains("\nearly\n"),
            "{seen}"
        );
        assert!(
            seen.contains("A `cd` in a background command has no effect") && outcome.cwd.is_none(),
            "{seen}"
        );
        let output = structured(&outcome);
        assert_eq!(
            (&output["timedOutAfterMs"], &output["backgroundTaskId"]),
            (&json!(300), &json!("bash-1"))
        );
        let file = session.tasks.running()[0].output_file.clone();
        assert!(seen.contains(file.to_str().unwrap()));
        until("it ends", Duration::from_secs(5), || session.tasks.running().is_empty()).await;
        let expected = "early\nlate\n[The command ended with exit code 4.]\n";
        assert_eq!(fs::read_to_string(file).unwrap(), expected);
    });
}

fn some_commands_are_stopped_at_their_timeout() {
    let check = |session: &Session, command: &str| {
        let outcome = block_on(session.bash(json!({ "command": command, "timeout": 100 })));
        assert!(
            outcome.is_error && text(&outcome).contains("Stopped: the command reached its timeout"),
            "{}",
            text(&outcome)
        );
        assert!(session.tasks.running().is_empty());
    };
    check(&Session::new(), "sleep 10");
    check(&Session::new(), "while :; do sleep 1; done # git");
    let disabled = Session::with(|settings| settings.is_background_off = true);
    check(&disabled, "tail -f /dev/null");
}

fn a_background_task_can_be_read_and_stopped() {
    block_on(async {
        let session = Session::new();
        let start = Instant::now();
        let command = "echo $$ > pid; echo up; trap '' TERM; (setsid sleep 300 & echo $! > pid2); while :; do sleep 1; done";
        let input = json!({ "command": command, "run_in_background": "true", "description": "a server" });
        let outcome = session.bash(input).await;
        assert!(start.elapsed() < Duration::from_secs(5) && !outcome.is_error);
        let task = session.tasks.running().remove(0);
        assert!(
            text(&outcome).contains("task bash-1") && task.command.ends_with("(a server)"),
            "{}",
            text(&outcome)
        );
        until("it prints", Duration::from_secs(5), || {
            fs::read_to_string(&task.output_file).unwrap() == "up\n"
                && session.project().join("pid2").exists()
        })
        .await;
        let wrong = session.stop(json!({ "task_id": "bash-7" })).await;
        assert!(
            wrong.is_error && text(&wrong).contains("Running:\n- bash-1: echo $$ > pid"),
            "{}",
            text(&wrong)
        );
        let stopped = session.stop(json!({ "shell_id": "bash-1" })).await;
        assert!(text(&stopped).starts_with("Stopped task bash-1:"), "{}", text(&stopped));
        assert_eq!(structured(&stopped)["task_id"], "bash-1");
        let pids = ["pid", "pid2"].map(|name| fs::read_to_string(session.project().join(name)).unwrap());
        assert!(!pids.iter().any(|pid| is_alive(pid)));
        let again = session.stop(json!({ "task_id": "bash-1" })).await;
        until("its end is noted", Duration::from_secs(5), || session.tasks.running().is_empty()).await;
        assert!(fs::read_to_string(&task.output_file).unwrap().ends_with("[The command was stopped.]\n"));
        assert!(!again.is_error || text(&again).contains("already ended"), "{}", text(&again));
        let missing = session.stop(json!({})).await;
        assert!(missing.is_error && text(&missing).contains("`task_id` is missing"));
    });
}

fn the_end_of_a_background_task_is_noted() {
    block_on(async {
        let session = Session::new();
        session.bash(json!({ "command": "printf x", "run_in_background": true })).await;
        let file = session.tasks.running()[0].output_file.clone();
        until("it ends", Duration::from_secs(5), || session.tasks.running().is_empty()).await;
        assert_eq!(fs::read_to_string(file).unwrap(), "x\n[The command ended with exit code 0.]\n");
        let over = session.stop(json!({ "task_id": "bash-1" })).await;
        assert!(
            text(&over).contains("has already ended: The command ended with exit code 0."),
            "{}",
            text(&over)
        );
    });
}

fn background_tasks_end_with_the_session() {
    block_on(async {
        let session = Session::new();
        session.bash(json!({ "command": "echo $$ > pid; sleep 300", "run_in_background": true })).await;
        let pid = session.project().join("pid");
        until("it starts", Duration::from_secs(5), || fs::read(&pid).is_ok_and(|text| !text.is_empty()))
            .await;
        let pid = fs::read_to_string(pid).unwrap();
        drop(session);
        until("it ends", Duration::from_secs(3), || !is_alive(&pid)).await;
    });
}

fn without_a_supervisor_it_works_too() {
    block_on(async {
        let session = Session::with(|settings| settings.launcher = Launcher::direct());
        fs::create_dir(session.project().join("sub")).unwrap();
        let outcome = session.bash(json!({ "command": "cd sub; echo hi; exit 2" })).await;
        assert_eq!(outcome.cwd, Some(session.project().join("sub")));
        assert!(outcome.is_error && text(&outcome).starts_with("Exit code 2\nhi\n"), "{}", text(&outcome));
    });
}
