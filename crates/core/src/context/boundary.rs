//! What stands in the place of the past after a compaction: a summary, and what must not depend on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_protocol::{
    AmbientChanges, Block, CompactTrigger, Compaction, Message, MessageId, Origin, Transcript,
};

use super::Thresholds;
use super::apply::compact;
use super::digest::{digest, prompt_text};
use super::rounds::{MessageGroup, units};
use super::snip::read_path;
use super::text::clip;
use super::tokens::{estimate_all, fixed_tokens};
use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// What stands for the past.
#[derive(Clone, Debug)]
pub(crate) enum BoundaryHead {
    /// What a model wrote.
    Summary(String),
    /// What can be said without one.
    Mechanical,
}

/// How much of everything there may be: each level halves it, the last leaves next to nothing.
const LEVELS: u32 = 8;
/// From this level on a model's summary is cut as well.
const SUMMARY_CUT_LEVEL: u32 = 4;
/// From this level on a prompt that the provider refused is cut as well.
const PROMPT_CUT_LEVEL: u32 = 4;
const SUMMARY_CHARS: usize = 40_000;
/// A summary is hardly ever shorter than this.
const SUMMARY_CHARS_LEAST: usize = 600;
const DIGEST_CHARS: usize = 24_000;
const PROMPT_CHARS: usize = 10_000;
const TASKS_CHARS: usize = 8_000;

/// How the block with the last prompt begins; the next compaction finds it there.
const LAST_PROMPT: &str = "The user's last request:\n";

/// Whether there is anything that a boundary could stand for. A prompt that nobody has answered yet is not past, unless
/// the provider refused it: estimates err high and must not cut what the user just said.
pub(crate) fn has_past(messages: &Transcript, trigger: CompactTrigger) -> bool {
    let list: Vec<&Arc<Message>> = messages.iter().collect();
    let past = if trigger == CompactTrigger::Auto { unanswered_from(&list) } else { list.len() };
    list[..past].iter().any(|message| message.origin != Origin::Boundary)
}

/// Where the prompt begins that nobody has answered yet; behind the last message if there is none.
fn unanswered_from(list: &[&Arc<Message>]) -> usize {
    let open = list.iter().rev().take_while(|message| message.origin == Origin::Prompt).count();
    list.len() - open
}

/// Whether a compaction that the user asks for could leave less than there is: known before anything is paid for a summary. In a
/// context that is nearly full by the provider's count our estimate of what is left is not worth a refusal.
pub(crate) fn can_shrink(cx: &Cx<'_>) -> bool {
    if cx.context_tokens() >= Thresholds::of(cx.config, cx.model()).warning {
        return true;
    }
    let before = &cx.state.carry.messages;
    let list: Vec<&Arc<Message>> = before.iter().collect();
    let (head, found) = (BoundaryHead::Summary("x".repeat(SUMMARY_CHARS_LEAST)), AmbientChanges::default());
    let (level, units) = (LEVELS - 1, units(&list));
    let parts =
        Parts { cx, list: &list, units: &units, head: &head, found: &found, level, should_keep_prompt: true };
    let estimate_before = estimate_all(&list);
    let shortest = parts.compaction(cx.state.ids.next_message(), estimate_before);
    estimate_all(compact(before, &shortest).iter()) < estimate_before
}

/// The compaction that leaves at most `goal` tokens, or as few as possible; nothing if it would make nothing shorter, neither
/// by our estimate nor by the provider's count.
pub(crate) fn build(
    cx: &mut Cx<'_>,
    trigger: CompactTrigger,
    head: &BoundaryHead,
    found: &AmbientChanges,
    goal: u64,
) -> Option<Compaction> {
    let id = cx.state.ids.next_message();
    let before = &cx.state.carry.messages;
    let list: Vec<&Arc<Message>> = before.iter().collect();
    let units = units(&list);
    let estimate_before = estimate_all(&list);
    let (fixed, tokens_before) = (fixed_tokens(cx.config), cx.context_tokens());
    let mut best = None;
    for level in 0..LEVELS {
        let should_keep_prompt = trigger != CompactTrigger::Reactive || level < PROMPT_CUT_LEVEL;
        let parts = Parts { cx, list: &list, units: &units, head, found, level, should_keep_prompt };
        let compaction = parts.compaction(id, estimate_before);
        let estimate = estimate_all(compact(before, &compaction).iter());
        let tokens_after = fixed.saturating_add(estimate);
        if estimate < estimate_before || tokens_after < tokens_before {
            best = Some(Compaction { tokens_after, ..compaction });
        }
        if tokens_after <= goal {
            break;
        }
    }
    if best.is_some() {
        cx.state.ids.saw_message(id);
    }
    best
}

/// What a boundary is made of, at one level.
struct Parts<'a> {
    cx: &'a Cx<'a>,
    list: &'a [&'a Arc<Message>],
    units: &'a [MessageGroup],
    head: &'a BoundaryHead,
    found: &'a AmbientChanges,
    level: u32,
    /// Whether a prompt that nobody has answered yet stays as it is.
    should_keep_prompt: bool,
}

