//! From what each handler said to the one answer that the loop hears.

use windlass_protocol::{HookAnswer, HookPermission};

/// Puts answers together, in the order of the configuration: whatever finished first, the same hooks say the same.
///
/// The first wish to stop counts. The strictest decision counts, with every reason for it. Of several inputs and outputs the last
/// counts. Objections and what the model or the user is to know add up.
pub(crate) fn merge(answers: impl IntoIterator<Item = HookAnswer>) -> HookAnswer {
    let mut merged = HookAnswer::default();
    for answer in answers {
        merged.stop = merged.stop.or(answer.stop);
        merged.blocks.extend(answer.blocks);
        merged.permission = stricter(merged.permission.take(), answer.permission);
        merged.input = answer.input.or(merged.input);
        merged.updates.extend(answer.updates);
        merged.output = answer.output.or(merged.output);
        merged.first_prompt = joined(merged.first_prompt.take(), answer.first_prompt);
        merged.context.extend(answer.context);
        merged.notices.extend(answer.notices);
        merged.failures.extend(answer.failures);
        merged.runs.extend(answer.runs);
    }
    merged
}

fn stricter(one: Option<HookPermission>, other: Option<HookPermission>) -> Option<HookPermission> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    Some(match (one, other) {
        (HookPermission::Deny(one), HookPermission::Deny(other)) => {
            HookPermission::Deny(format!("{one}\n{other}"))
        }
        (HookPermission::Ask(one), HookPermission::Ask(other)) => {
            HookPermission::Ask(format!("{one}\n{other}"))
        }
        (one, other) if rank(&other) > rank(&one) => other,
        (one, _) => one,
    })
}

fn rank(permission: &HookPermission) -> u8 {
    match permission {
        HookPermission::Allow => 0,
        HookPermission::Ask(_) => 1,
        HookPermission::Defer => 2,
        HookPermission::Deny(_) => 3,
    }
}

fn joined(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::RawValue;

    fn wants(permission: HookPermission) -> HookAnswer {
        HookAnswer { permission: Some(permission), ..HookAnswer::default() }
    }

    #[test]
    fn the_strictest_decision_counts() {
        use HookPermission::*;
        let check = |all: &[HookPermission], expected: HookPermission| {
            let forwards = merge(all.iter().cloned().map(wants)).permission;
            assert_eq!(forwards, Some(expected), "{all:?}");
        };
        let (deny, ask) = (|| Deny("d".into()), || Ask("a".into()));
        check(&[Allow, Allow], Allow);
        check(&[Allow, ask()], ask());
        check(&[ask(), Allow], ask());
        check(&[ask(), Defer, Allow], Defer);
        check(&[Defer, deny(), ask()], deny());
        check(&[deny(), Allow, Deny("e".into())], Deny("d\ne".into()));
        check(&[ask(), Ask("b".into())], Ask("a\nb".into()));
    }

    #[test]
    fn the_rest_adds_up_in_the_order_of_the_configuration() {
        let raw = |json: &str| Some(std::sync::Arc::from(RawValue::from_string(json.into()).unwrap()));
        let answer = |word: &str, stop: Option<&str>| HookAnswer {
            stop: stop.map(str::to_owned),
            blocks: vec![format!("block {word}")],
            input: raw(&format!("{{\"from\":\"{word}\"}}")),
            context: vec![format!("context {word}")],
            notices: vec![word.to_owned()],
            ..HookAnswer::default()
        };
        let merged = merge([answer("a", None), answer("b", Some("first")), answer("c", Some("second"))]);
        assert_eq!(merged.stop.as_deref(), Some("first"));
        assert_eq!(merged.blocks, ["block a", "block b", "block c"]);
        assert_eq!(merged.context, ["context a", "context b", "context c"]);
        assert_eq!(merged.notices, ["a", "b", "c"]);
        assert_eq!(merged.input.unwrap().get(), r#"{"from":"c"}"#);
    }
}
