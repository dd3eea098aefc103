//! What `windlass replay` says.

use std::fmt::Write as _;

use serde_json::{Value, json};
use windlass::engine::{Replay, Terminal};
use windlass::session_store::SessionInfo;
use windlass_text::shorten::shorten;

use crate::display;
use windlass::replay::{LastMessage, ReplayEnd, SessionReplay};

/// As much of a message is shown.
const MESSAGE_CHARS: usize = 200;

/// That everything is equal, in a sentence.
pub(super) fn equal(played: &SessionReplay) -> String {
    let events = display::quantity(played.events(), "event");
    let unread = match played.unread {
        0 => String::new(),
        count => format!(" Skipped {} of the log.", display::quantity(count, "unreadable part")),
    };
    match played.end {
        ReplayEnd::CutOff => {
            format!("{events} replayed, no differences; the log ends in the middle of the last one.{unread}")
        }
        _ => format!("{events} replayed, no differences.{unread}"),
    }
}

/// For people.
pub(super) fn text(
    session: &SessionInfo,
    played: &SessionReplay,
    ms: u64,
    should_show_state: bool,
) -> String {
    let mut text = String::new();
    if !played.is_equal() {
        differs(session, played, &mut text);
    } else if let Some(replay) = &played.replay {
        let _ = writeln!(text, "{} {}.", equal(played), display::duration(ms));
        if should_show_state {
            state(replay, played, &mut text);
        }
    }
    text
}

fn differs(session: &SessionInfo, played: &SessionReplay, text: &mut String) {
    let what = match played.end {
        ReplayEnd::Damaged(_) => "stopped: the log is damaged",
        _ => "differs from its log",
    };
    let _ = writeln!(text, "Replay of session {} {what}.\n", session.id);
    for step in played.replay.iter().flat_map(Replay::trail) {
        let _ = writeln!(text, "  {:>6}  {}: {}", step.event, step.heard, kinds(&step.records));
    }
    match &played.end {
        ReplayEnd::Differs(mismatch) => {
            let field = match &*mismatch.field {
                "" => String::new(),
                field => format!(", field `{field}`"),
            };
            let _ = write!(
                text,
                "\nFirst difference: after event {}, record `{}`{field}:\n  log:    {}\n  engine: {}\n",
                mismatch.event,
                mismatch.kind,
                display::line(&mismatch.logged),
                display::line(&mismatch.played)
            );
        }
        ReplayEnd::Damaged(damage) => {
            let _ = writeln!(
                text,
                "\nAfter event {} the log is damaged (byte {}): {}.",
                played.events(),
                damage.offset,
                display::line(&damage.what)
            );
        }
        ReplayEnd::Equal | ReplayEnd::CutOff => {}
    }
    for difference in &played.differences {
        let _ = writeln!(text, "Possible cause: {}.", display::line(difference));
    }
}

fn kinds(records: &[&str]) -> String {
    if records.is_empty() { "nothing".into() } else { records.join(", ") }
}

/// How things stand.
fn state(replay: &Replay, played: &SessionReplay, text: &mut String) {
    let state = replay.state();
    if let Some(last) = replay.trail().last() {
        let _ = writeln!(text, "  event     {} ({}: {})", last.event, last.heard, kinds(&last.records));
    }
    let _ = writeln!(text, "  doing     {}", doing(replay));
    let context = replay.context_report();
    let _ = writeln!(
        text,
        "  context   {} of {} tokens, {}",
        display::number(context.used),
        display::number(context.window),
        display::quantity(state.messages().len() as u64, "message")
    );
    let output: u64 = state.spent_in_session().values().map(|spend| spend.usage.output_tokens).sum();
    let _ = writeln!(text, "  spent     {} output tokens", display::number(output));
    if let Some(last) = &played.last {
        let _ = writeln!(text, "  last      {}: {}", last.speaker, display::line(&words(last)));
    }
    for call in played.open.values() {
        let _ = writeln!(text, "  open      {} ({})", display::line(&call.name), display::line(&call.id));
    }
}

fn doing(replay: &Replay) -> String {
    match replay.state().terminal() {
        Some(terminal) => format!("run ended: {}", terminal.name()),
        None => format!("{:?}, turn {}", replay.state().phase(), replay.state().turn()).to_lowercase(),
    }
}

/// The beginning of what was said.
fn words(said: &LastMessage) -> String {
    let words: Vec<&str> =
        said.blocks.iter().map(|block| block.as_text().unwrap_or_else(|| block.json())).collect();
    shorten(&words.join(" "), MESSAGE_CHARS, "...").into_owned()
}

/// For programs.
pub(super) fn json(session: &SessionInfo, played: &SessionReplay, ms: u64) -> String {
    let mut object = json!({
        "sessionId": session.id.to_string(),
        "events": played.events(),
        "equal": played.is_equal(),
        "cutOff": matches!(played.end, ReplayEnd::CutOff),
        "durationMs": ms,
    });
    match &played.end {
        ReplayEnd::Differs(mismatch) => {
            object["difference"] = json!({
                "event": mismatch.event,
                "heard": mismatch.heard,
                "record": mismatch.kind,
                "field": mismatch.field,
                "log": mismatch.logged,
                "engine": mismatch.played,
                "configuration": played.differences,
            });
        }
        ReplayEnd::Damaged(damage) => {
            object["difference"] = json!({ "byte": damage.offset, "damage": damage.what });
        }
        ReplayEnd::Equal | ReplayEnd::CutOff => object["state"] = state_json(played),
    }
    format!("{}\n", display::json(&object))
}

fn state_json(played: &SessionReplay) -> Value {
    let Some(replay) = &played.replay else { return Value::Null };
    let state = replay.state();
    let context = replay.context_report();
    let open = played.open.values().map(|call| json!({ "id": &*call.id, "tool": &*call.name }));
    json!({
        "phase": format!("{:?}", state.phase()).to_lowercase(),
        "terminal": state.terminal().map(Terminal::name),
        "turn": state.turn(),
        "messages": state.messages().len(),
        "contextTokens": context.used,
        "contextWindow": context.window,
        "last": played.last.as_ref().map(|last| json!({ "speaker": last.speaker, "text": words(last) })),
        "openCalls": open.collect::<Vec<_>>(),
    })
}
