//! Sums of the configuration, part by part: they tell whether two engines would do the same.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

use windlass_core::Config;
use windlass_permission::Permissions;
use windlass_protocol::{ModelCard, ToolSpec};

use crate::builder::Engine;

impl Engine {
    /// Sums of the configuration's parts that decide what a session does: engines with equal ones play each other's logs.
    pub fn sums(&self) -> BTreeMap<&'static str, u64> {
        let config = &*self.shared.config;
        let rest = Config {
            model: ModelCard::unknown(""),
            system: "".into(),
            tools: [].into(),
            roots: [].into(),
            fallbacks: [].into(),
            small_model: None,
            memory: [].into(),
            answer: None,
            permissions: Permissions::default(),
            // What is shown of a block before it is complete decides nothing.
            has_partial_messages: false,
            ..config.clone()
        };
        let answer = config.answer.as_ref().map(|answer| (answer.schema.get(), answer.retries_max));
        [
            ("models", sum(&(&config.model, &config.fallbacks, &config.small_model))),
            ("tools", tools_sum(&config.tools)),
            ("system prompt", Sum::default().text(&config.system).0),
            ("memory files", sum(&config.memory)),
            ("form of the answer", sum(&answer)),
            ("permissions", sum(&config.permissions)),
            ("directories", sum(&config.roots)),
            ("limits and settings", sum(&rest)),
        ]
        .into()
    }
}

/// Descriptions and schemas are long: their debug form would take as long as all the rest of a start.
fn tools_sum(tools: &[ToolSpec]) -> u64 {
    let add = |sum: Sum, tool: &ToolSpec| {
        let size = tool.result_chars_max.map_or_else(String::new, |size| size.to_string());
        sum.text(&tool.name).text(&tool.description).text(tool.input_schema.get()).text(&size)
    };
    tools.iter().fold(Sum::default(), add).0
}

/// The sum of the debug form.
fn sum(part: &impl Debug) -> u64 {
    let mut sum = Sum::default();
    // Neither the sum nor a derived debug form ever fails.
    let _ = write!(sum, "{part:?}");
    sum.0
}

/// FNV-1a, the same in every process.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Adds a whole text, by words of eight bytes, and its length: two texts are not one longer one.
    fn text(mut self, text: &str) -> Self {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
            // What the product moves out at the top would never reach the bits below.
            self.0 = self.0.rotate_left(29);
        }
        for byte in rest {
            self.add(u64::from(*byte));
        }
        self.add(text.len() as u64);
        self
    }
}

impl Write for Sum {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        text.bytes().for_each(|byte| self.add(u64::from(byte)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_have_equal_sums() {
        assert_eq!(sum(&vec!["a", "b"]), sum(&["a", "b"]));
        assert_ne!(sum(&["a", "b"]), sum(&["ab"]));
        assert_eq!(sum(&""), sum(&String::new()));
    }

    #[test]
    fn every_byte_of_a_text_counts_and_so_does_where_it_ends() {
        let sum = |texts: &[&str]| texts.iter().fold(Sum::default(), |sum, text| sum.text(text)).0;
        let text = "what a tool does, in words.";
        for position in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[position] ^= 1;
            assert_ne!(sum(&[text]), sum(&[std::str::from_utf8(&other).unwrap()]), "{position}");
        }
        assert_ne!(sum(&["a", "b"]), sum(&["ab"]));
        assert_ne!(sum(&["", "a"]), sum(&["a", ""]));
        assert_ne!(sum(&["12345678abcdefgh"]), sum(&["abcdefgh12345678"]));
    }
}
