//! What hooks hear of a session besides its runs: news of the host, and its end.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::Config;
use windlass_protocol::{EndReason, HookCall, HookScene};

use crate::builder::{Engine, EngineParts};
use crate::jobs::ask_hooks;
use crate::session::Session;

impl Engine {
    /// Lets hooks hear of something that the host tells the user. `kind` is the host's name for this kind of news, such as
    /// `permission_prompt`. What the hooks have to say to the user comes back; nothing happens until the future is polled.
    pub fn notify(
        &self,
        kind: &str,
        message: &str,
        title: Option<&str>,
    ) -> impl Future<Output = Vec<String>> + Send + use<> {
        let title = title.map(Arc::from);
        let call = HookCall::Notification { kind: kind.into(), message: message.into(), title };
        tell(&self.shared, self.shared.cwd.clone(), call)
    }
}

impl Session {
    /// Lets hooks hear that the session is left, and waits for them as long as they may take. What they have to say to the user
    /// comes back. Without any run, no hook heard that it began, so none hears that it ends. Nothing else ends with it: a session
    /// can be dropped without.
    pub fn end(&mut self, reason: EndReason) -> impl Future<Output = Vec<String>> + Send + use<> {
        let ended = tell(&self.shared, self.cwd().to_owned(), HookCall::SessionEnd { reason });
        let has_run = self.has_run;
        async move { if has_run { ended.await } else { Vec::new() } }
    }
}

/// Asks the hooks of an event that no run waits for.
fn tell(
    shared: &EngineParts,
    cwd: PathBuf,
    call: HookCall,
) -> impl Future<Output = Vec<String>> + Send + use<> {
    let is_heard = shared.config.hooks.contains(&call.event());
    let asked = ask_hooks(shared, call, scene(&shared.config, cwd), CancellationToken::new());
    async move { if is_heard { asked.await.told() } else { Vec::new() } }
}

fn scene(config: &Config, cwd: PathBuf) -> HookScene {
    HookScene {
        cwd: Arc::new(cwd),
        mode: config.permissions.mode.name(),
        effort: config.effort,
        ..HookScene::default()
    }
}
