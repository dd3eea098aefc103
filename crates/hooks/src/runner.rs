//! Asks all handlers of an event at once and puts their answers together.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use windlass_ports::{BoxFuture, CancellationToken, HookRunner};
use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookNews, HookScene, SessionKey};
use windlass_sandbox::{Launcher, VariableChanges, child_environment};

use crate::answers::{self, HandlerFailure, merge};
use crate::background::BackgroundHooks;
use crate::command::{self, Confinement, ProgramSurroundings};
use crate::env_files::{self, EnvFiles};
use crate::handler::{CallbackInput, Handler, HandlerAction, HandlerPace, HookCallback};
use crate::http::{self, HttpClient};
use crate::input::{self, SessionIdentity};
use crate::matcher::{self, RuleMatch};
use crate::overflow_file::OverflowFiles;
use crate::prompt::{self, AskModel};
use crate::report::{self, NewsListener, ObservedEnd, RunObserver};
use crate::set::{HookSet, SourceKind};

/// All hooks at the end of a session together have as long as this, unless one is configured to take longer.
const ENDING: Duration = Duration::from_millis(1_500);
/// And never longer than this.
const ENDING_MAX: Duration = Duration::from_mins(1);

/// Shows a text to the user.
pub type ShowStatus = Arc<dyn Fn(&str) + Send + Sync>;

/// What hooks are run with: [`HookHost::new`], with other fields where a caller has more to say.
#[derive(Default)]
pub struct HookHost {
    /// The project's directory.
    pub project: PathBuf,
    /// The user's own directory, where programs start if every other place is gone.
    pub home: Option<PathBuf>,
    /// Filtered for programs: never our own credentials, and no likely secrets unless `pass` names them.
    pub environment: Vec<(OsString, OsString)>,
    /// Names in the environment that are passed on although they look like a secret.
    pub pass: Vec<String>,
    /// The addresses that http hooks may post to, with `*` for anything; all without a list.
    pub http_urls: Option<Vec<String>>,
    /// The variables that headers of http hooks may name; those that each of them lists without a list here.
    pub http_variables: Option<Vec<String>>,
    /// Who says whether a permission rule matches a call. Without it, a handler with a rule is asked every time.
    pub rules: Option<RuleMatch>,
    /// Who asks a small model.
    pub model: Option<Arc<dyn AskModel>>,
    /// Where long outputs are kept. Without it, in a private directory that goes with the runner.
    pub outputs: Option<PathBuf>,
    /// How long all hooks at the end of a session may take together, whatever they are configured to.
    pub ending_time: Option<Duration>,
    /// Who wakes an idle session when a hook in the background objects. Without it, the objection waits for the next prompt.
    pub wake: Option<Arc<dyn Fn(String) + Send + Sync>>,
    /// Who shows what a hook wants shown while it runs.
    pub status: Option<ShowStatus>,
    /// How programs are started. Without a supervisor, what a hook leaves behind outlives an engine that is killed.
    pub launcher: Launcher,
    /// What programs run in.
    pub confinement: Confinement,
    /// The variables that hooks set for later commands, as shell commands in the file that `CLAUDE_ENV_FILE` names.
    pub variable_changes: Option<VariableChanges>,
}

impl HookHost {
    /// Hooks of a project, with the environment of this process.
    pub fn new(project: PathBuf) -> Self {
        Self {
            project,
            home: std::env::home_dir(),
            environment: std::env::vars_os().collect(),
            ..Self::default()
        }
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
    http_client: HttpClient,
    identity: Mutex<SessionIdentity>,
    background: BackgroundHooks,
    overflow_files: OverflowFiles,
    /// Who hears what becomes of each handler.
    tell: OnceLock<NewsListener>,
    /// What hooks write for later commands.
    env_files: Option<EnvFiles>,
    runs: AtomicU64,
}

impl SettingsHooks {
    /// The runner of these handlers.
    pub fn new(set: HookSet, host: HookHost) -> Self {
        let identity = SessionIdentity { home: host.home.clone(), ..SessionIdentity::default() };
        let inner = Inner {
            set,
            http_client: HttpClient::new(),
            identity: Mutex::new(identity),
            background: BackgroundHooks::new(host.wake.clone()),
            overflow_files: OverflowFiles::new(host.outputs.clone()),
            tell: OnceLock::new(),
            env_files: host.variable_changes.clone().map(EnvFiles::new),
            runs: AtomicU64::new(0),
            host,
        };
        Self { inner: Arc::new(inner) }
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

#[derive(Clone)]
struct HandlerCall<'a> {
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
            handlers.into_iter().filter(|handler| matcher::holds(handler, call, rules)).collect();
        let mut answer = HookAnswer::default();
        if !handlers.is_empty() {
            let env_files = self.env_files.as_ref().filter(|_| env_files::is_writer(event));
            if let Some(env_files) = env_files {
                env_files.begin(event);
            }
            let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let questions = input::questions(call, scene, &identity).into_iter().map(|input| HandlerCall {
                event,
                name: report::host_name(call),
                tool_use_id: call.tool_call().map(|call| call.tool_use.id.clone()),
                input: input.into(),
                scene,
                cancel,
            });
            let asked = questions.flat_map(|question| {
                handlers.iter().map(move |handler| self.ask_one(handler.clone(), question.clone()))
            });
            answer = merge(join_all(asked).await);
            if let Some(env_files) = env_files {
                answer.notices.extend(env_files.read(self.surroundings(scene)).await);
            }
        }
        if DELIVERING.contains(&event) {
            answer.context.extend(self.background.take());
        }
        self.overflow_files.fit(&mut answer);
        answer
    }

