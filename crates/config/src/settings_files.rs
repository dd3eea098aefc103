//! Settings files: where they are, what they say together, and where each value comes from.
//!
//! [`SettingsFiles::read`] keeps what is valid; after the decision about trust ([`TrustStore`]), [`SettingsFiles::effective`]
//! makes one set of settings. Untrusted, what came with a project and would act is left out; what forbids holds at once.

mod change;
mod check;
mod effective;
mod file_settings;
mod json;
mod keys;
mod locations;
mod named_files;
mod origin;
mod parts;
mod problem;
mod read;
mod reports;
mod schema;
mod settings_record;
mod show;
mod tree;
mod trust;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::shared_file::is_missing;
pub use change::{ChangeError, SavedChange, update_settings};
pub use effective::EffectiveSettings;
pub use file_settings::{FileSettings, HookGroup, PermissionSettings, SandboxSettings};
pub use locations::SettingsPlaces;
pub use origin::{SettingOrigin, SettingsLevel, SourcedValue};
pub use parts::{PartContent, ProjectPart, ProjectParts};
pub use problem::{SettingsProblem, Severity};
pub use reports::ReportStore;
pub use schema::{setting_names, settings_page, settings_schema};
pub use settings_record::RecordedSettings;
pub use show::{ShownValue, show};
pub use trust::{
    HookFileChange, PartChanges, TrustAgreement, TrustAnswer, TrustRequest, TrustState, TrustStore,
    TrustedProject,
};

use check::CheckedFile;
use tree::SettingsTree;

/// A file that `--settings` names may be larger than others.
const FLAG_BYTES_MAX: u64 = 2 * read::BYTES_MAX;

/// Whose settings and memory files are read beside the administrator's: `--setting-sources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingSources {
    /// The user's.
    pub user: bool,
    /// The project's.
    pub project: bool,
    /// The user's for this project.
    pub local: bool,
    /// Whether the flag was given: naming the project there is a word of trust.
    pub stated: bool,
}

impl Default for SettingSources {
    fn default() -> Self {
        Self { user: true, project: true, local: true, stated: false }
    }
}

impl SettingSources {
    /// Reads the flag: names separated by commas; nothing for none.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut sources = Self { user: false, project: false, local: false, stated: true };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                other => {
                    let accepts = "give user, project and local, separated by commas";
                    return Err(ConfigError::flag("--setting-sources", other, accepts));
                }
            }
        }
        Ok(sources)
    }
}

/// Every settings file, read and checked.
pub struct SettingsFiles {
    /// Where the files were looked for.
    pub places: SettingsPlaces,
    /// Whose files count.
    pub sources: SettingSources,
    /// The weakest first.
    files: Vec<SettingsFile>,
    problems: Vec<SettingsProblem>,
}

/// One settings file, or JSON on the command line.
struct SettingsFile {
    source: SettingOrigin,
    text: String,
    /// What of it counts.
    tree: SettingsTree,
    /// Hooks that nothing may start without where hooks count.
    lost_hooks: Vec<SettingsProblem>,
}

impl SettingsFiles {
    /// Reads every file that counts. `flags` is what each `--settings` says, the weakest first: a path or JSON.
    pub fn read(places: SettingsPlaces, sources: SettingSources, flags: &[impl AsRef<str>]) -> Self {
        let mut files = Self { places, sources, files: Vec::new(), problems: Vec::new() };
        if sources.user {
            files.read_user();
        }
        if sources.project {
            files.read_project();
        }
        if sources.local {
            files.read_local();
        }
        for flag in flags {
            files.read_flag(flag.as_ref());
        }
        files.read_managed();
        files
    }

    /// The files that were read and hold, the weakest first, each with its level; no path for JSON on the command line.
    pub fn list(&self) -> impl Iterator<Item = (SettingsLevel, Option<&Path>)> {
        self.files.iter().map(|file| (file.source.level, file.source.file.as_deref()))
    }

    fn read_user(&mut self) {
        for folder in self.places.user.clone() {
            let anchor = || folder.canonicalize().unwrap_or_else(|_| folder.clone());
            self.read_file(&folder.join("settings.json"), SettingsLevel::User, anchor);
        }
    }

