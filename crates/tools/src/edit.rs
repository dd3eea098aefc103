//! The tool Edit: replaces exact text in a file and leaves every other byte alone.

mod explain;
mod replace;

use std::ops::Range;

use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_ports::{ExamineContext, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, ToolOutput, ToolProfile};
use windlass_text::plurals::quantity;

use crate::change::{PendingChange, unless_large};
use crate::content::EditableText;
use crate::file::{OnCancel, blocking, facts};
use crate::lenient;
use crate::patch::{Hunk, hunks};

/// Occurrences beyond this are not replaced one by one.
const PLACES_MAX: usize = 100_000;

/// Replaces exact text in a file. Use it for changes to existing files; it keeps everything else byte for byte.
///
/// - Read the file first: all of it, or with `offset` and `limit` the part you change. If its content has changed since,
///   the edit is refused and you are shown what changed.
/// - `old_string` must occur exactly once, character by character, indentation included, without the line numbers
///   that Read puts in front. If it occurs more often, give more surrounding lines, or set `replace_all`,
///   which needs all of the file to have been read.
/// - Write line ends as \n; the file's own style, encoding, byte order mark and mode are kept.
/// - An empty `old_string` creates a file that does not exist or is empty.
///
/// Returns the changed lines with their numbers. If the text is not found, returns the closest place instead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The file: absolute, relative to the working directory, or starting with `~/`.
    pub(crate) file_path: String,
    /// The text to replace.
    pub(crate) old_string: String,
    /// The text to put in its place; must differ.
    pub(crate) new_string: String,
    /// Replace every occurrence. Default false.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub(crate) replace_all: bool,
}

/// The tool Edit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit;

impl Tool for Edit {
    type Input = EditInput;
    const NAME: &'static str = "Edit";
    const PROFILE: ToolProfile = ToolProfile::EDIT;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Edit.json"));

    fn facts(&self, input: &EditInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        check_strings(input)?;
        facts(CallKind::Edit, &input.file_path, cx)
    }

    async fn run(&self, input: EditInput, cx: ToolContext) -> ToolOutput {
        blocking(cx, OnCancel::Wait, move |cx| edit(&input, cx)).await
    }
}

fn check_strings(input: &EditInput) -> Result<(), String> {
    if input.old_string == input.new_string {
        return Err("`old_string` and `new_string` are the same; nothing to change.".to_owned());
    }
    Ok(())
}

fn edit(input: &EditInput, cx: &ToolContext) -> Result<ToolOutput, String> {
    check_strings(input)?;
    let change = PendingChange::new(&input.file_path, cx)?;
    if input.old_string.is_empty() {
        return create(input, &change);
    }
    let Some(content) = &change.old else { return Err(change.subject.missing(&cx.cwd)) };
    let whole = change.check_seen(content)?;
    let view = EditableText::new(content, &change.subject.shown)?;
    let old = view.as_shown(&input.old_string);
    let new = view.as_shown(&input.new_string);
    if old == new {
        return Err(
            "`old_string` and `new_string` differ only in line ends, which Edit does not change.".to_owned()
        );
    }
    let places = find(&view, &old, input.replace_all)?;
    check_known(&places, view.shown, whole)?;
    change.check_no_loss(&new)?;
    let changes = replace::plan(&view, &places, &old, &new);
    let seen = change.save(&replace::encode(&view, &changes)?, whole)?;
    let output = output(input, &replace::patch(&view, &changes));
    Ok(change.tool_output(&replace::report(&view, &changes), output, seen))
}

fn create(input: &EditInput, change: &PendingChange<'_>) -> Result<ToolOutput, String> {
    let shown = &change.subject.shown;
    if change.old.as_ref().is_some_and(|old| !old.body().is_empty()) {
        return Err(format!(
            "`old_string` is empty, which creates a file, but {shown} already exists with content. Give the text \
             to replace."
        ));
    }
    let seen = change.save_text(&input.new_string)?;
    let text = format!("Created {shown} with {}.", quantity(input.new_string.lines().count(), "line"));
    Ok(change.tool_output(&text, output(input, &hunks("", &input.new_string)), seen))
}

fn output(input: &EditInput, patch: &[Hunk]) -> Value {
    json!({
        "oldString": unless_large(&input.old_string),
        "newString": unless_large(&input.new_string),
        "structuredPatch": patch,
        "userModified": false,
        "replaceAll": input.replace_all,
    })
}

/// In a partly seen file one place can be changed, the one shown: others might lie in what was never seen.
fn check_known(places: &[Range<usize>], shown: &str, is_whole: bool) -> Result<(), String> {
    if is_whole || places.len() == 1 {
        return Ok(());
    }
    Err(format!(
        "Not changed: you have read only a part of {shown}, and `old_string` occurs {} times in it. Read all of \
         it first, or change one place at a time with more surrounding lines; for a file too long to read \
         whole, use a command through Bash.",
        places.len()
    ))
}

/// The places of `old`; explains why there are none, or too many.
fn find(view: &EditableText<'_>, old: &str, should_replace_all: bool) -> Result<Vec<Range<usize>>, String> {
    let shown = view.shown;
    let found = memmem::find_iter(view.text(), old.as_bytes()).take(PLACES_MAX + 1);
    let places: Vec<_> = found.map(|at| at..at + old.len()).collect();
    match places.len() {
        0 => Err(explain::not_found(view.text(), old, shown)),
        1 => Ok(places),
        count if should_replace_all && count > PLACES_MAX => Err(format!(
            "`old_string` occurs more than {PLACES_MAX} times in {shown}, too many for one edit. Use a command \
             through Bash."
        )),
        _ if should_replace_all => Ok(places),
        count => {
            let more = count > PLACES_MAX;
            Err(explain::ambiguous(view.text(), &places[..count.min(PLACES_MAX)], more, shown))
        }
    }
}

#[cfg(test)]
mod tests;
