//! What a call would do, from the one field that decides it: for explaining decisions without running anything.

use serde_json::Value;
use windlass_ports::ExamineContext;
use windlass_protocol::{CallFacts, CallKind, ToolProfile, ToolSubject};

use crate::address::url_fact;
use crate::bash::commands::{LineBasis, line_facts};
use crate::file;
use crate::paths::{self, locate};

/// The facts of a call of a built-in tool, or of an unknown one, which may do anything; an error says why it is never
/// made. Only the fields that decide are looked at, so that half an input can be explained too.
pub fn describe(tool: &str, input: &Value, cx: &ExamineContext) -> Result<CallFacts, String> {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    let profile = ToolProfile::named(tool);
    match profile.subject {
        ToolSubject::Command(field) => {
            let line = text(field).ok_or("`command` is missing")?;
            let background = input.get("run_in_background").is_some_and(|flag| *flag == Value::Bool(true));
            describe_line(line, if background { LineBasis::ByRules } else { LineBasis::ByWords }, cx)
        }
        ToolSubject::File(_) => file::facts(profile.kind, path(&text)?, cx),
        ToolSubject::FileNames(_) | ToolSubject::FileContents(_) => {
            describe_search(profile.subject, input, cx)
        }
        ToolSubject::Url(field) => {
            let url = url_fact(text(field).ok_or("`url` is missing")?)?;
            let target = url.text.clone();
            Ok(CallFacts { is_shared: true, target, url: Some(url), ..CallFacts::new(profile.kind) })
        }
        ToolSubject::Query(field) => {
            let target = text(field).unwrap_or_default().to_owned();
            Ok(CallFacts { is_shared: true, target, ..CallFacts::new(profile.kind) })
        }
        ToolSubject::Agent | ToolSubject::Skill | ToolSubject::Other => Ok(CallFacts::new(profile.kind)),
    }
}

fn path<'a>(text: &impl Fn(&str) -> Option<&'a str>) -> Result<&'a str, &'static str> {
    const FIELDS: [&str; 4] = ["file_path", "filePath", "notebook_path", "path"];
    FIELDS.into_iter().find_map(text).ok_or("`file_path` is missing")
}

/// A command line as Bash would judge it.
pub(crate) fn describe_line(line: &str, basis: LineBasis, cx: &ExamineContext) -> Result<CallFacts, String> {
    if line.trim().is_empty() {
        return Err("`command` is empty. Give the command line to run.".to_owned());
    }
    if line.contains('\0') {
        return Err("`command` contains a NUL character, which no command line can hold.".to_owned());
    }
    Ok(line_facts(line, cx, basis))
}

/// Where a search would look. A pattern that begins with a path looks there.
fn describe_search(subject: ToolSubject, input: &Value, cx: &ExamineContext) -> Result<CallFacts, String> {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    let start = match text("path").filter(|path| !path.is_empty()) {
        Some(path) => locate("path", path, &cx.cwd)?,
        None => paths::fact(cx.cwd.clone()),
    };
    let pattern = text("pattern").unwrap_or_default();
    let is_glob = matches!(subject, ToolSubject::FileNames(_));
    if is_glob && crate::glob::goes_up(pattern) {
        return Err("`pattern` has `..` after a wildcard".to_owned());
    }
    let place = if is_glob { crate::glob::split_literal(pattern.trim()).0 } else { "" };
    let place = if place.is_empty() { start } else { locate("pattern", place, &start.lexical)? };
    let target = pattern.to_owned();
    Ok(CallFacts { is_shared: true, paths: vec![place], target, ..CallFacts::new(CallKind::Read) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_protocol::{CommandEffect, KNOWN_TOOLS};

    use super::*;

    #[test]
    fn every_known_tool_is_described_as_what_it_is() {
        let cx = ExamineContext {
            cwd: "/".into(),
            roots: Vec::new().into(),
            hidden: windlass_ports::HiddenPaths::default(),
        };
        let is_unknown =
            |tool: &str| describe(tool, &json!({}), &cx).is_ok_and(|facts| facts.kind == CallKind::Execute);
        assert!(is_unknown("Foo"));
        // What these do is not in their input.
        let open = ["Cd", "Skill", "SlashCommand"];
        for tool in KNOWN_TOOLS {
            assert_eq!(is_unknown(tool), open.contains(&tool), "{tool}");
        }
    }

    /// A repository that the session did not start in may say in its configuration what git is to run.
    #[test]
    fn git_only_looks_in_the_repository_of_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in
            [".git", "src", "docs/objects", "docs/refs", "docs/below", "nested/.git", "nested/src"]
        {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::fs::write(root.join("docs/HEAD"), "ref: refs/heads/main").unwrap();
        let check = |start: &str, cwd: &str, looks: bool| {
            let cx = ExamineContext {
                cwd: root.join(cwd),
                roots: vec![root.join(start)].into(),
                hidden: windlass_ports::HiddenPaths::default(),
            };
            let facts = describe("Bash", &json!({ "command": "git status" }), &cx).unwrap();
            assert_eq!(facts.kind == CallKind::Read, looks, "{start} {cwd}");
        };
        check("", "", true);
        check("", "src", true);
        check("src", "src", true);
        check("", "docs", false);
        check("", "docs/below", false);
        check("docs", "docs", false);
        check("", "nested", false);
        check("", "nested/src", false);
        check("nested", "nested/src", true);
    }

    #[test]
    fn git_does_not_only_look_behind_what_changes_its_ways() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in [".git", "src", "t"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let check = |line: &str, looks: bool| {
            let cx = ExamineContext::new(root.clone(), [root.clone()].into());
            let commands = describe("Bash", &json!({ "command": line }), &cx).unwrap().commands.unwrap();
            let plain = commands.plain.clone().unwrap();
            let git = plain.iter().rfind(|command| command.words[0] == "git").unwrap();
            assert_eq!(git.effect == CommandEffect::Looks, looks, "{line}");
        };
        check("touch a && git status", true);
        check("cargo test && git diff", true);
        check("cp t/a src/config && git status", true);
        check("mkdir objects refs && git status", false);
        check("cp t/HEAD . && git status", false);
        check("cp t/HEAD ./HEAD && git status", false);
        check("echo x > .gitattributes; git diff", false);
        std::fs::write(root.join(".git/config"), "[core]\n\tfsmonitor = true\n").unwrap();
        check("touch a && git status", true);
        std::fs::write(root.join(".git/config"), "[core]\n\tfsmonitor = ./x\n").unwrap();
        check("git status", true);
        check("touch a && git status", false);
    }
}