impl Parts<'_> {
    fn compaction(&self, id: MessageId, estimate_before: u64) -> Compaction {
        let most = self.cx.config.context.tail_tokens_max.min(estimate_before / 4) >> self.level;
        let tail = self.tail_from(most);
        let blocks = self.texts(tail).iter().map(|text| Block::text(text)).collect();
        let kept = &self.list[tail..];
        let is_bound = self.cx.model().is_thinking_bound;
        let is_unbound = is_bound && kept.iter().any(|message| message.thinks());
        Compaction {
            trigger: CompactTrigger::Auto,
            boundary: Arc::new(Message::user(id, Origin::Boundary, blocks)),
            tail: kept.first().map(|message| message.id),
            is_unbound,
            is_mechanical: matches!(self.head, BoundaryHead::Mechanical),
            tokens_before: 0,
            tokens_after: 0,
            duration_ms: 0,
        }
    }

    /// Where the tail of whole rounds begins that has at most so many tokens.
    fn tail_from(&self, most: u64) -> usize {
        let (mut from, mut tokens) = (self.list.len(), 0);
        for unit in self.units.iter().rev() {
            tokens += unit.tokens;
            if tokens > most {
                break;
            }
            from = unit.first;
        }
        if self.should_keep_prompt { from.min(unanswered_from(self.list)) } else { from }
    }

    fn texts(&self, tail: usize) -> Vec<String> {
        let mut texts = vec![self.summary(tail)];
        texts.extend(self.last_prompt(tail));
        texts.extend(self.environment());
        texts.extend(self.tasks());
        texts.extend(self.background());
        texts.extend(self.directory());
        texts.extend(self.memory());
        texts.extend(self.files(tail));
        texts
    }

    fn summary(&self, tail: usize) -> String {
        let text = match self.head {
            BoundaryHead::Summary(text) if self.level < SUMMARY_CUT_LEVEL => text.clone(),
            BoundaryHead::Summary(text) => clip(text, SUMMARY_CHARS >> (self.level - SUMMARY_CUT_LEVEL)),
            BoundaryHead::Mechanical => digest(&self.list[..tail], DIGEST_CHARS >> self.level),
        };
        let tail = if tail < self.list.len() { " The latest messages follow unchanged." } else { "" };
        format!(
            "This conversation was too long, so a summary replaces everything before this message.{tail} \
             Continue the work from there, without remarks about the summary.\n\n{text}"
        )
    }

    /// The last prompt, if the tail does not hold it. After an earlier compaction it stands in the boundary.
    fn last_prompt(&self, tail: usize) -> Option<String> {
        if self.list[tail..].iter().any(|message| prompt_text(message).is_some()) {
            return None;
        }
        let prompt = self.list[..tail].iter().rev().find_map(|message| prompt_text(message));
        let prompt = prompt.or_else(|| {
            let boundary = self.list.iter().find(|message| message.origin == Origin::Boundary)?;
            boundary
                .blocks
                .iter()
                .filter_map(Block::as_text)
                .find_map(|text| text.strip_prefix(LAST_PROMPT))
                .map(str::to_owned)
        });
        prompt.map(|prompt| format!("{LAST_PROMPT}{}", clip(prompt.trim(), PROMPT_CHARS >> self.level)))
    }

    /// The facts about the machine that the first prompt came with.
    fn environment(&self) -> Option<String> {
        let mut texts = self.list.iter().flat_map(|message| &message.blocks).filter_map(Block::as_text);
        texts.find(|text| text.starts_with("<environment>")).map(str::to_owned)
    }

    fn tasks(&self) -> Option<String> {
        let tasks = self.found.tasks.as_ref().filter(|tasks| !tasks.trim().is_empty())?;
        Some(format!("The current task list:\n{}", clip(tasks, TASKS_CHARS >> self.level)))
    }

    fn background(&self) -> Option<String> {
        self.found.background.as_ref().map(|tasks| clip(tasks, TASKS_CHARS >> self.level))
    }

    fn directory(&self) -> Option<String> {
        let cwd = &self.cx.state.carry.tools.cwd;
        let is_moved = self.cx.config.roots.first().is_some_and(|root| *root != **cwd);
        is_moved.then(|| format!("The working directory is now {}.", cwd.display()))
    }

    fn memory(&self) -> Vec<String> {
        let chars = self.cx.config.context.file_chars_max >> self.level;
        let notes = self.cx.config.memory.iter();
        notes
            .map(|note| format!("Instructions from {}:\n{}", note.path.display(), clip(&note.text, chars)))
            .collect()
    }

    /// The files read last, unless the tail shows them.
    fn files(&self, tail: usize) -> Vec<String> {
        let policy = &self.cx.config.context;
        let calls =
            self.list[tail..].iter().flat_map(|message| &message.blocks).filter_map(Block::as_tool_use);
        let in_tail: BTreeSet<String> =
            calls.filter_map(|call| read_path(call, self.cx.config, /* in full */ false)).collect();
        let files = self.found.shown.iter().filter(|(path, _)| !in_tail.contains(&*path.to_string_lossy()));
        let text = |(path, text): &(std::path::PathBuf, Arc<str>)| {
            format!(
                "Current content of {}:\n{}",
                path.display(),
                clip(text, policy.file_chars_max >> self.level)
            )
        };
        files.take(policy.files_attached >> (self.level / 2)).map(text).collect()
    }
}

/// Looked at once: only a conversation from elsewhere may hold what was before its last compaction.
pub(crate) fn after_boundary(cx: &mut Cx<'_>, _: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    if cx.state.carry.compactions.decided_to.is_none() {
        let messages = &cx.state.carry.messages;
        let newest = messages.iter().rev().position(|message| message.origin == Origin::Boundary);
        if let Some(newest) = newest.filter(|newest| newest + 1 < messages.len()) {
            let view: Transcript = messages.iter().skip(messages.len() - 1 - newest).cloned().collect();
            cx.rewrite(view);
        }
    }
    LayerStep::Passed
}
