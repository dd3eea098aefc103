//! Numbers and switches as models write them: `10`, `10.0` and `"10"` all mean ten.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "only whole, non-negative numbers below 2^53 get here"
)]
fn whole(number: f64) -> Option<u64> {
    let exact = (0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0;
    exact.then_some(number as u64)
}

/// A whole number that may be missing.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let found = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok().or_else(|| whole(text.trim().parse().ok()?)),
        _ => None,
    };
    found.map(Some).ok_or_else(|| de::Error::custom("expected a whole number, 0 or more"))
}

/// A switch that may be missing, which means off.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let found = match Value::deserialize(deserializer)? {
        Value::Null => Some(false),
        Value::Bool(flag) => Some(flag),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    };
    found.ok_or_else(|| de::Error::custom("expected true or false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Input {
        #[serde(default, deserialize_with = "number")]
        n: Option<u64>,
        #[serde(default, deserialize_with = "flag")]
        f: bool,
    }

    #[test]
    fn numbers_and_switches() {
        let check = |json: &str, expected: Result<(Option<u64>, bool), &str>| {
            let seen = serde_json::from_str::<Input>(json).map(|input| (input.n, input.f));
            match (seen, expected) {
                (Ok(seen), Ok(expected)) => assert_eq!(seen, expected, "{json}"),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (seen, _) => panic!("{json}: {seen:?}"),
            }
        };
        check("{}", Ok((None, false)));
        check(r#"{"n":null,"f":null}"#, Ok((None, false)));
        check(r#"{"n":10,"f":true}"#, Ok((Some(10), true)));
        check(r#"{"n":10.0,"f":"true"}"#, Ok((Some(10), true)));
        check(r#"{"n":" 10 ","f":"False"}"#, Ok((Some(10), false)));
        check(r#"{"n":"10.0"}"#, Ok((Some(10), false)));
        check(r#"{"n":1.5}"#, Err("whole number"));
        check(r#"{"n":-1}"#, Err("whole number"));
        check(r#"{"n":"ten"}"#, Err("whole number"));
        check(r#"{"n":[1]}"#, Err("whole number"));
        check(r#"{"f":"yes"}"#, Err("true or false"));
        check(r#"{"f":1}"#, Err("true or false"));
    }
}
