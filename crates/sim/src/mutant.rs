//! Lies about what the core did, each of which a checker must notice. A checker that never objects proves nothing.

use std::sync::Arc;

use windlass_core::{Effect, Event};
use windlass_protocol::{
    Block, Decision, Durability, FailureClass, HookCall, HookId, HookScene, Message, ModelEvent,
    ModelRequest, Origin, Record, Role, Update,
};

/// One lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A change of the transcript is not recorded.
    HidesDecisions,
    /// A compaction is recorded twice.
    CompactsTwice,
    /// A tool is started twice.
    RunsTwice,
    /// A result is never shown.
    LosesResults,
    /// The end comes twice.
    EndsTwice,
    /// A prompt is suggested twice.
    SuggestsTwice,
    /// One token is not reported.
    LosesToken,
    /// The prompts of the run are not reported.
    LosesPrompts,
    /// A fork is left running.
    KeepsForks,
    /// Hooks are left running.
    KeepsHooks,
    /// Hooks are not asked before a call.
    SkipsHooks,
    /// A failure that may be cured is shown.
    ShowsWithheld,
    /// Stop hooks are asked after a failure.
    AsksAfterFailure,
    /// The first message of a request says something else than it did.
    ChangesPrefix,
    /// A request says something that the log does not have.
    SaysMore,
    /// A result is missing in a request.
    BreaksPairs,
    /// What an answer of another model thought is sent along.
    KeepsForeignThinking,
    /// A conversation is changed while the model answers.
    ChangesMidAnswer,
    /// A call that has acted is taken back.
    TakesBackActs,
    /// Results are shown in another order than the calls.
    AnswersOutOfOrder,
    /// Responses take far more than is booked.
    SpendsMore,
    /// The way round after a refusal as too long is taken twice.
    CompactsReactivelyTwice,
    /// What the model said is shown before the log knows it.
    ShowsBeforeLogging,
    /// A call is started that the log does not know of.
    ForgetsIntentions,
    /// What does more than read is not synced.
    SyncsNothing,
    /// The log is not told that a call came to its end.
    ForgetsEndsOfCalls,
    /// The log is not told of a prompt that waits.
    LosesQueuedPrompts,
    /// The log is not told that an answer was taken back.
    ForgetsRetractions,
    /// A call whose outcome is unknown is made again and nobody is asked.
    MakesDoubtfulCallsAgain,
}

