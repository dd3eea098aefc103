//! Changing settings files: permission rules, the mode, working directories. Each change is whole, none lost.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::retry_on_intr;
use serde_json::{Map, Value};
use windlass_protocol::{PermissionChange, PermissionUpdate, SettingsDestination};

use super::locations::{FOLDERS, SettingsPlaces, is_behind_link};
use super::{json, read};
use crate::{SharedFile, SharedFileError};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedChange {
    /// The file that was meant.
    pub file: PathBuf,
    /// What the user should know about it.
    pub notice: Option<String>,
}

/// Why a settings file was not changed. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] SharedFileError),
    /// There is no place for it.
    #[error("no home directory to save settings in. Set WINDLASS_HOME to a directory.")]
    NoHome,
    /// The change cannot be made in this file, or not without losing something.
    #[error("{0}")]
    Refused(String),
}

/// Changes a settings file. `edit` is given what it says now; when it fails, nothing is written.
pub fn update_settings<T>(
    file: &Path,
    edit: impl FnOnce(&mut Map<String, Value>) -> Result<T, String>,
) -> Result<T, ChangeError> {
    let shape = |problem: String| {
        let file = file.display();
        ChangeError::Refused(format!("{file}: {problem}. Correct the file; nothing was changed."))
    };
    let changed = SharedFile::new(file).leaving_no_lock().update(|json| {
        check_doubles(file)?;
        let before = json.clone();
        let members = json.as_object_mut().ok_or("settings must be an object")?;
        let done = edit(members);
        if done.is_err() {
            *json = before;
        }
        done
    })?;
    changed.map_err(shape)
}

/// Of a name that is there twice only one value would be written again, and the other may forbid something.
fn check_doubles(file: &Path) -> Result<(), String> {
    let text = read::read(file, read::BYTES_MAX)?.unwrap_or_default();
    let node = json::parse(&text).map_err(|broken| broken.what)?;
    match node.repeated_names().first() {
        Some((name, at)) => Err(format!("`{name}` appears twice (line {})", at.line)),
        None => Ok(()),
    }
}

impl SettingsPlaces {
    /// Keeps a change of the permissions in the files it is to go to; nothing is written for one that ends with the session.
    pub fn keep(&self, update: &PermissionUpdate) -> Result<Option<SavedChange>, ChangeError> {
        let PermissionUpdate { change, destination } = update;
        let destination = *destination;
        if destination == SettingsDestination::Session {
            return Ok(None);
        }
        if let PermissionChange::SetMode(mode) = change {
            check_mode(mode, destination)?;
        }
        let file = self.file_for(destination)?;
        self.check_own(destination, &file)?;
        let is_new = !file.exists();
        let elsewhere = self.change_others(destination, &file, change)?;
        if is_new && only_takes_away(change) {
            return Ok(Some(SavedChange { file, notice: elsewhere }));
        }
        update_settings(&file, |settings| apply(change, settings))?;
        let in_repository = destination == SettingsDestination::Local && self.repository.is_some();
        let notice = if in_repository && is_new && file.exists() { self.keep_out_of_git() } else { None };
        Ok(Some(SavedChange { file, notice: elsewhere.or(notice) }))
    }

    /// Removes entries from the destination's other files. The reference's user settings only get a notice.
    fn change_others(
        &self,
        destination: SettingsDestination,
        file: &Path,
        change: &PermissionChange,
    ) -> Result<Option<String>, ChangeError> {
        let Some(rest) = elsewhere(change) else { return Ok(None) };
        let mut notice = None;
        for other in self.all_files(destination).into_iter().filter(|other| other != file && other.exists()) {
            if destination != SettingsDestination::User {
                self.check_own(destination, &other)?;
                update_settings(&other, |settings| apply(&rest, settings))?;
                continue;
            }
            let before = SharedFile::new(&other).read()?;
            let mut after = before.clone();
            let applied = after.as_object_mut().map(|settings| apply(&rest, settings));
            if matches!(applied, Some(Ok(()))) && after != before {
                notice =
                    Some(format!("part of it is also in {}; change that file yourself.", other.display()));
            }
        }
        Ok(notice)
    }

