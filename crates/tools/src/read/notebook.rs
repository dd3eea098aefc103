//! Jupyter notebooks: cells and their outputs, one cell in memory at a time, and of that no more than is shown.

mod cell;
mod short_strings;

use std::fmt::{self, Write};
use std::io::{self, BufReader};

use serde::Serialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use windlass_protocol::{Block, FileSeen, ToolOutput};

use super::tokens::TokenEstimate;
use super::{FileSource, ReadJob, ReadLimits, ReadOutput, ReadRange, bytes, unchanged};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::fingerprint::SeenBuilder;
use crate::plurals::counted;
use cell::{Cell, CellPart, CellVisitor, ImageBudget, Seed};
use short_strings::ShortStrings;

const FILE_BYTES_MAX: u64 = 100_000_000;
const SOURCE_BYTES_MAX: usize = 20_000;
/// As long as the headings around a cell are.
const HEADING: &str = "--- cell 100 (markdown, id 01234567, run 100) ---\n--- output ---\n";

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

pub(super) fn read(job: ReadJob<'_>) -> Result<ToolOutput, String> {
    if job.source.size > FILE_BYTES_MAX {
        return Err(job.fail(format_args!(
            "is a notebook of {}; at most {} can be shown. Extract the cells you need through Bash, for \
             example `jq '.cells[0:10]'`.",
            bytes(job.source.size),
            bytes(FILE_BYTES_MAX)
        )));
    }
    let ReadJob { subject, source, wanted, limits, cx } = job;
    let mut rendering = Rendering { wanted, limits, ..Rendering::default() };
    let mut images = ImageBudget::new(limits.image_edge_px_max, &cx.cancel);
    let mut tap = Tap { source, seen: SeenBuilder::default() };
    let short = BufReader::with_capacity(16 * 1024, ShortStrings::new(&mut tap));
    let mut json = serde_json::Deserializer::from_reader(short);
    let parsed = json.deserialize_any(Notebook { rendering: &mut rendering, images: &mut images });
    drop(json);
    let fail = |what: &dyn fmt::Display| format!("{} {what}", subject.shown);
    parsed.map_err(|error| fail(&format_args!("is not a valid notebook: {error}.")))?;
    tap.drain().map_err(|error| fail(&format_args!("cannot be read: {error}.")))?;
    if rendering.overflow && wanted.explicit {
        return Err(fail(&format_args!(
            "has more than {} tokens in these cells, the most shown at once. From cell {}, ask for at most \
             {} (`limit`).",
            limits.tokens_max,
            wanted.start,
            counted(rendering.shown, "cell")
        )));
    }
    let stamp = Some(tap.source.stamp);
    let seen = FileSeen { stamp, ..tap.seen.finish(subject.resolved.clone(), false) };
    if let Some(outcome) = unchanged(&subject, &wanted, &seen, cx) {
        return Ok(outcome);
    }
    let whole = rendering.is_whole();
    // A first page that nobody chose does not count as read.
    let partial = rendering.overflow;
    let cells = if rendering.cells_bytes <= STRUCTURED_BYTES_MAX {
        std::mem::take(&mut rendering.cells)
    } else {
        Vec::new()
    };
    let file = NotebookFile { file_path: subject.file_path(), cells };
    let outcome = ToolOutput::blocks(rendering.finish(&subject.shown));
    let outcome = outcome.with_structured(&ReadOutput { kind: "notebook", file });
    Ok(if partial {
        outcome
    } else {
        outcome.with_seen(FileSeen { whole, shown: vec![wanted.part()], ..seen })
    })
}

/// Reads the file and computes what is known of it on the way.
struct Tap {
    source: FileSource,
    seen: SeenBuilder,
}

impl Tap {
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let piece = self.source.next()?;
        if let Some(piece) = piece {
            self.seen.update(piece);
        }
        Ok(piece)
    }

    fn drain(&mut self) -> io::Result<()> {
        while self.next()?.is_some() {}
        Ok(())
    }
}

/// Walks through the notebook's object and hands its cells to the rendering.
struct Notebook<'a, 'c> {
    rendering: &'a mut Rendering,
    images: &'a mut ImageBudget<'c>,
}

