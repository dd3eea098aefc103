//! What random walks found, each as the shortest run that shows it.

#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{CompactionPolicy, Config, Effect, Event, Input, RunSource, State, step};
use windlass_protocol::{
    Admission, Block, CallFacts, CallId, CallKind, Failure, FailureClass, FileSeen, ForkId, LookId, Message,
    MessageId, ModelCard, ModelEvent, ModelRequest, ModelSpend, Origin, Outcome, Price, RawValue, RequestId,
    StopReason, Terminal, ThinkingSupport, TimerId, ToolOutput, ToolSpec, Transcript, Update, Usage,
};

struct Run {
    state: State,
    config: Config,
    effects: Vec<Effect>,
    requests: u32,
}

impl Run {
    fn new(config: Config, messages: Transcript) -> Self {
        Self { state: State::new("/project".into(), messages), config, effects: Vec::new(), requests: 0 }
    }

    fn tell(&mut self, event: Event) -> &mut Self {
        let (state, effects) = step(std::mem::take(&mut self.state), Input::at(0, event), &self.config);
        self.state = state;
        let is_request = |effect: &&Effect| matches!(effect, Effect::CallModel(..));
        self.requests += u32::try_from(effects.list.iter().filter(is_request).count()).expect("a few");
        self.effects.extend(effects.list);
        self
    }

    fn submit(&mut self) -> &mut Self {
        self.tell(Event::Submit("do it".into()))
    }

    /// News of the request that was sent last.
    fn model(&mut self, event: ModelEvent) -> &mut Self {
        self.tell(Event::Model(RequestId(self.requests), event))
    }

    fn starts(&mut self, usage: Usage) -> &mut Self {
        self.model(ModelEvent::Started { message_id: "m".into(), model: "a".into(), usage: Box::new(usage) })
    }

    fn says(&mut self, block: Block) -> &mut Self {
        self.model(ModelEvent::Block { index: 0, block })
    }

    fn ends(&mut self, stop: StopReason) -> &mut Self {
        self.model(ModelEvent::Ended { stop, usage: Box::default() })
    }

    fn fails(&mut self, class: FailureClass) -> &mut Self {
        self.model(ModelEvent::Failed(Box::new(Failure::new(class, "it failed"))))
    }

    /// A call that reads, from the model's wish to its result.
    fn calls(&mut self, call: u32, outcome: ToolOutput) -> &mut Self {
        let input = RawValue::from_string(format!("{{\"n\":{call}}}")).expect("JSON");
        self.says(Block::tool_use(&format!("toolu_{call}"), "Read", input)).ends(StopReason::ToolUse);
        let facts = CallFacts { is_shared: true, ..CallFacts::new(CallKind::Read) };
        let call = CallId(call);
        self.tell(Event::Examined(call, Admission::Ready { tool: "Read".into(), facts }));
        self.tell(Event::Finished(call, outcome))
    }

    fn forked(&mut self, fork: u32, usage: Usage, usd: f64) -> &mut Self {
        let spend = ModelSpend { usage: usage.clone(), cost_usd: Some(usd), ..ModelSpend::default() };
        let models = BTreeMap::from([("small".into(), spend)]);
        let outcome = Outcome { text: "in short".into(), usage, models, ..Outcome::new(Terminal::Completed) };
        self.tell(Event::Forked(ForkId(fork), Box::new(outcome)))
    }

    fn updates(&self) -> impl Iterator<Item = &Update> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Emit(update) => Some(update),
            _ => None,
        })
    }

    fn outcome(&self) -> &Outcome {
        let done = self.updates().find_map(|update| match update {
            Update::Done(outcome) => Some(outcome),
            _ => None,
        });
        done.expect("the run has ended")
    }

    fn sent(&self) -> &ModelRequest {
        let sent = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::CallModel(_, body) => Some(body),
            _ => None,
        });
        sent.expect("a request was sent")
    }

    fn forks(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Fork { .. })).count()
    }

    fn is_repaired(&self) -> bool {
        self.updates().any(|update| matches!(update, Update::Repaired(_)))
    }
}

fn card(id: &str) -> ModelCard {
    let price = Price { input: 1.0, output: 1.0, write_5m: 1.0, write_1h: 1.0, read: 1.0, tier: None };
    ModelCard { price: Some(price), ..ModelCard::unknown(id) }
}

/// A model, and a small one that says what calls did.
fn config() -> Config {
    let model = card("a");
    Config { model, small_model: Some(card("small")), has_tool_use_summaries: true, ..Config::default() }
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, ..Usage::default() }
}

