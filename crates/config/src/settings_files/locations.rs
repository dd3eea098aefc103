//! Where settings files are looked for.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_git::WorkTree;

use crate::{Home, ProcessContext};

/// The folders that hold settings, at each place. The later one wins where only one value can hold.
pub(crate) const FOLDERS: [&str; 2] = [".claude", ".windlass"];

/// Where the administrator keeps settings for this program alone.
const OWN_MANAGED: &str = "/etc/windlass";

/// Where settings files are looked for.
#[derive(Clone, Debug)]
pub struct SettingsPlaces {
    /// Folders of the administrator; the later one wins.
    pub managed: Vec<PathBuf>,
    /// Folders of the user; the later one wins.
    pub user: Vec<PathBuf>,
    /// The home of the user.
    pub home: Option<PathBuf>,
    /// Where the process was started, resolved.
    pub start: PathBuf,
    /// The user's list of files that git ignores everywhere.
    pub git_ignore: Option<PathBuf>,
    pub(crate) repository: Option<WorkTree>,
}

impl SettingsPlaces {
    /// Follows from where the process runs.
    pub fn new(place: &ProcessContext, home: &Home) -> Self {
        let start = place.cwd.canonicalize().unwrap_or_else(|_| place.cwd.clone());
        // A relative one would be a folder of the project.
        let managed =
            [place.managed.clone(), OWN_MANAGED.into()].into_iter().filter(|folder| folder.is_absolute());
        Self {
            managed: managed.collect(),
            user: home.user_directories.clone(),
            home: place.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone())),
            git_ignore: place.home.as_ref().map(|home| home.join(".config/git/ignore")),
            repository: WorkTree::around(&start),
            start,
        }
    }

    /// Follows `XDG_CONFIG_HOME`, as git does.
    #[must_use]
    pub fn with_config_home(self, config: Option<PathBuf>) -> Self {
        match config.filter(|config| config.is_absolute()) {
            Some(config) => Self { git_ignore: Some(config.join("git/ignore")), ..self },
            None => self,
        }
    }

    /// The top of the repository around the start directory, or the start directory itself: what is trusted or not.
    pub fn root(&self) -> &Path {
        self.repository.as_ref().map_or(&self.start, |repository| &repository.top)
    }

    /// The directory whose folders hold local settings: the top of the repository, of the main work tree for a linked one.
    /// The start directory outside of a repository, and where the top is the whole home or belongs to another user.
    pub fn local(&self) -> &Path {
        let Some(repository) = &self.repository else { return &self.start };
        let top = repository.main.as_ref().map_or(&repository.top, |main| &main.top);
        if is_ours(top) && !self.is_home(top) { top } else { &self.start }
    }

    /// Project settings above the start directory, up to the top, the nearest first: they are not read.
    pub(crate) fn unread(&self) -> Vec<PathBuf> {
        let top = self.root();
        let above = self.start.ancestors().skip(1).take_while(|directory| directory.starts_with(top));
        let folders = above.flat_map(|directory| FOLDERS.map(|name| directory.join(name)));
        let files = folders.filter(|folder| folder.is_dir() && !self.is_users(folder));
        files.map(|folder| folder.join("settings.json")).filter(|file| file.is_file()).collect()
    }

    /// Whether a folder is one of those that hold the user's settings, by whatever name.
    pub(crate) fn is_users(&self, folder: &Path) -> bool {
        let Some(object) = object(folder) else { return false };
        self.user.iter().any(|user| self::object(user) == Some(object))
    }

    /// Whether a directory is the user's home.
    pub fn is_home(&self, directory: &Path) -> bool {
        self.home.as_deref() == Some(directory)
    }

    /// Whether git can tell what is the user's own and what came with the project.
    pub fn has_repository(&self) -> bool {
        self.repository.is_some()
    }

    /// Whether a local settings file may be another's: without a repository, any not in the user's folder.
    pub(crate) fn is_foreign(&self, file: &Path) -> bool {
        let is_users = file.parent().is_some_and(|folder| self.is_users(folder));
        self.is_anothers(file) || (self.repository.is_none() && !is_users)
    }

    /// Whether a local settings file came with the repository, is behind a link, or belongs to another user.
    pub(crate) fn is_anothers(&self, file: &Path) -> bool {
        is_behind_link(file)
            || !is_ours(file)
            || self.repository.as_ref().is_some_and(|repository| repository.tracks(file))
    }
}

pub(crate) fn is_behind_link(file: &Path) -> bool {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    is_link(file) || file.parent().is_some_and(is_link)
}

/// What tells an object from every other, however it is named; nothing if it is not there.
fn object(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether a file belongs to whoever we run as.
fn is_ours(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}
