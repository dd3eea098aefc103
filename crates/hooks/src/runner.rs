//! Asks all handlers of an event at once and puts their answers together.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use windlass_ports::{BoxFuture, CancellationToken, HookRunner};
use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookNews, HookScene, SessionKey};
use windlass_sandbox::{LaterVariables, Launcher, child_environment};

use crate::background::{Background, Started, Wake};
use crate::callback::{CallbackInput, HookCallback};
use crate::command::{self, Surroundings};
use crate::condition::{self, RuleMatch};
use crate::handler::{Handler, Kind, Pace};
use crate::http::{self, Policy};
use crate::input::{self, Identity};
use crate::later::{self, Later};
use crate::merge::merge;
use crate::program::Confinement;
use crate::prompt::{self, AskModel};
use crate::report;
use crate::set::{HookSet, SourceKind};
use crate::spill::Spill;
use crate::voice::{self, Failed};
use crate::witness::{self, Seen, Tell, Witness};

/// All hooks at the end of a session together have as long as this, unless one is configured to take longer.
const ENDING: Duration = Duration::from_millis(1_500);
/// And never longer than this.
const ENDING_MAX: Duration = Duration::from_mins(1);

/// Shows a text to the user.
type Show = Arc<dyn Fn(&str) + Send + Sync>;

/// What hooks are run with.
pub struct HookHost {
    project: PathBuf,
    home: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    pass: Vec<String>,
    policy: Policy,
    rules: Option<RuleMatch>,
    model: Option<Arc<dyn AskModel>>,
    outputs: Option<PathBuf>,
    ending: Option<Duration>,
    wake: Option<Wake>,
    status: Option<Show>,
    launcher: Launcher,
    confinement: Confinement,
    later: Option<LaterVariables>,
}

impl HookHost {
    /// Hooks of a project, with the environment of this process.
    #[must_use]
    pub fn new(project: PathBuf) -> Self {
        Self {
            project,
            home: std::env::home_dir(),
            environment: std::env::vars_os().collect(),
            pass: Vec::new(),
            policy: Policy::default(),
            rules: None,
            model: None,
            outputs: None,
            ending: None,
            wake: None,
            status: None,
            launcher: Launcher::direct(),
            confinement: Confinement::Free,
            later: None,
        }
    }

    /// What programs run in.
    #[must_use]
    pub fn confinement(self, confinement: Confinement) -> Self {
        Self { confinement, ..self }
    }

    /// The variables of later commands. With it, hooks where a session starts or the directory changes get a file in
    /// `CLAUDE_ENV_FILE`; what shell commands they write there set and export, commands get from then on.
    #[must_use]
    pub fn later(self, variables: LaterVariables) -> Self {
        Self { later: Some(variables), ..self }
    }

    /// How programs are started. Without a supervisor, what a hook leaves behind outlives an engine that is killed.
    #[must_use]
    pub fn launcher(self, launcher: Launcher) -> Self {
        Self { launcher, ..self }
    }

    /// Another environment than that of this process. What programs get of it is filtered: never our own credentials, and
    /// nothing that looks like a secret unless `pass` names it.
    #[must_use]
    pub fn environment(self, environment: Vec<(OsString, OsString)>, pass: Vec<String>) -> Self {
        Self { environment, pass, ..self }
    }

    /// The user's own directory, where programs start if every other place is gone.
    #[must_use]
    pub fn home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// The addresses that http hooks may post to, with `*` for anything, and the variables that their headers may name. Without
    /// a list, nothing is restricted further.
    #[must_use]
    pub fn http(self, urls: Option<Vec<String>>, variables: Option<Vec<String>>) -> Self {
        Self { policy: Policy { urls, variables, ..Policy::default() }, ..self }
    }

    /// Who says whether a permission rule matches a call. Without it, a handler with a rule is asked every time.
    #[must_use]
    pub fn rules(self, rules: RuleMatch) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// Who asks a small model.
    #[must_use]
    pub fn model(self, model: Arc<dyn AskModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Where long outputs are kept. Without it, in a private directory that goes with the runner.
    #[must_use]
    pub fn outputs(self, directory: PathBuf) -> Self {
        Self { outputs: Some(directory), ..self }
    }

    /// How long all hooks at the end of a session may take together, whatever they are configured to.
    #[must_use]
    pub fn ending_time(self, time: Duration) -> Self {
        Self { ending: Some(time), ..self }
    }

    /// Who wakes an idle session when a hook in the background objects. Without it, the objection waits for the next prompt.
    #[must_use]
    pub fn wake(self, wake: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { wake: Some(Arc::new(wake)), ..self }
    }

    /// Who shows what a hook wants shown while it runs.
    #[must_use]
    pub fn status(self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { status: Some(Arc::new(show)), ..self }
    }
}

/// Runs the hooks of a session.
#[derive(Clone)]
pub struct SettingsHooks {
    inner: Arc<Inner>,
}

struct Inner {
    set: HookSet,
    host: HookHost,
    identity: Mutex<Identity>,
    background: Background,
    spill: Spill,
    /// Who hears what becomes of each handler.
    tell: OnceLock<Tell>,
    /// What hooks write for later commands.
    later: Option<Later>,
    /// How many handlers were asked.
    runs: AtomicU64,
}

impl SettingsHooks {
    /// The runner of these handlers.
    #[must_use]
    pub fn new(set: HookSet, mut host: HookHost) -> Self {
        host.policy.environment.clone_from(&host.environment);
        let identity = Identity { home: host.home.clone(), ..Identity::default() };
        let background = Background::new(host.wake.clone());
        let spill = Spill::new(host.outputs.clone());
        let identity = Mutex::new(identity);
        let (tell, runs) = (OnceLock::new(), AtomicU64::new(0));
        let later = host.later.clone().map(Later::new);
        Self { inner: Arc::new(Inner { set, host, identity, background, spill, tell, later, runs }) }
    }

