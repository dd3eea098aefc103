//! The tool Grep: finds text in files, with ripgrep's own parts.

mod answer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ports::{ExamineContext, HiddenPaths, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, PathFact, ToolOutput, ToolProfile};

use self::answer::{GrepMatches, PAGE_BYTES_MAX, ResultPage};
use crate::file::{OnCancel, blocking};
use crate::lenient;
use crate::open::special_name;
use crate::paths::{check_decided, fact};
use crate::search::{NewestFiles, SearchStop, leave_out, names_version_control, place, printable};
use crate::search_files::{FileWalk, walker};
use crate::search_lines::{LineQuery, LineSearch, SearchGoal, matcher};

/// Entries returned unless the call says otherwise.
const ENTRIES_DEFAULT: u64 = 250;
/// Entries returned when the call asks for all.
const ENTRIES_MAX: u64 = 10_000;
/// Text of one file that is held until its turn comes.
const FILE_BYTES_MAX: usize = 32 * 1024;

/// Searches the content of files for a regular expression, in the syntax of ripgrep.
///
/// - By default it lists the files that contain a match, most recently changed first. `output_mode` "content" shows the
///   lines, "count" how many there are in each file.
/// - Special characters are escaped with a backslash: `interface\{\}`. A pattern stays within a line unless `multiline`
///   is set.
/// - Skips files that .gitignore names, but not hidden files. To search an ignored file, name it in `path`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// The regular expression.
    pub(crate) pattern: String,
    /// The file or directory to search. Default: the working directory.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Search only files whose names match, for example `*.js` or `**/*.{ts,tsx}`.
    #[serde(default)]
    pub(crate) glob: Option<String>,
    /// Search only files of this type, for example `rust`, `py`, `js`.
    #[serde(default, rename = "type")]
    pub(crate) file_type: Option<String>,
    /// What to return.
    #[serde(default)]
    pub(crate) output_mode: OutputMode,
    /// Ignore case.
    #[serde(default, rename = "-i", deserialize_with = "lenient::flag")]
    pub(crate) ignore_case: bool,
    /// Show line numbers (content). On unless set to false.
    #[serde(default = "yes", rename = "-n", deserialize_with = "lenient::flag")]
    pub(crate) line_numbers: bool,
    /// Show only what matched, not the whole line (content). `-A`, `-B` and `-C` have no effect then.
    #[serde(default, rename = "-o", deserialize_with = "lenient::flag")]
    pub(crate) only_matching: bool,
    /// Lines to show after each match (content).
    #[serde(default, rename = "-A", deserialize_with = "lenient::number")]
    pub(crate) after: Option<u64>,
    /// Lines to show before each match (content).
    #[serde(default, rename = "-B", deserialize_with = "lenient::number")]
    pub(crate) before: Option<u64>,
    /// Lines to show before and after each match (content).
    #[serde(default, rename = "-C", deserialize_with = "lenient::number")]
    pub(crate) around: Option<u64>,
    /// The same as `-C`.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) context: Option<u64>,
    /// Return at most this many entries (files, lines or counts); default 250, 0 for as many as fit.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) head_limit: Option<u64>,
    /// Skip this many entries, to see the next page.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) offset: Option<u64>,
    /// Let a match span several lines, and `.` match their ends.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub(crate) multiline: bool,
}

fn yes() -> bool {
    true
}

/// What Grep returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OutputMode {
    /// The names of the files.
    #[default]
    FilesWithMatches,
    /// The matching lines.
    Content,
    /// The number of matching lines of each file.
    Count,
}

/// The tool Grep.
#[derive(Clone, Debug)]
pub struct Grep {
    /// After this long, what was found is returned.
    timeout: Duration,
}

impl Default for Grep {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(1) }
    }
}

impl Tool for Grep {
    type Input = GrepInput;
    const NAME: &'static str = "Grep";
    const PROFILE: ToolProfile = ToolProfile::GREP;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Grep.json"));

    fn facts(&self, input: &GrepInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        let query = Query::new(input, &cx.cwd)?;
        let target = input.pattern.clone();
        Ok(CallFacts { is_shared: true, paths: vec![query.place], target, ..CallFacts::new(CallKind::Read) })
    }

    async fn run(&self, input: GrepInput, cx: ToolContext) -> ToolOutput {
        let timeout = self.timeout;
        blocking(cx, OnCancel::Leave, move |cx| {
            let query = Query::new(&input, &cx.cwd)?;
            let query = Query { place: check_decided(query.place, cx)?, ..query };
            Ok(query.search(&cx.hidden, &SearchStop::new(cx, timeout)).answer(timeout))
        })
        .await
    }
}

struct Query {
    place: PathFact,
    cwd: PathBuf,
    /// One file was named, so its name need not be repeated.
    is_file: bool,
    walker: WalkBuilder,
    lines: LineQuery,
    mode: OutputMode,
    limit: u64,
    offset: u64,
}

