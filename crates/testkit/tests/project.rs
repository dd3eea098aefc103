//! Running a binary in a project: `sh` stands for it here.

use std::time::{Duration, Instant};

use windlass_testkit::{Project, Script, Server};

#[test]
fn a_run_has_a_clean_environment_and_gives_everything_back() {
    let project = Project::new().unwrap();
    project.write("src/a.txt", "content").unwrap();
    let server = Server::start(Script::parse(r#"{"responses":[{"blocks":[]}]}"#).unwrap()).unwrap();
    let script = "cat src/a.txt; cat; env | sort; echo sorry >&2; exit 3";
    let finished = project
        .command("sh")
        .server(&server)
        .args(["-c", script])
        .env("EXTRA", "1")
        .stdin("|from stdin|")
        .run()
        .unwrap();
    assert_eq!(finished.code(), Some(3));
    assert!(finished.stdout.starts_with("content|from stdin|"), "{}", finished.stdout);
    assert_eq!(finished.stderr, "sorry\n");
    let names: Vec<_> = finished
        .stdout
        .lines()
        .filter_map(|line| Some(line.rsplit('|').next()?.split_once('=')?.0))
        .collect();
    let allowed = [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "EXTRA",
        "HOME",
        "LANG",
        "OLDPWD",
        "PATH",
        "PWD",
        "SHLVL",
        "TMPDIR",
        "_",
    ];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(finished.stdout.contains(&format!("ANTHROPIC_BASE_URL={}\n", server.url())));
}

#[test]
fn a_run_that_takes_too_long_is_killed_and_shown() {
    let project = Project::new().unwrap();
    let began = Instant::now();
    let command = project.command("sh").args(["-c", "echo here; exec sleep 30"]);
    let error = command.timeout(Duration::from_millis(200)).run().unwrap_err().to_string();
    assert!(error.starts_with("the process did not end within 200ms"), "{error}");
    assert!(error.contains("--- stdout\nhere\n"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn output_can_be_waited_for_and_signals_sent() {
    let project = Project::new().unwrap();
    let script = "trap 'echo interrupted; exit 130' INT; echo ready; while :; do sleep 0.01; done";
    let running = project.command("sh").args(["-c", script]).start().unwrap();
    running.wait_for_output("ready\n").unwrap();
    running.interrupt().unwrap();
    let finished = running.finish().unwrap();
    assert_eq!((finished.code(), &*finished.stdout), (Some(130), "ready\ninterrupted\n"));
}

#[test]
fn lines_of_json_are_parsed_or_named() {
    let project = Project::new().unwrap();
    let run = |text: &str| project.command("printf").args(["%s", text]).run().unwrap();
    assert_eq!(run("{\"a\":1}\n[]\n").json_lines().unwrap().len(), 2);
    let error = run("{}\nnot json\n").json_lines().unwrap_err().to_string();
    assert!(error.ends_with("in line \"not json\""), "{error}");
}
