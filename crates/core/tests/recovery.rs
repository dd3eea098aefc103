//! Cures for failures and cut answers: what is tried, in which order, how often, and that nobody sees it before it failed.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, course, requests};
use windlass_core::{Config, Prompt};
use windlass_permission::PermissionMode;
use windlass_protocol::{
    AmbientChanges, Block, Culprit, Delivery, Failure, FailureClass, HookAnswer, HookEvent, ModelCard,
    Outcome, StopReason, Terminal, ToolOutput,
};

/// The log shows the cap of each request.
fn caps(output_tokens_max: u32) -> Scenario {
    Scenario::new()
        .wordy()
        .permission_mode(PermissionMode::BypassPermissions)
        .with(|config| config.model.output_tokens_max = output_tokens_max)
        .showing_requests(|request| format!("≤{}", request.output_tokens_max))
}

/// The log shows the model of each request.
fn models(fallbacks: &[&str]) -> Scenario {
    let cards: Vec<ModelCard> = fallbacks.iter().map(|id| ModelCard::unknown(id)).collect();
    Scenario::new()
        .permission_mode(PermissionMode::BypassPermissions)
        .with(|config| {
            config.model.id = "first".into();
            config.fallbacks = cards.into();
        })
        .showing_requests(|request| request.model.to_string())
}

fn of_class(class: FailureClass) -> Failure {
    Failure::new(class, "it failed")
}

#[track_caller]
fn check_course(scenario: Scenario, expected: &str) {
    assert_eq!(course(scenario), expected);
}

/// Two calls with long results, so that there is something to compact.
fn long(scenario: Scenario) -> Scenario {
    let long = || ToolOutput::text(&"word ".repeat(1_000));
    scenario
        .call("read a")
        .call("read b")
        .ended(StopReason::ToolUse)
        .finished_with(1, "finished long", long())
        .finished_with(2, "finished long", long())
}

/// The provider refuses the prompt, and the conversation is compacted.
fn compacted(scenario: Scenario, n: u32) -> Scenario {
    scenario.fails(FailureClass::Overflow).forked(n, Terminal::Completed, "They read.").looked(
        n,
        "nothing",
        AmbientChanges::default(),
    )
}

#[test]
fn the_raised_cap_is_never_above_the_models_own() {
    let check = |own, caps_sent: &[u32]| {
        let scenario = caps(own).submit("x").text("One").ended(StopReason::MaxTokens);
        let sent: Vec<u32> = requests(scenario).iter().map(|request| request.output_tokens_max).collect();
        assert_eq!(sent, caps_sent);
    };
    check(128_000, &[8_000, 64_000]);
    check(32_000, &[8_000, 32_000]);
    // Nothing to raise.
    check(8_000, &[8_000, 8_000]);
    check(4_096, &[4_096, 4_096]);
}

#[test]
fn a_cap_is_raised_once_and_not_if_the_user_set_it() {
    let cut = |scenario: Scenario| scenario.text("One").ended(StopReason::MaxTokens);
    check_course(cut(cut(caps(64_000).submit("x"))), "max_output_tokens_escalate max_output_tokens_recovery");
    check_course(cut(caps(64_000).output_cap(9_000).submit("x")), "max_output_tokens_recovery");
    check_course(cut(caps(8_000).submit("x")), "max_output_tokens_recovery");
}

