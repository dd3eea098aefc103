//! Bash and `TaskStop` on real processes, below a supervisor that is this very test program started again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use windlass_ports::{AnyTool, ExamineContext, ProgressReceiver, ToolContext, progress_channel};
use windlass_protocol::{RawValue, ToolOutcome};
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, TaskStop, Tasks};

fn main() {
    windlass_sandbox::run_if_supervisor();
    start_again_with_secrets();
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let tests = vec![
        trial("results_tell_output_and_status", results_tell_output_and_status),
        trial("the_structured_form_says_the_same", the_structured_form_says_the_same),
        trial("invalid_input_is_explained", invalid_input_is_explained),
        trial("long_output_shows_both_ends_and_a_file", long_output_shows_both_ends_and_a_file),
        trial("less_is_shown_of_a_failure", less_is_shown_of_a_failure),
        trial("a_hundred_megabytes_never_sit_in_memory", a_hundred_megabytes_never_sit_in_memory),
        trial("printing_without_end_is_stopped", printing_without_end_is_stopped),
        trial("saved_output_has_an_end", saved_output_has_an_end),
        trial("looking_runs_no_program_of_the_project", looking_runs_no_program_of_the_project),
        trial("looking_follows_no_link_that_was_swapped", looking_follows_no_link_that_was_swapped),
        trial("a_forged_directory_leads_nowhere", a_forged_directory_leads_nowhere),
        trial("a_killed_supervisor_is_told", a_killed_supervisor_is_told),
        trial("the_working_directory_carries_over_inside_the_roots", the_working_directory_carries_over),
        trial("a_working_directory_that_is_gone_is_replaced", a_working_directory_that_is_gone),
        trial("secrets_and_shell_setup_stay_outside", secrets_and_shell_setup_stay_outside),
        trial("an_env_file_is_sourced", an_env_file_is_sourced),
        trial("names_that_are_not_text_work", names_that_are_not_text_work),
        trial("a_call_ends_while_its_daemon_goes_on", a_call_ends_while_its_daemon_goes_on),
        trial("cancelling_returns_at_once_and_ends_the_tree", cancelling_returns_at_once),
        trial("dropping_the_call_ends_the_tree", dropping_the_call_ends_the_tree),
        trial("a_timeout_moves_the_command_to_the_background", a_timeout_moves_to_the_background),
        trial("some_commands_are_stopped_at_their_timeout", some_commands_are_stopped_at_their_timeout),
        trial("a_background_task_can_be_read_and_stopped", a_background_task_can_be_read_and_stopped),
        trial("the_end_of_a_background_task_is_noted", the_end_of_a_background_task_is_noted),
        trial("background_tasks_end_with_the_session", background_tasks_end_with_the_session),
        trial("a_question_stops_the_command", a_question_stops_the_command),
        trial("progress_tells_the_latest_line", progress_tells_the_latest_line),
        trial("looking_at_a_file_makes_it_known", looking_at_a_file_makes_it_known),
        trial("without_a_supervisor_it_works_too", without_a_supervisor_it_works_too),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// What commands must not see: a key of ours, one of the user's, and a function that poses as a program.
const SECRETS: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "hush"),
    ("MY_TOKEN", "hush"),
    ("PASSED_TOKEN", "passed"),
    ("BASH_FUNC_ls%%", "() { echo hush; }"),
];

/// Runs this program again with secrets in its environment.
fn start_again_with_secrets() {
    if std::env::var_os("PASSED_TOKEN").is_none() {
        let error = Command::new("/proc/self/exe")
            .args(std::env::args_os().skip(1))
            .envs(SECRETS.iter().copied())
            .exec();
        panic!("{error}");
    }
}

/// A session with a project directory of its own.
struct Session {
    dir: tempfile::TempDir,
    tasks: Arc<Tasks>,
    settings: BashSettings,
}

impl Session {
    fn new() -> Self {
        let settings = BashSettings::new(Launcher::supervised("/proc/self/exe".into()));
        Self { dir: tempfile::tempdir().unwrap(), tasks: Tasks::new(None), settings }
    }

    fn with(change: impl FnOnce(&mut BashSettings)) -> Self {
        let mut session = Self::new();
        change(&mut session.settings);
        session
    }

