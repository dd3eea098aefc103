//! What is told about a project that would act.

use std::path::Path;
use std::time::Duration;

use windlass_testkit::{FinishedProcess, Project};

use crate::support::{Stage, WINDLASS, check_order};
use crate::talk::Talk;
use crate::terminal::on_terminal_of;

const SETTINGS: &str = ".claude/settings.json";

fn windlass(project: &Project, arguments: &[&str]) -> FinishedProcess {
    project.command(WINDLASS).args(arguments).run().unwrap()
}

/// A project with these settings.
fn with_settings(settings: &str) -> Project {
    let project = Project::new().unwrap();
    project.write(SETTINGS, settings).unwrap();
    project
}

#[test]
fn trust_shows_values_places_and_each_change_once() {
    let project = with_settings(
        "{\"env\": {\"MODE\": \"half\",\n\"API_TOKEN\": \"s3cr3t-value\"},\n\
         \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"./old\"}]}]}}",
    );
    let shown = windlass(&project, &["trust"]).stdout;
    let first = ["variable MODE = \"half\" (.claude/settings.json:1)\n", "run `windlass trust add`.\n"];
    check_order(
        &shown,
        &["hook on Stop: ./old (.claude/settings.json:3)\n", "variable API_TOKEN = \"(hidden)\""],
    );
    check_order(&shown, &first);
    assert!(!shown.contains("s3cr3t"), "{shown}");
    let added = windlass(&project, &["trust", "add"]).stdout;
    assert!(added.contains("is trusted\n") && !added.contains("trust add"), "{added}");
    project
        .write(
            SETTINGS,
            "{\"env\": {\"MODE\": \"full\",\n\"PATH\": \"/evil:/bin\"},\n\
             \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"./new\"}]}]}}",
        )
        .unwrap();
    let changed = windlass(&project, &["trust"]).stdout;
    let sections = [
        "changed since you trusted it",
        "Changed:\n  hook on Stop: ./old → ./new (.claude/settings.json:3)\n",
        "  variable MODE (now \"full\") (.claude/settings.json:1)\n",
        "New:\n  variable PATH = \"/evil:/bin\" (.claude/settings.json:2)\n",
        "Gone:\n  variable API_TOKEN\n",
        "Now:\n",
        "run `windlass trust add`.\n",
    ];
    check_order(&changed, &sections);
    let told = windlass(&project, &["config", "show"]).stderr;
    assert!(
        told.contains("Project changed since you trusted it: 3 settings ignored. Review the changes with `windlass trust`."),
        "{told}"
    );
}

/// A directory without a repository may have come in an archive, with all that is in it.
#[test]
fn an_unpacked_archive_runs_nothing_before_trust() {
    const LOCAL: &str = ".claude/settings.local.json";
    let stage = Stage::hello();
    let settings = r#"{"permissions": {"allow": ["Bash"], "deny": ["Bash(curl *)"]}, "hooks": {"SessionStart": [
        {"hooks": [{"type": "command", "command": "date > ran"}]}]}}"#;
    stage.project.write(LOCAL, settings).unwrap();
    let run = |arguments: &[&str]| stage.run(arguments);
    let finished = run(&["-p", "go"]);
    assert!(stage.project.read("ran").is_err(), "{finished:?}");
    assert!(finished.stderr.contains("Project not trusted: 2 settings ignored."), "{}", finished.stderr);
    let explain = |command: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        let finished = run(&["permissions", "explain", "--tool", "Bash", "--input", &input, "--json"]);
        finished.json_lines().unwrap()[0]["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!([explain("curl x"), explain("make")], ["deny", "ask"]);
    let shown = run(&["trust"]).stdout;
    let parts = ["allow rule Bash (.claude/settings.local.json:1)\n", "hook on SessionStart: date > ran"];
    check_order(&shown, &["not trusted", parts[0], parts[1], "windlass trust add"]);
    run(&["trust", "add"]);
    run(&["-p", "go"]);
    assert!(stage.project.read("ran").is_ok());
    assert_eq!(explain("make"), "allow");
}

#[test]
fn what_does_nothing_yet_is_told_and_needs_no_trust() {
    let check = |settings: &str, waiting: &str| {
        let stage = Stage::hello();
        stage.project.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        stage.project.write(".claude/settings.json", settings).unwrap();
        let ignored = "windlass: 3 settings ignored: `windlass doctor`\n";
        assert_eq!(stage.run(&["-p", "go"]).stderr, format!("{waiting}{ignored}"));
        let told = stage.run(&["doctor"]).stdout;
        for name in ["`enabledPlugins`", "`statusLine`", ".mcp.json: MCP servers"] {
            assert!(told.contains(&format!("{name}: Not supported yet; ignored.")), "{told}");
        }
        let mut talk = Talk::begin(&stage, &[]);
        if !waiting.is_empty() {
            talk.sees("[y/N] ");
            std::thread::sleep(Duration::from_millis(50));
            talk.types("n");
        }
        talk.sees("Leave with Ctrl-D");
        talk.types("/exit");
        let (_, screen) = talk.ends();
        assert_eq!(screen.contains("[y/N]"), !waiting.is_empty(), "{screen:?}");
        assert!(!screen.contains("server a") && !screen.contains("statusLine"), "{screen:?}");
        stage
    };
    let idle = r#""statusLine": {"type": "command", "command": "line"}, "enabledPlugins": {"p@m": true}"#;
    let stage = check(&format!("{{{idle}}}"), "");
    assert!(stage.run(&["trust"]).stdout.contains("has no settings that need trust"));
    let one = "windlass: Project not trusted: 1 setting ignored. Review it with `windlass trust`.\n";
    let stage = check(&format!(r#"{{{idle}, "permissions": {{"allow": ["Bash(make)"]}}}}"#), one);
    assert_eq!(stage.run(&["trust", "add"]).code(), Some(0));
    let agreed = std::fs::read_to_string(stage.project.home().join(".windlass/trust.json")).unwrap();
    assert!(agreed.contains("Bash(make)"), "{agreed}");
    for idle in ["statusLine", "enabledPlugins", "server"] {
        assert!(!agreed.contains(idle), "{agreed}");
    }
}

/// Who looks at a hook whose text is as it was sees what is not.
#[test]
fn a_script_that_changed_is_named() {
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh \"tools/a b.sh\""}]}]}}"#;
    let project = with_settings(hook);
    project.write("tools/a b.sh", "true").unwrap();
    windlass(&project, &["trust", "add"]);
    project.write("tools/a b.sh", "false").unwrap();
    let shown = windlass(&project, &["trust"]).stdout;
    check_order(
        &shown,
        &["Changed:\n  hook on Stop: sh \"tools/a b.sh\"; tools/a b.sh changed (.claude/settings.json:1)\n"],
    );
}

