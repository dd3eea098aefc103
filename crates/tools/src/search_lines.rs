//! Searching one file: reading it in bounded pieces, and turning what matched into lines to show.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use memchr::memrchr;

use crate::content::without_line_end;
use crate::open::{OpenFile, open_regular};
use crate::search::SearchStop;
use crate::text_encoding::TextEncoding;

/// A longer line is searched in pieces of this size, so that no line has to be held whole.
const PIECE_BYTES_MAX: usize = 256 * 1024;
/// What a search may hold of a file. Searching across lines needs all of it.
const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;
const HELD_BYTES_MAX_ACROSS_LINES: usize = 16 * 1024 * 1024;
const LINE_BYTES_MAX: usize = 500;
/// As many of a long line are shown in front of a match that is far inside.
const BEFORE_MATCH_BYTES: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct LineQuery {
    pub(crate) matcher: RegexMatcher,
    pub(crate) is_multiline: bool,
    pub(crate) has_numbers: bool,
    pub(crate) is_only_matching: bool,
    pub(crate) before: usize,
    pub(crate) after: usize,
}

/// A pattern as ripgrep understands it; the error is ripgrep's.
pub(crate) fn matcher(
    pattern: &str,
    should_ignore_case: bool,
    is_multiline: bool,
) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(should_ignore_case);
    if is_multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(pattern).map_err(|error| error.to_string())
}

/// What a search wants of a file.
pub(crate) struct SearchGoal {
    /// After so many matches it knows enough.
    pub(crate) matches_max: u64,
    /// Which entries to show, of all there are in the file.
    pub(crate) entries: Range<u64>,
    /// More bytes of entries are not held.
    pub(crate) bytes_max: usize,
}

impl SearchGoal {
    /// Only to know how much matches, up to so much.
    pub(crate) fn matches(matches_max: u64) -> Self {
        Self { matches_max, entries: 0..0, bytes_max: 0 }
    }

    pub(crate) fn entries(entries: Range<u64>, bytes_max: usize) -> Self {
        Self { matches_max: u64::MAX, entries, bytes_max }
    }
}

#[derive(Default)]
pub(crate) struct FileFound {
    /// Matching lines; across lines, matches.
    pub(crate) matches: u64,
    /// Lines to show, as asked for; each begins with the sign that stands behind the path.
    pub(crate) entries: Vec<String>,
    /// How many lines there were to show, up to where the search stopped.
    pub(crate) entry_count: u64,
    /// Some wanted lines were not kept, for lack of room.
    pub(crate) is_crowded: bool,
}

pub(crate) enum UnsearchedReason {
    Binary,
    /// It cannot be held in memory as this search needs it.
    TooLarge,
    Unreadable,
}

pub(crate) struct LineSearch<'a> {
    query: &'a LineQuery,
    stop: &'a SearchStop,
    searcher: Searcher,
}

impl<'a> LineSearch<'a> {
    pub(crate) fn new(query: &'a LineQuery, stop: &'a SearchStop) -> Self {
        let held = if query.is_multiline { HELD_BYTES_MAX_ACROSS_LINES } else { HELD_BYTES_MAX };
        let searcher = SearcherBuilder::new()
            .line_number(query.has_numbers)
            .multi_line(query.is_multiline)
            .before_context(query.before)
            .after_context(query.after)
            .binary_detection(BinaryDetection::quit(b'\0'))
            .heap_limit(Some(held))
            .build();
        Self { query, stop, searcher }
    }

    pub(crate) fn search(&mut self, path: &Path, goal: &SearchGoal) -> Result<FileFound, UnsearchedReason> {
        let OpenFile { file, .. } = open_regular(path).map_err(|_| UnsearchedReason::Unreadable)?;
        let breaks = RefCell::default();
        let pieces = Pieces {
            file,
            stop: self.stop,
            breaks: &breaks,
            offset: 0,
            open_bytes: 0,
            is_unbreakable: false,
        };
        let found = FileFound::default();
        let mut lines = Lines { query: self.query, goal, breaks: &breaks, found, bytes: 0, is_binary: false };
        let searched = self.searcher.search_reader(&self.query.matcher, pieces, &mut lines);
        match searched {
            _ if lines.is_binary => Err(UnsearchedReason::Binary),
            Err(error) if !self.stop.is_reached() => {
                let is_too_large = error.to_string().contains("allocation limit");
                Err(if is_too_large { UnsearchedReason::TooLarge } else { UnsearchedReason::Unreadable })
            }
            _ => Ok(lines.found),
        }
    }
}