fn task_list() -> Arc<[ToolSpec]> {
    let schema = RawValue::from_string("{}".into()).expect("JSON");
    let tool = ToolSpec {
        name: "TodoWrite".into(),
        description: "".into(),
        input_schema: schema.into(),
        result_chars_max: None,
        profile: windlass_protocol::ToolProfile::named("TodoWrite"),
    };
    [tool].into()
}

#[test]
fn a_fork_that_answers_twice_is_paid_once() {
    let mut run = Run::new(config(), Transcript::default());
    run.submit().calls(1, ToolOutput::text("x"));
    run.forked(1, tokens(7), 0.1).forked(1, tokens(7), 0.1).forked(9, tokens(7), 0.1);
    run.says(Block::text("done")).ends(StopReason::EndTurn);
    assert_eq!(run.outcome().usage.input_tokens, 7);
}

#[test]
fn a_run_that_was_dropped_waits_for_none_of_its_forks() {
    let mut config = Config { source: RunSource::Print, has_tool_use_summaries: false, ..config() };
    config.context.stage_percent = 0;
    config.context.span_tokens = 1;
    config.context.rounds_kept = 1;
    let message = |id, text: &str| match id % 2 {
        0 => Message::assistant(MessageId(id), "a".into(), vec![Block::text(text)]),
        _ => Message::user(MessageId(id), Origin::Prompt, vec![Block::text(text)]),
    };
    let talk = (1..=6).map(|id| Arc::new(message(id, "words"))).collect();
    let mut run = Run::new(config, talk);
    run.submit();
    assert_eq!(run.forks(), 1, "a span is being summarised");
    run.state = std::mem::take(&mut run.state).close_run();
    run.submit();
    assert_eq!(run.forks(), 2, "the next run does not wait for a fork that is gone");
}

#[test]
fn an_input_with_the_field_unparsed_reaches_its_tool() {
    for json in [r#"{"unparsed":"x"}"#, r#"{"unparsed":"x","more":1}"#] {
        let mut run = Run::new(config(), Transcript::default());
        let input = RawValue::from_string(json.into()).expect("JSON");
        run.submit().says(Block::tool_use("toolu_1", "Read", input)).ends(StopReason::ToolUse);
        let examined = run.effects.iter().find_map(|effect| match effect {
            Effect::Examine(_, tool_use, _) => Some(tool_use.input.get()),
            _ => None,
        });
        assert_eq!(examined, Some(json));
    }
}

#[test]
fn a_summariser_does_not_look_around() {
    let mut run = Run::new(
        Config { source: RunSource::Compact, tools: task_list(), ..config() },
        Transcript::default(),
    );
    let input = RawValue::from_string("{\"a\":1}".into()).expect("JSON");
    run.submit().says(Block::tool_use("toolu_1", "TodoWrite", input)).ends(StopReason::ToolUse);
    assert!(!run.effects.iter().any(|effect| matches!(effect, Effect::LookAround { .. })));
    assert_eq!(run.requests, 2);
}

#[test]
fn a_full_window_that_nothing_can_empty_is_named() {
    let mut config = config();
    config.context.compaction = CompactionPolicy::OnRequest;
    let mut run = Run::new(config, Transcript::default());
    run.submit().says(Block::text("so far")).ends(StopReason::ContextWindowExceeded);
    let outcome = run.outcome();
    assert_eq!(outcome.terminal, Terminal::PromptTooLong);
    assert!(outcome.errors.join("").contains("window is full"), "{:?}", outcome.errors);
}

#[test]
fn the_input_of_a_response_is_paid_for_when_the_log_fails() {
    let mut run = Run::new(config(), Transcript::default());
    run.submit()
        .starts(tokens(50))
        .tell(Event::StoreFailed { why: "disk full".into(), unstarted: Vec::new() });
    assert_eq!((run.outcome().terminal, run.outcome().usage.input_tokens), (Terminal::StoreFailed, 50));
}

#[test]
fn a_spent_budget_stops_retries_too() {
    let mut run = Run::new(Config { budget_usd: Some(0.001), ..config() }, Transcript::default());
    run.submit().starts(tokens(5_000)).fails(FailureClass::Server);
    assert_eq!((run.outcome().terminal, run.requests), (Terminal::MaxBudgetUsd, 1));
}

