//! What a caller sees of a run, and how a run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Block, CallFacts, CallId, CompactTrigger, Decision, Delta, Failure, HookFailure, MessageId, Offers,
    PermissionUpdate, RawValueEq, RequestId, StopHookSummary, Terminal, ToolProgress, ToolUse, Transition,
    Usage,
};

/// One thing a caller sees. The last update of a run is [`Update::Done`], exactly once.
#[derive(Clone, Debug)]
pub enum Update {
    /// A request goes out. `attempt` is 1 for the first try.
    Requesting {
        /// The request.
        request: RequestId,
        /// Its model.
        model: Arc<str>,
        /// Which try it is.
        attempt: u32,
    },
    /// The model began to answer.
    Responding {
        /// The request.
        request: RequestId,
        /// The provider's id of the response.
        message_id: Arc<str>,
        /// The model that answers.
        model: Arc<str>,
        /// Usage known so far.
        usage: Box<Usage>,
    },
    /// A piece of a block; only when partial messages are asked for.
    Delta {
        /// Position in the response.
        index: u32,
        /// The piece.
        delta: Delta,
    },
    /// A block of the answer is complete.
    Block {
        /// The id of this message.
        id: MessageId,
        /// Position in the response.
        index: u32,
        /// The block.
        block: Block,
        /// Whether an interrupt cut it short.
        is_aborted: bool,
    },
    /// The answer is complete.
    Responded {
        /// The request.
        request: RequestId,
        /// Why the model stopped, in the provider's word.
        stop_reason: Arc<str>,
        /// Usage of the response.
        usage: Box<Usage>,
    },
    /// Blocks shown before do not stand any more: the request is sent again, or was refused.
    Retracted {
        /// The messages to remove.
        messages: Vec<MessageId>,
        /// The calls that will not be answered, questions about them included.
        calls: Vec<CallId>,
    },
    /// A tool starts.
    ToolStarted {
        /// The call.
        call: CallId,
        /// What was asked for.
        tool_use: ToolUse,
        /// What it is about.
        facts: CallFacts,
    },
    /// A tool says how it is getting on.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The news.
        progress: ToolProgress,
    },
    /// A tool is done. Its result follows when those of all earlier calls are there.
    ToolFinished {
        /// The call.
        call: CallId,
        /// From its start to its own end, without any wait for its turn.
        duration_ms: u64,
    },
    /// A call is answered. Answers come in the order of the calls.
    ToolResult {
        /// The id of this message.
        id: MessageId,
        /// The call.
        call: CallId,
        /// The tool's name.
        name: Arc<str>,
        /// The `tool_result` block.
        result: Block,
        /// Structured form.
        structured: Option<Arc<RawValueEq>>,
    },
    /// Text from the user's side entered the conversation while the run went on.
    UserText {
        /// The id of this message.
        id: MessageId,
        /// The blocks.
        blocks: Vec<Block>,
        /// Whether the engine wrote it, not a person.
        is_synthetic: bool,
        /// The ids their senders gave to the prompts in it.
        prompts: Vec<Arc<str>>,
    },
    /// The user or the host must decide about a call.
    Question(Question),
    /// A call was denied.
    Denied(Denial),
    /// Changes of the permissions that hold already and are to be kept for later sessions.
    Permissions(Vec<PermissionUpdate>),
    /// The request failed and is sent again after a pause.
    Retrying {
        /// Which try failed.
        attempt: u32,
        /// How many retries there are at most.
        retries_max: u32,
        /// The pause.
        delay_ms: u64,
        /// What failed.
        failure: Box<Failure>,
    },
    /// The last gate repaired the request.
    Repaired(Vec<Repair>),
    /// The loop goes round again, for this reason.
    Continued(Transition),
    /// Compaction begins.
    Compacting(CompactTrigger),
    /// Compaction came to nothing, and why.
    CompactionFailed(String),
    /// A context layer changed the transcript; a compaction that worked is one of these.
    Decided(Decision),
    /// The provider cleared old content from its copy of the transcript, by its own count.
    ClearedByProvider {
        /// Results that were cleared.
        tool_results: u32,
        /// Answers whose thinking was cleared.
        thinking_turns: u32,
        /// Input tokens that were freed.
        tokens: u64,
    },
    /// Another model takes over. What it replaces was retracted before.
    FellBack {
        /// The model that failed.
        from: Arc<str>,
        /// The model that goes on.
        to: Arc<str>,
        /// What failed.
        failure: Box<Failure>,
    },
    /// The provider's cache held far less of the request than it should have.
    CacheMissed {
        /// Tokens that were expected to be read from the cache.
        expected: u64,
        /// Tokens that were.
        read: u64,
        /// The first part that differs from the request before; none if nothing does.
        part: Option<PrefixPart>,
    },
    /// What the calls of a response did, in a few words, by a small model.
    ToolUseSummary {
        /// The words.
        summary: Arc<str>,
        /// The calls, by the provider's ids.
        tool_use_ids: Vec<Arc<str>>,
    },
    /// What the user may want next, by a small model. It comes after the end of a run, at most once.
    PromptSuggestion {
        /// The prompt, in a line.
        suggestion: Arc<str>,
    },
    /// Prompts became part of the run, by the ids their senders gave them. They are done when the run ends well.
    PromptsStarted(Vec<Arc<str>>),
    /// Hooks blocked prompts with these ids: they are gone and never sent.
    PromptsRefused(Vec<Arc<str>>),
    /// The limit of turns is reached; the run ends.
    TurnsUsedUp {
        /// How many turns there were.
        turns: u32,
        /// The limit.
        limit: u32,
    },
    /// Something the user should know.
    Notice(String),
    /// A hook had no say.
    HookFailed(HookFailure),
    /// The run ends on this failure, which was withheld as long as a cure was tried: a message in the model's place.
    Failed {
        /// How the run ends.
        terminal: Terminal,
        /// What went wrong and what to do, for people.
        text: String,
        /// The failed model call, if one failed.
        failure: Option<Box<Failure>>,
    },
    /// The hooks at the end of the run have answered: what ran, how long it took, and what it said.
    StopHooks(StopHookSummary),
    /// The end of the run.
    Done(Box<Outcome>),
}

