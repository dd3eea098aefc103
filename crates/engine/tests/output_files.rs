//! Long output goes to a file outside the working directories, and the model may read that file.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use windlass_engine::{Engine, Permissions, Update};
use windlass_models::model_card;
use windlass_ports::{AnyTool, BoxStream, ModelClient};
use windlass_protocol::{Block, ModelEvent, ModelRequest, RawValue, StopReason};
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, Read, ReadLimits, Tasks};

/// Runs a command with long output, then reads the end of the file that the result names.
#[derive(Default)]
struct Curious(AtomicUsize);

impl ModelClient for Curious {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let last = request.transcript.last().unwrap().blocks.first().unwrap().json().to_owned();
        let (block, stop) = match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => (call("1", "Bash", r#"{"command":"seq 100000"}"#), StopReason::ToolUse),
            1 => {
                let mut words = last.split(['"', ' ', '\\', ';', ']']);
                let file = words.find(|word| word.starts_with('/')).unwrap_or("/no file is named");
                let input = format!(r#"{{"file_path":"{file}","offset":99999,"limit":2}}"#);
                (call("2", "Read", &input), StopReason::ToolUse)
            }
            _ => (Block::text("ok"), StopReason::EndTurn),
        };
        let events =
            [ModelEvent::Block { index: 0, block }, ModelEvent::Ended { stop, usage: Box::default() }];
        futures_util::stream::iter(events).boxed()
    }
}

fn call(id: &str, tool: &str, input: &str) -> Block {
    Block::tool_use(id, tool, &RawValue::from_string(input.into()).unwrap())
}

#[tokio::test]
async fn the_file_behind_a_long_output_can_be_read_without_asking() {
    let project = tempfile::tempdir().unwrap();
    let tasks = Tasks::new(None);
    let tools: Vec<Arc<dyn AnyTool>> = vec![
        Arc::new(Bash::new(BashSettings::new(Launcher::direct()), tasks)),
        Arc::new(Read::new(ReadLimits::default())),
    ];
    let permissions = Permissions { allowed: ["Bash".into()].into(), ..Permissions::default() };
    let engine = Engine::builder(Arc::new(Curious::default()), model_card("x"))
        .tools(tools)
        .working_directory(project.path().to_owned())
        .permissions(permissions)
        .build()
        .unwrap();
    let mut session = engine.session();
    let updates: Vec<Update> = session.run("go").collect().await;
    let results: Vec<String> = updates
        .iter()
        .filter_map(|update| match update {
            Update::ToolResult { result, .. } => Some(result.json().to_owned()),
            _ => None,
        })
        .collect();
    assert!(results[1].contains(r"99999\t99999") && results[1].contains(r"100000\t100000"), "{results:#?}");
}
