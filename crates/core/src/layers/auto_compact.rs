//! Layer 5: everything but a tail gives way to a summary.
//!
//! In order: is it due, do hooks object, what does the summariser say, what is around, and the boundary. Without a summary
//! the reduction is mechanical, so that there is always a way to go on.

use windlass_protocol::{
    CompactTrigger, Decision, HookAnswer, HookCall, HookEvent, Outcome, Surroundings, Terminal, Update,
};

use super::boundary::{self, Head};
use super::summariser::{self, Unsummarised};
use super::tokens::scaled;
use super::{Compactions, Thresholds, Work};
use crate::event::Effect;
use crate::prepare::{Asked, Forced, Preparing, Reply, Step};
use crate::step::Cx;

/// A compaction in the making.
#[derive(Clone, Debug)]
pub(crate) struct Compacting {
    trigger: CompactTrigger,
    started_at_ms: u64,
    tokens_before: u64,
    /// What the summary is to keep.
    instructions: Vec<String>,
    /// How often the request for the summary was made shorter.
    shrinks: u32,
    /// How many tokens of the transcript the summariser gets, by estimate.
    room: u64,
    /// What stands for the past, once it is known.
    head: Option<Head>,
}

pub(crate) fn auto_compact(cx: &mut Cx<'_>, preparing: &mut Preparing, reply: Option<Reply>) -> Step {
    let Some(reply) = reply else { return start(cx, preparing) };
    let Some(mut compacting) = preparing.work.compacting.take() else { return Step::Passed };
    let work = &mut preparing.work;
    match reply {
        Reply::Hooked(answer) => {
            if let Some(objection) = hear_hooks(cx, &mut compacting, *answer) {
                return fail(cx, compacting.trigger, &objection);
            }
            summarise(cx, work, compacting)
        }
        Reply::Forked(outcome) => on_summary(cx, work, compacting, &outcome),
        Reply::Looked(found) => finish(cx, work, &compacting, &found),
        Reply::Stored(_) => Step::Passed,
    }
}

/// Whether a compaction that the provider's refusal asks for can be of use.
pub(crate) fn reducible(cx: &Cx<'_>) -> bool {
    cx.config.context.reactive_compact
        && !cx.config.source.is_summariser()
        && !cx.state.carry.messages.is_empty()
}

fn start(cx: &mut Cx<'_>, preparing: &mut Preparing) -> Step {
    let Some((trigger, focus)) = due(cx, preparing) else { return Step::Passed };
    if trigger == CompactTrigger::Auto {
        let policy = &cx.config.context;
        let compactions = cx.state.carry.compactions.due_again(policy.refill_turns);
        cx.state.carry.compactions.no_progress = compactions;
        if compactions >= policy.no_progress_max {
            return Step::End(Terminal::RapidRefill);
        }
    }
    if !boundary::has_past(&cx.state.carry.messages) {
        return fail(cx, trigger, "There is nothing to compact.");
    }
    cx.emit(Update::Compacting(trigger));
    let tokens_before = cx.context_tokens();
    let mut instructions = summariser::wishes(&cx.config.memory);
    instructions.extend((!focus.trim().is_empty()).then(|| focus.clone()));
    let room = summariser::room(cx);
    let compacting = Compacting {
        trigger,
        started_at_ms: cx.at_ms,
        tokens_before,
        instructions,
        shrinks: 0,
        room,
        head: None,
    };
    if !cx.config.hooks.contains(&HookEvent::PreCompact) {
        return summarise(cx, &mut preparing.work, Box::new(compacting));
    }
    let hook = cx.state.ids.hook();
    let call = HookCall::PreCompact { trigger, instructions: focus.into() };
    cx.effects.push(Effect::RunHooks { hook, call });
    preparing.work.compacting = Some(Box::new(compacting));
    Step::Asked(Asked::Hooks(hook))
}

/// What asks for a compaction, and what the user wants it to keep.
fn due(cx: &Cx<'_>, preparing: &Preparing) -> Option<(CompactTrigger, String)> {
    if cx.config.source.is_summariser() {
        return None;
    }
    match &preparing.forced {
        Some(Forced::Manual { focus }) => Some((CompactTrigger::Manual, focus.clone())),
        Some(Forced::Reactive) => Some((CompactTrigger::Reactive, String::new())),
        None => {
            let threshold = Thresholds::of(cx.config, cx.model()).compact;
            let is_due = cx.config.context.auto_compact && cx.context_tokens() >= threshold;
            is_due.then_some((CompactTrigger::Auto, String::new()))
        }
    }
}

/// What hooks want said in the summary is added; what they have against it is returned.
fn hear_hooks(cx: &mut Cx<'_>, compacting: &mut Compacting, answer: HookAnswer) -> Option<String> {
    for notice in answer.notices {
        cx.emit(Update::Notice(notice));
    }
    compacting.instructions.extend(answer.context);
    let objections: Vec<String> = answer.stop.into_iter().chain(answer.blocks).collect();
    (!objections.is_empty()).then(|| format!("A hook objects: {}", objections.join("; ")))
}

/// Nothing was compacted. Only a prompt that the provider refused cannot do without.
fn fail(cx: &mut Cx<'_>, trigger: CompactTrigger, why: &str) -> Step {
    cx.emit(Update::CompactionFailed(why.to_owned()));
    match trigger {
        CompactTrigger::Auto | CompactTrigger::Manual => Step::Passed,
        CompactTrigger::Reactive => Step::End(Terminal::PromptTooLong),
    }
}

