//! `windlass replay`: a session played again from its log, without a model and without tools.

mod report;

use std::error::Error as StdError;
use std::ffi::OsString;
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use clap::{Args, Parser as _};
use uuid::Uuid;
use windlass::replay::{EarlierSession, SessionReplay, play};
use windlass::session_store::SessionInfo;
use windlass::{Options, SessionStore};

use crate::arguments::{self, Arguments, Request, from_one};
use crate::commands::print as prompts;
use crate::commands::sessions::print;
use crate::{complain, display};

/// Replay a session offline, without calling models or tools: feed the recorded events to the engine again and compare
/// every decision with the log. Replay stops at the first difference.
#[derive(Debug, Args)]
#[command(
    after_help = "A SESSION is an id, its first characters (at least 4), a title, or words of the first \
                  prompt; `windlass sessions` lists them. The session itself is not changed.\n\nExit \
                  codes:\n  0    No differences, and the continued run (if any) succeeded\n  1    There are \
                  differences, or the log cannot be read"
)]
pub(crate) struct ReplayArguments {
    /// Session to replay
    session: String,
    /// Stop after event N and show the state there
    #[arg(long, value_name = "N", value_parser = from_one::<u64>)]
    until: Option<u64>,
    /// Continue from there with this model, in a copy of the session
    #[arg(long, value_name = "MODEL")]
    with_model: Option<String>,
    /// With --with-model: the next prompt; needed if the model has already answered
    #[arg(long, value_name = "TEXT", requires = "with_model")]
    prompt: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Plays the session. Returns the exit code.
pub(crate) fn run(wanted: &ReplayArguments) -> anyhow::Result<i32> {
    let session = SessionStore::open()?.find(&wanted.session)?;
    let started = Instant::now();
    let played = play(&session, wanted.until, &earlier_options)?;
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let (Some(until), Some(replay)) = (wanted.until, &played.replay)
        && replay.events() < until
        && played.is_equal()
    {
        bail!(
            "there is no event {until}: the session has only {}.",
            display::quantity(replay.events(), "event")
        );
    }
    if let Some(model) = wanted.with_model.as_deref().filter(|_| played.is_equal()) {
        return go_on(wanted, model, &session, &played);
    }
    let text = if wanted.json {
        report::json(&session, &played, ms)
    } else {
        report::text(&session, &played, ms, wanted.until.is_some())
    };
    print(&text)?;
    Ok(i32::from(!played.is_equal()))
}

/// Goes on live in a copy of the session that ends where it was played to.
fn go_on(
    wanted: &ReplayArguments,
    model: &str,
    session: &SessionInfo,
    played: &SessionReplay,
) -> anyhow::Result<i32> {
    let EarlierSession { directory, is_awaiting_answer } = EarlierSession::at(session, played.offset)?;
    ensure!(
        wanted.prompt.is_some() || is_awaiting_answer,
        "the model has already answered there. Add a prompt with --prompt, or stop before the answer with --until."
    );
    let copy = Uuid::new_v4();
    let mut arguments = live(wanted, model, &session.id.to_string(), copy)?;
    arguments.session.cut = Some(played.offset);
    if let Some(directory) = directory {
        std::env::set_current_dir(&directory).map_err(|error| {
            anyhow!(
                "cannot use the session's directory {}: {error}.",
                display::line(&directory.to_string_lossy())
            )
        })?;
    }
    complain(&format!("{} Continuing in a copy of the session: {copy}.", report::equal(played)));
    prompts::run(&arguments)
}

/// The flags with which a copy goes on.
fn live(wanted: &ReplayArguments, model: &str, session: &str, copy: Uuid) -> anyhow::Result<Arguments> {
    let copy = copy.to_string();
    let format = if wanted.json { "json" } else { "text" };
    let mut line = vec!["windlass", "-p", "--resume", session, "--fork-session", "--session-id", &copy];
    line.extend(["--model", model, "--output-format", format]);
    if let Some(prompt) = &wanted.prompt {
        line.extend(["--", prompt]);
    }
    Arguments::try_parse_from(line).map_err(|error| anyhow!(crate::arguments::usage::explain(&error)))
}

/// What a command line in the log of an earlier version asked for.
fn earlier_options(words: &[String]) -> Result<Options, Box<dyn StdError + Send + Sync>> {
    let line: Vec<OsString> =
        std::iter::once("windlass".into()).chain(words.iter().map(OsString::from)).collect();
    let arguments = match arguments::parse(&line) {
        Ok(Request::Print(arguments)) => *arguments,
        Ok(Request::Replay(wanted)) => {
            live(&wanted, wanted.with_model.as_deref().unwrap_or_default(), "", Uuid::nil())?
        }
        Ok(_) => return Err("the log does not hold the command line of the process that wrote it".into()),
        Err(error) => {
            return Err(format!(
                "the log holds a command line that this version does not understand: {error}"
            )
            .into());
        }
    };
    let options = arguments.options();
    Ok(if arguments.is_interactive() { options.asks_person() } else { options })
}
