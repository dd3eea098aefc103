//! The mode `auto`, in which a model judges calls that nothing allows, and changes of the permissions during a session.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_permission::{Anchors, Answerer, Behaviour, PermissionMode, RuleSource};
use windlass_protocol::{PermissionChange, StopReason, Terminal};

fn judged(asking: Answerer) -> Scenario {
    Scenario::new().wordy().permission_mode(PermissionMode::Auto).asking(asking).submit("x")
}

#[test]
fn a_call_runs_when_the_judge_allows_it() {
    check(
        judged(Answerer::Nobody)
            .call("write /etc/a")
            .ended(StopReason::ToolUse)
            .forked(1, Terminal::Completed, "ALLOW")
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 completed ALLOW         run c1
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(write) user(result)]
        ",
    );
}

#[test]
fn a_call_that_the_judge_blocks_is_denied_with_its_reason() {
    check(
        judged(Answerer::Person)
            .call("write /etc/a")
            .ended(StopReason::ToolUse)
            .forked(1, Terminal::Completed, "BLOCK: it sends files elsewhere"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 completed BLOCK: it sends files elsewhere denied c1: A model judged that this call may do harm: it sends files elsewhere | result c1 error: A model judged that this call may do harm: it sends files elsewhere | preparing streaming | call-model #2 [user assistant(write) user(result!)]
        ",
    );
}

#[test]
fn where_the_judge_cannot_tell_the_user_is_asked_or_the_call_denied() {
    let said = |asking, terminal, text: &str| {
        judged(asking).call("write /etc/a").ended(StopReason::ToolUse).forked(1, terminal, text)
    };
    check(
        said(Answerer::Person, Terminal::ApiError, ""),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 api_error               ask c1: /etc/a is outside the working directories.
        ",
    );
    check(
        said(Answerer::Person, Terminal::Completed, "Allowed, I think"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 completed Allowed, I think ask c1: /etc/a is outside the working directories.
        ",
    );
    check(
        said(Answerer::Nobody, Terminal::Completed, "allow"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 completed allow         denied c1: /etc/a is outside the working directories. Denied: not running interactively. To allow it: --allowedTools 'Edit(//etc/a)', or --add-dir /etc. | result c1 error: /etc/a is outside the working directories. Denied: not running interactively. To allow it: --allowedTools 'Edit(//etc/a)', or --add-dir /etc. | preparing streaming | call-model #2 [user assistant(write) user(result!)]
        ",
    );
}

#[test]
fn after_three_in_a_row_the_user_is_asked_at_once() {
    let blocked = |scenario: Scenario, n: u32| {
        scenario.call("write /etc/a").ended(StopReason::ToolUse).forked(n, Terminal::Completed, "BLOCK no")
    };
    let third = (1..=3).fold(judged(Answerer::Person), blocked);
    check(
        third.call("write /etc/b").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write /etc/a          examine c1
        > c1 is write /etc/a         fork f1 classifier
        < end tool_use               settling
        > f1 completed BLOCK no      denied c1: A model judged that this call may do harm: no | result c1 error: A model judged that this call may do harm: no | preparing streaming | call-model #2 [user assistant(write) user(result!)]
        < call write /etc/a          examine c2
        > c2 is write /etc/a         fork f2 classifier
        < end tool_use               settling
        > f2 completed BLOCK no      denied c2: A model judged that this call may do harm: no | result c2 error: A model judged that this call may do harm: no | preparing streaming | call-model #3 [user assistant(write) user(result!) assistant(write) user(result!)]
        < call write /etc/a          examine c3
        > c3 is write /etc/a         fork f3 classifier
        < end tool_use               settling
        > f3 completed BLOCK no      denied c3: A model judged that this call may do harm: no | result c3 error: A model judged that this call may do harm: no/(You have made this call 3 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #4 [user assistant(write) user(result!) assistant(write) user(result!) assistant(write) user(result!)]
        < call write /etc/b          examine c4
        > c4 is write /etc/b         ask c4: /etc/a is outside the working directories.
        < end tool_use               settling
        ",
    );
}

fn asked() -> Scenario {
    Scenario::new().wordy().asking(Answerer::Person)
}

fn rules(behaviour: Behaviour) -> (PermissionChange, PermissionChange) {
    let rules = || vec!["write".to_owned()];
    (PermissionChange::AddRules(behaviour, rules()), PermissionChange::RemoveRules(behaviour, rules()))
}

#[test]
fn a_rule_of_the_session_holds_until_it_is_taken_back() {
    let (added, removed) = rules(Behaviour::Allow);
    check(
        asked()
            .submit("x")
            .permissions("allow write", added)
            .call("write a")
            .finished(1, "A")
            .permissions("allow write no more", removed)
            .call("write b")
            .ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        > permissions allow write
        < call write a               examine c1
        > c1 is write a              run c1
        > c1 finished A              result c1: A
        > permissions allow write no more
        < call write b               examine c2
        > c2 is write b              ask c2: write of write b needs approval.
        < end tool_use               settling
        ",
    );
}

#[test]
fn what_settings_deny_is_not_taken_back_by_the_session() {
    let (_, removed) = rules(Behaviour::Deny);
    let denied = asked().with(|config| {
        let source = RuleSource::named("user settings");
        let added = config.permissions.rules.add(Behaviour::Deny, "write", source, &Anchors::default());
        assert!(added.is_ok());
    });
    check(
        denied
            .submit("x")
            .permissions("deny write no more", removed)
            .call("write a")
            .ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        > permissions deny write no more
        < call write a               examine c1
        > c1 is write a              denied c1: The rule write (user settings) denies this call. | result c1 error: The rule write (user settings) denies this call.
        < end tool_use               settling preparing streaming | call-model #2 [user assistant(write) user(result!)]
        ",
    );
}

#[test]
fn a_mode_that_is_not_to_be_had_is_refused_and_that_is_told() {
    let mode = |name: &str| PermissionChange::SetMode(name.to_owned());
    check(
        asked()
            .submit("x")
            .permissions("bypass", mode("bypassPermissions"))
            .permissions("nonsense", mode("free"))
            .permissions("accept", mode("acceptEdits"))
            .call("write a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        > permissions bypass         notice A permission change was ignored: the mode bypassPermissions can only be chosen when the session starts.
        > permissions nonsense       notice A permission change was ignored: unknown permission mode free.
        > permissions accept
        < call write a               examine c1
        > c1 is write a              run c1
        ",
    );
}

#[test]
fn directories_come_and_go() {
    check(
        asked()
            .submit("x")
            .call("peek /etc")
            .permissions("add /etc", PermissionChange::AddDirectories(vec!["/etc".into()]))
            .call("peek /etc")
            .permissions(
                "remove all",
                PermissionChange::RemoveDirectories(vec!["/etc".into(), "/project".into()]),
            )
            .call("peek /etc")
            .call("read a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call peek /etc             examine c1
        > c1 is peek /etc            ask c1: /etc/a is outside the working directories.
        > permissions add /etc
        < call peek /etc             examine c2
        > c2 is peek /etc            run c2
        > permissions remove all
        < call peek /etc             examine c3
        > c3 is peek /etc            ask c3: /etc/a is outside the working directories.
        < call read a                examine c4
        > c4 is read a               run c4
        ",
    );
}
