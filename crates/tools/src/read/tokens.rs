//! Estimates the tokens of a text: 3.5 ASCII bytes make one, which is on the safe side for source code; every other
//! character makes one, which is about right for Chinese and too much for accents.

/// Sevenths of a token, so that the sum stays whole.
const UNITS_PER_TOKEN: usize = 7;
const UNITS_PER_ASCII_BYTE: usize = 2;

/// No text has more bytes per token than this.
pub(super) const BYTES_PER_TOKEN_MAX: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenEstimate {
    units: usize,
}

impl TokenEstimate {
    pub(super) fn add(&mut self, text: &str) {
        let characters = text.chars().count();
        // Bytes of continuation plus characters is the length; ASCII characters have no continuation.
        let ascii =
            if characters == text.len() { characters } else { text.bytes().filter(u8::is_ascii).count() };
        self.units += ascii * UNITS_PER_ASCII_BYTE + (characters - ascii) * UNITS_PER_TOKEN;
    }

    pub(super) fn exceed(self, tokens_max: usize) -> bool {
        self.units > tokens_max.saturating_mul(UNITS_PER_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        let check = |text: &str, fits: usize| {
            let mut cost = TokenEstimate::default();
            cost.add(text);
            assert!(!cost.exceed(fits) && cost.exceed(fits - 1), "{text} is not {fits}");
        };
        check("abcdefg", 2);
        check("日本語", 3);
        check("aé", 2);
        check(&"x".repeat(3500), 1000);
    }
}
