//! One cell of a notebook, of which no more is kept than can be shown.

use std::error::Error;
use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use struson::reader::{JsonReader, ValueType};
use windlass_ports::CancellationToken;
use windlass_protocol::Block;
use windlass_text::escapes::without_sequences;

use crate::content::STRUCTURED_BYTES_MAX;
use crate::read::picture::{Picture, PictureOptions};

/// Read of one string: an image of 4 MB as base64. What comes behind that is not even counted.
const STRING_BYTES_MAX: usize = 5_600_000;
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

/// An error says in which way a file is no notebook.
pub(super) type NotebookResult<T> = Result<T, Box<dyn Error>>;

/// The start of a text, and how long all of it is.
#[derive(Default)]
pub(super) struct ClippedText {
    pub(super) text: String,
    bytes_max: usize,
    pub(super) total: u64,
    /// There is more than `total`.
    has_more: bool,
}

impl ClippedText {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    fn push(&mut self, part: impl Read) -> io::Result<()> {
        let room = if self.is_whole() { self.bytes_max - self.text.len() } else { 0 };
        let mut part = part.take(STRING_BYTES_MAX as u64);
        let mut start = Vec::new();
        part.by_ref().take(room as u64).read_to_end(&mut start)?;
        // A character that is cut does not belong to it.
        self.text.push_str(start.utf8_chunks().next().map_or("", |chunk| chunk.valid()));
        self.total += start.len() as u64 + io::copy(&mut part, &mut io::sink())?;
        self.has_more |= io::copy(&mut part.into_inner(), &mut io::sink())? > 0;
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.text.len() as u64 == self.total && !self.has_more
    }

    /// The text within the limit, and what to say if that is not all.
    pub(super) fn visible_text(&self, bytes_max: usize) -> (&str, Option<String>) {
        let short = shorten(&self.text, bytes_max);
        let cut = (short.len() as u64) < self.total || self.has_more;
        let more = if self.has_more { "more than " } else { "" };
        let notice = format!("[cut: showing {} of {more}{} bytes]", short.len(), self.total);
        (short, cut.then_some(notice))
    }

