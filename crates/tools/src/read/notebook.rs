//! Jupyter notebooks: cells and their outputs, one cell in memory at a time.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::io::{self, BufReader, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use windlass_protocol::{Block, FileSeen, ToolOutcome};

use super::picture::Picture;
use super::tokens::Tokens;
use super::{Job, ReadLimits, Source, Wanted, bytes};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::seen::SeenBuilder;

const FILE_BYTES_MAX: u64 = 100_000_000;
const SOURCE_BYTES_MAX: usize = 20_000;
const OUTPUT_BYTES_MAX: usize = 10_000;
/// Outputs of one cell together.
const OUTPUTS_BYTES_MAX: usize = 40_000;
/// As long as the headings around a cell are.
const HEADING: &str = "--- cell 100 (markdown, id 01234567, run 100) ---\n--- output ---\n";
/// Images of all outputs together, as base64.
const IMAGES_BYTES_MAX: usize = 600_000;

#[derive(Serialize)]
struct NotebookOutput {
    #[serde(rename = "type")]
    kind: &'static str,
    file: NotebookFile,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotebookFile {
    file_path: String,
    cells: Vec<CellOutput>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CellOutput {
    cell_type: String,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<u64>,
}

pub(super) fn read(job: Job<'_>) -> Result<ToolOutcome, String> {
    if job.source.size > FILE_BYTES_MAX {
        return Err(job.fail(format_args!(
            "is a notebook of {}, above the {} that can be shown. Take out the cells you need through Bash, for example \
             `jq '.cells[0:10]'`.",
            bytes(job.source.size),
            bytes(FILE_BYTES_MAX)
        )));
    }
    let Job { subject, source, wanted, limits, cx } = job;
    let mut rendering = Rendering::new(wanted, limits);
    let mut tap = Tap { source, piece: Vec::new(), at: 0, seen: SeenBuilder::default() };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(16 * 1024, &mut tap));
    let parsed = Cells { rendering: &mut rendering }.deserialize(&mut json);
    drop(json);
    let fail = |what: &dyn fmt::Display| format!("{} {what}", subject.shown);
    parsed.map_err(|error| fail(&format_args!("is not a valid notebook: {error}.")))?;
    tap.drain().map_err(|error| fail(&format_args!("cannot be read: {error}.")))?;
    if rendering.overflow && wanted.explicit {
        return Err(fail(&format_args!(
            "has more in these cells than the {} tokens that are shown at once. From cell {}, ask for at most {} cells \
             (`limit`).",
            limits.tokens_max, wanted.start, rendering.shown
        )));
    }
    let seen = tap.seen.finish(subject.resolved.clone(), false);
    let known = cx.seen(&subject.resolved);
    let known_whole = known.is_some_and(|known| known.whole && known.hash == seen.hash);
    let whole = rendering.is_whole() || known_whole;
    let cells = if rendering.cells_bytes <= STRUCTURED_BYTES_MAX {
        std::mem::take(&mut rendering.cells)
    } else {
        Vec::new()
    };
    let file = NotebookFile { file_path: subject.file_path(), cells };
    let outcome = ToolOutcome::blocks(rendering.finish(&subject.shown));
    let outcome = outcome.with_structured(&NotebookOutput { kind: "notebook", file });
    Ok(outcome.with_seen(FileSeen { whole, ..seen }))
}

/// Reads the file and computes what is known of it on the way.
struct Tap {
    source: Source,
    piece: Vec<u8>,
    at: usize,
    seen: SeenBuilder,
}

impl Tap {
    fn refill(&mut self) -> io::Result<bool> {
        self.at = 0;
        self.piece.clear();
        if let Some(piece) = self.source.next()? {
            self.seen.update(piece);
            self.piece.extend_from_slice(piece);
        }
        Ok(!self.piece.is_empty())
    }

    fn drain(&mut self) -> io::Result<()> {
        while self.refill()? {}
        Ok(())
    }
}

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.refill()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Text that a notebook stores as one string or as a list of lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

impl Lines {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::One(text) => Cow::Borrowed(text),
            Self::Many(lines) => Cow::Owned(lines.concat()),
        }
    }
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "cell_type")]
    kind: String,
    source: Lines,
    id: Option<String>,
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<CellResult>,
}

