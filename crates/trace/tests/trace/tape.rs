//! Records of sessions that never were, written like the log writes them: first what was heard, then what follows from it.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{
    Admission, Answer, AnswerBlock, Block, CallFacts, CallId, CallIntent, CallKind, CallResult,
    CompactTrigger, Compaction, Decision, Event, Failure, FailureClass, FinishedCall, ForkId, HookAnswer,
    HookId, Input, Interrupt, Message, MessageId, ModelEvent, ModelSpend, Origin, Outcome, RawValue, Record,
    RequestEntry, RequestId, Role, RunEnding, SessionMemory, SpendEntry, StopReason, Terminal, TimerId,
    ToolOutput, Usage, UserEntry,
};

pub(crate) const MODEL: &str = "claude-sonnet-5";

/// A log that is being written.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) records: Vec<Record>,
    pub(crate) at_ms: u64,
    pub(crate) wall_ms: u64,
    pub(crate) total_usd: f64,
    requests: u32,
    calls: u32,
    messages: u64,
}

impl Tape {
    pub(crate) fn new() -> Self {
        Self { at_ms: 40, wall_ms: 1_773_480_413_000, ..Self::default() }
    }

    /// Another process goes on, so much later.
    pub(crate) fn restart(&mut self, gap_ms: u64) -> &mut Self {
        (self.at_ms, self.requests, self.calls) = (3, 0, 0);
        self.wall_ms += gap_ms;
        self
    }

    pub(crate) fn wait(&mut self, ms: u64) -> &mut Self {
        self.at_ms += ms;
        self.wall_ms += ms;
        self
    }

    pub(crate) fn heard(&mut self, event: Event) -> &mut Self {
        let input = Input { at_ms: self.at_ms, wall_ms: self.wall_ms, entropy: 0, event };
        self.push(Record::Heard(Box::new(input)))
    }

    pub(crate) fn push(&mut self, record: Record) -> &mut Self {
        self.records.push(record);
        self
    }

