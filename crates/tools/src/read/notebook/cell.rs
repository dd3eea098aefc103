//! One cell of a notebook, of which no more is kept than can be shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use windlass_ports::CancellationToken;
use windlass_protocol::Block;

use super::short_strings::{STRING_BYTES_MAX, cut_string};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::read::picture::{Picture, PictureOptions};

/// Shown of one output.
const OUTPUT_BYTES_MAX: usize = 10_000;
/// Kept of one output: escapes of terminals are taken out before it is shown.
const RAW_OUTPUT_BYTES_MAX: usize = 4 * OUTPUT_BYTES_MAX;
/// Outputs of one cell together.
const OUTPUTS_BYTES_MAX: usize = 40_000;
/// What an output takes of that at least.
const OUTPUT_BYTES_MIN: usize = 16;
/// Names and other short things.
const NAME_BYTES_MAX: usize = 200;
/// Images of all outputs together, as base64.
const IMAGES_BYTES_MAX: usize = 600_000;

/// The start of a text, and how long all of it is.
#[derive(Default)]
pub(super) struct ClippedText {
    pub(super) text: String,
    bytes_max: usize,
    total: usize,
    /// There is more than `total`.
    more: bool,
}

impl ClippedText {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    fn push(&mut self, part: &str) {
        let start = cut_string(part);
        self.more |= start.is_some();
        let part = start.unwrap_or(part);
        if self.total == self.text.len() {
            self.text.push_str(shortened(part, self.bytes_max - self.text.len()));
        }
        self.total += part.len();
    }

    fn is_whole(&self) -> bool {
        self.text.len() == self.total && !self.more
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The text within the limit, and what to say if that is not all.
    pub(super) fn shown(&self, bytes_max: usize) -> (&str, Option<String>) {
        let short = shortened(&self.text, bytes_max);
        let cut = short.len() < self.total || self.more;
        let more = if self.more { "more than " } else { "" };
        let notice = format!("[cut: showing {} of {more}{} bytes]", short.len(), self.total);
        (short, cut.then_some(notice))
    }

    fn without_escapes(self) -> Self {
        let text = without_escapes(&self.text);
        let total = self.total - self.text.len() + text.len();
        Self { text, total, ..self }
    }
}

pub(super) enum CellPart {
    Text(ClippedText),
    Image(Block),
    /// Said instead of something; whether that could have been shown.
    Note(String, bool),
}

impl CellPart {
    /// The text within the limit, and what to say if that is not all.
    pub(super) fn shown(&self) -> (&str, Option<String>) {
        match self {
            Self::Text(clip) => clip.shown(OUTPUT_BYTES_MAX),
            Self::Image(_) => ("[image]", None),
            Self::Note(note, _) => (note, None),
        }
    }
}

pub(super) struct Cell {
    pub(super) kind: String,
    pub(super) source: ClippedText,
    pub(super) id: Option<String>,
    pub(super) execution_count: Option<u64>,
    pub(super) outputs: CellOutputs,
}

#[derive(Default)]
pub(super) struct CellOutputs {
    pub(super) parts: Vec<CellPart>,
    /// Outputs for which there was no room.
    pub(super) left_out: usize,
}

pub(super) struct ImageBudget<'a> {
    pub(super) edge_px_max: u32,
    pub(super) cancel: &'a CancellationToken,
    used: usize,
    /// One did not fit, so no further one is even looked at.
    full: bool,
}

impl<'a> ImageBudget<'a> {
    pub(super) fn new(edge_px_max: u32, cancel: &'a CancellationToken) -> Self {
        Self { edge_px_max, cancel, used: 0, full: false }
    }

