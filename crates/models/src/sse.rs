//! Server-sent events from bytes. Sans-IO and linear: a byte is searched once and moved at most once. Events borrow
//! from the buffer; only an event of several data lines is copied together.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use thiserror::Error;

/// The largest event: far above what a model sends, far below what hurts.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Decodes a stream of server-sent events.
///
/// Push bytes as they come, then take events until there is none. What is left when the input ends is an event
/// without its blank line, which does not count.
///
/// ```
/// use windlass_models::SseDecoder;
/// let mut decoder = SseDecoder::default();
/// decoder.push(b"event: greet\ndata: hel");
/// assert!(decoder.next_event()?.is_none());
/// decoder.push(b"lo\n\n");
/// let event = decoder.next_event()?.unwrap();
/// assert_eq!((&*event.name, &*event.data), ("greet", "hello"));
/// # Ok::<(), windlass_models::EventTooLarge>(())
/// ```
#[derive(Debug, Default)]
pub struct SseDecoder {
    buffer: Vec<u8>,
    /// Everything before this belongs to events already given.
    event_start: usize,
    /// Where the line begins that is not complete yet.
    line_start: usize,
    /// Where to go on looking for its end.
    scan_from: usize,
    /// The last line ended with a CR, so that an LF right after it is part of the same line end.
    is_after_cr: bool,
    is_past_bom: bool,
    pending: PendingEvent,
    /// The data lines of an event that has several, joined by LF.
    joined: Vec<u8>,
}

/// What is known of the event that is not complete yet; ranges are places in the buffer.
#[derive(Debug, Default)]
struct PendingEvent {
    name: Range<usize>,
    data: Data,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Range<usize>),
    Joined,
}

/// One event. Bytes that are not UTF-8 are replaced.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's name, empty if it has none.
    pub name: Cow<'a, str>,
    /// The data lines, joined by LF.
    pub data: Cow<'a, str>,
}

/// An event without end: the stream cannot be decoded any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an event is larger than {EVENT_BYTES_MAX} bytes")]
pub struct EventTooLarge;

impl SseDecoder {
    /// Takes the next bytes of the input. Take all events before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        self.forget_given();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event, or `None` until more bytes are pushed.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLarge> {
        if !self.skip_bom() {
            return Ok(None);
        }
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.take_field(line);
                continue;
            }
            let event = std::mem::take(&mut self.pending);
            self.event_start = self.line_start;
            if !matches!(event.data, Data::None) {
                return Ok(Some(self.view(&event)));
            }
        }
        if self.buffer.len() - self.event_start > EVENT_BYTES_MAX {
            return Err(EventTooLarge);
        }
        Ok(None)
    }

    /// Drops the bytes of events already given. What is left is part of one event, so that no byte moves twice.
    fn forget_given(&mut self) {
        let given = self.event_start;
        if given == 0 {
            return;
        }
        self.buffer.drain(..given);
        self.event_start = 0;
        self.line_start -= given;
        self.scan_from -= given;
        self.pending.shift_down(given);
    }

    /// Whether decoding can begin: with fewer than three bytes a byte order mark may still be on its way.
    fn skip_bom(&mut self) -> bool {
        if self.is_past_bom {
            return true;
        }
        let mark = &BOM[..BOM.len().min(self.buffer.len())];
        if self.buffer.starts_with(BOM) {
            self.event_start = BOM.len();
            self.line_start = BOM.len();
            self.scan_from = BOM.len();
        } else if self.buffer.starts_with(mark) {
            return false;
        }
        self.is_past_bom = true;
        true
    }

    /// The next complete line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.is_after_cr && self.line_start < self.buffer.len() {
            self.is_after_cr = false;
            if self.buffer[self.line_start] == b'\n' {
                self.line_start += 1;
                self.scan_from = self.line_start;
                self.forget_between_events();
            }
        }
        let Some(length) = memchr2(b'\n', b'\r', &self.buffer[self.scan_from..]) else {
            self.scan_from = self.buffer.len();
            return None;
        };
        let end = self.scan_from + length;
        let line = self.line_start..end;
        self.is_after_cr = self.buffer[end] == b'\r';
        self.line_start = end + 1;
        self.scan_from = self.line_start;
        Some(line)
    }

    fn take_field(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        let (name_len, value_at) = match memchr::memchr(b':', text) {
            None => (text.len(), text.len()),
            Some(colon) if text.get(colon + 1) == Some(&b' ') => (colon, colon + 2),
            Some(colon) => (colon, colon + 1),
        };
        let value = line.start + value_at..line.end;
        match &text[..name_len] {
            b"data" => self.add_data(value),
            b"event" => self.pending.name = value,
            _ => self.forget_between_events(),
        }
    }

    /// Comments between events are forgotten at once: a server may send them for ever.
    fn forget_between_events(&mut self) {
        if self.pending.is_empty() {
            self.event_start = self.line_start;
        }
    }

    fn add_data(&mut self, value: Range<usize>) {
        match &self.pending.data {
            Data::None => {
                self.pending.data = Data::Line(value);
                return;
            }
            Data::Line(first) => {
                self.joined.clear();
                self.joined.extend_from_slice(&self.buffer[first.clone()]);
            }
            Data::Joined => {}
        }
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buffer[value]);
        self.pending.data = Data::Joined;
    }

    fn view(&self, event: &PendingEvent) -> SseEvent<'_> {
        let data = match &event.data {
            Data::None => &[][..],
            Data::Line(range) => &self.buffer[range.clone()],
            Data::Joined => &self.joined,
        };
        SseEvent {
            name: String::from_utf8_lossy(&self.buffer[event.name.clone()]),
            data: String::from_utf8_lossy(data),
        }
    }
}

impl PendingEvent {
    fn is_empty(&self) -> bool {
        self.name.is_empty() && matches!(self.data, Data::None)
    }

    fn shift_down(&mut self, by: usize) {
        let shift = |range: &mut Range<usize>| {
            // An empty range may stand at 0, before everything.
            range.start = range.start.saturating_sub(by);
            range.end = range.end.saturating_sub(by);
        };
        shift(&mut self.name);
        if let Data::Line(range) = &mut self.data {
            shift(range);
        }
    }
}

#[cfg(test)]
mod tests;
