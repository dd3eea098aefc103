//! A session in a real file, behind a log that does as it is told. Whatever is logged and whatever happens is noted in one list.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::poll_fn;
use futures_util::{FutureExt, Stream, StreamExt};
use tempfile::TempDir;
use windlass_engine::{
    Engine, EngineBuilder, PermissionMode, Permissions, Recall, RecalledSession, Session, SessionSeed,
    Terminal, Transcript, Update,
};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::{
    AnyTool, AppendProgress, BoxStream, ExamineContext, JsonSchema, LogError, ModelClient, SessionLog, Tool,
    ToolContext,
};
use windlass_protocol::{CallFacts, CallKind, Durability, ModelEvent, ModelRequest, Record, ToolOutput};
use windlass_session::{
    Header, LogEnd, LogItem, LogOptions, LogWriter, SessionLayout, SessionPaths, SyncPolicy, load, log_items,
};

/// How long a log takes that is slow.
pub(crate) const SLOW: Duration = Duration::from_millis(100);

/// Noted where an append fails.
const FAILED: &str = "logged nothing";

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Write,
    /// It is written after a while, or never if nobody waits for it.
    WriteSlowly,
    /// It is written at once, and said to be after a while.
    SayLate,
    Fail,
    FailSlowly,
}

type Orders = Box<dyn FnMut(usize, &[Record]) -> Order + Send>;

/// What the log, the model and the tool of a test share with it.
pub(crate) struct Desk {
    orders: Mutex<Orders>,
    /// Every append that was asked for.
    appends: Mutex<Vec<Vec<Record>>>,
    /// What was logged, and what happened, such as `logged block 3` and `block 3`.
    notes: Mutex<Vec<String>>,
    requests_logged: AtomicUsize,
    requests: AtomicUsize,
    alive: AtomicUsize,
    pending: AtomicBool,
    wants_snapshot: AtomicBool,
    is_greedy: AtomicBool,
}

impl Desk {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            orders: Mutex::new(Box::new(|_, _| Order::Write)),
            appends: Mutex::default(),
            notes: Mutex::default(),
            requests_logged: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            pending: AtomicBool::new(false),
            wants_snapshot: AtomicBool::new(false),
            is_greedy: AtomicBool::new(false),
        })
    }

    /// From now on the log asks what to do, with the number of each append.
    pub(crate) fn order(&self, orders: impl FnMut(usize, &[Record]) -> Order + Send + 'static) {
        *self.orders.lock().unwrap() = Box::new(orders);
    }

    pub(crate) fn appends(&self) -> Vec<Vec<Record>> {
        self.appends.lock().unwrap().clone()
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst)
    }

    /// How many calls run at this moment.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// The next time it is asked, the log wants a snapshot.
    pub(crate) fn want_facts(&self) {
        self.wants_snapshot.store(true, Ordering::SeqCst);
    }

    /// The log has forgotten that it wants a snapshot.
    pub(crate) fn forget_wish(&self) {
        self.wants_snapshot.store(false, Ordering::SeqCst);
    }

    /// The log wants a snapshot from now on, whatever it is given.
    pub(crate) fn always_want_facts(&self) {
        self.is_greedy.store(true, Ordering::SeqCst);
    }

    pub(crate) fn note(&self, note: String) {
        self.notes.lock().unwrap().push(note);
    }

    fn note_logged(&self, records: &[Record]) {
        for record in records {
            let what = match record {
                Record::Said(said) => format!("text {}", said.message.id.0),
                Record::Answered(answered) => format!("block {}", answered.id.0),
                Record::Result(result) => format!("result {}", result.id.0),
                Record::Intended(intended) => format!("call {}", intended.call.0),
                Record::Requested(_) => {
                    format!("request {}", self.requests_logged.fetch_add(1, Ordering::SeqCst) + 1)
                }
                Record::Ended(_) => "end".into(),
                _ => continue,
            };
            self.note(format!("logged {what}"));
        }
    }

    pub(crate) fn note_shown(&self, update: &Update) {
        self.note(match update {
            Update::UserText { id, .. } => format!("text {}", id.0),
            Update::Block { id, .. } => format!("block {}", id.0),
            Update::ToolResult { id, .. } => format!("result {}", id.0),
            Update::ToolStarted { call, .. } => format!("call {}", call.0),
            Update::Done(_) => "end".into(),
            _ => return,
        });
    }

    /// Everything that happened is in the log by then, so many things at least. Once the log has failed, a run still answers its
    /// calls and tells how it ended, and nothing else.
    #[track_caller]
    pub(crate) fn check_order(&self, least: usize) {
        let notes = self.notes.lock().unwrap();
        let mut checked = 0;
        for (place, note) in notes.iter().enumerate().filter(|(_, note)| !note.starts_with("logged")) {
            let is_logged = notes[..place].contains(&format!("logged {note}"));
            let logged_last = notes[..place].iter().rfind(|note| note.starts_with("logged"));
            let has_failed = logged_last.is_some_and(|last| last == FAILED);
            let is_told = has_failed && (note == "end" || note.starts_with("result"));
            assert!(is_logged || is_told, "{note} before it was logged: {notes:#?}");
            checked += 1;
        }
        assert!(checked >= least, "only {checked}: {notes:#?}");
    }
}

