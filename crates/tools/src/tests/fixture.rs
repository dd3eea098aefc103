//! Real files in a directory of their own, for tests.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_ports::{ExamineContext, ToolContext};
use windlass_protocol::ToolOutput;

use crate::fingerprint::seen_file;

pub(crate) struct Fixture {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Fixture {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self { _dir: dir, root }
    }

    pub(crate) fn one(name: &str, content: &[u8]) -> Self {
        Self::new(&[(name, content)])
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// A context in which these files have been seen whole, as they are now.
    pub(crate) fn context(&self, seen: &[&str]) -> ToolContext {
        let mut cx = ToolContext::detached(self.root.clone());
        cx.seen = seen.iter().map(|name| seen_file(&self.path(name), true).unwrap()).collect();
        cx
    }

    pub(crate) fn examine(&self) -> ExamineContext {
        ExamineContext::new(self.root.clone(), [self.root.clone()].into())
    }
}

/// All text of an outcome.
pub(crate) fn text(outcome: &ToolOutput) -> String {
    outcome.content.iter().filter_map(|block| block.as_text()).collect()
}

/// The structured form of an outcome.
pub(crate) fn structured(outcome: &ToolOutput) -> serde_json::Value {
    serde_json::from_str(outcome.structured.as_ref().unwrap().0.get()).unwrap()
}
