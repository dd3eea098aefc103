//! Sums of the configuration, part by part: they tell whether two engines would do the same.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

use windlass_core::{Config, Permissions};
use windlass_protocol::ModelCard;

use crate::builder::Engine;

impl Engine {
    /// A sum of each part of the configuration that decides what a session does, by its name. Engines of one version that
    /// differ in none of them play each other's logs.
    #[must_use]
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
            partial_messages: false,
            ..config.clone()
        };
        let answer = config.answer.as_ref().map(|answer| (answer.schema.get(), answer.retries_max));
        [
            ("models", sum(&(&config.model, &config.fallbacks, &config.small_model))),
            ("tools", sum(&config.tools)),
            ("system prompt", sum(&config.system)),
            ("memory files", sum(&config.memory)),
            ("form of the answer", sum(&answer)),
            ("permissions", sum(&config.permissions)),
            ("directories", sum(&config.roots)),
            ("limits and settings", sum(&rest)),
        ]
        .into()
    }
}

/// FNV-1a of the debug form: the same in every process.
fn sum(part: &impl Debug) -> u64 {
    struct Sum(u64);

    impl Write for Sum {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }

    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    // Neither the sum nor a derived debug form ever fails.
    let _ = write!(sum, "{part:?}");
    sum.0
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
}
