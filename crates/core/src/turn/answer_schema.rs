//! Structured output: the final answer as a value that has the form a schema asks for.

use std::sync::Arc;

use serde_json::value::RawValue;
use windlass_protocol::RawValueEq;

use crate::config::AnswerSchema;

/// The value of an answer, or what is wrong with it, for the model.
pub(crate) fn read(answer: &str, schema: &AnswerSchema) -> Result<Arc<RawValueEq>, String> {
    let value =
        find_value(answer).ok_or("The answer is not a JSON value. Answer with only the JSON value.")?;
    schema.check.check(&value).map_err(|problem| {
        format!(
            "The answer does not match the schema: {problem} Answer again with only the whole corrected \
                 JSON value."
        )
    })?;
    Ok(Arc::new(RawValueEq(value)))
}

/// The JSON of an answer: alone, in a code fence, or with words around it.
fn find_value(answer: &str) -> Option<Box<RawValue>> {
    let answer = answer.trim();
    let fenced = answer.split("```").nth(1).map(|inside| inside.strip_prefix("json").unwrap_or(inside));
    let braced = answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
    let listed = answer.find('[').zip(answer.rfind(']')).and_then(|(from, to)| answer.get(from..=to));
    let candidates = [Some(answer), fenced, braced, listed];
    candidates.into_iter().flatten().find_map(|text| RawValue::from_string(text.trim().to_owned()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Option<&str>) {
        assert_eq!(find_value(answer).as_ref().map(|value| value.get()), expected, "{answer}");
    }

    #[test]
    fn the_value_is_found_among_words_and_fences() {
        check(r#"{"a": 1}"#, Some(r#"{"a": 1}"#));
        check(" [1, 2]\n", Some("[1, 2]"));
        check("7", Some("7"));
        check("Here it is:\n```json\n{\"a\": 1}\n```\nDone.", Some(r#"{"a": 1}"#));
        check("```\n[1]\n```", Some("[1]"));
        check(r#"The answer is {"a": {"b": 2}}, I think."#, Some(r#"{"a": {"b": 2}}"#));
        check("The list: [1, [2]].", Some("[1, [2]]"));
        check("no value", None);
        check("", None);
        check("{broken", None);
    }
}
