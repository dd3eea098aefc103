//! The form that a final answer must have, given as a JSON schema.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;
use windlass_core::{AnswerSchema, CheckAnswer};
use windlass_protocol::RawValue;
use windlass_text::shorten::shorten;

/// As many mistakes are told at once.
const MISTAKES_MAX: usize = 5;
/// As many characters of one are told.
const MISTAKE_CHARS_MAX: usize = 300;
/// The schema's own address, which nobody else sees.
const ADDRESS: &str = "answer:schema";

/// Why a text is no schema for answers. The user must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is no JSON.
    #[error("the answer schema is not JSON: {0}. Give a JSON schema such as {{\"type\": \"object\"}}")]
    NotJson(String),
    /// It is JSON and no schema.
    #[error("the answer schema is not a valid JSON schema: {0}")]
    NotSchema(String),
}

/// The form an answer must have, from a JSON schema. The model may try again `retries_max` times.
pub fn answer_schema(text: &str, retries_max: u32) -> Result<AnswerSchema, SchemaError> {
    let value: Value = serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string()))?;
    let raw = RawValue::from_string(text.trim().to_owned());
    let schema = raw.map_err(|error| SchemaError::NotJson(error.to_string()))?.into();
    if !value.is_object() {
        return Err(SchemaError::NotSchema("it must be a JSON object".into()));
    }
    let check = Arc::new(Checker::new(value)?);
    Ok(AnswerSchema { schema, check, retries_max })
}

/// A schema that was understood.
struct Checker {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Checker {
    fn new(schema: Value) -> Result<Self, SchemaError> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nowhere));
        let mut schemas = Schemas::new();
        let refused = |error: CompileError| SchemaError::NotSchema(describe(&error));
        compiler.add_resource(ADDRESS, schema).map_err(refused)?;
        let index = compiler.compile(ADDRESS, &mut schemas).map_err(refused)?;
        Ok(Self { schemas, index })
    }
}

impl CheckAnswer for Checker {
    fn check(&self, value: &RawValue) -> Result<(), String> {
        let value: Value = serde_json::from_str(value.get()).map_err(|error| error.to_string())?;
        self.schemas.validate(&value, self.index).map_err(|error| mistakes(&error))
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checker")
    }
}

/// A schema is complete in itself: nothing is fetched, from no file and no server.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a `$ref` can only name parts of the schema itself".into())
    }
}

fn describe(error: &CompileError) -> String {
    match error {
        CompileError::ValidationError { src, .. } => mistakes(src),
        CompileError::LoadUrlError { url, src } => format!("`$ref` to {url}: {src}"),
        other => cut(&other.to_string().replace(ADDRESS, "the schema")),
    }
}

/// What is wrong, by place, always in the same order. Of mistakes that follow from others, only those are told.
fn mistakes(error: &ValidationError<'_, '_>) -> String {
    let mut told = BTreeSet::new();
    collect(error, &mut told);
    told.into_iter().take(MISTAKES_MAX).collect::<Vec<_>>().join("; ")
}

fn collect(error: &ValidationError<'_, '_>, told: &mut BTreeSet<String>) {
    for cause in &error.causes {
        collect(cause, told);
    }
    if !error.causes.is_empty() {
        return;
    }
    let place = error.instance_location.to_string();
    let place = if place.is_empty() { "at the top".to_owned() } else { format!("at {place}") };
    let what = match &error.kind {
        ErrorKind::AdditionalProperties { got } => {
            let names: BTreeSet<&str> = got.iter().map(|name| &**name).collect();
            format!("unexpected property: {}", names.into_iter().collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    };
    told.insert(cut(&format!("{place}: {what}")));
}

fn cut(text: &str) -> String {
    shorten(text, MISTAKE_CHARS_MAX, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERSON: &str = r##"{
        "type": "object", "required": ["name", "age"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/age"}, "tags": {"items": {"enum": ["a", "b"]}}},
        "$defs": {"age": {"type": "integer", "minimum": 0}}
    }"##;

    #[test]
    fn answers_are_told_where_they_are_wrong() {
        let schema = answer_schema(PERSON, 5).unwrap();
        let check = |value: &str, expected: &str| {
            let value = RawValue::from_string(value.into()).unwrap();
            assert_eq!(schema.check.check(&value).err().unwrap_or_default(), expected, "{value}");
        };
        check(r#"{"name": "Ada", "age": 36, "tags": ["a"]}"#, "");
        check(r#"{"name": "Ada", "age": -1}"#, "at /age: must be >=0, but got -1");
        check(
            r#"{"name": 1, "age": "x"}"#,
            "at /age: want integer, but got string; at /name: want string, but got number",
        );
        check(r#"{"name": "Ada"}"#, "at the top: missing properties 'age'");
        check(r#"{"name": "Ada", "age": 1, "tags": ["c"]}"#, "at /tags/0: value must be one of 'a', 'b'");
        check(r#"{"name": "Ada", "age": 1, "y": 0, "x": 0}"#, "at the top: unexpected property: x, y");
        check("[]", "at the top: want object, but got array");
    }

    #[test]
    fn only_a_few_mistakes_are_told() {
        let schema = answer_schema(r#"{"items": {"type": "string", "pattern": "^a*$"}}"#, 5).unwrap();
        let wrong = format!(r#"["{}"{}]"#, "b".repeat(10_000), ", 1".repeat(100));
        let text = schema.check.check(&RawValue::from_string(wrong).unwrap()).unwrap_err();
        assert!(text.matches("at /").count() == MISTAKES_MAX && text.len() < 2_000, "{text}");
    }

    #[test]
    fn what_is_no_schema_is_refused_with_the_place() {
        let check = |text: &str, expected: &str| {
            let error = answer_schema(text, 5).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("{", "is not JSON: EOF while parsing an object at line 1 column 1");
        check("[]", "the answer schema is not a valid JSON schema: it must be a JSON object");
        check(r#"{"type": 7}"#, "the answer schema is not a valid JSON schema: at /type: ");
        check(r#"{"properties": {"a": {"type": "strin"}}}"#, "at /properties/a/type: ");
        check(r#"{"pattern": "("}"#, "at /pattern: ");
        check(
            r#"{"$ref": "http://example.invalid/x"}"#,
            "`$ref` to http://example.invalid/x: a `$ref` can only name parts",
        );
        check(
            r#"{"$ref": "file:///etc/passwd"}"#,
            "`$ref` to file:///etc/passwd: a `$ref` can only name parts",
        );
        check(r##"{"$ref": "#/$defs/missing"}"##, "/$defs/missing");
    }

    #[test]
    fn the_model_reads_the_schema_as_it_was_written() {
        let schema = answer_schema(" {\"b\": 1, \"a\": 2}\n", 3).unwrap();
        assert_eq!((schema.schema.get(), schema.retries_max), ("{\"b\": 1, \"a\": 2}", 3));
    }
}
