//! Where sessions go: to the directory that the SDK reads if it started the binary, and into `~/.claude` only then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Sdk, outline, says, stage};
use crate::support::Stage;

/// Runs a prompt with these variables, and gives the id of its session.
#[track_caller]
fn run(stage: &Stage, variables: &[(&str, &Path)]) -> String {
    let command = stage.command(&["-p", "go", "--output-format", "json"]);
    let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
    let finished = command.run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    crate::support::result(&finished)["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn an_sdk_finds_what_it_started() {
    let stage = stage(&Value::from(vec![says("Hello."); 6]));
    let (own, shared) = (stage.project.home().join("own"), stage.project.home().join("shared"));
    let (python, version) = (Path::new("sdk-py"), Path::new("0.2.182"));
    let started: [&[(&str, &Path)]; 3] = [
        &[("CLAUDE_CODE_ENTRYPOINT", python), ("CLAUDE_AGENT_SDK_VERSION", version)],
        &[("CLAUDE_CODE_ENTRYPOINT", python), ("WINDLASS_HOME", &own)],
        &[("CLAUDE_AGENT_SDK_VERSION", version)],
    ];
    for config in [None, Some(&*shared)] {
        let Some(mut sdk) = Sdk::configured(&stage, config) else { return };
        for variables in started {
            let shared = config.map(|config| ("CLAUDE_CONFIG_DIR", config));
            let id = run(&stage, &variables.iter().copied().chain(shared).collect::<Vec<_>>());
            assert_eq!(sdk.list(&stage)[0]["session_id"], id.as_str(), "{config:?} {variables:?}");
            assert_eq!(outline(&sdk.messages(&id)), ["user: go", "assistant: Hello."]);
        }
        assert_eq!(sdk.list(&stage).len(), 3);
    }
    assert!(!own.exists() && !stage.project.home().join(".windlass").exists());
}

/// Everything under a folder: names, contents, times.
fn photograph(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut seen = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            seen.extend(photograph(&path));
        }
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        seen.insert(path, (content, metadata.modified().unwrap()));
    }
    seen
}

#[test]
fn nothing_of_another_programs_directory_is_touched() {
    let stage = stage(&Value::from(vec![says("Hello."); 5]));
    let reference = stage.project.home().join(".claude");
    let Some(mut sdk) = Sdk::configured(&stage, Some(&reference)) else { return };
    let other = run(&stage, &[("CLAUDE_CODE_ENTRYPOINT", Path::new("sdk-py"))]);
    std::fs::write(reference.join("CLAUDE.md"), "Answer in rhymes.").unwrap();
    std::fs::write(reference.join("settings.json"), "{\"env\": {}}\n").unwrap();
    let before = photograph(&reference);

    let own = stage.project.home().join("own");
    let id = run(&stage, &[]);
    assert!(stage.last_user_text().contains("Answer in rhymes."), "it is read all the same");
    run(&stage, &[("WINDLASS_HOME", &own)]);
    stage.run(&["-p", "--continue", "go on"]);
    for arguments in [&["sessions", "list"][..], &["sessions", "search", "go"], &["sessions", "rm", &id]] {
        let finished = stage.run(arguments);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    }
    assert_eq!(photograph(&reference), before);
    assert_eq!(sdk.list(&stage).len(), 1, "what a person started is kept elsewhere");
    assert_eq!(sdk.info(&other)["summary"], json!("go"));
    let named = run(&stage, &[("CLAUDE_CONFIG_DIR", &reference)]);
    assert_eq!(sdk.list(&stage)[0]["session_id"], named.as_str(), "unless it is named");
}
