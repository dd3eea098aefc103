//! `windlass demo`: a small project with a failing test, fixed before the user's eyes.
//!
//! Files, tools, commands and the test are real; only the model is a script that is part of the binary.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;
use uuid::Uuid;
use windlass_config::{Config, ModelChoice};
use windlass_engine::{
    Asking, Block, CallId, Outcome, PermissionMode, Permissions, Rules, SessionSeed, Update,
};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_protocol::{BlockKind, ModelCard, ToolUse};

use crate::drive::{End, Signals, Watch, block_on, drive, wait_for_commands};
use crate::output::Output;
use crate::view::{self, Clock, View};
use crate::wiring::{Form, Kept, ModelSet};
use crate::{complain, display, help, wiring};

/// The sample project: what lies in the folder `demo` beside the sources.
const FILES: [(&str, &str); 2] =
    [("total.sh", include_str!("../demo/total.sh")), ("test.sh", include_str!("../demo/test.sh"))];
const SCRIPT: &str = include_str!("../demo/script.json");
const PROMPT: &str = "test.sh fails. Find out why and fix it.";

/// How many lines of a command's output are shown.
const OUTPUT_LINES_MAX: usize = 12;

/// Runs the demo and gives the exit code: 0 only if the test of the sample project passes in the end.
pub(crate) fn run() -> i32 {
    match show() {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("the demo cannot run: {error:#}"));
            1
        }
    }
}

fn show() -> anyhow::Result<i32> {
    let folder = unpack()?;
    let engine = engine(&folder)?;
    say(&introduction(&folder))?;
    let mut session = engine.session();
    let mut view = DemoView { clock: Clock::start(), open: Vec::new() };
    let run = async move {
        let mut signals = Signals::listen()?;
        let mut output = Output::new();
        let watch = Watch { view: &mut view, output: &mut output, signals: &mut signals };
        let end = drive(session.run(PROMPT), watch, std::future::pending()).await;
        Ok((end, signals))
    };
    let (end, signals) = block_on(run)?;
    let outcome = match end {
        End::Done(outcome) => outcome,
        End::Signal(code) => return Ok(wait_for_commands(code, signals)),
        End::Nothing | End::Refused | End::Unread => return Ok(wait_for_commands(1, signals)),
        End::Unshown(error) => return Err(error.into()),
    };
    let passes = test_passes(&folder)?;
    say(&ending(&outcome, &folder, passes))?;
    Ok(i32::from(!(passes && outcome.terminal.is_success())))
}

