//! What Grep found, as one page of entries with what must be said about it.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_protocol::ToolOutput;
use windlass_text::plurals::quantity;

use super::OutputMode;
use crate::file::without_nulls;
use crate::search_lines::{BREAK, FileFound, UnsearchedReason};

pub(super) const PAGE_BYTES_MAX: usize = 40_000;

/// The entries that are returned, out of all there are.
#[derive(Default)]
pub(super) struct ResultPage {
    pub(super) lines: Vec<String>,
    pub(super) has_more: bool,
    limit: u64,
    offset: u64,
    /// Entries that still come before the page.
    before: u64,
    bytes: usize,
}

impl ResultPage {
    pub(super) fn new(limit: u64, offset: u64) -> Self {
        Self { limit, offset, before: offset, ..Self::default() }
    }

    /// Passes over entries that come before the page; tells how many of these did.
    pub(super) fn skip(&mut self, count: u64) -> u64 {
        let skipped = self.before.min(count);
        self.before -= skipped;
        skipped
    }

    /// Breaks off when the page is full.
    pub(super) fn add(&mut self, line: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.skip(1) == 1 {
            return ControlFlow::Continue(());
        }
        self.has_more |= self.lines.len() as u64 == self.limit;
        if !self.has_more {
            let line = line();
            self.bytes += line.len() + 1;
            self.has_more = self.bytes > PAGE_BYTES_MAX && !self.lines.is_empty();
            if !self.has_more {
                self.lines.push(line);
            }
        }
        if self.has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Adds entries of one file, which begin with a sign, with the name in front. Without a name the sign goes, too.
    pub(super) fn add_all(&mut self, name: &str, entries: &[String]) -> ControlFlow<()> {
        entries.iter().try_for_each(|entry| {
            self.add(|| match entry.as_str() {
                BREAK => entry.clone(),
                _ if name.is_empty() => entry[1..].to_owned(),
                _ => format!("{name}{entry}"),
            })
        })
    }
}

#[derive(Default)]
pub(super) struct GrepMatches {
    pub(super) mode: OutputMode,
    pub(super) page: ResultPage,
    /// Files with a match, as far as the search went.
    pub(super) files: u64,
    pub(super) matches: u64,
    pub(super) unreadable: u64,
    pub(super) too_large: u64,
    /// The one file that was named is binary.
    pub(super) is_named_binary: bool,
    pub(super) is_late: bool,
}

impl GrepMatches {
    /// Notes what one file came to; the file if something in it matched.
    pub(super) fn add(&mut self, file: Result<FileFound, UnsearchedReason>) -> Option<FileFound> {
        match file {
            Ok(file) => {
                self.files += u64::from(file.matches > 0);
                return Some(file).filter(|file| file.matches > 0);
            }
            Err(UnsearchedReason::Binary) => self.is_named_binary = true,
            Err(UnsearchedReason::TooLarge) => self.too_large += 1,
            Err(UnsearchedReason::Unreadable) => self.unreadable += 1,
        }
        None
    }

    pub(super) fn answer(self, timeout: Duration) -> ToolOutput {
        let body = self.page.lines.join("\n");
        let mut text: Vec<String> = Vec::new();
        if self.mode == OutputMode::FilesWithMatches && !self.page.lines.is_empty() {
            text.push(format!("Found {}", quantity(self.files, "file")));
        }
        if self.page.lines.is_empty() {
            text.push(self.nothing().to_owned());
        } else {
            text.push(body.clone());
        }
        if self.mode == OutputMode::Count && self.files > 0 {
            let occurrences = quantity(self.matches, "total occurrence");
            text.push(format!("\nFound {occurrences} across {}.", quantity(self.files, "file")));
        }
        text.extend(self.remarks(timeout));
        ToolOutput::text(&text.join("\n")).with_structured(&self.output(&body))
    }

    fn nothing(&self) -> &'static str {
        if self.page.offset > 0 {
            "No entries at this offset"
        } else if self.mode == OutputMode::FilesWithMatches {
            "No files found"
        } else {
            "No matches found"
        }
    }

    fn remarks(&self, timeout: Duration) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.page.has_more {
            let next = self.page.offset + self.page.lines.len() as u64;
            let shown = self.page.lines.len();
            remarks.push(format!(
                "(Showing {shown} entries; there are more. Continue with offset {next}, or narrow the \
                 search.)"
            ));
        }
        if self.is_late {
            let seconds = timeout.as_secs();
            remarks.push(format!(
                "(Stopped after {seconds} s, so results may be missing. Search a smaller directory.)"
            ));
        }
        if self.is_named_binary {
            remarks.push("(Not searched: the file is binary.)".to_owned());
        }
        if self.too_large > 0 {
            let files = quantity(self.too_large, "file");
            remarks.push(format!("({files} not searched: too large.)"));
        }
        if self.unreadable > 0 {
            remarks.push(format!("(Cannot read {}.)", quantity(self.unreadable, "file")));
        }
        remarks
    }

    fn output(&self, body: &str) -> Value {
        let is = |mode| self.mode == mode;
        let names = if is(OutputMode::FilesWithMatches) { &self.page.lines[..] } else { &[] };
        without_nulls(json!({
            "mode": self.mode,
            "numFiles": if names.is_empty() { self.files } else { names.len() as u64 },
            "filenames": names,
            "content": (!is(OutputMode::FilesWithMatches)).then_some(body),
            "numLines": is(OutputMode::Content).then_some(self.page.lines.len()),
            "numMatches": is(OutputMode::Count).then_some(self.matches),
            "totalFiles": (!is(OutputMode::Content)).then_some(self.files),
            "appliedLimit": self.page.has_more.then_some(self.page.lines.len()),
            "appliedOffset": (self.page.offset > 0).then_some(self.page.offset),
        }))
    }
}
