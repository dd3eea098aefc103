//! The tool `CountLines`: how long a file is, without its content.

use serde::Deserialize;
use windlass::file_facts;
use windlass::ports::{ExamineContext, JsonSchema, Tool, ToolContext};
use windlass::protocol::{CallFacts, CallKind, ToolOutput, ToolProfile, ToolSubject};

/// Counts the lines of a text file without showing them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "windlass::ports::schemars")]
pub(crate) struct CountLinesInput {
    /// The file: absolute, or relative to the working directory.
    file_path: String,
}

/// The tool `CountLines`.
pub(crate) struct CountLines;

impl Tool for CountLines {
    type Input = CountLinesInput;
    const NAME: &'static str = "CountLines";
    const PROFILE: ToolProfile = ToolProfile {
        aliases: &["LineCount"],
        kind: CallKind::Read,
        subject: ToolSubject::File("file_path"),
        is_clearable: true,
        ..ToolProfile::DEFAULT
    };

    fn facts(&self, input: &CountLinesInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        file_facts(CallKind::Read, &input.file_path, cx)
    }

    async fn run(&self, _: CountLinesInput, cx: ToolContext) -> ToolOutput {
        // The very file that permission was decided on, wherever a link leads by now.
        let Some(path) = cx.facts.paths.first().and_then(|path| path.resolved.as_ref()) else {
            return ToolOutput::error("There is no such file.");
        };
        match tokio::fs::read_to_string(path).await {
            Ok(text) => ToolOutput::text(&format!("{} lines", text.lines().count())),
            Err(error) => ToolOutput::error(&format!("Cannot read {}: {error}.", path.display())),
        }
    }
}
