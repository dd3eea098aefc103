//! Layer 5: everything but a tail gives way to a summary.
//!
//! In order: is it due, do hooks object, what does the summariser say, what is around, and the boundary. Without a summary
//! the reduction is mechanical, so that there is always a way to go on.

use windlass_protocol::{
    AmbientChanges, Block, CompactTrigger, CompactionMemory, Decision, HookAnswer, HookCall, HookEvent,
    LoadReason, Message, Origin, Outcome, Overflow, StartSource, Terminal, Update,
};

use super::Thresholds;
use super::boundary::{self, BoundaryHead};
use super::summariser::{self, SummaryFailure};
use super::tokens::{estimate_all, fixed_tokens, mul_div};
use crate::config::CompactionPolicy;
use crate::effect::Effect;
use crate::step::Cx;
use crate::turn::attach::reminders;
use crate::turn::hooks::ended_by_hook;
use crate::turn::prepare::{ForcedCompaction, LayerQuestion, LayerReply, LayerStep, Preparation};

/// As much of the conversation is left, however much the rest of the request takes.
const LEFT_TOKENS: u64 = 4_000;

/// A compaction in the making.
#[derive(Clone, Debug)]
pub(crate) struct CompactionProgress {
    trigger: CompactTrigger,
    started_at_ms: u64,
    tokens_before: u64,
    /// How many compactions in a row before this one made no progress.
    no_progress: u32,
    /// What the user wants it to keep.
    focus: String,
    /// What the summary is to keep, in all.
    instructions: Vec<String>,
    /// How often the request for the summary was made shorter.
    shrinks: u32,
    /// How many tokens of the transcript the summariser gets, by estimate.
    room: u64,
    /// What stands for the past, once it is known.
    head: Option<BoundaryHead>,
    /// Once it is done: how many tokens it left, and what hooks are still to hear.
    done: Option<(u64, std::vec::IntoIter<HookCall>)>,
}

pub(crate) fn auto_compact(
    cx: &mut Cx<'_>,
    preparing: &mut Preparation,
    reply: Option<LayerReply>,
) -> LayerStep {
    let begun = match reply {
        None => begin(cx, preparing),
        Some(_) => preparing.compacting.take().ok_or(LayerStep::Passed),
    };
    let mut compacting = match begun {
        Ok(compacting) => compacting,
        Err(step) => return step,
    };
    let step = go_on(cx, &mut compacting, reply);
    if matches!(step, LayerStep::Asked(_)) {
        preparing.compacting = Some(compacting);
    }
    step
}

fn go_on(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, reply: Option<LayerReply>) -> LayerStep {
    match reply {
        None if cx.config.hooks.contains(&HookEvent::PreCompact) => {
            let (trigger, instructions) = (compacting.trigger, compacting.focus.as_str().into());
            LayerStep::Asked(LayerQuestion::Hooks(
                cx.ask_hooks(HookCall::PreCompact { trigger, instructions }),
            ))
        }
        None => summarise(cx, compacting),
        Some(LayerReply::Hooked(answer)) if compacting.done.is_some() => on_told(cx, compacting, &answer),
        Some(LayerReply::Hooked(answer)) => match hear_hooks(cx, compacting, *answer) {
            Some(objection) => fail(cx, compacting.trigger, &objection),
            None => summarise(cx, compacting),
        },
        Some(LayerReply::Forked(outcome)) => on_summary(cx, compacting, &outcome),
        Some(LayerReply::Looked(found)) => finish(cx, compacting, &found),
        Some(LayerReply::Stored(_)) => LayerStep::Passed,
    }
}

/// Whether a compaction that the provider's refusal asks for can be of use.
pub(crate) fn reducible(cx: &Cx<'_>) -> bool {
    cx.config.context.compaction == CompactionPolicy::Automatic
        && !cx.config.source.is_summariser()
        && !cx.state.carry.messages.is_empty()
}

