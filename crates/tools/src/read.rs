//! The tool Read: shows a file, whatever it is, in a form a model can use. Text is streamed: only the page shown is
//! held. A read of text also returns what is then known of the file, which is what Edit and Write ask for.

mod file_kind;
mod notebook;
mod page;
mod pdf;
mod picture;
mod text;
mod tokens;

use std::fs::File;
use std::io::{self, Chain, Read as _};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_ports::{CancellationToken, ExamineContext, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, FileSeen, FileStamp, ShownPart, ToolOutput, ToolProfile};

use crate::file::{CANCELLED, OnCancel, TargetFile, blocking, facts};
use crate::fingerprint::SeenBuilder;
use crate::lenient;
use crate::open::{OpenError, OpenFile, open_regular};
use file_kind::FileKind;
pub(crate) use file_kind::is_text;
use pdf::PageRange;

/// Shows a file. Use it instead of cat, head or tail.
///
/// - Text: each line with its number and a tab in front, which are not part of the file. Without `offset` and
///   `limit` all of it; a file that is too long returns its first page, marked PARTIAL, and how to continue.
/// - Images (png, jpeg, gif, webp): the picture itself, scaled down if needed.
/// - PDF: the text of its pages; with more than 10 pages, say which in `pages`.
/// - Jupyter notebooks: all cells with their outputs; `offset` and `limit` then count cells.
///
/// Directories cannot be read; list them with Glob or Bash. Read several files in one go by calling this several
/// times at once. Content that you have read and that has not changed is not shown again.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file: absolute, relative to the working directory, or starting with `~/`.
    pub(crate) file_path: String,
    /// The first line to show, counted from 1. Only for files too long to show whole.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) offset: Option<u64>,
    /// How many lines to show.
    #[serde(default, deserialize_with = "lenient::number")]
    pub(crate) limit: Option<u64>,
    /// PDF only: the pages to show, such as "3" or "3-7"; at most 20.
    #[serde(default)]
    pub(crate) pages: Option<String>,
}

/// What Read may return at most.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Text, in estimated tokens: 3.5 ASCII bytes make one, and every other character makes one.
    pub tokens_max: usize,
    /// The longer edge of an image, in pixels.
    pub image_edge_px_max: u32,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { tokens_max: 25_000, image_edge_px_max: 2576 }
    }
}

/// The tool Read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read {
    limits: ReadLimits,
}

impl Read {
    /// The tool with limits of its own.
    pub fn new(limits: ReadLimits) -> Self {
        Self { limits }
    }
}

impl Tool for Read {
    type Input = ReadInput;
    const NAME: &'static str = "Read";
    const PROFILE: ToolProfile = ToolProfile::READ;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Read.json"));

    fn facts(&self, input: &ReadInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        ReadRange::new(input)?;
        facts(CallKind::Read, &input.file_path, cx)
    }

    async fn run(&self, input: ReadInput, cx: ToolContext) -> ToolOutput {
        let limits = self.limits;
        blocking(cx, OnCancel::Leave, move |cx| read(&input, cx, limits)).await
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct ReadRange {
    /// The first line or cell, from 1.
    start: usize,
    count: Option<usize>,
    /// `offset` or `limit` was given.
    is_explicit: bool,
    pages: Option<PageRange>,
}

impl ReadRange {
    fn part(&self) -> ShownPart {
        ShownPart { first: self.start, count: self.count }
    }

    fn new(input: &ReadInput) -> Result<Self, String> {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        if input.limit == Some(0) {
            return Err("`limit` must be at least 1.".to_owned());
        }
        Ok(Self {
            // Some models count from 0.
            start: input.offset.map_or(1, number).max(1),
            count: input.limit.map(number),
            is_explicit: input.offset.is_some() || input.limit.is_some(),
            pages: input.pages.as_deref().map(PageRange::parse).transpose()?,
        })
    }
}

struct ReadJob<'a> {
    subject: TargetFile,
    source: FileSource,
    wanted: ReadRange,
    limits: ReadLimits,
    cx: &'a ToolContext,
}

impl ReadJob<'_> {
    fn fail(&self, what: impl std::fmt::Display) -> String {
        format!("{} {what}", self.subject.shown)
    }

