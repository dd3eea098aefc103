//! What is given back for a command: text for the model, and the same as data.

use std::path::PathBuf;

use serde::Serialize;
use windlass_protocol::ToolOutput;

use super::capture::ShownOutput;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BashOutput {
    /// What the command printed, both streams, as far as it is shown.
    pub(crate) stdout: String,
    /// Remarks that are ours.
    pub(crate) stderr: String,
    pub(crate) interrupted: bool,
    pub(crate) is_image: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) background_task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timed_out_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) background_cwd_hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) return_code_interpretation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) persisted_output_path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) persisted_output_size: Option<u64>,
}

#[derive(Default)]
pub(crate) struct BashAnswer {
    pub(crate) failed: bool,
    /// Remarks in front of the output: what went wrong.
    pub(crate) before: Vec<String>,
    /// Remarks behind it: what holds from now on.
    pub(crate) after: Vec<String>,
    pub(crate) output: BashOutput,
    /// Where a command in the background prints to.
    pub(crate) background_file: Option<PathBuf>,
}

impl BashAnswer {
    pub(crate) fn show(&mut self, shown: ShownOutput) {
        shown.text.trim_end().clone_into(&mut self.output.stdout);
        if shown.cut && shown.file.is_some() {
            self.output.persisted_output_size = Some(shown.bytes);
            self.output.persisted_output_path = shown.file;
        }
    }

    pub(crate) fn finish(mut self) -> ToolOutput {
        let remarks: Vec<&str> = self.before.iter().chain(&self.after).map(String::as_str).collect();
        self.output.stderr = remarks.join("\n");
        let mut parts: Vec<&str> = self.before.iter().map(String::as_str).collect();
        parts.push(&self.output.stdout);
        parts.extend(self.after.iter().map(String::as_str));
        parts.retain(|part| !part.is_empty());
        let text = if parts.is_empty() { "(no output)".to_owned() } else { parts.join("\n") };
        let outcome = if self.failed { ToolOutput::error(&text) } else { ToolOutput::text(&text) };
        let files = self.output.persisted_output_path.iter().chain(&self.background_file);
        let readable = files.filter_map(|path| path.canonicalize().ok()).collect();
        ToolOutput { readable, ..outcome.with_structured(&self.output) }
    }
}
