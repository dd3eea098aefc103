//! The tool Bash: runs a command in a new bash without start-up files. Its output is kept whole, in memory or in a
//! file; its whole tree of processes ends when the call is cancelled or dropped, or the session ends.

mod call;
mod capture;
mod changes;
pub(crate) mod commands;
mod disk_names;
mod piped_names;
mod prompt;
mod relinked_paths;
mod run;
mod spec;
mod status;
mod working_directory;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_ports::{ExamineContext, Tool, ToolContext};
use windlass_protocol::{CallFacts, ToolOutput, ToolProfile, ToolSpec};
use windlass_sandbox::{Launcher, Sandbox, VariableChanges};
use windlass_text::shorten::shorten;

use self::commands::LineBasis;
use crate::describe::describe_line;
use crate::lenient;
use crate::tasks::Tasks;

/// Characters of a command that are shown to people.
const TARGET_CHARS_MAX: usize = 200;

/// The input of Bash. What the model reads of it depends on the settings, too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command line. Quote paths that contain blanks; join dependent commands with `&&`.
    pub(crate) command: String,
    /// Milliseconds until the command is moved to the background or stopped.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) timeout: Option<u64>,
    /// What the command does, in five to ten words, for the person watching.
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// Start it in the background: the result names the task and its output file.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub(crate) run_in_background: bool,
    /// Run it outside the sandbox, which somebody has to allow. Only when it failed inside because of the sandbox.
    #[expect(dead_code, reason = "whether it counts is decided before the call runs")]
    #[serde(default, rename = "dangerouslyDisableSandbox", deserialize_with = "lenient::flag")]
    #[schemars(skip)]
    unsandboxed: bool,
}

/// How commands are run.
#[derive(Clone, Debug)]
pub struct BashSettings {
    /// How processes are started.
    pub launcher: Launcher,
    /// Where commands run that are confined.
    pub sandbox: Option<Sandbox>,
    /// Whether the model may ask to run a command outside the sandbox.
    pub can_leave_sandbox: bool,
    /// Timeout of a call that names none.
    pub timeout_default: Duration,
    /// No call gets a longer timeout than this, or than the default if that is longer.
    pub timeout_max: Duration,
    /// Output of at most this many characters is returned in full.
    pub inline_chars_max: usize,
    /// Of long output, as many bytes are kept in a file.
    pub saved_bytes_max: u64,
    /// A command that prints more bytes than this is stopped.
    pub output_bytes_max: u64,
    /// Variables that are passed on to commands although their names look like secrets.
    pub env_pass: Vec<String>,
    /// The variables that commands start from, before those that look like secrets are taken out.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that are set for commands.
    pub env: Vec<(OsString, OsString)>,
    /// What hooks change in these variables, except for commands that only look.
    pub later: VariableChanges,
    /// A script that is sourced before each command, except those that only look.
    pub env_file: Option<PathBuf>,
    /// Nothing runs in the background: a command that reaches its timeout is stopped.
    pub is_background_off: bool,
    /// Every command starts in the project's directory.
    pub should_keep_directory: bool,
}

impl BashSettings {
    /// The usual settings.
    pub fn new(launcher: Launcher) -> Self {
        Self {
            launcher,
            sandbox: None,
            can_leave_sandbox: false,
            timeout_default: Duration::from_mins(2),
            timeout_max: Duration::from_mins(10),
            inline_chars_max: 30_000,
            saved_bytes_max: 64 << 20,
            output_bytes_max: 5 << 30,
            env_pass: Vec::new(),
            environment: std::env::vars_os().collect(),
            env: Vec::new(),
            later: VariableChanges::default(),
            env_file: None,
            is_background_off: false,
            should_keep_directory: false,
        }
    }

    fn timeout(&self, asked_ms: Option<u64>) -> Duration {
        let asked = asked_ms.filter(|&ms| ms > 0).map_or(self.timeout_default, Duration::from_millis);
        asked.min(self.longest_timeout())
    }

    fn longest_timeout(&self) -> Duration {
        self.timeout_max.max(self.timeout_default)
    }
}

/// The tool Bash.
#[derive(Debug)]
pub struct Bash {
    settings: BashSettings,
    tasks: Arc<Tasks>,
    /// It has been said that the file to source does not exist.
    env_file_missed: AtomicBool,
}

impl Bash {
    /// Runs commands with these settings; what goes to the background is entered into `tasks`.
    pub fn new(settings: BashSettings, tasks: Arc<Tasks>) -> Self {
        Self { settings, tasks, env_file_missed: AtomicBool::new(false) }
    }

    /// By rules goes what runs unseen, and what shows variables that a sourced file or a hook sets.
    fn basis(&self, input: &BashInput) -> LineBasis {
        let shows_variables = input.command.contains('$') || input.command.contains("printenv");
        let is_set = self.settings.env_file.is_some() || !self.settings.later.is_empty();
        let sources = is_set && shows_variables;
        if input.run_in_background || sources { LineBasis::ByRules } else { LineBasis::ByWords }
    }