/// The compaction that is due, or what the layer comes to without one.
fn begin(cx: &mut Cx<'_>, preparing: &Preparation) -> Result<Box<CompactionProgress>, LayerStep> {
    let Some((trigger, focus)) = due(cx, preparing) else { return Err(LayerStep::Passed) };
    let before = &cx.state.carry.compactions;
    let no_progress = match trigger {
        CompactTrigger::Auto | CompactTrigger::Reactive => {
            idle_compactions(before, cx.config.context.refill_turns)
        }
        CompactTrigger::Manual => before.no_progress,
    };
    if trigger != CompactTrigger::Manual && no_progress >= cx.config.context.no_progress_max {
        return Err(LayerStep::End(Terminal::RapidRefill));
    }
    if cx.config.context.compaction == CompactionPolicy::Off {
        return Err(fail(cx, trigger, "Compaction is turned off."));
    }
    if !boundary::has_past(&cx.state.carry.messages, trigger) {
        return Err(match trigger {
            CompactTrigger::Auto => LayerStep::Passed,
            _ => fail(cx, trigger, "There is nothing to compact."),
        });
    }
    if trigger == CompactTrigger::Manual && !boundary::can_shrink(cx) {
        let why = "The conversation is already as short as a compaction would leave it.";
        return Err(fail(cx, trigger, why));
    }
    cx.emit(Update::Compacting(trigger));
    let mut instructions = summariser::wishes(&cx.config.memory);
    instructions.extend((!focus.trim().is_empty()).then(|| focus.clone()));
    let mut room = summariser::room(cx);
    if trigger == CompactTrigger::Reactive {
        // What the provider has just refused would be refused again.
        room = summariser::smaller(cx, room, refusal(cx));
    }
    let (started_at_ms, tokens_before) = (cx.at_ms, cx.context_tokens());
    Ok(Box::new(CompactionProgress {
        trigger,
        started_at_ms,
        tokens_before,
        no_progress,
        focus,
        instructions,
        shrinks: 0,
        room,
        head: None,
        done: None,
    }))
}

/// What asks for a compaction, and what the user wants it to keep.
fn due(cx: &Cx<'_>, preparing: &Preparation) -> Option<(CompactTrigger, String)> {
    if cx.config.source.is_summariser() {
        return None;
    }
    match &preparing.forced {
        Some(ForcedCompaction::Manual { focus }) => Some((CompactTrigger::Manual, focus.clone())),
        Some(ForcedCompaction::Reactive) => Some((CompactTrigger::Reactive, String::new())),
        None => {
            let is_automatic = cx.config.context.compaction == CompactionPolicy::Automatic;
            let is_due = is_automatic && is_full(cx);
            is_due.then_some((CompactTrigger::Auto, String::new()))
        }
    }
}

/// Whether the context, or the conversation where the rest alone is that large, is at the threshold.
fn is_full(cx: &Cx<'_>) -> bool {
    let threshold = Thresholds::of(cx.config, cx.model()).compact;
    let conversation = || estimate_all(cx.state.carry.messages.iter());
    cx.context_tokens() >= threshold && (fixed_tokens(cx.config) < threshold || conversation() >= threshold)
}

/// What hooks want said in the summary is added; what they have against it is returned.
fn hear_hooks(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, answer: HookAnswer) -> Option<String> {
    cx.show_notices(&answer);
    compacting.instructions.extend(answer.context);
    let objections: Vec<String> = answer.stop.into_iter().chain(answer.blocks).collect();
    (!objections.is_empty()).then(|| format!("A hook blocked it: {}", objections.join("; ")))
}

/// Nothing was compacted. Only a prompt that the provider refused cannot do without.
fn fail(cx: &mut Cx<'_>, trigger: CompactTrigger, why: &str) -> LayerStep {
    cx.emit(Update::CompactionFailed(why.to_owned()));
    match trigger {
        CompactTrigger::Auto => LayerStep::Passed,
        CompactTrigger::Manual => report(cx, format!("Not compacted. {why}")),
        CompactTrigger::Reactive => LayerStep::End(Terminal::PromptTooLong),
    }
}

/// A run that only compacts ends with what came of it.
fn report(cx: &mut Cx<'_>, text: String) -> LayerStep {
    cx.state.ledger.outcome.text = text;
    LayerStep::End(Terminal::Completed)
}

