//! Which notices about settings files were reported, so that each is reported once per change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::SettingsFiles;
use super::parts::hash;
use super::problem::SettingsProblem;
use super::trust::member;
use crate::SharedFile;

/// As many states of files are remembered; the oldest is forgotten first.
const STATES_MAX: usize = 500;

const REPORTED: &str = "reported";

/// The file that remembers what was reported, by content hash.
#[derive(Clone, Debug)]
pub struct ReportStore {
    file: SharedFile,
}

impl ReportStore {
    /// The one in our home.
    pub fn new(home: &Path) -> Self {
        Self { file: SharedFile::new(home.join("reported.json")) }
    }

    /// The problems of files that changed since they were reported; they count as reported now. A memory that cannot be
    /// read or written is no error: they are reported once more. Without problems nothing is read.
    pub fn take_unreported<'a>(
        &self,
        files: &SettingsFiles,
        problems: &'a [SettingsProblem],
    ) -> Vec<&'a SettingsProblem> {
        let mut by_file: BTreeMap<Option<&Path>, Vec<&SettingsProblem>> = BTreeMap::new();
        for problem in problems {
            by_file.entry(problem.file.as_deref()).or_default().push(problem);
        }
        let states = by_file.into_iter().map(|(file, problems)| (files.state(file, &problems), problems));
        self.take_new(states).into_iter().flatten().collect()
    }

    /// The notices that were not reported yet; they count as reported now. Without notices nothing is read.
    pub fn take_unreported_notices(&self, notices: Vec<String>) -> Vec<String> {
        self.take_new(notices.into_iter().map(|notice| (hash(notice.as_bytes()), notice)))
    }

    /// What belongs to states that are not remembered. They are from now on.
    fn take_new<T>(&self, states: impl ExactSizeIterator<Item = (String, T)>) -> Vec<T> {
        if states.len() == 0 {
            return Vec::new();
        }
        let known = self.file.read().unwrap_or_default();
        let is_known = |state: &String| list(&known).iter().any(|known| known == state);
        let (states, new): (Vec<String>, Vec<T>) = states.filter(|(state, _)| !is_known(state)).unzip();
        if !states.is_empty() {
            let _ = self.file.update(|json| remember(json, states));
        }
        new
    }
}

impl SettingsFiles {
    /// What a file says and what is wrong with it, as one hash.
    fn state(&self, file: Option<&Path>, problems: &[&SettingsProblem]) -> String {
        let mut all = String::new();
        for read in self.files.iter().filter(|read| read.source.file.as_deref() == file) {
            all.push_str(&read.text);
        }
        for problem in problems {
            // Writing to a string cannot fail.
            let _ = write!(all, "\n{problem}");
        }
        hash(all.as_bytes())
    }
}

fn list(json: &Value) -> &[Value] {
    json[REPORTED].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn remember(json: &mut Value, states: Vec<String>) {
    let mut all = list(json).to_vec();
    all.extend(states.into_iter().map(Value::from));
    let all = all.split_off(all.len().saturating_sub(STATES_MAX));
    *member(json, REPORTED) = all.into();
}