    fn read_project(&mut self) {
        let start = self.places.start.clone();
        for folder in locations::FOLDERS.map(|name| start.join(name)) {
            // Started at home, the project's folder is the user's.
            if !self.places.is_users(&folder) {
                self.read_file(&folder.join("settings.json"), SettingsLevel::Project, || start.clone());
            }
        }
    }

    fn read_local(&mut self) {
        let start = self.places.start.clone();
        let local = self.places.local().to_owned();
        let mut directories = vec![start.clone(), local];
        directories.dedup();
        for directory in directories {
            for folder in locations::FOLDERS {
                let file = directory.join(folder).join("settings.local.json");
                self.read_file(&file, SettingsLevel::Local, || start.clone());
            }
        }
    }

    fn read_managed(&mut self) {
        let start = self.places.start.clone();
        for folder in self.places.managed.clone() {
            self.read_file(&folder.join("managed-settings.json"), SettingsLevel::Managed, || start.clone());
            let parts = folder.join("managed-settings.d");
            match names(&parts) {
                Ok(names) => {
                    for name in names {
                        self.read_file(&parts.join(name), SettingsLevel::Managed, || start.clone());
                    }
                }
                Err(problem) => self.unusable(&parts, problem),
            }
        }
    }

    fn read_flag(&mut self, flag: &str) {
        let start = self.places.start.clone();
        if flag.trim_start().starts_with('{') {
            self.add(flag.to_owned(), SettingOrigin::of_file(SettingsLevel::Flags, None, start, false));
            return;
        }
        let file = start.join(flag);
        if !self.read_file(&file, SettingsLevel::Flags, || file.parent().unwrap_or(&start).to_owned()) {
            let advice = "Give --settings the path of a file that exists, or JSON in braces.";
            let what = "it does not exist".into();
            self.problems.push(SettingsProblem::with_file(&file, Severity::Fatal, what, advice));
        }
    }

    /// Project settings above the start directory: they are not read.
    pub fn unread(&self) -> Vec<SettingsProblem> {
        let start = self.places.start.display();
        let problem = |file: PathBuf| {
            let directory = file.ancestors().nth(2).unwrap_or(&file).display();
            let what = format!("not read: windlass started in {start}");
            let advice = format!("Start it in {directory} to use these settings.");
            SettingsProblem::with_file(&file, Severity::Notice, what, &advice)
        };
        let unread = if self.sources.project { self.places.unread() } else { Vec::new() };
        unread.into_iter().map(problem).collect()
    }

    /// Says whether there is such a file. `anchor`, where its relative paths start, is asked only then.
    fn read_file(&mut self, file: &Path, level: SettingsLevel, anchor: impl FnOnce() -> PathBuf) -> bool {
        let bytes_max = if level == SettingsLevel::Flags { FLAG_BYTES_MAX } else { read::BYTES_MAX };
        match read::read(file, bytes_max) {
            Ok(None) => return false,
            Ok(Some(text)) => {
                let foreign = level == SettingsLevel::Project
                    || (level == SettingsLevel::Local && self.places.is_foreign(file));
                self.add(text, SettingOrigin::of_file(level, Some(file.into()), anchor(), foreign));
            }
            Err(problem) => self.unusable(file, problem),
        }
        true
    }

    fn add(&mut self, text: String, source: SettingOrigin) {
        match json::parse(&text) {
            Ok(node) => {
                let CheckedFile { mut tree, problems, lost_hooks } = check::check(&node, &source);
                self.problems.extend(problems);
                check::enforce(&mut tree, &source, &mut self.problems);
                self.files.push(SettingsFile { source, text, tree, lost_hooks });
            }
            Err(broken) => {
                let origin = source.at(broken.at);
                self.problems.push(SettingsProblem::at(&origin, Severity::Fatal, broken.what, broken.advice));
            }
        }
    }

    fn unusable(&mut self, file: &Path, problem: String) {
        let advice = "Correct the file or move it away: nothing starts while its rules cannot be known.";
        self.problems.push(SettingsProblem::with_file(file, Severity::Fatal, problem, advice));
    }
}

/// The names of the files that make up one folder of managed settings, in their order.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read it ({error})")),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| format!("cannot read it ({error})"))?.file_name();
        let is_settings = Path::new(&name).extension() == Some(OsStr::new("json"));
        if is_settings && !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}
