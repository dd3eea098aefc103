//! `windlass demo`: fixes a small project. Everything is real but the model, a script in the binary.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use windlass::engine::{Outcome, Update};
use windlass::job_runner::{JobEnd, JobView};
use windlass::models::{Script, ScriptModel, model_card};
use windlass::protocol::ModelCard;
use windlass::protocol_view::Clock;
use windlass::sessions::SessionChoice;
use windlass::{Options, Session, Windlass};

use crate::arguments::help;
use crate::commands::process::{Signals, block_on, exit_code, runner, wait_for_commands};
use crate::display;
use crate::views::call_panels::CallPanels;
use crate::views::layout;
use crate::views::{self, RunView};

/// The sample project: what lies in the folder `demo` beside the sources.
const FILES: [(&str, &str); 2] =
    [("total.sh", include_str!("../../demo/total.sh")), ("test.sh", include_str!("../../demo/test.sh"))];
const SCRIPT: &str = include_str!("../../demo/script.json");
const PROMPT: &str = "test.sh fails. Find out why and fix it.";

/// Runs the demo and gives the exit code: 0 only if the test of the sample project passes in the end.
pub(crate) fn run() -> anyhow::Result<i32> {
    show().map_err(|error| anyhow!("the demo cannot run: {error:#}"))
}

fn show() -> anyhow::Result<i32> {
    let folder = unpack()?;
    let mut session = session(&folder)?;
    say(&introduction(&folder))?;
    let form = Box::new(DemoView { calls: CallPanels::new(Clock::start()) });
    let view = RunView { form, progress: None };
    let run = async move {
        let mut runner = runner(view, Signals::listen()?);
        let end = runner.drive(session.run(PROMPT), std::future::pending()).await;
        Ok((end, runner.stops))
    };
    let (end, signals) = block_on(run)?;
    let outcome = match end {
        JobEnd::Done(outcome) => outcome,
        JobEnd::Stopped(asked) => return Ok(wait_for_commands(exit_code(asked), signals)),
        JobEnd::Nothing | JobEnd::Refused | JobEnd::Unread => return Ok(wait_for_commands(1, signals)),
        JobEnd::Unshown(error) => return Err(error.into()),
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

/// Reading and editing inside the folder, and commands, which the script fixes to the test; nothing of it is kept.
fn session(folder: &Path) -> anyhow::Result<Session> {
    let script = Script::parse(SCRIPT)?;
    let card = ModelCard { is_known: true, ..model_card(&script.model) };
    let mut options = Options::new()
        .cwd(folder)
        .model_client(Arc::new(ScriptModel::new(script)), card)
        .permission_mode("acceptEdits")
        .allow("Bash");
    // The user's own settings have nothing to do with the sample.
    options.setting_sources.push(String::new());
    Ok(Windlass::open(options)?.session(SessionChoice::default().unsaved())?)
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

fn ending(outcome: &Outcome, folder: &Path, is_fixed: bool) -> String {
    let spent = format!(
        "{}, {} in, {} out (as a model would count them), no cost, {}",
        display::quantity(outcome.iterations.into(), "turn"),
        display::quantity(outcome.usage.input_total(), "token"),
        display::number(outcome.usage.output_tokens),
        display::duration(outcome.duration_ms)
    );
    let mut text = format!("\n{}\n", help::page(&spent));
    if let Some(complaint) = views::complaint(outcome) {
        let _ = writeln!(text, "{}", help::page(&format!("The session failed: {complaint}")));
    }
    text.push_str(if is_fixed { "Checked again: the test passes.\n" } else { "The test still fails.\n" });
    let next = "Next, with a model (or with ANTHROPIC_BASE_URL=http://... for a local server):";
    // Commands are for copying, so they stay in one line.
    let _ = write!(
        text,
        "\nLook at the result:\n  cd {} && cat total.sh && bash test.sh\n\n\
         {}\n  export ANTHROPIC_API_KEY=...\n  windlass -p \"explain this project\"\n",
        display::quote(&folder.to_string_lossy()),
        help::page(next)
    );
    text
}

fn say(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Shows the session as somebody at a terminal would follow it.
struct DemoView {
    calls: CallPanels,
}

impl JobView for DemoView {
    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        if let Some(card) = self.calls.update(update, layout::columns(std::io::stdout())) {
            out.extend_from_slice(card.as_bytes());
        }
        if let Update::Block { block, .. } = update
            && let Some(text) = block.as_text()
        {
            out.extend_from_slice(format!("\n{}\n", help::page(&display::line(text))).as_bytes());
        }
    }

    fn refuse(&mut self, error: &str, _: Option<&Arc<str>>, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\n{}\n", help::page(&display::line(error))).as_bytes());
    }
}
