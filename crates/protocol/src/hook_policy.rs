//! Whether a hook says that nothing passes without it.

use serde_json::Value;

/// Whether anything in what was configured has an `onFailure` that blocks. Whatever is not understood there blocks too: a policy
/// that cannot be read is the stricter one.
pub fn blocks_on_failure(configured: &Value) -> bool {
    match configured {
        Value::Object(fields) => {
            fields.iter().any(|(name, policy)| is_failure_policy(name) && policy != "continue")
                || fields.values().any(blocks_on_failure)
        }
        Value::Array(items) => items.iter().any(blocks_on_failure),
        _ => false,
    }
}

/// Whether a field says what follows when a hook fails, however that is spelt: a hook must not stop blocking by a letter.
pub fn is_failure_policy(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
    ["onfailure", "onfail", "onerror"].contains(&letters.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(configured: &Value, expected: bool) {
        assert_eq!(blocks_on_failure(configured), expected, "{configured}");
    }

    #[test]
    fn only_a_clear_word_lets_things_pass() {
        check(&json!({"type": "command", "onFailure": "block"}), true);
        check(&json!({"type": "command", "onFailure": "deny"}), true);
        check(&json!({"onFailure": 5}), true);
        check(&json!({"onFailure": "continue"}), false);
        check(&json!({"type": "command"}), false);
        check(&json!("onFailure"), false);
        check(&json!({"on_failure": "block"}), true);
        check(&json!({"OnFail": "block"}), true);
        check(&json!({"on-failure": "continue"}), false);
        check(&json!([{"hooks": [{"onFailure": "continue"}, {"onFailure": "block"}]}]), true);
        check(&json!({"PreToolUse": {"hooks": [{"onFailure": "continue"}]}}), false);
    }
}
