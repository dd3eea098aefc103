//! The flags of a session that come back when it is resumed. A flag that is given now wins.
//!
//! Rights never grow by themselves: modes that ask nobody do not come back, and what was disallowed stays so.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_config::{Flags, PromptText};
use windlass_protocol::RawValueEq;

use super::recorded_config::insert;

/// The settings of a session, as its log keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SavedFlags {
    /// The model that followed from the flags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_tokens: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_budget: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    autocompact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disallowed_tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added_directories: Vec<PathBuf>,
    /// The system prompt as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt: Option<String>,
}

/// Modes in which nobody is asked, or nothing is done: each run has to ask for them anew.
const NOT_KEPT: [&str; 2] = ["plan", "bypassPermissions"];

impl SavedFlags {
    /// What the flags say, and the model and the system prompt that followed from them.
    pub(crate) fn new(flags: &Flags, model: &str, system_prompt: &str) -> Self {
        let mode = flags.permission_mode.clone();
        Self {
            model: Some(model.to_owned()),
            effort: flags.effort.clone(),
            thinking: flags.thinking.clone(),
            thinking_tokens: flags.thinking_tokens.clone(),
            thinking_display: flags.thinking_display.clone(),
            task_budget: flags.task_budget.clone(),
            autocompact: flags.autocompact.clone(),
            permission_mode: mode.filter(|mode| !NOT_KEPT.contains(&mode.as_str())),
            allowed_tools: flags.allowed_tools.clone(),
            disallowed_tools: flags.disallowed_tools.clone(),
            added_directories: flags.add_directories.clone(),
            system_prompt: Some(system_prompt.to_owned()),
        }
    }

    /// What a log kept. What cannot be read as a setting is none.
    pub(crate) fn read(settings: &BTreeMap<String, Arc<RawValueEq>>) -> Self {
        let fields = settings
            .iter()
            .filter_map(|(key, raw)| Some((key.clone(), serde_json::from_str(raw.0.get()).ok()?)));
        serde_json::from_value(serde_json::Value::Object(fields.collect())).unwrap_or_default()
    }

    /// The form in which a log keeps it.
    pub(crate) fn write(&self) -> BTreeMap<String, Arc<RawValueEq>> {
        let mut settings = BTreeMap::new();
        if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) {
            fields.iter().for_each(|(name, value)| insert(&mut settings, name, value));
        }
        settings
    }

    /// Adds to the flags what they do not say.
    pub(crate) fn fill(self, flags: &mut Flags) {
        let missing = [
            (&mut flags.model, self.model),
            (&mut flags.effort, self.effort),
            (&mut flags.thinking, self.thinking),
            (&mut flags.thinking_tokens, self.thinking_tokens),
            (&mut flags.thinking_display, self.thinking_display),
            (&mut flags.task_budget, self.task_budget),
            (&mut flags.autocompact, self.autocompact),
        ];
        for (flag, saved) in missing {
            if flag.is_none() {
                *flag = saved;
            }
        }
        if flags.permission_mode.is_none() && !flags.skip_permissions {
            flags.permission_mode = self.permission_mode.filter(|mode| !NOT_KEPT.contains(&mode.as_str()));
        }
        if flags.allowed_tools.is_empty() {
            flags.allowed_tools = self.allowed_tools;
        }
        flags.disallowed_tools.extend(self.disallowed_tools);
        flags.add_directories.extend(self.added_directories.into_iter().filter(|path| path.is_dir()));
        if flags.system_prompt.is_none() && flags.append_system_prompt.is_none() {
            flags.system_prompt = self.system_prompt.map(PromptText::Text);
        }
    }
}

#[cfg(test)]
mod tests {
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
        let saved = SavedFlags::new(&flags(), "m1", "be short");
        assert_eq!(SavedFlags::read(&saved.write()), saved);
        let mut resumed = Flags::default();
        saved.clone().fill(&mut resumed);
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
        saved.fill(&mut other);
        assert_eq!((other.model.as_deref(), other.system_prompt), (Some("m2"), None));
        assert_eq!(
            (other.allowed_tools, other.disallowed_tools),
            (vec!["Read".to_owned()], vec!["Edit".to_owned(), "Write".to_owned()])
        );
    }

    #[test]
    fn rights_that_ask_nobody_do_not_come_back() {
        for mode in NOT_KEPT {
            let mut saved = SavedFlags::new(&flags(), "m1", "");
            // A log may have been edited.
            saved.permission_mode = Some(mode.into());
            let mut resumed = Flags::default();
            saved.fill(&mut resumed);
            assert_eq!(resumed.permission_mode, None);
            let flags = Flags { permission_mode: Some(mode.into()), ..flags() };
            assert_eq!(SavedFlags::new(&flags, "m1", "").permission_mode, None);
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_none() {
        let raw =
            |text: &str| Arc::new(RawValueEq(serde_json::value::RawValue::from_string(text.into()).unwrap()));
        let broken = [("model".to_owned(), raw("7")), ("other".to_owned(), raw("{}"))].into();
        assert_eq!(SavedFlags::read(&broken), SavedFlags::default());
    }
}