    async fn ask_one(&self, handler: Arc<Handler>, asked: HandlerCall<'_>) -> HookAnswer {
        if let (Some(show), Some(status)) = (&self.host.status, &handler.status) {
            show(status);
        }
        let time = self.time(&handler);
        let (run, began) = (self.runs.fetch_add(1, Ordering::Relaxed), Instant::now());
        let event = asked.event;
        let observer = RunObserver::begins(self.tell.get().cloned(), run, asked.event, asked.name.clone());
        let (answer, seen) = match &handler.action {
            HandlerAction::Command(command) => {
                let mut around = self.surroundings(asked.scene);
                match command.pace {
                    HandlerPace::Awaited => {
                        self.give_file(&mut around, asked.event, run);
                        let program = command::program(command, &asked.input, around, time);
                        command::ask(&handler, command, program, &observer).await
                    }
                    HandlerPace::Background { should_wake } => {
                        let program = command::program(command, &asked.input, around, handler.time());
                        self.background.start(handler, program, should_wake, observer);
                        return HookAnswer::default();
                    }
                }
            }
            HandlerAction::Http(http) => {
                let text = http::post(http, &asked.input, &self.host, &self.http_client);
                answers::hear(&handler, time, text, |body| http::read(&handler, body)).await
            }
            HandlerAction::Prompt(prompt) => {
                prompt::ask(&handler, prompt, &asked.input, self.host.model.as_deref(), time).await
            }
            HandlerAction::Callback(callback) => call_back(&handler, &**callback, asked, time).await,
        };
        let mut answer = matcher::limit_answer(&handler, answer);
        if event.is_stop() {
            answer.runs = vec![report::report(&handler, began.elapsed(), &answer, &seen)];
        }
        observer.ends(seen);
        answer
    }

    /// Gives a program the file for later commands, unless it is in a sandbox, which it could leave that way.
    fn give_file(&self, around: &mut ProgramSurroundings, event: HookEvent, run: u64) {
        let is_free = matches!(around.confinement, Confinement::Free);
        let env_files = self.env_files.as_ref().filter(|_| is_free && env_files::is_writer(event));
        if let Some(file) = env_files.and_then(|env_files| env_files.file(event, run)) {
            around.environment.retain(|(name, _)| name != env_files::VARIABLE);
            around.environment.push((env_files::VARIABLE.into(), file.into()));
        }
    }

    /// How long a handler may take. Those at the end of a session share one limit: the process is about to end.
    fn time(&self, handler: &Handler) -> Duration {
        if handler.event != HookEvent::SessionEnd {
            return handler.time();
        }
        let ending = self.set.for_event(HookEvent::SessionEnd);
        let configured = ending.filter(|handler| handler.source == SourceKind::Settings);
        let configured = configured.filter_map(|handler| handler.timeout);
        let shared = configured.max().map_or(ENDING, |longest| longest.clamp(ENDING, ENDING_MAX));
        handler.timeout.unwrap_or(ENDING_MAX).min(self.host.ending_time.unwrap_or(shared))
    }

    fn surroundings(&self, scene: &HookScene) -> ProgramSurroundings {
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
        ProgramSurroundings { project: host.project.clone(), cwd, environment, launcher, confinement }
    }
}

async fn call_back(
    handler: &Handler,
    callback: &dyn HookCallback,
    asked: HandlerCall<'_>,
    time: Duration,
) -> (HookAnswer, ObservedEnd) {
    let HandlerCall { event, tool_use_id, input, cancel, .. } = asked;
    // Whoever takes too long is told that nobody waits any more.
    let own = cancel.child_token();
    let _guard = own.clone().drop_guard();
    let said = async { callback.call(CallbackInput { event, tool_use_id, json: input }, own).await };
    // One that panics must take no other with it.
    let said =
        AssertUnwindSafe(said).catch_unwind().map(|said| said.unwrap_or_else(|_| Err("it panicked".into())));
    let text = async { said.await.map(|value| value.to_string()).map_err(HandlerFailure::Crashed) };
    answers::hear(handler, time, text, |text| answers::from_object(handler, text, "it is not an object"))
        .await
}