/// The log: a real one, unless it is told otherwise.
struct Told {
    inner: Arc<Mutex<LogWriter>>,
    desk: Arc<Desk>,
}

fn write(log: &Mutex<LogWriter>, records: &[Record], durability: Durability) -> Result<(), LogError> {
    match log.lock().unwrap().append(records, durability) {
        AppendProgress::Now(done) => done,
        AppendProgress::Later(_) => panic!("nothing is synced"),
    }
}

impl Told {
    /// Answers after a while.
    fn later(&self, answer: impl Future<Output = Result<(), LogError>> + Send + 'static) -> AppendProgress {
        let desk = self.desk.clone();
        desk.pending.store(true, Ordering::SeqCst);
        let reset = Reset(desk);
        AppendProgress::Later(
            async move {
                let done = answer.await;
                drop(reset);
                done
            }
            .boxed(),
        )
    }
}

/// Nothing is pending any more, whether somebody waited for it or not.
struct Reset(Arc<Desk>);

impl Drop for Reset {
    fn drop(&mut self) {
        self.0.pending.store(false, Ordering::SeqCst);
    }
}

impl SessionLog for Told {
    fn append(&mut self, records: &[Record], durability: Durability) -> AppendProgress {
        assert!(!self.desk.is_pending(), "an append before the last was answered");
        let number = {
            let mut appends = self.desk.appends.lock().unwrap();
            appends.push(records.to_vec());
            appends.len() - 1
        };
        let order = (self.desk.orders.lock().unwrap())(number, records);
        let (inner, desk, records) = (self.inner.clone(), self.desk.clone(), records.to_vec());
        let full = || Err(LogError("the disk is full".into()));
        if matches!(order, Order::Fail | Order::FailSlowly) {
            desk.want_facts();
            desk.note(FAILED.to_owned());
        } else if records.iter().any(|record| matches!(record, Record::Snapshot(_))) {
            desk.wants_snapshot.store(false, Ordering::SeqCst);
        }
        match order {
            Order::Fail => AppendProgress::Now(full()),
            Order::FailSlowly => self.later(async move {
                tokio::time::sleep(SLOW).await;
                full()
            }),
            Order::Write => {
                let done = write(&inner, &records, durability);
                desk.note_logged(&records);
                AppendProgress::Now(done)
            }
            Order::WriteSlowly => self.later(async move {
                tokio::time::sleep(SLOW).await;
                let done = write(&inner, &records, durability);
                desk.note_logged(&records);
                done
            }),
            Order::SayLate => {
                let written = write(&inner, &records, durability);
                self.later(async move {
                    tokio::time::sleep(SLOW).await;
                    desk.note_logged(&records);
                    written
                })
            }
        }
    }

