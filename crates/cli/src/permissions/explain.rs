//! One call, decided with the settings that hold here.

use std::io::Write as _;

use serde_json::{Value, json};
use windlass_config::{Config, Flags};
use windlass_engine::protocol::{RawValue, Ruling};
use windlass_engine::{Asking, Case, guarded, judge, missing_rules};
use windlass_ports::ExamineContext;
use windlass_tools::describe;

use super::Wanted;
use crate::guard::{self, Said};
use crate::visible::visible;
use crate::{complain, confine};

/// Says what would become of the call, and gives the exit code.
pub(super) fn run(wanted: &Wanted) -> i32 {
    match explain(wanted) {
        Ok(text) => i32::from(std::io::stdout().write_all(text.as_bytes()).is_err()),
        Err(error) => {
            complain(&error);
            1
        }
    }
}

fn explain(wanted: &Wanted) -> Result<String, String> {
    let tool = wanted.tool.as_deref().unwrap_or_default();
    let input: Value = serde_json::from_str(&wanted.input).map_err(|error| {
        format!("--input is not JSON ({error}). Give an object such as '{{\"command\":\"ls\"}}'.")
    })?;
    let raw = RawValue::from_string(wanted.input.clone()).map_err(|error| error.to_string())?;
    let place = guard::place()?;
    let said = Said {
        settings: wanted.settings.as_deref(),
        sources: wanted.setting_sources.as_deref(),
        trust: false,
        headless: true,
    };
    let held = guard::load(said, &place, |_| false)?;
    let flags = Flags {
        permission_mode: wanted.permission_mode.clone(),
        allowed_tools: wanted.allowed_tools.clone(),
        disallowed_tools: wanted.disallowed_tools.clone(),
        add_directories: wanted.add_dir.clone(),
        ..Flags::default()
    };
    held.notices.iter().for_each(|notice| complain(notice));
    let config = Config::with_files(held.settings, &flags, &place, held.effective.settings)
        .map_err(|error| error.to_string())?;
    config.warnings.iter().for_each(|warning| complain(warning));
    let roots = super::batch::roots(&place.cwd, &config.added_directories);
    let hidden = guarded(&config.permissions.rules);
    let cx = ExamineContext { cwd: place.cwd.clone(), roots: roots.clone().into(), hidden };
    let facts = match describe(tool, &input, &cx) {
        Ok(facts) => facts,
        Err(problem) => return Err(format!("{tool} is never run so: {problem}.")),
    };
    let sandbox = confine::sandboxing(&config);
    let mut permissions = config.permissions;
    permissions.sandbox = sandbox;
    permissions.asking = Asking::Person;
    let case = Case { input: &raw, cwd: &place.cwd, ..Case::new(tool, &facts, &permissions, &roots) };
    let ruling = judge(&case);
    let missing = if ruling.verdict.name() == "allow" { Vec::new() } else { missing_rules(&case) };
    Ok(if wanted.json { as_json(&ruling, &missing) } else { as_text(&ruling, &missing) })
}

fn as_json(ruling: &Ruling, missing: &[String]) -> String {
    let line = json!({
        "decision": ruling.verdict.name(),
        "rule": ruling.rule.as_ref().map(|rule| rule.text.to_string()),
        "source": ruling.rule.as_ref().map(|rule| rule.source.to_string()),
        "reason": ruling.reason,
        "missing": missing,
    });
    format!("{line}\n")
}

fn as_text(ruling: &Ruling, missing: &[String]) -> String {
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
    lines.join("\n") + "\n"
}