    fn message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId(self.messages)
    }

    pub(crate) fn submit(&mut self, text: &str) -> &mut Self {
        self.heard(Event::Submit(text.into()));
        self.said(Origin::Prompt, text)
    }

    pub(crate) fn said(&mut self, origin: Origin, text: &str) -> &mut Self {
        let message = Message::user(self.message(), origin, vec![Block::text(text)]);
        self.push(Record::Said(UserEntry::plain(message.into())))
    }

    /// A request goes out with these parts.
    pub(crate) fn request(&mut self, attempt: u32, parts: &[(&str, u64)]) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let parts = parts.iter().map(|(name, tokens)| ((*name).into(), *tokens)).collect();
        self.push(Record::Requested(RequestEntry { request, model: MODEL.into(), attempt, parts }));
        request
    }

    pub(crate) fn model(&mut self, event: ModelEvent) -> &mut Self {
        let request = RequestId(self.requests);
        self.heard(Event::Model(request, event))
    }

    pub(crate) fn started(&mut self) -> &mut Self {
        self.model(ModelEvent::Started { message_id: "m".into(), model: MODEL.into(), usage: Box::default() })
    }

    fn block(&mut self, block: Block) -> MessageId {
        self.model(ModelEvent::Block { index: 0, block: block.clone() });
        let id = self.message();
        let request = RequestId(self.requests);
        self.push(Record::Answered(AnswerBlock {
            id,
            request,
            message_id: "m".into(),
            model: MODEL.into(),
            answered_by: MODEL.into(),
            index: 0,
            block,
            usage: None,
            is_aborted: false,
        }));
        id
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.block(Block::text(text));
        self
    }

    /// The model asks for a tool; what it is about is found out at once.
    pub(crate) fn tool(&mut self, name: &str, target: &str, kind: CallKind) -> (CallId, MessageId) {
        self.calls += 1;
        let call = CallId(self.calls);
        let input = RawValue::from_string(serde_json::json!({ "target": target }).to_string()).unwrap();
        let block = self.block(Block::tool_use(&self.tool_use_id(call), name, input));
        let facts =
            CallFacts { is_shared: kind == CallKind::Read, target: target.into(), ..CallFacts::new(kind) };
        self.heard(Event::Examined(call, Admission::Ready { tool: name.into(), facts }));
        (call, block)
    }

    /// Ids of a provider are never used twice; counters are, in another process.
    fn tool_use_id(&self, call: CallId) -> String {
        let process = self.wall_ms - self.at_ms;
        format!("toolu_{process}_{}", call.0)
    }

    pub(crate) fn intended(&mut self, call: CallId, name: &str, kind: CallKind) -> &mut Self {
        let tool_use_id = self.tool_use_id(call).into();
        self.push(Record::Intended(CallIntent {
            call,
            tool_use_id,
            tool: name.into(),
            kind,
            input_hash: 0,
            changes: Vec::<PathBuf>::new(),
        }))
    }

    pub(crate) fn finished(&mut self, call: CallId, text: &str, is_error: bool) -> &mut Self {
        let outcome = if is_error { ToolOutput::error(text) } else { ToolOutput::text(text) };
        self.heard(Event::Finished(call, outcome));
        let tool_use_id = self.tool_use_id(call).into();
        self.push(Record::Finished(FinishedCall { call, tool_use_id, is_error }))
    }

    pub(crate) fn result(
        &mut self,
        (call, asked_by): (CallId, MessageId),
        name: &str,
        text: &str,
        is_error: bool,
    ) -> &mut Self {
        let result = Block::tool_result(&self.tool_use_id(call), &[Block::text(text)], is_error);
        let id = self.message();
        self.push(Record::Result(CallResult {
            id,
            call,
            asked_by,
            name: name.into(),
            result,
            structured: None,
        }))
    }

    /// A call that starts at once, runs for so long and works.
    pub(crate) fn run_tool(&mut self, name: &str, target: &str, kind: CallKind, ms: u64) -> &mut Self {
        let made = self.tool(name, target, kind);
        self.intended(made.0, name, kind);
        self.wait(ms).finished(made.0, "done", false);
        self.result(made, name, "done", false)
    }

    /// The answer is complete and is paid for.
    pub(crate) fn stopped(&mut self, stop: StopReason, usage: Usage, usd: Option<f64>) -> &mut Self {
        self.model(ModelEvent::Ended { stop, usage: Box::new(usage.clone()) });
        self.spent(usage, usd, false)
    }

    pub(crate) fn spent(&mut self, usage: Usage, usd: Option<f64>, is_by_fork: bool) -> &mut Self {
        self.total_usd += usd.unwrap_or_default();
        let spend = ModelSpend { usage, cost_usd: usd, window_tokens: 200_000, output_tokens_max: 64_000 };
        let total_usd = self.total_usd;
        self.push(Record::Spent(SpendEntry { model: MODEL.into(), spend, is_by_fork, total_usd }))
    }

    pub(crate) fn failed(&mut self, class: FailureClass, why: &str) -> &mut Self {
        self.model(ModelEvent::Failed(Box::new(Failure::new(class, why))))
    }

    pub(crate) fn timer(&mut self) -> &mut Self {
        self.heard(Event::Timer(TimerId(1)))
    }

    pub(crate) fn hooked(&mut self, answer: HookAnswer) -> &mut Self {
        self.heard(Event::Hooked(HookId(1), Box::new(answer)))
    }

    pub(crate) fn answer(&mut self, call: CallId, answer: Answer) -> &mut Self {
        self.heard(Event::Answered(call, answer))
    }

    pub(crate) fn interrupt(&mut self) -> &mut Self {
        self.heard(Event::Interrupt(Interrupt::Stop))
    }

    pub(crate) fn forked(&mut self, duration_ms: u64) -> &mut Self {
        let outcome = Outcome { duration_ms, ..Outcome::new(Terminal::Completed) };
        self.heard(Event::Forked(ForkId(1), Box::new(outcome)))
    }

    pub(crate) fn compacted(&mut self, before: u64, after: u64, duration_ms: u64) -> &mut Self {
        let id = self.message();
        let boundary =
            Message::new(id, Role::User, Origin::Boundary, vec![Block::text("Summary: so far so good.")]);
        self.push(Record::Decided(Decision::Compacted(Box::new(Compaction {
            trigger: CompactTrigger::Auto,
            boundary: Arc::new(boundary),
            tail: None,
            is_unbound: false,
            is_mechanical: false,
            tokens_before: before,
            tokens_after: after,
            duration_ms,
        }))))
    }

    pub(crate) fn end(&mut self, terminal: Terminal) -> &mut Self {
        self.push(Record::Ended(RunEnding { terminal, rest: Box::new(SessionMemory::default()) }))
    }
}