/// A file as the searcher reads it: endless lines are broken, and where is noted, as they are one line.
struct Pieces<'a> {
    file: File,
    stop: &'a SearchStop,
    breaks: &'a RefCell<Vec<u64>>,
    /// Bytes handed out.
    offset: u64,
    /// Of them, since the last end of a line.
    open_bytes: usize,
    /// The file is in an encoding whose line ends are not single bytes.
    is_unbreakable: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_reached() {
            return Err(io::Error::other("the search was stopped"));
        }
        if self.open_bytes >= PIECE_BYTES_MAX && !self.is_unbreakable && !buffer.is_empty() {
            buffer[0] = b'\n';
            self.breaks.borrow_mut().push(self.offset);
            self.offset += 1;
            self.open_bytes = 0;
            return Ok(1);
        }
        let room = if self.is_unbreakable {
            buffer.len()
        } else {
            buffer.len().min(PIECE_BYTES_MAX - self.open_bytes)
        };
        let count = self.file.read(&mut buffer[..room])?;
        let read = &buffer[..count];
        if self.offset == 0 && TextEncoding::has_utf16_bom(read) {
            self.is_unbreakable = true;
        }
        self.open_bytes = match memrchr(b'\n', read) {
            Some(at) => count - at - 1,
            None => self.open_bytes + count,
        };
        self.offset += count as u64;
        Ok(count)
    }
}

/// Collects what the searcher finds.
struct Lines<'a> {
    query: &'a LineQuery,
    goal: &'a SearchGoal,
    breaks: &'a RefCell<Vec<u64>>,
    found: FileFound,
    bytes: usize,
    is_binary: bool,
}

#[derive(Clone, Copy)]
struct Origin {
    offset: u64,
    number: Option<u64>,
    /// Between number and text.
    sign: char,
}

impl Lines<'_> {
    fn goes_on(&self) -> bool {
        let has_room = self.goal.entries.is_empty() || self.found.entry_count < self.goal.entries.end;
        has_room && self.found.matches < self.goal.matches_max
    }

    fn entry(&mut self, make: impl FnOnce() -> String) {
        let is_wanted = self.goal.entries.contains(&self.found.entry_count);
        self.found.entry_count += 1;
        if !is_wanted || self.found.is_crowded {
            return;
        }
        let entry = make();
        self.bytes += entry.len();
        if self.bytes > self.goal.bytes_max {
            self.found.is_crowded = true;
        } else {
            self.found.entries.push(entry);
        }
    }

    /// The number as everybody else counts lines.
    fn prefix(&self, origin: Origin) -> String {
        match origin.number {
            Some(number) => {
                let broken = self.breaks.borrow().partition_point(|&at| at < origin.offset);
                format!("{0}{1}{0}", origin.sign, number.saturating_sub(broken as u64))
            }
            None => origin.sign.to_string(),
        }
    }

    fn line(&mut self, origin: Origin, line: &[u8]) {
        let prefix = self.prefix(origin);
        let query = self.query;
        self.entry(|| {
            let line = without_line_end(line);
            let at = || query.matcher.find(line).ok().flatten().map(|found| found.start()..found.end());
            prefix + &line_text(line, at)
        });
    }

    fn only_matches(&mut self, origin: Origin, lines: &[u8]) {
        let mut matches: Vec<Range<usize>> = Vec::new();
        let room = self.goal.entries.end.saturating_sub(self.found.entry_count).max(1);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let _ = self.query.matcher.find_iter(lines, |found| {
            matches.push(found.start()..found.end());
            matches.len() < room
        });
        for found in matches {
            let before = memchr::memchr_iter(b'\n', &lines[..found.start]).count() as u64;
            let origin = Origin { number: origin.number.map(|number| number + before), ..origin };
            let prefix = self.prefix(origin);
            self.entry(|| prefix + &line_text(without_line_end(&lines[found]), || None));
        }
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.found.matches += 1;
        if !self.goal.entries.is_empty() {
            let mut origin =
                Origin { offset: found.absolute_byte_offset(), number: found.line_number(), sign: ':' };
            if self.query.is_only_matching {
                self.only_matches(origin, found.bytes());
            } else {
                for line in found.lines() {
                    self.line(origin, line);
                    origin.number = origin.number.map(|number| number + 1);
                    origin.offset += line.len() as u64;
                }
            }
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !self.query.is_only_matching {
            let origin =
                Origin { offset: context.absolute_byte_offset(), number: context.line_number(), sign: '-' };
            self.line(origin, context.bytes());
        }
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if !self.query.is_only_matching {
            self.entry(|| BREAK.to_owned());
        }
        Ok(self.goes_on())
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// An entry that stands between groups of lines.
pub(crate) const BREAK: &str = "--";

/// A line as text; of a long one the part around the match.
fn line_text(line: &[u8], at: impl FnOnce() -> Option<Range<usize>>) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let far = at().map(|found| found.start).filter(|&start| start > LINE_BYTES_MAX - BEFORE_MATCH_BYTES);
    let start = char_start(line, far.map_or(0, |start| start - BEFORE_MATCH_BYTES));
    let end = char_start(line, line.len().min(start + LINE_BYTES_MAX));
    let part: Cow<'_, str> = String::from_utf8_lossy(&line[start..end]);
    let (left, right) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{left}{part}{right} [long line cut]")
}

/// The start of the character that `at` is in.
fn char_start(line: &[u8], at: usize) -> usize {
    let is_inside = |&at: &usize| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (at.saturating_sub(3)..=at).rev().find(is_inside).unwrap_or(at)
}
