//! A project, a log, an engine with a tool of its own, and the way back from the log.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tempfile::TempDir;
use windlass_engine::{
    Engine, EngineBuilder, Mismatch, PermissionMode, Permissions, Recall, Replay, Session, SessionSeed,
    Transcript, Update,
};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::{
    AnyTool, AppendProgress, BoxFuture, CancellationToken, ExamineContext, HookRunner, JsonSchema, LogError,
    SessionLog, Tool, ToolContext,
};
use windlass_protocol::{
    CallFacts, CallKind, Durability, HookAnswer, HookCall, HookEvent, HookScene, Record, ToolOutput,
};
use windlass_session::{
    Header, LogEnd, LogItem, LogOptions, LogWriter, SessionLayout, SessionPaths, load, log_items,
};
use windlass_tools::{FileChangeWatcher, Read, ReadLimits};

/// Takes its time, then says something; may write a file first.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "windlass_ports::schemars")]
struct WorkInput {
    /// How long.
    ms: u64,
    /// How many characters it says.
    #[serde(default)]
    chars: usize,
    /// Where to write `changed`.
    #[serde(default)]
    write: Option<String>,
}

struct Work;

impl Tool for Work {
    type Input = WorkInput;
    const NAME: &'static str = "Work";

    fn facts(&self, input: &WorkInput, _: &ExamineContext) -> Result<CallFacts, String> {
        let acts = input.write.is_some();
        let kind = if acts { CallKind::Execute } else { CallKind::Read };
        Ok(CallFacts { is_shared: !acts, target: input.ms.to_string(), ..CallFacts::new(kind) })
    }

    async fn run(&self, input: WorkInput, cx: ToolContext) -> ToolOutput {
        if let Some(name) = &input.write {
            std::fs::write(cx.cwd.join(name), "one\nchanged\n").unwrap();
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(input.ms)) => {
                ToolOutput::text(&format!("{}done", "x".repeat(input.chars)))
            }
            () = cx.cancel.cancelled() => ToolOutput::error("stopped"),
        }
    }
}

/// Objects to the first end, and says something at the start.
pub(crate) struct Hooks;

impl HookRunner for Hooks {
    fn events(&self) -> BTreeSet<HookEvent> {
        let by_host = |event: &HookEvent| matches!(event, HookEvent::Notification | HookEvent::SessionEnd);
        let is_reached = |event: &HookEvent| !HookEvent::NOT_REACHED.contains(event) && !by_host(event);
        HookEvent::ALL.into_iter().filter(is_reached).collect()
    }

    fn run(&self, call: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        let objects = matches!(call, HookCall::Stop { is_active: false, .. });
        let blocks = objects.then(|| "look again".to_owned()).into_iter().collect();
        let starts = matches!(call, HookCall::SessionStart { .. });
        let context = starts.then(|| "it is monday".to_owned()).into_iter().collect();
        async move { HookAnswer { blocks, context, ..HookAnswer::default() } }.boxed()
    }
}

/// A log that can be told to fail.
struct Flaky {
    inner: LogWriter,
    fails: Arc<Mutex<bool>>,
}

impl SessionLog for Flaky {
    fn append(&mut self, records: &[Record], durability: Durability) -> AppendProgress {
        if *self.fails.lock().unwrap() {
            return AppendProgress::Now(Err(LogError("there is no space left".into())));
        }
        self.inner.append(records, durability)
    }

    fn wants_snapshot(&self) -> bool {
        self.inner.wants_snapshot()
    }
}

pub(crate) struct Stage {
    home: TempDir,
    project: Arc<TempDir>,
    paths: SessionPaths,
    pub(crate) log_fails: Arc<Mutex<bool>>,
}

const SEED: SessionSeed = SessionSeed(7);