/// A part of a request, in the order in which a provider's cache looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixPart {
    /// The model.
    Model,
    /// The tools.
    Tools,
    /// The system prompt.
    System,
    /// Thinking, effort or the budget told to the model.
    Settings,
    /// A message of the transcript.
    Message {
        /// Its position, from 0.
        index: usize,
        /// Its id in the request before.
        id: MessageId,
    },
}

/// A decision that the user or the host has to make about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// What the model asked for.
    pub tool_use: ToolUse,
    /// Its facts.
    pub facts: CallFacts,
    /// Why it is asked.
    pub reason: String,
    /// Whether the same call keeps giving the same result, which is asked about whatever allows it.
    pub is_repeated: bool,
    /// What would spare the question.
    pub offers: Offers,
    /// Where nothing is offered, why, in a few words.
    pub each_time: Option<String>,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// Run it.
    Allow,
    /// Run it with this input instead.
    AllowChanged(Arc<RawValue>),
    /// Do not run it; the text tells the model why.
    Deny(String),
}

impl Answer {
    /// The no of a person, with what they say to the model, if anything.
    pub fn rejected(words: &str) -> Self {
        Self::Deny(match words {
            "" => "The user rejected this call. Do not try it in another way; ask what to do instead.".into(),
            words => format!("The user rejected this call: {words}"),
        })
    }
}

/// A call that was not allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// The call.
    pub call: CallId,
    /// What the model asked for.
    pub tool_use: ToolUse,
    /// Why not, and what would allow it.
    pub reason: String,
    /// Whether a person said no, rather than a rule.
    pub is_by_person: bool,
}