    fn part(&mut self, format: ImageFormat, mut base64: ClippedText) -> CellPart {
        if !base64.is_whole() {
            return CellPart::Note(format!("[image not shown: larger than {} bytes]", base64.total), true);
        }
        base64.text.retain(|character| !character.is_ascii_whitespace());
        let prepared = if self.full { Ok(None) } else { self.prepare(format, &base64.text) };
        match prepared {
            Ok(Some(block)) => CellPart::Image(block),
            Ok(None) => {
                self.full = true;
                let note =
                    "[image not shown: too many images; ask for fewer cells with `offset` and `limit`]";
                CellPart::Note(note.to_owned(), true)
            }
            Err(error) => CellPart::Note(format!("[image not shown: {error}]"), false),
        }
    }

    /// `None` if there is no room for it.
    fn prepare(&mut self, format: ImageFormat, base64: &str) -> Result<Option<Block>, String> {
        let content = STANDARD.decode(base64).map_err(|error| error.to_string())?;
        let target = PictureOptions { format, edge_px_max: self.edge_px_max, cancel: self.cancel };
        let picture = Picture::prepare(&content, &target)?;
        self.used += picture.bytes.len() * 4 / 3;
        Ok((self.used <= IMAGES_BYTES_MAX).then(|| picture.block()))
    }
}

/// Reads what a visitor takes, whatever that is.
pub(super) struct Seed<V>(pub(super) V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Seed<V> {
    type Value = V::Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

/// Reads a text that is stored as one string or as a list of them. Returns whether there was one.
struct TextInto<'a> {
    clip: &'a mut ClippedText,
    separator: &'static str,
}

impl<'de> Visitor<'de> for TextInto<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, or a list of lines")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        self.clip.push(text);
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<bool, A::Error> {
        let separator = self.separator;
        while let Some(found) =
            lines.next_element_seed(Seed(TextInto { clip: &mut *self.clip, separator }))?
        {
            if found && !separator.is_empty() {
                self.clip.push(separator);
            }
        }
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }
}

/// The text that is the value of the key just read.
fn text<'de, A: MapAccess<'de>>(map: &mut A, bytes_max: usize) -> Result<Option<ClippedText>, A::Error> {
    joined(map, bytes_max, "")
}

fn joined<'de, A: MapAccess<'de>>(
    map: &mut A,
    bytes_max: usize,
    separator: &'static str,
) -> Result<Option<ClippedText>, A::Error> {
    let mut clip = ClippedText::new(bytes_max);
    let found = map.next_value_seed(Seed(TextInto { clip: &mut clip, separator }))?;
    Ok(found.then_some(clip))
}

pub(super) struct CellVisitor<'a, 'c>(pub(super) &'a mut ImageBudget<'c>);

impl<'de> Visitor<'de> for CellVisitor<'_, '_> {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        let (mut kind, mut source, mut id, mut execution_count) = (None, None, None, None);
        let mut outputs = CellOutputs::default();
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "cell_type" => kind = text(&mut map, NAME_BYTES_MAX)?,
                "source" => source = text(&mut map, STRUCTURED_BYTES_MAX)?,
                "id" => id = text(&mut map, NAME_BYTES_MAX)?,
                "execution_count" => execution_count = map.next_value()?,
                "outputs" => outputs = map.next_value_seed(Seed(OutputsVisitor(&mut *self.0)))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Cell {
            kind: kind.ok_or_else(|| Error::missing_field("cell_type"))?.text,
            source: source.ok_or_else(|| Error::missing_field("source"))?,
            id: id.map(|id| id.text),
            execution_count,
            outputs,
        })
    }
}

struct OutputsVisitor<'a, 'c>(&'a mut ImageBudget<'c>);

