//! Stages 1 and 2: from the conversation to the next request.

use std::sync::Arc;

use windlass_protocol::{Block, Message, ModelRequest, Origin, Update};

use crate::event::{Effect, Prompt};
use crate::gate;
use crate::retry::Attempts;
use crate::state::{Carry, Phase, PhaseName};
use crate::step::Cx;
use crate::stream::Streaming;

/// A step of preparation: it may replace what the next request will say.
type Layer = fn(&mut Cx<'_>);

/// What happens to the conversation before each request, in order. The gate is last: it sees what is sent.
const LAYERS: [Layer; 1] = [last_gate];

impl Cx<'_> {
    /// The run begins. What was typed during the last one and never sent goes first.
    pub(crate) fn on_submit(&mut self, phase: Phase, prompt: Prompt) -> Phase {
        let Phase::Idle = phase else { return self.on_steer(phase, prompt) };
        self.state.ledger = self.state.ledger.next_run(self.at_ms);
        let carry = std::mem::take(&mut self.state.carry);
        let blocks = join(carry.waiting.into_iter().chain([prompt]));
        let id = self.message_id();
        let mut messages = carry.messages;
        messages.push(Arc::new(Message::user(id, Origin::Prompt, blocks)));
        self.state.carry = Carry {
            messages,
            tools: carry.tools,
            turn_count: 1,
            transition: None,
            waiting: std::collections::VecDeque::new(),
            cached_to: carry.cached_to,
            broken: Attempts::default(),
            checked: carry.checked,
        };
        self.prepare(self.at_ms)
    }

    /// Makes the next request and sends it, but not before this time.
    pub(crate) fn prepare(&mut self, not_before_ms: u64) -> Phase {
        self.enter(PhaseName::Preparing);
        let mut phase = Phase::Preparing { layer: 0 };
        while let Phase::Preparing { layer } = phase {
            phase = match LAYERS.get(layer) {
                Some(apply) => {
                    apply(self);
                    Phase::Preparing { layer: layer + 1 }
                }
                None => self.send_next(not_before_ms),
            };
        }
        phase
    }

    fn send_next(&mut self, not_before_ms: u64) -> Phase {
        let body = Arc::new(self.request());
        if not_before_ms > self.at_ms {
            return self.wait(body, Attempts::default(), not_before_ms);
        }
        self.send(body, Attempts::default())
    }

    /// Sends a request, the first time or again.
    pub(crate) fn send(&mut self, body: Arc<ModelRequest>, attempts: Attempts) -> Phase {
        self.enter(PhaseName::Streaming);
        self.state.carry.cached_to = body.transcript.len().checked_sub(1);
        let request = self.state.ids.request();
        let model = body.model.clone();
        self.emit(Update::Requesting { request, model, attempt: attempts.retries + 1 });
        self.effects.push(Effect::CallModel { request, body: body.clone() });
        Phase::Streaming(Box::new(Streaming::new(request, body, attempts, self.at_ms)))
    }

    fn request(&self) -> ModelRequest {
        let config = self.config;
        let transcript = self.state.carry.messages.clone();
        let last = transcript.len().checked_sub(1);
        let mut breakpoints: Vec<usize> = self.state.carry.cached_to.into_iter().chain(last).collect();
        breakpoints.dedup();
        ModelRequest {
            model: config.model.id.clone(),
            system: config.system.clone(),
            tools: config.tools.clone(),
            transcript,
            breakpoints,
            output_tokens_max: config.output.explicit.unwrap_or(32_000).min(config.model.output_tokens_max),
            ..ModelRequest::default()
        }
    }
}

/// Mends what a resumed or hand-edited conversation brought, and says so.
fn last_gate(cx: &mut Cx<'_>) {
    let carry = &mut cx.state.carry;
    if carry.checked.advance(&carry.messages) {
        return;
    }
    let (messages, repairs) = gate::repair(&carry.messages);
    carry.checked = gate::Watermark::default();
    carry.checked.advance(&messages);
    carry.messages = messages;
    // The cached prefix may have changed, so the old end of it means nothing.
    carry.cached_to = None;
    cx.emit(Update::Repaired(repairs));
}

/// The blocks of several prompts in order, without blank text. A prompt of nothing still says something.
pub(crate) fn join(prompts: impl Iterator<Item = Prompt>) -> Vec<Block> {
    let blocks: Vec<Block> =
        prompts.flat_map(|prompt| prompt.blocks).filter(|block| !block.is_blank()).collect();
    if blocks.is_empty() { vec![Block::text("(The message is empty.)")] } else { blocks }
}