    /// The file that new entries go to: in our own folder, unless there is only the other.
    fn file_for(&self, destination: SettingsDestination) -> Result<PathBuf, ChangeError> {
        let has_folder = |file: &Path| file.parent().is_some_and(Path::exists);
        match &*self.all_files(destination) {
            [theirs, ours, ..] if destination != SettingsDestination::User => {
                let is_only = has_folder(theirs) && !has_folder(ours);
                Ok(if is_only { theirs.clone() } else { ours.clone() })
            }
            [.., own] => Ok(own.clone()),
            [] => Err(ChangeError::NoHome),
        }
    }

    /// Every file that a destination is read from.
    fn all_files(&self, destination: SettingsDestination) -> Vec<PathBuf> {
        let below = |directory: &Path, name: &str| FOLDERS.map(|folder| directory.join(folder).join(name));
        match destination {
            SettingsDestination::Session => Vec::new(),
            SettingsDestination::User => self.user.iter().map(|path| path.join("settings.json")).collect(),
            SettingsDestination::Project => below(&self.start, "settings.json").into(),
            SettingsDestination::Local => {
                let name = "settings.local.json";
                [below(self.local(), name), below(&self.start, name)].concat()
            }
        }
    }

    /// A file behind a link of the project may be anywhere, and rules in a file that came with it wait for trust.
    fn check_own(&self, destination: SettingsDestination, file: &Path) -> Result<(), ChangeError> {
        let behind_link = is_behind_link(file);
        let refused = match destination {
            SettingsDestination::Session | SettingsDestination::User => None,
            SettingsDestination::Project => behind_link.then_some("Replace the symlink with a file."),
            SettingsDestination::Local => (behind_link || (file.exists() && self.is_anothers(file)))
                .then_some("Remove it from git, or replace the symlink with a file."),
        };
        let Some(advice) = refused else { return Ok(()) };
        let file = file.display();
        let what = format!("{file} belongs to the project or is behind a symlink. {advice}");
        Err(ChangeError::Refused(what))
    }

    /// Has git ignore local settings everywhere; the notice names the changed file, or the failure.
    fn keep_out_of_git(&self) -> Option<String> {
        let file = self.git_ignore.as_deref()?;
        let names = FOLDERS.map(|folder| format!("**/{folder}/settings.local.json"));
        match exclude(file, &names) {
            Ok(false) => None,
            Ok(true) => Some(format!(
                "Added {} to {}, so that git ignores local settings.",
                names.join(" and "),
                file.display()
            )),
            Err(error) => Some(format!(
                "saved local settings, but git does not ignore them: cannot change {}: {error}.",
                file.display()
            )),
        }
    }
}

fn check_mode(mode: &str, destination: SettingsDestination) -> Result<(), ChangeError> {
    let refused = match (mode, destination) {
        ("bypassPermissions", _) => Some("settings"),
        ("auto", SettingsDestination::Local | SettingsDestination::Project) => Some("files of a repository"),
        _ => None,
    };
    let Some(what) = refused else { return Ok(()) };
    Err(ChangeError::Refused(format!("the mode {mode} cannot be saved in {what}. Use --permission-mode.")))
}

/// What has to happen in the other files that are read with the one that is meant.
fn elsewhere(change: &PermissionChange) -> Option<PermissionChange> {
    match change {
        PermissionChange::RemoveRules(..) | PermissionChange::RemoveDirectories(_) => Some(change.clone()),
        PermissionChange::ReplaceRules(behaviour, _) => {
            Some(PermissionChange::ReplaceRules(*behaviour, Vec::new()))
        }
        PermissionChange::AddRules(..)
        | PermissionChange::SetMode(_)
        | PermissionChange::AddDirectories(_) => None,
    }
}

