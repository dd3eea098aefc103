//! A project with real files, and a session whose calls change them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use windlass_ports::{AppendProgress, SessionLog as _};
use windlass_protocol::{
    AnswerBlock, Block, CallId, CallIntent, CallKind, Durability, FinishedCall, Message, MessageId, Origin,
    RawValue, Record, RequestId, SessionKey, SessionSeed, UserEntry,
};
use windlass_session::{
    Checkpoints, Header, LogEnd, LogOptions, LogWriter, PreImageTaker, RewindPlan, RewindPoint, RewindResult,
    SessionPaths, load,
};

pub(crate) const KEY: SessionSeed = SessionSeed(7);
const ID: &str = "00000000-0000-4000-8000-000000000007";

pub(crate) struct World {
    pub(crate) project: PathBuf,
    /// The session's own directory.
    pub(crate) home: PathBuf,
    pub(crate) checkpoints: Arc<Checkpoints>,
    log: Mutex<LogWriter>,
    /// Whether the disk is waited for.
    pub(crate) sync: bool,
    calls: u32,
    messages: u64,
    _directory: TempDir,
}

/// A session that is opened by another process, as far as it can tell.
fn open(home: &Path) -> (Arc<Checkpoints>, Mutex<LogWriter>) {
    let paths = paths(home);
    let checkpoints = Arc::new(Checkpoints::new(&paths, SessionKey::from(KEY)));
    let keeper: Arc<dyn PreImageTaker> = Arc::<Checkpoints>::clone(&checkpoints);
    let options = LogOptions { pre_images: Some(keeper), ..LogOptions::default() };
    let header = Arc::new(Header::new(KEY, home, 0));
    let log = match load(paths.file(), LogEnd::End) {
        Ok(loaded) => LogWriter::resume(&paths, header, &loaded, options).unwrap(),
        Err(_) => LogWriter::create(&paths, header, options),
    };
    (checkpoints, Mutex::new(log))
}

/// The places of the session with this directory.
pub(crate) fn paths(home: &Path) -> SessionPaths {
    SessionPaths::of_file(home.with_extension("jsonl")).unwrap()
}

/// Path, content, mode of everything below a directory; directories end in a slash.
pub(crate) type Tree = BTreeMap<PathBuf, (Vec<u8>, u32)>;

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (project, home) = (root.join("project"), root.join(ID));
        fs::create_dir(&project).unwrap();
        let (checkpoints, log) = open(&home);
        Self { project, home, checkpoints, log, sync: false, calls: 0, messages: 0, _directory: directory }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.project.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The session is left and opened again.
    pub(crate) fn reopen(&mut self) {
        let home = self.home.clone();
        self.move_to(&home);
    }

    /// The session goes on as the one with this directory.
    pub(crate) fn move_to(&mut self, home: &Path) {
        (self.checkpoints, self.log) = open(home);
    }

    /// Records are written, as in a run.
    pub(crate) fn take_note(&self, records: &[Record]) {
        let durability = if self.sync { Durability::Synced } else { Durability::Written };
        let now = |progress| match progress {
            AppendProgress::Now(done) => Result::unwrap(done),
            AppendProgress::Later(_) => panic!("there is no runtime"),
        };
        let mut log = self.log.lock().unwrap();
        now(log.take_checkpoints(records, durability));
        now(log.append(records, durability));
    }

    /// Somebody says something.
    pub(crate) fn says(&mut self, text: &str) -> RewindPoint {
        self.messages += 1;
        let id = MessageId(self.messages);
        let message = Message::user(id, Origin::Prompt, vec![Block::text(text)]);
        self.take_note(&[Record::Said(UserEntry::plain(Arc::new(message)))]);
        RewindPoint::Prompt(KEY.message_uuid(id))
    }

    /// A call begins; its id is returned.
    pub(crate) fn begins(&mut self, kind: CallKind, about: &str, changes: &[PathBuf]) -> Arc<str> {
        self.calls += 1;
        let id: Arc<str> = format!("toolu_{}", self.calls).into();
        let input = RawValue::from_string(serde_json::json!({ "command": about }).to_string()).unwrap();
        let asked = AnswerBlock {
            id: MessageId(1_000_000 + u64::from(self.calls)),
            request: RequestId(1),
            message_id: "msg".into(),
            model: "m".into(),
            answered_by: "m".into(),
            index: 0,
            block: Block::tool_use(&id, "Tool", input),
            usage: None,
            is_aborted: false,
        };
        let intended = CallIntent {
            call: CallId(self.calls),
            tool_use_id: Arc::clone(&id),
            tool: if kind == CallKind::Execute { "Bash".into() } else { "Edit".into() },
            kind,
            input_hash: 0,
            changes: changes.to_vec(),
        };
        self.take_note(&[Record::Answered(asked)]);
        self.take_note(&[Record::Intended(intended)]);
        id
    }

    pub(crate) fn ends(&self, id: &Arc<str>) {
        let finished = Record::Finished(FinishedCall {
            call: CallId(self.calls),
            tool_use_id: Arc::clone(id),
            is_error: false,
        });
        assert!(self.checkpoints.touches_disk(std::slice::from_ref(&finished)));
        self.take_note(&[finished]);
    }

    /// A call that edits one file.
    pub(crate) fn edits(&mut self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        let id = self.begins(CallKind::Edit, "", std::slice::from_ref(&path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.ends(&id);
    }

    /// A command that is known to change these paths.
    pub(crate) fn runs(&mut self, command: &str, changes: &[&str]) {
        let changes: Vec<PathBuf> = changes.iter().map(|name| self.path(name)).collect();
        let id = self.begins(CallKind::Execute, command, &changes);
        let status = Command::new("bash").args(["-c", command]).current_dir(&self.project).status().unwrap();
        assert!(status.success(), "{command}");
        self.ends(&id);
    }

    pub(crate) fn plans(&self, to: RewindPoint) -> RewindPlan {
        self.checkpoints.plan(to).unwrap()
    }

    /// Goes back; a plan made afterwards has nothing left to do.
    pub(crate) fn rewinds(&self, to: RewindPoint) -> RewindResult {
        let plan = self.plans(to);
        let before = self.tree();
        let dry = self.checkpoints.plan(to).unwrap();
        assert_eq!(self.tree(), before, "planning changes nothing");
        assert_eq!(dry.changes.len(), plan.changes.len());
        let rewound = self.checkpoints.apply(&plan).unwrap();
        if rewound.failed.is_empty() && to != RewindPoint::Undo {
            let left: Vec<_> = self.plans(to).changes.into_iter().map(|change| change.path).collect();
            assert_eq!(left, Vec::<PathBuf>::new(), "nothing is left to do");
        }
        rewound
    }

    /// Everything in the project.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut pending = vec![self.project.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let name = path.strip_prefix(&self.project).unwrap().to_owned();
                let mode = meta.permissions().mode() & 0o7777;
                if meta.is_dir() {
                    tree.insert(name.join(""), (Vec::new(), mode));
                    pending.push(path);
                } else if meta.is_symlink() {
                    let target = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
                    tree.insert(name, (target, 0));
                } else {
                    tree.insert(name, (fs::read(&path).unwrap(), mode));
                }
            }
        }
        tree
    }
}
