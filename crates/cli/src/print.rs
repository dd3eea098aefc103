//! One prompt without a UI: from the flags to the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use uuid::Uuid;
use windlass_config::{Config, ConfigError};
use windlass_engine::{Asking, Outcome, Session, SessionSeed};
use windlass_hooks::SettingsHooks;
use windlass_protocol::{EndReason, SessionKey};
use windlass_wire::{Translator, startup_failure};

use crate::arguments::{Arguments, Format, InputFormat};
use crate::bell::Bells;
use crate::conversation::{Conversation, Ended};
use crate::drive::{End, Signals, block_on, show_background, shown, wait_for_commands};
use crate::guard::{self, Keeper};
use crate::jobs::{Job, Stage};
use crate::keeping::Keeping;
use crate::left::Left;
use crate::lines::Lines;
use crate::opening::{Again, Keep, Opened, Opening, Origins};
use crate::output::Output;
use crate::progress::Progress;
use crate::screen::Screen;
use crate::terminal::{self, Person};
use crate::view::{self, JsonView, StreamView, TalkView, TextView, View, WithProgress};
use crate::watched::Watched;
use crate::wiring::{self, Form, Wired};
use crate::{complain, hooking, prompt};

/// How long somebody may take to read what is left when a session is over.
const REST_TIME: Duration = Duration::from_secs(2);

/// Everything that is settled before the first request.
struct Ready {
    wired: Wired,
    /// What of the project waits for trust, if that was not said yet.
    untrusted: Option<String>,
    /// Where changes of the permissions are kept.
    keeper: Keeper,
    key: SessionKey,
    opened: Opened,
    input: Input,
    /// Whether hosts want to hear of every hook.
    hook_events: bool,
}

/// Where prompts come from.
enum Input {
    /// One: the texts of the command line and of standard input.
    Prompt(Vec<String>),
    /// None: the session was cut off before the model had answered, and goes on.
    GoOn,
    /// A person at the terminal.
    Person {
        /// The prompt on the command line.
        first: Option<String>,
    },
    /// Lines on standard input.
    Lines {
        /// Whether prompts are said back.
        replays: bool,
    },
}

/// Where people read.
struct Screens {
    /// The result of a run, if that is at a terminal.
    result: Option<Screen>,
    /// Everything said to people beside it: on the same terminal, so that both come in one order, or on standard error.
    people: Screen,
}

impl Screens {
    fn new() -> Self {
        let result = Screen::of_output();
        let people = result.clone().filter(|_| std::io::stderr().is_terminal());
        Self { people: people.unwrap_or_else(Screen::of_error), result }
    }
}

/// Runs the prompt and gives the exit code.
pub(crate) fn run(arguments: &Arguments) -> i32 {
    if let Err(error) = arguments.check() {
        complain(&error);
        return 1;
    }
    let ready = match prepare(arguments) {
        Ok(ready) => ready,
        Err(error) => {
            refuse(arguments, &error);
            return 1;
        }
    };
    let (end, signals) = match block_on(converse(arguments.output_format, arguments.verbose, ready)) {
        Ok(ended) => ended,
        Err(error) => {
            complain(&format!("cannot start the run: {error}."));
            return 1;
        }
    };
    let code = match end {
        End::Done(outcome) => {
            remark(arguments, &outcome);
            i32::from(!outcome.terminal.is_success())
        }
        End::Signal(code) => code,
        End::Nothing => 0,
        End::Refused | End::Unread => 1,
        End::Unshown(error) => {
            complain(&format!("cannot write the output: {error}."));
            1
        }
    };
    wait_for_commands(code, signals)
}

/// Says on standard error what the result on standard output does not tell its reader.
fn remark(arguments: &Arguments, outcome: &Outcome) {
    // Lines of the protocol say it all.
    if arguments.output_format == Format::StreamJson {
        return;
    }
    outcome.warnings.iter().for_each(|warning| complain(warning));
    if arguments.output_format == Format::Json {
        return;
    }
    if !Progress::is_shown(arguments.verbose) {
        for denial in view::denials(outcome) {
            complain(&denial);
        }
    }
    let is_out_of_sight = !std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if let Some(complaint) = view::complaint(outcome).filter(|_| is_out_of_sight) {
        complain(&complaint);
    }
}

