//! An interactive session: somebody types at a terminal and reads what comes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Stage;
use crate::terminal::terminal;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const CTRL_C: &str = "\x03";

const COLUMNS: u16 = 80;

/// Somebody at a terminal, and the session.
pub(crate) struct Talk {
    keyboard: File,
    /// The end that programs have.
    pub(crate) terminal: File,
    screen: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Talk {
    pub(crate) fn begin(stage: &Stage, arguments: &[&str]) -> Self {
        Self::at("xterm", stage, arguments)
    }

    /// At a terminal of this name.
    pub(crate) fn at(name: &str, stage: &Stage, arguments: &[&str]) -> Self {
        Self::with(stage.command(arguments).env("TERM", name).into_command())
    }

    /// As `windlass | cat`.
    pub(crate) fn through_cat(stage: &Stage) -> Self {
        let windlass = stage.command(&[]).env("TERM", "xterm").into_command();
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" --allowedTools Bash | cat"]).arg(windlass.get_program());
        shell.envs(windlass.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(windlass.get_current_dir().unwrap());
        Self::with(shell)
    }

    pub(crate) fn with(mut command: Command) -> Self {
        let (master, terminal) = terminal(COLUMNS);
        let end = || terminal.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut source, seen) = (master.try_clone().unwrap(), screen.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = source.read(&mut piece) {
                seen.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        Self { keyboard: master, terminal, screen, child }
    }

    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// The rows of the screen as somebody sees them now, and those that scrolled away above.
    pub(crate) fn rows(&self) -> Vec<String> {
        rows(&self.screen())
    }

    /// Waits until the screen shows these rows one below the other.
    #[track_caller]
    pub(crate) fn shows(&self, expected: &[&str]) {
        let began = Instant::now();
        while !self.rows().windows(expected.len()).any(|rows| rows == expected) {
            assert!(began.elapsed() < PATIENCE, "{expected:?} is not in {:#?}", self.rows());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen has shown a text so many times.
    #[track_caller]
    pub(crate) fn sees_times(&self, text: &str, times: usize) {
        let began = Instant::now();
        while self.screen().matches(text).count() < times {
            assert!(began.elapsed() < PATIENCE, "{text:?} is not in {:?}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        self.sees_times(text, 1);
    }

    /// Waits for a question and its last line.
    #[track_caller]
    pub(crate) fn is_asked(&self) {
        self.sees("`n use tabs`)");
        std::thread::sleep(Duration::from_millis(50));
    }

    pub(crate) fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Presses keys one after the other.
    pub(crate) fn presses(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn is_sent(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end; gives the exit code and everything that was seen.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.whole_screen());
            }
            if began.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("it does not end: {:?}", self.screen());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was written until now. The terminal hands it on in order, so it is all read once a mark behind it is.
    #[track_caller]
    fn whole_screen(&mut self) -> String {
        const MARK: char = '\0';
        self.terminal.write_all(MARK.to_string().as_bytes()).unwrap();
        self.sees(&MARK.to_string());
        self.screen().replace(MARK, "")
    }
}

/// What a terminal makes of what it gets, as far as windlass uses it.
fn rows(screen: &str) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut chars = screen.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let sequence: String = chars.by_ref().skip(1).take_while(|c| !c.is_alphabetic()).collect();
                let last = screen[..screen.len() - chars.as_str().len()].chars().last().unwrap();
                match last {
                    'K' => rows[row].truncate(column),
                    'A' => row -= sequence.parse::<usize>().unwrap(),
                    'C' => column += sequence.parse::<usize>().unwrap(),
                    'J' => {
                        rows[row].truncate(column);
                        rows.truncate(row + 1);
                    }
                    'h' | 'l' => assert_eq!(sequence, "?2004", "{screen:?}"),
                    'm' => assert!(["2", "22"].contains(&&*sequence), "{screen:?}"),
                    _ => panic!("{sequence:?}{last} in {screen:?}"),
                }
            }
            c => {
                if column == usize::from(COLUMNS) {
                    (row, column) = (row + 1, 0);
                }
                rows.resize(rows.len().max(row + 1), Vec::new());
                let length = rows[row].len().max(column + 1);
                rows[row].resize(length, ' ');
                rows[row][column] = c;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), Vec::new());
    }
    rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect()
}

/// Checks that texts come one after the other.
#[track_caller]
pub(crate) fn check_order(screen: &str, texts: &[&str]) {
    let mut rest = screen;
    for text in texts {
        let Some((_, behind)) = rest.split_once(text) else {
            panic!("{text:?} is not in its place: {screen:?}")
        };
        rest = behind;
    }
}

/// Where lines break depends on how long the names of temporary directories are.
fn unwrapped(screen: &str) -> String {
    screen.replace("\r\n", " ")
}

#[test]
fn what_the_model_says_is_seen_when_it_says_it() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "Let me look."}, {"tool": "Bash", "input": {"command": "touch made"}}]},
            {"blocks": [{"text": "All is well."}]}]"#,
    );
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    check_order(&talk.screen(), &["Let me look.", "Bash needs your approval", "touch made"]);
    talk.types("y");
    talk.sees("tokens in");
    talk.types("/exit");
    let (code, screen) = talk.ends();
    assert_eq!(code, Some(0), "{screen:?}");
    check_order(&screen, &["Bash  touch made  (", "All is well.", "2 turns", "> "]);
    assert_eq!(screen.matches("All is well.").count(), 1, "{screen:?}");
    // The changing line never stays beside what the model says.
    let line = screen.lines().find(|line| line.contains("All is well.")).unwrap();
    assert_eq!(line.rsplit("\r\x1b[K").next(), Some("All is well."), "{screen:?}");
}

