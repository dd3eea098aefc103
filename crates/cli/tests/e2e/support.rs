//! A project, a server and the binary.

use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_testkit::{Exchange, FinishedProcess, Project, Script, Server, ServerBuilder, WindlassCommand};

/// The binary under test.
pub(crate) const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// One red pixel.
pub(crate) const PNG: &[u8] = b"\
    \x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90w\
    S\xde\x00\x00\x00\x0cIDATx\xdac\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xf7\x03AC\x00\x00\x00\x00IEND\
    \xaeB`\x82";

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

    /// A server that does more than play these responses.
    pub(crate) fn serving(responses: &Value, set_up: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let builder = set_up(Server::builder(script(responses)));
        Self { project: Project::new().unwrap(), server: builder.start().unwrap() }
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

    pub(crate) fn run(&self, arguments: &[&str]) -> FinishedProcess {
        self.command(arguments).run().unwrap()
    }

    /// A run with a line of JSON per message. Failures are tried again at once.
    pub(crate) fn told(&self, flags: &[&str], variables: &[(&str, &str)]) -> Told {
        let command = self.command(&[&STREAM[..], flags].concat()).env("WINDLASS_BACKOFF_MS", "1");
        let finished =
            variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().unwrap();
        Told::new(finished)
    }

    /// Waits until a file of the project exists.
    #[track_caller]
    pub(crate) fn wait_for_file(&self, name: &str) {
        let began = Instant::now();
        while self.project.read(name).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "there is no {name}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.server.exchanges().len()
    }

    /// The models that were asked, in order.
    pub(crate) fn models(&self) -> Vec<String> {
        self.server.exchanges().iter().map(Exchange::model).collect()
    }

    /// The newest message of a request, as JSON.
    pub(crate) fn newest(&self, index: usize) -> String {
        self.request(index)["messages"].as_array().unwrap().last().unwrap().to_string()
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

/// The responses of a script.
pub(crate) fn script(responses: &Value) -> Script {
    Script::parse(&serde_json::json!({ "responses": responses }).to_string()).unwrap()
}

/// Whether a request says all that another said, and more behind it, in the last message or in further ones.
pub(crate) fn grew(earlier: &Exchange, later: &Exchange) -> bool {
    later.prompt().starts_with(earlier.prompt().trim_end_matches([']', '}']))
}

/// A run that printed a line of JSON per message.
pub(crate) struct Told {
    pub(crate) finished: FinishedProcess,
    pub(crate) lines: Vec<Value>,
    pub(crate) result: Value,
}

impl Told {
    #[track_caller]
    pub(crate) fn new(finished: FinishedProcess) -> Self {
        let (lines, result) = (finished.json_lines().unwrap(), result(&finished));
        Self { finished, lines, result }
    }

    /// Checks how it ended: subtype, reason and exit code, and what every result has.
    #[track_caller]
    pub(crate) fn ended(&self, subtype: &str, reason: &str, code: i32) {
        let Self { finished, result, lines } = self;
        let seen = (result["subtype"].as_str(), result["terminal_reason"].as_str(), finished.code());
        assert_eq!(seen, (Some(subtype), Some(reason), Some(code)), "{result}\n{}", finished.stderr);
        assert_eq!(result["is_error"], code != 0, "{result}");
        assert_eq!(finished.stderr, "");
        assert_eq!((&lines[0]["type"], &lines[0]["subtype"]), (&"system".into(), &"init".into()));
        for field in
            ["total_cost_usd", "usage", "modelUsage", "num_turns", "duration_ms", "permission_denials"]
        {
            assert!(result.get(field).is_some_and(|value| !value.is_null()), "{field} is not in {result}");
        }
        assert!(
            result.get("stop_reason").is_some() && result["session_id"] == lines[0]["session_id"],
            "{result}"
        );
        let has_answer = subtype == "success";
        assert_eq!(
            (result.get("result").is_some(), result.get("errors").is_some()),
            (has_answer, !has_answer)
        );
    }

    /// Checks that it ended with the model's answer.
    #[track_caller]
    pub(crate) fn completed(&self, answer: &str) {
        self.ended("success", "completed", 0);
        assert_eq!(self.result["result"], answer);
    }

    /// Checks that it failed during execution, and that what is told about it holds these words.
    #[track_caller]
    pub(crate) fn failed(&self, reason: &str, words: &[&str]) {
        self.ended("error_during_execution", reason, 1);
        self.says(words);
    }

    /// Checks that the result, or what is wrong, holds these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) {
        let text =
            self.result["result"].as_str().map_or_else(|| self.result["errors"].to_string(), str::to_owned);
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {text}");
        }
    }

    /// Checks that the failure was shown once, as a message of this kind that says what the result says, right before it.
    #[track_caller]
    pub(crate) fn showed_failure(&self, kind: &str) {
        let shown: Vec<&Value> =
            self.of("assistant").into_iter().filter(|line| line.get("error").is_some()).collect();
        assert_eq!(shown.len(), 1, "{}", self.finished.stdout);
        let (line, text) = (shown[0], shown[0]["message"]["content"][0]["text"].as_str().unwrap());
        assert_eq!((&line["error"], &line["message"]["model"]), (&kind.into(), &"<synthetic>".into()));
        let result = self.result["result"].as_str().or(self.result["errors"][0].as_str());
        assert_eq!(Some(text), result);
        let last = self.lines.iter().rposition(|line| line["type"] == "assistant").unwrap();
        assert_eq!(&self.lines[last], line, "nothing is said after it");
    }

    /// Checks that no failure was shown.
    #[track_caller]
    pub(crate) fn showed_no_failure(&self) {
        let failed = |line: &&&Value| line.get("error").is_some();
        assert_eq!(self.of("assistant").iter().filter(failed).count(), 0, "{}", self.finished.stdout);
    }

    /// The lines of this type or subtype.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind || line["subtype"] == kind).collect()
    }

    /// What the host was told beside the conversation, in one piece.
    pub(crate) fn notes(&self) -> String {
        let notes = self.of("informational").into_iter();
        notes.map(|line| line["content"].as_str().unwrap()).collect::<Vec<_>>().join(
            "
",
        )
    }

    /// The texts of the model that stand in the end, in one piece.
    pub(crate) fn text(&self) -> String {
        let superseded: Vec<&Value> =
            self.lines.iter().filter_map(|line| line["supersedes"].as_array()).flatten().collect();
        let stands = |line: &&Value| line["type"] == "assistant" && !superseded.contains(&&line["uuid"]);
        let standing = self.lines.iter().filter(stands);
        standing.filter_map(|line| line["message"]["content"][0]["text"].as_str()).collect()
    }
}

