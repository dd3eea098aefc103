//! How many tokens the transcript is.

use windlass_protocol::{Message, Transcript, estimate_text_tokens};

use crate::config::Config;
use crate::step::Cx;

/// How many tokens the transcript is: what the last response reported, and an estimate of what came since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenCount {
    /// What the provider said: system prompt, tools, and the first `covered` messages.
    reported: u64,
    /// How many messages that was; 0 as long as nothing was said.
    covered: usize,
}

impl TokenCount {
    /// What a session remembers: tokens, and for how many messages.
    pub(crate) fn to_memory(self) -> (u64, usize) {
        (self.reported, self.covered)
    }

    /// What a session remembered, as far as it can be true of this many messages.
    pub(crate) fn from_memory((reported, covered): (u64, usize), messages_len: usize) -> Self {
        if covered <= messages_len { Self { reported, covered } } else { Self::default() }
    }

    /// A response was reported: everything that went in and came out, for this many messages, its own included.
    pub(crate) fn on_response(&mut self, usage_total: u64, messages_len: usize) {
        if usage_total > 0 {
            *self = Self { reported: usage_total, covered: messages_len };
        }
    }

    /// How many tokens the next request has.
    pub(crate) fn total(&self, messages: &Transcript, config: &Config) -> u64 {
        let known = if self.covered == 0 { fixed_tokens(config) } else { self.reported };
        let new = messages.len().saturating_sub(self.covered);
        known.saturating_add(estimate_all(messages.iter().rev().take(new)))
    }

    /// Estimates run high; what the provider counted says by how much.
    pub(crate) fn scale(&self, messages: &Transcript, config: &Config) -> TokenCalibration {
        let covered = estimate_all(messages.iter().take(self.covered));
        let estimated = covered.saturating_add(fixed_tokens(config)).max(1);
        let real = if self.covered == 0 { estimated } else { self.reported };
        TokenCalibration { real, estimated }
    }

    /// The transcript says less from some message on. What the provider reported still includes what is gone.
    pub(crate) fn rewritten(&mut self, before: &Transcript, after: &Transcript, config: &Config) {
        if self.covered == 0 {
            return;
        }
        let scale = self.scale(before, config);
        let new: Vec<_> = before.iter().skip(self.covered).map(|message| message.id).collect();
        let covered = after.iter().position(|message| new.contains(&message.id)).unwrap_or(after.len());
        let tokens = |list: &Transcript, len| estimate_all(list.iter().take(len));
        let freed = tokens(before, self.covered).saturating_sub(tokens(after, covered));
        *self = Self { reported: self.reported.saturating_sub(scale.real(freed)).max(1), covered };
    }
}

/// How estimates and the provider's count relate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenCalibration {
    real: u64,
    estimated: u64,
}

impl TokenCalibration {
    /// What the provider would say to an estimate, but never more than the estimate: it says what is gained.
    pub(crate) fn real(self, estimate: u64) -> u64 {
        mul_div(estimate, self.real.min(self.estimated), self.estimated)
    }

    /// The estimate of so many tokens of the provider's.
    pub(crate) fn estimate(self, real: u64) -> u64 {
        mul_div(real, self.estimated, self.real.max(1))
    }
}

/// `number * to / from`, without overflow.
pub(crate) fn mul_div(number: u64, to: u64, from: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(to) / u128::from(from.max(1))).unwrap_or(u64::MAX)
}

/// The estimates of these messages together.
pub(crate) fn estimate_all(messages: impl IntoIterator<Item = impl AsRef<Message>>) -> u64 {
    messages.into_iter().map(|message| u64::from(message.as_ref().tokens())).sum()
}

/// What every request has besides the transcript: system prompt and tools.
pub(crate) fn fixed_tokens(config: &Config) -> u64 {
    system_tokens(config).saturating_add(tools_tokens(config))
}

pub(crate) fn system_tokens(config: &Config) -> u64 {
    u64::from(estimate_text_tokens(&config.system))
}

/// Definitions of tools take about a token for each 2.2 bytes.
pub(crate) fn tools_tokens(config: &Config) -> u64 {
    let sizes = config.tools.iter().map(|tool| {
        let bytes = tool.name.len() + tool.description.len() + tool.input_schema.get().len();
        u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(10) / 22
    });
    sizes.sum()
}

impl Cx<'_> {
    /// How many tokens the next request has, as far as is known.
    pub(crate) fn context_tokens(&self) -> u64 {
        self.state.carry.tokens.total(&self.state.carry.messages, self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Block, MessageId, Origin};

    fn transcript(letters: &[usize]) -> Transcript {
        let message = |(id, letters): (u64, &usize)| {
            let blocks = vec![Block::text(&"a".repeat(*letters))];
            Message::user(MessageId(id), Origin::Prompt, blocks).into()
        };
        (1..).zip(letters).map(message).collect()
    }

    #[track_caller]
    fn check(count: TokenCount, letters: &[usize], system: &str, expected: u64) {
        let config = Config { system: system.into(), ..Config::default() };
        assert_eq!(count.total(&transcript(letters), &config), expected);
    }

    #[test]
    fn what_was_reported_counts_and_what_came_since_is_estimated() {
        // 290 letters are 100 tokens, and a message has 8 of its own.
        check(TokenCount::default(), &[290, 290], "", 216);
        check(TokenCount::default(), &[290], &"a".repeat(2_900), 1_108);
        let mut count = TokenCount::default();
        count.on_response(5_000, 2);
        check(count, &[290, 290], &"a".repeat(2_900), 5_000);
        check(count, &[290, 290, 290], "", 5_108);
        count.on_response(0, 3);
        check(count, &[290, 290, 290], "", 5_108);
    }

    #[test]
    fn what_a_rewrite_freed_is_taken_off_at_the_providers_rate() {
        let config = Config::default();
        let before = transcript(&[2_900, 2_900, 290]);
        let after: Transcript = before.iter().skip(1).cloned().collect();
        let mut count = TokenCount::default();
        count.on_response(1_008, 2);
        count.rewritten(&before, &after, &config);
        assert_eq!(count.total(&after, &config), 504 + 108);
        let all_new = TokenCount::default();
        let mut same = all_new;
        same.rewritten(&before, &after, &config);
        assert_eq!(same, all_new);
    }
}
