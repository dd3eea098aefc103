//! The flags of a session that come back when it is resumed. A flag that is given now wins.
//!
//! Rights never grow by themselves: modes without questions do not come back, and what was disallowed stays so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Value, json};
use windlass_config::{Flags, PromptText};
use windlass_protocol::RawValueEq;

use super::recorded_config::insert;

/// Modes that never ask, or never act: each run has to ask for them anew.
const NOT_KEPT: [&str; 2] = ["plan", "bypassPermissions"];

/// What a log keeps of these flags, with the model and the system prompt that followed from them.
pub(crate) fn saved_flags(flags: &Flags, model: &str, system_prompt: &str) -> Flags {
    let mut saved = Flags {
        model: Some(model.to_owned()),
        system_prompt: Some(PromptText::Text(system_prompt.to_owned())),
        append_system_prompt: None,
        ..flags.clone()
    };
    // A log is text: a name that is none is not kept, and the rest is.
    saved.add_directories.retain(|path| path.to_str().is_some());
    saved
}

/// What a log kept. What cannot be read as a flag is none, and the others stand.
pub(crate) fn read_flags(settings: &BTreeMap<String, Arc<RawValueEq>>) -> Flags {
    let fields = settings.iter().filter_map(|(name, raw)| {
        let value: Value = serde_json::from_str(raw.0.get()).ok()?;
        Flags::deserialize(&json!({ name: value })).is_ok().then(|| (name.clone(), value))
    });
    serde_json::from_value(fields.collect()).unwrap_or_default()
}

/// The form in which a log keeps flags: those that were given.
pub(crate) fn write_flags(flags: &Flags) -> BTreeMap<String, Arc<RawValueEq>> {
    let mut settings = BTreeMap::new();
    if let Ok(Value::Object(fields)) = serde_json::to_value(flags) {
        let is_given =
            |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]);
        let given = fields.iter().filter(|(_, value)| is_given(value));
        given.for_each(|(name, value)| insert(&mut settings, name, value));
    }
    settings
}

/// Adds to the flags what they do not say, for a run in `cwd`.
pub(crate) fn fill_flags(flags: &mut Flags, saved: Flags, cwd: &Path) {
    let missing = [
        (&mut flags.model, saved.model),
        (&mut flags.effort, saved.effort),
        (&mut flags.thinking, saved.thinking),
        (&mut flags.thinking_tokens, saved.thinking_tokens),
        (&mut flags.thinking_display, saved.thinking_display),
        (&mut flags.task_budget, saved.task_budget),
        (&mut flags.autocompact, saved.autocompact),
    ];
    for (flag, saved) in missing {
        if flag.is_none() {
            *flag = saved;
        }
    }
    if flags.permission_mode.is_none() && !flags.should_skip_permissions {
        flags.permission_mode = saved.permission_mode.filter(|mode| !NOT_KEPT.contains(&mode.as_str()));
    }
    if flags.allowed_tools.is_empty() {
        flags.allowed_tools = saved.allowed_tools;
    }
    flags.disallowed_tools.extend(saved.disallowed_tools);
    flags.add_directories.extend(saved.add_directories.into_iter().filter(|path| cwd.join(path).is_dir()));
    if flags.system_prompt.is_none() && flags.append_system_prompt.is_none() {
        flags.system_prompt = saved.system_prompt;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn flags() -> Flags {
        Flags {
            effort: Some("high".into()),
            permission_mode: Some("acceptEdits".into()),
            allowed_tools: vec!["Bash".into()],
            disallowed_tools: vec!["Write".into()],
            budget_usd: Some("2".into()),
            ..Flags::default()
        }
    }

    #[test]
    fn what_was_said_once_comes_back_unless_something_else_is_said_now() {
        let saved = saved_flags(&flags(), "m1", "be short");
        assert_eq!(read_flags(&write_flags(&saved)), saved);
        let mut resumed = Flags::default();
        fill_flags(&mut resumed, saved.clone(), Path::new("/"));
        assert_eq!((resumed.model.as_deref(), resumed.effort.as_deref()), (Some("m1"), Some("high")));
        assert_eq!(resumed.system_prompt, Some(PromptText::Text("be short".into())));
        assert_eq!((resumed.allowed_tools, resumed.budget_usd), (vec!["Bash".to_owned()], None));
        let mut other = Flags {
            model: Some("m2".into()),
            append_system_prompt: Some(PromptText::Text("x".into())),
            allowed_tools: vec!["Read".into()],
            disallowed_tools: vec!["Edit".into()],
            ..Flags::default()
        };
        fill_flags(&mut other, saved, Path::new("/"));
        assert_eq!((other.model.as_deref(), other.system_prompt), (Some("m2"), None));
        assert_eq!(
            (other.allowed_tools, other.disallowed_tools),
            (vec!["Read".to_owned()], vec!["Edit".to_owned(), "Write".to_owned()])
        );
    }

    #[test]
    fn rights_that_ask_nobody_do_not_come_back() {
        for mode in NOT_KEPT {
            let given =
                Flags { permission_mode: Some(mode.into()), should_skip_permissions: true, ..flags() };
            assert!(write_flags(&given).contains_key("skipPermissions"), "older logs call it so");
            let mut resumed = Flags::default();
            fill_flags(
                &mut resumed,
                read_flags(&write_flags(&saved_flags(&given, "m1", ""))),
                Path::new("/"),
            );
            assert_eq!((resumed.permission_mode, resumed.should_skip_permissions), (None, false));
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_none() {
        let raw =
            |text: &str| Arc::new(RawValueEq(serde_json::value::RawValue::from_string(text.into()).unwrap()));
        let broken = [("model".to_owned(), raw("7")), ("other".to_owned(), raw("{}"))].into();
        assert_eq!(read_flags(&broken), Flags::default());
        let directory = std::ffi::OsString::from_vec(b"/\xff".to_vec());
        let given = Flags { add_directories: vec![directory.into()], ..flags() };
        let mut saved = write_flags(&saved_flags(&given, "m1", ""));
        saved.insert("turnsMax".into(), raw("\"many\""));
        assert_eq!(read_flags(&saved).disallowed_tools, ["Write"]);
    }
}
