//! The summariser: a fork of the conversation that is asked to sum it up.

use std::sync::Arc;

use windlass_protocol::{
    Block, BlockKind, MemoryNote, Message, MessageId, Origin, Outcome, Overflow, RawValue, Terminal,
    Transcript,
};

use super::Thresholds;
use super::apply::without_thinking;
use super::media::stub_text;
use super::results::{self, answered_call};
use super::rounds::units;
use super::text::clip;
use super::tokens::{estimate_all, mul_div};
use crate::config::RunSource;
use crate::step::Cx;
use crate::turn::fork::{ForkContext, ForkPlan};

/// A summary has at most this many tokens.
const SUMMARY_TOKENS: u32 = 16_000;
/// What the request has besides the transcript: the instructions, and some air.
const ASIDE_TOKENS: u64 = 4_000;

/// Why there is no summary.
#[derive(Debug)]
pub(crate) enum SummaryFailure {
    /// The request for it is too long, and by how much, where the provider says it.
    TooLong(Option<Overflow>),
    /// Anything else, for people.
    Failed(String),
}

/// The summary that came of a fork. One that was cut at its end is better than none.
pub(crate) fn read(outcome: &Outcome) -> Result<String, SummaryFailure> {
    let text = outcome.text.trim();
    match outcome.terminal {
        Terminal::Completed | Terminal::MaxOutputTokens if !text.is_empty() => Ok(text.to_owned()),
        Terminal::PromptTooLong | Terminal::BlockingLimit => {
            Err(SummaryFailure::TooLong(outcome.failure.as_ref().and_then(|failure| failure.overflow)))
        }
        Terminal::MaxTurns => {
            Err(SummaryFailure::Failed("The model called tools instead of writing a summary.".into()))
        }
        terminal => {
            let errors = outcome.error_text();
            let why = if errors.is_empty() { terminal.name().replace('_', " ") } else { errors };
            Err(SummaryFailure::Failed(format!("The model wrote no summary: {why}")))
        }
    }
}

/// How many tokens of the transcript a request for a summary has room for, by estimate: what is over the window goes.
pub(crate) fn room(cx: &Cx<'_>) -> u64 {
    let (carry, model) = (&cx.state.carry, cx.model());
    let aside = u64::from(output_tokens(cx)) + ASIDE_TOKENS;
    let needed = cx.context_tokens().saturating_add(aside);
    let excess = needed.saturating_sub(Thresholds::window(cx.config, model));
    let scale = carry.tokens.scale(&carry.messages, cx.config);
    let all = estimate_all(carry.messages.iter());
    all.saturating_sub(scale.estimate(excess)).max(ASIDE_TOKENS)
}

/// The cap on the summary: in a small window, a quarter of it.
fn output_tokens(cx: &Cx<'_>) -> u32 {
    let quarter = u32::try_from(Thresholds::window(cx.config, cx.model()) / 4).unwrap_or(u32::MAX);
    SUMMARY_TOKENS.min(cx.model().output_tokens_max).min(quarter).max(1)
}

/// Less room, after the provider refused as much: by its own numbers, or by a third. Whole rounds that did not fit have
/// left less than there was room for, and the next request must not be the same again.
pub(crate) fn smaller(cx: &Cx<'_>, room: u64, overflow: Option<Overflow>) -> u64 {
    let sent = fit(&cx.state.carry.messages, room, cx.model().is_thinking_bound);
    let sent = estimate_all(sent.iter()).min(room);
    let third = sent / 3 * 2;
    match overflow.filter(|overflow| overflow.limit < overflow.needed) {
        Some(overflow) => mul_div(sent, overflow.limit, overflow.needed).saturating_mul(9) / 10,
        None => third,
    }
}

/// The same model, system prompt and tools, and the same messages as far as they fit: the provider has them in its cache.
pub(crate) fn plan(cx: &Cx<'_>, instructions: &[String], room: u64) -> ForkPlan {
    let mut prompt = PROMPT.to_owned();
    if !instructions.is_empty() {
        prompt.push_str("\n\nAlso follow these instructions for the summary:\n");
        prompt.push_str(&instructions.join("\n\n"));
    }
    ForkPlan {
        source: RunSource::Compact,
        ground: ForkContext::Shared {
            messages: fit(&cx.state.carry.messages, room, cx.model().is_thinking_bound),
        },
        prompt: prompt.into(),
        output_tokens: output_tokens(cx),
    }
}