impl Mutant {
    /// Every lie, and words of the objection.
    pub const ALL: [(Self, &'static str); 29] = [
        (Self::HidesDecisions, "differ at message"),
        (Self::CompactsTwice, "two compactions"),
        (Self::RunsTwice, "started twice"),
        (Self::LosesResults, ""),
        (Self::EndsTwice, "after the end"),
        (Self::SuggestsTwice, "after the end"),
        (Self::LosesToken, "tokens"),
        (Self::LosesPrompts, "prompts"),
        (Self::KeepsForks, "left running"),
        (Self::KeepsHooks, "left running"),
        (Self::SkipsHooks, "before its hooks answered"),
        (Self::ShowsWithheld, "while a cure is tried"),
        (Self::AsksAfterFailure, "after a failure"),
        (Self::ChangesPrefix, "differ at message"),
        (Self::SaysMore, "differ at message"),
        (Self::BreaksPairs, "answered"),
        (Self::KeepsForeignThinking, "is sent to"),
        (Self::ChangesMidAnswer, "while the model answers"),
        (Self::TakesBackActs, "is taken back"),
        (Self::AnswersOutOfOrder, "out of order"),
        (Self::SpendsMore, "goes out after"),
        (Self::CompactsReactivelyTwice, "was taken 2 times"),
        (Self::ShowsBeforeLogging, "shown before the log knows"),
        (Self::ForgetsIntentions, "is started before the log knows"),
        (Self::SyncsNothing, "is not synced"),
        (Self::ForgetsEndsOfCalls, "is Finished after a crash, and called Unknown"),
        (Self::LosesQueuedPrompts, "differ in waiting prompts"),
        (Self::ForgetsRetractions, "the log recalls another request"),
        (Self::MakesDoubtfulCallsAgain, "without an answer"),
    ];

    /// The words of a failure that may be cured, if the event is one.
    pub(crate) fn text_of(event: &Event) -> Option<String> {
        match event {
            Event::Model(_, ModelEvent::Failed(failure)) => {
                (failure.class == FailureClass::Overflow).then(|| failure.message.clone())
            }
            _ => None,
        }
    }

    /// What the checkers are told instead of `effects`.
    pub(crate) fn tell(self, effects: &[Effect], failed: Option<String>) -> Vec<Effect> {
        let mut told: Vec<Effect> = effects.iter().flat_map(|effect| self.lie(effect)).collect();
        if self == Self::AnswersOutOfOrder {
            told.sort_by_key(|effect| match effect {
                Effect::Emit(Update::ToolResult { call, .. }) => std::cmp::Reverse(call.0),
                Effect::Persist(Record::Result(result), _) => std::cmp::Reverse(result.call.0),
                _ => std::cmp::Reverse(0),
            });
        }
        if self == Self::ShowsBeforeLogging {
            told.sort_by_key(|effect| !matches!(effect, Effect::Emit(Update::Block { .. })));
        }
        if self == Self::MakesDoubtfulCallsAgain {
            told.retain(|effect| !matches!(effect, Effect::Emit(Update::Question(_))));
        }
        if let Some(text) = failed {
            match self {
                Self::ShowsWithheld => told.insert(0, Effect::Emit(Update::Notice(text))),
                Self::AsksAfterFailure => {
                    let call = HookCall::Stop { is_active: false, text: "".into() };
                    let scene = HookScene::default();
                    told.insert(0, Effect::RunHooks(HookId(u32::MAX), call, scene));
                }
                _ => (),
            }
        }
        told
    }

    fn lie(self, effect: &Effect) -> Vec<Effect> {
        let same = effect.clone();
        match (self, effect) {
            (Self::HidesDecisions, Effect::Emit(Update::Decided(decision)))
                if !matches!(decision, Decision::Staged(_)) =>
            {
                Vec::new()
            }
            (Self::CompactsTwice, Effect::Emit(Update::Decided(Decision::Compacted(_))))
            | (Self::RunsTwice, Effect::RunTool { .. })
            | (Self::EndsTwice, Effect::Emit(Update::Done(_)))
            | (Self::SuggestsTwice, Effect::Emit(Update::PromptSuggestion { .. })) => {
                vec![same.clone(), same]
            }
            (Self::CompactsReactivelyTwice, Effect::Emit(Update::Continued(transition)))
                if *transition == windlass_protocol::Transition::ReactiveCompactRetry =>
            {
                vec![same.clone(), same]
            }
            (Self::LosesResults, Effect::Emit(Update::ToolResult { .. }))
            | (Self::KeepsForks, Effect::CancelFork(_))
            | (Self::KeepsHooks, Effect::CancelHooks(_))
            | (Self::SkipsHooks, Effect::RunHooks(_, HookCall::PreToolUse(_), _)) => Vec::new(),
            (Self::ChangesMidAnswer, Effect::Emit(Update::Block { .. })) => {
                let decision = Decision::ThinkingStripped(Vec::new());
                let (record, durability) = (Record::Decided(decision.clone()), Durability::Written);
                vec![same, Effect::Persist(record, durability), Effect::Emit(Update::Decided(decision))]
            }
            (Self::TakesBackActs, Effect::RunTool { call, .. }) => {
                let calls = vec![*call];
                vec![same, Effect::Emit(Update::Retracted { messages: Vec::new(), calls })]
            }
            (Self::SpendsMore, Effect::Emit(Update::Responded { request, stop_reason, usage })) => {
                let (request, stop_reason, mut usage) = (*request, stop_reason.clone(), usage.clone());
                usage.output_tokens += 1_000_000;
                vec![Effect::Emit(Update::Responded { request, stop_reason, usage })]
            }
            (Self::LosesToken | Self::LosesPrompts, Effect::Emit(Update::Done(outcome))) => {
                let mut outcome = outcome.clone();
                if self == Self::LosesToken {
                    outcome.usage.output_tokens = outcome.usage.output_tokens.wrapping_sub(1);
                } else {
                    outcome.prompts.clear();
                }
                vec![Effect::Emit(Update::Done(outcome))]
            }
            (_, Effect::Persist(record, _)) => self.log_otherwise(record, same),
            (_, Effect::CallModel(request, body)) => {
                let body = self.rewrite(body).map_or_else(|| body.clone(), Arc::new);
                vec![Effect::CallModel(*request, body)]
            }
            _ => vec![same],
        }
    }

    /// What the log is told instead.
    fn log_otherwise(self, record: &Record, same: Effect) -> Vec<Effect> {
        match (self, record) {
            (Self::ForgetsIntentions, Record::Intended(_))
            | (Self::ForgetsEndsOfCalls, Record::Finished(_))
            | (Self::LosesQueuedPrompts, Record::Queued(_))
            | (Self::ForgetsRetractions, Record::Retracted(_)) => Vec::new(),
            (Self::SyncsNothing, record) => {
                vec![Effect::Persist(record.clone(), Durability::Written)]
            }
            _ => vec![same],
        }
    }

    /// Another request than the one that went out.
    fn rewrite(self, body: &ModelRequest) -> Option<ModelRequest> {
        let mut messages: Vec<Arc<Message>> = body.transcript.iter().cloned().collect();
        match self {
            Self::ChangesPrefix => {
                let first = messages.first_mut()?;
                *first = Arc::new(first.with_blocks(vec![Block::text("something else")]));
            }
            Self::SaysMore => {
                let last = messages.last_mut()?;
                let mut blocks = last.blocks.clone();
                blocks.push(Block::text("and more"));
                *last = Arc::new(last.with_blocks(blocks));
            }
            Self::BreaksPairs => {
                let place = messages.iter().position(|message| message.origin == Origin::Results)?;
                messages.remove(place);
            }
            Self::KeepsForeignThinking => {
                let thinks = |message: &&mut Arc<Message>| {
                    message.role == Role::Assistant && message.blocks.iter().any(Block::is_thinking)
                };
                let answer = messages.iter_mut().find(thinks)?;
                *answer = Arc::new(Message::assistant(answer.id, "another".into(), answer.blocks.clone()));
            }
            _ => return None,
        }
        Some(ModelRequest { transcript: messages.into_iter().collect(), ..body.clone() })
    }
}
