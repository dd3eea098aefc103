//! What hosts hear of hooks while they run: `hook_started`, `hook_progress` and `hook_response`.

use serde_json::json;
use windlass_protocol::{HookEnding, HookMoment, HookNews, HookPrinted, MessageId, SessionKey};

use crate::fit;
use crate::lines::{LineEnvelope, LineUuid, SystemBody};

/// The ids of handlers and of these lines are counted from where neither messages nor other lines get.
const RUNS_FROM: u64 = 1 << 62;
const LINES_FROM: u64 = 1 << 63;

/// Writes the news of a session's hooks as lines.
#[derive(Debug)]
pub struct HookLines {
    key: SessionKey,
    written: u64,
}

impl HookLines {
    /// Lines of this session.
    pub fn new(session: impl Into<SessionKey>) -> Self {
        Self { key: session.into(), written: 0 }
    }

    /// Appends the line of some news.
    pub fn append(&mut self, news: &HookNews, out: &mut Vec<u8>) {
        let (subtype, printed, end) = match &news.moment {
            HookMoment::Began => ("hook_started", None, None),
            HookMoment::Printed(printed) => ("hook_progress", Some(printed), None),
            HookMoment::Ended { printed, code, ending } => {
                ("hook_response", Some(printed), Some((code, ending)))
            }
        };
        let mut body = json!({
            "hook_id": self.id(RUNS_FROM | news.run),
            "hook_name": news.name,
            "hook_event": news.event.name(),
        });
        if let Some(HookPrinted { output, errors }) = printed {
            body["output"] = format!("{output}{errors}").into();
            body["stdout"] = output.as_str().into();
            body["stderr"] = errors.as_str().into();
        }
        if let Some((code, ending)) = end {
            if let Some(code) = code {
                body["exit_code"] = (*code).into();
            }
            body["outcome"] = outcome(*ending).into();
        }
        let uuid = self.id(LINES_FROM | self.written);
        self.written += 1;
        let body = SystemBody { subtype, body: &body };
        fit::append_plain(out, &LineEnvelope { body, session_id: LineUuid(self.key.id), uuid });
    }

    fn id(&self, number: u64) -> LineUuid {
        LineUuid(self.key.process.message_uuid(MessageId(number)))
    }
}

pub(crate) fn outcome(ending: HookEnding) -> &'static str {
    match ending {
        HookEnding::Worked => "success",
        HookEnding::Failed => "error",
        HookEnding::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_protocol::{HookEvent, SessionSeed};

    use super::*;

    fn line(lines: &mut HookLines, moment: HookMoment) -> Value {
        let mut out = Vec::new();
        let news = HookNews { run: 4, event: HookEvent::PreToolUse, name: "PreToolUse:Bash".into(), moment };
        lines.append(&news, &mut out);
        assert!(out.ends_with(b"}\n") && out.len() <= crate::fit::LINE_BYTES_MAX + 1);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn each_moment_is_a_line_of_its_own_kind() {
        let key = SessionKey::from(SessionSeed(7));
        let mut lines = HookLines::new(key);
        let mut seen = Vec::new();
        let mut check = |moment: HookMoment, expected: Value| {
            let mut line = line(&mut lines, moment);
            let fields = line.as_object_mut().unwrap();
            let (uuid, hook) = (fields.remove("uuid").unwrap(), fields.remove("hook_id").unwrap());
            assert!(!seen.contains(&uuid), "{uuid}");
            seen.push(uuid);
            assert_eq!(hook, json!(key.process.message_uuid(MessageId(RUNS_FROM | 4)).to_string()));
            assert_eq!(fields.remove("session_id"), Some(json!(key.id.to_string())));
            let names = json!({"type": "system", "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse"});
            for (name, value) in names.as_object().unwrap() {
                assert_eq!(fields.remove(name).as_ref(), Some(value), "{name}");
            }
            assert_eq!(line, expected);
        };
        let printed = || HookPrinted { output: "a\n".into(), errors: "b\n".into() };
        let both = json!({"stdout": "a\n", "stderr": "b\n", "output": "a\nb\n"});
        let with = |more: Value| {
            let mut all = both.clone();
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        check(HookMoment::Began, json!({"subtype": "hook_started"}));
        check(HookMoment::Printed(printed()), with(json!({"subtype": "hook_progress"})));
        let ended = |code, ending| HookMoment::Ended { printed: printed(), code, ending };
        let response = |more: Value| {
            let mut all = with(more);
            all["subtype"] = json!("hook_response");
            all
        };
        check(ended(Some(0), HookEnding::Worked), response(json!({"exit_code": 0, "outcome": "success"})));
        check(ended(Some(2), HookEnding::Failed), response(json!({"exit_code": 2, "outcome": "error"})));
        check(ended(None, HookEnding::Cancelled), response(json!({"outcome": "cancelled"})));
    }

    #[test]
    fn a_line_fits_whatever_a_hook_prints() {
        let printed = HookPrinted { output: "\u{1}".repeat(1 << 20), errors: "x".repeat(1 << 20) };
        let mut lines = HookLines::new(SessionSeed(7));
        let line = line(&mut lines, HookMoment::Printed(printed));
        assert_eq!(line["subtype"], "hook_progress");
    }
}