/// Copies the sample project into a folder that is kept.
fn unpack() -> anyhow::Result<PathBuf> {
    let made = tempfile::Builder::new().prefix("windlass-demo-").tempdir();
    let folder = made.context("there is no place for temporary files; set TMPDIR to a folder")?.keep();
    for (name, content) in FILES {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(folder)
}

fn engine(folder: &Path) -> anyhow::Result<windlass_engine::Engine> {
    let script = Script::parse(SCRIPT)?;
    let card = ModelCard { known: true, ..model_card(&script.model) };
    let config = Config {
        model: ModelChoice { name: script.model.clone(), by_flag: false },
        // Reading and editing inside the folder, and commands, which the script fixes to the test.
        permissions: Permissions {
            mode: PermissionMode::AcceptEdits,
            rules: Rules::allowing(["Bash"].into_iter()),
            asking: Asking::Nobody,
            ..Permissions::default()
        },
        cwd: folder.to_owned(),
        ..Config::default()
    };
    let wired = wiring::wire_models(
        config,
        ModelSet::only(Arc::new(ScriptModel::new(script)), card),
        Form::default(),
        &Kept::nowhere(SessionSeed(Uuid::new_v4().as_u128()).into()),
    );
    Ok(wired.map_err(anyhow::Error::msg)?.engine)
}

/// The test, run once more by itself: the demo does not take the script's word for it.
fn test_passes(folder: &Path) -> anyhow::Result<bool> {
    let test = Command::new("bash").arg("test.sh").current_dir(folder).stdin(Stdio::null()).output();
    let test = test.context("it needs bash, which is not on the PATH or cannot be started")?;
    Ok(test.status.success())
}

fn introduction(folder: &Path) -> String {
    let what = "Windlass demo. The files, the tools and the test are real; the model is a script that comes with \
         the program, so no key is needed and nothing leaves this machine.";
    format!(
        "{}\n\nProject: {}\n{}\n\n> {PROMPT}\n",
        help::page(what),
        display::line(&folder.to_string_lossy()),
        help::page("total.sh adds up a ledger, test.sh checks it.")
    )
}

fn ending(outcome: &Outcome, folder: &Path, passes: bool) -> String {
    let spent = format!(
        "{}, {} in, {} out (as a model would count them), no cost, {}",
        display::counted(outcome.iterations.into(), "turn"),
        display::counted(outcome.usage.input_total(), "token"),
        display::number(outcome.usage.output_tokens),
        display::duration(outcome.duration_ms)
    );
    let mut text = format!("\n{}\n", help::page(&spent));
    if let Some(complaint) = view::complaint(outcome) {
        let _ = writeln!(text, "{}", help::page(&format!("The session failed: {complaint}")));
    }
    text.push_str(if passes { "Checked again: the test passes.\n" } else { "The test still fails.\n" });
    let next = "Next, with a model (or with ANTHROPIC_BASE_URL=http://... for a local server):";
    // Commands are for copying, so they stay in one line.
    let _ = write!(
        text,
        "\nLook at the result:\n  cd {} && cat total.sh && bash test.sh\n\n\
         {}\n  export ANTHROPIC_API_KEY=...\n  windlass -p \"explain this project\"\n",
        quoted(&folder.to_string_lossy()),
        help::page(next)
    );
    text
}

/// A word as the shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn say(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Shows the session as somebody at a terminal would follow it.
struct DemoView {
    clock: Clock,
    open: Vec<OpenCall>,
}

struct OpenCall {
    call: CallId,
    tool_use: ToolUse,
    target: String,
    started_ms: u64,
}

impl View for DemoView {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        match update {
            Update::Block { block, .. } => {
                if let Some(text) = block.as_text() {
                    out.extend_from_slice(format!("\n{}\n", help::page(&display::line(text))).as_bytes());
                }
            }
            Update::ToolStarted { call, tool_use, facts } => self.open.push(OpenCall {
                call: *call,
                tool_use: tool_use.clone(),
                target: display::line(&facts.target),
                started_ms: self.clock.ms(),
            }),
            Update::ToolResult { call, result, .. } => {
                let position = self.open.iter().position(|open| open.call == *call);
                if let Some(position) = position {
                    let open = self.open.remove(position);
                    let time = display::duration(self.clock.ms() - open.started_ms);
                    out.extend_from_slice(answered(&open, &time, result).as_bytes());
                }
            }
            Update::Denied(denial) => {
                out.extend_from_slice(format!("\n  {}\n", display::line(&denial.reason)).as_bytes());
            }
            _ => {}
        }
    }

    fn refuse(&mut self, error: &str, _: Option<&Arc<str>>, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\n{}\n", help::page(&display::line(error))).as_bytes());
    }
}

/// What a call did, with its output or its change.
fn answered(open: &OpenCall, time: &str, result: &Block) -> String {
    let failed = matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. });
    let failed = if failed { ", failed" } else { "" };
    let mut text = format!("\n  {:5} {}  ({time}{failed})\n", open.tool_use.name, open.target);
    for line in details(open, result) {
        let _ = writeln!(text, "        {line}");
    }
    text
}

fn details(open: &OpenCall, result: &Block) -> Vec<String> {
    let input: Value = serde_json::from_str(open.tool_use.input.get()).unwrap_or_default();
    let changed = |key: &str, mark: &str| -> Vec<String> {
        let text = input[key].as_str().unwrap_or_default();
        text.lines().map(|line| format!("{mark} {}", display::paragraph(line))).collect()
    };
    match &*open.tool_use.name {
        "Edit" => [changed("old_string", "-"), changed("new_string", "+")].concat(),
        "Bash" => {
            let result: Value = serde_json::from_str(result.json()).unwrap_or_default();
            let output = result["content"].as_str().unwrap_or_default();
            output.lines().take(OUTPUT_LINES_MAX).map(display::paragraph).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_quoted_when_the_shell_needs_it() {
        assert_eq!(quoted("/tmp/windlass-demo-x1"), "/tmp/windlass-demo-x1");
        assert_eq!(quoted("/tmp/my files"), "'/tmp/my files'");
        assert_eq!(quoted("/tmp/it's $x"), r"'/tmp/it'\''s $x'");
    }
}
