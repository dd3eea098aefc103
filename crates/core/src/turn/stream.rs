//! Stage 3: a response as it arrives.

use std::sync::Arc;

use windlass_protocol::{
    AnswerBlock, Block, Delta, Failure, FailureClass, Interrupt, Message, MessageId, ModelEvent, ModelNote,
    ModelRequest, Origin, Record, RequestId, Role, StopReason, Terminal, Update, Usage,
};

use crate::context::prefix::SentPrefix;
use crate::effect::Effect;
use crate::state::{EarlyExit, Phase, PhaseName, Settlement};
use crate::step::Cx;
use crate::turn::calls::CallQueue;
use crate::turn::decide::{REST, RESUME};
use crate::turn::gate::{is_valid_id, valid_id};
use crate::turn::hooks::RoundHooks;
use crate::turn::ladder::{ResponseEnd, ResponseFault};
use crate::turn::retry::{self, Attempts, FailureContext, RetryVerdict};
use crate::turn::settle::AfterCalls;

/// A request that is out, and what came back so far.
#[derive(Clone, Debug)]
pub(crate) struct OpenResponse {
    pub(crate) request: RequestId,
    pub(crate) body: Arc<ModelRequest>,
    pub(crate) attempts: Attempts,
    sent_at_ms: u64,
    /// The request before this one.
    before: Option<SentPrefix>,
    message_id: Arc<str>,
    /// The model that answers; until it says so, the one that was asked.
    pub(crate) model: Arc<str>,
    /// Usage reported at the start, booked if the response never ends.
    pub(crate) usage: Option<Box<Usage>>,
    /// Whether anything of the answer has come.
    pub(crate) has_begun: bool,
    /// Complete blocks, as they were shown.
    pub(crate) blocks: Vec<(MessageId, Block)>,
    /// The text block that is not complete yet: its position and its text.
    open: Option<(u32, String)>,
    pub(crate) calls: CallQueue,
}

impl OpenResponse {
    pub(crate) fn new(
        request: RequestId,
        body: Arc<ModelRequest>,
        attempts: Attempts,
        before: Option<SentPrefix>,
        at_ms: u64,
    ) -> Self {
        Self {
            request,
            message_id: "".into(),
            model: body.model.clone(),
            body,
            attempts,
            sent_at_ms: at_ms,
            before,
            usage: None,
            has_begun: false,
            blocks: Vec::new(),
            open: None,
            calls: CallQueue::default(),
        }
    }
}

