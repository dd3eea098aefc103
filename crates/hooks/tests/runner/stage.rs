//! A project with hooks, and one question to them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_hooks::{HookHost, HookSet, HookSource, SettingsHooks};
use windlass_ports::{CancellationToken, HookRunner};
use windlass_protocol::{
    CallFacts, CallKind, ExaminedCall, HookAnswer, HookCall, HookPermission, HookScene, RawValue, SessionKey,
    SessionSeed, ToolOutput, ToolProfile, ToolUse,
};

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) set: HookSet,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), set: HookSet::default() }
    }

    /// A project whose settings have these hooks.
    pub(crate) fn with(hooks: &Value) -> Self {
        let mut stage = Self::new();
        stage.add(hooks, "settings.json:1");
        stage
    }

    /// A project with one hook of an event.
    pub(crate) fn one(event: &str, handler: Value) -> Self {
        Self::with(&json!({event: [{"hooks": [handler]}]}))
    }

    #[track_caller]
    pub(crate) fn add(&mut self, hooks: &Value, origin: &str) {
        let problems = self.set.read(hooks, &HookSource::settings(origin));
        assert!(problems.is_empty(), "{problems:?}");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a program to the project.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    pub(crate) fn host(&self) -> HookHost {
        HookHost::new(self.path().to_owned())
    }

    pub(crate) fn runner(&self) -> SettingsHooks {
        self.runner_with(self.host())
    }

    pub(crate) fn runner_with(&self, host: HookHost) -> SettingsHooks {
        let runner = SettingsHooks::new(self.set.clone(), host);
        runner.bind(SessionKey::from(SessionSeed(7)), Some("/log.jsonl".into()));
        runner
    }

    pub(crate) fn scene(&self) -> HookScene {
        HookScene { cwd: Arc::new(self.path().to_owned()), mode: "default", ..HookScene::default() }
    }

    pub(crate) async fn ask(&self, call: HookCall) -> HookAnswer {
        self.ask_with(&self.runner(), call).await
    }

    pub(crate) async fn ask_with(&self, runner: &SettingsHooks, call: HookCall) -> HookAnswer {
        let answer = runner.run(call, self.scene(), CancellationToken::new());
        tokio::time::timeout(Duration::from_secs(30), answer).await.expect("hooks answer in time")
    }
}

pub(crate) fn tool_use(tool: &str, input: &Value) -> ToolUse {
    let input = RawValue::from_string(input.to_string()).unwrap().into();
    ToolUse { id: "toolu_1".into(), name: tool.into(), input }
}

/// A call of which no tool says anything.
pub(crate) fn examined(tool: &str, input: &Value) -> ExaminedCall {
    let facts = Arc::new(CallFacts::new(CallKind::Execute));
    let (profile, tool_use) = (ToolProfile::named(tool), tool_use(tool, input));
    ExaminedCall { tool: tool.into(), profile, tool_use, facts }
}

pub(crate) fn before(tool: &str, input: &Value) -> HookCall {
    HookCall::PreToolUse(examined(tool, input))
}

pub(crate) fn bash(command: &str) -> HookCall {
    before("Bash", &json!({"command": command}))
}

pub(crate) fn after(tool: &str, input: &Value, output: ToolOutput) -> HookCall {
    HookCall::PostToolUse { call: examined(tool, input), output, duration_ms: 5 }
}

pub(crate) fn stop() -> HookCall {
    HookCall::Stop { is_active: false, text: "done".into() }
}

pub(crate) fn prompt(text: &str) -> HookCall {
    HookCall::UserPromptSubmit { prompt: text.into() }
}

/// A command in the shell form.
pub(crate) fn shell(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// An answer in one line; where the hook stands is left out.
pub(crate) fn words(answer: &HookAnswer) -> String {
    let HookAnswer { stop, blocks, permission, input, output, context, notices, failures, .. } = answer;
    let mut words = Vec::new();
    words.extend(stop.as_ref().map(|reason| format!("stop {reason}")));
    words.extend(blocks.iter().map(|text| format!("block {text}")));
    words.extend(permission.as_ref().map(|permission| match permission {
        HookPermission::Deny(why) => format!("deny {why}"),
        HookPermission::Ask(why) => format!("ask {why}"),
        other => format!("{other:?}").to_lowercase(),
    }));
    words.extend(input.as_ref().map(|input| format!("input {}", input.get())));
    words.extend(output.as_ref().map(|output| format!("output {}", output.get())));
    words.extend(context.iter().map(|text| format!("context {text}")));
    let failures = failures.iter().map(|failure| &failure.text);
    words.extend(notices.iter().chain(failures).map(|text| format!("notice {}", nameless(text))));
    words.join(" | ")
}

fn nameless(text: &str) -> String {
    match text.split_once(".hooks[0] ") {
        Some((_, rest)) => rest.to_owned(),
        None => text.to_owned(),
    }
}

/// Whether a process of this id is there.
pub(crate) fn is_alive(pid: &str) -> bool {
    // A process that has ended and that nobody has asked about is not there any more.
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = status.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some(Some(letter)) if letter != 'Z')
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}