fn summarise(cx: &mut Cx<'_>, compacting: &mut CompactionProgress) -> LayerStep {
    let is_broken = cx.state.carry.compactions.failures >= cx.config.context.summary_failures_max;
    let plan = (!is_broken).then(|| summariser::plan(cx, &compacting.instructions, compacting.room));
    match plan.and_then(|plan| cx.fork(plan)) {
        Some(fork) => LayerStep::Asked(LayerQuestion::Fork(fork)),
        None => look(cx, compacting, BoundaryHead::Mechanical),
    }
}

fn on_summary(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, outcome: &Outcome) -> LayerStep {
    let why = match summariser::read(outcome) {
        Ok(summary) => {
            cx.state.carry.compactions.failures = 0;
            return look(cx, compacting, BoundaryHead::Summary(summary));
        }
        Err(SummaryFailure::TooLong(overflow))
            if compacting.shrinks < cx.config.context.summary_shrinks_max =>
        {
            compacting.shrinks += 1;
            compacting.room = summariser::smaller(cx, compacting.room, overflow);
            return summarise(cx, compacting);
        }
        Err(SummaryFailure::TooLong(_)) => {
            "The summary request does not fit into the context window.".to_owned()
        }
        Err(SummaryFailure::Failed(why)) => why,
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
    cx.emit(Update::Notice(format!("Compacting without a model. {why}")));
    look(cx, compacting, BoundaryHead::Mechanical)
}

/// Looks at what has to be attached again: the files read last, and the task list.
fn look(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, head: BoundaryHead) -> LayerStep {
    let policy = &cx.config.context;
    let files = cx.known_files(policy.files_attached);
    let show = files.into_iter().map(|file| (file.path, policy.file_chars_max)).collect();
    let look = cx.state.ids.look();
    cx.effects.push(Effect::LookAround { look, known: Vec::new(), show });
    compacting.head = Some(head);
    LayerStep::Asked(LayerQuestion::Look(look))
}

fn finish(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, found: &AmbientChanges) -> LayerStep {
    let CompactionProgress { trigger, tokens_before, .. } = *compacting;
    let head = compacting.head.as_ref().unwrap_or(&BoundaryHead::Mechanical);
    let duration_ms = cx.at_ms.saturating_sub(compacting.started_at_ms);
    let goal = goal(cx, compacting);
    let Some(mut compaction) = boundary::build(cx, trigger, head, found, goal) else {
        note(cx, compacting, /* made progress */ false);
        return fail(cx, trigger, "The conversation cannot be made shorter.");
    };
    let is_prompt = cx.state.carry.messages.last().is_some_and(|last| last.origin == Origin::Prompt);
    cx.state.ledger.is_prompt_cut |= is_prompt && compaction.tail.is_none();
    compaction.trigger = trigger;
    compaction.tokens_before = tokens_before;
    compaction.duration_ms = duration_ms;
    let made_progress = compaction.tokens_after <= Thresholds::of(cx.config, cx.model()).compact / 2;
    // What was there before is the provider's count, so what is left is told at the provider's rate too.
    let scale = cx.state.carry.tokens.scale(&cx.state.carry.messages, cx.config);
    let tokens_after = scale.real(compaction.tokens_after);
    compaction.tokens_after = tokens_after;
    let untold = untold(cx, trigger, head, &compaction.boundary).into_iter();
    cx.change(Decision::Compacted(Box::new(compaction)));
    cx.state.carry.tokens = super::TokenCount::default();
    note(cx, compacting, made_progress);
    cx.state.carry.notes.forget_told();
    if let Some(fork) = cx.state.carry.staged.drop_all() {
        cx.cancel_fork(fork);
    }
    compacting.done = Some((tokens_after, untold));
    tell_hooks(cx, compacting)
}

/// What hooks hear of a compaction: that it was made, that the session begins anew, and what is remembered again.
fn untold(cx: &Cx<'_>, trigger: CompactTrigger, head: &BoundaryHead, boundary: &Message) -> Vec<HookCall> {
    let summary = match head {
        BoundaryHead::Summary(summary) => summary.clone(),
        BoundaryHead::Mechanical => Block::texts(&boundary.blocks),
    };
    let compacted = HookCall::PostCompact { trigger, summary: summary.into() };
    let model = cx.model().id.clone();
    let started = HookCall::SessionStart { source: StartSource::Compact, model };
    let calls = [Some(compacted), cx.memory_call(LoadReason::Compact), Some(started)];
    calls.into_iter().flatten().filter(|call| cx.config.hooks.contains(&call.event())).collect()
}

/// Tells one hook after the other, then says what came of it all.
fn tell_hooks(cx: &mut Cx<'_>, compacting: &mut CompactionProgress) -> LayerStep {
    let next = compacting.done.as_mut().and_then(|(_, untold)| untold.next());
    let Some(call) = next else { return conclude(cx, compacting) };
    LayerStep::Asked(LayerQuestion::Hooks(cx.ask_hooks(call)))
}

/// What hooks want known after a compaction is told at once; it cannot be undone.
fn on_told(cx: &mut Cx<'_>, compacting: &mut CompactionProgress, answer: &HookAnswer) -> LayerStep {
    cx.show_notices(answer);
    cx.tell(reminders(&answer.context));
    if let Some(reason) = &answer.stop {
        return cx.end_by_hook(ended_by_hook("A hook after the compaction", reason));
    }
    tell_hooks(cx, compacting)
}

fn conclude(cx: &mut Cx<'_>, compacting: &CompactionProgress) -> LayerStep {
    let CompactionProgress { trigger, tokens_before, .. } = *compacting;
    let tokens_after = compacting.done.as_ref().map_or(0, |(tokens_after, _)| *tokens_after);
    match trigger {
        CompactTrigger::Auto | CompactTrigger::Reactive => {
            if let Some(note) = cx.rest_to_ask_for() {
                cx.say(note, Origin::Continuation);
            }
            LayerStep::Passed
        }
        CompactTrigger::Manual => report(
            cx,
            format!("Compacted the conversation from about {tokens_before} to {tokens_after} tokens."),
        ),
    }
}

/// How many tokens the request may have afterwards: half of the threshold, or of what the provider said it takes. Unless it
/// has refused more, something is left of the conversation also where system prompt and tools take that half.
fn goal(cx: &Cx<'_>, compacting: &CompactionProgress) -> u64 {
    let threshold = Thresholds::of(cx.config, cx.model()).compact;
    let half = threshold / 2;
    if compacting.trigger != CompactTrigger::Reactive {
        return half.max(fixed_tokens(cx.config).saturating_add(LEFT_TOKENS.min(threshold / 8)));
    }
    let refusal = refusal(cx);
    let fits = |overflow: Overflow| mul_div(compacting.tokens_before, overflow.limit, overflow.needed);
    refusal.map_or(half, |overflow| half.min(fits(overflow) / 2))
}

/// How far the refused prompt is over the window, where the provider said so.
fn refusal(cx: &Cx<'_>) -> Option<Overflow> {
    cx.state.carry.withheld.as_ref().and_then(|failure| failure.overflow)
}

/// A compaction was made, or tried in vain.
fn note(cx: &mut Cx<'_>, compacting: &CompactionProgress, has_progress: bool) {
    let carry = &mut cx.state.carry;
    carry.compactions = CompactionMemory {
        is_compacted: true,
        turns_since: 0,
        failures: carry.compactions.failures,
        no_progress: compacting.no_progress,
        is_above_half: !has_progress,
        rewritten_at_tokens: carry.compactions.rewritten_at_tokens,
        decided_to: carry.compactions.decided_to,
    };
}

/// How many compactions in a row made no progress, now that one is due again.
fn idle_compactions(before: &CompactionMemory, refill_turns: u32) -> u32 {
    let is_poor = before.is_above_half || before.turns_since <= refill_turns;
    if before.is_compacted && is_poor { before.no_progress + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_compacted: bool, turns_since: u32, is_above_half: bool, expected: u32) {
        let compactions = CompactionMemory {
            is_compacted,
            turns_since,
            is_above_half,
            no_progress: 1,
            ..Default::default()
        };
        assert_eq!(idle_compactions(&compactions, 3), expected);
    }

    #[test]
    fn a_compaction_made_no_progress_if_it_left_much_or_is_due_again_soon() {
        check(false, 0, false, 0);
        check(true, 3, false, 2);
        check(true, 4, false, 0);
        check(true, 100, true, 2);
    }
}
