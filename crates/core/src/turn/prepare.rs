//! Stage 1: from the conversation to what the next request says.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{
    AmbientChanges, Block, ForkId, HookAnswer, HookId, LookId, Message, ModelRequest, Origin, Outcome,
    Priority, Prompt, Record, RequestEntry, Role, StartSource, StoreId, Terminal, Update, UserEntry,
};

use crate::context;
use crate::context::prefix::SentPrefix;
use crate::effect::Effect;
use crate::state::{Carry, Phase, PhaseName};
use crate::step::Cx;
use crate::turn::budget::{self, TokenBudget};
use crate::turn::gate;
use crate::turn::guards::Guards;
use crate::turn::request::is_thinking_on;
use crate::turn::retry::Attempts;
use crate::turn::run_start::{RunStart, StartCause, opening};
use crate::turn::stream::OpenResponse;

/// What happens before each request, in order. The first opens a run and else passes; the gate is last: it sees what is sent.
const LAYERS: [Layer; 9] = [
    opening,
    context::after_boundary,
    context::tool_result_budget,
    context::snip,
    context::micro_compact,
    context::context_collapse,
    context::auto_compact,
    context::blocking_limit,
    last_gate,
];

/// May replace what the next request says. A layer that asked a question is called again with the reply.
pub(crate) type Layer = fn(&mut Cx<'_>, &mut Preparation, Option<LayerReply>) -> LayerStep;

/// What a layer came to.
#[derive(Debug)]
pub(crate) enum LayerStep {
    /// The next layer's turn.
    Passed,
    /// It waits for the answer to this question.
    Asked(LayerQuestion),
    /// There is no next request.
    End(Terminal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerQuestion {
    Fork(ForkId),
    Hooks(HookId),
    Store(StoreId),
    Look(LookId),
}

/// The answer to a layer's question.
#[derive(Debug)]
pub(crate) enum LayerReply {
    Forked(Box<Outcome>),
    Hooked(Box<HookAnswer>),
    Stored(Vec<Option<PathBuf>>),
    Looked(Box<AmbientChanges>),
}

/// A request in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preparation {
    /// The layer whose turn it is.
    pub(crate) layer: usize,
    /// What it waits for.
    pub(crate) asked: Option<LayerQuestion>,
    /// No request goes out before this time.
    pub(crate) not_before_ms: u64,
    /// The run is beginning.
    pub(crate) opening: Option<Box<RunStart>>,
    /// The compaction that was asked for, whatever the thresholds say.
    pub(crate) forced: Option<ForcedCompaction>,
    /// The results that are being put into files.
    pub(crate) storing: Vec<context::LargeResult>,
    /// The compaction in the making.
    pub(crate) compacting: Option<Box<context::CompactionProgress>>,
}

/// A compaction that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForcedCompaction {
    /// The user, with what the summary is to keep; nothing is sent afterwards.
    Manual { focus: String },
    /// The provider refused the last request as too long.
    Reactive,
}

impl Preparation {
    /// Whether it is for an answer that was begun: not at the start of a run, and not for a compaction that the user asked for.
    pub(crate) fn answers(&self) -> bool {
        self.opening.is_none() && !self.only_compacts()
    }

    /// Whether the user asked for a compaction and nothing else.
    pub(crate) fn only_compacts(&self) -> bool {
        matches!(self.forced, Some(ForcedCompaction::Manual { .. }))
    }

    /// Whether a layer waits for the answer to this question.
    pub(crate) fn waits_for(&self, asked: LayerQuestion) -> bool {
        self.asked == Some(asked)
    }
}

impl Cx<'_> {
    /// The run begins. What was typed during the last one and never sent goes first.
    pub(crate) fn on_submit(&mut self, phase: Phase, prompt: Prompt) -> Phase {
        let Phase::Idle = phase else { return self.on_steer(phase, prompt) };
        let total = prompt.token_budget.or(self.config.token_budget);
        self.start_submission(TokenBudget { total, ..TokenBudget::default() });
        let start = self.state.carry.waiting.take_start().or(prompt.start);
        let prompt = Prompt { start: None, ..prompt };
        let untold = self.untold(start);
        // While hooks are asked the prompt waits, and the log has to know of it.
        let is_logged = self.asks_about_prompts() || !untold.is_empty();
        if is_logged {
            self.persist(Record::Queued(prompt.clone()));
        }
        self.state.carry.waiting.push_own(prompt);
        self.prepare_opening(RunStart::new(StartCause::Prompt { is_logged }, untold))
    }

    /// The prompts that wait become part of the conversation, the one that began the run last.
    pub(crate) fn say_prompts(&mut self, is_logged: bool) {
        let waiting = &mut self.state.carry.waiting;
        let taken = waiting.prompt_count() - usize::from(!is_logged);
        // What stands before the last text is context that the engine or a host put there.
        let text = waiting.own().and_then(|prompt| prompt.blocks.iter().rev().find_map(Block::as_text));
        if let Some(text) = text.filter(|_| self.config.source.is_main()) {
            self.effects.push(Effect::Prefetch(text.into()));
        }
        let prompts = waiting.take();
        let ids: Vec<Arc<str>> = prompts.iter().filter_map(|prompt| prompt.id.clone()).collect();
        let mut blocks: Vec<Block> = prompts.iter().flat_map(|prompt| prompt.context.clone()).collect();
        let in_front = blocks.len();
        blocks.extend(prompts.into_iter().flat_map(|prompt| prompt.blocks));
        if blocks.len() == in_front {
            blocks.push(Block::text(EMPTY));
        }
        let message = Arc::new(Message::user(self.message_id(), Origin::Prompt, blocks));
        let said = UserEntry { message: message.clone(), context: in_front, prompts: ids.clone(), taken };
        self.note_prompt(&said);
        self.persist(Record::Said(said));
        self.start_prompts(ids);
        self.state.carry.messages.push(message);
    }

    /// A run that goes on where another was left. What was typed since goes in.
    pub(crate) fn on_go_on(&mut self, phase: Phase, start: Option<StartSource>) -> Phase {
        let Phase::Idle = phase else { return phase };
        self.start_submission(TokenBudget { total: self.config.token_budget, ..TokenBudget::default() });
        let start = self.state.carry.waiting.take_start().or(start);
        self.prepare_opening(RunStart::new(StartCause::GoOn, self.untold(start)))
    }

    /// The prompts that wait become part of the conversation, and the model is asked to go on.
    pub(crate) fn say_waiting(&mut self) {
        let unfinished = self.state.carry.unfinished.iter().flat_map(|prompt| prompt.prompts.clone());
        let unfinished = unfinished.collect();
        self.start_prompts(unfinished);
        let waiting = self.waiting_prompts(Priority::Later);
        self.state.carry.messages.extend(waiting);
        // An answer is never sent last: whoever is to go on has to be asked.
        if self.state.carry.messages.last().is_some_and(|last| last.role == Role::Assistant) {
            self.say(GO_ON, Origin::Continuation);
        }
    }

    /// A run that only compacts.
    pub(crate) fn on_compact(&mut self, phase: Phase, focus: String) -> Phase {
        let Phase::Idle = phase else { return phase };
        self.start_submission(TokenBudget::default());
        self.prepare(Preparation {
            forced: Some(ForcedCompaction::Manual { focus }),
            ..Preparation::default()
        })
    }

    fn start_submission(&mut self, budget: TokenBudget) {
        self.cancel_background();
        self.state.ledger = self.state.ledger.next_run(self.at_ms);
        let carry = std::mem::take(&mut self.state.carry);
        self.state.carry = Carry {
            messages: carry.messages,
            tools: carry.tools,
            grants: carry.grants,
            blocked: carry.blocked,
            compactions: context::for_next_run(&carry.compactions),
            // Nothing was tried yet, and the first model has its chance again.
            guards: Guards::default(),
            summary: None,
            turn_count: 1,
            transition: None,
            waiting: carry.waiting,
            unfinished: carry.unfinished,
            withheld: None,
            staged: carry.staged,
            budget,
            repeats: crate::turn::repeats::Repeats::default(),
            notes: carry.notes,
            tokens: carry.tokens,
            sent: carry.sent,
            broken: Attempts::default(),
            checked: carry.checked,
            doubtful: carry.doubtful,
        };
    }

    /// The first iteration of a run.
    fn prepare_opening(&mut self, opening: RunStart) -> Phase {
        self.prepare(Preparation { opening: Some(Box::new(opening)), ..Preparation::default() })
    }

    /// Makes the next request and sends it.
    pub(crate) fn prepare(&mut self, preparing: Preparation) -> Phase {
        self.enter(PhaseName::Preparing);
        self.go_through_layers(preparing, None)
    }

    fn go_through_layers(&mut self, mut preparing: Preparation, mut reply: Option<LayerReply>) -> Phase {
        while let Some(layer) = LAYERS.get(preparing.layer) {
            match layer(self, &mut preparing, reply.take()) {
                LayerStep::Passed => preparing.layer += 1,
                LayerStep::Asked(asked) => {
                    preparing.asked = Some(asked);
                    return Phase::Preparing(Box::new(preparing));
                }
                LayerStep::End(terminal) => return self.end(terminal, None),
            }
        }
        self.send_next(&preparing)
    }

    /// An answer that a layer waits for. Others are late news.
    pub(crate) fn on_reply(&mut self, phase: Phase, asked: LayerQuestion, reply: LayerReply) -> Phase {
        match phase {
            Phase::Preparing(mut preparing) if preparing.waits_for(asked) => {
                preparing.asked = None;
                self.go_through_layers(*preparing, Some(reply))
            }
            other => other,
        }
    }

    /// Stops whatever a layer waits for.
    pub(crate) fn interrupt_preparing(&mut self, preparing: &Preparation) {
        self.state.carry.waiting.unask();
        match preparing.asked {
            Some(LayerQuestion::Fork(fork)) => self.cancel_fork(fork),
            Some(LayerQuestion::Hooks(hook)) => self.effects.push(Effect::CancelHooks(hook)),
            Some(LayerQuestion::Store(_) | LayerQuestion::Look(_)) | None => (),
        }
    }

    fn send_next(&mut self, preparing: &Preparation) -> Phase {
        if !budget::usd_left(&self.state.ledger, self.config) {
            return self.end(Terminal::MaxBudgetUsd, None);
        }
        let body = Arc::new(self.request());
        if preparing.not_before_ms > self.at_ms {
            return self.wait(body, Attempts::default(), preparing.not_before_ms);
        }
        self.send(body, Attempts::default())
    }

    /// Sends a request, the first time or again.
    pub(crate) fn send(&mut self, body: Arc<ModelRequest>, attempts: Attempts) -> Phase {
        self.enter(PhaseName::Streaming);
        self.state.ledger.has_requested = true;
        let thinking = is_thinking_on(body.thinking, self.model());
        let before = self.state.carry.sent.take();
        self.state.carry.sent = Some(SentPrefix::new(body.clone(), thinking, self.at_ms, before.as_ref()));
        let request = self.state.ids.request();
        let model = body.model.clone();
        let (attempt, parts) = (attempts.retries + 1, context::sizes(self));
        self.persist(Record::Requested(RequestEntry { request, model: model.clone(), attempt, parts }));
        self.emit(Update::Requesting { request, model, attempt });
        self.effects.push(Effect::CallModel(request, body.clone()));
        Phase::Streaming(Box::new(OpenResponse::new(request, body, attempts, before, self.at_ms)))
    }
}

/// Mends what a resumed or hand-edited conversation brought, and says so. A run that only compacts sends nothing.
fn last_gate(cx: &mut Cx<'_>, preparing: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    if preparing.only_compacts() {
        return LayerStep::Passed;
    }
    cx.take_out_foreign_thinking();
    let carry = &mut cx.state.carry;
    // Within a run the user's side speaks after every answer but a paused one.
    let paused = carry.transition.is_some();
    if carry.checked.advance(&carry.messages, paused) {
        return LayerStep::Passed;
    }
    let (messages, repairs) = gate::repair(&carry.messages);
    carry.checked = gate::Watermark::default();
    carry.checked.advance(&messages, paused);
    carry.tokens.rewritten(&carry.messages, &messages, cx.config);
    carry.messages = messages;
    carry.staged.retain_in(&carry.messages);
    // The cached prefix may have changed, so the old end of it means nothing.
    carry.sent = None;
    cx.persist(Record::Repaired(repairs.clone()));
    cx.emit(Update::Repaired(repairs));
    LayerStep::Passed
}

/// Asks the model to go on where nothing new is said.
const GO_ON: &str = "Continue.";
const EMPTY: &str = "(Empty message.)";
