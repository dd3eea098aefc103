//! The loop ends: on every way round without `next_turn` a lexicographic measure falls.
//!
//! The walk takes every state of the guards under small limits and every situation a model call, a compaction, hooks and
//! budgets can bring about, asks the real ladder, and applies the real rows of the guards. Amounts of tokens enter as
//! classes: a continuation that gained enough takes a unit of the budget, a small gain does not.

use std::collections::BTreeSet;

use windlass_protocol::{Terminal, Transition};

use super::*;
use crate::turn::transition::NextIteration;

const LIMITS: LadderLimits = LadderLimits {
    can_escalate: true,
    output_recoveries: 2,
    stop_blocks: 1,
    continuations_min: 2,
    schema_tries: 1,
    pauses: 1,
    fallbacks: 1,
};
const UNITS: u32 = 1;
const ATTEMPTS: u32 = 1;

/// Where the loop is: what was tried, what is left of the budget, and how often the same request may go out again.
#[derive(Clone, Copy, Debug)]
struct Node {
    guards: Guards,
    units: u32,
    attempts: u32,
}

/// What must fall, the most significant first.
fn measure(node: Node) -> [u32; 12] {
    let guards = node.guards;
    let Guards {
        continuations,
        small_gains,
        has_compacted_reactively,
        media_strips,
        is_thinking_stripped,
        ..
    } = guards;
    let steps = (LIMITS.continuations_min + 1).saturating_sub(continuations) + (2 - small_gains);
    let cures = u32::from(!has_compacted_reactively)
        + MEDIA_STRIPS_MAX.saturating_sub(media_strips)
        + u32::from(!is_thinking_stripped);
    [
        LIMITS.fallbacks.saturating_sub(guards.fallbacks),
        node.units,
        steps,
        cures,
        LIMITS.schema_tries.saturating_sub(guards.schema_tries),
        LIMITS.stop_blocks.saturating_sub(guards.stop_blocks),
        LIMITS.output_recoveries.saturating_sub(guards.output_recoveries),
        u32::from(!guards.is_output_escalated),
        u32::from(!guards.is_nudged),
        LIMITS.pauses.saturating_sub(guards.pauses),
        u32::from(!guards.is_drained),
        node.attempts,
    ]
}

type Rows = fn(&NextIteration, Guards) -> Guards;

fn real_rows(onward: &NextIteration, guards: Guards) -> Guards {
    onward.guards(guards)
}

/// Everything the walk met.
#[derive(Default)]
struct Met {
    transitions: BTreeSet<Transition>,
    terminals: BTreeSet<Terminal>,
    edges: u64,
}

/// Walks the whole graph; an error names the edge that does not fall.
fn walk(rungs: &[Rung], rows: Rows) -> Result<Met, String> {
    let mut met = Met::default();
    let situations = all_situations();
    for guards in all_guards() {
        for situation in &situations {
            let situation = Situation { guards, ..*situation };
            if !can_be(&situation) {
                continue;
            }
            match decide(rungs, &situation) {
                LadderDecision::End(terminal) => drop(met.terminals.insert(terminal)),
                LadderDecision::Again(transition) => {
                    met.transitions.insert(transition);
                    met.edges += 1;
                    check_edge(&situation, transition, rows)?;
                }
                // The policy allows a resend only while there are attempts left; answering calls and asking hooks lead
                // to another decision with what was missing, never back here.
                LadderDecision::Resend | LadderDecision::RunCalls { .. } | LadderDecision::AskStopHooks => (),
            }
        }
    }
    Ok(met)
}

/// A gain is measured between two continuations, so the first has none.
fn can_be(situation: &Situation) -> bool {
    let gains = situation.guards.continuations.saturating_sub(1);
    let measured = !situation.tokens_left.is_small_gain() || situation.guards.continuations > 0;
    situation.guards.small_gains <= gains && measured
}

