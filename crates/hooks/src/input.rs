//! The object that a hook reads.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use windlass_protocol::{
    BatchCall, Block, ExaminedCall, HookCall, HookEvent, HookScene, RawObject, RawValue, SessionKey,
};
use windlass_text::paths::clean;

use crate::events;

/// The session that hooks are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionIdentity {
    pub(crate) key: Option<SessionKey>,
    pub(crate) transcript: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

/// Longer errors are cut in the middle.
const ERROR_LETTERS: usize = 10_000;
const FILE_FIELDS: [&str; 2] = ["file_path", "notebook_path"];

/// What hooks read: one object, or one for each file that was loaded.
pub(crate) fn questions(call: &HookCall, scene: &HookScene, identity: &SessionIdentity) -> Vec<String> {
    let HookCall::InstructionsLoaded { files, reason } = call else {
        let mut fields = common_fields(call, scene, identity);
        put_own_fields(&mut fields, call, scene);
        return vec![json_text(&fields)];
    };
    let told = |file: &PathBuf| {
        let mut fields = common_fields(call, scene, identity);
        fields.put("file_path", path_text(file));
        fields.put("memory_type", memory_type(file, identity.home.as_deref()));
        fields.put("load_reason", reason.name());
        json_text(&fields)
    };
    files.iter().map(told).collect()
}

fn common_fields(call: &HookCall, scene: &HookScene, identity: &SessionIdentity) -> ObjectFields {
    let event = call.event();
    let mut fields = ObjectFields::default();
    fields.put("session_id", identity.key.map(|key| key.id.to_string()).unwrap_or_default());
    fields.put("transcript_path", identity.transcript.as_deref().map(path_text).unwrap_or_default());
    fields.put("cwd", path_text(&scene.cwd));
    fields.put("hook_event_name", event.name());
    fields.put("permission_mode", scene.mode);
    if let (Some(prompt), Some(key)) = (&scene.prompt, identity.key) {
        fields.put("prompt_id", key.said_uuid(prompt.message, &prompt.prompts).to_string());
    }
    let is_about_tools = events::is_of_tool(event) || event == HookEvent::PostToolBatch;
    if let Some(effort) = scene.effort.filter(|_| is_about_tools) {
        fields.put("effort", json!({"level": effort.name()}));
    }
    if let Some(agent) = &scene.agent {
        fields.put("agent_type", agent);
    }
    fields
}

fn put_own_fields(fields: &mut ObjectFields, call: &HookCall, scene: &HookScene) {
    match call {
        HookCall::SessionStart { source, model } => {
            fields.put("source", source.name());
            fields.put("model", model);
        }
        HookCall::UserPromptSubmit { prompt } => fields.put("prompt", prompt),
        HookCall::PreToolUse(_) | HookCall::PermissionRequest { .. } | HookCall::PermissionDenied { .. } => {
            put_call(fields, call, scene);
        }
        HookCall::PostToolUse { output, duration_ms, .. } => {
            put_call(fields, call, scene);
            let text = || Block::texts(&output.content);
            match &output.structured {
                _ if output.is_error => fields.put("error", middle_cut(&text())),
                Some(structured) => fields.put("tool_response", &structured.0),
                None => fields.put("tool_response", text()),
            }
            fields.put("duration_ms", duration_ms);
        }
        HookCall::CwdChanged { from, to } => {
            fields.put("old_cwd", path_text(from));
            fields.put("new_cwd", path_text(to));
        }
        HookCall::PostToolBatch { calls } => {
            let calls = calls.iter().map(|call| batch_call(call, scene));
            fields.put("tool_calls", calls.collect::<Vec<_>>());
        }
        HookCall::StopFailure { terminal, failure } => {
            fields.put("error", terminal.failure_category(failure.as_deref()));
            if let Some(failure) = failure {
                fields.put("error_details", &failure.message);
                fields.put("last_assistant_message", &failure.message);
            }
        }
        HookCall::PreCompact { trigger, instructions } => {
            fields.put("trigger", events::trigger_name(*trigger));
            fields.put("custom_instructions", instructions);
        }
        HookCall::PostCompact { trigger, summary } => {
            fields.put("trigger", events::trigger_name(*trigger));
            fields.put("compact_summary", summary);
        }
        HookCall::Notification { kind, message, title } => {
            fields.put("message", message);
            if let Some(title) = title {
                fields.put("title", title);
            }
            fields.put("notification_type", kind);
        }
        HookCall::SessionEnd { reason } => fields.put("reason", reason.name()),
        HookCall::Stop { is_active, text } => put_ending(fields, *is_active, text),
        HookCall::SubagentStart { id, kind } | HookCall::SubagentStop { id, kind, .. } => {
            fields.put("agent_id", id);
            fields.put("agent_type", kind);
            if let HookCall::SubagentStop { is_active, text, transcript, .. } = call {
                fields.put("agent_transcript_path", transcript.as_deref().map(path_text).unwrap_or_default());
                put_ending(fields, *is_active, text);
            }
        }
        // Each file is told by itself.
        HookCall::InstructionsLoaded { .. } => (),
    }
}

