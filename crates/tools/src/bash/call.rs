//! One call of Bash, from the start of the command to what is given back.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use windlass_ports::ToolContext;
use windlass_protocol::{CallFacts, FileSeen, ToolOutput};
use windlass_sandbox::{CommandStatus, Exit, ShellCommand, child_environment, distrust};
use xxhash_rust::xxh3::xxh3_64;

use super::capture::{Capture, OutputLimits, ShownOutput};
use super::commands::named_now;
use super::run::{CommandEnd, RunningCommand};
use super::status::meaning;
use super::working_directory::{self, DirectoryRules, background_hint};
use super::{Bash, BashInput, BashSettings, one_line};
use crate::file::without_nulls;
use crate::fingerprint::seen_file;
use crate::paths::check_decided;
use crate::tasks::{TaskSignals, Tasks, task_id};

struct Call<'a> {
    settings: &'a BashSettings,
    tasks: &'a Arc<Tasks>,
    input: &'a BashInput,
    cx: &'a ToolContext,
    /// Where the command starts.
    started: PathBuf,
    /// Every command of the line only looks.
    is_read_only: bool,
    /// What the model must know beside what the command printed.
    notices: Vec<String>,
}

/// Larger files are not read again only to be remembered.
const SEEN_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where git only looks, no repository that it comes across makes it run something.
const QUIET_GIT: [(&str, &str); 11] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_2", "explicit"),
    ("GIT_CONFIG_KEY_3", "diff.ignoreSubmodules"),
    ("GIT_CONFIG_VALUE_3", "dirty"),
];

pub(super) async fn run(bash: &Bash, input: BashInput, cx: ToolContext) -> ToolOutput {
    let Bash { settings, tasks, .. } = bash;
    let (started, notice) = match working_directory::start(&cx.cwd, &cx.roots) {
        Ok(start) => start,
        Err(error) => return ToolOutput::error(&error),
    };
    if let Err(error) = still_decided(&input, &started, &cx) {
        return ToolOutput::error(&error);
    }
    let is_read_only = cx.facts.kind.is_read_only();
    let notices = notice.into_iter().chain(bash.env_file_notice(is_read_only)).collect();
    Call { settings, tasks, input: &input, cx: &cx, started, is_read_only, notices }.run().await
}

/// Whether the facts that permission was decided on are still those of what would run.
fn still_decided(input: &BashInput, started: &Path, cx: &ToolContext) -> Result<(), String> {
    let CallFacts { commands, run, kind, .. } = &*cx.facts;
    if commands.as_ref().is_some_and(|commands| *commands.line != *input.command) {
        return Err("Nothing was done: another command line than this one was allowed.".to_owned());
    }
    let Some(run) = run else { return Ok(()) };
    if run.starts_in != started {
        return Err(format!(
            "Nothing was done: the working directory {} was removed after the call was allowed. Call the tool again.",
            run.starts_in.display()
        ));
    }
    if kind.is_read_only() {
        // The shell opens them itself, so this is the last moment at which they can be compared.
        named_now(&run.opens).into_iter().try_for_each(|path| check_decided(path, cx).map(drop))?;
    }
    Ok(())
}

