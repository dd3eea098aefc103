//! What the model is told besides the results, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_core::{CompactionPolicy, Config, Interrupt, Priority, Prompt, RunSource, Speaker};
use windlass_permission::PermissionMode;
use windlass_protocol::{
    AmbientChanges, FileChange, FileSeen, MemoryNote, ModelCard, StopReason, Terminal, ToolOutput, ToolSpec,
};

fn prompt(text: &str, speaker: Speaker, priority: Priority) -> Prompt {
    Prompt { id: Some(format!("id-{text}").into()), speaker, priority, ..text.into() }
}

fn memory(path: &str) -> MemoryNote {
    MemoryNote { path: path.into(), text: "use tabs".into() }
}

fn changed(path: &str, hash: u64) -> AmbientChanges {
    let change = FileChange { path: path.into(), hash, note: format!("line {hash}") };
    AmbientChanges { changed: vec![change], ..AmbientChanges::default() }
}

fn tasks(list: &str) -> AmbientChanges {
    AmbientChanges { tasks: Some(list.into()), ..AmbientChanges::default() }
}

/// A result after which the conversation knows this file.
fn shows(path: &str) -> ToolOutput {
    let seen = FileSeen {
        path: path.into(),
        hash: 1,
        lines: [].into(),
        is_whole: true,
        shown: Vec::new(),
        stamp: None,
    };
    ToolOutput::text("content").with_seen(seen)
}

/// One turn in which a file was read.
fn read(scenario: Scenario, call: u32, path: &str) -> Scenario {
    scenario.call("read a").ended(StopReason::ToolUse).finished_with(call, path, shows(path))
}

fn with_tasks(config: &mut Config) {
    let schema = log::input("any");
    let spec = ToolSpec {
        name: "TaskCreate".into(),
        description: "".into(),
        input_schema: schema,
        result_chars_max: None,
        profile: windlass_protocol::ToolProfile::named("TaskCreate"),
    };
    config.tools = [spec].into();
}

fn with_summaries(config: &mut Config) {
    config.has_tool_use_summaries = true;
    config.small_model = Some(ModelCard::unknown("small"));
}

#[test]
fn waiting_prompts_go_in_by_priority_and_are_marked_as_started() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .steer_prompt("l", prompt("l", Speaker::User, Priority::Later))
            .steer_prompt("b", prompt("b", Speaker::User, Priority::Next))
            .steer_prompt("c", prompt("c", Speaker::User, Priority::Next))
            .steer_prompt("t", prompt("t", Speaker::Task, Priority::Next))
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer l
        > steer b
        > steer c
        > steer t
        < end tool_use               settling
        > c1 finished A              result c1 | started id-b,id-c,id-t | said b/c | note t | preparing streaming | call-model #2 [user assistant(read) user(result) user(b/c) user]
        < text Done.
        < end end_turn               settling done | = completed after 2
        > submit y                   started id-l | preparing streaming | call-model #3 [user assistant(read) user(result) user(b/c) user assistant(text) user(l/y)]
        ",
    );
}

#[test]
fn what_is_for_later_goes_in_after_a_call_that_only_sleeps() {
    let later = || prompt("l", Speaker::User, Priority::Later);
    check(
        Scenario::new()
            .submit("x")
            .call("sleep 5")
            .steer_prompt("l", later())
            .ended(StopReason::ToolUse)
            .finished(1, "."),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call sleep 5               examine c1
        > c1 is sleep 5              run c1
        > steer l
        < end tool_use               settling
        > c1 finished .              result c1 | started id-l | said l | preparing streaming | call-model #2 [user assistant(sleep) user(result) user]
        ",
    );
}