/// The transcript without its oldest rounds, so that it fits; what is left and still too long is cut.
fn fit(messages: &Transcript, room: u64, is_thinking_bound: bool) -> Transcript {
    let list: Vec<&Arc<Message>> = messages.iter().collect();
    let mut tokens = estimate_all(&list);
    if tokens <= room {
        return messages.clone();
    }
    let units = units(&list);
    let (mut from, last) = (0, units.last().map_or(0, |unit| unit.first));
    for unit in units.iter().take_while(|unit| unit.first < last) {
        if tokens <= room {
            break;
        }
        (from, tokens) = (unit.end, tokens - unit.tokens);
    }
    let kept = list[from..].iter().filter_map(|message| {
        if is_thinking_bound { without_thinking(message) } else { Some((*message).clone()) }
    });
    let left_out = Message::user(MessageId(0), Origin::Continuation, vec![Block::text(LEFT_OUT)]);
    let whole: Transcript = std::iter::once(Arc::new(left_out)).chain(kept).collect();
    if tokens <= room { whole } else { cut(&whole, room) }
}

/// Every text cut to what fits if all are that long, and no media.
fn cut(messages: &Transcript, room: u64) -> Transcript {
    let blocks = messages.iter().map(|message| message.blocks.len()).sum::<usize>();
    let chars = usize::try_from(room).unwrap_or(usize::MAX) / blocks.max(1);
    let shorter = |block: &Block| match block.kind() {
        BlockKind::Text(text) => Block::text(&clip(text, chars)),
        BlockKind::ToolResult { .. } => {
            let text = clip(&results::text(block), chars);
            let (id, is_error) = answered_call(block).map_or(("", false), |(id, is_error)| (&**id, is_error));
            Block::tool_result(id, &[Block::text(&text)], is_error)
        }
        BlockKind::Image | BlockKind::Document => Block::text(&stub_text(block)),
        BlockKind::ToolUse(call) if call.input.get().len() > chars => {
            let field = serde_json::Value::String(clip(call.input.get(), chars));
            let input = RawValue::from_string(format!("{{\"cut\":{field}}}")).unwrap_or_default();
            Block::tool_use(&call.id, &call.name, input)
        }
        _ => block.clone(),
    };
    let kept = messages.iter().filter_map(without_thinking);
    kept.map(|message| Arc::new(message.with_blocks(message.blocks.iter().map(shorter).collect()))).collect()
}

/// What memory files say about summaries: the sections whose heading is about compaction.
pub(crate) fn wishes(memory: &[MemoryNote]) -> Vec<String> {
    memory.iter().flat_map(|note| sections(&note.text)).collect()
}

fn sections(text: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    let mut level = None;
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading = !in_code && hashes > 0 && line[hashes..].starts_with(' ');
        if is_heading && level.is_none_or(|level| hashes <= level) {
            let heading = line.to_lowercase();
            let is_about_it = heading.contains("compact") || heading.contains("summar");
            level = is_about_it.then_some(hashes);
            sections.extend(is_about_it.then(String::new));
        }
        if let (Some(_), Some(section)) = (level, sections.last_mut()) {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections.into_iter().map(|section| section.trim_end().to_owned()).collect()
}

const LEFT_OUT: &str = "(The oldest part of this conversation is omitted here.)";

const PROMPT: &str = include_str!("../../prompts/summary.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::fixture::{answer, calls, ids, prompt, results, transcript};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let note = MemoryNote { path: "/m".into(), text: text.into() };
        assert_eq!(wishes(&[note]), expected);
    }

    #[test]
    fn memory_says_what_summaries_are_to_heed() {
        check("# Build\nmake\n", &[]);
        check(
            "# A\nx\n## When you compact\nkeep y\n### Detail\nz\n## B\nw",
            &["## When you compact\nkeep y\n### Detail\nz"],
        );
        check(
            "# Summaries\nshort\n# Compact instructions\nkeep",
            &["# Summaries\nshort", "# Compact instructions\nkeep"],
        );
        check("```\n# compact\n```\n#compact", &[]);
    }

    fn long() -> Transcript {
        let text = "a".repeat(2_900);
        transcript(vec![
            prompt(1, &text),
            calls(2, &[("t1", "Read", "{}")]),
            results(3, &[("t1", &text)]),
            answer(4, &text),
            prompt(5, &text),
            calls(6, &[("t2", "Read", "{}")]),
            results(7, &[("t2", &text)]),
        ])
    }

    #[track_caller]
    fn check_fit(room: u64, left: &[u64]) {
        let fitted = fit(&long(), room, /* binds thinking */ false);
        assert_eq!(ids(&fitted), left);
        let tokens = estimate_all(fitted.iter());
        assert!(tokens <= room + 500, "{tokens}");
    }

    #[test]
    fn the_oldest_rounds_are_left_out_until_it_fits() {
        check_fit(10_000, &[1, 2, 3, 4, 5, 6, 7]);
        check_fit(4_500, &[0, 2, 3, 4, 5, 6, 7]);
        check_fit(3_500, &[0, 4, 5, 6, 7]);
        check_fit(1_200, &[0, 6, 7]);
        // The last round alone is too long.
        check_fit(300, &[0, 6, 7]);
    }
}