impl Call<'_> {
    async fn run(&self) -> ToolOutput {
        if self.cx.is_confined && self.settings.sandbox.is_none() {
            return ToolOutput::error("Not run: this command needs a sandbox, and none is available.");
        }
        let process = match self.settings.launcher.start(&self.job()) {
            Ok(process) => process,
            Err(error) => return ToolOutput::error(&format!("Cannot start the command: {error}.")),
        };
        let limits = OutputLimits {
            inline_chars: self.settings.inline_chars_max,
            file_bytes: self.settings.saved_bytes_max,
            bytes: self.settings.output_bytes_max,
        };
        let mut running = RunningCommand::new(process, Capture::new(limits, Arc::downgrade(self.tasks)));
        if self.input.run_in_background {
            return self.move_to_background(running, None).await;
        }
        let timeout = self.settings.timeout(self.input.timeout);
        match running.watch(timeout, self.cx).await {
            CommandEnd::Finished(exit) => self.finish(running, exit).await,
            CommandEnd::TimedOut if self.can_go_on() => self.move_to_background(running, Some(timeout)).await,
            ending => self.stop(running, ending, timeout).await,
        }
    }

    /// A read-only command was judged by its words and may run unasked. So nothing may change their meaning: no file is
    /// sourced, no hook sets variables, and the project's own programs are not found.
    fn job(&self) -> ShellCommand {
        let project = self.cx.roots.first().unwrap_or(&self.cx.cwd);
        let parent = if self.is_read_only {
            self.settings.environment.clone()
        } else {
            self.settings.later.over(&self.settings.environment)
        };
        let mut environment = child_environment(parent, &self.settings.env_pass, project);
        environment.extend(self.settings.env.iter().cloned());
        if self.is_read_only {
            distrust(&mut environment, &self.cx.roots);
            environment.retain(|(name, _)| !name.to_string_lossy().starts_with("GIT_CONFIG"));
            environment.extend(QUIET_GIT.map(|(name, value)| (name.into(), value.into())));
        }
        let source = self.settings.env_file.clone().filter(|file| !self.is_read_only && file.is_file());
        ShellCommand {
            script: self.input.command.clone(),
            cwd: self.started.clone(),
            environment,
            should_track_cwd: self.can_move(),
            source,
            sandbox: self.settings.sandbox.clone().filter(|_| self.cx.is_confined),
        }
    }

    /// A command that only waits, or that works on a repository, is not left running unseen.
    fn can_go_on(&self) -> bool {
        let command = &self.input.command;
        let mut words = command.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let sleeps = command.split_whitespace().next() == Some("sleep");
        !self.settings.is_background_off && !sleeps && !words.any(|word| word == "git")
    }

    /// Whether the line may end in another directory than it started in: what stays where it is shares its place with others.
    fn can_move(&self) -> bool {
        !self.cx.facts.is_shared
    }

    fn answer(&self) -> BashAnswer {
        let cwd = self.rules().stay().cwd;
        BashAnswer { before: self.notices.clone(), cwd, ..BashAnswer::default() }
    }

    fn rules(&self) -> DirectoryRules<'_> {
        DirectoryRules {
            session: &self.cx.cwd,
            started: &self.started,
            roots: &self.cx.roots,
            should_keep_project: self.settings.should_keep_directory,
        }
    }

    async fn finish(&self, running: RunningCommand, exit: Exit) -> ToolOutput {
        let mut capture = running.release(self.tasks.session_end.clone());
        let meaning = meaning(&self.input.command, exit.status, &capture.said_last());
        let mut answer = self.answer();
        answer.has_failed = meaning.is_failure;
        answer.output.return_code_interpretation = meaning.interpretation;
        let remarks = if meaning.is_failure { &mut answer.before } else { &mut answer.after };
        remarks.extend(meaning.words);
        answer.show(capture.show(meaning.is_failure).await);
        if self.can_move() {
            let next = self.rules().next_directory(exit.cwd.as_deref(), &self.input.command);
            answer.cwd = next.cwd;
            answer.after.extend(next.notice);
        }
        answer.before.extend(exit.reason.map(|reason| format!("Cannot set up the sandbox: {reason}")));
        answer.after.extend(exit.refused.iter().map(ToString::to_string));
        if let Some(sandbox) =
            self.settings.sandbox.as_ref().filter(|_| self.cx.is_confined && meaning.is_failure)
        {
            answer.after.extend(sandbox.explain(&capture.said_last()));
        }
        let cut = answer.output.persisted_output_path.is_some();
        let mut outcome = answer.finish();
        if exit.status == CommandStatus::Code(0) {
            let printed = if cut { None } else { capture.whole().map(<[u8]>::to_vec) };
            outcome.seen.extend(self.view(printed).await);
        }
        outcome
    }

    /// What the conversation learnt of a file by looking at it with a command.
    async fn view(&self, printed: Option<Vec<u8>>) -> Option<FileSeen> {
        let path = self.cx.facts.run.as_ref()?.shows.clone()?;
        let look = move || seen_by_command(&path, printed.as_deref());
        tokio::task::spawn_blocking(look).await.ok()?
    }

    async fn stop(&self, running: RunningCommand, ending: CommandEnd, timeout: Duration) -> ToolOutput {
        // Control returns at once; the supervisor does the rest.
        let (mut capture, _) = running.stop();
        let mut answer = self.answer();
        answer.has_failed = true;
        answer.output.interrupted = true;
        answer.before.push(match ending {
            CommandEnd::TimedOut => {
                answer.output.timed_out_after_ms = u64::try_from(timeout.as_millis()).ok();
                format!("Stopped: the command reached its timeout of {}.", in_words(timeout))
            }
            CommandEnd::Question(question) => format!(
                "Stopped: the command waits for input, and there is none: {question:?}. Run it so that it \
                 does not ask: with a flag such as -y or --no-input, or with the answer piped in."
            ),
            CommandEnd::Full => format!(
                "Stopped: the command printed more than {} bytes. Send its output to a file or through a \
                 filter.",
                self.settings.output_bytes_max
            ),
            CommandEnd::Cancelled | CommandEnd::Finished(_) => {
                "Interrupted: the command was stopped before it ended.".to_owned()
            }
        });
        answer.show(capture.show(/*failed*/ true).await);
        answer.finish()
    }

    /// Lets the command go on without anybody waiting; `timeout` says after how long it was moved.
    async fn move_to_background(&self, mut running: RunningCommand, timeout: Option<Duration>) -> ToolOutput {
        let entered = running.capture.save().await.and_then(|(number, path)| {
            let label = self.label();
            let signals = self.tasks.begin(number, label, path.clone());
            let signals = signals.ok_or("too many background tasks are running; stop one with TaskStop")?;
            Ok((number, path, signals))
        });
        let (number, path, signals) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                drop(running.stop());
                return ToolOutput::error(&format!(
                    "Stopped: the command cannot move to the background: {error}."
                ));
            }
        };
        let mut answer = self.answer();
        let id = task_id(number);
        if let Some(timeout) = timeout {
            answer.show(running.capture.show(/*failed*/ false).await);
            answer.output.timed_out_after_ms = u64::try_from(timeout.as_millis()).ok();
            answer.before.push(format!(
                "The command reached its timeout of {} and continues in the background.",
                in_words(timeout)
            ));
        }
        answer.after.push(format!(
            "Running in the background as task {id}, until it ends or the session ends. Output: {}. Read that \
             file to see its progress (the last line says when the command has ended); stop it with TaskStop.",
            path.display()
        ));
        answer.background_file = Some(path);
        answer.output.background_cwd_hint = background_hint(&self.input.command);
        answer.after.extend(answer.output.background_cwd_hint.clone());
        answer.output.background_task_id = Some(id);
        let session_end = self.tasks.session_end.clone();
        tokio::spawn(follow(running, Arc::downgrade(self.tasks), number, signals, session_end));
        answer.finish()
    }

    fn label(&self) -> String {
        let command = one_line(&self.input.command);
        match self.input.description.as_deref().map(str::trim) {
            Some(description) if !description.is_empty() => format!("{command} ({})", one_line(description)),
            _ => command,
        }
    }
}

fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

/// Follows a command in the background until its end, which is noted in its file and in the table.
async fn follow(
    mut running: RunningCommand,
    tasks: Weak<Tasks>,
    number: u64,
    signals: TaskSignals,
    session_end: CancellationToken,
) {
    let TaskSignals { stop, done } = signals;
    let _done = done.drop_guard();
    let ending = running.follow(&stop).await;
    let (capture, how) = match ending {
        CommandEnd::Finished(exit) => {
            let how = match exit.status {
                CommandStatus::Code(code) => format!("The command ended with exit code {code}."),
                status => {
                    format!("The command ended. {}.", meaning("", status, "").words.unwrap_or_default())
                }
            };
            (running.release(session_end), how)
        }
        ending => {
            let (capture, gone) = running.stop();
            gone.await;
            let how = match ending {
                CommandEnd::Full => "The command was stopped: it printed too much.",
                _ => "The command was stopped.",
            };
            (capture, how.to_owned())
        }
    };
    capture.close_file(&how).await;
    if let Some(tasks) = tasks.upgrade() {
        tasks.end(number, how);
    }
}

/// What is now known of a file that a command printed: seen whole only if `printed` is exactly its text.
fn seen_by_command(resolved: &Path, printed: Option<&[u8]>) -> Option<FileSeen> {
    if resolved.metadata().ok()?.len() > SEEN_BYTES_MAX {
        return None;
    }
    let mut seen = seen_file(resolved, false).ok()?;
    seen.is_whole =
        printed.is_some_and(|printed| xxh3_64(printed) == seen.hash && std::str::from_utf8(printed).is_ok());
    Some(seen)
}