pub(crate) fn usage(fresh: u64, written: u64, read: u64, output: u64) -> Usage {
    Usage {
        input_tokens: fresh,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: read,
        output_tokens: output,
        ..Usage::default()
    }
}

fn parts(results: u64, prompts: u64) -> [(&'static str, u64); 6] {
    [
        ("system prompt", 3_200),
        ("tools", 9_800),
        ("prompts", prompts),
        ("answers", results / 9),
        ("tool calls", results / 14),
        ("tool results", results),
    ]
}

/// A session with a bit of everything: overlaps, a question, a failure with a pause, hooks, a compaction, a message typed
/// meanwhile, an interrupt, and a process that goes away in the middle of a command.
pub(crate) fn eventful() -> Tape {
    let mut tape = Tape::new();
    overlaps(&mut tape);
    troubles(&mut tape);
    crash(&mut tape);
    after_the_crash(&mut tape);
    tape
}

fn overlaps(tape: &mut Tape) {
    tape.submit("The checkout total is wrong for orders with a voucher. Find out why and fix it.");
    tape.wait(12).request(1, &parts(0, 900));
    tape.wait(640).started().wait(420).text("I'll look at the voucher code and its tests.");
    let read = tape.wait(160).tool("Read", "src/checkout/voucher.rs", CallKind::Read);
    tape.intended(read.0, "Read", CallKind::Read);
    tape.wait(14).finished(read.0, "fn apply(…)", false);
    let grep = tape.wait(240).tool("Grep", "apply_voucher", CallKind::Read);
    tape.intended(grep.0, "Grep", CallKind::Read);
    let glob = tape.wait(130).tool("Glob", "tests/**/*voucher*", CallKind::Read);
    tape.intended(glob.0, "Glob", CallKind::Read);
    let test = tape.wait(190).tool("Bash", "cargo test -p checkout", CallKind::Execute);
    tape.wait(60).finished(glob.0, "tests/voucher.rs", false);
    tape.stopped(StopReason::ToolUse, usage(12, 13_900, 0, 312), Some(0.0571));
    tape.wait(420).finished(grep.0, "12 matches", false);
    tape.intended(test.0, "Bash", CallKind::Execute);
    tape.wait(3_900).finished(test.0, "test voucher_rounds ... FAILED\nleft: 1799, right: 1800", true);
    tape.result(read, "Read", "fn apply(…)", false).result(grep, "Grep", "12 matches", false);
    tape.result(glob, "Glob", "tests/voucher.rs", false).result(
        test,
        "Bash",
        "test voucher_rounds ... FAILED",
        true,
    );
    tape.wait(4).request(1, &parts(6_400, 900));
    tape.wait(910)
        .started()
        .wait(1_350)
        .text("The discount is rounded per line and then summed, so a cent is lost.");
    let edit = tape.wait(300).tool("Edit", "src/checkout/voucher.rs", CallKind::Edit);
    tape.stopped(StopReason::ToolUse, usage(8, 6_900, 13_912, 540), Some(0.0389));
    tape.wait(2_700).answer(edit.0, Answer::Allow).intended(edit.0, "Edit", CallKind::Edit);
    tape.wait(22).finished(edit.0, "edited", false).result(edit, "Edit", "edited", false);
    tape.wait(3).request(1, &parts(7_100, 900));
    tape.wait(580).started().wait(350);
    tape.run_tool("Bash", "cargo test -p checkout", CallKind::Execute, 2_100);
    tape.stopped(StopReason::ToolUse, usage(6, 1_100, 20_800, 96), Some(0.0118));
    tape.wait(2).request(1, &parts(7_900, 900));
    tape.wait(700)
        .started()
        .wait(900)
        .text("Fixed: the discount is now rounded once, over the sum. All tests pass.");
    tape.stopped(StopReason::EndTurn, usage(6, 800, 21_900, 180), Some(0.0124));
    tape.wait(90).hooked(HookAnswer {
        notices: vec!["formatter: 1 file reformatted".into()],
        ..HookAnswer::default()
    });
    tape.end(Terminal::Completed);
}

fn troubles(tape: &mut Tape) {
    tape.wait(94_000).submit("Now do the same for gift cards, and update the changelog.");
    tape.wait(5).request(1, &parts(118_000, 1_800));
    tape.wait(1_200).failed(FailureClass::Overloaded, "The provider is overloaded (529).");
    tape.wait(1_840).timer().request(2, &parts(118_000, 1_800));
    tape.wait(840).started().wait(700).text("Gift cards go through the same function.");
    let fetch = tape.wait(220).tool("Bash", "rm -rf target && make release", CallKind::Execute);
    tape.stopped(StopReason::ToolUse, usage(10, 96_000, 24_100, 220), Some(0.4031));
    tape.wait(1_600).answer(fetch.0, Answer::Deny("not now".into()));
    tape.result(fetch, "Bash", "The user said no: not now", true);
    tape.heard(Event::Steer("leave the release alone".into()))
        .said(Origin::Prompt, "leave the release alone");
    tape.wait(3_400).forked(3_380).spent(usage(120_000, 0, 0, 1_900), Some(0.2210), true);
    tape.compacted(121_800, 21_400, 3_390);
    tape.wait(6).request(1, &parts(8_200, 2_100));
    tape.wait(760).started().wait(500);
    for (file, ms) in [("src/checkout/gift.rs", 31), ("src/checkout/mod.rs", 18), ("CHANGELOG.md", 9)] {
        tape.wait(120).run_tool("Read", file, CallKind::Read, ms);
    }
    tape.wait(200).stopped(StopReason::ToolUse, usage(9, 21_000, 0, 260), Some(0.0862));
    tape.wait(4).request(1, &parts(11_700, 2_100));
    tape.wait(690).started().wait(1_900).text("I will change both places");
    tape.wait(300).interrupt().wait(4).end(Terminal::AbortedStreaming);
}

fn crash(tape: &mut Tape) {
    tape.wait(40_000).submit("Go on, and publish the docs when the tests pass.");
    tape.wait(5).request(1, &parts(12_300, 2_300));
    tape.wait(800).started().wait(600);
    let publish = tape.tool("Bash", "make publish-docs", CallKind::Execute);
    tape.stopped(StopReason::ToolUse, usage(9, 2_000, 24_000, 140), Some(0.0205));
    tape.intended(publish.0, "Bash", CallKind::Execute);
    tape.wait(2_600).heard(Event::Prefetched(vec![]));
}

fn after_the_crash(tape: &mut Tape) {
    tape.restart(7_500_000).submit("Did the docs go out?");
    tape.wait(6).request(1, &parts(12_800, 2_500));
    tape.wait(1_050).started().wait(400);
    tape.run_tool("Bash", "git log -1 --format=%cd docs", CallKind::Execute, 48);
    tape.stopped(StopReason::ToolUse, usage(9, 28_000, 0, 90), Some(0.1099));
    tape.wait(3).request(1, &parts(13_000, 2_500));
    tape.wait(720)
        .started()
        .wait(800)
        .text("Yes: the page of today is there, so the command had come to its end.");
    tape.stopped(StopReason::EndTurn, usage(9, 400, 28_000, 120), Some(0.0119));
    tape.end(Terminal::Completed);
}

/// A session of so many turns with two calls each.
pub(crate) fn long(turns: u64) -> Tape {
    let mut tape = Tape::new();
    tape.submit("Port everything.");
    for turn in 0..turns {
        let grown = turn % 180 * 900;
        tape.wait(5).request(1, &parts(grown, 1_000));
        tape.wait(500 + turn * 37 % 400)
            .started()
            .wait(300)
            .text("Next file, with a few words about what is done to it.");
        tape.run_tool(
            "Read",
            &format!("crates/engine/src/module_{turn}/inner/mod.rs"),
            CallKind::Read,
            3 + turn % 9,
        );
        tape.run_tool(
            "Edit",
            &format!("crates/engine/src/module_{turn}/inner/mod.rs"),
            CallKind::Edit,
            8 + turn % 20,
        );
        tape.wait(200).stopped(StopReason::ToolUse, usage(9, 900, 13_000 + grown, 200), Some(0.01));
        if turn % 180 == 179 {
            tape.wait(4_000).compacted(170_000, 14_000, 4_000);
        }
    }
    tape.end(Terminal::Completed);
    tape
}
