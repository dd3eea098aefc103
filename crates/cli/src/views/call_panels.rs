//! Calls as a person follows them: what runs, and a panel for each call that is answered, with its output or its change.

use std::fmt::Write as _;

use serde_json::Value;
use windlass::engine::{Block, CallId, Update};
use windlass::protocol::{BlockKind, CallKind, RawValueEq, ToolUse};
use windlass::protocol_view::Clock;

use crate::display;
use crate::views::layout;

/// How many lines of an output are shown.
const OUTPUT_LINES_MAX: usize = 12;

/// So many of them are the first ones where a command failed: what went wrong often stands at the end.
const FAILED_HEAD_LINES: usize = 3;

/// How many lines of a change are shown.
const DIFF_LINES_MAX: usize = 40;

/// As much of a line of a change is shown: enough for any line that people write.
const DIFF_COLUMNS_MAX: usize = 400;

/// What stands before each line below the head of a panel.
const INDENT: &str = "        ";

/// The calls that are not answered yet.
pub(crate) struct CallPanels {
    clock: Clock,
    open: Vec<OpenCall>,
    /// Calls that were denied and are not answered yet: a line has said it.
    denied: Vec<CallId>,
    /// Only heads, a line for each.
    is_brief: bool,
}

/// A call that is not answered yet.
pub(crate) struct OpenCall {
    call: CallId,
    tool_use: ToolUse,
    kind: CallKind,
    target: String,
    pub(crate) started_ms: u64,
    /// The last news of it.
    pub(crate) latest: String,
    /// How long it took, once it is done.
    duration_ms: Option<u64>,
}

impl OpenCall {
    /// The tool, and what it works on.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", display::line(&self.tool_use.name), self.target)
    }
}

impl CallPanels {
    /// Calls that start by this clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, open: Vec::new(), denied: Vec::new(), is_brief: false }
    }

    /// The same with a line for each call and nothing else, for a file that somebody may search.
    pub(crate) fn brief(clock: Clock) -> Self {
        Self { is_brief: true, ..Self::new(clock) }
    }

    /// The first call that is not done.
    pub(crate) fn running(&self) -> Option<&OpenCall> {
        self.open.iter().find(|open| open.duration_ms.is_none())
    }

    /// Takes in what happened; gives the lines that are to be shown of it, for so many columns.
    pub(crate) fn update(&mut self, update: &Update, columns: usize) -> Option<String> {
        let panel = self.take(update, columns)?;
        let head = || panel.trim_start().lines().next().unwrap_or_default().to_owned();
        Some(if self.is_brief { head() } else { panel })
    }

    fn take(&mut self, update: &Update, columns: usize) -> Option<String> {
        match update {
            Update::ToolStarted { call, tool_use, facts } => self.open.push(OpenCall {
                call: *call,
                tool_use: tool_use.clone(),
                // A command that only looks was run for its output.
                kind: if facts.commands.is_some() { CallKind::Execute } else { facts.kind },
                target: display::line(&facts.target),
                started_ms: self.clock.ms(),
                latest: String::new(),
                duration_ms: None,
            }),
            Update::ToolProgress { call, progress } => {
                if let Some(open) = self.find(*call) {
                    open.latest = display::line(&progress.text);
                }
            }
            Update::ToolFinished { call, duration_ms } => {
                if let Some(open) = self.find(*call) {
                    open.duration_ms = Some(*duration_ms);
                }
            }
            Update::Retracted { calls, .. } => self.open.retain(|open| !calls.contains(&open.call)),
            Update::Denied(denial) => {
                self.denied.push(denial.call);
                let (name, reason) = (display::line(&denial.tool_use.name), display::line(&denial.reason));
                let columns = if self.is_brief { usize::MAX } else { columns };
                return Some(layout::wrap(&format!("\n  {name}: {reason}\n"), columns));
            }
            Update::ToolResult { call, name, result, structured, .. } => {
                if let Some(position) = self.denied.iter().position(|denied| denied == call) {
                    self.denied.remove(position);
                    return None;
                }
                let position = self.open.iter().position(|open| open.call == *call);
                let Some(open) = position.map(|position| self.open.remove(position)) else {
                    return Some(format!("\n  {} was not run\n", display::line(name)));
                };
                return Some(panel(&open, result, structured.as_deref(), columns));
            }
            _ => {}
        }
        None
    }

    fn find(&mut self, call: CallId) -> Option<&mut OpenCall> {
        self.open.iter_mut().find(|open| open.call == call)
    }
}

/// What a call did: its head, and below it its output or its change.
fn panel(open: &OpenCall, result: &Block, structured: Option<&RawValueEq>, columns: usize) -> String {
    let failed = matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. });
    let time = open.duration_ms.map(display::duration);
    let notes = [time.as_deref(), failed.then_some("failed")].into_iter().flatten().collect::<Vec<_>>();
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    let name = format!("  {:5} ", display::line(&open.tool_use.name));
    let room = columns.saturating_sub(layout::width(&name) + notes.len());
    let mut text = format!("\n{name}{}{notes}\n", layout::cut(&open.target, room));
    let (lines, most) = match open.kind {
        CallKind::Edit if !failed => (change(open, structured), DIFF_LINES_MAX),
        CallKind::Read if !failed => (Vec::new(), 0),
        _ => (output(result, columns.saturating_sub(INDENT.len() + 1)), OUTPUT_LINES_MAX),
    };
    let more = lines.len().saturating_sub(most);
    let head = if failed && more > 0 { FAILED_HEAD_LINES } else { most };
    let skipped = (more > 0).then(|| format!("… +{}", display::quantity(more as u64, "line")));
    let shown = lines.iter().take(head).chain(&skipped).chain(lines.iter().skip(head + more));
    for line in shown {
        let _ = writeln!(text, "{INDENT}{line}");
    }
    text
}