impl<'de> Visitor<'de> for OutputsVisitor<'_, '_> {
    type Value = CellOutputs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of outputs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CellOutputs, A::Error> {
        let mut outputs = CellOutputs::default();
        let mut room = OUTPUTS_BYTES_MAX;
        while outputs.left_out == 0 {
            let Some(parts) = list.next_element_seed(Seed(OutputVisitor(&mut *self.0)))? else {
                return Ok(outputs);
            };
            let size: usize = parts.iter().map(|part| part.shown().0.len()).sum();
            match room.checked_sub(size.max(OUTPUT_BYTES_MIN)) {
                Some(rest) => {
                    room = rest;
                    outputs.parts.extend(parts);
                }
                None => outputs.left_out = 1,
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            outputs.left_out += 1;
        }
        Ok(outputs)
    }
}

/// Reads one output: its image, the plainest of its texts, its error.
struct OutputVisitor<'a, 'c>(&'a mut ImageBudget<'c>);

impl<'de> Visitor<'de> for OutputVisitor<'_, '_> {
    type Value = Vec<CellPart>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an output")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<CellPart>, A::Error> {
        let mut parts = Vec::new();
        let (mut name, mut value, mut trace) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "text" => parts.extend(text(&mut map, RAW_OUTPUT_BYTES_MAX)?.map(plain)),
                "data" => parts.extend(map.next_value_seed(Seed(DataVisitor(&mut *self.0)))?),
                "ename" => name = text(&mut map, NAME_BYTES_MAX)?,
                "evalue" => value = text(&mut map, OUTPUT_BYTES_MAX)?,
                "traceback" => trace = joined(&mut map, RAW_OUTPUT_BYTES_MAX, "\n")?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(name) = name {
            let mut error = ClippedText::new(2 * RAW_OUTPUT_BYTES_MAX);
            let value = value.unwrap_or_default().text;
            error.push(&format!("{}: {value}\n", name.text));
            if let Some(trace) = trace {
                error.push(trace.text.trim_end_matches('\n'));
                error.total += trace.total - trace.text.len();
                error.more |= trace.more;
            }
            parts.push(plain(error));
        }
        Ok(parts)
    }
}

fn plain(clip: ClippedText) -> CellPart {
    CellPart::Text(clip.without_escapes())
}

/// Reads the forms in which one thing is stored and picks the best.
struct DataVisitor<'a, 'c>(&'a mut ImageBudget<'c>);

impl<'de> Visitor<'de> for DataVisitor<'_, '_> {
    type Value = Vec<CellPart>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of media types")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<CellPart>, A::Error> {
        const TEXTS: [&str; 4] = ["text/plain", "text/markdown", "text/latex", "text/html"];
        const IMAGES: [ImageFormat; 4] =
            [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
        let mut best_text: Option<(usize, ClippedText)> = None;
        let mut best_image: Option<(usize, ClippedText)> = None;
        let mut other = None;
        while let Some(key) = map.next_key::<String>()? {
            let better = |rank: &usize, best: &Option<(usize, ClippedText)>| {
                best.as_ref().is_none_or(|best| *rank < best.0)
            };
            let as_text = TEXTS.iter().position(|media_type| *media_type == key);
            let as_image = IMAGES.iter().position(|format| format.to_mime_type() == key);
            if let Some(rank) = as_text.filter(|rank| better(rank, &best_text)) {
                best_text = text(&mut map, RAW_OUTPUT_BYTES_MAX)?.map(|clip| (rank, clip)).or(best_text);
            } else if let Some(rank) = as_image.filter(|rank| better(rank, &best_image)) {
                best_image = text(&mut map, STRING_BYTES_MAX)?.map(|clip| (rank, clip)).or(best_image);
            } else {
                map.next_value::<IgnoredAny>()?;
                other = Some(key);
            }
        }
        let mut parts = Vec::new();
        parts.extend(best_text.map(|(_, clip)| plain(clip)));
        parts.extend(best_image.map(|(rank, clip)| self.0.part(IMAGES[rank], clip)));
        if let (true, Some(media_type)) = (parts.is_empty(), other) {
            let media_type = shortened(&media_type, NAME_BYTES_MAX);
            parts.push(CellPart::Note(format!("[output of type {media_type} not shown]"), false));
        }
        Ok(parts)
    }
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
