//! What the core asks for.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_permission::Permissions;
use windlass_protocol::{
    Block, CallFacts, CallId, Durability, FileSeen, ForkId, HookCall, HookId, HookScene, LookId,
    ModelRequest, Prompt, Record, RequestId, StoreId, TimerId, ToolUse, Update,
};

use crate::config::Config;
use crate::state::{PhaseName, State};

/// What the driver must do, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Put a fact into the log. What stands behind it happens only once it is there, and if it cannot be put there, nothing
    /// but [what stops](Effect::stops) something happens: the answer is then [`Event::StoreFailed`](windlass_protocol::Event::StoreFailed).
    Persist(Record, Durability),
    /// Show the caller.
    Emit(Update),
    /// Send a request; events about it carry its id.
    CallModel(RequestId, Arc<ModelRequest>),
    /// Stop reading the answer of a request.
    CancelModel(RequestId),
    /// Find out about the input of a call that would have this working directory; answered by
    /// [`Event::Examined`](windlass_protocol::Event::Examined).
    Examine(CallId, ToolUse, Arc<PathBuf>),
    /// Start a call; answered by [`Event::Finished`](windlass_protocol::Event::Finished).
    RunTool {
        /// The call.
        call: CallId,
        /// The tool and its input.
        tool_use: ToolUse,
        /// Its working directory.
        cwd: Arc<PathBuf>,
        /// The facts permission was decided on.
        facts: Arc<CallFacts>,
        /// What the conversation knows of the files it names.
        seen: Vec<FileSeen>,
        /// Who may do what by now, if the session has changed it.
        permissions: Option<Arc<Permissions>>,
        /// Whether it runs in the sandbox.
        is_confined: bool,
    },
    /// Ask a running call to stop; it still finishes.
    CancelTool(CallId),
    /// Give a call up that did not stop in time; it does not finish any more.
    AbandonTool(CallId),
    /// Start a timer; answered by [`Event::Timer`](windlass_protocol::Event::Timer).
    StartTimer {
        /// Its id.
        timer: TimerId,
        /// When it runs out, from now.
        after_ms: u64,
    },
    /// Run the same machine, unseen, on a conversation of its own; answered by [`Event::Forked`](windlass_protocol::Event::Forked).
    Fork {
        /// The fork.
        fork: ForkId,
        /// Where it begins.
        state: Box<State>,
        /// Its configuration.
        config: Arc<Config>,
        /// Its prompt.
        prompt: Prompt,
    },
    /// Drop a fork; it is not answered any more.
    CancelFork(ForkId),
    /// Ask the hooks of an event; answered by [`Event::Hooked`](windlass_protocol::Event::Hooked).
    RunHooks(HookId, HookCall, HookScene),
    /// Stop hooks that were asked; they are not answered any more.
    CancelHooks(HookId),
    /// Put the results of these calls into files, as they are in full; answered by [`Event::Stored`](windlass_protocol::Event::Stored).
    Store(StoreId, Vec<(Arc<str>, Block)>),
    /// Look around; answered by [`Event::Looked`](windlass_protocol::Event::Looked).
    LookAround {
        /// The look.
        look: LookId,
        /// What the conversation knows of files, the latest first: say which are different now.
        known: Vec<FileSeen>,
        /// Files whose present text is wanted, each cut to so many characters.
        show: Vec<(PathBuf, usize)>,
    },
    /// Look for memory that may help with this prompt, beside the run; answered by [`Event::Prefetched`](windlass_protocol::Event::Prefetched) if there is any.
    Prefetch(Arc<str>),
}

impl Effect {
    /// Whether it only stops what is at work: then it happens whatever becomes of the log.
    pub fn stops(&self) -> bool {
        matches!(
            self,
            Self::CancelModel(_) | Self::CancelTool(_) | Self::CancelFork(_) | Self::CancelHooks(_)
        )
    }
}

/// What one step comes to.
#[derive(Debug, Default)]
#[must_use]
pub struct Effects {
    /// The effects, in order.
    pub list: Vec<Effect>,
    /// The edges between phases this step took, in order: for tests and traces.
    pub edges: Vec<(PhaseName, PhaseName)>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }
}
