//! Sessions that were cut off, at every kind of moment, and what is recalled of them.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use std::sync::Arc;

use log::{Scenario, check, recall, records, requests, state, transcript};
use windlass_core::{Config, EarlyStart, Event, Input, Interrupt, RecalledSession, State, repair, step};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    AmbientChanges, Answer, Block, Decision, FailureClass, Fate, FileSeen, MemoryNote, Message, MessageId,
    ModelCard, Origin, Record, StopReason, Terminal, ThinkingSupport, ToolOutput, Transcript,
};

fn new() -> Scenario {
    Scenario::new().permission_mode(PermissionMode::BypassPermissions)
}

fn wordy() -> Scenario {
    new().wordy()
}

#[test]
fn a_call_is_called_what_it_is() {
    check(
        wordy().asking(Answerer::Person).permission_mode(PermissionMode::Default).submit("x").call("write a").cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask c1: write of write a needs approval.
        > cut off                    write a NeverStarted: Not run: the session was cut off before this call started.
        > submit y                   preparing streaming | call-model #1 [user assistant(write) user(result!) user]
        ",
    );
    check(
        wordy().submit("x").call("read a").cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > cut off                    read a ReadOnly: The session was cut off during this call. The call only reads, so you can repeat it.
        > submit y                   preparing streaming | call-model #1 [user assistant(read) user(result!) user]
        ",
    );
    check(
        new().submit("x").text("Well").call("write a").cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        < call write a               examine c1
        > c1 is write a              run c1
        > cut off                    write a Unknown
        > submit y                   preparing streaming | call-model #1 [user assistant(text,write) user(result!) user]
        ",
    );
}

/// Another program's log, or a copy that it made of ours, has nothing but what was said.
#[test]
fn a_call_of_which_only_the_words_are_known_may_have_run() {
    let said = |record: &Record| matches!(record, Record::Said(_) | Record::Answered(_) | Record::Result(_));
    let words = |scenario: Scenario| recall(records(scenario).into_iter().filter(said));
    let open = words(new().submit("x").call("write a"));
    assert_eq!(open.open.iter().map(|(_, fate)| *fate).collect::<Vec<_>>(), [Fate::Unknown]);
    assert!(open.is_cut_off);
    let doubtful = |recalled: RecalledSession| recalled.state.snapshot().unwrap().doubtful;
    let known = recall(records(new().submit("x").call("write a")));
    assert_eq!(doubtful(open), doubtful(known), "the very same call needs a decision");

    let over = words(new().submit("x").text("Done.").ended(StopReason::EndTurn));
    assert!(!over.is_cut_off, "whoever answered has nothing left to say");
    assert!(words(new().submit("x")).is_cut_off);
}

/// The later call has ended, but its result waits for the earlier one.
#[test]
fn a_result_that_nobody_has_seen_yet_is_kept() {
    check(
        wordy().submit("x").call("read a").call("read b").finished(2, "B").cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        > c2 finished B
        > cut off                    read a ReadOnly: The session was cut off during this call. The call only reads, so you can repeat it. | read b Finished: B
        > submit y                   preparing streaming | call-model #1 [user assistant(read,read) user(result!,result) user]
        ",
    );
}

/// The end of a call counts once the log says so: what was heard alone is not enough.
#[test]
fn a_call_whose_end_is_not_in_the_log_is_unknown() {
    check(
        new().submit("x").call("write a").ended(StopReason::ToolUse).finished(1, "A").cut_off_without(3).submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(write) user(result)]
        > cut off                    write a Unknown
        > submit y                   preparing streaming | call-model #1 [user assistant(write) user(result!) user]
        ",
    );
}

#[test]
fn text_that_was_not_complete_is_not_recalled() {
    let cut = || new().submit("x").text("One.").delta("Tw");
    assert_eq!(transcript(cut().cut_off()), ["user", "assistant(text)"]);
    assert_eq!(
        transcript(cut().interrupt(Interrupt::Stop).cut_off()),
        ["user", "assistant(text,text)", "user"]
    );
}

fn with_fallback(config: &mut Config) {
    let thinks = ThinkingSupport { is_adaptive: true, is_on_by_default: true, ..ThinkingSupport::default() };
    let card = |id| ModelCard { thinking: thinks, is_known: true, ..ModelCard::unknown(id) };
    config.model = card("first");
    config.fallbacks = [card("second")].into();
}

#[test]
fn what_was_taken_back_stays_so() {
    let failed = || new().with(with_fallback).submit("x").text("Half").fails(FailureClass::Cut);
    assert_eq!(transcript(failed().cut_off()), ["user"]);
    assert_eq!(transcript(failed().text("Whole.").cut_off()), ["user", "assistant(text)"]);
    // Without the record the text still stands.
    let before = new().with(with_fallback).submit("x").text("Half").cut_off();
    assert_eq!(transcript(before), ["user", "assistant(text)"]);
}