    fn project(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn context(&self) -> ToolContext {
        ToolContext::detached(self.project())
    }

    async fn bash(&self, input: Value) -> ToolOutcome {
        self.bash_in(input, self.context()).await
    }

    async fn bash_in(&self, input: Value, cx: ToolContext) -> ToolOutcome {
        let tool = Arc::new(Bash::new(self.settings.clone(), Arc::clone(&self.tasks)));
        AnyTool::run(tool, raw(&input), cx).await
    }

    async fn stop(&self, input: Value) -> ToolOutcome {
        AnyTool::run(Arc::new(TaskStop::new(Arc::clone(&self.tasks))), raw(&input), self.context()).await
    }
}

fn raw(value: &Value) -> Arc<RawValue> {
    serde_json::value::to_raw_value(value).unwrap().into()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn text(outcome: &ToolOutcome) -> &str {
    outcome.content[0].as_text().unwrap()
}

fn structured(outcome: &ToolOutcome) -> Value {
    serde_json::from_str(outcome.structured.as_ref().unwrap().0.get()).unwrap()
}

fn is_alive(pid: &str) -> bool {
    let state = |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(state)
}

async fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn results_tell_output_and_status() {
    let check = |command: &str, is_error: bool, expected: &str| {
        let outcome = block_on(Session::new().bash(json!({ "command": command })));
        assert_eq!((text(&outcome), outcome.is_error), (expected, is_error), "{command}");
    };
    check("echo out; echo err >&2", false, "out\nerr");
    check("true", false, "(no output)");
    check("echo a; exit 3", true, "Exit code 3\na");
    check("grep x /dev/null", false, "Exit code 1: nothing matched");
    check("echo b | grep a", false, "Exit code 1: nothing matched");
    check("kill -SEGV $$", true, "Ended by signal 11 (SIGSEGV: invalid memory access)");
    check("\n\nnope", true, "Exit code 127 (command not found)\nbash: line 3: nope: command not found");
    check("set -u; echo $nothing", true, "Exit code 127\nbash: line 1: nothing: unbound variable");
    check("-x", true, "Exit code 127 (command not found)\nbash: line 1: -x: command not found");
    check("cat", false, "(no output)");
    check("printf 'a\\377b'", false, "a\u{fffd}b");
    check("alias; declare -F", false, "(no output)");
}

fn the_structured_form_says_the_same() {
    block_on(async {
        let session = Session::new();
        let outcome = session.bash(json!({ "command": "echo a" })).await;
        assert_eq!(
            structured(&outcome),
            json!({ "stdout": "a", "stderr": "", "interrupted": false, "isImage": false })
        );
        let outcome = session.bash(json!({ "command": "grep x /dev/null" })).await;
        assert_eq!(structured(&outcome)["returnCodeInterpretation"], "nothing matched");
        let outcome = session.bash(json!({ "command": "seq 100000" })).await;
        let output = structured(&outcome);
        assert_eq!(output["persistedOutputSize"], 588_895);
        assert!(Path::new(output["persistedOutputPath"].as_str().unwrap()).exists());
        assert!(output["stdout"].as_str().unwrap().len() < 12_000);
    });
}

fn invalid_input_is_explained() {
    let check = |input: Value, expected: &str| {
        let outcome = block_on(Session::new().bash(input));
        assert!(outcome.is_error && text(&outcome).contains(expected), "{}", text(&outcome));
    };
    check(json!({}), "missing field `command`");
    check(json!({ "command": "true", "timeout": "soon" }), "in `timeout`");
    check(json!({ "command": "true", "shell": "zsh" }), "unknown field `shell`");
    check(json!({ "command": format!("true {}", "x".repeat(1 << 20)) }), "too long for the system");
    let outcome = block_on(Session::new().bash(json!({ "command": "echo a", "timeout": "5000.0" })));
    assert_eq!(text(&outcome), "a");
}

fn long_output_shows_both_ends_and_a_file() {
    block_on(async {
        for (command, is_error) in [("seq 100000", false), ("seq 100000; exit 9", true)] {
            let session = Session::new();
            let outcome = session.bash(json!({ "command": command })).await;
            let text = text(&outcome);
            assert_eq!(outcome.is_error, is_error);
            let body = text.strip_prefix("Exit code 9\n").unwrap_or(text);
            assert!(
                body.starts_with("1\n2\n3\n") && body.ends_with("\n99999\n100000") && text.len() < 12_000,
                "{text}"
            );
            let path = structured(&outcome)["persistedOutputPath"].as_str().unwrap().to_owned();
            assert!(text.contains(&path));
            let expected = numbers(1..=100_000);
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            drop(session);
            assert!(!Path::new(&path).exists(), "deleted with the session");
        }
    });
}

fn less_is_shown_of_a_failure() {
    block_on(async {
        let session = Session::new();
        let length =
            async |command: &str| text(&session.bash(json!({ "command": command })).await).chars().count();
        assert!(length("seq 3500").await > 16_000);
        assert!(length("seq 3500; exit 9").await < 10_500);
    });
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| number.to_string() + "\n").collect()
}

fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs one test again in a process of its own, so that no other adds to its memory.
fn run_alone(test: &str) {
    let mut command = Command::new("/proc/self/exe");
    let output = command.args(["--exact", test]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

const ALONE: &str = "WINDLASS_TEST_ALONE";

fn a_hundred_megabytes_never_sit_in_memory() {
    if std::env::var_os(ALONE).is_none() {
        return run_alone("a_hundred_megabytes_never_sit_in_memory");
    }
    block_on(async {
        let session = Session::new();
        let before = memory_kb();
        let command = json!({ "command": "head -c 100000000 /dev/zero | tr '\\0' x; echo end" });
        let call = session.bash(command);
        tokio::pin!(call);
        let mut most = 0;
        let outcome = loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                () = tokio::time::sleep(Duration::from_millis(2)) => most = memory_kb().max(most),
            }
        };
        most = memory_kb().max(most);
        assert!(most < before + 12_000, "grew from {before} to {most} kB");
        assert_eq!(structured(&outcome)["persistedOutputSize"], 64 << 20);
        assert!(text(&outcome).ends_with("xend") && !outcome.is_error);
        assert!(
            text(&outcome)
                .contains("of 100000004 bytes left out here; only the first 67108864 bytes are kept")
        );
    });
}

fn printing_without_end_is_stopped() {
    block_on(async {
        let session = Session::with(|settings| settings.output_bytes_max = 1_000_000);
        let outcome = session.bash(json!({ "command": "echo $$ > pid; yes" })).await;
        assert!(
            outcome.is_error && text(&outcome).contains("printed more than 1000000 bytes"),
            "{}",
            text(&outcome)
        );
        let pid = fs::read_to_string(session.project().join("pid")).unwrap();
        until("yes is stopped", Duration::from_secs(3), || !is_alive(&pid)).await;
    });
}

fn saved_output_has_an_end() {
    block_on(async {
        let session = Session::with(|settings| settings.saved_bytes_max = 200_000);
        let input = json!({ "command": "yes | head -c 400001; exit 3", "run_in_background": true });
        session.bash(input).await;
        let file = session.tasks.running()[0].output_file.clone();
        until("it ends", Duration::from_secs(5), || session.tasks.running().is_empty()).await;
        let kept = "y\n".repeat(100_000);
        let expected = "\n[The output goes on, but only its first 200000 bytes are kept.]\n\
                        [The command ended with exit code 3.]\n";
        assert_eq!(fs::read_to_string(file).unwrap(), kept + expected);
    });
}

fn looking_runs_no_program_of_the_project() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let env_file = dir.path().join("env");
        fs::write(&env_file, "cat() { echo caught; }; cd /\n").unwrap();
        let mut session = Session::with(|settings| settings.env_file = Some(env_file));
        let project = session.project();
        fs::create_dir(project.join("bin")).unwrap();
        for program in ["cat", "bin/cat", "bin/grep"] {
            let path = project.join(program);
            fs::write(&path, "#!/bin/sh\necho caught\n").unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        fs::write(project.join("a.txt"), "text\n").unwrap();
        let path = format!(".::{}/bin:{}", project.display(), std::env::var("PATH").unwrap());
        session.settings.env = vec![("PATH".into(), path.into())];
        for command in ["cat a.txt", "grep text a.txt"] {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(text(&outcome), "text", "{command}");
        }
        // What somebody was asked about may use what the user set up.
        let outcome = session.bash(json!({ "command": "cat a.txt | head" })).await;
        assert!(text(&outcome).starts_with("caught"), "{}", text(&outcome));
    });
}

