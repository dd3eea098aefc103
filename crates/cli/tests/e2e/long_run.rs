//! A run far longer than the window: the log is complete, and no request ever breaks a rule of the provider.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_testkit::{Exchange, FinishedProcess, Project, Script, Server, ServerBuilder};

use crate::support::{STREAM, WINDLASS, result};

const TURNS: usize = 150;
const FILE_BYTES: usize = 6_000;
const WINDOW_TOKENS: u64 = 60_000;
const TIMEOUT: Duration = Duration::from_mins(2);

/// What the request for a summary says.
const SUMMARISER: &str = "will be replaced by what you write now";
/// The beta that says what becomes of thinking behind a changed prefix.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// A model that binds thinking to its prefix, and one that does not.
const BINDING: &str = "claude-opus-5-5";
const FREE: &str = "claude-opus-5";

/// What makes room, by variables of the environment.
type Way = &'static [(&'static str, &'static str)];
/// Compactions, which show the files read last again.
const FILES: Way = &[];
/// Compactions, which keep the last rounds as they were.
const TAILS: Way = &[("WINDLASS_COLLAPSE", "0"), ("WINDLASS_FILES_ATTACHED", "0")];
/// Spans that give way to summaries one by one.
const SPANS: Way = &[("WINDLASS_SPAN_TOKENS", "5000"), ("WINDLASS_ROUNDS_KEPT", "2")];
/// Margins so wide that the provider has not enough to clear before the transcript is rewritten.
const MARGINS: Way = &[
    ("WINDLASS_OUTPUT_RESERVE_TOKENS", "20000"),
    ("WINDLASS_COMPACT_MARGIN_TOKENS", "13000"),
    ("WINDLASS_WARNING_MARGIN_TOKENS", "20000"),
];
/// Fewer changes of the transcript prove nothing.
const REWRITES_MIN: usize = 5;

/// A run that is over, and the server it spoke to.
struct LongRun {
    finished: FinishedProcess,
    lines: Vec<Value>,
    server: Server,
}

/// Each turn thinks, says so and reads a file.
fn script() -> Script {
    let turn = |turn: usize| {
        json!({"blocks": [
            {"thinking": format!("File {turn} is next.")},
            {"text": format!("Turn {turn}.")},
            {"tool": "Read", "input": {"file_path": format!("file-{turn}.txt")}},
        ]})
    };
    let always =
        |when: Value, text: &str| json!({"when": when, "blocks": [{"text": text}], "repeat": 10 * TURNS});
    let mut responses = vec![
        always(json!({"contains": SUMMARISER}), "They read one file after the other."),
        always(json!({"model": "haiku"}), "Files were read."),
    ];
    responses.extend((0..TURNS).map(turn));
    responses.push(json!({"blocks": [{"text": "All read."}]}));
    Script::parse(&json!({"responses": responses}).to_string()).unwrap()
}

fn run(model: &str, way: Way, server: impl FnOnce(ServerBuilder) -> ServerBuilder) -> LongRun {
    let project = Project::new().unwrap();
    for turn in 0..TURNS {
        let line = |number: usize| format!("{turn} and {number} make {}\n", turn + number);
        let text: String = (0..FILE_BYTES / 20).map(line).collect();
        project.write(format!("file-{turn}.txt"), text).unwrap();
    }
    let server = server(Server::builder(script()).window_tokens(WINDOW_TOKENS)).start().unwrap();
    let command = project.command(WINDLASS).server(&server).args(STREAM).args(["--model", model]);
    let command = command.env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", WINDOW_TOKENS.to_string());
    let command = MARGINS.iter().chain(way).fold(command, |command, (name, value)| command.env(name, value));
    let finished = command.timeout(TIMEOUT).run().unwrap();
    let lines = finished.json_lines().unwrap();
    LongRun { finished, lines, server }
}

impl LongRun {
    /// Every call and every result once and in order, every compaction with its numbers, one result at the end.
    fn check_log(&self) {
        let last = result(&self.finished);
        assert_eq!((&last["subtype"], &last["result"]), (&json!("success"), &json!("All read.")), "{last}");
        assert_eq!((&last["is_error"], &last["num_turns"]), (&json!(false), &json!(TURNS + 1)));
        assert_eq!((self.finished.code(), self.finished.stderr.as_str()), (Some(0), ""));
        let expected: Vec<String> = (1..=TURNS)
            .flat_map(|turn| ["use", "result"].map(|what| format!("{what} toolu_script_{turn}_3")))
            .collect();
        assert_eq!(self.calls(), expected);
        let boundaries: Vec<&Value> =
            self.lines.iter().filter(|line| line["subtype"] == "compact_boundary").collect();
        for line in &boundaries {
            let metadata = &line["compact_metadata"];
            let count = |name: &str| metadata[name].as_u64().unwrap();
            assert_eq!(metadata["trigger"], "auto");
            assert!(count("pre_tokens") > count("post_tokens") && count("post_tokens") > 0, "{line}");
        }
        assert_eq!(self.asked_by(Asker::Summariser).len(), boundaries.len());
        let rewrites = self.rewritten_before().iter().filter(|rewritten| **rewritten).count();
        assert!(rewrites >= REWRITES_MIN, "the transcript was rewritten {rewrites} times");
        assert!(self.server.is_used_up());
    }