/// A change of model rewrites the transcript while calls are open: their results still find them.
#[test]
fn results_behind_a_change_of_model_are_recalled() {
    let fell_back = || {
        new()
            .with(with_fallback)
            .submit("x")
            .thinking("hm")
            .call("write a")
            .call("read b")
            .fails(FailureClass::Cut)
            .finished(1, "A")
    };
    check(
        fell_back().cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < thinking hm
        < call write a               examine c1
        > c1 is write a              run c1
        < call read b
        < fails Cut                  thinking stripped from 1 | fall back from first to second | settling
        > c1 finished A              examine c2 | result c1
        > c2 is read b               run c2
        > cut off                    read b ReadOnly
        > submit y                   preparing streaming | call-model #1 [user assistant(write,read) user(result,result!) user]
        ",
    );
    let done = fell_back().finished(2, "B").text("Done.").ended(StopReason::EndTurn);
    assert_eq!(
        transcript(done.cut_off()),
        ["user", "assistant(write,read)", "user(result,result)", "assistant(text)"]
    );
}

/// What the second model thought must not go to the first, which answers again after the restart.
#[test]
fn thinking_of_a_fallback_does_not_survive_a_crash() {
    let scenario = new()
        .with(with_fallback)
        .submit("x")
        .text("One.")
        .ended(StopReason::EndTurn)
        .submit("y")
        .text("Half")
        .fails(FailureClass::Cut)
        .thinking("hm")
        .text("Two.")
        .cut_off()
        .submit("z");
    let sent = requests(scenario);
    let (before, last) = (&sent[sent.len() - 2], sent.last().unwrap());
    assert_eq!((&*before.model, &*last.model), ("second", "first"));
    assert!(!last.transcript.iter().any(|message| message.blocks.iter().any(Block::is_thinking)));
}

#[test]
fn prompts_that_wait_are_recalled_in_their_order() {
    check(
        new().submit("x").steer("one").steer("two").cut_off().submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        > steer one
        > steer two
        > cut off
        > submit y                   preparing streaming | call-model #1 [user user(one/two/y)]
        ",
    );
    // What went in with the results waits no more.
    let taken = new().submit("x").call("read a").steer("one").ended(StopReason::ToolUse).finished(1, "A");
    assert_eq!(
        transcript(taken.cut_off().submit("y")),
        ["user", "assistant(read)", "user(result)", "user", "user"]
    );
}

#[test]
fn prompts_of_runs_that_did_not_end_well_are_unfinished() {
    #[track_caller]
    fn check(scenario: &dyn Fn() -> Scenario, expected: &[&str]) {
        let texts = |state: &State| -> Vec<String> {
            let blocks: Vec<Block> = state.unfinished_prompts().flat_map(|prompt| prompt.blocks).collect();
            blocks.iter().filter_map(Block::as_text).map(str::to_owned).collect()
        };
        assert_eq!(texts(&state(scenario())), expected, "at once");
        assert_eq!(texts(&recall(records(scenario())).state), expected, "recalled");
    }
    let joined = |scenario: Scenario| {
        scenario.submit("x").call("read a").steer("one").ended(StopReason::ToolUse).finished(1, "A")
    };
    check(&|| joined(new()), &["x", "one"]);
    check(&|| joined(new()).text("Done.").ended(StopReason::EndTurn), &[]);
    check(&|| joined(new()).fails(FailureClass::Auth), &["x", "one"]);
    check(&|| joined(new()).interrupt(Interrupt::Stop), &[]);
    check(&|| joined(new()).interrupt(Interrupt::Leave), &["x", "one"]);
    // What asks no model answers nothing.
    check(&|| joined(new()).fails(FailureClass::Auth).compact(""), &["x", "one"]);
    check(
        &|| joined(new()).fails(FailureClass::Auth).submit("y").fails(FailureClass::Auth),
        &["x", "one", "y"],
    );
    check(
        &|| joined(new()).fails(FailureClass::Auth).submit("y").text("Done.").ended(StopReason::EndTurn),
        &[],
    );
}