fn looking_follows_no_link_that_was_swapped() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::write(project.join("mine"), "mine").unwrap();
        fs::write(project.join("theirs"), "theirs").unwrap();
        symlink("mine", project.join("link")).unwrap();
        let input = json!({ "command": "cat mine link" });
        let tool = Bash::new(session.settings.clone(), Arc::clone(&session.tasks));
        let examine = ExamineContext { cwd: project.clone(), roots: [project.clone()].into() };
        let mut cx = session.context();
        cx.decided = tool.examine(&raw(&input), &examine).unwrap().paths;
        assert_eq!(text(&session.bash_in(input.clone(), cx.clone()).await), "minemine");
        fs::remove_file(project.join("link")).unwrap();
        symlink("theirs", project.join("link")).unwrap();
        let outcome = session.bash_in(input, cx).await;
        let text = text(&outcome);
        assert!(outcome.is_error && text.starts_with("link leads to another file"), "{text}");
    });
}

fn a_forged_directory_leads_nowhere() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::create_dir(project.join("sub")).unwrap();
        for forged in ["$PWD/../..", "$PWD/sub/../..", "$PWD/out", "/", "nonsense"] {
            let command = format!("ln -sfn / out; trap \"echo {forged} >&250\" EXIT");
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(outcome.cwd, None, "{forged}: {}", text(&outcome));
        }
    });
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