impl Cx<'_> {
    pub(crate) fn on_model(&mut self, phase: Phase, request: RequestId, event: ModelEvent) -> Phase {
        let mut streaming = match phase {
            Phase::Streaming(streaming) if streaming.request == request => streaming,
            late => return late,
        };
        match event {
            ModelEvent::Started { message_id, model, usage } => {
                self.state.ledger.has_been_reached = true;
                streaming.message_id = message_id.clone();
                streaming.model = model.clone();
                streaming.usage = Some(usage.clone());
                self.emit(Update::Responding { request, message_id, model, usage });
            }
            ModelEvent::Delta { index, delta } => self.on_delta(&mut streaming, index, delta),
            ModelEvent::Block { index, block } => self.on_block(&mut streaming, index, block),
            ModelEvent::Note(note) => self.on_note(note),
            ModelEvent::Ended { stop, usage } => return self.on_ended(*streaming, &stop, usage),
            ModelEvent::Failed(failure) => return self.on_failed(*streaming, *failure),
        }
        Phase::Streaming(streaming)
    }

    fn on_note(&mut self, note: ModelNote) {
        match note {
            ModelNote::Cleared { tool_results, thinking_turns, tokens } => {
                self.emit(Update::ClearedByProvider { tool_results, thinking_turns, tokens });
            }
            ModelNote::ThinkingDropped { blocks, reason } => {
                self.emit(Update::Notice(format!(
                    "The provider dropped {blocks} thinking blocks: {reason}."
                )));
            }
            ModelNote::Refusal { category, explanation } => {
                self.state.ledger.refusal = explanation.or(category).map(|why| why.to_string());
            }
        }
    }

    /// Text is kept as it comes, so that an interrupt does not lose what was on the screen.
    fn on_delta(&mut self, streaming: &mut OpenResponse, index: u32, delta: Delta) {
        streaming.has_begun = true;
        if let Delta::Text(piece) = &delta {
            match &mut streaming.open {
                Some((open, text)) if *open == index => text.push_str(piece),
                open => *open = Some((index, piece.clone())),
            }
        }
        if self.config.has_partial_messages {
            self.emit(Update::Delta { index, delta });
        }
    }

    /// A complete block is shown; a complete tool use may start at once. Blank text says nothing and cannot be sent back.
    fn on_block(&mut self, streaming: &mut OpenResponse, index: u32, block: Block) {
        (streaming.has_begun, streaming.open) = (true, None);
        if streaming.calls.release_held() {
            streaming.calls.advance_early(self);
        }
        if block.is_blank() {
            if self.config.has_partial_messages {
                self.emit(Update::Delta { index, delta: Delta::Stop });
            }
            return;
        }
        let id = self.message_id();
        let block = self.with_unique_id(&streaming.calls, id, block);
        let tool_use = block.as_tool_use().cloned();
        self.show_block(streaming, (id, block), index, /* aborted */ false);
        if let Some(tool_use) = tool_use {
            let call = self.state.ids.call();
            streaming.calls.admit(call, id, tool_use);
            streaming.calls.advance_early(self);
        }
    }

    /// A block is logged, then shown.
    fn show_block(
        &mut self,
        streaming: &mut OpenResponse,
        (id, block): (MessageId, Block),
        index: u32,
        is_aborted: bool,
    ) {
        self.persist(Record::Answered(AnswerBlock {
            id,
            request: streaming.request,
            message_id: streaming.message_id.clone(),
            model: streaming.body.model.clone(),
            answered_by: streaming.model.clone(),
            index,
            block: block.clone(),
            usage: streaming.usage.clone(),
            is_aborted,
        }));
        self.emit(Update::Block { id, index, block: block.clone(), is_aborted });
        streaming.blocks.push((id, block));
    }

    /// A model that uses an id twice, or one the API refuses, would make the conversation impossible to send.
    fn with_unique_id(&self, calls: &CallQueue, message: MessageId, block: Block) -> Block {
        let Some(tool_use) = block.as_tool_use() else { return block };
        let used = |id: &str| calls.has_tool_use(id) || self.state.carry.checked.has_tool_use(id);
        if is_valid_id(&tool_use.id) && !used(&tool_use.id) {
            return block;
        }
        block.with_tool_use_id(&format!("{}_{}", valid_id(&tool_use.id), message.0))
    }

    fn on_ended(&mut self, mut streaming: OpenResponse, stop: &StopReason, usage: Box<Usage>) -> Phase {
        self.state.ledger.outcome.duration_api_ms += self.at_ms.saturating_sub(streaming.sent_at_ms);
        self.book(&streaming.model, &usage);
        self.state.ledger.stop = Some(stop.clone());
        self.state.carry.budget.spent = self.state.carry.budget.spent.saturating_add(usage.output_tokens);
        self.state.carry.withheld = None;
        self.watch_prefix(&streaming, &usage);
        let reported = usage.input_total().saturating_add(usage.output_tokens);
        self.emit(Update::Responded { request: streaming.request, stop_reason: stop.name().into(), usage });
        if *stop == StopReason::MaxTokens {
            streaming.calls.truncate_held();
        }
        let answer = answer_of(stop, &streaming);
        self.decide_answer(streaming, answer, Some(reported))
    }

    fn watch_prefix(&mut self, streaming: &OpenResponse, usage: &Usage) {
        let Some(sent) = &mut self.state.carry.sent else { return };
        sent.note_cache(usage);
        let missed = streaming.before.as_ref().and_then(|before| before.find_miss(sent, usage));
        if let Some(missed) = missed {
            self.emit(missed);
        }
    }

    fn on_failed(&mut self, streaming: OpenResponse, failure: Failure) -> Phase {
        self.close_account(&streaming);
        let fault = fault_of(&failure);
        self.state.carry.withheld = Some(Box::new(failure));
        self.decide_answer(streaming, ResponseEnd::Failed(fault), None)
    }

    /// What the retry policy says about the failure that is withheld. A response that broke off after something of it had
    /// acted counts with those just before it that did so too.
    pub(crate) fn retry_verdict(&self, streaming: &OpenResponse) -> RetryVerdict {
        let Some(failure) = self.state.carry.withheld.as_deref() else { return RetryVerdict::NONE };
        let acted = streaming.calls.has_acted();
        let trouble = FailureContext {
            failure,
            attempts: if acted { self.state.carry.broken } else { streaming.attempts },
            is_half_way: streaming.has_begun,
            has_been_reached: acted || self.state.ledger.has_been_reached,
            wall_s: self.wall_ms / 1_000,
            entropy: self.entropy,
        };
        retry::decide(&trouble, &self.config.retry)
    }

    /// What was said stays said, what was started is stopped: by an interrupt, or because a hook ends the run before a call of the
    /// response, which need not be complete for that.
    pub(crate) fn stop_streaming(
        &mut self,
        mut streaming: OpenResponse,
        interrupt: Option<Interrupt>,
    ) -> Phase {
        self.stop_reading(&mut streaming);
        let terminal = if let Some(kind) = interrupt {
            streaming.calls.cancel(kind, self);
            Terminal::AbortedStreaming
        } else {
            streaming.calls.stop_for_hook(self);
            Terminal::HookStopped
        };
        self.record_answer(&mut streaming);
        let left = EarlyExit { interrupt, request: Some(streaming.request) };
        self.leave(streaming.calls, AfterCalls::End(terminal), left)
    }

    /// Text that was on its way is shown as far as it came.
    fn stop_reading(&mut self, streaming: &mut OpenResponse) {
        self.effects.push(Effect::CancelModel(streaming.request));
        self.close_account(streaming);
        if let Some((index, text)) = streaming.open.take().filter(|(_, text)| !text.trim().is_empty()) {
            let shown = (self.message_id(), Block::text(&text));
            self.show_block(streaming, shown, index, /* aborted */ true);
        }
    }

    /// The only road out of streaming.
    pub(crate) fn leave(&mut self, mut calls: CallQueue, then: AfterCalls, left: EarlyExit) -> Phase {
        self.enter(PhaseName::Settling);
        calls.release_held();
        calls.advance(self);
        let deadline = calls.start_deadline(self);
        self.settle(Box::new(Settlement {
            calls,
            then,
            left,
            deadline,
            hooked: RoundHooks::default(),
            looking: None,
        }))
    }

    /// Books what is known of a response that never ended: its input was paid for.
    pub(crate) fn close_account(&mut self, streaming: &OpenResponse) {
        self.state.ledger.outcome.duration_api_ms += self.at_ms.saturating_sub(streaming.sent_at_ms);
        if let Some(usage) = &streaming.usage {
            self.book(&streaming.model, usage);
        }
    }

    /// Books a response under the name of the model that gave it, at the price of the one that was asked.
    fn book(&mut self, model: &Arc<str>, usage: &Usage) {
        let card = self.config.model_after(self.state.carry.guards.fallbacks);
        let spent = self.state.ledger.book(model, usage, card);
        self.persist(Record::Spent(spent));
    }

    /// The complete blocks become the assistant's message.
    pub(crate) fn record_answer(&mut self, streaming: &mut OpenResponse) {
        self.state.ledger.outcome.text = self.said_text(streaming);
        let blocks = std::mem::take(&mut streaming.blocks);
        if let Some(message) = answer(streaming.body.model.clone(), blocks) {
            self.state.carry.messages.push(Arc::new(message));
        }
    }

    /// The text of the answer. One that goes on where the last was cut has that in front of it.
    pub(crate) fn said_text(&self, streaming: &OpenResponse) -> String {
        let texts: Vec<&str> = streaming.blocks.iter().filter_map(|(_, block)| block.as_text()).collect();
        let own = texts.join("\n");
        let goes_on = self.state.carry.messages.last().is_some_and(|last| asks_for_the_rest(last));
        if goes_on { format!("{}{own}", self.state.ledger.outcome.text) } else { own }
    }

    /// Takes back what was shown of a response that does not stand, results included.
    pub(crate) fn retract(&mut self, streaming: &mut OpenResponse) {
        let mut messages: Vec<MessageId> = streaming.blocks.drain(..).map(|(id, _)| id).collect();
        messages.extend(streaming.calls.discard(self));
        let calls = streaming.calls.ids();
        if !messages.is_empty() {
            self.persist(Record::Retracted(messages.clone()));
            self.emit(Update::Retracted { messages, calls });
        }
    }
}