fn put_call(fields: &mut ObjectFields, call: &HookCall, scene: &HookScene) {
    let Some(ExaminedCall { tool, tool_use, .. }) = call.tool_call() else { return };
    fields.put("tool_name", tool);
    fields.put("tool_input", absolute_input(&tool_use.input.json(), &scene.cwd));
    match call {
        HookCall::PermissionRequest { suggestions, .. } => {
            fields.put("permission_suggestions", suggestions);
        }
        HookCall::PermissionDenied { reason, .. } => {
            fields.put("tool_use_id", &tool_use.id);
            fields.put("reason", reason);
        }
        _ => fields.put("tool_use_id", &tool_use.id),
    }
}

fn put_ending(fields: &mut ObjectFields, is_active: bool, text: &str) {
    fields.put("stop_hook_active", is_active);
    fields.put("last_assistant_message", text);
}

fn batch_call(call: &BatchCall, scene: &HookScene) -> ObjectFields {
    let mut fields = ObjectFields::default();
    fields.put("tool_name", &call.tool);
    fields.put("tool_input", absolute_input(&call.tool_use.input.json(), &scene.cwd));
    fields.put("tool_use_id", &call.tool_use.id);
    fields.put("tool_response", Block::texts(&call.content));
    fields
}

/// An input whose file is named in full, whatever the model wrote.
fn absolute_input(input: &RawValue, cwd: &Path) -> Box<RawValue> {
    let Ok(fields) = RawObject::parse(input.get()) else { return input.to_owned() };
    let named = FILE_FIELDS.into_iter().filter_map(|name| {
        let Ok(Value::String(path)) = serde_json::from_str(fields.get(name)?.get()) else { return None };
        Some((name, json_text(&path_text(&clean(cwd.join(path))))))
    });
    let named: Vec<(&str, String)> = named.collect();
    if named.is_empty() {
        return input.to_owned();
    }
    RawValue::from_string(fields.with(&named)).unwrap_or_else(|_| input.to_owned())
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn memory_type(file: &Path, home: Option<&Path>) -> &'static str {
    let is_local = file.file_name().is_some_and(|name| name.to_string_lossy().contains(".local."));
    let is_users = |home: &Path| {
        [".claude", ".windlass", ".config"].iter().any(|place| file.starts_with(home.join(place)))
    };
    match home {
        _ if file.starts_with("/etc") => "Managed",
        _ if is_local => "Local",
        Some(home) if is_users(home) => "User",
        _ => "Project",
    }
}

fn middle_cut(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= ERROR_LETTERS {
        return text.to_owned();
    }
    let half = ERROR_LETTERS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(letters - half).collect();
    format!("{head}\n… ({} characters omitted)\n{tail}", letters - 2 * half)
}

fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The fields of an object, in order. None spans lines: one line is one question to programs that read lines.
#[derive(Default)]
struct ObjectFields(Vec<(&'static str, Box<RawValue>)>);

impl ObjectFields {
    fn put(&mut self, name: &'static str, value: impl Serialize) {
        let Ok(mut json) = to_raw_value(&value) else { return };
        if json.get().contains(['\n', '\r'])
            && let Ok(Ok(line)) = serde_json::from_str(json.get()).map(|value: Value| to_raw_value(&value))
        {
            json = line;
        }
        self.0.push((name, json));
    }
}

impl Serialize for ObjectFields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, json)| (name, json)))
    }
}

#[cfg(test)]
mod tests;