fn summarise(cx: &mut Cx<'_>, work: &mut Work, compacting: Box<Compacting>) -> Step {
    let is_broken = cx.state.carry.compactions.failures >= cx.config.context.summary_failures_max;
    let fork = if is_broken {
        None
    } else {
        let plan = summariser::plan(cx, &compacting.instructions, compacting.room);
        cx.fork(plan)
    };
    match fork {
        Some(fork) => {
            work.compacting = Some(compacting);
            Step::Asked(Asked::Fork(fork))
        }
        None => look(cx, work, compacting, Head::Mechanical),
    }
}

fn on_summary(cx: &mut Cx<'_>, work: &mut Work, mut compacting: Box<Compacting>, outcome: &Outcome) -> Step {
    let why = match summariser::read(outcome) {
        Ok(summary) => {
            cx.state.carry.compactions.failures = 0;
            return look(cx, work, compacting, Head::Summary(summary));
        }
        Err(Unsummarised::TooLong(overflow))
            if compacting.shrinks < cx.config.context.summary_shrinks_max =>
        {
            compacting.shrinks += 1;
            compacting.room = summariser::smaller(cx, compacting.room, overflow);
            return summarise(cx, work, compacting);
        }
        Err(Unsummarised::TooLong(_)) => "The request for the summary does not fit the window.".to_owned(),
        Err(Unsummarised::Failed(why)) => why,
    };
    cx.state.carry.compactions.failures += 1;
    let is_broken = cx.state.carry.compactions.failures >= cx.config.context.summary_failures_max;
    let is_full = cx.context_tokens() >= Thresholds::of(cx.config, cx.model()).blocking;
    let can_wait = match compacting.trigger {
        CompactTrigger::Auto => !is_broken && !is_full,
        CompactTrigger::Manual => !is_broken,
        CompactTrigger::Reactive => false,
    };
    if can_wait {
        return fail(cx, compacting.trigger, &why);
    }
    cx.emit(Update::Notice(format!(
        "No model summarised the conversation, so it is cut down without one. {why}"
    )));
    look(cx, work, compacting, Head::Mechanical)
}

/// Looks at what has to be attached again: the files read last, and the task list.
fn look(cx: &mut Cx<'_>, work: &mut Work, mut compacting: Box<Compacting>, head: Head) -> Step {
    let policy = &cx.config.context;
    let files = cx.known_files(policy.files_attached);
    let show = files.into_iter().map(|file| (file.path, policy.file_chars_max)).collect();
    let look = cx.state.ids.look();
    cx.effects.push(Effect::LookAround { look, known: Vec::new(), show });
    compacting.head = Some(head);
    work.compacting = Some(compacting);
    Step::Asked(Asked::Look(look))
}

fn finish(cx: &mut Cx<'_>, work: &mut Work, compacting: &Compacting, found: &Surroundings) -> Step {
    let Compacting { trigger, tokens_before, .. } = *compacting;
    let head = compacting.head.as_ref().unwrap_or(&Head::Mechanical);
    let duration_ms = cx.at_ms.saturating_sub(compacting.started_at_ms);
    let goal = goal(cx, compacting);
    let Some(mut compaction) = boundary::build(cx, head, found, goal) else {
        cx.state.carry.compactions.noted(cx.state.carry.turn_count, /* progress */ false);
        return fail(cx, trigger, "The conversation is as short as it can be.");
    };
    compaction.trigger = trigger;
    compaction.tokens_before = tokens_before;
    compaction.duration_ms = duration_ms;
    let made_progress = compaction.tokens_after <= Thresholds::of(cx.config, cx.model()).compact / 2;
    cx.change(Decision::Compacted(Box::new(compaction)));
    let carry = &mut cx.state.carry;
    carry.tokens = super::TokenCount::default();
    carry.compactions.noted(carry.turn_count, made_progress);
    if let Some(fork) = carry.staged.drop_all() {
        cx.effects.push(Effect::CancelFork(fork));
    }
    work.compacted = true;
    Step::Passed
}

/// How many tokens the request may have afterwards: half of the threshold, or of what the provider said it takes.
fn goal(cx: &Cx<'_>, compacting: &Compacting) -> u64 {
    let half = Thresholds::of(cx.config, cx.model()).compact / 2;
    let is_refused = compacting.trigger == CompactTrigger::Reactive;
    let refused =
        cx.state.carry.withheld.as_ref().filter(|_| is_refused).and_then(|failure| failure.overflow);
    refused.map_or(half, |overflow| {
        half.min(scaled(compacting.tokens_before, overflow.limit, overflow.needed) / 2)
    })
}

impl Compactions {
    /// How many compactions in a row made no progress, now that one is due again.
    fn due_again(&self, refill_turns: u32) -> u32 {
        let is_refilled = self.compacted && self.turns_since <= refill_turns;
        if is_refilled || (self.compacted && self.above_half) { self.no_progress + 1 } else { 0 }
    }

    /// One was made, or tried in vain.
    fn noted(&mut self, turn: u32, made_progress: bool) {
        self.compacted = true;
        self.turns_since = 0;
        self.turn = turn;
        self.above_half = !made_progress;
    }
}