/// Whether the next answer goes on where the last stopped: it was paused and is the last word, or the model was asked to.
fn asks_for_the_rest(last: &Message) -> bool {
    let asks = |block: &Block| block.as_text().is_some_and(|text| [RESUME, REST].contains(&text));
    last.role == Role::Assistant || (last.origin == Origin::Continuation && last.blocks.iter().any(asks))
}

/// How a response that ended came out.
fn answer_of(stop: &StopReason, streaming: &OpenResponse) -> ResponseEnd {
    match stop {
        StopReason::Refusal => ResponseEnd::Refused,
        StopReason::MaxTokens => ResponseEnd::Cut,
        StopReason::ContextWindowExceeded => ResponseEnd::WindowFull,
        StopReason::PauseTurn => ResponseEnd::Paused,
        _ if !streaming.calls.is_empty() => ResponseEnd::Called,
        _ if streaming.blocks.iter().all(|(_, block)| block.is_thinking()) => ResponseEnd::Empty,
        _ => ResponseEnd::Said,
    }
}

fn fault_of(failure: &Failure) -> ResponseFault {
    match failure.class {
        FailureClass::Overflow => ResponseFault::TooLong,
        FailureClass::Media => ResponseFault::Media,
        FailureClass::BadRequest if failure.culprit.is_some() => ResponseFault::Block,
        FailureClass::Binding => ResponseFault::Bound,
        FailureClass::Cut | FailureClass::Stalled => ResponseFault::Stream { is_broken: false },
        FailureClass::Malformed => ResponseFault::Stream { is_broken: true },
        _ => ResponseFault::Api,
    }
}

/// The complete blocks of a response as a message. Thinking that nothing follows cannot be sent back.
pub(crate) fn answer(model: Arc<str>, mut blocks: Vec<(MessageId, Block)>) -> Option<Message> {
    while blocks.last().is_some_and(|(_, block)| block.is_thinking()) {
        blocks.pop();
    }
    let id = blocks.last()?.0;
    Some(Message::assistant(id, model, blocks.into_iter().map(|(_, block)| block).collect()))
}