    /// Says once that the file to source is missing, with the first command that would source it.
    fn env_file_notice(&self, is_read_only: bool) -> Option<String> {
        let file = self.settings.env_file.as_ref().filter(|file| !is_read_only && !file.is_file())?;
        let told = self.env_file_missed.swap(true, Ordering::Relaxed);
        (!told).then(|| format!("CLAUDE_ENV_FILE is {}, which is not a file; ignored.", file.display()))
    }
}

impl Tool for Bash {
    type Input = BashInput;
    const NAME: &'static str = "Bash";
    const PROFILE: ToolProfile = ToolProfile::BASH;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Bash.json"));

    fn facts(&self, input: &BashInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        if input.run_in_background && self.settings.is_background_off {
            return Err("`run_in_background` is turned off. Run the command without it.".to_owned());
        }
        // Without any place to start in, the call itself says so.
        let cwd =
            working_directory::start(&cx.cwd, &cx.roots).map_or_else(|_| cx.cwd.clone(), |(cwd, _)| cwd);
        describe_line(&input.command, self.basis(input), &ExamineContext { cwd, ..cx.clone() })
    }

    fn adapt_spec(&self, spec: ToolSpec) -> ToolSpec {
        spec::follow_settings(spec, &self.settings)
    }

    async fn run(&self, input: BashInput, cx: ToolContext) -> ToolOutput {
        call::run(self, input, cx).await
    }
}

/// The command on one line, shortened.
pub(crate) fn one_line(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&line, TARGET_CHARS_MAX, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windlass_ports::AnyTool;
    use windlass_protocol::CallKind;

    use super::*;
    use windlass_text::paths::clean;

    fn bash() -> Bash {
        Bash::new(BashSettings::new(Launcher::direct()), Tasks::new(None))
    }

    fn facts(cwd: &Path, command: &str) -> Result<CallFacts, String> {
        let cwd = cwd.canonicalize().unwrap();
        let cx = ExamineContext::new(cwd.clone(), [cwd].into());
        let json = serde_json::json!({ "command": command });
        bash().facts(&serde_json::from_value(json).unwrap(), &cx)
    }

    #[test]
    fn looking_is_shared_and_everything_else_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let check = |command: &str, kind: CallKind, paths: &[&str]| {
            let facts = facts(dir.path(), command).unwrap();
            assert_eq!((facts.kind, facts.is_shared), (kind, kind == CallKind::Read), "{command}");
            let root = dir.path().canonicalize().unwrap();
            let expected: Vec<PathBuf> = paths.iter().map(|path| clean(root.join(path))).collect();
            let seen: Vec<PathBuf> = facts.paths.into_iter().map(|fact| fact.lexical).collect();
            assert_eq!(seen, expected, "{command}");
        };
        check("cat a 'b c'", CallKind::Read, &["a", "b c"]);
        check("cat '~'", CallKind::Read, &["~"]);
        check("ls", CallKind::Read, &["."]);
        check("pwd", CallKind::Read, &[]);
        check("grep x /etc/hosts", CallKind::Read, &["/etc/hosts"]);
        check("cat a > b", CallKind::Execute, &[]);
        check("cat -n a", CallKind::Read, &["a"]);
        check("cat --unknown a", CallKind::Execute, &[]);
        check("cat a | grep b && ls d", CallKind::Read, &["a", "d"]);
        check("make", CallKind::Execute, &[]);
    }

    #[test]
    fn a_path_through_a_link_is_what_the_kernel_makes_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("project")).unwrap();
        std::fs::create_dir_all(root.join("outside/deep")).unwrap();
        std::os::unix::fs::symlink("../outside/deep", root.join("project/link")).unwrap();
        let facts = facts(&root.join("project"), "cat link/../secret").unwrap();
        assert_eq!(facts.paths[0].lexical, root.join("project/secret"));
        assert_eq!(facts.paths[0].resolved, Some(root.join("outside/secret")));
    }

    #[test]
    fn impossible_input_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let check = |command: &str| assert!(facts(dir.path(), command).unwrap_err().contains("`command`"));
        check("");
        check(" \n");
        check("a\0b");
    }

    #[test]
    fn a_wish_to_leave_the_sandbox_is_understood_but_not_offered() {
        let json = r#"{"command": "ls", "dangerouslyDisableSandbox": true}"#;
        assert!(serde_json::from_str::<BashInput>(json).is_ok());
        assert!(!bash().spec().input_schema.get().contains("Sandbox"));
    }

    #[test]
    fn timeouts_are_clamped() {
        let check = |default_s: u64, max_s: u64, asked_ms: Option<u64>, expected_ms: u128| {
            let mut settings = BashSettings::new(Launcher::direct());
            (settings.timeout_default, settings.timeout_max) =
                (Duration::from_secs(default_s), Duration::from_secs(max_s));
            assert_eq!(settings.timeout(asked_ms).as_millis(), expected_ms);
        };
        check(120, 600, None, 120_000);
        check(120, 600, Some(5), 5);
        check(120, 600, Some(0), 120_000);
        check(120, 600, Some(u64::MAX), 600_000);
        check(900, 600, Some(800_000), 800_000);
    }

    #[test]
    fn commands_are_shown_on_one_line() {
        assert_eq!(one_line("a \\\n  b\n"), "a \\ b");
        assert_eq!(one_line(&"x".repeat(300)).chars().count(), TARGET_CHARS_MAX + 1);
    }
}
