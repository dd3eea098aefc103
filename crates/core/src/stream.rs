//! Stage 3: a response as it arrives.

use std::sync::Arc;

use windlass_protocol::{
    Block, Delta, Failure, FailureClass, Message, MessageId, ModelEvent, ModelRequest, RequestId, StopReason,
    Terminal, Update, Usage,
};

use crate::calls::CallQueue;
use crate::event::{Effect, Interrupt};
use crate::gate::{is_valid_id, valid_id};
use crate::retry::{self, Attempts, Decision};
use crate::settle::{After, Broken};
use crate::state::{Phase, PhaseName, Settling};
use crate::step::Cx;

/// A request that is out, and what came back so far.
#[derive(Clone, Debug)]
pub(crate) struct Streaming {
    pub(crate) request: RequestId,
    body: Arc<ModelRequest>,
    attempts: Attempts,
    sent_at_ms: u64,
    /// The model that answers; until it says so, the one that was asked.
    pub(crate) model: Arc<str>,
    /// Usage reported at the start, booked if the response never ends.
    usage: Option<Box<Usage>>,
    /// Complete blocks, as they were shown.
    pub(crate) blocks: Vec<(MessageId, Block)>,
    /// The text block that is not complete yet.
    open: Option<OpenText>,
    pub(crate) calls: CallQueue,
}

#[derive(Clone, Debug)]
struct OpenText {
    index: u32,
    text: String,
}

impl Streaming {
    pub(crate) fn new(request: RequestId, body: Arc<ModelRequest>, attempts: Attempts, at_ms: u64) -> Self {
        Self {
            request,
            model: body.model.clone(),
            body,
            attempts,
            sent_at_ms: at_ms,
            usage: None,
            blocks: Vec::new(),
            open: None,
            calls: CallQueue::default(),
        }
    }
}

