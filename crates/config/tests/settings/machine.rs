//! A machine to try settings on: a home, the administrator's folders and a project `work/app`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use windlass_config::{
    Home, ProcessContext, SettingSources, Settings, SettingsFiles, SettingsPlaces, SettingsProblem,
};

pub(crate) struct Machine {
    directory: tempfile::TempDir,
    start: String,
}

impl Machine {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap(), start: "work/app".into() };
        for folder in ["work/app", "home"] {
            std::fs::create_dir_all(machine.path(folder)).unwrap();
        }
        for (name, content) in files {
            machine.write(name, content);
        }
        machine
    }

    pub(crate) fn started_in(mut self, start: &str) -> Self {
        start.clone_into(&mut self.start);
        self
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap().to_str().unwrap().to_owned()
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(&Settings::default().home, &self.place())
    }

    pub(crate) fn place(&self) -> ProcessContext {
        ProcessContext {
            cwd: self.path(&self.start),
            is_root: false,
            home: Some(self.path("home")),
            managed: self.path("etc/claude-code"),
        }
    }

    pub(crate) fn places(&self) -> SettingsPlaces {
        let mut places = SettingsPlaces::new(&self.place(), &self.home());
        places.managed[1] = self.path("etc/windlass");
        places
    }

    pub(crate) fn read(&self, flag: Option<&str>) -> SettingsFiles {
        self.read_from(SettingSources::default(), flag)
    }

    pub(crate) fn read_from(&self, sources: SettingSources, flag: Option<&str>) -> SettingsFiles {
        SettingsFiles::read(self.places(), sources, flag.as_slice())
    }

    /// git, told nothing by this machine.
    #[track_caller]
    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) {
        let identity = ["user.name=a", "user.email=a@example.org", "commit.gpgSign=false"];
        let status = Command::new("git")
            .args(identity.iter().flat_map(|pair| ["-c", pair]))
            .args(arguments)
            .current_dir(self.path(directory))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env_remove("GIT_DIR")
            .env_remove("GIT_INDEX_FILE")
            .output()
            .unwrap();
        assert!(status.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
    }

    pub(crate) fn init_git(&self, directory: &str) {
        self.git(directory, &["init", "--quiet"]);
    }

    /// Everything that holds, as one object.
    pub(crate) fn merged(&self) -> Value {
        let effective = self.read(None).effective(true);
        let mut merged = Value::Null;
        for shown in windlass_config::show(&effective) {
            let value: Value = serde_json::from_str(&shown.value_json).unwrap();
            put(&mut merged, &shown.key, value);
        }
        merged
    }

    /// What is wrong, with paths as this machine knows them.
    #[track_caller]
    pub(crate) fn check_problems(&self, problems: &[SettingsProblem], expected: &[&str]) {
        let root = format!("{}/", self.path("").display().to_string().trim_end_matches('/'));
        let seen: Vec<String> =
            problems.iter().map(|problem| problem.to_string().replacen(&root, "", 1)).collect();
        assert_eq!(seen, expected);
    }
}

/// Puts a value where a name such as `a.b[1]` says.
fn put(into: &mut Value, key: &str, value: Value) {
    let pieces = key.split('.').flat_map(|piece| piece.split('[')).filter(|piece| !piece.is_empty());
    let mut place = into;
    for piece in pieces {
        place = match piece.strip_suffix(']') {
            None => &mut place[piece],
            Some(position) => {
                if place.is_null() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut().unwrap();
                assert_eq!(list.len(), position.parse::<usize>().unwrap());
                list.push(Value::Null);
                list.last_mut().unwrap()
            }
        };
    }
    *place = value;
}
