//! Secrets in what tools print reach neither the model nor whoever watches.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use windlass_engine::ports::{
    AnyTool, BoxFuture, ChangeWatcher, ExamineContext, JsonSchema, Tool, ToolContext,
};
use windlass_engine::protocol::{
    AmbientChanges, BlockKind, CallFacts, CallKind, FileChange, FileSeen, ToolOutput, ToolProgress,
};
use windlass_engine::{Block, Engine, EngineBuilder, Update};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_secrets::Redactor;

const KNOWN: &str = "open-sesame-open";

/// Shaped like a token of a well-known kind.
fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

/// Prints secrets wherever a tool can.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "windlass_ports::schemars")]
struct LeakInput {}

struct Leak;

impl Tool for Leak {
    type Input = LeakInput;
    const NAME: &'static str = "Leak";

    fn facts(&self, _: &LeakInput, _: &ExamineContext) -> Result<CallFacts, String> {
        let kind = CallKind::Read;
        Ok(CallFacts { is_shared: true, target: "leak".into(), ..CallFacts::new(kind) })
    }

    async fn run(&self, _: LeakInput, cx: ToolContext) -> ToolOutput {
        let both = format!("first {}, then {KNOWN}", token());
        cx.progress.send(cx.call, ToolProgress { text: both.clone() }).await;
        cx.progress.send(cx.call, ToolProgress { text: format!("half of it: {}", &KNOWN[..12]) }).await;
        // News of a call that is over is no news.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let other = Block::from_json(&format!(r#"{{"type":"search_result","title":"{both}"}}"#)).unwrap();
        let picture = Block::image("image/png", KNOWN);
        let structured = serde_json::json!({ "stdout": both, "lines": [both], "count": 1.0 });
        ToolOutput::blocks(vec![Block::text(&both), other, picture])
            .with_structured(&structured)
            .with_seen(read())
    }
}

/// A file that the conversation knows, so that somebody looks whether it changes.
fn read() -> FileSeen {
    FileSeen { path: "/x".into(), hash: 0, lines: [].into(), is_whole: true, shown: vec![], stamp: None }
}

/// Finds files with secrets in them.
struct Around;

impl ChangeWatcher for Around {
    fn look(
        &self,
        _: Vec<FileSeen>,
        _: Vec<(std::path::PathBuf, usize)>,
    ) -> BoxFuture<'static, AmbientChanges> {
        let change = FileChange { path: "/x".into(), hash: 1, note: format!("It says {KNOWN} now.") };
        let found = AmbientChanges { changed: vec![change], ..AmbientChanges::default() };
        Box::pin(async move { found })
    }
}

fn builder() -> EngineBuilder {
    let script =
        r#"{"responses": [{"blocks": [{"tool": "Leak", "input": {}}]}, {"blocks": [{"text": "ok"}]}]}"#;
    let model = ScriptModel::new(Script::parse(script).unwrap());
    Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(vec![Arc::new(Leak) as Arc<dyn AnyTool>])
        .change_watcher(Arc::new(Around))
}

/// Everything that a caller sees, and the transcript.
async fn seen(builder: EngineBuilder) -> (Vec<Update>, String) {
    let mut session = builder.build().unwrap().session();
    let updates = session.run("go").collect().await;
    (updates, session.messages().to_json().clone())
}

#[tokio::test(start_paused = true)]
async fn known_values_and_shapes_are_hidden_everywhere() {
    let (updates, transcript) = seen(builder().redactor(Redactor::new([KNOWN]))).await;
    let hidden = "first [redacted: GitHub token], then [redacted: known secret]";
    let mut checked = 0;
    for update in &updates {
        match update {
            Update::ToolProgress { progress, .. } => {
                let cut = "half of it: [redacted: known secret]";
                assert!([hidden, cut].contains(&&*progress.text), "{}", progress.text);
                checked += 1;
            }
            Update::ToolResult { result, structured, .. } => {
                let blocks = result.result_blocks();
                assert_eq!(blocks[0].as_text(), Some(hidden));
                assert_eq!(blocks[1].json(), format!(r#"{{"type":"search_result","title":"{hidden}"}}"#));
                assert_eq!(blocks[2].kind(), &BlockKind::Image);
                assert!(blocks[2].json().contains(KNOWN), "a picture was changed");
                let expected = format!(r#"{{"stdout":"{hidden}","lines":["{hidden}"],"count":1.0}}"#);
                assert_eq!(structured.as_ref().unwrap().0.get(), expected);
                checked += 1;
            }
            _ => {}
        }
    }
    assert_eq!(checked, 3);
    let picture = Block::image("image/png", KNOWN);
    let transcript = transcript.replace(picture.json(), "");
    assert!(!transcript.contains(KNOWN) && !transcript.contains(&token()), "{transcript}");
    assert!(
        transcript.contains(hidden) && transcript.contains("It says [redacted: known secret] now."),
        "{transcript}"
    );
}

#[tokio::test(start_paused = true)]
async fn shapes_are_hidden_without_being_asked_for() {
    let (updates, transcript) = seen(builder()).await;
    let everything = format!("{updates:?}{transcript}");
    assert!(!everything.contains(&token()) && everything.contains(KNOWN), "{everything}");
}
