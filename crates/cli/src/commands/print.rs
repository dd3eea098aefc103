//! One prompt without a UI: from the flags to the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::anyhow;
use uuid::Uuid;
use windlass::config::ConfigError;
use windlass::engine::{Outcome, SessionSeed};
use windlass::host_conversation::HostConversation;
use windlass::job_runner::{JobEnd, JobView};
use windlass::jobs::{Job, UnfinishedWork};
use windlass::protocol::EndReason;
use windlass::protocol_view::ProtocolView;
use windlass::wire::startup_failure;
use windlass::{Session, StartNotices, Windlass, hook_wiring};

use crate::arguments::{Arguments, Format, InputFormat};
use crate::commands::process::{ProcessRunner, Signals, block_on, exit_code, runner, wait_for_commands};
use crate::commands::{prompt, sessions};
use crate::standard_io::HostAtStdio;
use crate::terminal::wakeups::Wakeups;
use crate::terminal::{self, Person};
use crate::views::progress::Progress;
use crate::views::screen::Screen;
use crate::views::{self, RunView, TalkView, TextView};
use crate::{complain, display};

/// How long somebody may take to read what is left when a session is over.
const REST_TIME: Duration = Duration::from_secs(2);

/// Everything that is settled before the first request.
struct Ready {
    session: Session,
    notices: StartNotices,
    input: Input,
    /// Whether hosts want to hear of every hook.
    should_tell_hooks: bool,
}

/// Where prompts come from.
enum Input {
    /// One: the texts of the command line and of standard input. None if the session was cut off and goes on.
    Once(Job),
    /// A person at the terminal, after the prompt on the command line.
    Person(Option<String>),
    /// Lines on standard input.
    Lines {
        /// Whether prompts are said back.
        should_replay: bool,
    },
}

/// Runs the prompt and gives the exit code.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<i32> {
    arguments.check()?;
    let ready = match prepare(arguments) {
        Ok(ready) => ready,
        Err(error) => {
            refuse(arguments, &error.to_string());
            return Ok(1);
        }
    };
    let ended = block_on(converse(arguments.output_format, arguments.verbose, ready));
    let (end, signals) = ended.map_err(|error| anyhow!("cannot start the run: {error}."))?;
    let code = match end {
        JobEnd::Done(outcome) => {
            remark(arguments, &outcome);
            i32::from(!outcome.terminal.is_success())
        }
        JobEnd::Stopped(asked) => exit_code(asked),
        JobEnd::Nothing => 0,
        JobEnd::Refused | JobEnd::Unread => 1,
        JobEnd::Unshown(error) => {
            complain(&format!("cannot write the output: {error}."));
            1
        }
    };
    Ok(wait_for_commands(code, signals))
}

/// Says on standard error what the result on standard output does not tell its reader.
fn remark(arguments: &Arguments, outcome: &Outcome) {
    // Lines of the protocol say it all.
    if arguments.output_format == Format::StreamJson {
        return;
    }
    outcome.warnings.iter().for_each(complain);
    if arguments.output_format == Format::Json {
        return;
    }
    if !Progress::is_shown(arguments.verbose) {
        views::denials(outcome).iter().for_each(complain);
    }
    let is_out_of_sight = !std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if let Some(complaint) = views::complaint(outcome).filter(|_| is_out_of_sight) {
        complain(&complaint);
    }
}

/// Checks everything that can be checked without the network. Each error is for the user.
fn prepare(arguments: &Arguments) -> anyhow::Result<Ready> {
    let mut options = arguments.options();
    if arguments.is_interactive() {
        options = options.asks_person().trust_question(terminal::ask_for_trust);
    }
    let app = Windlass::open(options)?;
    let mut session =
        app.session(arguments.session.choice()?).map_err(|error| name_lost(arguments, error))?;
    let input = input(arguments, &session)?;
    let notices = app.start_notices(&mut session);
    let should_tell_hooks = arguments.include_hook_events;
    Ok(Ready { session, notices, input, should_tell_hooks })
}

/// An error about a directory, with what may have become of the prompt.
fn name_lost(arguments: &Arguments, error: windlass::Error) -> anyhow::Error {
    let is_directory = matches!(&error, windlass::Error::Config(ConfigError::Directory { .. }));
    match arguments.swallowed_prompt().filter(|_| is_directory) {
        Some(lost) => anyhow!("{error} {lost}"),
        None => error.into(),
    }
}

/// Where the prompts of a session come from.
fn input(arguments: &Arguments, session: &Session) -> anyhow::Result<Input> {
    if arguments.input_format == InputFormat::StreamJson {
        return Ok(Input::Lines { should_replay: arguments.replay_user_messages });
    }
    if arguments.is_interactive() {
        return Ok(Input::Person(arguments.prompt().map(str::to_owned)));
    }
    match prompt::read(arguments.prompt())? {
        texts if !texts.is_empty() => Ok(Input::Once(Job::of_texts(&texts))),
        _ if session.can_go_on() => Ok(Input::Once(Job::GoOn)),
        _ => Err(anyhow!(prompt::missing(arguments.swallowed_prompt()))),
    }
}

/// Says why no run begins: on standard error, and to hosts also in the form they read.
fn refuse(arguments: &Arguments, error: &str) {
    complain(error);
    if arguments.output_format == Format::Text {
        return;
    }
    let mut line = Vec::new();
    startup_failure(SessionSeed(Uuid::new_v4().as_u128()), &[error.to_owned()], &mut line);
    // A host that does not read has the exit code.
    let _ = std::io::stdout().write_all(&line);
}