fn the_working_directory_carries_over() {
    block_on(async {
        let session = Session::new();
        let project = session.project();
        fs::create_dir_all(project.join("sub/deep")).unwrap();
        let outcome = session.bash(json!({ "command": "cd sub/deep && echo hi" })).await;
        assert_eq!(outcome.cwd, Some(project.join("sub/deep")));
        assert_eq!(
            text(&outcome),
            format!("hi\nThe working directory is now {}/sub/deep", project.display())
        );

        let mut cx = session.context();
        cx.cwd = project.join("sub");
        let outcome = session.bash_in(json!({ "command": "pwd; cd /" }), cx.clone()).await;
        assert_eq!(outcome.cwd, Some(project.clone()));
        let expected = format!("{0}/sub\nShell cwd was reset to {0}", project.display());
        assert_eq!(text(&outcome), expected);

        let outcome = session.bash_in(json!({ "command": "pwd" }), cx.clone()).await;
        assert_eq!(
            (outcome.cwd.as_ref(), text(&outcome)),
            (None, format!("{}/sub", project.display()).as_str())
        );

        let session = Session::with(|settings| settings.maintain_project_cwd = true);
        fs::create_dir_all(session.project().join("sub")).unwrap();
        let outcome = session.bash(json!({ "command": "cd sub" })).await;
        assert_eq!(outcome.cwd, None);
        assert_eq!(text(&outcome), format!("Shell cwd was reset to {}", session.project().display()));
    });
}

fn a_working_directory_that_is_gone() {
    block_on(async {
        let session = Session::new();
        let mut cx = session.context();
        cx.cwd = session.project().join("gone");
        for command in ["pwd", "echo `pwd`"] {
            let outcome = session.bash_in(json!({ "command": command }), cx.clone()).await;
            assert_eq!(outcome.cwd, Some(session.project()));
            let expected = format!(
                "The working directory {0}/gone no longer exists; the command ran in {0}.\n{0}",
                session.project().display()
            );
            assert_eq!(text(&outcome), expected);
        }
    });
}

fn secrets_and_shell_setup_stay_outside() {
    block_on(async {
        let session = Session::with(|settings| {
            settings.env_pass = vec!["PASSED_TOKEN".into()];
            settings.env = vec![("CLAUDE_CODE_SESSION_ID".into(), "s1".into())];
        });
        let outcome = session.bash(json!({ "command": "env; ls /proc/self/fd" })).await;
        assert!(!text(&outcome).contains("hush"), "{}", text(&outcome));
        let project = format!("CLAUDE_PROJECT_DIR={}", session.project().display());
        let expected = [
            "CLAUDECODE=1",
            "WINDLASS=1",
            "PAGER=cat",
            "GIT_TERMINAL_PROMPT=0",
            "CLAUDE_CODE_SESSION_ID=s1",
            "PASSED_TOKEN=passed",
            &project,
        ];
        for line in expected {
            assert!(text(&outcome).lines().any(|other| other == line), "{line} in {}", text(&outcome));
        }
        assert!(!text(&outcome).contains("BASH_ENV"));
    });
}

const ECHO: &str = "echo \"<$GREETING>\"";

fn an_env_file_is_sourced() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env");
        fs::write(&file, "export GREETING=hello\n").unwrap();
        let session = Session::with(|settings| settings.env_file = Some(file.clone()));
        for command in ["echo $GREETING", "printenv GREETING"] {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(text(&outcome), "hello");
        }
        fs::remove_file(&file).unwrap();
        let tool = Arc::new(Bash::new(session.settings.clone(), Arc::clone(&session.tasks)));
        let notice = format!(
            "CLAUDE_ENV_FILE names {}, which is not a file; nothing is sourced before commands.\n",
            file.display()
        );
        for (command, expected) in
            [("echo only looking", "only looking"), (ECHO, &format!("{notice}<>")), (ECHO, "<>")]
        {
            let input = raw(&json!({ "command": command }));
            let outcome = AnyTool::run(Arc::clone(&tool), input, session.context()).await;
            assert_eq!(text(&outcome), expected);
        }
        // What goes on in the background was asked for, whatever it does.
        let outcome = session.bash(json!({ "command": "echo a", "run_in_background": true })).await;
        assert!(text(&outcome).starts_with(&notice), "{}", text(&outcome));
    });
}