/// A result as data.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct BashOutput {
    /// What the command printed, both streams, as far as it is shown.
    stdout: String,
    /// Remarks that are ours.
    stderr: String,
    interrupted: bool,
    is_image: bool,
    background_task_id: Option<String>,
    timed_out_after_ms: Option<u64>,
    background_cwd_hint: Option<String>,
    return_code_interpretation: Option<&'static str>,
    persisted_output_path: Option<PathBuf>,
    persisted_output_size: Option<u64>,
}

/// What is given back: text for the model, and the same as data.
#[derive(Default)]
struct BashAnswer {
    has_failed: bool,
    /// Remarks in front of the output: what went wrong.
    before: Vec<String>,
    /// Remarks behind it: what holds from now on.
    after: Vec<String>,
    output: BashOutput,
    /// Where a command in the background prints to.
    background_file: Option<PathBuf>,
    /// The working directory from now on, if it is another one.
    cwd: Option<PathBuf>,
}

impl BashAnswer {
    fn show(&mut self, shown: ShownOutput) {
        shown.text.trim_end().clone_into(&mut self.output.stdout);
        if shown.is_cut && shown.file.is_some() {
            self.output.persisted_output_size = Some(shown.bytes);
            self.output.persisted_output_path = shown.file;
        }
    }

    fn finish(mut self) -> ToolOutput {
        let remarks: Vec<&str> = self.before.iter().chain(&self.after).map(String::as_str).collect();
        self.output.stderr = remarks.join("\n");
        let mut parts: Vec<&str> = self.before.iter().map(String::as_str).collect();
        parts.push(&self.output.stdout);
        parts.extend(self.after.iter().map(String::as_str));
        parts.retain(|part| !part.is_empty());
        let text = if parts.is_empty() { "(no output)".to_owned() } else { parts.join("\n") };
        let outcome = if self.has_failed { ToolOutput::error(&text) } else { ToolOutput::text(&text) };
        let files = self.output.persisted_output_path.iter().chain(&self.background_file);
        let readable = files.filter_map(|path| path.canonicalize().ok()).collect();
        let structured = serde_json::to_value(&self.output).map(without_nulls).unwrap_or_default();
        ToolOutput { readable, cwd: self.cwd, ..outcome.with_structured(&structured) }
    }
}

#[cfg(test)]
mod tests {
    use windlass_ports::ExamineContext;

    use super::super::commands::{LineBasis, line_facts};

    fn check(line: &str, expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        let place = ExamineContext::new(cwd.clone(), [cwd.clone()].into());
        let facts = line_facts(line, &place, LineBasis::ByWords);
        assert_eq!(facts.run.unwrap().shows, expected.map(|name| cwd.join(name)), "{line}");
    }

    #[test]
    fn one_file_is_shown() {
        for line in [
            "cat f",
            "cat -n f",
            "cat -- f",
            "nl f",
            "nl -ba f",
            "nl -b a f",
            "bat f",
            "bat -pP f",
            "bat --style=plain -r 1:5 f",
            "batcat f",
            "head f",
            "head -20 f",
            "head -n 20 f",
            "head -n20 f",
            "head --lines=20 f",
            "tail -n +5 f",
            "sed -n 5p f",
            "sed -n '5,10p' f",
            "sed -n '5,$p' f",
            "sed -n '5,+3p;$p' f",
            "grep x f",
            "grep -n x f",
            "grep -in -A 3 'a b' f",
            "grep x f -n",
            "egrep 'a|b' f",
            "fgrep -A3 x f",
            "rg x f",
            "rg -n -C 2 x f",
            "grep -e x f",
            "sed -n -e 5p f",
            "cat ./f",
        ] {
            check(line, Some("f"));
        }
    }

    #[test]
    fn anything_else_is_no_view() {
        for line in [
            "cat",
            "cat -",
            "cat a b",
            "cat -n",
            "cat f | head",
            "cat f > g",
            "cat < f",
            "cat --help f",
            "head -n f",
            "tail -f f",
            "sed 5p f",
            "sed -n 5d f",
            "sed -n '5,10p;w out' f",
            "sed -n '/x/p' f",
            "sed -n -i 5p f",
            "sed -ni 5p f",
            "sed -n 5p a b",
            "sed -n 5p",
            "sed -n p f",
            "grep f",
            "grep -r x f",
            "grep -c x f",
            "grep -l x f",
            "grep x a b",
            "rg x",
            "rg --pre cmd x f",
            "rg -l x f",
            "wc f",
            "less f",
            "./cat f",
            "cat f; rm f",
        ] {
            check(line, None);
        }
    }
}
