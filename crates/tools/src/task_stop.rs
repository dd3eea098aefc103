//! The tool `TaskStop`: ends a background task.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_ports::{ExamineContext, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, ToolOutput, ToolProfile};

use crate::tasks::{TaskInfo, Tasks};

/// Processes that ignore the request are killed after two seconds.
const GONE_WITHIN: Duration = Duration::from_secs(4);

/// Stops a command that runs in the background, with everything it started.
///
/// Use it when a server or watcher is no longer needed. The output file stays readable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStopInput {
    /// The id that Bash gave when the command went to the background.
    #[schemars(required)]
    pub(crate) task_id: Option<String>,
    /// Former name of `task_id`.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) shell_id: Option<String>,
}

impl TaskStopInput {
    fn id(&self) -> Result<&str, String> {
        match self.task_id.as_deref().or(self.shell_id.as_deref()) {
            Some(id) if !id.trim().is_empty() => Ok(id.trim()),
            _ => {
                Err("`task_id` is missing. Give the id that Bash returned for the background task."
                    .to_owned())
            }
        }
    }
}

/// The tool `TaskStop`.
#[derive(Clone, Debug)]
pub struct TaskStop {
    tasks: Arc<Tasks>,
}

impl TaskStop {
    /// For the tasks of one session.
    pub fn new(tasks: Arc<Tasks>) -> Self {
        Self { tasks }
    }
}

impl Tool for TaskStop {
    type Input = TaskStopInput;
    const NAME: &'static str = "TaskStop";
    const SPEC: Option<&'static str> = Some(include_str!("../specs/TaskStop.json"));
    const PROFILE: ToolProfile = ToolProfile::TASK_STOP;

    fn facts(&self, input: &TaskStopInput, _: &ExamineContext) -> Result<CallFacts, String> {
        let target = input.id()?.to_owned();
        Ok(CallFacts { target, ..CallFacts::new(CallKind::Session) })
    }

    async fn run(&self, input: TaskStopInput, cx: ToolContext) -> ToolOutput {
        let (TaskInfo { id, command, .. }, done) = match input.id().and_then(|id| self.tasks.stop(id)) {
            Ok(stopping) => stopping,
            Err(error) => return ToolOutput::error(&error),
        };
        let message = tokio::select! {
            () = done.cancelled() => format!("Stopped task {id}: {command}"),
            () = tokio::time::sleep(GONE_WITHIN) => format!("Stopping task {id}; it has not ended yet: \
                                                             {command}"),
            () = cx.cancel.cancelled() => format!("Stopping task {id}: {command}"),
        };
        let output =
            json!({ "message": message, "task_id": id, "task_type": "local_bash", "command": command });
        ToolOutput::text(&message).with_structured(&output)
    }
}

#[cfg(test)]
mod tests {
    use windlass_ports::AnyTool;

    use super::*;

    #[test]
    fn the_model_is_told_one_name_and_both_are_understood() {
        let schema = TaskStop::new(Tasks::new(None)).spec().input_schema;
        assert!(
            schema.get().contains(r#""required":["task_id"]"#) && !schema.get().contains("shell_id"),
            "{schema}"
        );
        let check = |input: &str, expected: Option<&str>| {
            let input: TaskStopInput = serde_json::from_str(input).unwrap();
            assert_eq!(input.id().ok(), expected);
        };
        check(r#"{"task_id":"bash-1"}"#, Some("bash-1"));
        check(r#"{"shell_id":"bash-1"}"#, Some("bash-1"));
        check("{}", None);
    }
}
