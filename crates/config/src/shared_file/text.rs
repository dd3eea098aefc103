//! The text of a shared file: what it says and how it is written.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

/// What a file says, and how.
pub(super) struct SharedText {
    pub(super) value: Value,
    style: Style,
}

enum Style {
    /// Everything in one line.
    OneLine,
    /// A line for each field, with this in front.
    Indented(Vec<u8>),
}

impl SharedText {
    /// Reads JSON; an error says in which line and why.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        if bytes.trim_ascii().is_empty() {
            let value = Value::Object(serde_json::Map::default());
            return Ok(Self { value, style: Style::Indented(b"  ".to_vec()) });
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| (error.line(), problem(&error)))?;
        Ok(Self { value, style: Style::of(bytes.trim_ascii()) })
    }

    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.style {
            Style::OneLine => self.value.serialize(&mut serde_json::Serializer::new(&mut bytes))?,
            Style::Indented(indent) => {
                let format = PrettyFormatter::with_indent(indent);
                self.value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format))?;
            }
        }
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Style {
    fn of(bytes: &[u8]) -> Self {
        let Some(newline) = bytes.iter().position(|byte| *byte == b'\n') else { return Self::OneLine };
        let behind = &bytes[newline + 1..];
        let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        Self::Indented(if blanks == 0 { b"  ".to_vec() } else { behind[..blanks].to_vec() })
    }
}

/// The parser's words without the place, which is told in another way.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