impl<'de> Visitor<'de> for Notebook<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `cells`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "cells" {
                found = true;
                map.next_value_seed(Seed(Cells {
                    rendering: &mut *self.rendering,
                    images: &mut *self.images,
                }))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(Error::missing_field("cells")) }
    }
}

struct Cells<'a, 'c> {
    rendering: &'a mut Rendering,
    images: &'a mut ImageBudget<'c>,
}

impl<'de> Visitor<'de> for Cells<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        loop {
            let more = if self.rendering.wants_next() {
                let cell = cells.next_element_seed(Seed(CellVisitor(&mut *self.images)))?;
                cell.map(|cell| self.rendering.push(cell)).is_some()
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
#[derive(Default)]
struct Rendering {
    wanted: ReadRange,
    limits: ReadLimits,
    total: usize,
    shown: usize,
    cost: TokenEstimate,
    overflow: bool,
    cut: bool,
    blocks: Vec<Block>,
    text: String,
    cells: Vec<CellOutput>,
    cells_bytes: usize,
}

impl Rendering {
    fn wants_next(&self) -> bool {
        let number = self.total + 1;
        let enough = self.wanted.count.is_some_and(|count| self.shown >= count);
        number >= self.wanted.start && !enough && !self.overflow
    }

    fn is_whole(&self) -> bool {
        self.shown == self.total && !self.cut
    }

    fn push(&mut self, cell: Cell) {
        let Cell { kind, source, id, execution_count, outputs } = cell;
        let cost = self
            .cost
            .plus(TokenEstimate::of(HEADING))
            .plus(TokenEstimate::of(source.shown(SOURCE_BYTES_MAX).0));
        let cost = outputs.parts.iter().fold(cost, |cost, part| cost.plus(TokenEstimate::of(part.shown().0)));
        // A single cell is always shown, so that there is a way to go on.
        if self.shown > 0 && cost.exceed(self.limits.tokens_max) {
            self.overflow = true;
            return;
        }
        self.cost = cost;
        self.shown += 1;
        self.push_heading(&kind, id.as_deref(), execution_count);
        self.push_text(source.shown(SOURCE_BYTES_MAX));
        if !outputs.parts.is_empty() || outputs.left_out > 0 {
            self.text.push_str("--- output ---\n");
        }
        for part in outputs.parts {
            self.push_part(part);
        }
        if outputs.left_out > 0 {
            self.cut = true;
            let more = counted(outputs.left_out, "more output");
            let _ = writeln!(self.text, "[{more} of this cell omitted]");
        }
        self.cells_bytes += source.total();
        if self.cells_bytes <= STRUCTURED_BYTES_MAX {
            let source = source.text;
            self.cells.push(CellOutput { cell_type: kind, source, cell_id: id, execution_count });
        }
    }

    fn push_heading(&mut self, kind: &str, id: Option<&str>, execution_count: Option<u64>) {
        let _ = write!(self.text, "--- cell {} ({kind}", self.total + 1);
        if let Some(id) = id {
            let _ = write!(self.text, ", id {id}");
        }
        if let Some(count) = execution_count {
            let _ = write!(self.text, ", run {count}");
        }
        self.text.push_str(") ---\n");
    }

    fn push_text(&mut self, (text, notice): (&str, Option<String>)) {
        self.text.push_str(text);
        if let Some(notice) = notice {
            self.cut = true;
            self.text.push('\n');
            self.text.push_str(&notice);
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn push_part(&mut self, part: CellPart) {
        self.push_text(part.shown());
        match part {
            CellPart::Text(_) => {}
            CellPart::Note(_, lost) => self.cut |= lost,
            CellPart::Image(block) => {
                self.end_text();
                self.blocks.push(block);
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
            let _ = writeln!(
                self.text,
                "[{name} has only {}; cell {start} is past its end.]",
                counted(total, "cell")
            );
        } else if self.overflow {
            let last = start + self.shown - 1;
            let _ = writeln!(
                self.text,
                "\n[PARTIAL view: cells {start}-{last} of {total} of {name}; at most {} tokens are shown at \
                 once. To continue, call Read with offset {} and limit {}.]",
                self.limits.tokens_max,
                last + 1,
                self.shown
            );
        }
        self.end_text();
        self.blocks
    }
}