impl Query {
    fn new(input: &GrepInput, cwd: &Path) -> Result<Self, String> {
        let place = match &input.path {
            Some(path) => place(path, cwd)?,
            None => fact(cwd.to_owned()),
        };
        let is_file = is_file(&place.lexical)?;
        let root = place.resolved.clone().unwrap_or_default();
        let matcher = matcher(&input.pattern, input.ignore_case, input.multiline)
            .map_err(|error| explain_pattern(&error, input.multiline))?;
        let content = input.output_mode == OutputMode::Content;
        let around = input.around.or(input.context).unwrap_or(0);
        let context = |lines: Option<u64>| {
            let lines = if content { lines.unwrap_or(around) } else { 0 };
            usize::try_from(lines.min(ENTRIES_MAX)).unwrap_or(0)
        };
        let lines = LineQuery {
            matcher,
            is_multiline: input.multiline,
            has_numbers: content && input.line_numbers,
            is_only_matching: input.only_matching,
            before: context(input.before),
            after: context(input.after),
        };
        Ok(Self {
            walker: walker(&root, input.glob.as_deref(), input.file_type.as_deref())?,
            place,
            cwd: cwd.to_owned(),
            is_file,
            lines,
            mode: input.output_mode,
            limit: match input.head_limit.unwrap_or(ENTRIES_DEFAULT) {
                0 => ENTRIES_MAX,
                limit => limit.min(ENTRIES_MAX),
            },
            offset: input.offset.unwrap_or(0),
        })
    }

    fn search(mut self, hidden: &HiddenPaths, stop: &SearchStop) -> GrepMatches {
        let page = ResultPage::new(self.limit, self.offset);
        let mut found = GrepMatches { mode: self.mode, page, ..GrepMatches::default() };
        let Some(root) = self.place.resolved.clone() else {
            found.unreadable += 1;
            return found;
        };
        leave_out(&mut self.walker, names_version_control(&root.to_string_lossy()), hidden);
        let mut files = FileWalk { walk: self.walker.build(), stop, unreadable: 0 };
        match self.mode {
            OutputMode::FilesWithMatches => self.list_files(&mut files, &mut found),
            OutputMode::Count => self.count(&mut files, &mut found),
            OutputMode::Content => self.show_lines(&root, &mut files, &mut found),
        }
        found.unreadable += files.unreadable;
        found.is_named_binary &= self.is_file;
        found.is_late = stop.is_late();
        found
    }

    fn list_files(&self, files: &mut FileWalk<'_>, found: &mut GrepMatches) {
        let mut newest = NewestFiles::new(usize::try_from(self.entries_wanted()).unwrap_or(usize::MAX));
        files.search(&self.lines, &SearchGoal::matches(1), |path, file| {
            if found.add(file).is_some() {
                let modified = path.metadata().and_then(|meta| meta.modified());
                newest.add(path, modified.unwrap_or(std::time::SystemTime::UNIX_EPOCH));
            }
            ControlFlow::Continue(())
        });
        // The page says itself when it is full.
        let _ = newest.into_paths().iter().try_for_each(|path| found.page.add(|| self.name(path)));
    }

    fn count(&self, files: &mut FileWalk<'_>, found: &mut GrepMatches) {
        files.search(&self.lines, &SearchGoal::matches(u64::MAX), |path, file| {
            if let Some(file) = found.add(file) {
                found.matches += file.matches;
                // The total is over all files, so the search goes on when the page is full.
                let _ = found.page.add(|| format!("{}:{}", self.name(&path), file.matches));
            }
            ControlFlow::Continue(())
        });
    }

    fn show_lines(&self, root: &Path, files: &mut FileWalk<'_>, found: &mut GrepMatches) {
        let stop = files.stop;
        files.search(
            &self.lines,
            &SearchGoal::entries(0..self.entries_wanted(), FILE_BYTES_MAX),
            |path, file| {
                let Some(file) = found.add(file) else { return ControlFlow::Continue(()) };
                let name = if self.is_file && path == root { String::new() } else { self.name(&path) };
                if !file.is_crowded {
                    return found.page.add_all(&name, &file.entries);
                }
                // Only a part was kept. Its place on the page is known now, so that part is looked for again.
                let skipped = found.page.skip(file.entry_count);
                if skipped == file.entry_count {
                    return ControlFlow::Continue(());
                }
                let goal = SearchGoal::entries(skipped..skipped + self.limit + 1, PAGE_BYTES_MAX);
                let part = LineSearch::new(&self.lines, stop).search(&path, &goal).unwrap_or_default();
                let added = found.page.add_all(&name, &part.entries);
                found.page.has_more |= part.is_crowded;
                if part.is_crowded { ControlFlow::Break(()) } else { added }
            },
        );
    }

    /// Entries that are looked for: up to the end of the page, and one that tells that there are more.
    fn entries_wanted(&self) -> u64 {
        self.offset.saturating_add(self.limit).saturating_add(1)
    }

    /// The name as it was asked for: what was searched is the resolved path.
    fn name(&self, path: &Path) -> String {
        let below = self.place.resolved.as_ref().and_then(|root| path.strip_prefix(root).ok());
        match below {
            Some(below) if !below.as_os_str().is_empty() => {
                printable(&self.place.lexical.join(below), &self.cwd)
            }
            _ => printable(&self.place.lexical, &self.cwd),
        }
    }
}

fn is_file(path: &Path) -> Result<bool, String> {
    let meta = path.metadata().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("`path`: {} does not exist.", path.display()),
        _ => format!("`path`: cannot search {}: {error}.", path.display()),
    })?;
    if !meta.is_dir() && !meta.is_file() {
        let kind = special_name(&meta);
        return Err(format!("`path`: cannot search {}: it is {kind}.", path.display()));
    }
    Ok(meta.is_file())
}

fn explain_pattern(error: &str, is_multiline: bool) -> String {
    let advice = if !is_multiline && error.contains("\\n") && error.contains("not allowed") {
        "\nSet `multiline` to match across lines."
    } else {
        ""
    };
    format!("`pattern` is not a valid regular expression: {error}{advice}")
}

#[cfg(test)]
mod tests;