fn check_edge(situation: &Situation, transition: Transition, rows: Rows) -> Result<(), String> {
    if transition == Transition::NextTurn {
        return Ok(());
    }
    let is_small_gain = situation.tokens_left.is_small_gain();
    let onward = NextIteration { is_small_gain, ..NextIteration::new(transition) };
    let after = rows(&onward, situation.guards);
    let went_on = situation.guards.continuations > 0;
    let gained = transition == Transition::TokenBudgetContinuation && went_on && !is_small_gain;
    let from = Node { guards: situation.guards, units: UNITS, attempts: 0 };
    let to = Node { guards: after, units: UNITS - u32::from(gained), attempts: ATTEMPTS };
    if measure(to) < measure(from) {
        return Ok(());
    }
    Err(format!("{} does not make anything smaller: {situation:?}", transition.name()))
}

fn all_guards() -> impl Iterator<Item = Guards> {
    const FLAGS: u32 = 6;
    let counts =
        [LIMITS.output_recoveries, LIMITS.stop_blocks, LIMITS.continuations_min + 1, 2, LIMITS.schema_tries];
    let counts = [&counts[..], &[LIMITS.pauses, LIMITS.fallbacks, MEDIA_STRIPS_MAX]].concat();
    let size = counts.iter().map(|most| most + 1).product::<u32>() << FLAGS;
    (0..size).map(move |number| {
        let mut rest = number;
        let mut digit = |base: u32| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        Guards {
            output_recoveries: digit(counts[0] + 1),
            stop_blocks: digit(counts[1] + 1),
            continuations: digit(counts[2] + 1),
            small_gains: digit(counts[3] + 1),
            schema_tries: digit(counts[4] + 1),
            pauses: digit(counts[5] + 1),
            fallbacks: digit(counts[6] + 1),
            has_compacted_reactively: digit(2) == 1,
            is_output_escalated: digit(2) == 1,
            is_stop_hook_active: digit(2) == 1,
            is_nudged: digit(2) == 1,
            media_strips: digit(counts[7] + 1),
            is_thinking_stripped: digit(2) == 1,
            is_drained: digit(2) == 1,
        }
    })
}

const BOTH: [bool; 2] = [false, true];

fn blank() -> Situation {
    Situation {
        guards: Guards::default(),
        limits: LIMITS,
        answer: ResponseEnd::Said,
        has_calls: false,
        is_settled: false,
        has_acted: false,
        retry: Retry::GiveUp,
        is_stopped_by_hook: false,
        has_deferred: false,
        has_repeated: false,
        has_staged: false,
        is_reducible: false,
        has_refused: false,
        has_thinking: false,
        is_after_results: false,
        has_form: true,
        stop_hooks: StopHooks::Pass,
        tokens_left: TokensLeft::NoBudget,
        has_turns_left: true,
        has_usd_left: true,
    }
}

/// Takes each situation apart into one for each value of a fact.
fn each<T: Copy>(list: &[Situation], values: &[T], set: fn(&mut Situation, T)) -> Vec<Situation> {
    let with = |situation: &Situation, value: &T| {
        let mut situation = *situation;
        set(&mut situation, *value);
        situation
    };
    list.iter().flat_map(|situation| values.iter().map(move |value| with(situation, value))).collect()
}