/// Checks everything that can be checked without the network. Each error is for the user.
fn prepare(arguments: &Arguments) -> Result<Ready, String> {
    let place = guard::place()?;
    let held = guard::load(arguments.said(), &place, terminal::agrees)?;
    let opening = Opening::find(&arguments.wish()?, &held.home, &place.cwd, held.git.as_ref())?;
    let mut flags = arguments.flags();
    opening.saved().fill(&mut flags);
    let files = held.effective.settings;
    let mut config = Config::with_files(held.settings, &flags, &place, files).map_err(|error| {
        let lost = arguments.swallowed_prompt().filter(|_| matches!(error, ConfigError::Directory { .. }));
        lost.map_or_else(|| error.to_string(), |lost| format!("{error} {lost}"))
    })?;
    config.environment = held.environment;
    if arguments.is_interactive() {
        config.permissions.asking = Asking::Person;
    }
    let lines = arguments.input_format == InputFormat::StreamJson;
    let (key, origins) = (opening.key, Origins::new(&config, &flags, held.git));
    let streams_text = arguments.output_format == Format::Text && std::io::stdout().is_terminal();
    let partial_messages = arguments.include_partial_messages || streams_text;
    let form = Form {
        partial_messages,
        lines,
        person: arguments.is_interactive(),
        reads_lines: arguments.output_format == Format::StreamJson,
        prompt_suggestions: arguments.prompt_suggestions,
    };
    let mut wired = wiring::wire(config, form, &opening.kept())?;
    wired.setup.untrusted_settings = held.effective.skipped;
    let opened = opening.open(&wired.engine, origins)?;
    let input = if lines {
        Input::Lines { replays: arguments.replay_user_messages }
    } else if arguments.is_interactive() {
        Input::Person { first: arguments.prompt().map(str::to_owned) }
    } else {
        match prompt::read(arguments.prompt())? {
            texts if !texts.is_empty() => Input::Prompt(texts),
            _ if opened.session.awaits_answer() || !opened.session.unfinished().is_empty() => Input::GoOn,
            _ => return Err(prompt::missing(arguments.swallowed_prompt())),
        }
    };
    let notices = held.notices;
    let standing = std::mem::take(&mut wired.standing);
    if arguments.output_format == Format::StreamJson {
        wired.warnings.splice(0..0, notices.untrusted().map(str::to_owned).into_iter().chain(standing));
        wired.warnings.extend(notices.all());
    } else {
        wired.warnings.splice(0..0, notices.unreported(standing));
        wired.warnings.extend(notices.news());
    }
    // Whoever was asked hears what follows from a no, each time.
    let untrusted = if arguments.is_interactive() {
        notices.untrusted().map(str::to_owned)
    } else {
        notices.untrusted_news()
    };
    let hook_events = arguments.include_hook_events;
    let keeper = Keeper { places: held.places, home: held.home };
    Ok(Ready { wired, untrusted, keeper, key, opened, input, hook_events })
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

async fn converse(format: Format, verbose: bool, ready: Ready) -> std::io::Result<(End, Signals)> {
    let signals = Signals::listen()?;
    let Wired { engine, setup, mut warnings, may_compact, hooks, redactor, .. } = ready.wired;
    let (key, Opened { mut session, resumed, notices, again, keep }) = (ready.key, ready.opened);
    warnings.extend(notices);
    let told = warnings.iter().filter(|_| format != Format::StreamJson);
    ready.untrusted.iter().chain(told).for_each(|warning| complain(warning));
    let translator = Translator::new(key, setup).resumed(session.spent());
    // Whoever goes on takes them up again.
    let goes_on = matches!(ready.input, Input::GoOn);
    let left = if goes_on { Left::default() } else { Left::of(&mut session) };
    let translator = translator.left(left.fates());
    let screens = Screens::new();
    let mut view: Box<dyn View> = match format {
        Format::Text if matches!(ready.input, Input::Person { .. }) || screens.result.is_some() => {
            Box::new(TalkView::new(screens.result))
        }
        Format::Text => Box::new(TextView::new()),
        Format::Json => Box::new(JsonView::new(translator)),
        Format::StreamJson => {
            let lines = warnings.iter().map(|warning| warning.replace("\n  ", " ")).collect();
            Box::new(StreamView::new(translator, lines))
        }
    };
    view = with_progress(view, format, verbose, &screens.people);
    let mut output = Output::new();
    output.at_once = matches!(ready.input, Input::Person { .. });
    let person = output.at_once.then(|| (screens.people.clone(), output.aside()));
    view = Box::new(Watched { watch: Keeping { keeper: ready.keeper, person }, inner: view });
    if let Some(hooks) = hooks.as_ref().filter(|_| format == Format::StreamJson) {
        hooking::tell_host(hooks, key, redactor, output.aside(), ready.hook_events);
    }
    let conversation = match ready.input {
        Input::Lines { replays } => Conversation::new(Lines::new(), output.aside(), key, replays),
        Input::Person { first } => {
            let place = (screens.people, output.aside());
            let (mut person, watch) = Person::meet(Bells::new(engine), signals.interrupter(), place)?;
            let view = Box::new(Watched { watch, inner: view });
            let mut stage = Stage { view, output, signals, may_compact, again };
            person.greet(resumed.as_deref());
            person.offer(left);
            let end = talk(&mut stage, &mut session, &mut person, first).await;
            // From here on the terminal is as it was, so that Ctrl-C is a signal again.
            drop(person);
            finish(session, keep, hooks, EndReason::PromptInputExit).await;
            if let Some(again) = stage.again.filter(Again::is_begun) {
                terminal::say(&format!("To continue: windlass --resume {}\n", again.id()));
            }
            return Ok((end, stage.signals));
        }
        Input::Prompt(_) | Input::GoOn => {
            let job = only_job(ready.input);
            let mut stage = Stage { view, output, signals, may_compact, again };
            let end = stage.perform(job, &mut session, std::future::pending()).await;
            finish(session, keep, hooks, EndReason::Other).await;
            tell_rest(&mut stage.output, &end).await;
            return Ok((end, stage.signals));
        }
    };
    let view = conversation.noticing(view);
    let mut stage = Stage { view, output, signals, may_compact, again };
    let end = serve(&mut stage, &mut session, conversation).await;
    finish(session, keep, hooks, EndReason::Other).await;
    tell_rest(&mut stage.output, &end).await;
    Ok((end, stage.signals))
}

/// The same view with progress beside it, or at least failures of hooks, where people read.
fn with_progress(inner: Box<dyn View>, format: Format, verbose: bool, people: &Screen) -> Box<dyn View> {
    let progress = match format {
        Format::Text => Progress::new(verbose, people.clone()),
        Format::Json if verbose => Progress::new(true, Screen::of_error()),
        Format::Json | Format::StreamJson => None,
    };
    match progress {
        Some(progress) => Box::new(WithProgress { progress, inner }),
        None if format != Format::StreamJson => {
            Box::new(Watched { watch: hooking::HookFailures::default(), inner })
        }
        None => inner,
    }
}

/// The session is done, and so is its log. Hooks hear of it first.
async fn finish(mut session: Session, keep: Keep, hooks: Option<SettingsHooks>, reason: EndReason) {
    for notice in session.end(reason).await {
        complain(&notice);
    }
    if let Some(hooks) = hooks {
        hooks.end_background().await;
    }
    drop(session);
    for notice in keep.close() {
        complain(&notice);
    }
}

/// Writes what was left after the last run, such as news of hooks at its end. Whoever does not read is not waited for.
async fn tell_rest(output: &mut Output, end: &End) {
    if matches!(end, End::Done(_) | End::Nothing | End::Refused) {
        let _ = tokio::time::timeout(REST_TIME, output.flush_aside()).await;
    }
}

/// What a command line asks for.
fn only_job(input: Input) -> Job {
    let Input::Prompt(texts) = input else { return Job::GoOn };
    Job::of_texts(&texts)
}

/// Does what a person at the terminal asks for, until nothing more is asked.
async fn talk(stage: &mut Stage, session: &mut Session, person: &mut Person, first: Option<String>) -> End {
    let mut next = first.and_then(|first| person.read(&first));
    let mut last = End::Nothing;
    loop {
        let queued = next.take().or_else(|| person.next_queued(session));
        let job = if queued.is_some() {
            queued
        } else {
            let Stage { view, output, signals, .. } = &mut *stage;
            tokio::select! {
                biased;
                received = signals.next() => return End::Signal(received.exit_code()),
                job = person.next_job() => job,
                never = show_background(session, &mut **view, output) => match never {},
            }
        };
        let Some(job) = job else { return last };
        let handle = session.handle();
        let end = stage.perform(job, session, person.join(handle)).await;
        person.rest();
        stage.output.flush_aside().await;
        match end {
            End::Done(outcome) => {
                // What is queued would fail in the same way.
                if outcome.terminal.is_failure() && session.waiting() > 0 {
                    person.offer(Left::of(session));
                }
                last = End::Done(outcome);
            }
            // Whoever mistypes a command and leaves has not failed.
            End::Refused => last = End::Nothing,
            end => return end,
        }
    }
}

/// Does what lines on standard input ask for, until they end. Gives the end of the last job.
async fn serve(stage: &mut Stage, session: &mut Session, mut conversation: Conversation) -> End {
    let mut last = None;
    let aside = stage.output.aside();
    loop {
        if let Some(job) = conversation.next_job(session).await {
            let handle = session.handle();
            match stage.perform(job, session, conversation.join(handle)).await {
                end @ (End::Done(_) | End::Refused) => last = Some(end),
                end => return end,
            }
            continue;
        }
        stage.output.take_aside();
        if let Err(error) = stage.output.flush().await {
            return shown(Err(error));
        }
        match conversation.ended() {
            None => {}
            Some(Ended::Bad) => return End::Refused,
            Some(Ended::Closed) => return last.unwrap_or(End::Nothing),
        }
        let Stage { view, output, signals, .. } = &mut *stage;
        tokio::select! {
            biased;
            received = signals.next() => return End::Signal(received.exit_code()),
            () = conversation.read() => {}
            () = aside.left() => {}
            never = show_background(session, &mut **view, output) => match never {},
        }
    }
}