#[test]
fn a_budget_that_a_fork_spends_during_a_pause_stops_the_retry() {
    let mut run = Run::new(Config { budget_usd: Some(0.5), ..config() }, Transcript::default());
    run.submit().calls(1, ToolOutput::text("x")).fails(FailureClass::Server);
    run.forked(1, tokens(7), 0.6).tell(Event::Timer(TimerId(1)));
    assert_eq!((run.outcome().terminal, run.requests), (Terminal::MaxBudgetUsd, 2));
}

#[test]
fn a_budget_that_is_spent_during_a_look_around_keeps_the_results() {
    let mut run = Run::new(Config { budget_usd: Some(0.5), ..config() }, Transcript::default());
    let seen = FileSeen {
        path: "/project/a".into(),
        hash: 1,
        lines: [].into(),
        is_whole: true,
        shown: Vec::new(),
        stamp: None,
    };
    run.submit().calls(1, ToolOutput::text("x").with_seen(seen));
    run.tell(Event::Looked(LookId(1), Box::default()));
    run.calls(2, ToolOutput::text("y")).forked(1, tokens(7), 0.6);
    run.tell(Event::Looked(LookId(2), Box::default()));
    assert_eq!(run.outcome().terminal, Terminal::MaxBudgetUsd);
    assert!(run.state.messages().to_json().contains("\"tool_use_id\":\"toolu_2\""));
}

#[test]
fn thinking_that_is_bound_to_media_goes_with_them() {
    let thinking =
        ThinkingSupport { is_adaptive: true, is_on_by_default: true, ..ThinkingSupport::default() };
    let model = ModelCard { is_thinking_bound: true, thinking, ..card("a") };
    let mut run =
        Run::new(Config { model, has_tool_use_summaries: false, ..config() }, Transcript::default());
    let thought = |signature| {
        let json = format!("{{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"{signature}\"}}");
        Block::from_json(&json).expect("JSON")
    };
    run.submit()
        .says(thought("before"))
        .calls(1, ToolOutput::blocks(vec![Block::image("image/png", "AA==")]));
    run.says(thought("behind")).calls(2, ToolOutput::text("x"));
    run.fails(FailureClass::Media);
    let sent = run.sent().transcript.to_json();
    assert!(sent.contains("before") && !sent.contains("behind"), "{sent}");
}

#[test]
fn a_paused_answer_goes_back_as_it_is_when_its_continuation_is_asked_for_again() {
    let check = |breaks: fn(&mut Run) -> &mut Run| {
        let mut config = Config { fallbacks: [card("b")].into(), ..config() };
        config.retry.overloads_max = 1;
        let mut run = Run::new(config, Transcript::default());
        let search = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
        run.submit().says(Block::from_json(search).expect("JSON")).ends(StopReason::PauseTurn);
        breaks(&mut run);
        assert!(!run.is_repaired());
        assert_eq!((run.requests, run.sent().transcript.len()), (3, 2));
    };
    check(|run| run.fails(FailureClass::Overloaded));
    check(|run| run.says(Block::text("and")).ends(StopReason::MaxTokens));
}

#[test]
fn another_model_is_asked_for_the_rest_of_words_that_were_paused() {
    let mut config = Config { fallbacks: [card("b")].into(), ..config() };
    config.retry.overloads_max = 1;
    let mut run = Run::new(config, Transcript::default());
    run.submit().says(Block::text("so far")).ends(StopReason::PauseTurn);
    run.fails(FailureClass::Overloaded);
    assert!(!run.is_repaired());
    let sent = run.sent().transcript.to_json();
    assert!(sent.contains("so far") && sent.contains("Continue exactly where it stopped"), "{sent}");
}

#[test]
fn a_refused_transcript_is_compacted_once_until_the_next_results() {
    let mut config = Config { source: RunSource::Print, has_tool_use_summaries: false, ..config() };
    config.token_budget = Some(1_000_000);
    let mut run = Run::new(config, Transcript::default());
    let cured = |run: &mut Run, fork, look| {
        run.fails(FailureClass::Overflow).forked(fork, tokens(1), 0.0);
        run.tell(Event::Looked(LookId(look), Box::default()));
    };
    run.submit().says(Block::text(&"words ".repeat(9_000))).ends(StopReason::EndTurn);
    cured(&mut run, 1, 1);
    run.says(Block::text(&"words ".repeat(9_000))).ends(StopReason::EndTurn);
    run.fails(FailureClass::Overflow);
    assert_eq!(run.outcome().terminal, Terminal::PromptTooLong);
}