#[test]
fn a_prompt_that_cannot_wait_interrupts_and_replaces_what_runs() {
    let now = || prompt("n", Speaker::User, Priority::Now);
    check(
        Scenario::new()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .steer_prompt("n", now())
            .finished(1, "A")
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        > steer n                    cancel-model #1 | settling
        > c1 finished A              result c1 | done | = aborted_streaming after 1
        > submit y                   started id-n | preparing streaming | call-model #2 [user assistant(write) user(result) user(n/y)]
        ",
    );
    // A command is for the program: it ends the run, and the model never reads it.
    let command = || prompt("/cost", Speaker::Command, Priority::Now);
    check(
        Scenario::new().submit("x").text("Well").steer_prompt("/cost", command()).submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        > steer /cost                cancel-model #1 | settling done | = aborted_streaming after 1
        > submit y                   preparing streaming | call-model #2 [user assistant(text) user]
        ",
    );
    // News of a task is nobody's word against the run.
    check(
        Scenario::new().submit("x").text("Well").steer_prompt("t", prompt("t", Speaker::Task, Priority::Now)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        > steer t
        ",
    );
}

#[test]
fn a_command_waits_for_the_end_of_the_run_and_can_be_taken_back() {
    let command = || prompt("/cost", Speaker::Command, Priority::Next);
    let waiting = |scenario: Scenario| log::state(scenario).waiting();
    let steered = || {
        let calls = Scenario::new().submit("x").call("read a").steer_prompt("/cost", command()).steer("b");
        calls.ended(StopReason::ToolUse).finished(1, "A")
    };
    check(
        steered(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer /cost
        > steer b
        < end tool_use               settling
        > c1 finished A              result c1 | said b | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        ",
    );
    let ended = || steered().text("Done.").ended(StopReason::EndTurn);
    assert_eq!((waiting(ended()), waiting(ended().take_back("id-/cost"))), (1, 0));
    let recalled = |scenario: Scenario| log::recall(log::records(scenario)).state.waiting();
    assert_eq!((recalled(ended()), recalled(ended().take_back("id-/cost"))), (1, 0));
}

#[test]
fn an_interrupt_keeps_what_waits_for_the_next_prompt() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .steer_prompt("b", prompt("b", Speaker::User, Priority::Next))
            .interrupt(Interrupt::Stop)
            .finished(1, "A")
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > steer b
        > interrupt                  cancel c1 | timer t1 800
        > c1 finished A              result c1 | done | = aborted_tools after 1
        > submit y                   started id-b | preparing streaming | call-model #2 [user assistant(read) user(result) user(b/y)]
        ",
    );
}

#[test]
fn a_changed_file_is_told_once_and_again_after_it_was_read_again() {
    let first =
        || read(Scenario::new().submit("x"), 1, "/project/a").looked(1, "a", changed("/project/a", 2));
    check(
        first(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > l1 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        ",
    );
    let same = || read(first(), 2, "/project/b").looked(2, "a", changed("/project/a", 2));
    check(
        same(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > l1 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 /project/b              result c2 | look l2 [/project/b /project/a]
        > l2 finds a                 preparing streaming | call-model #3 [user assistant(read) user(result) user assistant(read) user(result)]
        ",
    );
    check(
        read(read(same(), 3, "/project/a").looked(3, "nothing", AmbientChanges::default()), 4, "/project/b")
            .looked(4, "a", changed("/project/a", 2)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > l1 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 /project/b              result c2 | look l2 [/project/b /project/a]
        > l2 finds a                 preparing streaming | call-model #3 [user assistant(read) user(result) user assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c3 /project/a              result c3 | look l3 [/project/a /project/b]
        > l3 finds nothing           preparing streaming | call-model #4 [user assistant(read) user(result) user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c4
        > c4 is read a               run c4
        < end tool_use               settling
        > c4 /project/b              result c4 | look l4 [/project/b /project/a]
        > l4 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #5 [user assistant(read) user(result) user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result) user]
        ",
    );
}

#[test]
fn another_change_of_the_same_file_is_told_too() {
    check(
        read(
            read(Scenario::new().submit("x"), 1, "/project/a").looked(1, "a", changed("/project/a", 2)),
            2,
            "/project/b",
        )
        .looked(2, "a", changed("/project/a", 3)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > l1 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 /project/b              result c2 | look l2 [/project/b /project/a]
        > l2 finds a                 note (The file /project/a has changed on disk, and not through your calls. line 3 Read it again before you rely on it or edit it; do not undo these changes.) | preparing streaming | call-model #3 [user assistant(read) user(result) user assistant(read) user(result) user]
        ",
    );
}

#[test]
fn an_interrupt_while_looking_around_ends_the_run() {
    check(
        read(Scenario::new().submit("x"), 1, "/project/a")
            .interrupt(Interrupt::Stop)
            .looked(1, "late", changed("/project/a", 2)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > interrupt                  done | note The user interrupted while tools were running. | = aborted_tools after 1
        > l1 finds late
        ",
    );
}

#[test]
fn memory_is_told_once_and_only_if_it_was_not_seen_already() {
    let always = |config: &mut Config| config.memory = [memory("/always")].into();
    let found = || vec![memory("/seen"), memory("/new"), memory("/always")];
    check(
        read(
            read(Scenario::new().with(always).submit("x"), 1, "/seen")
                .prefetched("seen, new, always", found())
                .looked(1, "nothing", AmbientChanges::default())
                .prefetched("again", found()),
            2,
            "/other",
        )
        .looked(2, "nothing", AmbientChanges::default()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /seen                   result c1 | look l1 [/seen]
        > memory seen, new, always
        > l1 finds nothing           note (Notes from /new that may help: use tabs) | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        > memory again
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 /other                  result c2 | look l2 [/other /seen]
        > l2 finds nothing           preparing streaming | call-model #3 [user assistant(read) user(result) user assistant(read) user(result)]
        ",
    );
}

/// The notes of a run in which every turn finds this.
fn notes(found: &[AmbientChanges]) -> Vec<String> {
    let turn = |scenario: Scenario, (n, found): (u32, &AmbientChanges)| {
        let called = scenario.call(&format!("read {n}")).ended(StopReason::ToolUse).finished(n, "ok");
        called.looked(n, "this", found.clone())
    };
    log::notes((1..).zip(found).fold(Scenario::new().with(with_tasks).submit("x"), turn))
}

#[test]
fn a_task_list_is_brought_to_mind_after_ten_turns_of_silence() {
    let notes = |lists: &[&str]| notes(&lists.iter().map(|list| tasks(list)).collect::<Vec<_>>());
    assert_eq!(notes(&["one"; 10]), Vec::<String>::new());
    assert_eq!(notes(&["one"; 11]).len(), 1);
    assert_eq!(notes(&["one"; 20]).len(), 1);
    assert_eq!(notes(&["one"; 21]).len(), 2);
    let touched = [&["one"; 10][..], &["two"; 10][..]].concat();
    assert_eq!(notes(&touched), Vec::<String>::new());
    assert_eq!(notes(&[""; 20]), Vec::<String>::new());
}

#[test]
fn background_tasks_that_run_for_long_are_no_forgotten_task_list() {
    let found = AmbientChanges { background: Some("bash-1: make watch".into()), ..AmbientChanges::default() };
    assert_eq!(notes(&vec![found; 20]), Vec::<String>::new());
}

#[test]
fn everything_is_attached_in_a_fixed_order() {
    check(
        read(Scenario::new().submit("x").prefetched("new", vec![memory("/new")]), 1, "/project/a")
            .steer("typed")
            .looked(1, "a", changed("/project/a", 2)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        > memory new
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | look l1 [/project/a]
        > steer typed
        > l1 finds a                 said typed | note (The file /project/a has changed on disk, and not through your calls. line 2 Read it again before you rely on it or edit it; do not undo these changes.) | note (Notes from /new that may help: use tabs) | preparing streaming | call-model #2 [user assistant(read) user(result) user user user]
        ",
    );
}

#[test]
fn the_summary_of_calls_is_shown_when_it_is_ready_and_never_waited_for() {
    let turn =
        |scenario: Scenario, n: u32| scenario.call("read a").ended(StopReason::ToolUse).finished(n, "ok");
    let first = || turn(Scenario::new().with(with_summaries).submit("x"), 1);
    check(
        turn(first().forked(1, Terminal::Completed, "Read a"), 2),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished ok             result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)] | fork f1 summary
        > f1 completed Read a        summary Read a of toolu_1
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished ok             result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)] | fork f2 summary
        ",
    );
    check(
        turn(first(), 2).text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished ok             result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)] | fork f1 summary
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished ok             result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < text Done.
        < end end_turn               cancel f1 | settling done | = completed after 3
        ",
    );
    check(
        turn(first().forked(1, Terminal::ApiError, ""), 2),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished ok             result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)] | fork f1 summary
        > f1 api_error
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished ok             result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)] | fork f2 summary
        ",
    );
}