    fn wants_snapshot(&self) -> bool {
        self.desk.wants_snapshot.load(Ordering::SeqCst)
            || self.desk.is_greedy.load(Ordering::SeqCst)
            || self.inner.lock().unwrap().wants_snapshot()
    }
}

/// Takes its time.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "windlass_ports::schemars")]
struct WorkInput {
    /// How long.
    ms: u64,
    /// Whether it changes something.
    #[serde(default)]
    acts: bool,
}

struct Work(Arc<Desk>);

struct Alive(Arc<Desk>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Work {
    type Input = WorkInput;
    const NAME: &'static str = "Work";

    fn facts(&self, input: &WorkInput, _: &ExamineContext) -> Result<CallFacts, String> {
        let kind = if input.acts { CallKind::Execute } else { CallKind::Read };
        let target = input.ms.to_string();
        Ok(CallFacts { is_shared: !input.acts, target, ..CallFacts::new(kind) })
    }

    async fn run(&self, input: WorkInput, cx: ToolContext) -> ToolOutput {
        self.0.alive.fetch_add(1, Ordering::SeqCst);
        let _alive = Alive(self.0.clone());
        self.0.note(format!("call {}", cx.call.0));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(input.ms)) => ToolOutput::text("worked"),
            () = cx.cancel.cancelled() => ToolOutput::error("stopped"),
        }
    }
}

/// Notes each request, which must be one that a model would take.
struct Noting(ScriptModel, Arc<Desk>);

impl ModelClient for Noting {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        windlass_sim::check_request(&request.transcript).unwrap();
        self.1.note(format!("request {}", self.1.requests.fetch_add(1, Ordering::SeqCst) + 1));
        self.0.stream(request)
    }
}

/// Says something, makes two calls, and says something again.
pub(crate) const WORK: &str = r#"{"blocks": [
        {"text": "I begin."},
        {"tool": "Work", "input": {"ms": 4}},
        {"tool": "Work", "input": {"ms": 4, "acts": true}}
    ], "delta_chars": 3, "delta_delay_ms": 1},
    {"blocks": [{"text": "All done."}]}"#;

pub(crate) struct Stage {
    pub(crate) desk: Arc<Desk>,
    pub(crate) engine: Engine,
    paths: SessionPaths,
    _home: TempDir,
    _project: TempDir,
}

const SEED: SessionSeed = SessionSeed(9);

impl Stage {
    pub(crate) fn new(responses: &str) -> Self {
        Self::with(responses, |builder| builder)
    }