#[test]
fn there_are_several_words_for_leaving() {
    for word in ["exit", "quit", "/exit", " /quit "] {
        let stage = Stage::hello();
        let mut talk = Talk::begin(&stage, &["go"]);
        talk.sees("tokens in");
        talk.types("/help");
        talk.sees("/rewind [N]");
        talk.sees("\r\n  /compact [focus]");
        talk.types(word);
        let (code, screen) = talk.ends();
        assert_eq!((code, stage.requests()), (Some(0), 1), "{word}: {screen:?}");
        check_order(
            &screen,
            &["Leave with Ctrl-D or /exit; /help lists the commands.", "Hello.", "/exit, /quit"],
        );
    }
}

#[test]
fn leaving_at_a_question_does_not_run_the_call() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert_eq!((stage.requests(), stage.project.read("made").is_ok()), (1, false), "{screen:?}");
}

#[test]
fn an_unclear_answer_hears_what_is_offered_and_why_no_more() {
    let check = |input: &str, flags: &[&str], why: Option<&str>, answers: &str| {
        let tool = if input.contains("command") { "Bash" } else { "Write" };
        let stage = Stage::call(tool, input);
        let mut talk = Talk::begin(&stage, &[&["go"], flags].concat());
        talk.is_asked();
        talk.types("perhaps");
        talk.sees(answers);
        talk.types("/exit");
        let (_, screen) = talk.ends();
        assert_eq!(screen.contains("Asked every time"), why.is_some(), "{screen:?}");
        let why = why.map(|why| format!("Asked every time: {why}"));
        assert!(screen.contains(&why.unwrap_or_default()), "{screen:?}");
    };
    let asks = r#"{"permissions": {"ask": ["Bash(touch:*)"]}}"#;
    let touch = r#"{"command": "touch made"}"#;
    check(touch, &[], None, "Answer y, s, a, e or n;");
    let by_rule = "the rule Bash(touch:*) (";
    check(touch, &["--settings", asks], Some(by_rule), "Answer y or n;");
    let hidden = Some("part of the command is invisible.");
    check(r#"{"command": "touch a\u200bb"}"#, &[], hidden, "Answer y or n;");
    let protected = Some("it changes a protected file.");
    check(r#"{"file_path": ".npmrc", "content": "x"}"#, &[], protected, "Answer y or n;");
}

#[test]
fn an_edit_shows_lines_that_go_and_come_with_their_tabs() {
    let input = r#"{"file_path": "Makefile", "content": "all:\n\tcc x\n"}"#;
    let stage = Stage::call("Write", input);
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("/exit");
    let (_, screen) = talk.ends();
    // A terminal may turn tabs into blanks; both look alike.
    let screen = screen.replace('\t', "        ");
    check_order(&screen, &["file_path: Makefile", "    + all:", "cc x"]);
    assert!(!screen.contains("U+0009") && !screen.contains("\n    + \r\n"), "{screen:?}");
}

/// The calls of a response are asked about one after the other, so an answer to the first holds for the second.
#[test]
fn one_answer_can_hold_for_similar_calls_of_the_session() {
    let check = |tool: &str, inputs: [&str; 2], answer: &str| {
        let call = |input: &str| format!(r#"{{"blocks": [{{"tool": "{tool}", "input": {input}}}]}}"#);
        let responses = inputs.map(call).join(", ");
        let stage = Stage::new(&format!(r#"[{responses}, {{"blocks": [{{"text": "All is well."}}]}}]"#));
        let mut talk = Talk::begin(&stage, &["go"]);
        talk.is_asked();
        talk.types(answer);
        talk.sees("tokens in");
        talk.types("/exit");
        let (_, screen) = talk.ends();
        assert_eq!(screen.matches("needs your approval").count(), 1, "{screen:?}");
        assert!(screen.contains("All is well."), "{screen:?}");
        stage
    };
    let writes = [r#"{"file_path": "a", "content": "1"}"#, r#"{"file_path": "b", "content": "2"}"#];
    let stage = check("Write", writes, "e");
    assert_eq!(
        (stage.project.read("a").unwrap(), stage.project.read("b").unwrap()),
        ("1".into(), "2".into())
    );
    check("Bash", [r#"{"command": "git add a"}"#, r#"{"command": "git add b"}"#], "s*");
}

#[test]
fn a_rule_that_could_not_be_kept_is_told_as_such() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    stage.project.write("elsewhere/x", "").unwrap();
    symlink(stage.project.path().join("elsewhere"), stage.project.path().join(".windlass")).unwrap();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("a");
    talk.sees("tokens in");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    let words = unwrapped(&screen);
    assert!(
        words.contains("windlass: Bash(touch made) was NOT kept and holds for this session only: "),
        "{screen:?}"
    );
    assert!(stage.project.read("made").is_ok(), "{screen:?}");
}

#[test]
fn whoever_answers_always_hears_where_it_is_kept_and_what_else_changed() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let git = Command::new("git").args(["init", "-q"]).current_dir(stage.project.path()).status().unwrap();
    assert!(git.success());
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("a");
    talk.sees("tokens in");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    let expected = [
        "windlass: kept in ",
        "settings.local.json",
        "Added ",
        "git/ignore, so that git ignores local settings.",
    ];
    check_order(&unwrapped(&screen), &expected);
}

/// The rule that was kept holds today, and did not when the session began.
#[test]
fn a_session_with_an_answer_that_holds_from_then_on_is_played_again() {
    let call = r#"{"blocks": [{"tool": "Bash", "input": {"command": "touch made"}}]}"#;
    let stage = Stage::new(&format!(r#"[{call}, {call}, {{"blocks": [{{"text": "Done."}}]}}]"#));
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("a");
    talk.sees("tokens in");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert!(unwrapped(&screen).contains("windlass: kept in "), "{screen:?}");
    let log = crate::resume::log(&stage);
    let replayed = stage.run(&["replay", log.file_stem().unwrap().to_str().unwrap()]);
    assert!(replayed.stdout.contains(", no differences. "), "{}", replayed.stdout);
}

/// Without a repository local settings wait for trust; what the user just said does not.
#[test]
fn an_answer_that_is_kept_without_a_repository_holds_in_the_next_session() {
    let check = |project: &str, answers: &[&str], expected: &str| {
        let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
        stage.project.write(".claude/settings.json", project).unwrap();
        let mut talk = Talk::begin(&stage, &["go"]);
        for answer in answers {
            talk.sees("Trust this project?");
            // What was typed before the question is thrown away.
            std::thread::sleep(Duration::from_millis(50));
            talk.types(answer);
        }
        talk.is_asked();
        talk.types("a");
        talk.sees("tokens in");
        talk.types("/exit");
        let (_, screen) = talk.ends();
        let is_told = unwrapped(&screen).contains("waits until you agree to this project");
        assert_eq!(is_told, expected == "ask", "{screen:?}");
        let call = ["--tool", "Bash", "--input", r#"{"command": "touch made"}"#, "--json"];
        let explained = stage.run(&[&["permissions", "explain"], &call[..]].concat());
        assert_eq!(explained.json_lines().unwrap()[0]["decision"], expected, "{explained:?} {screen:?}");
    };
    check("{}", &[], "allow");
    let acts = r#"{"permissions": {"allow": ["Bash(make)"]}}"#;
    check(acts, &["y"], "allow");
    check(acts, &["n"], "ask");
}

#[test]
fn whoever_is_asked_for_trust_answers_yes_or_no() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}]}, {"blocks": [{"text": "Hello."}]}]"#);
    let acts = r#"{"permissions": {"allow": ["Bash(make)"]}}"#;
    stage.project.write(".claude/settings.json", acts).unwrap();
    let check = |answers: &[&str], is_trusted: bool| {
        let mut talk = Talk::begin(&stage, &[]);
        for (times, answer) in answers.iter().enumerate() {
            talk.sees_times("[y/N] ", times + 1);
            std::thread::sleep(Duration::from_millis(50));
            talk.types(answer);
        }
        talk.sees("Leave with Ctrl-D");
        talk.types("/exit");
        let (_, screen) = talk.ends();
        let unclear = answers.len() - 1;
        assert_eq!(screen.matches("Answer y or n.").count(), unclear, "{screen:?}");
        let told = unwrapped(&screen).matches("Project not trusted: 1 setting ignored.").count();
        assert_eq!(told, usize::from(!is_trusted), "{screen:?}");
    };
    check(&["hi", "?", "n"], false);
    check(&["NO"], false);
    check(&[""], false);
    check(&["yess", "Yes"], true);
}

#[test]
fn what_the_session_says_breaks_between_words() {
    let stage = Stage::hello();
    let rule = format!("Bash(make {})", "word ".repeat(20).trim_end());
    let acts = serde_json::json!({"permissions": {"allow": [rule]}}).to_string();
    stage.project.write(".claude/settings.json", acts).unwrap();
    let mut talk = Talk::begin(&stage, &[]);
    talk.sees("[y/N] ");
    std::thread::sleep(Duration::from_millis(50));
    talk.types("n");
    talk.sees("> ");
    talk.types("/frobnicate");
    talk.shows(&[
        "Unknown command /frobnicate. The commands are /compact, /context, /cost, /now,",
        "/rewind, /usage, /help, /exit. To send it to the model, put a word before it.",
    ]);
    talk.types("hello");
    talk.sees("tokens in");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    let rule = "  allow rule Bash(make word word word word word word word word word word word\r\n  word word";
    assert!(screen.contains(rule), "{screen:?}");
}

#[test]
fn an_answer_for_a_pipe_begins_a_line_of_its_own() {
    let call = serde_json::json!({"tool": "Bash", "input": {"command": "sleep 0.2"}});
    let stage = Stage::serving(
        &serde_json::json!([
            {"blocks": [{"text": "Look at it."}, call], "delta_chars": 4, "delta_delay_ms": 300},
            {"blocks": [{"text": "Done."}]},
        ]),
        |server| server,
    );
    let mut talk = Talk::through_cat(&stage);
    talk.sees("> ");
    talk.types("go");
    talk.shows(&["Look at it."]);
    talk.sees("tokens in");
    talk.types("/exit");
    talk.ends();
}

#[test]
fn whoever_resumes_sees_which_session_and_how_to_do_so() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    let session = |arguments: &[&str], prompt: Option<&str>, last: &str| {
        let mut talk = Talk::begin(&stage, arguments);
        talk.sees("> ");
        if let Some(prompt) = prompt {
            talk.types(prompt);
            talk.sees("tokens in");
        }
        talk.types("/exit");
        talk.sees(last);
        talk.ends().1
    };
    let empty = session(&[], None, "/exit");
    assert!(!empty.contains("Resumed") && !empty.contains("To continue"), "{empty:?}");
    let id = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    let next = format!("To continue: windlass --resume {id}\r\n");
    let first = session(&["--session-id", id], Some("count the words"), &next);
    assert!(!first.contains("Resumed") && first.ends_with(&next), "{first:?}");
    let second = session(&["-c"], Some("and the lines"), &next);
    check_order(&second, &["Resumed \"count the words\" (last change just now).", "Two.", &next]);
    let third = session(&["--resume", id], None, &next);
    check_order(&third, &["Resumed \"and the lines\" (last change just now).", &next]);
}

#[test]
fn an_interrupt_at_a_question_says_that_nothing_was_running() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.presses(CTRL_C);
    talk.sees("Interrupted at a permission prompt; the call was not run.");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert!(!screen.contains("were running"), "{screen:?}");
    assert!(stage.project.read("made").is_err(), "{screen:?}");
}
