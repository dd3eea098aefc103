//! Jupyter notebooks: cells and their outputs, one cell in memory at a time, and of that no more than is shown.

mod cell;

use std::fmt::Write;
use std::io::{self, BufReader};

use serde_json::{Value, json};
use struson::reader::{JsonReader, JsonStreamReader, ReaderError};
use windlass_protocol::{Block, FileSeen, ToolOutput};
use windlass_text::plurals::quantity;

use super::tokens::TokenEstimate;
use super::{ReadJob, ReadLimits, ReadRange, bytes};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::file::without_nulls;
use cell::{Cell, CellPart, ImageBudget, NotebookResult, each_field};

const FILE_BYTES_MAX: u64 = 100_000_000;
const SOURCE_BYTES_MAX: usize = 20_000;
/// As long as the headings around a cell are.
const HEADING: &str = "--- cell 100 (markdown, id 01234567, run 100) ---\n--- output ---\n";

pub(super) fn read(job: &ReadJob<'_>) -> Result<ToolOutput, String> {
    if job.source.stamp.size > FILE_BYTES_MAX {
        return Err(job.fail(format_args!(
            "is a notebook of {}; at most {} can be shown. Extract the cells you need through Bash, for \
             example `jq '.cells[0:10]'`.",
            bytes(job.source.stamp.size),
            bytes(FILE_BYTES_MAX)
        )));
    }
    let ReadJob { subject, source, wanted, limits, cx } = job;
    let mut rendering = Rendering { wanted: *wanted, limits: *limits, ..Rendering::default() };
    let mut images = ImageBudget::new(limits.image_edge_px_max, &cx.cancel);
    let mut reader = source.reader(&cx.cancel);
    let mut json = JsonStreamReader::new(BufReader::with_capacity(16 * 1024, &mut reader));
    let parsed = rendering.read(&mut json, &mut images);
    drop(json);
    parsed.map_err(|error| match error.downcast_ref() {
        Some(ReaderError::MaxNestingDepthExceeded { .. }) => {
            job.fail("is not a valid notebook: it is nested too deeply.")
        }
        _ => job.fail(format_args!("is not a valid notebook: {error}.")),
    })?;
    io::copy(&mut reader, &mut io::sink())
        .map_err(|error| job.fail(format_args!("cannot be read: {error}.")))?;
    if rendering.has_overflown && wanted.is_explicit {
        return Err(job.fail(format_args!(
            "has more than {} tokens in these cells, the most shown at once. From cell {}, ask for at most \
             {} (`limit`).",
            limits.tokens_max,
            wanted.start,
            quantity(rendering.shown, "cell")
        )));
    }
    let stamp = Some(source.stamp);
    let seen = FileSeen { stamp, ..reader.seen.finish(subject.resolved.clone(), false) };
    if let Some(outcome) = job.unchanged_notice(&seen) {
        return Ok(outcome);
    }
    let is_whole = rendering.shown == rendering.total && !rendering.is_cut;
    // A first page that nobody chose does not count as read.
    let partial = rendering.has_overflown;
    let mut cells = std::mem::take(&mut rendering.cells);
    if rendering.cells_bytes > STRUCTURED_BYTES_MAX as u64 {
        cells.clear();
    }
    let output = json!({ "type": "notebook", "file": { "filePath": subject.file_path(), "cells": cells } });
    let outcome = ToolOutput::blocks(rendering.finish(&subject.shown)).with_structured(&output);
    Ok(if partial {
        outcome
    } else {
        outcome.with_seen(FileSeen { is_whole, shown: vec![wanted.part()], ..seen })
    })
}

/// The cells as blocks: text, with images in between.
#[derive(Default)]
struct Rendering {
    wanted: ReadRange,
    limits: ReadLimits,
    total: usize,
    shown: usize,
    cost: TokenEstimate,
    has_overflown: bool,
    is_cut: bool,
    blocks: Vec<Block>,
    text: String,
    cells: Vec<Value>,
    cells_bytes: u64,
}

impl Rendering {
    fn read(&mut self, json: &mut impl JsonReader, images: &mut ImageBudget<'_>) -> NotebookResult<()> {
        let mut found = false;
        each_field(json, |json, name| {
            if name != "cells" {
                return Ok(json.skip_value()?);
            }
            found = true;
            json.begin_array()?;
            while json.has_next()? {
                if self.wants_next() {
                    self.push(Cell::read(json, images)?);
                } else {
                    json.skip_value()?;
                }
                self.total += 1;
            }
            Ok(json.end_array()?)
        })?;
        if found { Ok(()) } else { Err("missing field `cells`".into()) }
    }

    fn wants_next(&self) -> bool {
        let number = self.total + 1;
        let enough = self.wanted.count.is_some_and(|count| self.shown >= count);
        number >= self.wanted.start && !enough && !self.has_overflown
    }

    fn push(&mut self, cell: Cell) {
        let Cell { kind, source, id, execution_count, outputs, left_out } = cell;
        let mut cost = self.cost;
        let texts = [HEADING, source.visible_text(SOURCE_BYTES_MAX).0].into_iter();
        texts.chain(outputs.iter().map(|part| part.visible_text().0)).for_each(|text| cost.add(text));
        // A single cell is always shown, so that there is a way to go on.
        if self.shown > 0 && cost.exceed(self.limits.tokens_max) {
            self.has_overflown = true;
            return;
        }
        self.cost = cost;
        self.shown += 1;
        let shown_id = id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
        let shown_run = execution_count.map(|count| format!(", run {count}")).unwrap_or_default();
        let _ = writeln!(self.text, "--- cell {} ({kind}{shown_id}{shown_run}) ---", self.total + 1);
        self.push_text(source.visible_text(SOURCE_BYTES_MAX));
        if !outputs.is_empty() || left_out > 0 {
            self.text.push_str("--- output ---\n");
        }
        for part in outputs {
            self.push_part(part);
        }
        if left_out > 0 {
            self.is_cut = true;
            let more = quantity(left_out, "more output");
            let _ = writeln!(self.text, "[{more} of this cell omitted]");
        }
        self.cells_bytes += source.total;
        if self.cells_bytes <= STRUCTURED_BYTES_MAX as u64 {
            self.cells.push(without_nulls(json!({
                "cellType": kind,
                "source": source.text,
                "cellId": id,
                "executionCount": execution_count,
            })));
        }
    }

    fn push_text(&mut self, (text, notice): (&str, Option<String>)) {
        self.text.push_str(text);
        if let Some(notice) = notice {
            self.is_cut = true;
            self.text.push('\n');
            self.text.push_str(&notice);
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn push_part(&mut self, part: CellPart) {
        self.push_text(part.visible_text());
        match part {
            CellPart::Text(_) => {}
            CellPart::Note(_, lost) => self.is_cut |= lost,
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
                quantity(total, "cell")
            );
        } else if self.has_overflown {
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