/// One thing the last gate mended in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Repair {
    /// A tool use had no result; an error result was added.
    AddedResult {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// A result answered no tool use, or answered one twice, or stood in the wrong place.
    DroppedResult {
        /// The tool use it named.
        tool_use_id: Arc<str>,
    },
    /// A result stood in the wrong place and was moved.
    MovedResult {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// The id of a tool use has characters that the API refuses; it and its result got another.
    RenamedToolUse {
        /// The former id.
        tool_use_id: Arc<str>,
    },
    /// A tool use had the id of an earlier one.
    DroppedToolUse {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// The input of a tool use was not a JSON object and was wrapped in one.
    WrappedInput {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// A text block was empty or only blanks.
    DroppedText,
    /// An assistant message ended in thinking, or a user message held some.
    DroppedThinking,
    /// A message had nothing left to say.
    DroppedMessage,
    /// A user message had to be put at the start or the end.
    AddedUser,
}

/// How a run ended and what it took.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The typed reason.
    pub terminal: Terminal,
    /// The model's final text: the text blocks of its last answer.
    pub text: String,
    /// The model's last stop reason.
    pub stop_reason: Option<Arc<str>>,
    /// How often the model was asked with something new: the prompt, and each time results. Cures do not count.
    pub iterations: u32,
    /// Usage of this run.
    pub usage: Usage,
    /// Usage and cost of this run by model.
    pub models: BTreeMap<Arc<str>, ModelSpend>,
    /// Calls that were denied.
    pub denials: Vec<Denial>,
    /// What went wrong, for people; a failure that ended the run is among it.
    pub errors: Vec<String>,
    /// What the caller should know although the run succeeded, such as an answer that was cut off.
    pub warnings: Vec<String>,
    /// The failure that ended the run, if one did.
    pub failure: Option<Failure>,
    /// From submission to end.
    pub duration_ms: u64,
    /// Time spent waiting for models.
    pub duration_api_ms: u64,
    /// The answer as a value that matches the schema, if one was asked for.
    pub structured: Option<Arc<RawValueEq>>,
    /// The call that a hook put off.
    pub deferred: Option<ToolUse>,
    /// The prompts that were part of the run, by the ids their senders gave them.
    pub prompts: Vec<Arc<str>>,
}

/// What one model took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSpend {
    /// Tokens.
    pub usage: Usage,
    /// USD; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// The model's context window.
    pub window_tokens: u64,
    /// The model's largest output cap.
    pub output_tokens_max: u32,
}

impl ModelSpend {
    /// Adds what was taken elsewhere, model by model. A cost that is not known in one part is not known in all.
    pub fn add(total: &mut BTreeMap<Arc<str>, Self>, more: &BTreeMap<Arc<str>, Self>) {
        for (model, more) in more {
            let Some(spend) = total.get_mut(model) else {
                total.insert(model.clone(), more.clone());
                continue;
            };
            spend.usage.add(&more.usage);
            spend.cost_usd = spend.cost_usd.zip(more.cost_usd).map(|(sum, more)| sum + more);
        }
    }

    /// What all models cost together; `None` if any part is unknown.
    pub fn cost_usd(models: &BTreeMap<Arc<str>, Self>) -> Option<f64> {
        models.values().try_fold(0.0, |sum, spend| Some(sum + spend.cost_usd?))
    }
}

impl Outcome {
    /// An end at which nothing was said and nothing taken.
    pub fn new(terminal: Terminal) -> Self {
        Self { terminal, ..Self::default() }
    }

    /// Total cost; `None` if any part is unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        ModelSpend::cost_usd(&self.models)
    }

    /// What went wrong, as one text; empty if nothing did.
    pub fn error_text(&self) -> String {
        let mut text = String::new();
        for error in &self.errors {
            let gap = if text.is_empty() {
                ""
            } else if text.ends_with('.') {
                " "
            } else {
                "; "
            };
            text.push_str(gap);
            text.push_str(error);
        }
        text
    }
}