    /// Says who hears what becomes of each handler from now on. The first one who wants to hear does.
    pub fn tell(&self, tell: impl Fn(HookNews) + Send + Sync + 'static) {
        let _ = self.inner.tell.set(Arc::new(tell));
    }

    /// Says which session asks, and where its log is.
    pub fn bind(&self, key: SessionKey, transcript: Option<PathBuf>) {
        let mut identity = self.inner.identity.lock().unwrap_or_else(PoisonError::into_inner);
        (identity.key, identity.transcript) = (Some(key), transcript);
    }

    /// Ends what hooks left running in the background.
    pub async fn end_background(&self) {
        self.inner.background.end().await;
    }
}

impl HookRunner for SettingsHooks {
    fn events(&self) -> BTreeSet<HookEvent> {
        let mut events = self.inner.set.events();
        if self.inner.set.has_background() {
            // What is found in the background needs an occasion to be told.
            events.extend(DELIVERING);
        }
        events
    }

    fn run(
        &self,
        call: HookCall,
        scene: HookScene,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, HookAnswer> {
        let inner = self.inner.clone();
        Box::pin(async move {
            tokio::select! {
                answer = inner.ask(&call, &scene, &cancel) => answer,
                () = cancel.cancelled() => HookAnswer::default(),
            }
        })
    }
}

/// The occasions at which the model is told what was found in the background.
const DELIVERING: [HookEvent; 2] = [HookEvent::UserPromptSubmit, HookEvent::PostToolBatch];

/// What one handler is asked with.
struct Asked<'a> {
    event: HookEvent,
    /// The name that hosts hear.
    name: Arc<str>,
    tool_use_id: Option<Arc<str>>,
    input: Arc<str>,
    scene: &'a HookScene,
    cancel: &'a CancellationToken,
}

impl Inner {
    async fn ask(&self, call: &HookCall, scene: &HookScene, cancel: &CancellationToken) -> HookAnswer {
        let event = call.event();
        let handlers = self.set.matching(call);
        let rules = self.host.rules.as_ref();
        let handlers: Vec<_> =
            handlers.into_iter().filter(|handler| condition::holds(handler, call, scene, rules)).collect();
        let mut answer = if handlers.is_empty() {
            HookAnswer::default()
        } else {
            let tool_use_id = condition::tool_use(call).map(|(_, tool_use)| tool_use.id.clone());
            let name = witness::name(call);
            let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let questions = input::questions(call, scene, &identity);
            let asked = questions.into_iter().flat_map(|input| {
                let (input, tool_use_id): (Arc<str>, _) = (input.into(), tool_use_id.clone());
                let name = name.clone();
                handlers.iter().map(move |handler| {
                    let (input, tool_use_id, name) = (input.clone(), tool_use_id.clone(), name.clone());
                    self.ask_one(handler.clone(), Asked { event, name, tool_use_id, input, scene, cancel })
                })
            });
            let later = self.later.as_ref().filter(|_| later::is_writer(event));
            if let Some(later) = later {
                later.begin(event);
            }
            let mut answer = merge(join_all(asked).await);
            if let Some(later) = later {
                answer.notices.extend(later.read(self.surroundings(scene)).await);
            }
            answer
        };
        if DELIVERING.contains(&event) {
            answer.context.extend(self.background.take());
        }
        self.spill.fit(&mut answer);
        answer
    }