/// Flags for a line of JSON per message.
pub(crate) const STREAM: [&str; 5] = ["-p", "go", "--output-format", "stream-json", "--verbose"];

/// The last line, which must be the only result.
#[track_caller]
pub(crate) fn result(finished: &FinishedProcess) -> Value {
    let lines = finished.json_lines().unwrap();
    let results = lines.iter().filter(|line| line["type"] == "result").count();
    assert_eq!(results, 1, "exactly one result in {}", finished.stdout);
    let last = lines.last().unwrap().clone();
    assert_eq!(last["type"], "result");
    last
}

/// A run that begins and fails: its result, which is what went wrong, is on standard output and holds these words.
#[track_caller]
pub(crate) fn check_failed(finished: &FinishedProcess, words: &[&str]) {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""), "{finished:?}");
    assert_eq!(finished.stdout.lines().count(), 1, "{}", finished.stdout);
    for word in words {
        assert!(finished.stdout.contains(word), "{word:?} is not in {:?}", finished.stdout);
    }
}

/// A run that must fail before it begins: nothing on standard output, one complaint, a line that holds these words.
#[track_caller]
pub(crate) fn check_refused(finished: &FinishedProcess, words: &[&str]) {
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert_eq!(finished.stdout, "");
    let complaints: Vec<&str> = finished.stderr.lines().collect();
    assert!(matches!(complaints[..], [line] if line.starts_with("windlass: ")), "{}", finished.stderr);
    for word in words {
        assert!(finished.stderr.contains(word), "{word:?} is not in {:?}", finished.stderr);
    }
}

/// Checks that each of these is in a text, in this order.
#[track_caller]
pub(crate) fn check_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for words in expected {
        let at = rest.find(words).unwrap_or_else(|| panic!("{words:?} is not in its place in {text}"));
        rest = &rest[at + words.len()..];
    }
}
