//! The object that a hook prints, read into the words of the loop.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use windlass_protocol::{HookAnswer, HookEvent, HookPermission, RawObject, RawValue};
use windlass_text::nearest::nearest;

use crate::{answers, events};

/// What a hook said in an object.
#[derive(Debug, Default)]
pub(crate) struct ParsedAnswer {
    pub(crate) answer: HookAnswer,
    /// Why it decided as it did, whatever it decided.
    pub(crate) reason: Option<String>,
    /// What it said under names that nobody knows.
    pub(crate) misspelt: Vec<MisspeltField>,
}

/// Stands where a hook that objects gives no reason.
pub(crate) const NO_REASON: &str = "no reason given";

/// Reads the object that a hook printed; `origin` is where the hook was configured. The error says what does not fit.
pub(crate) fn read(event: HookEvent, json: &str, origin: &str) -> Result<ParsedAnswer, String> {
    let top = AnswerObject::parse(json, "")?;
    let mut reader = Reader { event, origin, parsed: ParsedAnswer::default() };
    reader.common(&top)?;
    reader.look_for_misspelt(&top, ANSWER_FIELDS);
    if let Some(raw) = top.raw("hookSpecificOutput") {
        let own = AnswerObject::parse(raw.get(), "hookSpecificOutput.")?;
        // Programs are often asked by several events and name only one of them: what counts is who asked.
        own.text("hookEventName")?.ok_or("hookSpecificOutput.hookEventName is missing")?;
        reader.look_for_misspelt(&own, OWN_FIELDS);
        reader.read_own_fields(&own)?;
    }
    Ok(reader.parsed)
}

struct Reader<'a> {
    event: HookEvent,
    origin: &'a str,
    parsed: ParsedAnswer,
}

impl Reader<'_> {
    fn common(&mut self, top: &AnswerObject<'_>) -> Result<(), String> {
        // Whoever goes on in the background has nothing to say now.
        if top.flag("async")? == Some(true) {
            return Ok(());
        }
        let stop_reason = top.text("stopReason")?;
        if top.flag("continue")? == Some(false) {
            self.parsed.answer.stop = Some(stop_reason.unwrap_or_default());
        }
        self.parsed.answer.notices.extend(top.text("systemMessage")?);
        top.flag("suppressOutput")?;
        self.unheard(top);
        let reason = top.text("reason")?;
        match top.text("decision")?.as_deref() {
            Some("block") => self.object(reason.clone()),
            Some("approve") if self.event == HookEvent::PreToolUse => {
                self.parsed.answer.permission = Some(HookPermission::Allow);
            }
            Some("approve") | None => (),
            Some(other) => return Err(format!("decision is {other:?}; it can be \"block\" or \"approve\"")),
        }
        self.parsed.reason = reason;
        Ok(())
    }

    fn read_own_fields(&mut self, own: &AnswerObject<'_>) -> Result<(), String> {
        self.unheard(own);
        if let Some(context) = own.text("additionalContext")?.filter(|text| !text.is_empty()) {
            if events::takes_context(self.event) {
                self.parsed.answer.context.push(context);
            } else {
                self.has_no_effect("additionalContext");
            }
        }
        match self.event {
            HookEvent::PreToolUse => self.before_call(own)?,
            HookEvent::PermissionRequest => self.in_place_of_a_person(own)?,
            HookEvent::PermissionDenied if own.flag("retry")? == Some(true) => {
                self.parsed.answer.permission = Some(HookPermission::Allow);
            }
            HookEvent::PostToolUse => {
                let output = own.raw("updatedToolOutput").or_else(|| own.raw("updatedMCPToolOutput"));
                self.parsed.answer.output = output.map(shared_json);
            }
            HookEvent::SessionStart => self.parsed.answer.first_prompt = own.text("initialUserMessage")?,
            _ => (),
        }
        Ok(())
    }

    fn before_call(&mut self, own: &AnswerObject<'_>) -> Result<(), String> {
        let reason = own.text("permissionDecisionReason")?;
        let why = reason.clone().unwrap_or_else(|| NO_REASON.to_owned());
        let permission = match own.text("permissionDecision")?.as_deref() {
            None => None,
            Some("allow") => Some(HookPermission::Allow),
            Some("deny") => Some(HookPermission::Deny(why)),
            Some("ask") => Some(HookPermission::Ask(format!("{why} (the hook of {})", self.origin))),
            Some("defer") => Some(HookPermission::Defer),
            Some(other) => return Err(format!("hookSpecificOutput.permissionDecision is {other:?}")),
        };
        if permission.is_some() {
            self.parsed.answer.permission = permission;
        }
        self.parsed.answer.input = own.object("updatedInput")?.map(shared_json);
        self.parsed.reason = reason.or(self.parsed.reason.take());
        Ok(())
    }

    fn in_place_of_a_person(&mut self, own: &AnswerObject<'_>) -> Result<(), String> {
        let Some(decision) = own.object("decision")? else { return Ok(()) };
        let decision = AnswerObject::parse(decision.get(), "hookSpecificOutput.decision.")?;
        self.look_for_misspelt(&decision, PERSON_FIELDS);
        let message = decision.text("message")?;
        match decision.text("behavior")?.as_deref() {
            Some("allow") => {
                self.parsed.answer.permission = Some(HookPermission::Allow);
                self.parsed.answer.input = decision.object("updatedInput")?.map(shared_json);
                self.parsed.answer.updates = decision.list("updatedPermissions")?;
            }
            Some("deny") => {
                let why = message.clone().unwrap_or_else(|| NO_REASON.to_owned());
                if decision.flag("interrupt")? == Some(true) {
                    self.parsed.answer.stop = Some(why.clone());
                }
                self.parsed.answer.permission = Some(HookPermission::Deny(why));
            }
            other => return Err(format!("hookSpecificOutput.decision.behavior is {other:?}")),
        }
        self.parsed.reason = message;
        Ok(())
    }

    /// The hook objects, in the old way.
    fn object(&mut self, reason: Option<String>) {
        let reason = reason.unwrap_or_else(|| NO_REASON.to_owned());
        if events::takes_objections(self.event) {
            answers::add_objection(&mut self.parsed.answer, self.event, reason);
        } else {
            self.has_no_effect("decision");
        }
    }

    fn look_for_misspelt(&mut self, object: &AnswerObject<'_>, known: &'static str) {
        self.parsed.misspelt.extend(misspelt(&object.fields, object.path, known));
    }

    fn unheard(&mut self, object: &AnswerObject<'_>) {
        for name in WITHOUT_EFFECT.split(' ') {
            if object.raw(name).is_some() {
                self.has_no_effect(name);
            }
        }
    }

    fn has_no_effect(&mut self, name: &str) {
        let (event, origin) = (self.event.name(), self.origin);
        let notice = format!("The {event} hook of {origin} returned {name}, which has no effect there.");
        self.parsed.answer.notices.push(notice);
    }
}

