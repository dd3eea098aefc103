//! Which memory files are found, in which order, and what becomes of what they name.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::Path;

use windlass_config::{FileSettings, Flags, ProcessContext, RunConfig, SettingSources, Settings};

/// A machine with a home, an administrator's folder and a project `work/app`.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(machine.path("work/app")).unwrap();
        for (name, content) in files {
            let path = machine.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn place(&self) -> ProcessContext {
        ProcessContext {
            cwd: self.path("work/app"),
            is_root: false,
            home: Some(self.path("home")),
            managed: self.path("etc"),
        }
    }

    fn config(&self, variables: &[(&str, &str)]) -> RunConfig {
        let pairs = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        RunConfig::new(
            Settings::from_environment(pairs).unwrap(),
            &Flags::default(),
            &self.place(),
            FileSettings::default(),
        )
        .unwrap()
    }

    /// The files that were read, in order, and what they say.
    #[track_caller]
    fn check(&self, variables: &[(&str, &str)], expected: &[(&str, &str)]) {
        let config = self.config(variables);
        let seen: Vec<(&Path, &str)> =
            config.settings.run.memory.iter().map(|note| (note.path.as_path(), &*note.text)).collect();
        let expected: Vec<_> = expected.iter().map(|(name, text)| (self.path(name), *text)).collect();
        let expected: Vec<_> = expected.iter().map(|(path, text)| (path.as_path(), *text)).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn files_are_read_from_far_to_near() {
    let machine = Machine::new(&[
        ("etc/CLAUDE.md", "managed"),
        ("home/.claude/CLAUDE.md", "user"),
        ("elsewhere/CLAUDE.md", "other user"),
        ("work/CLAUDE.md", "above"),
        ("work/app/CLAUDE.md", "project"),
        ("work/app/.claude/CLAUDE.md", "folded"),
        ("work/app/CLAUDE.local.md", "local"),
        ("work/app/AGENTS.md", "agents"),
        ("work/app/sub/CLAUDE.md", "below"),
    ]);
    let project = [
        ("work/CLAUDE.md", "above"),
        ("work/app/CLAUDE.md", "project"),
        ("work/app/.claude/CLAUDE.md", "folded"),
        ("work/app/CLAUDE.local.md", "local"),
    ];
    let user = ("home/.claude/CLAUDE.md", "user");
    machine.check(&[], &[&[("etc/CLAUDE.md", "managed"), user][..], &project].concat());
    let elsewhere = machine.path("elsewhere");
    let moved = [("CLAUDE_CONFIG_DIR", elsewhere.to_str().unwrap())];
    let other = ("elsewhere/CLAUDE.md", "other user");
    machine.check(&moved, &[&[("etc/CLAUDE.md", "managed"), other][..], &project].concat());
    machine.check(&[("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")], &[]);
}

#[test]
fn files_that_fit_a_pattern_are_not_read_but_the_administrators_are() {
    let machine = Machine::new(&[
        ("etc/CLAUDE.md", "managed"),
        ("home/.claude/CLAUDE.md", "user"),
        ("work/CLAUDE.md", "above"),
        ("work/app/CLAUDE.md", "project\n@docs/more.md"),
        ("work/app/docs/more.md", "more"),
    ]);
    let check = |excludes: &[&str], expected: &[&str], warnings: usize| {
        let mut settings = Settings::default();
        settings.memory.excludes = excludes.iter().map(|&pattern| pattern.to_owned()).collect();
        let config =
            RunConfig::new(settings, &Flags::default(), &machine.place(), FileSettings::default()).unwrap();
        let seen: Vec<_> =
            config.settings.run.memory.iter().map(|note| note.text.lines().next().unwrap()).collect();
        assert_eq!(seen, expected, "{excludes:?}");
        assert_eq!(config.warnings.len(), warnings, "{:?}", config.warnings);
    };
    let above = machine.path("work/CLAUDE.md");
    check(&[], &["managed", "user", "above", "project", "more"], 0);
    check(&[above.to_str().unwrap()], &["managed", "user", "project", "more"], 0);
    check(&["**/CLAUDE.md"], &["managed"], 0);
    check(&["**/docs/*.md"], &["managed", "user", "above", "project"], 0);
    check(&["[", "**/docs/*.md"], &["managed", "user", "above", "project"], 1);
}

#[test]
fn each_source_brings_its_own_files() {
    let machine = Machine::new(&[
        ("etc/CLAUDE.md", "managed"),
        ("work/.claude/CLAUDE.md", "user"),
        ("work/.windlass/CLAUDE.md", "ours"),
        ("work/CLAUDE.md", "above"),
        ("work/CLAUDE.local.md", "local above"),
        ("work/app/CLAUDE.md", "project"),
        ("work/app/.claude/CLAUDE.md", "folded"),
        ("work/app/CLAUDE.local.md", "local"),
    ]);
    // The project is below the home of its user, whose files are not the project's for that.
    let place = ProcessContext { home: Some(machine.path("work")), ..machine.place() };
    let check = |sources: &str, expected: &[&str]| {
        let mut settings = Settings::default();
        settings.memory.sources = SettingSources::parse(sources).unwrap();
        let config = RunConfig::new(settings, &Flags::default(), &place, FileSettings::default()).unwrap();
        let seen: Vec<_> = config.settings.run.memory.iter().map(|note| &*note.text).collect();
        assert_eq!(seen, expected, "{sources:?}");
    };
    check("", &["managed"]);
    check("user", &["managed", "user", "ours"]);
    check("project", &["managed", "above", "project", "folded"]);
    check("local", &["managed", "local above", "local"]);
    check(
        "user,project,local",
        &["managed", "user", "ours", "above", "local above", "project", "folded", "local"],
    );
    for name in ["CLAUDE.md", "app/CLAUDE.md", "app/.claude/CLAUDE.md"] {
        std::fs::rename(machine.path(&format!("work/{name}")), machine.path("work/gone")).unwrap();
    }
    std::fs::write(machine.path("work/app/AGENTS.md"), "agents").unwrap();
    check("project", &["managed", "agents"]);
    check("user,local", &["managed", "user", "ours", "local above", "local"]);
}

#[test]
fn both_of_a_users_directories_are_read() {
    let machine = Machine::new(&[
        ("home/.claude/CLAUDE.md", "reference"),
        ("home/.windlass/CLAUDE.md", "ours"),
        ("elsewhere/CLAUDE.md", "elsewhere"),
    ]);
    let reference = ("home/.claude/CLAUDE.md", "reference");
    machine.check(&[], &[reference, ("home/.windlass/CLAUDE.md", "ours")]);
    let elsewhere = machine.path("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    machine.check(&[("WINDLASS_HOME", elsewhere)], &[reference, ("elsewhere/CLAUDE.md", "elsewhere")]);
    machine.check(&[("CLAUDE_AGENT_SDK_VERSION", "1")], &[reference]);
}

#[test]
fn files_for_agents_in_general_stand_in() {
    let machine = Machine::new(&[
        ("home/.claude/CLAUDE.md", "user"),
        ("work/AGENTS.md", "above"),
        ("work/app/.claude/AGENTS.md", "folded"),
    ]);
    let agents = [("work/AGENTS.md", "above"), ("work/app/.claude/AGENTS.md", "folded")];
    machine.check(&[], &[&[("home/.claude/CLAUDE.md", "user")][..], &agents].concat());
}

#[test]
fn what_a_file_names_is_read_behind_it() {
    let machine = Machine::new(&[
        ("home/.claude/CLAUDE.md", "see @~/far.md"),
        ("home/far.md", "far"),
        ("work/app/CLAUDE.md", "a @one.md b @two.md `@code.md` @none.md @CLAUDE.md"),
        ("work/app/one.md", "1 @deep/3.md"),
        ("work/app/deep/3.md", "3 @../two.md"),
        ("work/app/two.md", "2"),
        ("work/app/code.md", "code"),
    ]);
    machine.check(
        &[],
        &[
            ("home/.claude/CLAUDE.md", "see @~/far.md"),
            ("home/far.md", "far"),
            ("work/app/CLAUDE.md", "a @one.md b @two.md `@code.md` @none.md @CLAUDE.md"),
            ("work/app/one.md", "1 @deep/3.md"),
            ("work/app/deep/3.md", "3 @../two.md"),
            ("work/app/two.md", "2"),
        ],
    );
}

#[test]
fn files_name_files_four_times_and_no_further() {
    let names: Vec<String> = (1..=6).map(|n| format!("work/app/{n}.md")).collect();
    let texts: Vec<String> = (2..=7).map(|n| format!("@{n}.md")).collect();
    let mut files = vec![("work/app/CLAUDE.md", "@1.md")];
    files.extend(names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)));
    Machine::new(&files).check(&[], &files[..5]);
}

#[test]
fn a_project_does_not_reach_outside() {
    let machine = Machine::new(&[
        ("home/secret.md", "secret"),
        ("work/app/CLAUDE.md", "@~/secret.md @../../home/secret.md @link.md @inside.md"),
        ("work/app/inside.md", "inside"),
    ]);
    std::os::unix::fs::symlink(machine.path("home/secret.md"), machine.path("work/app/link.md")).unwrap();
    let config = machine.config(&[]);
    let texts: Vec<&str> = config.settings.run.memory.iter().map(|note| &*note.text).collect();
    assert_eq!(texts[1..], ["inside"]);
    assert_eq!(config.warnings.len(), 3, "{:?}", config.warnings);
    assert!(config.warnings[0].contains("outside the working directory"), "{:?}", config.warnings);
}

#[test]
fn what_cannot_be_read_is_left_out_with_a_warning() {
    let machine = Machine::new(&[
        ("home/.claude/CLAUDE.md", &"x".repeat(4 * 1024 * 1024 + 1)),
        ("work/app/CLAUDE.md", "<!-- for people -->\n"),
    ]);
    std::fs::write(machine.path("work/app/CLAUDE.local.md"), [0xff, 0xfe]).unwrap();
    std::fs::create_dir_all(machine.path("work/CLAUDE.md")).unwrap();
    let config = machine.config(&[]);
    assert!(config.settings.run.memory.is_empty(), "{:?}", config.settings.run.memory);
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
    assert!(config.warnings[0].contains("larger than 4 MiB"));
    assert!(config.warnings[1].contains("CLAUDE.local.md: it is not UTF-8 text."));
}

#[test]
fn a_long_file_is_read_with_a_warning() {
    // Characters count, not bytes, and only what the model gets to see.
    let (fits, long) = ("é".repeat(40_000), "x".repeat(40_001));
    let machine = Machine::new(&[
        ("home/.claude/CLAUDE.md", &format!("<!-- for people -->\n{fits}")),
        ("work/app/CLAUDE.md", &long),
    ]);
    let config = machine.config(&[]);
    assert_eq!(config.settings.run.memory.len(), 2);
    let [warning] = config.warnings.as_slice() else { panic!("{:?}", config.warnings) };
    let path = machine.path("work/app/CLAUDE.md");
    for words in [path.to_str().unwrap(), "40001 characters", "every conversation starts with it"] {
        assert!(warning.contains(words), "{words:?} is not in {warning}");
    }
}