impl Cx<'_> {
    pub(crate) fn on_model(&mut self, phase: Phase, request: RequestId, event: ModelEvent) -> Phase {
        let Phase::Streaming(mut streaming) = phase else {
            return phase;
        };
        if streaming.request != request {
            return Phase::Streaming(streaming);
        }
        match event {
            ModelEvent::Started { message_id, model, usage } => {
                self.state.ledger.reached = true;
                streaming.model = model.clone();
                streaming.usage = Some(usage.clone());
                self.emit(Update::Responding { request, message_id, model, usage });
                Phase::Streaming(streaming)
            }
            ModelEvent::Delta { index, delta } => {
                self.on_delta(&mut streaming, index, delta);
                Phase::Streaming(streaming)
            }
            ModelEvent::Block { index, block } => {
                self.on_block(&mut streaming, index, block);
                Phase::Streaming(streaming)
            }
            ModelEvent::Note(_) => Phase::Streaming(streaming),
            ModelEvent::Ended { stop, usage } => self.on_ended(*streaming, &stop, usage),
            ModelEvent::Failed(failure) => self.on_failed(*streaming, *failure),
        }
    }

    /// Text is kept as it comes, so that an interrupt does not lose what was on the screen.
    fn on_delta(&mut self, streaming: &mut Streaming, index: u32, delta: Delta) {
        if let Delta::Text(piece) = &delta {
            match &mut streaming.open {
                Some(open) if open.index == index => open.text.push_str(piece),
                open => {
                    *open = Some(OpenText { index, text: piece.clone() });
                }
            }
        }
        if self.config.partial_messages {
            self.emit(Update::Delta { index, delta });
        }
    }

    /// A complete block is shown; a complete tool use may start at once. Blank text says nothing and cannot be sent back.
    fn on_block(&mut self, streaming: &mut Streaming, index: u32, block: Block) {
        streaming.open = None;
        if streaming.calls.let_go() {
            streaming.calls.advance_early(self);
        }
        if block.is_blank() {
            if self.config.partial_messages {
                self.emit(Update::Delta { index, delta: Delta::Stop });
            }
            return;
        }
        let id = self.message_id();
        let block = self.with_unique_id(&streaming.calls, id, block);
        self.emit(Update::Block { id, index, block: block.clone(), aborted: false });
        if let Some(tool_use) = block.as_tool_use() {
            let call = self.state.ids.call();
            streaming.calls.admit(call, tool_use.clone());
            streaming.calls.advance_early(self);
        }
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

    fn on_ended(&mut self, mut streaming: Streaming, stop: &StopReason, usage: Box<Usage>) -> Phase {
        self.state.ledger.api_ms += self.at_ms.saturating_sub(streaming.sent_at_ms);
        self.state.ledger.book(&streaming.model, &usage, &self.config.model);
        self.state.ledger.stop = Some(stop.clone());
        self.emit(Update::Responded { request: streaming.request, stop_reason: stop.name().into(), usage });
        if *stop == StopReason::Refusal {
            return self.on_refused(streaming);
        }
        if *stop == StopReason::MaxTokens {
            streaming.calls.truncate_held();
        }
        let then = if streaming.calls.is_empty() {
            After::End(Terminal::Completed)
        } else {
            After::NextTurn { broken: None }
        };
        self.record_answer(&mut streaming);
        self.leave(streaming.calls, then, None)
    }

    /// A refused answer does not stand, unless something of it has acted: then the transcript must say so.
    fn on_refused(&mut self, mut streaming: Streaming) -> Phase {
        streaming.calls.cancel_all(self);
        if streaming.calls.has_acted() {
            self.record_answer(&mut streaming);
        } else {
            self.retract(&mut streaming);
        }
        self.leave(streaming.calls, After::End(Terminal::Refused), None)
    }

    /// Nothing that has acted is forgotten or done twice: once a call that changes something has started, the
    /// request is not sent again and what is complete stands as the response.
    fn on_failed(&mut self, mut streaming: Streaming, failure: Failure) -> Phase {
        self.close_account(&streaming);
        if streaming.calls.has_acted() {
            return self.on_broken(streaming, failure);
        }
        let reached = self.state.ledger.reached;
        match retry::decide(&failure, streaming.attempts, &self.config.retry, reached, self.entropy) {
            Decision::Again { delay_ms, retries_max } => {
                self.retry(streaming, failure, delay_ms, retries_max)
            }
            Decision::GiveUp => {
                let attempts = streaming.attempts;
                streaming.calls.cancel_all(self);
                self.record_answer(&mut streaming);
                let then = self.give_up(failure, attempts);
                self.leave(streaming.calls, then, None)
            }
        }
    }

    /// The response broke off after something of it had acted. It stands as far as it came, its calls are answered,
    /// and the next request goes out after the pause of a retry; too many in a row end the run.
    fn on_broken(&mut self, mut streaming: Streaming, failure: Failure) -> Phase {
        let attempts = self.state.carry.broken;
        self.record_answer(&mut streaming);
        let then = match retry::decide(&failure, attempts, &self.config.retry, true, self.entropy) {
            Decision::Again { delay_ms, retries_max } => {
                let attempts = attempts.and(failure.class);
                let (attempt, failure) = (attempts.retries, Box::new(failure));
                self.emit(Update::Retrying { attempt, retries_max, delay_ms, failure });
                let not_before_ms = self.at_ms.saturating_add(delay_ms);
                After::NextTurn { broken: Some(Broken { attempts, not_before_ms }) }
            }
            Decision::GiveUp => {
                streaming.calls.cancel_all(self);
                self.give_up(failure, attempts)
            }
        };
        self.leave(streaming.calls, then, None)
    }

    fn give_up(&mut self, failure: Failure, attempts: Attempts) -> After {
        let terminal = match failure.class {
            FailureClass::Malformed => Terminal::ModelError,
            _ => Terminal::ApiError,
        };
        self.state.ledger.failure = Some(retry::given_up(failure, attempts, &self.config.retry));
        After::End(terminal)
    }

    fn retry(
        &mut self,
        mut streaming: Streaming,
        failure: Failure,
        delay_ms: u64,
        retries_max: u32,
    ) -> Phase {
        let attempts = streaming.attempts.and(failure.class);
        streaming.calls.cancel_all(self);
        self.retract(&mut streaming);
        self.emit(Update::Retrying {
            attempt: attempts.retries,
            retries_max,
            delay_ms,
            failure: Box::new(failure),
        });
        let then = After::Retry {
            body: streaming.body,
            attempts,
            not_before_ms: self.at_ms.saturating_add(delay_ms),
        };
        self.leave(streaming.calls, then, None)
    }

    /// Stops reading at once; what was said stays said, what was started is stopped.
    pub(crate) fn interrupt_streaming(&mut self, mut streaming: Streaming, kind: Interrupt) -> Phase {
        self.effects.push(Effect::CancelModel(streaming.request));
        self.close_account(&streaming);
        if let Some(open) = streaming.open.take().filter(|open| !open.text.trim().is_empty()) {
            let (id, block) = (self.message_id(), Block::text(&open.text));
            self.emit(Update::Block { id, index: open.index, block: block.clone(), aborted: true });
            streaming.blocks.push((id, block));
        }
        streaming.calls.cancel_for(kind, self);
        self.record_answer(&mut streaming);
        self.leave(streaming.calls, After::End(Terminal::AbortedStreaming), Some(kind))
    }

    /// The only road out of streaming.
    fn leave(&mut self, mut calls: CallQueue, then: After, interrupt: Option<Interrupt>) -> Phase {
        self.enter(PhaseName::Settling);
        calls.let_go();
        calls.advance(self);
        let deadline = calls.start_deadline(self);
        self.settle(Box::new(Settling { calls, then, interrupt, deadline }))
    }

    /// Books what is known of a response that never ended: its input was paid for.
    fn close_account(&mut self, streaming: &Streaming) {
        self.state.ledger.api_ms += self.at_ms.saturating_sub(streaming.sent_at_ms);
        if let Some(usage) = &streaming.usage {
            self.state.ledger.book(&streaming.model, usage, &self.config.model);
        }
    }

    /// The complete blocks become the assistant's message.
    fn record_answer(&mut self, streaming: &mut Streaming) {
        let blocks = std::mem::take(&mut streaming.blocks);
        let texts = blocks.iter().filter_map(|(_, block)| block.as_text());
        self.state.ledger.text = texts.collect::<Vec<_>>().join("\n");
        if let Some(message) = answer(streaming.model.clone(), blocks) {
            self.state.carry.messages.push(Arc::new(message));
        }
    }

    /// Takes back what was shown of a response that does not stand, results included.
    fn retract(&mut self, streaming: &mut Streaming) {
        let mut messages: Vec<MessageId> = streaming.blocks.drain(..).map(|(id, _)| id).collect();
        messages.extend(streaming.calls.discard());
        let calls = streaming.calls.ids();
        if !messages.is_empty() {
            self.emit(Update::Retracted { messages, calls });
        }
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
