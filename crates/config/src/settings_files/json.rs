//! JSON with the place of every value, to show problems where they stand. Strict: no comments, no trailing comma.
//! A name that is there twice keeps both values. Texts and numbers are decoded by `serde_json`.

use serde_json::{Map, Number, Value};

/// Values may lie this deep in each other.
const DEPTH_MAX: u32 = 64;

/// A place in a text, counted from 1. Columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonNode {
    pub(crate) at: TextPosition,
    pub(crate) content: JsonContent,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonContent {
    Scalar(Value),
    List(Vec<JsonNode>),
    Object(Vec<Member>),
}

/// A name in an object, where it stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) at: TextPosition,
    pub(crate) value: JsonNode,
}

/// Where a text stops to be JSON, and what would make it JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(crate) at: TextPosition,
    pub(crate) what: String,
    pub(crate) advice: &'static str,
}

/// Reads a text. An empty one counts as an empty object, as it does for whoever changes the file.
pub(crate) fn parse(text: &str) -> Result<JsonNode, JsonError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, at: 0, place: TextPosition { line: 1, column: 1 } };
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Ok(JsonNode { at: reader.place, content: JsonContent::Object(Vec::new()) });
    }
    let node = reader.value(0)?;
    reader.skip_blanks();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected_error("the end of the file")),
    }
}

impl JsonNode {
    /// The value without places; of a name that is there twice, the last value.
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            JsonContent::Scalar(value) => value.clone(),
            JsonContent::List(list) => Value::Array(list.iter().map(Self::to_value).collect()),
            JsonContent::Object(members) => {
                let pairs = members.iter().map(|member| (member.name.clone(), member.value.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// The names that an object in it holds twice, with the place of the second.
    pub(crate) fn repeated_names(&self) -> Vec<(&str, TextPosition)> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(node) = open.pop() {
            match &node.content {
                JsonContent::List(list) => open.extend(list),
                JsonContent::Object(members) => {
                    let mut seen = std::collections::BTreeSet::new();
                    let doubled = members.iter().filter(|member| !seen.insert(&*member.name));
                    found.extend(doubled.map(|member| (&*member.name, member.at)));
                    open.extend(members.iter().map(|member| &member.value));
                }
                JsonContent::Scalar(_) => {}
            }
        }
        found
    }
}

impl JsonContent {
    /// What it is, in a sentence.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(Value::Null) => "null",
            Self::Scalar(Value::Bool(_)) => "true or false",
            Self::Scalar(Value::Number(_)) => "a number",
            Self::Scalar(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    place: TextPosition,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn pass(&mut self, bytes: usize) {
        for byte in &self.text.as_bytes()[self.at..self.at + bytes] {
            match byte {
                b'\n' => self.place = TextPosition { line: self.place.line.saturating_add(1), column: 1 },
                // The other bytes of a character count with its first.
                0x80..0xc0 => {}
                _ => self.place.column = self.place.column.saturating_add(1),
            }
        }
        self.at += bytes;
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.pass(rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count());
    }

    fn value(&mut self, depth: u32) -> Result<JsonNode, JsonError> {
        let at = self.place;
        if depth > DEPTH_MAX {
            let what = format!("values are nested more than {DEPTH_MAX} levels deep");
            return Err(syntax_error(at, what, "Flatten them."));
        }
        let content = match self.peek() {
            Some(b'{') => JsonContent::Object(self.items(b'}', |reader| reader.member(depth))?),
            Some(b'[') => JsonContent::List(self.items(b']', |reader| reader.value(depth + 1))?),
            Some(b'"') => JsonContent::Scalar(self.string()?.into()),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(JsonNode { at, content })
    }

    fn word(&mut self) -> Result<JsonContent, JsonError> {
        for (word, value) in [("true", true.into()), ("false", false.into()), ("null", Value::Null)] {
            if self.text[self.at..].starts_with(word) {
                self.pass(word.len());
                return Ok(JsonContent::Scalar(value));
            }
        }
        Err(self.unexpected_error("a value"))
    }

    /// What a list or an object holds, from its opening bracket to this closing one.
    fn items<T>(
        &mut self,
        close: u8,
        read: impl Fn(&mut Self) -> Result<T, JsonError>,
    ) -> Result<Vec<T>, JsonError> {
        let mut items = Vec::new();
        self.pass(1);
        self.skip_blanks();
        let mut is_over = self.takes(close);
        while !is_over {
            items.push(read(self)?);
            is_over = self.ends(close)?;
        }
        Ok(items)
    }

    fn member(&mut self, depth: u32) -> Result<Member, JsonError> {
        let at = self.place;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected_error("a name in quotes"));
        }
        let name = self.string()?;
        self.skip_blanks();
        if !self.takes(b':') {
            return Err(self.unexpected_error("a colon"));
        }
        self.skip_blanks();
        Ok(Member { name, at, value: self.value(depth + 1)? })
    }

    fn takes(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.pass(1);
        }
        there
    }

    /// Behind a value: whether the list or object ends here. If not, a comma was passed and another value must follow.
    fn ends(&mut self, close: u8) -> Result<bool, JsonError> {
        self.skip_blanks();
        if self.takes(close) {
            return Ok(true);
        }
        let comma = self.place;
        if !self.takes(b',') {
            return Err(self.unexpected_error("a comma or the closing bracket"));
        }
        self.skip_blanks();
        if self.peek() == Some(close) {
            return Err(syntax_error(comma, "there is a comma after the last value", "Remove the comma."));
        }
        Ok(false)
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let at = self.place;
        let rest = &self.text.as_bytes()[self.at..];
        let mut end = 1;
        loop {
            match rest.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    let advice = "Close it with a quote; write a line feed as \\n.";
                    return Err(syntax_error(at, "a string has no closing quote", advice));
                }
                Some(_) => end += 1,
            }
        }
        let quoted = &self.text[self.at..=self.at + end];
        let invalid = "a string contains an invalid escape or control character";
        let advice = "Write a backslash as \\\\ and a tab as \\t.";
        let text = serde_json::from_str(quoted).map_err(|_| syntax_error(at, invalid, advice))?;
        self.pass(end + 1);
        Ok(text)
    }

    fn number(&mut self) -> Result<JsonContent, JsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        let invalid = "a number is invalid in JSON or too large";
        let number: Number = serde_json::from_str(&self.text[self.at..self.at + length])
            .map_err(|_| syntax_error(self.place, invalid, "Write it like 12, -0.5 or 1e6."))?;
        self.pass(length);
        Ok(JsonContent::Scalar(number.into()))
    }

    fn unexpected_error(&self, wanted: &str) -> JsonError {
        let rest = &self.text[self.at..];
        let (what, advice) = match rest.chars().next() {
            None => (format!("the file ends; expected {wanted}"), "Close all brackets."),
            Some('/') => ("comments are not allowed in JSON".into(), "Remove the comment."),
            Some('\'') => ("strings need double quotes".into(), "Replace ' with \"."),
            Some(found) => (format!("expected {wanted}, found {}", found.escape_debug()), "Correct it."),
        };
        syntax_error(self.place, what, advice)
    }
}