    /// The calls and results that were shown.
    fn calls(&self) -> Vec<String> {
        let blocks = self.lines.iter().filter_map(|line| line["message"]["content"].as_array()).flatten();
        let call = |block: &Value| match block["type"].as_str()? {
            "tool_use" => Some(format!("use {}", block["id"].as_str()?)),
            "tool_result" => Some(format!("result {}", block["tool_use_id"].as_str()?)),
            _ => None,
        };
        blocks.filter_map(call).collect()
    }

    fn asked_by(&self, asker: Asker) -> Vec<Exchange> {
        let valid = |exchange: &Exchange| exchange.refusal.is_none();
        self.server.exchanges().into_iter().filter(|one| valid(one) && Asker::of(one) == asker).collect()
    }

    /// Each request goes on where the one before it stopped, unless the log tells of a change in between.
    fn check_prefixes(&self) {
        let prompts: Vec<String> = self.asked_by(Asker::Run).iter().map(Exchange::prompt).collect();
        let rewritten = self.rewritten_before();
        assert_eq!((prompts.len(), rewritten.len()), (TURNS + 1, TURNS + 1));
        let mut extended = 0;
        for turn in 1..prompts.len() {
            let before = prompts[turn - 1].strip_suffix(']').unwrap();
            let extends = prompts[turn].starts_with(before);
            assert!(extends || rewritten[turn], "request {turn} changes what was said before");
            extended += usize::from(extends);
        }
        assert!(extended * 2 > TURNS, "only {extended} requests kept their prefix");
    }

    /// For each answer, whether the transcript was rewritten since the one before.
    fn rewritten_before(&self) -> Vec<bool> {
        let (mut answers, mut rewritten) = (Vec::new(), false);
        let mut current = Value::Null;
        for line in &self.lines {
            let content = line["content"].as_str().unwrap_or_default();
            rewritten |= ["compact_boundary", "snip_boundary"].iter().any(|name| line["subtype"] == *name)
                || ["Cleared ", "by a summary"].iter().any(|words| content.contains(words));
            if line["type"] == "assistant" && line["message"]["id"] != current {
                current = line["message"]["id"].clone();
                answers.push(std::mem::take(&mut rewritten));
            }
        }
        answers
    }
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Run,
    Summariser,
    Background,
}

impl Asker {
    fn of(exchange: &Exchange) -> Self {
        let body = exchange.json();
        let last = body["messages"].as_array().and_then(|messages| messages.last()).unwrap().to_string();
        match () {
            () if exchange.model().contains("haiku") => Self::Background,
            () if last.contains(SUMMARISER) => Self::Summariser,
            () => Self::Run,
        }
    }
}

#[test]
fn the_log_of_a_long_run_is_complete_and_its_requests_only_grow() {
    for way in [FILES, SPANS] {
        let run = run(FREE, way, |server| server);
        run.check_log();
        run.check_prefixes();
        assert_eq!(run.server.refusals(), [""; 0], "{way:?}");
    }
}

#[test]
fn thinking_that_is_bound_to_its_prefix_is_never_refused() {
    for way in [TAILS, SPANS] {
        let run = run(BINDING, way, ServerBuilder::bind_thinking);
        run.check_log();
        run.check_prefixes();
        assert_eq!(run.server.refusals(), [""; 0], "{way:?}");
    }
}

/// Nobody drops here what a rewrite left behind: what goes out must be right.
#[test]
fn bound_thinking_needs_no_help_of_the_provider() {
    for way in [TAILS, SPANS] {
        let run = run(BINDING, way, |server| server.bind_thinking().refuse_beta(BINDING_BETA));
        run.check_log();
        run.check_prefixes();
        let refusals = run.server.refusals();
        assert!(
            matches!(&refusals[..], [refusal] if refusal.contains(BINDING_BETA)),
            "{way:?}: {refusals:?}"
        );
    }
}

/// A provider that binds thinking although nothing is known of that: each refusal is cured before anybody sees it.
#[test]
fn a_refused_prefix_never_reaches_the_user() {
    for way in [TAILS, SPANS] {
        let run = run(FREE, way, ServerBuilder::bind_thinking);
        run.check_log();
        let refusals = run.server.refusals();
        let is_about_thinking = |refusal: &String| refusal.contains("`signature` in `thinking`");
        assert!(!refusals.is_empty() && refusals.iter().all(is_about_thinking), "{way:?}: {refusals:?}");
        assert!(!run.finished.stdout.contains("`signature` in `thinking`"), "{}", run.finished.stdout);
    }
}