/// Every situation that can come about: facts that cannot hold together are left out.
fn all_situations() -> Vec<Situation> {
    let faults = [
        ResponseFault::Stream { is_broken: false },
        ResponseFault::Stream { is_broken: true },
        ResponseFault::Media,
        ResponseFault::Block,
        ResponseFault::Bound,
        ResponseFault::TooLong,
        ResponseFault::Api,
    ];
    let ended = [
        ResponseEnd::Said,
        ResponseEnd::Empty,
        ResponseEnd::Called,
        ResponseEnd::Cut,
        ResponseEnd::WindowFull,
        ResponseEnd::Paused,
        ResponseEnd::Refused,
    ];
    let answers = [&ended[..], &faults.map(ResponseEnd::Failed)[..]].concat();
    let mut all = each(&[blank()], &answers, |s, answer| s.answer = answer);
    all = each(&all, &BOTH, |s, is| s.has_usd_left = is);
    all = each(&all, &[(false, false), (true, false), (true, true)], |s, (has, acted)| {
        (s.has_calls, s.has_acted) = (has, acted);
    });
    all.retain(|s| match s.answer {
        ResponseEnd::Said | ResponseEnd::Empty => !s.has_calls,
        ResponseEnd::Called => s.has_calls,
        _ => true,
    });
    let (called, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| s.answer == ResponseEnd::Called);
    let settled = each(&called, &[true], |s, is| s.is_settled = is);
    let settled = each(&settled, &BOTH, |s, is| s.is_stopped_by_hook = is);
    let settled = each(&settled, &BOTH, |s, is| s.has_deferred = is);
    let settled = each(&settled, &BOTH, |s, is| s.has_repeated = is);
    let settled = each(&settled, &BOTH, |s, is| s.has_turns_left = is);
    let (failed, ended): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|s| matches!(s.answer, ResponseEnd::Failed(_) | ResponseEnd::WindowFull));
    let retries = [Retry::Again, Retry::FallBackOrAgain, Retry::FallBackOrGiveUp, Retry::GiveUp];
    let failed = each(&failed, &retries, |s, retry| s.retry = retry);
    let failed = each(&failed, &BOTH, |s, is| s.has_staged = is);
    let failed = each(&failed, &BOTH, |s, is| (s.is_reducible, s.has_refused, s.has_thinking) = (is, is, is));
    let (with_calls, ended): (Vec<_>, Vec<_>) = ended.into_iter().partition(|s| s.has_calls);
    let mut ended = each(&ended, &BOTH, |s, is| s.is_after_results = is);
    ended.retain(|s| s.answer == ResponseEnd::Empty || !s.is_after_results);
    let ended = each(&ended, &[true, false], |s, form| s.has_form = form);
    let hooks = [StopHooks::Pass, StopHooks::Unasked, StopHooks::Block, StopHooks::Prevent];
    let ended = each(&ended, &hooks, |s, hooks| s.stop_hooks = hooks);
    let left = [
        TokensLeft::NoBudget,
        TokensLeft::Spent,
        TokensLeft::Enough { is_small_gain: false },
        TokensLeft::Enough { is_small_gain: true },
    ];
    let ended = each(&ended, &left, |s, left| s.tokens_left = left);
    [called, settled, failed, with_calls, ended].concat()
}

#[test]
fn every_way_round_without_new_results_makes_something_smaller() {
    let met = walk(&RUNGS, real_rows).unwrap();
    let all: BTreeSet<_> = Transition::ALL.into_iter().collect();
    assert_eq!(met.transitions, all, "the walk meets every transition");
    let elsewhere = [
        Terminal::AbortedStreaming,
        Terminal::AbortedTools,
        Terminal::BlockingLimit,
        Terminal::RapidRefill,
        Terminal::StoreFailed,
    ];
    let here: BTreeSet<_> =
        Terminal::ALL.into_iter().filter(|terminal| !elsewhere.contains(terminal)).collect();
    assert_eq!(
        met.terminals, here,
        "the ladder decides every end but those of interrupts, layers and the log"
    );
    println!("{} edges, {} situations", met.edges, all_situations().len());
}

#[test]
fn results_do_not_reset_what_counts_through_the_run() {
    let before =
        Guards { stop_blocks: 5, schema_tries: 2, continuations: 3, fallbacks: 1, ..Guards::default() };
    let after = before.advance(Transition::NextTurn, false);
    assert_eq!((after.stop_blocks, after.schema_tries), (5, 2));
    assert_eq!((after.continuations, after.fallbacks), (3, 1));
}

/// A rule that is broken on purpose must be found.
#[track_caller]
fn check_mutant(rungs: &[Rung], rows: Rows, guilty: Transition) {
    let found = walk(rungs, rows).err().expect("a broken rule must make the walk fail");
    assert!(found.starts_with(guilty.name()), "{found}");
}

