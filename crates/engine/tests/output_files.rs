//! Output that is long or comes later goes to a file outside the working directories. The model may read that file, and
//! stop what writes it.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windlass_engine::{Engine, Permissions, Update};
use windlass_models::model_card;
use windlass_ports::{AnyTool, BoxStream, ModelClient};
use windlass_protocol::{Block, ModelEvent, ModelRequest, RawValue, StopReason};
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, Read, ReadLimits, TaskStop, Tasks};

/// Makes its calls one after the other: the tool, and its input, where `{file}` is the file that the result before
/// names, once something is in it.
struct Curious {
    calls: &'static [(&'static str, &'static str)],
    made: AtomicUsize,
}

impl ModelClient for Curious {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let last = request.transcript.last().unwrap().blocks.first().unwrap().json().to_owned();
        let made = self.made.fetch_add(1, Ordering::SeqCst);
        let call = self.calls.get(made).copied();
        let response = async move {
            let (block, stop) = match call {
                Some((tool, input)) if input.contains("{file}") => (
                    call_of(made, tool, &input.replace("{file}", &file_in(&last).await)),
                    StopReason::ToolUse,
                ),
                Some((tool, input)) => (call_of(made, tool, input), StopReason::ToolUse),
                None => (Block::text("ok"), StopReason::EndTurn),
            };
            [ModelEvent::Block { index: 0, block }, ModelEvent::Ended { stop, usage: Box::default() }]
        };
        futures_util::stream::once(response).flat_map(futures_util::stream::iter).boxed()
    }
}

fn call_of(number: usize, tool: &str, input: &str) -> Block {
    Block::tool_use(&format!("toolu_{number}"), tool, RawValue::from_string(input.into()).unwrap())
}

/// The file that a result names. A command in the background writes to it in its own time.
async fn file_in(result: &str) -> String {
    let mut words = result.split(['"', ' ', '\\', ';', ']']);
    let file = words.find(|word| word.starts_with('/')).unwrap_or("/no file is named").trim_end_matches('.');
    let began = Instant::now();
    while std::fs::metadata(file).is_ok_and(|file| file.len() == 0) && began.elapsed().as_secs() < 10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    file.to_owned()
}

/// The results of the calls where only Bash is allowed beyond what every session may do.
async fn results_of(calls: &'static [(&'static str, &'static str)]) -> Vec<String> {
    let project = tempfile::tempdir().unwrap();
    let tasks = Tasks::new(None);
    let tools: Vec<Arc<dyn AnyTool>> = vec![
        Arc::new(Bash::new(BashSettings::new(Launcher::direct()), tasks.clone())),
        Arc::new(Read::new(ReadLimits::default())),
        Arc::new(TaskStop::new(tasks)),
    ];
    let permissions = Permissions {
        rules: windlass_engine::Rules::about_tools(windlass_engine::Behaviour::Allow, ["Bash"].into_iter()),
        ..Permissions::default()
    };
    let model = Curious { calls, made: AtomicUsize::new(0) };
    let engine = Engine::builder(Arc::new(model), model_card("x"))
        .tools(tools)
        .working_directory(project.path().to_owned())
        .with(|config| config.permissions = permissions)
        .build()
        .unwrap();
    let mut session = engine.session();
    let updates: Vec<Update> = session.run("go").collect().await;
    let result = |update: &Update| match update {
        Update::ToolResult { result, .. } => Some(result.json().to_owned()),
        _ => None,
    };
    updates.iter().filter_map(result).collect()
}

#[tokio::test]
async fn the_file_behind_a_long_output_can_be_read_without_asking() {
    let results = results_of(&[
        ("Bash", r#"{"command":"seq 100000"}"#),
        ("Read", r#"{"file_path":"{file}","offset":99999,"limit":2}"#),
    ])
    .await;
    assert!(results[1].contains(r"99999\t99999") && results[1].contains(r"100000\t100000"), "{results:#?}");
}

#[tokio::test]
async fn the_output_of_a_command_in_the_background_can_be_read_without_asking() {
    let results = results_of(&[
        ("Bash", r#"{"command":"echo so far; sleep 30","run_in_background":true}"#),
        ("Read", r#"{"file_path":"{file}"}"#),
    ])
    .await;
    assert!(results[1].contains(r"1\tso far") && !results[1].contains("is_error"), "{results:#?}");
}

#[tokio::test]
async fn a_command_in_the_background_can_be_stopped_by_every_name_of_the_tool() {
    const BACKGROUND: (&str, &str) = ("Bash", r#"{"command":"sleep 30","run_in_background":true}"#);
    let results = results_of(&[
        BACKGROUND,
        BACKGROUND,
        BACKGROUND,
        ("TaskStop", r#"{"task_id":"bash-1"}"#),
        ("KillShell", r#"{"shell_id":"bash-2"}"#),
        ("KillBash", r#"{"shell_id":"bash-3"}"#),
        ("KillBash", r#"{"shell_id":"bash-3"}"#),
    ])
    .await;
    for (number, result) in (1..=3).zip(&results[3..]) {
        assert!(result.contains(&format!("Stopped task bash-{number}: sleep 30")), "{results:#?}");
    }
    assert!(results[6].contains("Task bash-3 has already ended"), "{results:#?}");
}