    fn without_sequences(self) -> Self {
        let text = without_sequences(&self.text);
        let total = self.total - self.text.len() as u64 + text.len() as u64;
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
    pub(super) fn visible_text(&self) -> (&str, Option<String>) {
        match self {
            Self::Text(clip) => clip.visible_text(OUTPUT_BYTES_MAX),
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
    pub(super) outputs: Vec<CellPart>,
    /// Outputs for which there was no room.
    pub(super) left_out: usize,
}

pub(super) struct ImageBudget<'a> {
    pub(super) edge_px_max: u32,
    pub(super) cancel: &'a CancellationToken,
    used: usize,
    /// One did not fit, so no further one is even looked at.
    is_full: bool,
}

impl<'a> ImageBudget<'a> {
    pub(super) fn new(edge_px_max: u32, cancel: &'a CancellationToken) -> Self {
        Self { edge_px_max, cancel, used: 0, is_full: false }
    }

    fn part(&mut self, format: ImageFormat, mut base64: ClippedText) -> CellPart {
        if !base64.is_whole() {
            return CellPart::Note(format!("[image not shown: larger than {} bytes]", base64.total), true);
        }
        base64.text.retain(|character| !character.is_ascii_whitespace());
        let prepared = if self.is_full { Ok(None) } else { self.prepare(format, &base64.text) };
        match prepared {
            Ok(Some(block)) => CellPart::Image(block),
            Ok(None) => {
                self.is_full = true;
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

/// Goes through an object: `read` reads or skips the value of each name.
pub(super) fn each_field<J: JsonReader>(
    json: &mut J,
    mut read: impl FnMut(&mut J, &str) -> NotebookResult<()>,
) -> NotebookResult<()> {
    json.begin_object()?;
    while json.has_next()? {
        let name = json.next_name_owned()?;
        read(json, &name)?;
    }
    Ok(json.end_object()?)
}

/// A text that is stored as one string or as a list of them, each with `end` behind it; nothing if something else is there.
fn text(json: &mut impl JsonReader, bytes_max: usize, end: &str) -> NotebookResult<Option<ClippedText>> {
    let mut clip = ClippedText::new(bytes_max);
    match json.peek()? {
        ValueType::String => clip.push(json.next_string_reader()?)?,
        ValueType::Array => {
            json.begin_array()?;
            while json.has_next()? {
                if json.peek()? == ValueType::String {
                    clip.push(json.next_string_reader()?)?;
                    clip.push(end.as_bytes())?;
                } else {
                    json.skip_value()?;
                }
            }
            json.end_array()?;
        }
        _ => {
            json.skip_value()?;
            return Ok(None);
        }
    }
    Ok(Some(clip))
}

impl Cell {
    pub(super) fn read(json: &mut impl JsonReader, images: &mut ImageBudget<'_>) -> NotebookResult<Self> {
        let (mut kind, mut source, mut id, mut execution_count) = (None, None, None, None);
        let (mut outputs, mut left_out) = (Vec::new(), 0);
        each_field(json, |json, name| {
            match name {
                "cell_type" => kind = text(json, NAME_BYTES_MAX, "")?,
                "source" => source = text(json, STRUCTURED_BYTES_MAX, "")?,
                "id" => id = text(json, NAME_BYTES_MAX, "")?,
                "execution_count" if json.peek()? == ValueType::Number => {
                    execution_count = Some(json.next_number()??);
                }
                "outputs" => (outputs, left_out) = all_outputs(json, images)?,
                _ => json.skip_value()?,
            }
            Ok(())
        })?;
        Ok(Self {
            kind: kind.ok_or("missing field `cell_type`")?.text,
            source: source.ok_or("missing field `source`")?,
            id: id.map(|id| id.text),
            execution_count,
            outputs,
            left_out,
        })
    }
}

/// The outputs of a cell for which there is room, and how many others there are.
fn all_outputs(
    json: &mut impl JsonReader,
    images: &mut ImageBudget<'_>,
) -> NotebookResult<(Vec<CellPart>, usize)> {
    let (mut outputs, mut left_out) = (Vec::new(), 0);
    let mut room = OUTPUTS_BYTES_MAX;
    json.begin_array()?;
    while json.has_next()? {
        if left_out > 0 {
            json.skip_value()?;
            left_out += 1;
            continue;
        }
        let parts = output(json, images)?;
        let size: usize = parts.iter().map(|part| part.visible_text().0.len()).sum();
        match room.checked_sub(size.max(OUTPUT_BYTES_MIN)) {
            Some(rest) => {
                room = rest;
                outputs.extend(parts);
            }
            None => left_out = 1,
        }
    }
    json.end_array()?;
    Ok((outputs, left_out))
}

/// Reads one output: its image, the plainest of its texts, its error.
fn output(json: &mut impl JsonReader, images: &mut ImageBudget<'_>) -> NotebookResult<Vec<CellPart>> {
    let mut parts = Vec::new();
    let (mut name, mut value, mut trace) = (None, None, None);
    each_field(json, |json, field| {
        match field {
            "text" => parts.extend(text(json, RAW_OUTPUT_BYTES_MAX, "")?.map(plain)),
            "data" => parts.extend(data(json, images)?),
            "ename" => name = text(json, NAME_BYTES_MAX, "")?,
            "evalue" => value = text(json, OUTPUT_BYTES_MAX, "")?,
            "traceback" => trace = text(json, RAW_OUTPUT_BYTES_MAX, "\n")?,
            _ => json.skip_value()?,
        }
        Ok(())
    })?;
    if let Some(name) = name {
        let mut error = ClippedText::new(2 * RAW_OUTPUT_BYTES_MAX);
        let value = value.unwrap_or_default().text;
        error.push(format!("{}: {value}\n", name.text).as_bytes())?;
        if let Some(trace) = trace {
            error.push(trace.text.trim_end_matches('\n').as_bytes())?;
            error.total += trace.total - trace.text.len() as u64;
            error.has_more |= trace.has_more;
        }
        parts.push(plain(error));
    }
    Ok(parts)
}

fn plain(clip: ClippedText) -> CellPart {
    CellPart::Text(clip.without_sequences())
}

/// Reads the forms in which one thing is stored and picks the best.
fn data(json: &mut impl JsonReader, images: &mut ImageBudget<'_>) -> NotebookResult<Vec<CellPart>> {
    const TEXTS: [&str; 4] = ["text/plain", "text/markdown", "text/latex", "text/html"];
    const IMAGES: [ImageFormat; 4] =
        [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
    let mut best_text: Option<(usize, ClippedText)> = None;
    let mut best_image: Option<(usize, ClippedText)> = None;
    let mut other = None;
    each_field(json, |json, media_type| {
        let better = |rank: &usize, best: &Option<(usize, ClippedText)>| {
            best.as_ref().is_none_or(|best| *rank < best.0)
        };
        let as_text = TEXTS.iter().position(|known| *known == media_type);
        let as_image = IMAGES.iter().position(|format| format.to_mime_type() == media_type);
        if let Some(rank) = as_text.filter(|rank| better(rank, &best_text)) {
            best_text = text(json, RAW_OUTPUT_BYTES_MAX, "")?.map(|clip| (rank, clip)).or(best_text.take());
        } else if let Some(rank) = as_image.filter(|rank| better(rank, &best_image)) {
            best_image = text(json, STRING_BYTES_MAX, "")?.map(|clip| (rank, clip)).or(best_image.take());
        } else {
            json.skip_value()?;
            other = Some(media_type.to_owned());
        }
        Ok(())
    })?;
    let mut parts = Vec::new();
    parts.extend(best_text.map(|(_, clip)| plain(clip)));
    parts.extend(best_image.map(|(rank, clip)| images.part(IMAGES[rank], clip)));
    if let (true, Some(media_type)) = (parts.is_empty(), other) {
        let media_type = shorten(&media_type, NAME_BYTES_MAX);
        parts.push(CellPart::Note(format!("[output of type {media_type} not shown]"), false));
    }
    Ok(parts)
}

fn shorten(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use struson::reader::JsonStreamReader;

    use super::*;

    proptest! {
        #[test]
        fn what_is_cut_is_the_start_of_what_was_there(
            texts in prop::collection::vec("[a-cé😀\"\\\\\n\u{1}]{0,12}", 0..5),
            bytes_max in 1_usize..40,
            ascii in any::<bool>(),
        ) {
            let mut json = serde_json::json!(texts).to_string();
            if ascii {
                json = json.replace('é', "\\u00e9").replace('😀', "\\uD83D\\uDE00");
            }
            let clip = text(&mut JsonStreamReader::new(json.as_bytes()), bytes_max, "").unwrap().unwrap();
            let all = texts.concat();
            prop_assert_eq!((&*clip.text, clip.total), (shorten(&all, bytes_max), all.len() as u64));
            prop_assert_eq!(clip.is_whole(), all.len() <= bytes_max);
        }
    }
}