#[derive(Deserialize)]
struct CellResult {
    text: Option<Lines>,
    data: Option<Map<String, Value>>,
    ename: Option<String>,
    evalue: Option<String>,
    traceback: Option<Vec<String>>,
}

/// Walks through the notebook's object and hands its cells to the rendering.
struct Cells<'a> {
    rendering: &'a mut Rendering,
}

impl<'de> DeserializeSeed<'de> for Cells<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `cells`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "cells" {
                found = true;
                map.next_value_seed(CellList { rendering: &mut *self.rendering })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::missing_field("cells")) }
    }
}

struct CellList<'a> {
    rendering: &'a mut Rendering,
}

impl<'de> DeserializeSeed<'de> for CellList<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for CellList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        loop {
            let more = if self.rendering.wants_next() {
                cells.next_element::<Cell>()?.map(|cell| self.rendering.push(cell)).is_some()
            } else {
                cells.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(());
            }
            self.rendering.total += 1;
        }
    }
}

/// The cells as blocks: text, with images in between.
struct Rendering {
    wanted: Wanted,
    limits: ReadLimits,
    total: usize,
    shown: usize,
    cost: Tokens,
    overflow: bool,
    cut: bool,
    blocks: Vec<Block>,
    text: String,
    images_bytes: usize,
    cells: Vec<CellOutput>,
    cells_bytes: usize,
}

impl Rendering {
    fn new(wanted: Wanted, limits: ReadLimits) -> Self {
        Self {
            wanted,
            limits,
            total: 0,
            shown: 0,
            cost: Tokens::default(),
            overflow: false,
            cut: false,
            blocks: Vec::new(),
            text: String::new(),
            images_bytes: 0,
            cells: Vec::new(),
            cells_bytes: 0,
        }
    }

    fn wants_next(&self) -> bool {
        let number = self.total + 1;
        let enough = self.wanted.count.is_some_and(|count| self.shown >= count);
        number >= self.wanted.start && !enough && !self.overflow
    }

    fn is_whole(&self) -> bool {
        self.shown == self.total && !self.cut
    }

    fn push(&mut self, cell: Cell) {
        let source = cell.source.text();
        let (outputs, left_out) = outputs(&cell);
        let cost = self.cost.plus(Tokens::of(HEADING)).plus(Tokens::of(shortened(&source, SOURCE_BYTES_MAX)));
        let cost = outputs.iter().fold(cost, |cost, part| cost.plus(Tokens::of(part.shown_text())));
        // A single cell is always shown, so that there is a way to go on.
        if self.shown > 0 && cost.exceed(self.limits.tokens_max) {
            self.overflow = true;
            return;
        }
        self.cost = cost;
        self.shown += 1;
        self.push_source(&cell, &source);
        for part in outputs {
            self.push_part(part);
        }
        if left_out > 0 {
            self.cut = true;
            let _ = writeln!(self.text, "[{left_out} more outputs of this cell left out]");
        }
        self.cells_bytes += source.len();
        if self.cells_bytes <= STRUCTURED_BYTES_MAX {
            let source = source.into_owned();
            self.cells.push(CellOutput {
                cell_type: cell.kind,
                source,
                cell_id: cell.id,
                execution_count: cell.execution_count,
            });
        }
    }

    fn push_source(&mut self, cell: &Cell, source: &str) {
        let _ = write!(self.text, "--- cell {} ({}", self.total + 1, cell.kind);
        if let Some(id) = &cell.id {
            let _ = write!(self.text, ", id {id}");
        }
        if let Some(count) = cell.execution_count {
            let _ = write!(self.text, ", run {count}");
        }
        self.text.push_str(") ---\n");
        self.push_text(source, SOURCE_BYTES_MAX);
        if !cell.outputs.is_empty() {
            self.text.push_str("--- output ---\n");
        }
    }

