//! The object that a hook reads.

use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_protocol::{
    BatchCall, Block, ExaminedCall, HookCall, HookEvent, HookScene, RawObject, RawValue, SessionKey,
    ToolOutput,
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
        return vec![fields.close()];
    };
    let told = |file: &PathBuf| {
        let mut fields = common_fields(call, scene, identity);
        fields.put("file_path", &path_text(file));
        fields.put("memory_type", memory_type(file, identity.home.as_deref()));
        fields.put("load_reason", reason.name());
        fields.close()
    };
    files.iter().map(told).collect()
}

fn common_fields(call: &HookCall, scene: &HookScene, identity: &SessionIdentity) -> ObjectWriter {
    let event = call.event();
    let mut fields = ObjectWriter::open();
    fields.put("session_id", &identity.key.map(|key| key.id.to_string()).unwrap_or_default());
    fields.put("transcript_path", &identity.transcript.as_deref().map(path_text).unwrap_or_default());
    fields.put("cwd", &path_text(&scene.cwd));
    fields.put("hook_event_name", event.name());
    fields.put("permission_mode", scene.mode);
    if let (Some(prompt), Some(key)) = (&scene.prompt, identity.key) {
        fields.put("prompt_id", &key.said_uuid(prompt.message, &prompt.prompts).to_string());
    }
    let is_about_tools = events::is_of_tool(event) || event == HookEvent::PostToolBatch;
    if let Some(effort) = scene.effort.filter(|_| is_about_tools) {
        fields.put_json("effort", &format!("{{\"level\":\"{}\"}}", effort.name()));
    }
    if let Some(agent) = &scene.agent {
        fields.put("agent_type", agent);
    }
    fields
}

fn put_own_fields(fields: &mut ObjectWriter, call: &HookCall, scene: &HookScene) {
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
            if output.is_error {
                fields.put("error", &middle_cut(&Block::texts(&output.content)));
            } else {
                fields.put_json("tool_response", &response(output));
            }
            fields.put_json("duration_ms", &duration_ms.to_string());
        }
        HookCall::CwdChanged { from, to } => {
            fields.put("old_cwd", &path_text(from));
            fields.put("new_cwd", &path_text(to));
        }
        HookCall::PostToolBatch { calls } => {
            let calls: Vec<String> = calls.iter().map(|call| batch_call(call, scene)).collect();
            fields.put_json("tool_calls", &format!("[{}]", calls.join(",")));
        }
        HookCall::StopFailure { failure, .. } => {
            fields.put("error", events::error_name(call));
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
                fields
                    .put("agent_transcript_path", &transcript.as_deref().map(path_text).unwrap_or_default());
                put_ending(fields, *is_active, text);
            }
        }
        // Each file is told by itself.
        HookCall::InstructionsLoaded { .. } => (),
    }
}

fn put_call(fields: &mut ObjectWriter, call: &HookCall, scene: &HookScene) {
    let Some(ExaminedCall { tool, tool_use, .. }) = call.tool_call() else { return };
    fields.put("tool_name", tool);
    fields.put_json("tool_input", &absolute_input(&tool_use.input.json(), &scene.cwd));
    match call {
        HookCall::PermissionRequest { suggestions, .. } => {
            let list: Vec<&str> = suggestions.iter().map(|update| update.get()).collect();
            fields.put_json("permission_suggestions", &format!("[{}]", list.join(",")));
        }
        HookCall::PermissionDenied { reason, .. } => {
            fields.put("tool_use_id", &tool_use.id);
            fields.put("reason", reason);
        }
        _ => fields.put("tool_use_id", &tool_use.id),
    }
}

fn put_ending(fields: &mut ObjectWriter, is_active: bool, text: &str) {
    fields.put_json("stop_hook_active", if is_active { "true" } else { "false" });
    fields.put("last_assistant_message", text);
}

fn batch_call(call: &BatchCall, scene: &HookScene) -> String {
    let mut fields = ObjectWriter::open();
    fields.put("tool_name", &call.tool);
    fields.put_json("tool_input", &absolute_input(&call.tool_use.input.json(), &scene.cwd));
    fields.put("tool_use_id", &call.tool_use.id);
    fields.put("tool_response", &Block::texts(&call.content));
    fields.close()
}

/// The structured form of an output; its text where there is none.
fn response(output: &ToolOutput) -> String {
    match &output.structured {
        Some(structured) => structured.0.get().to_owned(),
        None => json_text(&Block::texts(&output.content)),
    }
}

/// An input whose file is named in full, whatever the model wrote.
fn absolute_input(input: &RawValue, cwd: &Path) -> String {
    let Ok(fields) = RawObject::parse(input.get()) else { return input.get().to_owned() };
    let named = FILE_FIELDS.into_iter().filter_map(|name| {
        let Ok(Value::String(path)) = serde_json::from_str(fields.get(name)?.get()) else { return None };
        Some((name, json_text(&path_text(&clean(cwd.join(path))))))
    });
    let named: Vec<(&str, String)> = named.collect();
    if named.is_empty() { input.get().to_owned() } else { fields.with(&named) }
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

fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}

struct ObjectWriter(String);

impl ObjectWriter {
    fn open() -> Self {
        Self("{".into())
    }

    fn put(&mut self, name: &str, value: &str) {
        self.put_json(name, &json_text(value));
    }

    fn put_json(&mut self, name: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&json_text(name));
        self.0.push(':');
        // One line is one question to programs that read lines.
        let is_one_line = !json.contains(['\n', '\r']);
        match serde_json::from_str::<Value>(json) {
            Ok(value) if !is_one_line => self.0.push_str(&value.to_string()),
            _ => self.0.push_str(json),
        }
    }

    fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests;