fn names_that_are_not_text_work() {
    block_on(async {
        let session = Session::new();
        let outcome = session.bash(json!({ "command": "mkdir $'d\\xff' && echo hi > $'d\\xff/f\\xfe' && cd $'d\\xff' && cat $'f\\xfe'" })).await;
        assert!(text(&outcome).starts_with("hi\n") && !outcome.is_error, "{}", text(&outcome));
        let mut cx = session.context();
        cx.cwd = outcome.cwd.unwrap();
        let outcome = session.bash_in(json!({ "command": "cat f*" }), cx).await;
        assert_eq!(text(&outcome), "hi");
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
            outcome.is_error && text(&outcome).contains("interrupted") && text(&outcome).ends_with("started"),
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
            outcome.is_error && text(&outcome).contains("was stopped, because it took longer"),
            "{}",
            text(&outcome)
        );
        assert!(session.tasks.running().is_empty());
    };
    check(&Session::new(), "sleep 10");
    check(&Session::new(), "while :; do sleep 1; done # git");
    let disabled = Session::with(|settings| settings.background_disabled = true);
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
            wrong.is_error && text(&wrong).contains("Running now:\n- bash-1: echo $$ > pid"),
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
        assert!(!again.is_error || text(&again).contains("over already"), "{}", text(&again));
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
            text(&over).contains("is over already: The command ended with exit code 0."),
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

fn a_question_stops_the_command() {
    block_on(async {
        let session = Session::new();
        let start = Instant::now();
        let outcome = session.bash(json!({ "command": "echo work; printf 'Password: '; sleep 60" })).await;
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(5), "{took:?}");
        assert!(
            outcome.is_error
                && text(&outcome).contains("waits for input")
                && text(&outcome).contains("\"Password:\"")
        );
        // A question that is followed by more is none.
        let outcome =
            session.bash(json!({ "command": "printf 'Continue? [y/N] '; sleep 0.2; echo no" })).await;
        assert!(!outcome.is_error);
    });
}

fn progress_tells_the_latest_line() {
    async fn listen(mut news: ProgressReceiver) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok((_, progress)) =
            tokio::time::timeout(Duration::from_millis(1900), std::future::poll_fn(|cx| news.poll_recv(cx)))
                .await
        {
            lines.push(progress.text);
        }
        lines
    }
    block_on(async {
        let session = Session::new();
        let (sender, receiver) = progress_channel();
        let mut cx = session.context();
        cx.progress = sender;
        let call =
            session.bash_in(json!({ "command": "echo one; sleep 1.3; seq 1000; echo two; sleep 1.2" }), cx);
        let (_, lines) = tokio::join!(call, listen(receiver));
        assert_eq!(lines, ["one", "two"]);
    });
}

fn looking_at_a_file_makes_it_known() {
    block_on(async {
        let session = Session::new();
        fs::write(session.project().join("a.txt"), "one\ntwo\n").unwrap();
        let long = numbers(1..=100);
        fs::write(session.project().join("long.txt"), &long).unwrap();
        let check = async |command: &str, expected: Option<bool>| {
            let outcome = session.bash(json!({ "command": command })).await;
            assert_eq!(outcome.seen.first().map(|seen| seen.whole), expected, "{command}");
            for seen in outcome.seen {
                let content = fs::read(&seen.path).unwrap();
                assert_eq!(seen.hash, windlass_tools::content_hash(&content), "{command}");
            }
        };
        check("cat a.txt", Some(true)).await;
        check("head a.txt", Some(true)).await;
        check("head long.txt", Some(false)).await;
        check("tail long.txt", Some(false)).await;
        check("grep one a.txt", Some(false)).await;
        check("sed -n '1,1p' a.txt", Some(false)).await;
        check("sed -n '1,2p' a.txt", Some(true)).await;
        check("nl a.txt", Some(false)).await;
        check("cat -n a.txt", Some(false)).await;
        check("egrep 'one|two' a.txt", Some(true)).await;
        check("fgrep one a.txt", Some(false)).await;
        check("sed -n '1,2p' a.txt > b.txt", None).await;
        check("sed '1,2p' a.txt", None).await;
        check("cat a.txt a.txt", None).await;
        check("cat a.txt | head", None).await;
        check("cat none.txt", None).await;
        check("wc a.txt", None).await;
        fs::write(session.project().join("big.txt"), "line\n".repeat(10_000)).unwrap();
        check("cat big.txt", Some(false)).await;
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