    fn push_text(&mut self, text: &str, bytes_max: usize) {
        let short = shortened(text, bytes_max);
        self.text.push_str(short);
        if short.len() < text.len() {
            self.cut = true;
            let _ = write!(self.text, "\n[cut: {} of {} bytes are shown]", short.len(), text.len());
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn push_part(&mut self, part: Part) {
        let (format, data) = match part {
            Part::Text(text) => return self.push_text(&text, OUTPUT_BYTES_MAX),
            Part::Image(format, data) => (format, data),
        };
        let packed: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let decoded = STANDARD.decode(&packed).map_err(|error| error.to_string());
        let picture = decoded
            .as_deref()
            .map_err(Clone::clone)
            .and_then(|content| Picture::prepare(content, format, self.limits.image_edge_px_max));
        match picture {
            Ok(picture) if self.images_bytes + picture.bytes.len() * 4 / 3 <= IMAGES_BYTES_MAX => {
                self.images_bytes += picture.bytes.len() * 4 / 3;
                self.text.push_str("[image]\n");
                self.end_text();
                self.blocks.push(picture.block());
            }
            Ok(_) => {
                self.cut = true;
                self.text.push_str(
                    "[image left out: there are too many; ask for fewer cells with `offset` and `limit`]\n",
                );
            }
            Err(error) => {
                let _ = writeln!(self.text, "[image that cannot be shown: {error}]");
            }
        }
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.blocks.push(Block::text(text.trim_end_matches('\n')));
        }
    }

    fn finish(mut self, name: &str) -> Vec<Block> {
        let (start, total) = (self.wanted.start, self.total);
        if total == 0 {
            let _ = writeln!(self.text, "[{name} is a notebook without cells.]");
        } else if start > total {
            let _ = writeln!(self.text, "[{name} has only {total} cells; cell {start} is past its end.]");
        } else if self.overflow {
            let last = start + self.shown - 1;
            let _ = writeln!(
                self.text,
                "\n[PARTIAL view: cells {start}-{last} of {total} of {name}, which is longer than the {} tokens that are \
                 shown at once. To go on, call Read with offset {} and limit {}.]",
                self.limits.tokens_max,
                last + 1,
                self.shown
            );
        }
        self.end_text();
        self.blocks
    }
}

/// One piece of an output.
enum Part {
    Text(String),
    Image(ImageFormat, String),
}

impl Part {
    fn shown_text(&self) -> &str {
        match self {
            Self::Text(text) => shortened(text, OUTPUT_BYTES_MAX),
            Self::Image(..) => "",
        }
    }
}

/// The outputs of a cell as far as there is room, and how many more there are.
fn outputs(cell: &Cell) -> (Vec<Part>, usize) {
    let mut shown = Vec::new();
    let mut room = OUTPUTS_BYTES_MAX;
    for (number, result) in cell.outputs.iter().enumerate() {
        let next = parts(result);
        let size = next.iter().map(|part| part.shown_text().len()).sum();
        if room < size {
            return (shown, cell.outputs.len() - number);
        }
        room -= size;
        shown.extend(next);
    }
    (shown, 0)
}

/// What to show of one output: its images, and the plainest of its texts.
fn parts(result: &CellResult) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(text) = &result.text {
        parts.push(Part::Text(without_escapes(&text.text())));
    }
    if let Some(data) = &result.data {
        let string = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
            other => other.to_string(),
        };
        let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
        let image = formats.into_iter().find_map(|format| {
            data.get(format.to_mime_type()).map(|value| Part::Image(format, string(value)))
        });
        let texts = ["text/plain", "text/markdown", "text/latex", "application/json", "text/html"];
        let text = texts.iter().find_map(|mime| data.get(*mime));
        parts.extend(text.map(|value| Part::Text(without_escapes(&string(value)))));
        parts.extend(image);
    }
    if let Some(name) = &result.ename {
        let value = result.evalue.as_deref().unwrap_or_default();
        let trace = result.traceback.as_ref().map(|lines| lines.join("\n")).unwrap_or_default();
        parts.push(Part::Text(without_escapes(&format!("{name}: {value}\n{trace}"))));
    }
    parts
}

/// Notebooks store output as terminals colour it.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let end = after.find(|character: char| ('@'..='~').contains(&character));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