#[test]
fn calls_that_only_read_are_stopped_and_taken_back_when_the_cap_is_raised() {
    check(
        caps(64_000)
            .submit("x")
            .call("read a")
            .call("read b")
            .finished(1, "A")
            .truncated_call()
            .ended(StopReason::MaxTokens)
            .finished(2, "B")
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        > c1 finished A              result c1: A
        < truncated call
        < end max_tokens             cancel c2 | retract 4 | settling | timer t1 800
        > c2 finished B              again max_output_tokens_escalate | preparing streaming | call-model #2 [user] ≤64000
        < text Done.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn once_a_call_has_changed_something_a_cut_answer_stands_and_only_the_cut_call_is_refused() {
    check(
        caps(64_000)
            .submit("x")
            .call("write a")
            .call("read b")
            .truncated_call()
            .ended(StopReason::MaxTokens)
            .finished(1, "A")
            .finished(2, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < call write a               examine c1
        > c1 is write a              run c1
        < call read b
        < truncated call
        < end max_tokens             settling
        > c1 finished A              examine c2 | result c1: A
        > c2 is read b               run c2
        > c2 finished B              result c2: B | result c3 error: Not run: the input of this call is not a complete JSON object, probably because the response was cut at the output limit. Repeat the call, and split it if it was long. | preparing streaming | call-model #2 [user assistant(write,read,write) user(result,result,result!)] ≤8000
        ",
    );
}

#[test]
fn with_the_raised_cap_complete_calls_of_a_cut_answer_run_and_the_cut_one_does_not() {
    check(
        caps(64_000)
            .submit("x")
            .ended(StopReason::MaxTokens)
            .call("read a")
            .truncated_call()
            .ended(StopReason::MaxTokens)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < end max_tokens             again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000
        < call read a                examine c1
        > c1 is read a               run c1
        < truncated call
        < end max_tokens             settling
        > c1 finished A              result c1: A | result c2 error: Not run: the input of this call is not a complete JSON object, probably because the response was cut at the output limit. Repeat the call, and split it if it was long. | preparing streaming | call-model #3 [user assistant(read,write) user(result,result!)] ≤8000
        ",
    );
}

#[test]
fn a_cut_answer_is_resumed_three_times_between_results() {
    let cut = |scenario: Scenario| scenario.text("One").ended(StopReason::MaxTokens);
    let thrice = |scenario: Scenario| cut(cut(cut(scenario)));
    let capped = || caps(64_000).output_cap(100).submit("x");
    let recoveries = "max_output_tokens_recovery ".repeat(3);
    check_course(cut(thrice(capped())), &format!("{recoveries}max_output_tokens"));
    let called = thrice(capped()).call("read a").ended(StopReason::ToolUse).finished(1, "A");
    check_course(thrice(called), format!("{recoveries}{recoveries}").trim_end());
}

#[test]
fn the_text_of_a_resumed_answer_is_whole_whoever_finishes_it() {
    check(
        models(&["second"])
            .output_cap(100)
            .showing_outcome(|outcome| outcome.text.clone())
            .submit("x")
            .text("Half of")
            .ended(StopReason::MaxTokens)
            .fails(FailureClass::NotFound)
            .text(" the answer.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < text Half of
        < end max_tokens             note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again max_output_tokens_recovery | settling preparing streaming | call-model #2 [user assistant(text) user] first
        < fails NotFound             fall back from first to second | again model_fallback | settling preparing streaming | call-model #3 [user assistant(text) user] second
        < text  the answer.
        < end end_turn               settling done | = completed after 1 Half of the answer.
        ",
    );
}

#[test]
fn a_prompt_that_is_too_long_is_compacted_once_between_results() {
    let refused = |scenario: Scenario| scenario.fails(FailureClass::Overflow);
    let first = || compacted(long(Scenario::new().submit("x")), 1);
    check_course(refused(first()), "reactive_compact_retry prompt_too_long");
    let called = || first().call("read c").ended(StopReason::ToolUse).finished(3, "C");
    check_course(refused(called()), "reactive_compact_retry reactive_compact_retry");
}

#[test]
fn only_results_allow_another_compaction_for_a_refusal() {
    let objects = HookAnswer { blocks: vec!["The tests fail.".into()], ..HookAnswer::default() };
    let said = |scenario: Scenario| scenario.text("Done.").ended(StopReason::EndTurn);
    let with = |change: fn(&mut Config)| compacted(long(Scenario::new().with(change).submit("x")), 1);
    check_course(
        said(with(|config| config.hooks.extend([HookEvent::Stop])))
            .hooked(1, "no", objects)
            .fails(FailureClass::Overflow),
        "reactive_compact_retry stop_hook_blocking prompt_too_long",
    );
    check_course(
        said(with(|config| config.token_budget = Some(1_000))).fails(FailureClass::Overflow),
        "reactive_compact_retry token_budget_continuation prompt_too_long",
    );
    check_course(
        with(|config| config.fallbacks = [ModelCard::unknown("second")].into())
            .fails(FailureClass::NotFound)
            .fails(FailureClass::Overflow),
        "reactive_compact_retry model_fallback prompt_too_long",
    );
}

#[test]
fn nothing_of_a_failure_is_seen_while_it_may_be_cured() {
    check(
        compacted(long(caps(64_000).submit("x")), 1).text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c1 finished long           result c1: word word word word …
        > c2 finished long           result c2: word word word word … | preparing streaming | call-model #2 [user assistant(read,read) user(result,result)] ≤8000
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > f1 completed They read.    look l1 []
        > l1 finds nothing           compacted | streaming | call-model #3 [boundary] ≤8000
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
}

#[test]
fn a_window_that_fills_up_keeps_the_half_answer_and_asks_for_the_rest() {
    check(
        long(Scenario::new().showing_outcome(|outcome| outcome.text.clone()).submit("x"))
            .text("Half of")
            .ended(StopReason::ContextWindowExceeded)
            .forked(1, Terminal::Completed, "They read.")
            .looked(1, "nothing", AmbientChanges::default())
            .text(" the answer.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c1 finished long           result c1
        > c2 finished long           result c2 | preparing streaming | call-model #2 [user assistant(read,read) user(result,result)]
        < text Half of
        < end model_context_window_exceeded note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > f1 completed They read.    look l1 []
        > l1 finds nothing           compacted | streaming | call-model #3 [boundary assistant(text) user]
        < text  the answer.
        < end end_turn               settling done | = completed after 2 Half of the answer.
        ",
    );
    // Complete calls are worth more than a summary.
    check_course(
        Scenario::new().submit("x").call("read a").ended(StopReason::ContextWindowExceeded).finished(1, "A"),
        "",
    );
}

fn pictures() -> Prompt {
    let picture = || Block::image("image/png", "AAAA");
    Prompt { blocks: vec![picture(), Block::text("and"), picture()], ..Prompt::default() }
}

#[test]
fn only_the_picture_that_is_refused_is_taken_out_if_the_provider_names_it() {
    let refused = |culprit| Failure { culprit, ..of_class(FailureClass::Media) };
    let named = Some(Culprit { message: 0, block: Some(2) });
    check(
        Scenario::new()
            .submit_prompt("pictures", pictures())
            .fails_with("media", refused(named))
            .text("Seen.")
            .ended(StopReason::EndTurn),
        "
        > submit pictures            preparing streaming | call-model #1 [user(picture/and/picture)]
        < fails media                media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #2 [user(picture/and/[Removed: a picture (image/png) that cannot be sent.])]
        < text Seen.
        < end end_turn               settling done | = completed after 1
        ",
    );
    check(
        Scenario::new()
            .submit_prompt("pictures", pictures())
            .fails_with("media", refused(None))
            .fails_with("media", refused(None)),
        "
        > submit pictures            preparing streaming | call-model #1 [user(picture/and/picture)]
        < fails media                media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #2 [user([Removed: a picture (image/png) that cannot be sent.]/and/[Removed: a picture (image/png) that cannot be sent.])]
        < fails media                settling done | failed image_error | = image_error after 1: it failed
        ",
    );
}

#[test]
fn if_one_picture_after_the_other_is_refused_all_are_taken_out() {
    let named = |block| Failure {
        culprit: Some(Culprit { message: 0, block: Some(block) }),
        ..of_class(FailureClass::Media)
    };
    let picture = || Block::image("image/png", "AAAA");
    let three = Prompt { blocks: vec![picture(), picture(), picture()], ..Prompt::default() };
    let stub = "[Removed: a picture (image/png) that cannot be sent.]";
    check(
        Scenario::new()
            .submit_prompt("pictures", three)
            .fails_with("media", named(1))
            .fails_with("media", named(0))
            .text("Seen.")
            .ended(StopReason::EndTurn),
        &format!(
            "
        > submit pictures            preparing streaming | call-model #1 [user(picture/picture/picture)]
        < fails media                media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #2 [user(picture/{stub}/picture)]
        < fails media                media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #3 [user({stub}/{stub}/{stub})]
        < text Seen.
        < end end_turn               settling done | = completed after 1
        "
        ),
    );
}

#[test]
fn a_block_that_the_provider_refuses_by_name_gives_way() {
    let refused = |message| Failure {
        culprit: Some(Culprit { message, block: Some(0) }),
        ..of_class(FailureClass::BadRequest)
    };
    let read = || Scenario::new().submit("x").call("read a").ended(StopReason::ToolUse).finished(1, "A");
    check(
        read().fails_with("refusal", refused(2)).text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < fails refusal              media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #3 [user assistant(read) user(result)]
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
    // A call cannot give way, and the same block is refused only once.
    check_course(read().fails_with("refusal", refused(1)), "api_error");
    check_course(
        read().fails_with("refusal", refused(2)).fails_with("refusal", refused(2)),
        "media_strip_retry api_error",
    );
}

#[test]
fn compacting_for_refusals_again_and_again_ends_the_run() {
    let turn = |scenario: Scenario, n: u32| {
        let called = scenario.call(&format!("read {n}")).ended(StopReason::ToolUse);
        let result = ToolOutput::text(&"word ".repeat(2_000));
        compacted(called.finished_with(n, "finished long", result), n)
    };
    let thrice = (1..=3).fold(Scenario::new().submit("x"), turn);
    let result = ToolOutput::text(&"word ".repeat(2_000));
    let again = thrice.call("read 4").ended(StopReason::ToolUse).finished_with(4, "finished long", result);
    let retries = "reactive_compact_retry ".repeat(4);
    check_course(again.fails(FailureClass::Overflow), &format!("{retries}rapid_refill"));
}

#[test]
fn each_cure_has_a_guard_of_its_own() {
    let thought = || {
        let seen = long(Scenario::new().submit_prompt("pictures", pictures()));
        seen.thinking("hm").call("read c").ended(StopReason::ToolUse).finished(3, "C")
    };
    check_course(
        thought().fails(FailureClass::Media).fails(FailureClass::Binding).fails(FailureClass::Overflow),
        "media_strip_retry thinking_strip_retry reactive_compact_retry",
    );
    check_course(
        thought().fails(FailureClass::Media).fails(FailureClass::Media),
        "media_strip_retry image_error",
    );
    check_course(
        thought().fails(FailureClass::Binding).fails(FailureClass::Binding),
        "thinking_strip_retry api_error",
    );
    check_course(Scenario::new().submit("x").fails(FailureClass::Binding), "api_error");
    let paused =
        thought().fails(FailureClass::Binding).thinking("so").text("Well,").ended(StopReason::PauseTurn);
    check_course(paused.fails(FailureClass::Binding), "thinking_strip_retry pause_turn_resume api_error");
}

#[test]
fn when_streams_themselves_break_the_answer_is_asked_for_at_once_one_time() {
    use FailureClass::{Cut, Malformed, Overloaded, Stalled};
    let sent = |scenario: Scenario| -> String {
        let letter = |delivery: Delivery| if delivery == Delivery::Whole { 'w' } else { 's' };
        requests(scenario).iter().map(|request| letter(request.delivery)).collect()
    };
    let broken = |classes: &[FailureClass]| {
        (1..)
            .zip(classes)
            .fold(Scenario::new().submit("x"), |scenario, (timer, class)| scenario.fails(*class).timer(timer))
    };
    assert_eq!(sent(broken(&[Cut])), "ss");
    assert_eq!(sent(broken(&[Cut, Stalled])), "ssw");
    assert_eq!(sent(broken(&[Cut, Malformed, Cut, Cut])), "sswss");
    assert_eq!(sent(broken(&[Overloaded, Overloaded, Overloaded])), "ssss");
    // The next request is a stream again.
    let next = broken(&[Cut, Cut]).call("read a").ended(StopReason::ToolUse).finished(1, "A");
    assert_eq!(sent(next), "ssws");
    let off = broken(&[Cut, Cut]).with(|config| config.retry.can_ask_whole = false);
    assert_eq!(sent(off), "sss");
}

#[test]
fn the_provider_says_when_and_whether_to_try_again() {
    let wait = Failure { retry_after_ms: Some(7_000), ..of_class(FailureClass::RateLimited) };
    check(
        Scenario::new().submit("x").fails_with("429", wait),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails 429                  retry 1 of 10 in 7000 | settling waiting | timer t1 7000
        ",
    );
    let too_long = Failure { retry_after_ms: Some(3_600_000), ..of_class(FailureClass::RateLimited) };
    check(
        Scenario::new().submit("x").fails_with("429", too_long),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails 429                  settling done | failed api_error | = api_error after 1: it failed The provider asks to try again in 60 minutes.
        ",
    );
    let never = Failure { should_retry: Some(false), ..of_class(FailureClass::Server) };
    check(
        Scenario::new().submit("x").fails_with("500", never),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails 500                  settling done | failed api_error | = api_error after 1: it failed
        ",
    );
    let once = || Failure { should_retry: Some(true), ..of_class(FailureClass::BadRequest) };
    check(
        Scenario::new().submit("x").fails_with("400", once()).timer(1).fails_with("400", once()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails 400                  retry 1 of 1 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same
        < fails 400                  settling done | failed api_error | = api_error after 1: it failed Tried 2 times. Try again later.
        ",
    );
}

#[test]
fn a_used_up_quota_ends_the_run_with_its_time_unless_the_run_is_patient() {
    let quota = || Failure { resets_at: Some(3_600), ..of_class(FailureClass::Quota) };
    let shown =
        |outcome: &Outcome| format!("{:?}", outcome.failure.as_ref().and_then(|failure| failure.resets_at));
    check(
        models(&["second"]).showing_outcome(shown).wall_s(600).submit("x").fails_with("quota", quota()),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < fails quota                settling done | failed api_error | = api_error after 1: it failed Some(3600)
        ",
    );
    let patient = |config: &mut Config| config.retry.is_patient = true;
    check(
        Scenario::new().with(patient).wall_s(600).submit("x").fails_with("quota", quota()).timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails quota                retry 1 of 1 in 3000000 | settling waiting | timer t1 3000000
        > timer t1                   streaming | call-model #2 [user] same
        ",
    );
    // Without a time there is nothing to wait for.
    check(
        Scenario::new().with(patient).submit("x").fails(FailureClass::Quota),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Quota                settling done | failed api_error | = api_error after 1: it failed
        ",
    );
}

#[test]
fn stop_hooks_are_overruled_after_eight_objections_in_a_row() {
    let objects = || HookAnswer { blocks: vec!["no".into()], ..HookAnswer::default() };
    let objected = |scenario: Scenario, n: u32| {
        scenario.text("Done.").ended(StopReason::EndTurn).hooked(n, "no", objects())
    };
    let hooked = || Scenario::new().with(|config| config.hooks.extend([HookEvent::Stop])).submit("x");
    let blocks = "stop_hook_blocking ".repeat(8);
    check_course((1..=8).fold(hooked(), objected), blocks.trim_end());
    check_course((1..=9).fold(hooked(), objected), &format!("{blocks}completed"));
    // What else an overruled hook says counts.
    let both = HookAnswer { stop: Some("enough".into()), ..objects() };
    let ninth = (1..=8).fold(hooked(), objected).text("Done.").ended(StopReason::EndTurn);
    check_course(ninth.hooked(9, "no and stop", both), &format!("{blocks}stop_hook_prevented"));
    // Results do not make it a new row.
    let called = (1..=8).fold(hooked(), objected).call("read a").ended(StopReason::ToolUse).finished(1, "A");
    check_course(objected(called, 9), &format!("{blocks}completed"));
}

#[test]
fn a_paused_turn_is_resumed_ten_times_in_a_row() {
    let paused = |scenario: Scenario, _: u32| scenario.text("Searching").ended(StopReason::PauseTurn);
    let pauses = "pause_turn_resume ".repeat(10);
    let ten = || (1..=10).fold(Scenario::new().submit("x"), paused);
    check_course(paused(ten(), 11), &format!("{pauses}completed"));
    let called = ten().call("read a").ended(StopReason::ToolUse).finished(1, "A");
    check_course(paused(called, 11), &format!("{pauses}pause_turn_resume"));
    // Calls of a paused answer are run.
    check_course(
        Scenario::new().submit("x").call("read a").ended(StopReason::PauseTurn).finished(1, "A"),
        "",
    );
}
