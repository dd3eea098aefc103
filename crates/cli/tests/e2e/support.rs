//! A project, a server and the binary.

use serde_json::Value;
use windlass_testkit::{Finished, Project, Script, Server, WindlassCommand};

/// The binary under test.
pub(crate) const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// A project with a server that plays a script.
pub(crate) struct Stage {
    pub(crate) project: Project,
    pub(crate) server: Server,
}

impl Stage {
    /// The responses of the script, as JSON.
    pub(crate) fn new(responses: &str) -> Self {
        let script = Script::parse(&format!(r#"{{"responses": {responses}}}"#)).unwrap();
        Self { project: Project::new().unwrap(), server: Server::start(script).unwrap() }
    }

    /// One answer: "Hello."
    pub(crate) fn hello() -> Self {
        Self::new(r#"[{"blocks": [{"text": "Hello."}]}]"#)
    }

    /// One call, then "Done."
    pub(crate) fn call(tool: &str, input: &str) -> Self {
        Self::new(&format!(
            r#"[{{"blocks": [{{"tool": "{tool}", "input": {input}}}]}}, {{"blocks": [{{"text": "Done."}}]}}]"#
        ))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> WindlassCommand {
        self.project.command(WINDLASS).server(&self.server).args(arguments)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        self.command(arguments).run().unwrap()
    }

    /// The body of a request, counted from 0.
    pub(crate) fn request(&self, index: usize) -> Value {
        self.server.exchanges()[index].json()
    }

    /// The texts of the user's side in the last request, in one piece.
    pub(crate) fn last_user_text(&self) -> String {
        let requests = self.server.exchanges();
        let body = requests.last().unwrap().json();
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "user")
            .map(Value::to_string)
            .collect()
    }
}

/// Flags for a line of JSON per message.
pub(crate) const STREAM: [&str; 5] = ["-p", "go", "--output-format", "stream-json", "--verbose"];

/// The last line, which must be the only result.
#[track_caller]
pub(crate) fn result(finished: &Finished) -> Value {
    let lines = finished.json_lines().unwrap();
    let results = lines.iter().filter(|line| line["type"] == "result").count();
    assert_eq!(results, 1, "exactly one result in {}", finished.stdout);
    let last = lines.last().unwrap().clone();
    assert_eq!(last["type"], "result");
    last
}

/// A run that begins and fails: its result, which is what went wrong, is on standard output and holds these words.
#[track_caller]
pub(crate) fn check_failed(finished: &Finished, words: &[&str]) {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""), "{finished:?}");
    assert_eq!(finished.stdout.lines().count(), 1, "{}", finished.stdout);
    for word in words {
        assert!(finished.stdout.contains(word), "{word:?} is not in {:?}", finished.stdout);
    }
}

/// A run that must fail before it begins: nothing on standard output, one complaint, a line that holds these words.
#[track_caller]
pub(crate) fn check_refused(finished: &Finished, words: &[&str]) {
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert_eq!(finished.stdout, "");
    let complaints: Vec<&str> = finished.stderr.lines().collect();
    assert!(matches!(complaints[..], [line] if line.starts_with("windlass: ")), "{}", finished.stderr);
    for word in words {
        assert!(finished.stderr.contains(word), "{word:?} is not in {:?}", finished.stderr);
    }
}
