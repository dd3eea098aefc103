//! How a server is set up.

use std::io;

use windlass_models::{Script, ScriptPlayer};

use crate::server::{Server, ServerOptions};

/// What a server does besides playing its script, beyond the rules that always hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerBehaviour {
    pub(crate) is_thinking_bound: bool,
    pub(crate) window_tokens: Option<u64>,
    pub(crate) can_count_tokens: bool,
    pub(crate) refused_betas: Vec<String>,
    pub(crate) refused_fields: Vec<String>,
    pub(crate) headers: Vec<(String, String)>,
}

impl ServerBehaviour {
    /// Whether an answer depends on its request, so that it cannot be made before.
    pub(crate) fn looks_at_requests(&self) -> bool {
        let Self {
            is_thinking_bound,
            window_tokens,
            can_count_tokens,
            refused_betas,
            refused_fields,
            headers: _,
        } = self;
        *is_thinking_bound
            || window_tokens.is_some()
            || *can_count_tokens
            || !refused_betas.is_empty()
            || !refused_fields.is_empty()
    }
}

/// Sets up a [`Server`].
///
/// ```
/// use windlass_testkit::{Script, Server};
/// let main = Script::parse(r#"{"responses": [{"blocks": [{"thinking": "hm"}, {"text": "Hello."}]}]}"#)?;
/// let small = Script::parse(r#"{"responses": [{"blocks": [{"text": "A greeting"}]}], "then": "repeat"}"#)?;
/// let server = Server::builder(main)
///     .script_for("claude-haiku-5-5", small)
///     .bind_thinking()
///     .window_tokens(20_000)
///     .header("anthropic-ratelimit-requests-remaining", "49")
///     .start()?;
/// assert!(server.refusals().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ServerBuilder {
    script: Script,
    scripts: Vec<(String, Script)>,
    options: ServerOptions,
    behaviour: ServerBehaviour,
}

impl ServerBuilder {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            scripts: Vec::new(),
            options: ServerOptions::default(),
            behaviour: ServerBehaviour::default(),
        }
    }

    /// Requests for a model whose name contains `model` get the responses of this script instead.
    pub fn script_for(mut self, model: impl Into<String>, script: Script) -> Self {
        self.scripts.push((model.into(), script));
        self
    }

    /// Keeps bodies and checks requests, or not.
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Binds thinking to its prefix. The thinking of the script gets signatures that hold only behind the same system
    /// prompt, tools and messages and behind the same earlier thinking, which may be dropped from the front. A request in
    /// which one does not hold is refused with the words of the API; with `prefix_mismatch_behavior: "drop_block"` the block
    /// is dropped, and the answer says so. Thinking of another model is treated alike, although the real API drops it
    /// silently: it should never be sent.
    pub fn bind_thinking(mut self) -> Self {
        self.behaviour.is_thinking_bound = true;
        self
    }

    /// Refuses requests of more tokens as too long, and counts as [`ServerBuilder::count_tokens`] does. A token is four
    /// bytes of JSON.
    pub fn window_tokens(mut self, tokens: u64) -> Self {
        self.behaviour.window_tokens = Some(tokens);
        self.count_tokens()
    }

    /// Reports the tokens of each request as usage, where the script does not say other numbers: what the last request for the
    /// same model had in common counts as read from the cache, the rest as written to it. If a request asks for old results
    /// to be cleared, they do not count, and the answer says what was cleared.
    pub fn count_tokens(mut self) -> Self {
        self.behaviour.can_count_tokens = true;
        self
    }

    /// Refuses requests with this beta as an endpoint does that does not know it; `*` means any beta.
    pub fn refuse_beta(mut self, beta: impl Into<String>) -> Self {
        self.behaviour.refused_betas.push(beta.into());
        self
    }

    /// Refuses requests with this field, a path such as `output_config.effort`, as an endpoint does that does not know it.
    pub fn refuse_field(mut self, path: impl Into<String>) -> Self {
        self.behaviour.refused_fields.push(path.into());
        self
    }

    /// Sends this header with every answer, for example a limit and what is left of it.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.behaviour.headers.push((name.into(), value.into()));
        self
    }

    /// Starts the server.
    pub fn start(self) -> io::Result<Server> {
        let players =
            self.scripts.into_iter().map(|(model, script)| (model, ScriptPlayer::new(script))).collect();
        Server::launch(self.script, players, self.options, self.behaviour)
    }
}
