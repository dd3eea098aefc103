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
use windlass_text::plurals::counted;

use crate::change::{change_output, check_no_loss, check_seen, save_content, save_text, unless_large};
use crate::content::{EditableText, FileContent, load};
use crate::file::{OnCancel, TargetFile, blocking, facts};
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
    let subject = TargetFile::new(&input.file_path, cx)?;
    let content = load(&subject.resolved, &subject.shown)?;
    if input.old_string.is_empty() {
        return create(input, &subject, content.as_ref(), cx);
    }
    let Some(content) = content else { return Err(subject.missing(&cx.cwd)) };
    let whole = check_seen(&subject, &content, cx)?;
    replace_text(input, &subject, &content, whole, cx)
}

fn create(
    input: &EditInput,
    subject: &TargetFile,
    content: Option<&FileContent>,
    cx: &ToolContext,
) -> Result<ToolOutput, String> {
    if content.is_some_and(|content| !content.body().is_empty()) {
        return Err(format!(
            "`old_string` is empty, which creates a file, but {} already exists with content. Give the text \
             to replace.",
            subject.shown
        ));
    }
    let seen = save_text(&input.new_string, subject, content, cx)?;
    let lines = input.new_string.lines().count();
    let text = format!("Created {} with {}.", subject.shown, counted(lines, "line"));
    let output = output(input, subject, content, &hunks("", &input.new_string));
    Ok(ToolOutput::text(&text).with_structured(&output).with_seen(seen))
}

/// `whole` says that all of the content was seen.
fn replace_text(
    input: &EditInput,
    subject: &TargetFile,
    content: &FileContent,
    whole: bool,
    cx: &ToolContext,
) -> Result<ToolOutput, String> {
    let view = EditableText::new(content, &subject.shown)?;
    let old = view.as_shown(&input.old_string);
    let new = view.as_shown(&input.new_string);
    if old == new {
        return Err(
            "`old_string` and `new_string` differ only in line ends, which Edit does not change.".to_owned()
        );
    }
    let places = find(&view, &old, input.replace_all, subject)?;
    check_known(&places, subject, whole)?;
    check_no_loss(&new, Some(content))?;
    let changes = replace::plan(&view, &places, &old, &new);
    let encoded = replace::encode(&view, &changes, subject, content)?;
    let seen = save_content(subject, Some(content), &encoded, whole, cx)?;
    let output = output(input, subject, Some(content), &replace::patch(&view, &changes));
    let text = replace::report(&view, &changes, &subject.shown);
    Ok(ToolOutput::text(&text).with_structured(&output).with_seen(seen))
}

fn output(input: &EditInput, subject: &TargetFile, original: Option<&FileContent>, patch: &[Hunk]) -> Value {
    change_output(
        subject,
        original,
        json!({
            "oldString": unless_large(&input.old_string),
            "newString": unless_large(&input.new_string),
            "structuredPatch": patch,
            "userModified": false,
            "replaceAll": input.replace_all,
        }),
    )
}

/// In a partly seen file one place can be changed, the one shown: others might lie in what was never seen.
fn check_known(places: &[Range<usize>], subject: &TargetFile, whole: bool) -> Result<(), String> {
    if whole || places.len() == 1 {
        return Ok(());
    }
    Err(format!(
        "Not changed: you have read only a part of {}, and `old_string` occurs {} times in it. Read all of \
         it first, or change one place at a time with more surrounding lines; for a file too long to read \
         whole, use a command through Bash.",
        subject.shown,
        places.len()
    ))
}

/// The places of `old`; explains why there are none, or too many.
fn find(
    view: &EditableText<'_>,
    old: &str,
    replace_all: bool,
    subject: &TargetFile,
) -> Result<Vec<Range<usize>>, String> {
    let found = memmem::find_iter(view.text(), old.as_bytes()).take(PLACES_MAX + 1);
    let places: Vec<_> = found.map(|at| at..at + old.len()).collect();
    match places.len() {
        0 => Err(explain::not_found(view.text(), old, &subject.shown)),
        1 => Ok(places),
        count if replace_all && count > PLACES_MAX => Err(format!(
            "`old_string` occurs more than {PLACES_MAX} times in {}, too many for one edit. Use a command \
             through Bash.",
            subject.shown
        )),
        _ if replace_all => Ok(places),
        count => {
            let more = count > PLACES_MAX;
            Err(explain::ambiguous(view.text(), &places[..count.min(PLACES_MAX)], more, &subject.shown))
        }
    }
}

#[cfg(test)]
mod tests;
