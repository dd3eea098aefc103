//! What hooks write for later commands.

use std::ffi::OsString;

use serde_json::{Value, json};
use windlass_hooks::HookHost;
use windlass_protocol::{HookCall, StartSource};
use windlass_sandbox::VariableChanges;

use crate::stage::{Stage, bash, shell, words};

fn start() -> HookCall {
    HookCall::SessionStart { source: StartSource::Startup, model: "m".into() }
}

fn moved() -> HookCall {
    HookCall::CwdChanged { from: "/a".into(), to: "/b".into() }
}

fn all(event: &str, lines: &[&str]) -> Value {
    json!({event: [{"hooks": lines.iter().map(|line| shell(line)).collect::<Vec<_>>()}]})
}

/// What later commands see of an environment.
fn seen(later: &VariableChanges) -> String {
    let before: Vec<(OsString, OsString)> =
        [("PATH", "/bin"), ("GONE", "1")].map(|(name, value)| (name.into(), value.into())).into();
    let after = later.over(&before).into_iter();
    let text = |(name, value): (OsString, OsString)| {
        format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
    };
    after.map(text).collect::<Vec<_>>().join(" ")
}

async fn check(lines: &[&str], expected: &str, told: &str) {
    let stage = Stage::with(&all("SessionStart", lines));
    let later = VariableChanges::new(["HIDDEN".into()]);
    let environment = [("PATH", "/usr/bin:/bin"), ("GONE", "1"), ("HIDDEN", "h")];
    let environment = environment.map(|(name, value)| (name.into(), value.into())).to_vec();
    let runner =
        stage.runner_with(HookHost { environment, variable_changes: Some(later.clone()), ..stage.host() });
    let answer = stage.ask_with(&runner, start()).await;
    assert_eq!(seen(&later), expected, "{lines:?}");
    let seen = words(&answer);
    assert!(if told.is_empty() { seen.is_empty() } else { seen.contains(told) }, "{lines:?}: {seen}");
}

#[tokio::test]
async fn variables_that_hooks_export_are_for_later_commands() {
    const NOTHING: &str = "PATH=/bin GONE=1";
    check(&["true"], NOTHING, "").await;
    check(&["echo 'export A=1' >> $CLAUDE_ENV_FILE"], "PATH=/bin GONE=1 A=1", "").await;
    check(&["echo 'A=1' >> $CLAUDE_ENV_FILE"], NOTHING, "").await;
    check(&["echo 'unset GONE; cd /; f() { :; }' >> $CLAUDE_ENV_FILE"], "PATH=/bin", "").await;
    check(
        &["echo 'echo noise; export A=\"two words\"' > $CLAUDE_ENV_FILE"],
        "PATH=/bin GONE=1 A=two words",
        "",
    )
    .await;
    check(
        &["echo 'export A=1 B=1' >> $CLAUDE_ENV_FILE", "echo 'export B=\"$B-2\"' >> $CLAUDE_ENV_FILE"],
        "PATH=/bin GONE=1 A=1 B=1-2",
        "",
    )
    .await;
    check(&["echo 'export PATH=\"/x:$PATH\"' >> $CLAUDE_ENV_FILE"], "GONE=1 PATH=/x:/usr/bin:/bin", "").await;
    check(&["echo 'export HIDDEN=x SEEN=$HIDDEN' >> $CLAUDE_ENV_FILE"], "PATH=/bin GONE=1 SEEN=", "").await;
}

#[tokio::test]
async fn what_cannot_be_read_is_told() {
    check(
        &["echo 'export A=1\n(' >> $CLAUDE_ENV_FILE"],
        "PATH=/bin GONE=1 A=1",
        "for later commands is invalid",
    )
    .await;
    check(&["echo 'exit 3' >> $CLAUDE_ENV_FILE"], "PATH=/bin GONE=1", "it exits the shell that reads it")
        .await;
}

#[tokio::test]
async fn what_was_written_about_a_directory_counts_until_the_next_one() {
    let mut stage = Stage::with(&all("SessionStart", &["echo 'export A=1 B=1' >> $CLAUDE_ENV_FILE"]));
    stage.add(
        &all("CwdChanged", &["test -e once || echo 'export B=2 C=2' >> $CLAUDE_ENV_FILE; touch once"]),
        "settings.json:2",
    );
    let later = VariableChanges::default();
    let runner = stage.runner_with(HookHost { variable_changes: Some(later.clone()), ..stage.host() });
    stage.ask_with(&runner, start()).await;
    assert_eq!(seen(&later), "PATH=/bin GONE=1 A=1 B=1");
    stage.ask_with(&runner, moved()).await;
    assert_eq!(seen(&later), "PATH=/bin GONE=1 A=1 B=2 C=2");
    stage.ask_with(&runner, moved()).await;
    assert_eq!(seen(&later), "PATH=/bin GONE=1 A=1 B=1");
}

#[tokio::test]
async fn other_hooks_have_no_file() {
    let stage = Stage::one("PreToolUse", shell("echo ${CLAUDE_ENV_FILE:-none} > seen"));
    let environment = [("PATH".into(), "/usr/bin:/bin".into())].to_vec();
    let variable_changes = Some(VariableChanges::default());
    let host = HookHost { environment, variable_changes, ..stage.host() };
    stage.ask_with(&stage.runner_with(host), bash("ls")).await;
    assert_eq!(stage.read("seen"), "none\n");
}