fn syntax_error(at: TextPosition, what: impl Into<String>, advice: &'static str) -> JsonError {
    JsonError { at, what: what.into(), advice }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let seen = match parse(text) {
            Ok(node) => node.to_value().to_string(),
            Err(JsonError { at, what, advice }) => format!("{}:{}: {what}. {advice}", at.line, at.column),
        };
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn values_are_read() {
        check("", "{}");
        check(" \n\t", "{}");
        check("\u{feff}{}", "{}");
        check(
            r#"{"b":[1,-2.5,1e3,true,false,null,"\u00fc\n"],"a":{}}"#,
            r#"{"b":[1,-2.5,1000.0,true,false,null,"ü\n"],"a":{}}"#,
        );
        check(" [ ] ", "[]");
    }

    #[test]
    fn mistakes_are_named_where_they_are() {
        check(
            "{\n  \"a\": [1,\n  2,\n  ]\n}",
            "3:4: there is a comma after the last value. Remove the comma.",
        );
        check("{\"ä\": tru}", "1:7: expected a value, found t. Correct it.");
        check("{\n // x\n}", "2:2: comments are not allowed in JSON. Remove the comment.");
        check("{'a': 1}", "1:2: strings need double quotes. Replace ' with \".");
        check("{\"a\" 1}", "1:6: expected a colon, found 1. Correct it.");
        check("{\"a\": 1 \"b\": 2}", "1:9: expected a comma or the closing bracket, found \\\". Correct it.");
        check("[1", "1:3: the file ends; expected a comma or the closing bracket. Close all brackets.");
        check("{} {}", "1:4: expected the end of the file, found {. Correct it.");
        check(
            "[\"a\nb\"]",
            "1:2: a string has no closing quote. Close it with a quote; write a line feed as \\n.",
        );
        check(
            r#"["\x"]"#,
            "1:2: a string contains an invalid escape or control character. Write a backslash as \\\\ and a tab as \\t.",
        );
        check("[01]", "1:2: a number is invalid in JSON or too large. Write it like 12, -0.5 or 1e6.");
        check("[1e999]", "1:2: a number is invalid in JSON or too large. Write it like 12, -0.5 or 1e6.");
        check(&"[".repeat(100_000), "1:66: values are nested more than 64 levels deep. Flatten them.");
    }

    #[test]
    fn names_that_are_there_twice_are_found() {
        let node = parse("{\"a\": {\"b\": 1,\n\"b\": 2},\n \"a\": 3}").unwrap();
        let found: Vec<_> =
            node.repeated_names().into_iter().map(|(name, at)| (name, at.line, at.column)).collect();
        assert_eq!(found, [("a", 3, 2), ("b", 2, 1)]);
    }

    #[test]
    fn a_long_line_is_read_in_linear_time() {
        let text = format!("[{}1]", "\"ü\",1, ".repeat(150_000));
        let start = std::time::Instant::now();
        assert!(parse(&text).is_ok());
        assert!(start.elapsed() < std::time::Duration::from_secs(5));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let expected: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(parse(&text).unwrap().to_value(), expected);
            }
        }

        /// The same texts are JSON for `serde_json` and for us; only the empty text is our own.
        #[test]
        fn other_readers_agree(text in r#"[\[\]{},: \n"\\a0-9.eEntrufals/+-]{1,40}"#) {
            let other = serde_json::from_str::<Value>(&text).ok();
            prop_assert_eq!(parse(&text).ok().map(|node| node.to_value()), other.or_else(|| {
                text.trim().is_empty().then(|| serde_json::json!({}))
            }));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".*") {
            let _ = parse(&text);
        }
    }
}