    /// Instead of showing the same part of the same content a second time, says so.
    fn unchanged_notice(&self, now: &FileSeen) -> Option<ToolOutput> {
        let file = &self.subject;
        let known = self.cx.seen_file(&file.resolved).filter(|known| known.hash == now.hash)?;
        if !known.shown.contains(&self.wanted.part()) {
            return None;
        }
        let text = format!(
            "{} is unchanged: you have read this part in this conversation. To see it again, ask for another \
             part with `offset` and `limit`.",
            file.shown
        );
        let output = json!({ "type": "file_unchanged", "file": { "filePath": file.file_path() } });
        Some(ToolOutput::text(&text).with_structured(&output))
    }
}

fn read(input: &ReadInput, cx: &ToolContext, limits: ReadLimits) -> Result<ToolOutput, String> {
    let wanted = ReadRange::new(input)?;
    let subject = TargetFile::new(&input.file_path, cx)?;
    let shown = &subject.shown;
    let open = match open_regular(&subject.resolved) {
        Ok(open) => open,
        Err(OpenError::Missing) => return Err(subject.missing(&cx.cwd)),
        Err(OpenError::Directory) => {
            return Err(format!("{shown} is a directory. List it with Glob, or with `ls` through Bash."));
        }
        Err(error) => return Err(format!("{shown} {error}.")),
    };
    let source = FileSource::new(open).map_err(|error| format!("Cannot read {shown}: {error}."))?;
    let kind = FileKind::of(&source.start, source.is_complete(), &subject.lexical);
    let job = ReadJob { subject, source, wanted, limits, cx };
    check_fit(&job, kind)?;
    match kind {
        FileKind::Text => text::read(&job),
        FileKind::Notebook => notebook::read(&job),
        FileKind::Pdf => pdf::read(&job),
        FileKind::Image(format) => picture::read(&job, format),
        FileKind::Binary(what) => Err(job.fail(format_args!(
            "is not text but {what} ({}), which cannot be shown. Use a suitable command through Bash.",
            bytes(job.source.stamp.size)
        ))),
    }
}

/// Options that mean nothing for this kind of file are errors, not silence.
fn check_fit(job: &ReadJob<'_>, kind: FileKind) -> Result<(), String> {
    if job.wanted.pages.is_some() && kind != FileKind::Pdf {
        return Err(job.fail("is not a PDF. Leave out `pages`."));
    }
    if job.wanted.is_explicit && matches!(kind, FileKind::Pdf | FileKind::Image(_)) {
        let what = if kind == FileKind::Pdf { "a PDF: use `pages`" } else { "an image: leave them out" };
        return Err(job.fail(format_args!("is {what} instead of `offset` and `limit`.")));
    }
    Ok(())
}

/// An open file, of which the first bytes are there before anything is decided.
struct FileSource {
    file: File,
    /// What the file looked like before anything of it was read.
    stamp: FileStamp,
    start: Vec<u8>,
}

const PIECE_BYTES: usize = 64 * 1024;

impl FileSource {
    fn new(OpenFile { file, stamp }: OpenFile) -> io::Result<Self> {
        let room = usize::try_from(stamp.size).map_or(PIECE_BYTES, |size| size.min(PIECE_BYTES) + 1);
        let mut start = Vec::with_capacity(room);
        (&file).take(PIECE_BYTES as u64).read_to_end(&mut start)?;
        Ok(Self { file, stamp, start })
    }

    /// Whether the first bytes are all there is.
    fn is_complete(&self) -> bool {
        self.start.len() < PIECE_BYTES
    }

    /// All of the file, if it is no larger than `max` bytes. Like the other readers, this one can be had once.
    fn all(&self, max: usize) -> io::Result<Option<Vec<u8>>> {
        let size = usize::try_from(self.stamp.size).unwrap_or(max);
        let mut all = Vec::with_capacity(size.min(max) + 1);
        self.start.chain(&self.file).take(max as u64 + 1).read_to_end(&mut all)?;
        Ok((all.len() <= max).then_some(all))
    }

    fn reader<'a>(&'a self, cancel: &'a CancellationToken) -> SeenReader<'a> {
        SeenReader { content: self.start.chain(&self.file), seen: SeenBuilder::default(), cancel }
    }
}

/// Reads a file, unless the call is cancelled, and computes what is known of it on the way.
struct SeenReader<'a> {
    content: Chain<&'a [u8], &'a File>,
    seen: SeenBuilder,
    cancel: &'a CancellationToken,
}

impl io::Read for SeenReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other(CANCELLED));
        }
        let count = self.content.read(buffer)?;
        self.seen.update(&buffer[..count]);
        Ok(count)
    }
}

/// A size for people.
fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} KB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

#[cfg(test)]
mod tests;