/// The lines that went and that came.
fn change(open: &OpenCall, structured: Option<&RawValueEq>) -> Vec<String> {
    let told: Value = structured.and_then(|raw| serde_json::from_str(raw.0.get()).ok()).unwrap_or_default();
    let marked = |mark: &str, text: &str| {
        layout::cut(&format!("{mark} {}", display::paragraph(text)), DIFF_COLUMNS_MAX)
    };
    let hunks = told["structuredPatch"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = hunks.iter().filter_map(|hunk| hunk["lines"].as_array()).flatten();
    let changed = lines.filter_map(Value::as_str).filter_map(|line| {
        let (mark, text) = line.split_at_checked(1).filter(|(mark, _)| matches!(*mark, "-" | "+"))?;
        Some(marked(mark, text))
    });
    let changed: Vec<String> = changed.collect();
    if !changed.is_empty() || told["type"] != "create" {
        return changed;
    }
    let input: Value = serde_json::from_str(open.tool_use.input.get()).unwrap_or_default();
    let content = input["content"].as_str().unwrap_or_default();
    content.lines().map(|line| marked("+", line)).collect()
}

/// The lines of an output. What the engine adds for the model is none of it.
fn output(result: &Block, columns: usize) -> Vec<String> {
    let json: Value = serde_json::from_str(result.json()).unwrap_or_default();
    let text = match &json["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.filter(|text| !text.starts_with("<system-reminder>")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    let text = text
        .strip_prefix("<tool_use_error>")
        .and_then(|text| text.strip_suffix("</tool_use_error>"))
        .unwrap_or(&text)
        .trim_end();
    text.lines().map(|line| layout::cut(&display::paragraph(line), columns)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass::engine::MessageId;
    use windlass::protocol::{CallFacts, RawValue, ToolProfile};

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.into()).unwrap()
    }

    /// The panel of one call that took two seconds.
    fn check(tool: &str, input: &str, (text, is_error): (&str, bool), structured: &str, expected: &str) {
        let mut panels = CallPanels::new(Clock::start());
        let tool_use = ToolUse { id: "t1".into(), name: tool.into(), input: raw(input).into() };
        let facts = CallFacts { target: "x".into(), ..CallFacts::new(ToolProfile::named(tool).kind) };
        assert_eq!(panels.update(&Update::ToolStarted { call: CallId(1), tool_use, facts }, 40), None);
        assert!(panels.running().is_some());
        let finished = Update::ToolFinished { call: CallId(1), duration_ms: 2_000 };
        assert_eq!(panels.update(&finished, 40), None);
        assert!(panels.running().is_none());
        let answered = Update::ToolResult {
            id: MessageId(1),
            call: CallId(1),
            name: tool.into(),
            result: Block::tool_result("t1", &[Block::text(text)], is_error),
            structured: Some(Arc::new(RawValueEq(raw(structured)))),
        };
        assert_eq!(panels.update(&answered, 40).as_deref(), Some(expected));
    }

    #[test]
    fn a_panel_shows_the_output_or_the_change() {
        check("Bash", "{}", ("a\n\x1b[31mb\n", false), "{}", "\n  Bash  x  (2.0 s)\n        a\n        b\n");
        let lines = |range: std::ops::RangeInclusive<u32>, indent: &str| {
            range.map(|line| format!("{indent}{line}\n")).collect::<Vec<_>>().concat()
        };
        let (all, shown) = (lines(1..=14, ""), |range| lines(range, INDENT));
        let expected = format!("\n  Bash  x  (2.0 s)\n{}        … +2 lines\n", shown(1..=12));
        check("Bash", "{}", (&all, false), "{}", &expected);
        let (first, last) = (shown(1..=3), shown(6..=14));
        let expected = format!("\n  Bash  x  (2.0 s, failed)\n{first}        … +2 lines\n{last}");
        check("Bash", "{}", (&all, true), "{}", &expected);
        let expected = format!("\n  Bash  x  (2.0 s, failed)\n{}", shown(1..=12));
        check("Bash", "{}", (&lines(1..=12, ""), true), "{}", &expected);
        check("Read", "{}", ("1 a", false), "{}", "\n  Read  x  (2.0 s)\n");
        let missing = "<tool_use_error>It is not there.</tool_use_error>";
        check(
            "Read",
            "{}",
            (missing, true),
            "{}",
            "\n  Read  x  (2.0 s, failed)\n        It is not there.\n",
        );
        let patch = r#"{"structuredPatch": [{"lines": [" one", "-two", "+2", "+\t3"]}]}"#;
        let expected = "\n  Edit  x  (2.0 s)\n        - two\n        + 2\n        + \t3\n";
        check("Edit", "{}", ("ok", false), patch, expected);
        let created = r#"{"type": "create", "structuredPatch": []}"#;
        let expected = "\n  Write x  (2.0 s)\n        + a\n        + b\n";
        check("Write", r#"{"content": "a\nb\n"}"#, ("ok", false), created, expected);
        let same = r#"{"type": "update", "structuredPatch": []}"#;
        check("Write", r#"{"content": "a"}"#, ("ok", false), same, "\n  Write x  (2.0 s)\n");
    }
}