#[test]
fn settings_above_the_start_directory_are_told_and_not_read() {
    let stage = Stage::hello();
    stage.project.write(SETTINGS, r#"{"permissions": {"deny": ["Read"], "allow": ["Bash"]}}"#).unwrap();
    stage.project.write(".git/HEAD", "ref: refs/heads/main\n").unwrap();
    stage.project.write("sub/a.txt", "").unwrap();
    let (top, sub) = (stage.project.path(), stage.project.path().join("sub"));
    let told = format!(
        "{}/{SETTINGS}: not read: windlass started in {}. Start it in {} to use these settings.",
        top.display(),
        sub.display(),
        top.display()
    );
    let check = |directory: &Path, arguments: &[&str], expected: bool| {
        let finished = stage.command(arguments).current_dir(directory).run().unwrap();
        let seen = [finished.stdout.as_str(), &finished.stderr].concat();
        assert_eq!(seen.matches(&told).count(), usize::from(expected), "{arguments:?} {seen}");
        seen
    };
    for arguments in [
        &["config", "show"][..],
        &["-p", "go"],
        &["trust"],
        &["permissions", "explain", "--tool", "Read", "--input", "{\"file_path\": \"a.txt\"}"],
    ] {
        check(&sub, arguments, true);
        check(&top, arguments, false);
    }
    check(&sub, &["config", "show", "--setting-sources", "user"], false);
    let seen = check(&sub, &["trust"], true);
    assert!(
        seen.contains(&format!("The project in {} has no settings that need trust.", sub.display())),
        "{seen}"
    );
}

#[test]
fn what_waits_for_trust_is_one_line() {
    let stage = Stage::hello();
    let settings = r#"{"permissions": {"allow": ["Bash(make one)", "Bash(make another)"]}}"#;
    stage.project.write(SETTINGS, settings).unwrap();
    let (_, screen) = on_terminal_of(60, true, &stage, &["config", "show"]);
    assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    let expected = "windlass: Project not trusted: 2 settings ignored. Review them with `windlass trust`.";
    assert!(screen.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(expected), "{screen}");
    let piped = windlass(&stage.project, &["config", "show"]).stderr;
    assert_eq!(piped, format!("{expected}\n"));
}

/// A git that writes down that it was started, and with which environment.
const SPY: &str = "#!/bin/sh\n/usr/bin/env >> \"$0.log\"\nexec /usr/bin/git \"$@\"\n";

fn spy(directory: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(directory).unwrap();
    let git = directory.join("git");
    std::fs::write(&git, SPY).unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory.join("git.log")
}

/// Before trust no git runs at all; after it, one that the user put into an absolute place, without the key. One that came with the
/// project never does.
#[test]
fn no_git_is_started_before_trust_and_none_of_the_project_ever() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}], "repeat": 9}]"#);
    let project = stage.project.path();
    for arguments in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "root"]] {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let git =
            std::process::Command::new("git").args(identity).args(arguments).current_dir(&project).output();
        assert!(git.unwrap().status.success());
    }
    stage.project.write(SETTINGS, r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#).unwrap();
    let own = tempfile::tempdir().unwrap();
    let (theirs, mine) = (spy(&project.join("bin")), spy(own.path()));
    let inside = project.join("bin");
    let system = std::env::var("PATH").unwrap();
    let path = format!("bin:./bin:{}:{}:{system}", inside.display(), own.path().display());
    let run = |arguments: &[&str]| {
        let finished = stage.command(arguments).env("PATH", &path).env("GH_TOKEN", "t").run().unwrap();
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let log = std::fs::read_to_string(&mine).ok();
        let _ = std::fs::remove_file(&mine);
        assert!(!theirs.exists(), "{arguments:?}: {}", std::fs::read_to_string(&theirs).unwrap());
        log
    };
    for arguments in [
        &["-p", "go"][..],
        &["-p", "go", "--continue"],
        &["sessions"],
        &["trust"],
        &["config", "show"],
        &["doctor"],
    ] {
        assert_eq!(run(arguments), None, "{arguments:?}");
    }
    run(&["trust", "add"]);
    assert!(run(&["doctor"]).is_some());
    let environment = run(&["-p", "go"]).unwrap();
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GH_TOKEN"] {
        assert!(!environment.contains(name), "{environment}");
    }
    assert!(
        !environment.contains(inside.to_str().unwrap()) && !environment.contains("=bin:"),
        "{environment}"
    );
}
