//! One call, decided with the settings that hold here.

use anyhow::anyhow;
use serde_json::{Value, json};
use windlass::config::Flags;
use windlass::explain::{Explainer, Explanation};
use windlass::protocol::{KNOWN_TOOLS, RawValue, ToolProfile};
use windlass::settings;
use windlass_text::nearest::closest;

use super::ExplainArguments;
use crate::complain;
use crate::views::visible::visible;

/// What would become of the call.
pub(super) fn explain(wanted: &ExplainArguments) -> anyhow::Result<String> {
    let tool = wanted.tool.as_deref().unwrap_or_default();
    let note = note(tool)?;
    let input = input(tool, &wanted.input)?;
    let held = settings::load(&wanted.settings.options(), settings::process_context()?)?;
    let flags = Flags {
        permission_mode: wanted.permission_mode.clone(),
        allowed_tools: wanted.allowed_tools.clone(),
        disallowed_tools: wanted.disallowed_tools.clone(),
        add_directories: wanted.add_dir.clone(),
        ..Flags::default()
    };
    crate::complain_of_settings(&held.notices);
    let config = held.config(&flags)?;
    config.notices().for_each(|notice| complain(&notice));
    let explanation = Explainer::with_config(config).explain(tool, &input)?;
    Ok(if wanted.json { as_json(&explanation, note) } else { as_text(&explanation, note) })
}

/// What there is to say about the name of a tool. One that was probably mistyped is an error: the answer would be about nothing.
fn note(tool: &str) -> anyhow::Result<Option<&'static str>> {
    // Servers bring tools of their own.
    if KNOWN_TOOLS.contains(&tool) || tool.starts_with("mcp__") {
        return Ok(None);
    }
    match closest(tool, &KNOWN_TOOLS) {
        Some(meant) => Err(anyhow!("unknown tool {tool}; did you mean {meant}?")),
        None => Ok(Some("unknown tool; decided like one that could do anything")),
    }
}

/// The input of the call. Whoever gave plain text is shown it as it must be given.
fn input(tool: &str, text: &str) -> anyhow::Result<Box<RawValue>> {
    let (problem, plain) = match serde_json::from_str(text) {
        Ok(Value::Object(_)) => return Ok(RawValue::from_string(text.to_owned())?),
        Ok(Value::String(plain)) => ("not an object".to_owned(), plain),
        Ok(_) => ("not an object".to_owned(), String::new()),
        Err(_) if !text.trim_start().starts_with(['{', '[', '"']) => ("not JSON".to_owned(), text.to_owned()),
        Err(error) => (format!("not JSON ({error})"), String::new()),
    };
    let example = match ToolProfile::named(tool).subject.field() {
        Some(field) if !plain.trim().is_empty() => json!({ field: plain }),
        Some(field) => json!({ field: "..." }),
        None => json!({}),
    };
    let example = example.to_string().replace('\'', r"'\''");
    Err(anyhow!("--input is {problem}. Give an object: --input '{example}'."))
}

fn as_json(Explanation { ruling, missing }: &Explanation, note: Option<&str>) -> String {
    let mut line = json!({
        "decision": ruling.verdict.name(),
        "rule": ruling.rule.as_ref().map(|rule| rule.text.to_string()),
        "source": ruling.rule.as_ref().map(|rule| rule.source.to_string()),
        "reason": ruling.reason,
        "missing": missing,
    });
    if let Some(note) = note {
        line["note"] = note.into();
    }
    format!("{line}\n")
}

fn as_text(Explanation { ruling, missing }: &Explanation, note: Option<&str>) -> String {
    let mut lines = vec![format!("decision: {}", ruling.verdict.name())];
    match &ruling.rule {
        Some(rule) => {
            lines.push(format!("rule:     {}", visible(&rule.text)));
            lines.push(format!("from:     {}", visible(&rule.source)));
        }
        None => lines.push("rule:     none".to_owned()),
    }
    lines.push(format!("reason:   {}", visible(&ruling.reason)));
    for rule in missing {
        lines.push(format!("missing:  {}", visible(rule)));
    }
    if let Some(note) = note {
        lines.push(format!("note:     {note}"));
    }
    lines.join("\n") + "\n"
}