    pub(crate) fn with(responses: &str, set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let paths = SessionLayout::new(home.path()).session(project.path(), SEED.session_uuid());
        let desk = Desk::new();
        let script = Script::parse(&format!(r#"{{"then": "repeat", "responses": [{responses}]}}"#)).unwrap();
        let model = Noting(ScriptModel::new(script), desk.clone());
        let tools: Vec<Arc<dyn AnyTool>> = vec![Arc::new(Work(desk.clone()))];
        let mode = PermissionMode::BypassPermissions;
        let builder = Engine::builder(Arc::new(model), model_card("scripted"))
            .tools(tools)
            .working_directory(project.path().to_owned())
            .with(|config| config.permissions = Permissions { mode, ..Permissions::default() });
        let engine = set(builder).build().unwrap();
        Self { desk, engine, paths, _home: home, _project: project }
    }

    fn header(&self) -> Arc<Header> {
        Arc::new(Header::new(SEED, self.engine.working_directory(), 0))
    }

    fn log(&self, inner: LogWriter) -> Box<dyn SessionLog> {
        Box::new(Told { inner: Arc::new(Mutex::new(inner)), desk: self.desk.clone() })
    }

    pub(crate) fn new_log(&self) -> Box<dyn SessionLog> {
        let options = LogOptions { sync: SyncPolicy::Never, ..LogOptions::default() };
        self.log(LogWriter::create(&self.paths, self.header(), options))
    }

    /// A new session.
    pub(crate) fn begin(&self) -> Session {
        self.engine.session_with(SEED, Transcript::default()).logged(self.new_log())
    }

    /// A session in which two prompts wait that came between runs, while the log does what it is ordered to.
    pub(crate) async fn steered_between_runs(&self, order: Order) -> Session {
        let mut session = self.begin();
        watch(session.run("go"), &self.desk).await;
        self.desk.order(move |_, _| order);
        for text in ["one", "two"] {
            session.handle().steer(text).await.unwrap();
        }
        assert_eq!(session.waiting(), 2);
        session
    }

    /// What the file tells; nothing if there is none yet.
    pub(crate) fn recall(&self) -> RecalledSession {
        let mut recall = Recall::new(self.engine.working_directory().to_owned());
        if self.paths.file().exists() {
            let loaded = load(self.paths.file(), LogEnd::End).unwrap();
            assert_eq!(loaded.damage, []);
            loaded.records.into_iter().for_each(|record| recall.take(record));
        }
        recall.finish()
    }

    /// The session as another process goes on with it.
    pub(crate) fn resume(&self) -> Session {
        let recalled = self.recall();
        let options = LogOptions { sync: SyncPolicy::Never, ..LogOptions::default() };
        let log = if self.paths.file().exists() {
            let loaded = load(self.paths.file(), LogEnd::End).unwrap();
            LogWriter::resume(&self.paths, self.header(), &loaded, options).unwrap()
        } else {
            LogWriter::create(&self.paths, self.header(), options)
        };
        self.engine.resume(SEED, recalled, Some(self.log(log)))
    }

    /// What the file tells is what the session says.
    #[track_caller]
    pub(crate) fn check_recalled(&self, session: &Session) {
        let recalled = self.recall();
        assert_eq!(recalled.state.messages().to_json(), session.messages().to_json());
        assert!(recalled.results.is_empty() && !recalled.is_cut_off);
    }

    /// The log of one process, played again, tells the same story.
    #[track_caller]
    pub(crate) fn check_replay(&self, session: &Session) {
        let mut replay = self.engine.replay();
        for scene in log_items(self.paths.file()).unwrap() {
            let LogItem::Told(told) = scene.unwrap() else { continue };
            if let Err(mismatch) = replay.take(&told.record) {
                panic!("{mismatch}: {:#?}", self.desk.kinds());
            }
        }
        assert_eq!(replay.state().messages().to_json(), session.messages().to_json());
    }
}

impl Desk {
    /// The kinds of the records of each append.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.appends().iter().map(|records| kinds(records)).collect()
    }
}

pub(crate) fn kinds(records: &[Record]) -> String {
    records.iter().map(Record::kind).collect::<Vec<_>>().join(" ")
}

/// Polls until something is so, or the run is over; what was shown meanwhile.
pub(crate) async fn poll_until<R: Stream<Item = Update> + Unpin>(
    run: &mut R,
    desk: &Desk,
    mut is_so: impl FnMut() -> bool,
) -> (Vec<Update>, bool) {
    let mut shown = Vec::new();
    loop {
        if is_so() {
            return (shown, false);
        }
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut *run).poll_next(cx))).await {
            Poll::Ready(None) => return (shown, true),
            Poll::Ready(Some(update)) => {
                desk.note_shown(&update);
                shown.push(update);
            }
            Poll::Pending => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Everything a run shows; it ends with the one word on how it went.
pub(crate) async fn watch(run: impl Stream<Item = Update>, desk: &Desk) -> (Vec<Update>, Terminal) {
    let updates: Vec<Update> = run.inspect(|update| desk.note_shown(update)).collect().await;
    let ends = updates.iter().filter(|update| matches!(update, Update::Done(_))).count();
    let Some(Update::Done(outcome)) = updates.last() else { panic!("no end: {updates:#?}") };
    assert_eq!(ends, 1);
    let terminal = outcome.terminal;
    (updates, terminal)
}

/// Records of an append that writes a snapshot before anything new.
pub(crate) fn is_restating(records: &[Record]) -> bool {
    matches!(records.last(), Some(Record::Snapshot(_)))
}