#[test]
fn a_run_goes_on_without_a_prompt() {
    check(
        new().submit("x").call("read a").ended(StopReason::ToolUse).finished(1, "A").steer("also").cut_off().go_on().text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        > steer also
        > cut off
        > go on                      said also | preparing streaming | call-model #1 [user assistant(read) user(result) user]
        < text Done.
        < end end_turn               settling done | = completed after 1
        ",
    );
    // Where the model spoke last it is asked to go on.
    check(
        new().submit("x").text("Half").cut_off().go_on(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Half
        > cut off
        > go on                      note Continue. | preparing streaming | call-model #1 [user assistant(text) user]
        ",
    );
}

#[test]
fn a_call_in_doubt_is_asked_about_whatever_allows_it() {
    let cut = |asking| wordy().asking(asking).submit("x").call("write a").cut_off().submit("y");
    let unknown = "write a Unknown: The session was cut off during this call, so whether it took effect is unknown. Check what it did before you repeat it; repeating exactly this call needs the user's approval.";
    let before = format!(
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        > cut off                    {unknown}
        > submit y                   preparing streaming | call-model #1 [user assistant(write) user(result!) user]
        < call write a               examine c1
        "
    );
    let reason = "The same call was running when the session was cut off; whether it took effect is unknown.";
    check(
        cut(Answerer::Person).call("write a").answer(1, Answer::Allow),
        &format!(
            "{before}\n> c1 is write a              ask c1: {reason}\n> answer c1                  run c1"
        ),
    );
    let denied = format!(
        "{reason} Denied: not running interactively. To allow it: check whether it took effect, then prompt again."
    );
    check(
        cut(Answerer::Nobody).call("write a"),
        &format!("{before}\n> c1 is write a              denied c1: {denied} | result c1 error: {denied}"),
    );
}

/// How many calls were started in all.
fn started(scenario: Scenario) -> usize {
    records(scenario).iter().filter(|record| matches!(record, Record::Intended(_))).count()
}

#[test]
fn only_the_same_call_is_in_doubt_and_only_until_somebody_has_spoken() {
    let cut = || new().asking(Answerer::Nobody).submit("x").call("write a").cut_off().submit("y");
    assert_eq!(started(cut().call("write a")), 1);
    assert_eq!(started(cut().call("write b")), 2);
    assert_eq!(started(cut().text("So?").ended(StopReason::EndTurn).submit("again").call("write a")), 2);
    // A second crash before anything was said forgets nothing.
    let twice = new().asking(Answerer::Nobody).submit("x").call("write a").cut_off().cut_off_without(1);
    assert_eq!(started(twice.submit("y").call("write a")), 1);
    // A run that was dropped leaves the same doubt.
    let dropped = new().asking(Answerer::Nobody).submit("x").call("write a").submit("y").call("write a");
    assert_eq!(started(dropped), 1);
}

/// Nobody is asked twice about the same thing.
#[test]
fn an_answer_lifts_the_doubt() {
    let answered = |answer| {
        new()
            .asking(Answerer::Person)
            .submit("x")
            .call("write a")
            .cut_off()
            .submit("y")
            .call("write a")
            .answer(1, answer)
    };
    let again = |scenario: Scenario| scenario.ended(StopReason::ToolUse).finished(1, "A").call("write a");
    assert_eq!(started(again(answered(Answer::Allow))), 3);
    assert_eq!(started(again(answered(Answer::Deny("no".into())))), 1);
}

#[test]
fn files_directory_and_results_in_files_come_back() {
    let seen = FileSeen {
        path: "/project/a".into(),
        hash: 7,
        lines: [1, 2].into(),
        is_whole: true,
        shown: Vec::new(),
        stamp: None,
    };
    let outcome =
        ToolOutput { cwd: Some("/project/sub".into()), ..ToolOutput::text("A") }.with_seen(seen.clone());
    let played = || {
        new()
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished_with(1, "finished", outcome.clone())
            .looked(1, "nothing", AmbientChanges::default())
    };
    let recalled = recall(records(played()));
    let facts = recalled.state.snapshot().unwrap();
    assert_eq!((facts.cwd.to_str(), &facts.files[..]), (Some("/project/sub"), &[seen][..]));
    assert!(recalled.is_cut_off);
    let stored = windlass_protocol::StoredResult {
        tool_use_id: "toolu_1".into(),
        path: "/session/1.txt".into(),
        preview: Block::tool_result("toolu_1", &[Block::text("A…")], false),
    };
    let stored = Record::Decided(Decision::Stored(vec![stored]));
    let recalled = recall(records(played()).into_iter().chain([stored]));
    assert_eq!(recalled.state.snapshot().unwrap().readable, [std::path::PathBuf::from("/session/1.txt")]);
}

#[test]
fn a_session_at_rest_is_the_same_to_the_last_byte() {
    let memory = vec![MemoryNote { path: "/memory/a".into(), text: "It was so.".into() }];
    let check = |scenario: fn(Vec<MemoryNote>) -> Scenario| {
        let live = state(scenario(memory.clone()));
        let recalled = recall(records(scenario(memory.clone())));
        assert!(!recalled.is_cut_off && recalled.open.is_empty() && recalled.results.is_empty());
        assert_eq!(live.snapshot(), recalled.state.snapshot());
        assert_eq!(next_request(live), next_request(recalled.state));
    };
    check(|_| new().submit("x").text("Done.").ended_at(StopReason::EndTurn, 1_000, 10));
    check(|_| {
        new()
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .interrupt(Interrupt::Stop)
    });
    check(|_| new().submit("x").steer("one").text("Done.").ended(StopReason::EndTurn).steer("two"));
    check(|memory| new().submit("x").text("Done.").ended(StopReason::EndTurn).prefetched("late", memory));
    check(|_| {
        new()
            .with(with_fallback)
            .submit("x")
            .thinking("hm")
            .text("Half")
            .fails(FailureClass::Cut)
            .thinking("so")
            .text("Whole.")
            .ended(StopReason::EndTurn)
    });
    check(|_| {
        let compacted = new()
            .submit("x")
            .text(&"word ".repeat(4_000))
            .ended_at(StopReason::EndTurn, 900, 9)
            .compact("")
            .forked(1, Terminal::Completed, "In short.");
        compacted.looked(1, "nothing", AmbientChanges::default())
    });
}

fn next_request(state: State) -> Vec<String> {
    let (_, effects) = step(state, Input::at(0, Event::Submit("next".into())), &Config::default());
    effects
        .list
        .iter()
        .filter_map(|effect| match effect {
            windlass_core::Effect::CallModel(_, body) => {
                Some(format!("{:?} {}", body.breakpoints, body.transcript.to_json()))
            }
            _ => None,
        })
        .collect()
}

/// A compaction that was not decided when the session was cut off never happened.
#[test]
fn a_compaction_counts_once_it_is_decided() {
    let compacting = || new().submit("x").text(&"word ".repeat(4_000)).ended(StopReason::EndTurn).compact("");
    assert_eq!(transcript(compacting().cut_off()), ["user", "assistant(text)"]);
    let forked = || compacting().forked(1, Terminal::Completed, "In short.");
    assert_eq!(transcript(forked().cut_off()), ["user", "assistant(text)"]);
    let done = forked().looked(1, "nothing", AmbientChanges::default());
    assert_eq!(transcript(done.cut_off()), ["boundary"]);
}

#[test]
fn staged_spans_come_back_and_go_with_what_they_stood_for() {
    let message =
        |id, text: &str| Arc::new(Message::user(MessageId(id), Origin::Prompt, vec![Block::text(text)]));
    let span =
        windlass_protocol::Collapse { first: MessageId(1), last: MessageId(1), summary: message(3, "short") };
    let said = [message(1, "one"), message(2, "two")]
        .map(|message| Record::Said(windlass_protocol::UserEntry::plain(message)));
    let staged = || said.clone().into_iter().chain([Record::Decided(Decision::Staged(span.clone()))]);
    let spans = |records: Vec<Record>| recall(records).state.snapshot().unwrap().staged.len();
    assert_eq!(spans(staged().collect()), 1);
    let collapsed = Decision::Collapsed { spans: vec![span.clone()], tokens: 1, unbound_from: None };
    assert_eq!(spans(staged().chain([Record::Decided(collapsed)]).collect()), 0);
    let snipped = Decision::Snipped { messages: vec![MessageId(1)], tokens: 1, unbound_from: None };
    assert_eq!(spans(staged().chain([Record::Decided(snipped)]).collect()), 0);
}

/// A small generator, so that each case can be made again.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Records of very different sessions, thrown together in any order: recalling them never fails, gives the same each time, and
/// what can be sent of it needs nothing but the last gate.
#[test]
fn any_list_of_records_is_recalled() {
    let pool: Vec<Record> = [
        new()
            .submit("x")
            .call("write a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .finished(2, "B"),
        new()
            .submit("x")
            .thinking("hm")
            .call("read a")
            .cut_off()
            .submit("y")
            .text("Done.")
            .ended(StopReason::EndTurn),
        new().with(with_fallback).submit("x").text("Half").fails(FailureClass::Cut).steer("s").text("Whole."),
        new()
            .submit("x")
            .text(&"word ".repeat(4_000))
            .ended(StopReason::EndTurn)
            .compact("")
            .forked(1, Terminal::Completed, "In short.")
            .looked(1, "", AmbientChanges::default()),
        new().early_start(EarlyStart::Off).submit("x").call("write a").interrupt(Interrupt::Stop).go_on(),
    ]
    .into_iter()
    .flat_map(records)
    .collect();
    for seed in 0..5_000 {
        let mut rng = Rng(seed);
        let list: Vec<Record> = (0..rng.below(40)).map(|_| pool[rng.below(pool.len())].clone()).collect();
        let first = recall(list.clone());
        assert_eq!(first.state.snapshot(), recall(list).state.snapshot(), "seed {seed}");
        let (mended, _) = repair(first.state.messages());
        assert_eq!(repair(&mended).1, [], "seed {seed}");
        let sent: Transcript = mended.iter().cloned().collect();
        assert_eq!(sent.to_json(), mended.to_json(), "seed {seed}");
        assert!(!next_request(first.state).is_empty(), "seed {seed}");
    }
}
