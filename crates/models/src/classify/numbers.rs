//! Numbers and places in the words of an error.

use windlass_protocol::{Culprit, Overflow};

/// What a number means.
#[derive(Clone, Copy)]
enum Slot {
    /// The tokens of the request, or a part of them.
    Needed,
    Limit,
    /// There is no number here.
    Nothing,
}

use Slot::{Limit, Needed, Nothing};

/// How servers word an overflow: pieces of text in lower case, in their order, each with a number right behind it.
const WORDINGS: &[&[(&str, Slot)]] = &[
    &[("prompt is too long: ", Needed), ("maximum context length: ", Limit)],
    &[("prompt is too long: ", Needed), (" > ", Limit)],
    &[("context limit: ", Needed), (" + ", Needed), (" > ", Limit)],
    &[("is too large: ", Needed), ("maximum context length is ", Limit), ("your request has ", Needed)],
    &[("maximum context length is ", Limit), ("for a total of at least ", Needed)],
    &[("maximum context length is ", Limit), ("requested about ", Needed)],
    &[("maximum context length is ", Limit), ("you requested ", Needed)],
    &[("maximum context length is ", Limit), ("your request has ", Needed), (" input tokens plus ", Needed)],
    &[("maximum context length is ", Limit), ("your request has ", Needed)],
    &[("maximum context length is ", Limit), ("resulted in ", Needed)],
    &[("maximum context length of ", Limit), ("requested a total of ", Needed)],
    &[("you passed ", Needed), (" and requested ", Needed), ("context length is only ", Limit)],
    &[("decoder prompt (length ", Needed), ("maximum model length of ", Limit)],
    &[("(total length ", Needed), ("(context length ", Limit)],
    &[("request (", Needed), ("available context size (", Limit)],
    &[("input token count (", Needed), ("tokens allowed (", Limit)],
    &[("prompt token count of ", Needed), ("limit of ", Limit)],
    &[("model token limit: ", Limit), ("requested: ", Needed)],
    &[("prompt contains ", Needed), ("too large for model with ", Limit)],
    &[("maximum prompt length is ", Limit), ("request contains ", Needed)],
    &[("the input (", Needed), ("context length (", Limit)],
    &[("must be <= ", Limit), ("given: ", Needed), (" tokens and ", Needed)],
    &[("cannot exceed ", Limit), ("received ", Needed)],
    &[("current length is ", Needed), ("limit is ", Limit)],
    &[("keep the first ", Needed), ("context length of only ", Limit)],
    &[("request too large", Nothing), ("limit ", Limit), ("requested ", Needed)],
];

/// How far the prompt is over the window, if the words say it.
pub(super) fn overflow(words: &str) -> Option<Overflow> {
    let words = words.to_ascii_lowercase();
    WORDINGS.iter().find_map(|wording| read(wording, &words))
}

fn read(wording: &[(&str, Slot)], words: &str) -> Option<Overflow> {
    let mut rest = words;
    let (mut needed, mut limit) = (0_u64, 0);
    for (text, slot) in wording {
        rest = &rest[rest.find(text)? + text.len()..];
        match slot {
            Needed => needed = needed.saturating_add(number(rest)?),
            Limit => limit = number(rest)?,
            Nothing => {}
        }
    }
    Some(Overflow { needed, limit })
}

/// The number a text begins with; digits may be grouped.
fn number(text: &str) -> Option<u64> {
    let digits = text.chars().take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '_'));
    digits.filter(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// The block of the request that the words name, as in `messages.3.content.1: …`.
pub(super) fn culprit(words: &str) -> Option<Culprit> {
    const MESSAGES: &str = "messages.";
    let place = words.match_indices(MESSAGES).find_map(|(at, _)| {
        let rest = &words[at + MESSAGES.len()..];
        Some((number(rest)?, rest))
    });
    let (message, rest) = place?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let block = after.strip_prefix(".content.").and_then(number);
    Some(Culprit {
        message: usize::try_from(message).ok()?,
        block: block.and_then(|block| usize::try_from(block).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let check = |words: &str, expected: Option<(usize, Option<usize>)>| {
            let seen = culprit(words).map(|place| (place.message, place.block));
            assert_eq!(seen, expected, "{words}");
        };
        check("messages.3.content.1: Invalid `signature`", Some((3, Some(1))));
        check("upstream: messages.12: `tool_use` ids", Some((12, None)));
        check("messages.0.content.2.image.source.base64: x", Some((0, Some(2))));
        check("messages.: no, messages.4.content", Some((4, None)));
        check("messages: at least one", None);
        check("messages.99999999999999999999999.content.1", None);
        check("", None);
    }

    #[test]
    fn what_is_no_number_says_nothing() {
        assert_eq!(overflow("prompt is too long: many tokens > few maximum"), None);
        assert_eq!(overflow("prompt is too long"), None);
        let grouped = overflow("Prompt is too long: 1,200,000 tokens > 1_000_000 maximum");
        assert_eq!(grouped, Some(Overflow { needed: 1_200_000, limit: 1_000_000 }));
    }

    #[test]
    fn every_wording_is_read_from_a_fixture() {
        let fixtures: Vec<serde_json::Value> = serde_json::from_str(include_str!("fixtures.json")).unwrap();
        let words = |fixture: &serde_json::Value| fixture["body"].to_string().to_ascii_lowercase();
        let texts: Vec<_> = fixtures.iter().map(words).collect();
        let first = |text: &String| WORDINGS.iter().position(|wording| read(wording, text).is_some());
        for (number, wording) in WORDINGS.iter().enumerate() {
            assert!(texts.iter().any(|text| first(text) == Some(number)), "{:?}", wording[0].0);
        }
    }
}
