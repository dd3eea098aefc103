//! What both programs are put through: a script, a project, and the requests that belong to it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use windlass_testkit::{Exchange, Project, Script, Server, ServerOptions};

use crate::bench::process::{self, BenchProgram, ProcessRun, Subject};

/// What a program is asked to do beside talking to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Print the answer.
    Answer,
    /// Print each delta as it comes.
    Deltas,
    /// Run the tools that are asked for.
    Tools,
}

/// A script and a project to run it in.
#[derive(Debug)]
pub struct Scenario {
    script: Script,
    project: Project,
    mode: Mode,
}

/// In what way a program is run beside the usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunVariant<'a> {
    /// The command line of a program that runs it.
    pub(crate) wrapper: &'a [PathBuf],
    /// Further arguments for the binary.
    pub(crate) arguments: &'a [&'a str],
    /// Further variables.
    pub(crate) variables: &'a [(&'a str, &'a str)],
}

impl RunVariant<'_> {
    /// Without a log.
    pub(crate) const UNLOGGED: RunVariant<'static> =
        RunVariant { wrapper: &[], arguments: &["--no-session-persistence"], variables: &[] };
}

/// One run.
#[derive(Debug)]
pub struct Sample {
    /// Just before the process was started.
    pub began: Instant,
    /// The whole process.
    pub elapsed: Duration,
    /// The requests and their answers, with times.
    pub exchanges: Vec<Exchange>,
    /// When each line with a text delta came out, if that was asked for.
    pub lines: Vec<Instant>,
    pub(crate) stderr: String,
}

/// The line of output that holds a delta, in the words of the API.
const DELTA: &str = "text_delta";
/// How long the server may take to notice that its last response was read.
const QUIET_WITHIN: Duration = Duration::from_secs(10);

impl Scenario {
    /// A scenario without any files.
    pub fn new(script: &Value, mode: Mode) -> Result<Self> {
        let script = Script::parse(&script.to_string())?;
        Ok(Self { script, project: Project::new()?, mode })
    }

    /// Where the program runs.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Lets the binary send its requests once, checked by the rules of the API, and keeps them for the bare client.
    /// Gives the last of them.
    pub fn record(&self, windlass: &Subject) -> Result<Arc<[u8]>> {
        let server = Server::start(self.script.clone())?;
        process::run(self.command(windlass, &server, RunVariant::default()), None)?;
        let bodies: Vec<_> = server.exchanges().into_iter().map(|exchange| exchange.body).collect();
        ensure!(server.is_used_up(), "the binary did not go through the script: {} requests", bodies.len());
        self.keep_bodies(bodies.iter().map(|body| &**body))?;
        bodies.into_iter().next_back().context("the binary sent no request")
    }

    /// Keeps request bodies for the bare client.
    pub fn keep_bodies<'a>(&self, bodies: impl IntoIterator<Item = &'a [u8]>) -> Result<()> {
        let file = std::fs::File::create(self.bodies_path()).context("cannot keep the requests")?;
        let mut file = std::io::BufWriter::new(file);
        for body in bodies {
            writeln!(file, "{}", body.len())?;
            file.write_all(body)?;
        }
        Ok(file.flush()?)
    }

    /// Runs a program once. `watch` takes the time of each line of output that holds a text delta.
    pub fn run(&self, subject: &Subject, should_watch: bool) -> Result<Sample> {
        self.run_under(subject, should_watch, &[])
    }

    /// Runs a program once under another that is given its command line.
    pub(crate) fn run_under(
        &self,
        subject: &Subject,
        should_watch: bool,
        wrapper: &[PathBuf],
    ) -> Result<Sample> {
        self.run_as(subject, should_watch, RunVariant { wrapper, ..RunVariant::default() })
    }

    /// Runs a program once, in a way of its own.
    pub(crate) fn run_as(
        &self,
        subject: &Subject,
        should_watch: bool,
        way: RunVariant<'_>,
    ) -> Result<Sample> {
        let options = ServerOptions { should_keep_bodies: false, should_check_requests: false };
        let server = Server::start_with(self.script.clone(), options)?;
        let command = self.command(subject, &server, way);
        let ProcessRun { began, elapsed, stderr, lines, stdout } =
            process::run(command, should_watch.then_some(DELTA))?;
        // The server notes the end of a response after the program has read it.
        ensure!(
            server.wait_until_quiet(QUIET_WITHIN),
            "the server is still answering after the program ended"
        );
        let exchanges = server.exchanges();
        ensure!(
            server.is_used_up(),
            "{:?} did not go through the script: {} requests\n{}\n{stderr}",
            subject.program,
            exchanges.len(),
            String::from_utf8_lossy(&stdout)
        );
        Ok(Sample { began, elapsed, exchanges, lines, stderr })
    }

    fn bodies_path(&self) -> PathBuf {
        self.project.home().join("bodies")
    }

    fn command(&self, subject: &Subject, server: &Server, way: RunVariant<'_>) -> Command {
        let mut line: Vec<PathBuf> = way.wrapper.to_vec();
        line.push(subject.binary.clone());
        let command = self.project.command(&line[0]).server(server).args(&line[1..]);
        let command = match subject.program {
            BenchProgram::Bare => command.args([server.url().into(), self.bodies_path()]),
            BenchProgram::Windlass => command.env("IS_SANDBOX", "1").args([
                "-p",
                "go on",
                "--model",
                "claude-sonnet-5",
                "--permission-mode",
                "bypassPermissions",
            ]),
        };
        let flags: &[&str] = match (subject.program, self.mode) {
            (_, Mode::Answer) | (BenchProgram::Windlass, Mode::Tools) => &[],
            (BenchProgram::Bare, Mode::Deltas) => &["--echo"],
            (BenchProgram::Bare, Mode::Tools) => &["--tools"],
            (BenchProgram::Windlass, Mode::Deltas) => {
                &["--output-format", "stream-json", "--verbose", "--include-partial-messages"]
            }
        };
        let variables = way.variables.iter();
        let command = variables.fold(command, |command, (name, value)| command.env(name, value));
        command.args(flags).args(way.arguments).into_command()
    }
}