/// The real rows, but after `transition` the guards are changed once more.
macro_rules! broken_row {
    ($transition:ident, |$before:ident, $after:ident| $change:expr) => {{
        fn rows(onward: &NextIteration, $before: Guards) -> Guards {
            let mut $after = onward.guards($before);
            if onward.transition == Transition::$transition {
                $change;
            }
            $after
        }
        check_mutant(&RUNGS, rows, Transition::$transition);
    }};
}

#[test]
fn a_broken_row_of_the_guards_is_found() {
    broken_row!(StopHookBlocking, |_before, after| after.has_compacted_reactively = false);
    broken_row!(StopHookBlocking, |before, after| after.stop_blocks = before.stop_blocks);
    broken_row!(ReactiveCompactRetry, |before, after| after.has_compacted_reactively =
        before.has_compacted_reactively);
    broken_row!(MediaStripRetry, |before, after| after.media_strips = before.media_strips);
    broken_row!(ThinkingStripRetry, |before, after| after.is_thinking_stripped = before.is_thinking_stripped);
    broken_row!(CollapseDrainRetry, |_before, after| after.is_drained = false);
    broken_row!(MaxOutputTokensEscalate, |_before, after| after.is_output_escalated = false);
    broken_row!(MaxOutputTokensRecovery, |before, after| after.output_recoveries = before.output_recoveries);
    broken_row!(StructuredOutputRetry, |before, after| after.schema_tries = before.schema_tries);
    broken_row!(StructuredOutputRetry, |_before, after| after.has_compacted_reactively = false);
    broken_row!(TokenBudgetContinuation, |before, after| after.small_gains = before.small_gains);
    broken_row!(PauseTurnResume, |before, after| after.pauses = before.pauses);
    broken_row!(EmptyAnswerNudge, |_before, after| after.is_nudged = false);
    broken_row!(ModelFallback, |before, after| after.fallbacks = before.fallbacks);
}

/// The real rungs, but one of them looks at guards that say nothing was tried yet.
macro_rules! broken_rung {
    ($rung:ident, |$guards:ident| $forget:expr, $guilty:ident) => {{
        fn forgetful(situation: &Situation) -> Option<LadderDecision> {
            let mut situation = *situation;
            let $guards = &mut situation.guards;
            $forget;
            $rung(&situation)
        }
        let place = RUNGS.iter().position(|rung| std::ptr::fn_addr_eq(*rung, $rung as Rung)).unwrap();
        let mut rungs = RUNGS;
        rungs[place] = forgetful;
        check_mutant(&rungs, real_rows, Transition::$guilty);
    }};
}

#[test]
fn a_rung_that_forgets_its_guard_is_found() {
    broken_rung!(prompt_too_long, |guards| guards.is_drained = false, CollapseDrainRetry);
    broken_rung!(prompt_too_long, |guards| guards.has_compacted_reactively = false, ReactiveCompactRetry);
    broken_rung!(media_errors, |guards| guards.media_strips = 0, MediaStripRetry);
    broken_rung!(bound_thinking, |guards| guards.is_thinking_stripped = false, ThinkingStripRetry);
    broken_rung!(max_output_tokens, |guards| guards.is_output_escalated = false, MaxOutputTokensEscalate);
    broken_rung!(max_output_tokens, |guards| guards.output_recoveries = 0, MaxOutputTokensRecovery);
    broken_rung!(streaming_errors, |guards| guards.fallbacks = 0, ModelFallback);
    broken_rung!(other_api_errors, |guards| guards.fallbacks = 0, ModelFallback);
    broken_rung!(paused_response, |guards| guards.pauses = 0, PauseTurnResume);
    broken_rung!(empty_answer, |guards| guards.is_nudged = false, EmptyAnswerNudge);
    broken_rung!(schema, |guards| guards.schema_tries = 0, StructuredOutputRetry);
    broken_rung!(stop_hooks, |guards| guards.stop_blocks = 0, StopHookBlocking);
    broken_rung!(token_budget, |guards| guards.small_gains = 0, TokenBudgetContinuation);
}
