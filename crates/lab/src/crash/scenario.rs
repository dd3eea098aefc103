//! One session: worked on, killed and resumed until its script is used up.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use windlass_testkit::{Project, Script, Server};

use crate::crash::{CrashRng, Plan, Report, check};

/// How many responses of a script ask for calls.
const STEPS: u64 = 24;
/// The session's id.
const ID: &str = "0c0ffee0-1111-4222-8333-444455556666";
/// Most kills of one session: then it is left to finish.
const KILLS_MAX: u64 = 40;

pub(crate) struct CrashScenario {
    plan: Plan,
    chance: CrashRng,
    pub(crate) project: Project,
    pub(crate) server: Server,
}

/// What one process came to.
struct Ran {
    /// Whether it was killed before its end.
    is_killed: bool,
    /// The lines it showed.
    shown: Vec<Value>,
}

impl CrashScenario {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Result<Self> {
        let mut chance = CrashRng::new(seed);
        let script = script(&mut chance);
        let script = Script::parse(&script.to_string()).map_err(|error| anyhow::anyhow!("{error}"))?;
        let (project, server) = (Project::new()?, Server::start(script)?);
        project.write("notes.txt", "one\ntwo\nthree\n")?;
        Ok(Self { plan: plan.clone(), chance, project, server })
    }

    /// Kills at most so often, then lets the session finish, and checks everything. What is wrong stays on disk to look at.
    pub(crate) fn play(mut self, kills: u64) -> Result<Report> {
        let played = self.kill_and_finish(kills);
        if played.is_err() {
            let kept = self.project.path();
            std::mem::forget(self.project);
            return played.with_context(|| format!("look into {} and beside it", kept.display()));
        }
        played
    }

    fn kill_and_finish(&mut self, kills: u64) -> Result<Report> {
        let mut report = Report { sessions: 1, ..Report::default() };
        while report.kills < kills.min(KILLS_MAX) {
            let micros = self.chance.below(u64::try_from(self.plan.within.as_micros()).unwrap_or(u64::MAX));
            let ran = self.run("go on", Some(Duration::from_micros(micros)))?;
            report.kills += u64::from(ran.is_killed);
            report.acknowledged += self.check_shown(&ran.shown)?;
            if !ran.is_killed && self.is_done() {
                break;
            }
        }
        let last = self.run("finish", None)?;
        self.check_shown(&last.shown)?;
        let end = last.shown.last().context("the last run shows nothing")?;
        ensure!(end["subtype"] == "success", "the last run does not end well: {end}");
        check::all(self, &mut report)?;
        Ok(report)
    }

    fn is_done(&self) -> bool {
        u64::try_from(self.server.exchanges().len()).unwrap_or(u64::MAX) > STEPS
    }

    /// One process. With a time it is killed then, if it still runs.
    fn run(&self, prompt: &str, kill_after: Option<Duration>) -> Result<Ran> {
        let session = if self.log().is_some() { ["--resume", ID] } else { ["--session-id", ID] };
        let flags =
            ["-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write"];
        let command = self.project.command(&self.plan.binary).server(&self.server).args(session).args(flags);
        let mut command = command.env("WINDLASS_BACKOFF_MS", "1").into_command();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no standard output")?;
        let reader = std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).collect::<Vec<Value>>()
        });
        let mut is_killed = false;
        if let Some(after) = kill_after {
            std::thread::sleep(after);
            is_killed = child.try_wait()?.is_none();
            child.kill()?;
        }
        let status = child.wait()?;
        let shown = reader.join().map_err(|_| anyhow::anyhow!("the reader failed"))?;
        let mut complaint = String::new();
        if let Some(mut errors) = child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut errors, &mut complaint);
        }
        ensure!(is_killed || status.success(), "a run failed: {status}\n{complaint}\n{:?}", shown.last());
        Ok(Ran { is_killed, shown })
    }

    /// The log, once it is there. An empty file counts as none.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        let projects = self.project.home().join(".windlass/projects");
        let mut folders = std::fs::read_dir(projects).ok()?.flatten();
        folders.find_map(|folder| {
            let path = folder.path().join(format!("{ID}.jsonl"));
            std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0).then_some(path)
        })
    }

    /// Everything that was shown is in the log.
    fn check_shown(&self, shown: &[Value]) -> Result<u64> {
        let messages = shown.iter().filter(|line| line["type"] == "assistant" || line["type"] == "user");
        let messages: Vec<&Value> = messages.collect();
        if messages.is_empty() {
            return Ok(0);
        }
        let log = self.log().context("messages were shown, and there is no log")?;
        let entries = check::entries(&log)?;
        for message in &messages {
            let uuid = message["uuid"].as_str().unwrap_or_default();
            let entry = entries.get(uuid).with_context(|| format!("shown and lost: {message}"))?;
            ensure!(entry["message"] == message["message"], "shown and changed: {message}\n{entry}");
        }
        Ok(u64::try_from(messages.len()).unwrap_or(u64::MAX))
    }
}

/// Responses that each ask for something that leaves a trace of its own.
fn script(chance: &mut CrashRng) -> Value {
    let mut responses: Vec<Value> = (0..STEPS).map(|step| response(step, chance)).collect();
    responses.push(json!({"blocks": [{"text": "Done."}], "repeat": 1000}));
    json!({"responses": responses})
}

fn response(step: u64, chance: &mut CrashRng) -> Value {
    let command = match chance.below(3) {
        0 => format!("echo {step} >> counter-{step}"),
        1 => format!("echo {step} >> counter-{step}; sleep 0.0{}", chance.below(10)),
        _ => format!("sleep 0.0{}; echo {step} >> counter-{step}", chance.below(10)),
    };
    let mut blocks = vec![
        json!({"text": format!("Step {step}.")}),
        json!({"tool": "Bash", "input": {"command": command}, "id": format!("count-{step}")}),
    ];
    if chance.below(2) == 0 {
        blocks.insert(
            1,
            json!({"tool": "Read", "input": {"file_path": "notes.txt"}, "id": format!("read-{step}")}),
        );
    }
    if chance.below(3) == 0 {
        let input = json!({"file_path": format!("file-{step}.txt"), "content": format!("{step}\n")});
        blocks.push(json!({"tool": "Write", "input": input, "id": format!("write-{step}")}));
    }
    json!({"blocks": blocks})
}
