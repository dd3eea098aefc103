//! How long a run and its requests took, as the outcome tells it.

#![expect(clippy::panic, reason = "a test may stop at the first surprise")]

use windlass_core::{Config, Effect, Event, Input, Interrupt, State, step};
use windlass_protocol::{Failure, FailureClass, ModelEvent, Outcome, RequestId, StopReason, TimerId, Update};

/// Tells the events at their times; the last one ends the run.
fn outcome_of(events: Vec<(u64, Event)>) -> Outcome {
    let mut state = State::default();
    let mut done = None;
    for (at_ms, event) in events {
        let (next, effects) = step(state, Input::at(at_ms, event), &Config::default());
        state = next;
        done = done.or(effects.list.into_iter().find_map(|effect| match effect {
            Effect::Emit(Update::Done(outcome)) => Some(*outcome),
            _ => None,
        }));
    }
    done.unwrap_or_else(|| panic!("the run has not ended: {:?}", state.phase()))
}

fn told(request: u32, event: ModelEvent) -> Event {
    Event::Model(RequestId(request), event)
}

fn ended() -> ModelEvent {
    ModelEvent::Ended { stop: StopReason::EndTurn, usage: Box::default() }
}

fn cut() -> ModelEvent {
    ModelEvent::Failed(Box::new(Failure::new(FailureClass::Cut, "")))
}

#[track_caller]
fn check(events: Vec<(u64, Event)>, duration_ms: u64, duration_api_ms: u64) {
    let outcome = outcome_of(events);
    assert_eq!((outcome.duration_ms, outcome.duration_api_ms), (duration_ms, duration_api_ms));
}

#[test]
fn the_time_of_requests_is_counted_and_that_of_pauses_is_not() {
    let submit = || (1_000, Event::Submit("x".into()));
    check(vec![submit(), (1_250, told(1, ended()))], 250, 250);
    check(vec![submit(), (1_100, Event::Interrupt(Interrupt::Stop))], 100, 100);
    let again =
        vec![submit(), (1_030, told(1, cut())), (1_500, Event::Timer(TimerId(1))), (1_600, told(2, ended()))];
    check(again, 600, 130);
}

#[test]
fn the_times_of_all_runs_are_those_of_the_session() {
    let run = |state: State, begins_ms: u64, ends_ms: u64, request: u32| {
        let submit = Input::at(begins_ms, Event::Submit("x".into()));
        let (state, _) = step(state.close_run(), submit, &Config::default());
        step(state, Input::at(ends_ms, told(request, ended())), &Config::default()).0
    };
    let check = |state: &State, expected: u64| {
        let time = state.time_in_session();
        assert_eq!((time.duration_ms, time.duration_api_ms), (expected, expected));
    };
    let state = run(run(State::default(), 1_000, 1_250, 1), 9_000, 9_300, 2);
    check(&state, 550);
    let facts = state.close_run().snapshot().unwrap_or_else(|| panic!("the session is at rest"));
    let state = State::from_snapshot(facts);
    check(&state, 550);
    check(&run(state, 100, 200, 1), 650);
}