    async fn ask_one(&self, handler: Arc<Handler>, asked: Asked<'_>) -> HookAnswer {
        if let (Some(show), Some(status)) = (&self.host.status, &handler.status) {
            show(status);
        }
        let time = self.time(&handler);
        let (run, began) = (self.runs.fetch_add(1, Ordering::Relaxed), Instant::now());
        let event = asked.event;
        let witness = Witness::begins(self.tell.get().cloned(), run, asked.event, asked.name.clone());
        let (answer, seen) = match &handler.kind {
            Kind::Command(command) => {
                let mut around = self.surroundings(asked.scene);
                let launcher = around.launcher.clone();
                match command.pace {
                    Pace::Awaited => {
                        self.give_file(&mut around, asked.event, run);
                        let program = command::program(command, &asked.input, around, time);
                        command::ask(&handler, command, program, &launcher, &witness).await
                    }
                    Pace::Background { wakes } => {
                        let program = command::program(command, &asked.input, around, handler.time());
                        self.background.start(handler.clone(), launcher, program, Started { wakes, witness });
                        return HookAnswer::default();
                    }
                }
            }
            Kind::Http(http) => http::ask(&handler, http, &asked.input, &self.host.policy, time).await,
            Kind::Prompt(prompt) => {
                prompt::ask(&handler, prompt, &asked.input, self.host.model.as_deref(), time).await
            }
            Kind::Callback(callback) => call_back(&handler, &*callback.0, asked, time).await,
        };
        let mut answer = condition::counted(&handler, answer);
        if event.is_stop() {
            answer.runs = vec![report::report(&handler, began.elapsed(), &answer, &seen)];
        }
        witness.ends(seen);
        answer
    }

    /// Gives a program the file for later commands, where there is one. A program in a sandbox could reach out of it by what it
    /// sets for commands outside.
    fn give_file(&self, around: &mut Surroundings, event: HookEvent, run: u64) {
        let is_free = matches!(around.confinement, Confinement::Free);
        let later = self.later.as_ref().filter(|_| is_free && later::is_writer(event));
        if let Some(file) = later.and_then(|later| later.file(event, run)) {
            around.environment.retain(|(name, _)| name != later::VARIABLE);
            around.environment.push((later::VARIABLE.into(), file.into()));
        }
    }

    /// How long a handler may take. Those at the end of a session share one limit: the process is about to end.
    fn time(&self, handler: &Handler) -> Duration {
        if handler.event != HookEvent::SessionEnd {
            return handler.time();
        }
        let configured = self.set.of(HookEvent::SessionEnd).filter_map(|handler| {
            let counts = matches!(handler.source, SourceKind::Settings | SourceKind::Managed);
            handler.timeout.filter(|_| counts)
        });
        let shared = configured.max().map_or(ENDING, |longest| longest.clamp(ENDING, ENDING_MAX));
        handler.timeout.unwrap_or(ENDING_MAX).min(self.host.ending.unwrap_or(shared))
    }

    fn surroundings(&self, scene: &HookScene) -> Surroundings {
        let host = &self.host;
        let is_telemetry = |name: &OsString| name.to_string_lossy().starts_with("OTEL_");
        let parent = host.environment.iter().filter(|(name, _)| !is_telemetry(name)).cloned();
        let mut environment = child_environment(parent, &host.pass, &host.project);
        let key = self.identity.lock().unwrap_or_else(PoisonError::into_inner).key;
        let set = [
            ("CLAUDE_CODE_CHILD_SESSION", Some("1".to_owned())),
            ("CLAUDE_CODE_SESSION_ID", key.map(|key| key.id.to_string())),
            ("CLAUDE_EFFORT", scene.effort.map(|effort| effort.name().to_owned())),
        ];
        environment.retain(|(name, _)| set.iter().all(|(known, _)| name != known));
        environment.extend(set.into_iter().filter_map(|(name, value)| Some((name.into(), value?.into()))));
        let places = [scene.cwd.as_path(), &host.project].into_iter().chain(host.home.as_deref());
        let cwd = places.into_iter().find(|place| place.is_dir()).unwrap_or(Path::new("/")).to_owned();
        let (launcher, confinement) = (host.launcher.clone(), host.confinement.clone());
        Surroundings { project: host.project.clone(), cwd, environment, launcher, confinement }
    }
}

async fn call_back(
    handler: &Handler,
    callback: &dyn HookCallback,
    asked: Asked<'_>,
    time: Duration,
) -> (HookAnswer, Seen) {
    let Asked { event, tool_use_id, input, cancel, .. } = asked;
    // Whoever takes too long is told that nobody waits any more.
    let own = cancel.child_token();
    let guard = own.clone().drop_guard();
    let said = callback.call(CallbackInput { event, tool_use_id, json: input }, own);
    let (text, failed) = match tokio::time::timeout(time, said).await {
        Err(_) => (String::new(), Failed::TimedOut(time)),
        Ok(Err(why)) => (String::new(), Failed::Crashed(why)),
        Ok(Ok(value)) => {
            let text = value.to_string();
            let failed = match voice::read(handler, &text) {
                Some(Ok(spoken)) => {
                    handler.worked();
                    return (voice::spoke(handler, spoken), Seen::said(&text));
                }
                Some(Err(why)) => Failed::Misspoke(why),
                None => Failed::Misspoke("it is not an object".into()),
            };
            (text, failed)
        }
    };
    drop(guard);
    (voice::failed(handler, &failed), Seen::failed(&text, &failed))
}