async fn converse(format: Format, is_verbose: bool, ready: Ready) -> std::io::Result<(JobEnd, Signals)> {
    let signals = Signals::listen()?;
    let Ready { mut session, notices, input, should_tell_hooks } = ready;
    let StartNotices { untrusted, others } = notices;
    untrusted.iter().for_each(complain);
    if format != Format::StreamJson {
        others.iter().for_each(complain);
    }
    // Whoever goes on takes them up again.
    let goes_on = matches!(input, Input::Once(Job::GoOn));
    let left = if goes_on { UnfinishedWork::default() } else { UnfinishedWork::of(&mut session) };
    // What is said to people stands with the result if both are at a terminal, so that they come in one order.
    let result = Screen::of_output();
    let people = result.clone().filter(|_| std::io::stderr().is_terminal()).unwrap_or_else(Screen::of_error);
    let is_person = matches!(input, Input::Person(_));
    let form: Box<dyn JobView> = match format {
        Format::Text if is_person || result.is_some() => Box::new(TalkView::new(result)),
        Format::Text => Box::new(TextView::new()),
        Format::Json => Box::new(ProtocolView::new(&session, &left, Vec::new()).result_only()),
        Format::StreamJson => {
            let lines = others.iter().map(|notice| notice.replace("\n  ", " ")).collect();
            Box::new(ProtocolView::new(&session, &left, lines))
        }
    };
    let progress = progress(format, is_verbose, &people);
    let mut runner = runner(RunView { form, progress }, signals);
    if runner.display.view.progress.is_none() && format != Format::StreamJson {
        runner.display.watchers.push(Box::new(views::hook_failures()));
    }
    runner.display.output.is_unbuffered = is_person;
    if is_person {
        let (screen, aside) = (people.clone(), runner.display.output.aside.clone());
        session.on_notice(move |text| {
            aside.leave(|out| screen.notice(&format!("windlass: {}", display::line(text)), out));
        });
    } else {
        session.on_notice(complain);
    }
    if format == Format::StreamJson {
        hook_wiring::tell_host(&session, should_tell_hooks, runner.display.output.aside.clone());
    }
    let end = match input {
        Input::Lines { should_replay } => {
            let (host, replies) = (HostAtStdio::new(), runner.display.output.aside.clone());
            let conversation = HostConversation::new(host, replies, session.key, should_replay);
            runner.serve(&mut session, conversation).await
        }
        Input::Person(first) => {
            return Box::pin(talk_to_person(runner, session, (people, left), first)).await;
        }
        Input::Once(job) => runner.perform(job, &mut session, std::future::pending()).await,
    };
    session.close(EndReason::Other).await.iter().for_each(complain);
    if matches!(end, JobEnd::Done(_) | JobEnd::Nothing | JobEnd::Refused) {
        // News of hooks at the end; somebody who does not read is not waited for.
        let _ = tokio::time::timeout(REST_TIME, runner.display.output.flush_aside()).await;
    }
    Ok((end, runner.stops))
}

/// A whole interactive session.
async fn talk_to_person(
    mut runner: ProcessRunner,
    mut session: Session,
    (screen, left): (Screen, UnfinishedWork),
    first: Option<String>,
) -> std::io::Result<(JobEnd, Signals)> {
    let place = (screen, runner.display.output.aside.clone());
    let wakeups = Wakeups(session.wired.engine.clone());
    let (mut person, mut relay) = Person::meet(wakeups, runner.stops.interrupter(), place)?;
    runner.display.watchers.push(Box::new(move |update| relay.heed(update)));
    let resumed = session.resumed.as_ref().map(sessions::resumed_notice);
    person.greet(resumed.as_deref());
    person.offer(left);
    let end = talk(&mut runner, &mut session, &mut person, first).await;
    // From here on the terminal is as it was, so that Ctrl-C is a signal again.
    drop(person);
    let resume = session.is_begun().then_some(session.key.id);
    session.close(EndReason::PromptInputExit).await.iter().for_each(complain);
    if let Some(id) = resume {
        terminal::say(&format!("To continue: windlass --resume {id}\n"));
    }
    Ok((end, runner.stops))
}

/// Progress beside the form, where people read.
fn progress(format: Format, is_verbose: bool, people: &Screen) -> Option<Progress> {
    match format {
        Format::Text => Progress::new(is_verbose, people.clone()),
        Format::Json if is_verbose => Progress::new(true, Screen::of_error()),
        Format::Json | Format::StreamJson => None,
    }
}

/// Does what a person at the terminal asks for, until nothing more is asked.
async fn talk(
    runner: &mut ProcessRunner,
    session: &mut Session,
    person: &mut Person,
    first: Option<String>,
) -> JobEnd {
    let mut next = first.and_then(|first| person.read(&first));
    let mut last = JobEnd::Nothing;
    loop {
        let queued = next.take().or_else(|| person.next_queued(session));
        let job = if queued.is_some() {
            queued
        } else {
            match runner.idle(session, person.next_job()).await {
                Ok(job) => job,
                Err(asked) => return JobEnd::Stopped(asked),
            }
        };
        let Some(job) = job else { return last };
        let handle = session.handle();
        let end = runner.perform(job, session, person.join(handle)).await;
        person.rest();
        runner.display.output.flush_aside().await;
        match end {
            JobEnd::Done(outcome) => {
                // What is queued would fail in the same way.
                if outcome.terminal.is_failure() && session.waiting() > 0 {
                    person.offer(UnfinishedWork::of(session));
                }
                last = JobEnd::Done(outcome);
            }
            // Whoever mistypes a command and leaves has not failed.
            JobEnd::Refused => last = JobEnd::Nothing,
            end => return end,
        }
    }
}