#[test]
fn no_summary_of_calls_is_started_that_could_not_be_shown() {
    let called = |scenario: Scenario| {
        scenario.with(with_summaries).submit("x").call("read a").ended_at(StopReason::ToolUse, 177_000, 0)
    };
    check(
        called(Scenario::new().turns_max(1)).finished(1, "ok"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use 177000+0      settling
        > c1 finished ok             result c1 | done | = max_turns after 1
        ",
    );
    let full = |config: &mut Config| {
        config.context.compaction = CompactionPolicy::OnRequest;
    };
    check(
        called(Scenario::new().with(full)).finished(1, "ok"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use 177000+0      settling
        > c1 finished ok             result c1 | preparing done | failed blocking_limit | = blocking_limit after 2
        ",
    );
}

#[test]
fn only_the_main_loop_has_summaries() {
    check(
        Scenario::new()
            .with(with_summaries)
            .with(|config| config.source = RunSource::Agent("explore".into()))
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "ok"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished ok             result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        ",
    );
}

#[test]
fn nobody_looks_around_when_the_run_ends() {
    check(
        read(Scenario::new().turns_max(1).submit("x"), 1, "/project/a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 /project/a              result c1 | done | = max_turns after 1
        ",
    );
}

#[test]
fn a_prompt_that_joins_a_run_brings_its_budget_of_tokens() {
    let budget = Prompt { token_budget: Some(1_000), ..prompt("b", Speaker::User, Priority::Next) };
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .steer_prompt("b +1k", budget)
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer b +1k
        < end tool_use               settling
        > c1 finished A              result c1 | started id-b | said b | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        < text Done.
        < end end_turn               note You have used 0 of 1000 output tokens (0 %) that the user wants spent on this task. Continue: look for anything missing, wrong or untested, and improve it. | again token_budget_continuation | settling preparing streaming | call-model #3 [user assistant(read) user(result) user assistant(text) user]
        ",
    );
}
