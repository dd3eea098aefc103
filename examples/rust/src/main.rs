//! Asks a model with a tool of its own beside the built-in ones: `cargo run -p windlass-example -- "How long is README.md?"`

mod count_lines;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use windlass::{Options, Outcome, SessionChoice, Update, Windlass};

use crate::count_lines::CountLines;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match answer().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without standard error the exit code still says it.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn answer() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).ok_or("Give a prompt.")?;
    let outcome = ask(Options::new(), &prompt).await?;
    writeln!(std::io::stdout(), "{}", outcome.text)?;
    if outcome.terminal.is_success() { Ok(()) } else { Err(outcome.errors.join(" ").into()) }
}

async fn ask(options: Options, prompt: &str) -> Result<Box<Outcome>, Box<dyn Error>> {
    let app = Windlass::open(options.tool(CountLines))?;
    let mut session = app.session(SessionChoice::default())?;
    let mut run = session.run(prompt);
    while let Some(update) = run.next().await {
        if let Update::Done(outcome) = update {
            return Ok(outcome);
        }
    }
    Err("the run has no outcome".into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use windlass::protocol::{RawValue, Verdict};

    use super::*;

    const RECIPES: &str = include_str!("../../../docs/recipes.md");

    #[test]
    fn the_recipe_shows_the_tool_and_the_line_that_adds_it() {
        let tool = include_str!("count_lines.rs");
        assert!(
            RECIPES.contains(&format!("```rust\n{tool}```\n")),
            "docs/recipes.md shows another count_lines.rs"
        );
        let line = "Windlass::open(options.tool(CountLines))";
        assert!(RECIPES.contains(line) && include_str!("main.rs").contains(line));
    }

    /// What a model that calls the tool by `name` reads, under these options.
    async fn check(name: &str, set_up: impl FnOnce(Options) -> Options, expected: &str) {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("three.txt"), "one\ntwo\nthree").unwrap();
        let script = format!(
            r#"{{"responses": [{{"blocks": [{{"tool": "{name}", "input": {{"file_path": "three.txt"}}}}]}},
                {{"expect": {{"contains": "{expected}"}}, "blocks": [{{"text": "As expected."}}]}}]}}"#
        );
        fs::write(path("script.json"), script).unwrap();
        let options = Options::new().cwd(place.path()).model("opus").variable("WINDLASS_HOME", path("home"));
        let options = options.variable("WINDLASS_SCRIPT", path("script.json"));
        let outcome = ask(set_up(options), "How long is three.txt?").await.unwrap();
        assert_eq!(outcome.text, "As expected.", "{outcome:?}");
    }

    #[tokio::test]
    async fn the_tool_is_a_tool_like_any_other() {
        // Reading below the working directory needs no rule.
        check("CountLines", |options| options, "3 lines").await;
        check("LineCount", |options| options, "3 lines").await;
        check("CountLines", |options| options.deny("CountLines"), "CountLines").await;
        // Its profile says that it reads a file, so rules about reading files hold for it.
        check("CountLines", |options| options.deny("Read(three.txt)"), "Read(three.txt)").await;
    }

    /// Hooks know its other name, and what it reads.
    #[tokio::test]
    async fn hooks_are_asked_about_the_tool() {
        let hook = |condition: &str| {
            let handler = format!(
                r#"{{"type": "command", "if": "{condition}", "command": "echo Ask first. >&2; exit 2"}}"#
            );
            format!(r#"{{"hooks": {{"PreToolUse": [{{"matcher": "LineCount", "hooks": [{handler}]}}]}}}}"#)
        };
        let with = |condition: &str| {
            let settings = hook(condition);
            move |mut options: Options| {
                options.settings.push(settings);
                options
            }
        };
        check("CountLines", with("Read(three.txt)"), "Ask first.").await;
        check("CountLines", with("Read(other.txt)"), "3 lines").await;
    }

    #[test]
    fn a_ruling_on_the_tool_is_explained() {
        let place = tempfile::tempdir().unwrap();
        let input = RawValue::from_string(r#"{"file_path": "three.txt"}"#.to_owned()).unwrap();
        let check = |name: &str, deny: &str, expected: Verdict| {
            let options = Options::new().cwd(place.path()).variable("WINDLASS_HOME", place.path()).deny(deny);
            let explainer = Windlass::open(options.tool(CountLines)).unwrap().explainer().unwrap();
            let explanation = explainer.explain(name, &input).unwrap();
            assert_eq!(explanation.ruling.verdict, expected, "{}", explanation.ruling.reason);
        };
        check("CountLines", "WebFetch", Verdict::Allow);
        check("LineCount", "WebFetch", Verdict::Allow);
        check("CountLines", "Read(three.txt)", Verdict::Deny);
        check("OtherTool", "WebFetch", Verdict::Ask);
    }
}
