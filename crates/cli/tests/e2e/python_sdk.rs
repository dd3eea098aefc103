//! The session functions of the official Python SDK, on sessions that the binary made.
//!
//! The package is the real one, pinned in `tests/python/requirements.txt`; `cargo xtask python` installs it.

mod changes;
mod places;
mod reading;
mod windows;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::host::Host;
use crate::support::Stage;

const REQUIREMENTS: &str = include_str!("../python/requirements.txt");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/call_sdk.py");

/// A Python program of the user who runs the binary.
struct Sdk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Sdk {
    /// Starts it where the binary keeps its sessions. Nothing if the package is not installed; continuous integration insists
    /// on it.
    fn start(stage: &Stage) -> Option<Self> {
        Self::configured(stage, Some(&kept(stage)))
    }

    /// Starts it with this directory in `CLAUDE_CONFIG_DIR`.
    fn configured(stage: &Stage, config: Option<&Path>) -> Option<Self> {
        let mut command = Command::new(python()?);
        command.arg(SCRIPT).env("HOME", stage.project.home()).env_remove("CLAUDE_CONFIG_DIR");
        if let Some(config) = config {
            command.env("CLAUDE_CONFIG_DIR", config);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(Self { child, input, output })
    }

    /// What a function returns or raises.
    fn outcome(&mut self, function: &str, arguments: &Value) -> Result<Value, String> {
        writeln!(self.input, "{}", json!({"function": function, "arguments": arguments})).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        match answer["error"].take() {
            Value::String(error) => Err(error),
            _ => Ok(answer["value"].take()),
        }
    }

    /// What a function returns.
    #[track_caller]
    fn call(&mut self, function: &str, arguments: &Value) -> Value {
        self.outcome(function, arguments).unwrap_or_else(|error| panic!("{function}: {error}"))
    }

    /// The sessions of a project, the newest first.
    #[track_caller]
    fn list(&mut self, stage: &Stage) -> Vec<Value> {
        let listed = self.call("list_sessions", &json!({"directory": stage.project.path()}));
        listed.as_array().unwrap().clone()
    }

    #[track_caller]
    fn info(&mut self, id: &str) -> Value {
        self.call("get_session_info", &json!({"session_id": id}))
    }

    #[track_caller]
    fn messages(&mut self, id: &str) -> Vec<Value> {
        self.call("get_session_messages", &json!({"session_id": id})).as_array().unwrap().clone()
    }

    /// Copies a session and gives the id of the copy.
    #[track_caller]
    fn fork(&mut self, id: &str, upto: Option<&str>, title: Option<&str>) -> String {
        let arguments = json!({"session_id": id, "up_to_message_id": upto, "title": title});
        self.call("fork_session", &arguments)["session_id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Python that has the package.
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told which were left out")]
fn python() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("python");
    let installed = std::fs::read_to_string(environment.join("requirements.txt"));
    if installed.is_ok_and(|installed| installed == REQUIREMENTS) {
        return Some(environment.join("bin/python"));
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the Python SDK is not installed, and these tests need it: run `cargo xtask python`"
    );
    eprintln!("SKIPPED: the Python SDK is not installed; `cargo xtask python` installs it");
    None
}

/// Where the binary keeps its sessions when nobody says otherwise.
fn kept(stage: &Stage) -> PathBuf {
    stage.project.home().join(".windlass")
}

/// The n-th id that a host gives to a prompt.
fn prompt_id(n: usize) -> String {
    format!("11111111-2222-4333-8444-{n:012}")
}

/// A conversation by lines: prompts one after the other, which are said back.
fn converse(stage: &Stage, flags: &[&str], prompts: &[(usize, &str)]) -> Live {
    let flags = [flags, &["--replay-user-messages", "--allowedTools", "Bash"]].concat();
    let mut host = Host::start(stage, &flags);
    let mut lines = Vec::new();
    for (n, text) in prompts {
        host.say(&crate::host::prompt(text, &prompt_id(*n)));
        lines.extend(host.hear_until("result"));
    }
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code()), (0, Some(0)), "{rest:?}");
    Live(lines)
}

/// What a host heard.
struct Live(Vec<Value>);

impl Live {
    fn id(&self) -> String {
        self.0.last().unwrap()["session_id"].as_str().unwrap().to_owned()
    }

    /// The ids of the messages that stand in the end.
    fn standing(&self) -> BTreeSet<String> {
        let gone: Vec<&Value> =
            self.0.iter().filter_map(|line| line["supersedes"].as_array()).flatten().collect();
        let said = |line: &&Value| ["user", "assistant"].contains(&line["type"].as_str().unwrap());
        let standing = self.0.iter().filter(said).filter(|line| !gone.contains(&&line["uuid"]));
        standing.map(|line| line["uuid"].as_str().unwrap().to_owned()).collect()
    }
}

fn uuids(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| message["uuid"].as_str().unwrap().to_owned()).collect()
}

/// The messages in brief: who, and what each block says.
fn outline(messages: &[Value]) -> Vec<String> {
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => block["text"].as_str().unwrap().to_owned(),
        "tool_use" => format!(
            "{} {}",
            block["name"].as_str().unwrap(),
            block["input"]["command"].as_str().unwrap_or("")
        ),
        "tool_result" => format!("-> {}", block["content"].as_str().unwrap_or("blocks").trim()),
        other => other.to_owned(),
    };
    let brief = |message: &Value| {
        let content = &message["message"]["content"];
        let said = content.as_array().map_or_else(
            || content.as_str().unwrap().to_owned(),
            |blocks| blocks.iter().map(block).collect::<Vec<_>>().join(" + "),
        );
        format!("{}: {said}", message["type"].as_str().unwrap())
    };
    messages.iter().map(brief).collect()
}

/// A response that says this.
fn says(text: &str) -> Value {
    json!({"blocks": [{"text": text}]})
}

/// A block that calls Bash.
fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

/// Checks that every request was one that the API takes.
#[track_caller]
fn check_requests(stage: &Stage) {
    assert_eq!(stage.server.refusals(), [""; 0]);
}