fn shared_json(raw: &RawValue) -> Arc<RawValue> {
    Arc::from(raw.to_owned())
}

/// An object whose values are looked at one by one. What is `null` counts as not there.
struct AnswerObject<'a> {
    fields: RawObject<'a>,
    /// What stands in front of the names of its fields.
    path: &'static str,
}

impl<'a> AnswerObject<'a> {
    fn parse(json: &'a str, path: &'static str) -> Result<Self, String> {
        let fields = RawObject::parse(json).map_err(|error| format!("not an object: {error}"))?;
        Ok(Self { fields, path })
    }

    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.get(name).filter(|raw| raw.get() != "null")
    }

    fn read<T: DeserializeOwned>(&self, name: &str, expected: &str) -> Result<Option<T>, String> {
        let wrong = |_| format!("{}{name} is not {expected}", self.path);
        self.raw(name).map(|raw| serde_json::from_str(raw.get()).map_err(wrong)).transpose()
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.read(name, "a string")
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.read(name, "true or false")
    }

    fn object(&self, name: &str) -> Result<Option<&'a RawValue>, String> {
        match self.raw(name) {
            Some(raw) if !raw.get().starts_with('{') => Err(format!("{}{name} is not an object", self.path)),
            raw => Ok(raw),
        }
    }

    fn list(&self, name: &str) -> Result<Vec<Arc<RawValue>>, String> {
        let list: Option<Vec<Box<RawValue>>> = self.read(name, "a list")?;
        Ok(list.unwrap_or_default().into_iter().map(Arc::from).collect())
    }
}

/// The fields of an answer, between blanks; as below.
const ANSWER_FIELDS: &str = "continue stopReason systemMessage suppressOutput decision reason \
    hookSpecificOutput async asyncTimeout";
/// The fields of `hookSpecificOutput`, whatever the event.
const OWN_FIELDS: &str = "hookEventName additionalContext permissionDecision permissionDecisionReason \
    updatedInput decision retry updatedToolOutput updatedMCPToolOutput initialUserMessage action content worktreePath";
/// The fields that an answer may have anywhere, and nothing here acts on.
const WITHOUT_EFFECT: &str = "terminalSequence sessionTitle watchPaths reloadSkills \
    classifierContext suppressOriginalPrompt displayContent";
/// The fields of the decision in a person's place.
const PERSON_FIELDS: &str = "behavior message interrupt updatedInput updatedPermissions";

/// Where a decision stands. One that is written elsewhere is as lost as a misspelt one.
const DECIDING: [(&str, &str); 5] = [
    ("continue", "continue"),
    ("decision", "decision"),
    ("hookSpecificOutput", "hookSpecificOutput"),
    ("permissionDecision", "hookSpecificOutput.permissionDecision"),
    ("behavior", "hookSpecificOutput.decision.behavior"),
];

/// A field of an answer that is not known, and the one that was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MisspeltField {
    field: String,
    meant: String,
    /// Whether a decision is lost with it.
    pub(crate) is_decision: bool,
}

impl fmt::Display for MisspeltField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}; did you mean {:?}?", self.field, self.meant)
    }
}

/// The misspelt fields of an object, with `path` in front; `own` are those it may have. `null` is absent.
fn misspelt(object: &RawObject<'_>, path: &str, own: &'static str) -> Vec<MisspeltField> {
    let known = || own.split(' ').chain(WITHOUT_EFFECT.split(' '));
    let unknown =
        object.iter().filter(|(name, value)| value.get() != "null" && known().all(|known| known != *name));
    let told = unknown.filter_map(|(name, _)| {
        let near = nearest(name, known());
        let deciding = |meant: &str| DECIDING.iter().find(|(name, _)| *name == meant);
        let elsewhere = || nearest(name, DECIDING.map(|(name, _)| name)).and_then(deciding);
        let (meant, is_decision) = match near {
            Some(near) => (format!("{path}{near}"), deciding(near).is_some()),
            None => (elsewhere()?.1.to_owned(), true),
        };
        Some(MisspeltField { field: format!("{path}{name}"), meant, is_decision })
    });
    told.collect()
}

#[cfg(test)]
mod tests;