fn only_takes_away(change: &PermissionChange) -> bool {
    match change {
        PermissionChange::RemoveRules(..) | PermissionChange::RemoveDirectories(_) => true,
        PermissionChange::AddRules(_, rules) | PermissionChange::ReplaceRules(_, rules) => rules.is_empty(),
        PermissionChange::AddDirectories(added) => added.is_empty(),
        PermissionChange::SetMode(_) => false,
    }
}

fn apply(change: &PermissionChange, settings: &mut Map<String, Value>) -> Result<(), String> {
    const DIRECTORIES: &str = "additionalDirectories";
    match change {
        PermissionChange::AddRules(behaviour, rules) => add(settings, behaviour.name(), rules),
        PermissionChange::RemoveRules(behaviour, rules) => remove(settings, behaviour.name(), rules),
        PermissionChange::AddDirectories(paths) => add(settings, DIRECTORIES, &names(paths)),
        PermissionChange::RemoveDirectories(paths) => remove(settings, DIRECTORIES, &names(paths)),
        PermissionChange::ReplaceRules(behaviour, rules) => {
            if let Some(list) = list(settings, behaviour.name(), !rules.is_empty())? {
                list.clear();
            }
            add(settings, behaviour.name(), rules)
        }
        PermissionChange::SetMode(mode) => {
            if let Some(permissions) = permissions(settings, true)? {
                permissions.insert("defaultMode".into(), mode.as_str().into());
            }
            Ok(())
        }
    }
}

fn names(directories: &[PathBuf]) -> Vec<String> {
    directories.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn add(settings: &mut Map<String, Value>, name: &str, texts: &[String]) -> Result<(), String> {
    let Some(list) = list(settings, name, !texts.is_empty())? else { return Ok(()) };
    for text in texts {
        if !list.iter().any(|there| there == text) {
            list.push(text.as_str().into());
        }
    }
    Ok(())
}

fn remove(settings: &mut Map<String, Value>, name: &str, texts: &[String]) -> Result<(), String> {
    if let Some(list) = list(settings, name, false)? {
        list.retain(|there| !texts.iter().any(|text| there == text));
    }
    Ok(())
}

/// A list in the group of permissions; a new one only if it is wanted.
fn list<'a>(
    settings: &'a mut Map<String, Value>,
    name: &str,
    is_wanted: bool,
) -> Result<Option<&'a mut Vec<Value>>, String> {
    let Some(permissions) = permissions(settings, is_wanted)? else { return Ok(None) };
    if !is_wanted && !permissions.contains_key(name) {
        return Ok(None);
    }
    let list = permissions.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    list.as_array_mut().map(Some).ok_or_else(|| format!("`permissions.{name}` must be a list"))
}

fn permissions(
    settings: &mut Map<String, Value>,
    is_wanted: bool,
) -> Result<Option<&mut Map<String, Value>>, String> {
    if !is_wanted && !settings.contains_key("permissions") {
        return Ok(None);
    }
    let group = settings.entry("permissions").or_insert_with(|| Value::Object(Map::new()));
    group.as_object_mut().map(Some).ok_or_else(|| "`permissions` must be an object".to_owned())
}

/// A longer list of files that git ignores everywhere is not one.
const EXCLUDES_BYTES_MAX: u64 = 1024 * 1024;

/// Adds lines that are not there to the user's list of files that git ignores; says whether there were any. Several processes may do so at once.
fn exclude(file: &Path, lines: &[String]) -> io::Result<bool> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).create(folder)?;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(file, flags, Mode::from_raw_mode(0o644))?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Closing the file gives the lock back.
    retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))?;
    let mut bytes = Vec::new();
    (&mut file).take(EXCLUDES_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > EXCLUDES_BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let is_there =
        |line: &str| bytes.split(|byte| *byte == b'\n').any(|there| there.trim_ascii() == line.as_bytes());
    let missing: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !is_there(line)).collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let joint = if bytes.is_empty() || bytes.ends_with(b"\n") { "" } else { "\n" };
    file.write_all(format!("{joint}{}\n", missing.join("\n")).as_bytes())?;
    Ok(true)
}
