//! The examples of the page about hooks do what the page says.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_hooks::{AskModel, AskModelError, HookHost, HookSet, HookSource};
use windlass_ports::BoxFuture;
use windlass_protocol::{HookCall, HookEvent, ToolOutput};

use crate::stage::{Stage, after, before, examined, prompt, words};
use crate::web::{response, server};

const PAGE: &str = include_str!("../../../../docs/HOOKS.md");

/// One example: settings, what belongs to them, and lines of questions and answers.
#[derive(Default)]
struct Example {
    settings: String,
    scripts: Vec<(String, String)>,
    http: Option<String>,
    model: Option<String>,
    lines: Vec<String>,
}

/// The examples of the page, in order.
fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = block.join("\n") + "\n";
        let (kind, name) = info.split_once(' ').unwrap_or((info, ""));
        if kind == "json" {
            examples.push(Example { settings: text, ..Example::default() });
            continue;
        }
        let example = examples.last_mut().expect("settings come first");
        match kind {
            "sh" => example.scripts.push((name.to_owned(), text)),
            "http" => example.http = Some(text),
            "model" => example.model = Some(text),
            "text" => example.lines.extend(block.into_iter().map(str::to_owned)),
            other => panic!("{other} is no part of an example"),
        }
    }
    examples
}

struct Says(String);

impl AskModel for Says {
    fn ask(&self, _: Option<&str>, _: String) -> BoxFuture<'static, Result<String, AskModelError>> {
        let text = self.0.clone();
        Box::pin(async move { Ok(text) })
    }
}

/// A question as the page writes it.
fn question(text: &str) -> HookCall {
    let (event, about) = text.split_once(' ').expect("an event and what it is about");
    let call = || {
        let (tool, input) = about.split_once(' ').expect("a tool and its input");
        (tool, serde_json::from_str::<Value>(input).expect("the input is JSON"))
    };
    match event {
        "PreToolUse" => before(call().0, &call().1),
        "PostToolUse" => {
            let out = ToolOutput::text("out").with_structured(&json!({"stdout": "out", "stderr": ""}));
            after(call().0, &call().1, out)
        }
        "PermissionRequest" => {
            let (tool, input) = call();
            HookCall::PermissionRequest { call: examined(tool, &input), suggestions: Vec::new() }
        }
        "UserPromptSubmit" => prompt(about),
        "Stop" => HookCall::Stop { is_active: false, text: about.into() },
        "Stop!" => HookCall::Stop { is_active: true, text: about.into() },
        other => panic!("no example asks {other}"),
    }
}

/// Whether an answer is what the page says; `…` stands for anything.
fn fits(seen: &str, said: &str) -> bool {
    let mut rest = seen;
    let pieces: Vec<&str> = said.split('…').map(str::trim).collect();
    let found = pieces.iter().all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    });
    found && (pieces.len() > 1 || seen == said)
}

async fn check(example: &Example) -> usize {
    let mut settings = example.settings.clone();
    if let Some(answer) = &example.http {
        let server = server(response("200 OK", answer)).await;
        settings = settings.replace("http://localhost:8787/hooks", &server.url);
    }
    let settings: Value = serde_json::from_str(&settings).expect("settings are JSON");
    let stage = Stage::with(&settings["hooks"]);
    for (name, text) in &example.scripts {
        stage.script(name, text);
    }
    let model = example.model.clone().map(|text| Arc::new(Says(text)) as _);
    let host = HookHost { model, ..stage.host() };
    let runner = stage.runner_with(host);
    for line in &example.lines {
        let (asked, said) = line.rsplit_once(" -> ").expect("a question and its answer");
        let answer = stage.ask_with(&runner, question(asked)).await;
        let all = words(&answer);
        let told = |word: &&str| !word.starts_with("notice ") || said.starts_with("notice ");
        let seen: Vec<&str> = all.split(" | ").filter(|word| !word.is_empty()).filter(told).collect();
        let seen = if seen.is_empty() { "nothing".to_owned() } else { seen.join(" | ") };
        // Where the hook stands is said with a question, and nobody's business here.
        let seen = seen.split(" (the hook of").next().unwrap_or_default();
        assert!(fits(seen, said), "{line}\nseen: {seen}\nall: {all}");
    }
    example.lines.len()
}

#[tokio::test]
async fn every_example_of_the_page_does_what_it_says() {
    let mut lines = 0;
    for example in examples() {
        assert!(!example.lines.is_empty(), "nothing is asked: {}", example.settings);
        lines += check(&example).await;
    }
    assert!(lines >= 20, "{lines}");
}

/// The rows of the table of events: names, and what a matcher looks at.
fn rows() -> Vec<(Vec<&'static str>, &'static str)> {
    let (_, part) = PAGE.split_once("## All events").expect("the page has a table of all events");
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let rows = part.lines().filter(|line| line.starts_with('|')).skip(2).map(cells);
    rows.map(|cells| (cells[0].split(", ").collect(), cells[2])).collect()
}

#[test]
fn the_page_names_every_event_and_says_which_are_reached() {
    let listed: Vec<&str> = rows().into_iter().flat_map(|(names, _)| names).collect();
    let (_, rest) = PAGE.rsplit_once("narrows").expect("the rest is about what is not reached");
    let rest: Vec<&str> = rest.split(|letter: char| !letter.is_alphanumeric()).collect();
    for name in windlass_hooks::known_event_names() {
        let event = HookEvent::ALL.into_iter().find(|event| event.name() == name);
        let is_reached = event.is_some_and(|event| !HookEvent::NOT_REACHED.contains(&event));
        assert_eq!(listed.contains(&name), is_reached, "{name} in the table");
        assert_eq!(rest.contains(&name), !is_reached, "{name} among those not reached");
    }
}

#[test]
fn the_page_says_where_a_matcher_has_nothing_to_look_at() {
    for (names, matcher) in rows() {
        for name in names {
            let group = json!({"matcher": "some.*", "hooks": [{"type": "command", "command": "true"}]});
            let source = HookSource::settings("settings.json:1");
            let problems = HookSet::default().read(&json!({name: [group]}), &source);
            assert_eq!(problems.is_empty(), matcher != "–", "{name}: {problems:?}");
        }
    }
}
