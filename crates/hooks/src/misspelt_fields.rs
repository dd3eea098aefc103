//! Fields of a hook's answer that nobody knows, and what was probably meant. Those that are near to nothing are no mistakes: answers
//! may say more than is known here.

use std::fmt;

use windlass_protocol::RawObject;
use windlass_text::nearest::nearest;

/// The fields of an answer, between blanks; as below.
pub(crate) const TOP: &str = "continue stopReason systemMessage suppressOutput decision reason \
    hookSpecificOutput async asyncTimeout";
/// The fields of `hookSpecificOutput`, whatever the event.
pub(crate) const OWN: &str = "hookEventName additionalContext permissionDecision permissionDecisionReason \
    updatedInput decision retry updatedToolOutput updatedMCPToolOutput initialUserMessage action content worktreePath";
/// The fields that an answer may have anywhere, and nothing here acts on.
pub(crate) const WITHOUT_EFFECT: &str = "terminalSequence sessionTitle watchPaths reloadSkills \
    classifierContext suppressOriginalPrompt displayContent";
/// The fields of the decision in a person's place.
pub(crate) const PERSON: &str = "behavior message interrupt updatedInput updatedPermissions";

/// Where a decision stands. One that is written elsewhere is as lost as a misspelt one.
const DECIDING: [(&str, &str); 5] = [
    ("continue", "continue"),
    ("decision", "decision"),
    ("hookSpecificOutput", "hookSpecificOutput"),
    ("permissionDecision", "hookSpecificOutput.permissionDecision"),
    ("behavior", "hookSpecificOutput.decision.behavior"),
];

/// A field that is not known, and the one that was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MisspeltField {
    field: String,
    meant: String,
    /// Whether a decision is lost with it.
    pub(crate) decides: bool,
}

impl fmt::Display for MisspeltField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}; did you mean {:?}?", self.field, self.meant)
    }
}

/// The misspelt fields of an object; `path` stands in front of their names, and `own` are those it has besides the ones without effect.
/// What is `null` counts as not there.
pub(crate) fn misspelt(object: &RawObject<'_>, path: &str, own: &'static str) -> Vec<MisspeltField> {
    let known = || own.split(' ').chain(WITHOUT_EFFECT.split(' '));
    let unknown =
        object.iter().filter(|(name, value)| value.get() != "null" && known().all(|known| known != *name));
    let told = unknown.filter_map(|(name, _)| {
        let near = nearest(name, known());
        let deciding = |meant: &str| DECIDING.iter().find(|(name, _)| *name == meant);
        let elsewhere = || nearest(name, DECIDING.map(|(name, _)| name)).and_then(deciding);
        let (meant, decides) = match near {
            Some(near) => (format!("{path}{near}"), deciding(near).is_some()),
            None => (elsewhere()?.1.to_owned(), true),
        };
        Some(MisspeltField { field: format!("{path}{name}"), meant, decides })
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, path: &str, known: &'static str, expected: &[(&str, &str, bool)]) {
        let object = RawObject::parse(json).unwrap();
        let seen = misspelt(&object, path, known);
        let seen: Vec<_> = seen.iter().map(|one| (&*one.field, &*one.meant, one.decides)).collect();
        assert_eq!(seen, expected, "{json}");
    }

    #[test]
    fn what_is_near_to_a_field_or_decides_elsewhere_is_a_mistake() {
        check(r#"{"decison": "block"}"#, "", TOP, &[("decison", "decision", true)]);
        check(r#"{"Continue": false}"#, "", TOP, &[("Continue", "continue", true)]);
        check(r#"{"systemMesage": "x"}"#, "", TOP, &[("systemMesage", "systemMessage", false)]);
        check(
            r#"{"permissionDecision": "deny"}"#,
            "",
            TOP,
            &[("permissionDecision", "hookSpecificOutput.permissionDecision", true)],
        );
        let own = "hookSpecificOutput.";
        check(
            r#"{"permisionDecision": "deny", "permissionDecisionReasons": "x"}"#,
            own,
            OWN,
            &[
                ("hookSpecificOutput.permisionDecision", "hookSpecificOutput.permissionDecision", true),
                (
                    "hookSpecificOutput.permissionDecisionReasons",
                    "hookSpecificOutput.permissionDecisionReason",
                    false,
                ),
            ],
        );
        check(r#"{"continue": false}"#, own, OWN, &[("hookSpecificOutput.continue", "continue", true)]);
        let person = "hookSpecificOutput.decision.";
        let meant = "hookSpecificOutput.decision.behavior";
        check(
            r#"{"behaviour": "deny"}"#,
            person,
            PERSON,
            &[("hookSpecificOutput.decision.behaviour", meant, true)],
        );
    }

    #[test]
    fn answers_may_say_more_than_is_known() {
        check(r#"{"version": 2, "x": 1, "decison": null, "metrics": {"decison": 1}}"#, "", TOP, &[]);
        check(r#"{"ticket": "A-1", "reason": "r"}"#, "hookSpecificOutput.", OWN, &[]);
        let known: Vec<String> = TOP.split(' ').map(|name| format!("{name:?}: 1")).collect();
        check(&format!("{{{}}}", known.join(",")), "", TOP, &[]);
    }
}
