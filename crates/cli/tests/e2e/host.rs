//! A host that speaks with the binary in lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::support::Stage;

pub(crate) const LINES: [&str; 5] =
    ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

/// A host that speaks with the binary.
pub(crate) struct Host {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    pub(crate) fn start(stage: &Stage, arguments: &[&str]) -> Self {
        Self::spawn(stage.command(&[&LINES[..], arguments].concat()).into_command())
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    pub(crate) fn say(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// The next line; nothing at the end.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Every line up to the next of this type, which is the last.
    pub(crate) fn hear_until(&mut self, kind: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.hear() {
            let found = line["type"] == kind;
            lines.push(line);
            if found {
                return lines;
            }
        }
        panic!("no {kind} in {lines:?}");
    }

    pub(crate) fn end(mut self) -> (Vec<Value>, ExitStatus) {
        self.close();
        let rest = std::iter::from_fn(|| self.hear()).collect();
        (rest, self.child.wait().unwrap())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn prompt(text: &str, uuid: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "uuid": uuid, "parent_tool_use_id": null})
}

pub(crate) fn interrupt(id: &str) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}})
}