impl Stage {
    pub(crate) fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), Arc::new(tempfile::tempdir().unwrap()));
        let paths = SessionLayout::new(home.path()).session(project.path(), SEED.session_uuid());
        Self { home, project, paths, log_fails: Arc::default() }
    }

    pub(crate) fn project(&self) -> &Path {
        self.project.path()
    }

    pub(crate) fn file(&self) -> &Path {
        self.paths.file()
    }

    /// Another session that begins with so many bytes of this one.
    pub(crate) fn cut(&self, bytes: u64) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(self.file().strip_prefix(self.home.path()).unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let whole = std::fs::read(self.file()).unwrap();
        std::fs::write(&file, &whole[..usize::try_from(bytes).unwrap()]).unwrap();
        let paths = SessionPaths::of_file(file).unwrap();
        Self { home, project: self.project.clone(), paths, log_fails: Arc::default() }
    }

    pub(crate) fn builder(&self, responses: &str) -> EngineBuilder {
        let script = format!(r#"{{"then": "repeat", "responses": [{responses}]}}"#);
        let model = ScriptModel::new(Script::parse(&script).unwrap());
        let tools: Vec<Arc<dyn AnyTool>> = vec![Arc::new(Work), Arc::new(Read::new(ReadLimits::default()))];
        let mode = PermissionMode::BypassPermissions;
        Engine::builder(Arc::new(model), model_card("scripted"))
            .tools(tools)
            .working_directory(self.project().to_owned())
            .change_watcher(Arc::new(FileChangeWatcher::default()))
            .results_directory(self.home.path().join("results"))
            .with(|config| config.permissions = Permissions { mode, ..Permissions::default() })
    }

    pub(crate) fn engine(&self, responses: &str) -> Engine {
        self.builder(responses).build().unwrap()
    }

    fn header(&self) -> Arc<Header> {
        Arc::new(Header::new(SEED, self.project(), 0))
    }

    fn log(&self, inner: LogWriter) -> Box<dyn SessionLog> {
        Box::new(Flaky { inner, fails: self.log_fails.clone() })
    }

    /// A new session in a new log.
    pub(crate) fn begin(&self, engine: &Engine) -> Session {
        self.begin_with(engine, Transcript::default())
    }

    /// A session that goes on from messages, in a new log.
    pub(crate) fn begin_with(&self, engine: &Engine, messages: Transcript) -> Session {
        let log = LogWriter::create(&self.paths, self.header(), LogOptions::default());
        engine.session_with(SEED, messages).logged(self.log(log))
    }

    /// What the log holds.
    pub(crate) fn records(&self) -> Vec<Record> {
        let told = |scene| match scene {
            LogItem::Told(told) => Some(told.record),
            _ => None,
        };
        log_items(self.file()).unwrap().filter_map(|scene| told(scene.unwrap())).collect()
    }

    /// The session as another process goes on with it.
    pub(crate) fn resume(&self, engine: &Engine) -> Session {
        let loaded = load(self.file(), LogEnd::End).unwrap();
        let log = LogWriter::resume(&self.paths, self.header(), &loaded, LogOptions::default()).unwrap();
        let mut recall = Recall::new(engine.working_directory().to_owned());
        loaded.records.into_iter().for_each(|record| recall.take(record));
        engine.resume(SEED, recall.finish(), Some(self.log(log)))
    }

    /// Plays the whole log again.
    #[track_caller]
    pub(crate) fn play(&self, engine: &Engine) -> Played {
        let mut played = Played { replay: engine.replay(), records: Vec::new(), updates: Vec::new() };
        let mut is_damaged = false;
        for scene in log_items(self.file()).unwrap() {
            match scene.unwrap() {
                LogItem::Opened { offset, .. } => {
                    is_damaged = false;
                    let mut recall = Recall::new(engine.working_directory().to_owned());
                    let loaded = load(self.file(), LogEnd::Offset(offset)).unwrap();
                    loaded.records.into_iter().for_each(|record| recall.take(record));
                    played.replay.open(engine, recall.finish());
                }
                // What was cut off cannot be understood without its end.
                LogItem::Damaged(_) => is_damaged = true,
                LogItem::Told(told) if is_damaged => {
                    assert!(!matches!(told.record, Record::Heard(_)), "{told:?}");
                }
                LogItem::Told(told) => {
                    match played.replay.take(&told.record) {
                        Ok(updates) => played.updates.extend(updates),
                        Err(mismatch) => panic!("{mismatch}\nafter {:#?}", tail(&played.records)),
                    }
                    played.records.push(told.record);
                }
                LogItem::Marked(mark) => panic!("{mark:?}"),
            }
        }
        played
    }
}

/// The last few of a list.
fn tail(records: &[Record]) -> &[Record] {
    &records[records.len().saturating_sub(4)..]
}

/// A log that was played.
pub(crate) struct Played {
    pub(crate) replay: Replay,
    pub(crate) records: Vec<Record>,
    pub(crate) updates: Vec<Update>,
}

impl Played {
    pub(crate) fn has(&self, is_meant: impl Fn(&Record) -> bool) -> bool {
        self.records.iter().any(is_meant)
    }
}

/// Plays records of one process again; the number of the one that differs comes with it.
pub(crate) fn play_records(engine: &Engine, records: &[Record]) -> Result<Replay, (usize, Mismatch)> {
    let mut replay = engine.replay();
    for (place, record) in records.iter().enumerate() {
        replay.take(record).map_err(|mismatch| (place, mismatch))?;
    }
    Ok(replay)
}

/// What a run shows, without the pieces of blocks and the progress of tools.
pub(crate) async fn shown(run: impl futures_util::Stream<Item = Update>) -> Vec<Update> {
    let is_kept = |update: &Update| !matches!(update, Update::Delta { .. } | Update::ToolProgress { .. });
    run.filter(|update| std::future::ready(is_kept(update))).collect().await
}
