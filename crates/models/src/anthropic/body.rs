//! The body of a request, the same bytes for the same request. What is large is not copied: the transcript's segments
//! are sent as they are, with cache markers between their slices.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use windlass_protocol::{Delivery, ModelRequest, ToolSpec, Transcript};

use super::optional_fields::OptionalFields;
use crate::block::string_json;

/// The API takes no more than this many markers in a request.
const MARKERS_MAX: usize = 4;

/// A body of less than this is one buffer: it fits in one write.
const CONTIGUOUS_BYTES_MAX: usize = 64 * 1024;

/// Pieces of less than this are copied together, since each piece costs a round through the HTTP stack.
const PIECE_BYTES_MIN: usize = 16 * 1024;

/// Goes in front of the brace that closes a block.
const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Builds bodies, and keeps the part that is the same for all requests of a session.
#[derive(Debug)]
pub(super) struct BodyBuilder {
    has_prompt_caching: bool,
    frame: Mutex<Option<Frozen>>,
}

/// System prompt and tools, serialised.
#[derive(Debug)]
struct Frozen {
    system: Arc<str>,
    tools: Arc<[ToolSpec]>,
    json: Bytes,
}

/// The body of one request, of known length.
#[derive(Debug)]
pub(super) struct RequestBody {
    pieces: VecDeque<Bytes>,
    /// How many bytes are left to send.
    pub(super) left: u64,
}

impl BodyBuilder {
    pub(super) fn new(has_prompt_caching: bool) -> Self {
        Self { has_prompt_caching, frame: Mutex::new(None) }
    }

    pub(super) fn build(&self, request: &ModelRequest, fields: &OptionalFields) -> RequestBody {
        let frozen = self.frozen(request);
        let messages: usize = request.transcript.segments().iter().map(|s| s.json().len()).sum();
        let total = frozen.len() + messages + MARKERS_MAX * MARKER.len() + fields.json.len() + 256;
        let mut pieces = BodyPieces::new(total);
        pieces.copy(b"{\"model\":");
        pieces.copy(string_json(&request.model).as_bytes());
        let streamed = request.delivery == Delivery::Streamed;
        let cap = fields.output_tokens_max;
        pieces.copy(format!(r#","max_tokens":{cap},"stream":{streamed}"#).as_bytes());
        pieces.copy(fields.json.as_bytes());
        pieces.push(&frozen);
        pieces.copy(br#","messages":["#);
        let markers_left =
            if self.has_prompt_caching { MARKERS_MAX - usize::from(!frozen.is_empty()) } else { 0 };
        push_messages(&mut pieces, &request.transcript, &marks(request, markers_left));
        pieces.copy(b"]}");
        pieces.finish()
    }

    /// The fields for system prompt and tools, each with a comma in front; made anew only if one of them changed.
    fn frozen(&self, request: &ModelRequest) -> Bytes {
        let mut slot = self.frame.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*slot
            && Arc::ptr_eq(&known.system, &request.system)
            && Arc::ptr_eq(&known.tools, &request.tools)
        {
            return known.json.clone();
        }
        let json = Bytes::from(frozen_json(request, self.has_prompt_caching));
        *slot = Some(Frozen {
            system: Arc::clone(&request.system),
            tools: Arc::clone(&request.tools),
            json: json.clone(),
        });
        json
    }
}

fn frozen_json(request: &ModelRequest, has_prompt_caching: bool) -> String {
    let marker = if has_prompt_caching { MARKER } else { "" };
    let mut json = String::new();
    // The API refuses text without a visible character.
    let has_system = !request.system.trim().is_empty();
    if has_system {
        let text = string_json(&request.system);
        let _ = write!(json, r#","system":[{{"type":"text","text":{text}{marker}}}]"#);
    }
    let tool_json = |(index, tool): (usize, &ToolSpec)| {
        let marker = if index + 1 == request.tools.len() && !has_system { marker } else { "" };
        let (name, description) = (string_json(&tool.name), string_json(&tool.description));
        let schema = &tool.input_schema;
        format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}{marker}}}"#)
    };
    if !request.tools.is_empty() {
        let tools: Vec<_> = request.tools.iter().enumerate().map(tool_json).collect();
        let _ = write!(json, r#","tools":[{}]"#, tools.join(","));
    }
    json
}

/// A place for a marker: segment and offset in its JSON.
type CacheMarker = (usize, usize);

/// Where the newest markers go, in order; one whose message takes none moves to the nearest before it.
fn marks(request: &ModelRequest, markers_left: usize) -> Vec<CacheMarker> {
    let surplus = request.breakpoints.len().saturating_sub(markers_left);
    let mut marks: Vec<CacheMarker> = request.breakpoints[surplus..]
        .iter()
        .filter_map(|message| place_at_or_before(&request.transcript, *message))
        .collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

fn place_at_or_before(transcript: &Transcript, message: usize) -> Option<CacheMarker> {
    let segments = transcript.segments();
    let places = segments.iter().enumerate().flat_map(|(number, segment)| {
        let messages = 0..segment.messages().len();
        messages.map(move |index| (number, index))
    });
    let places: Vec<_> = places.take(message.saturating_add(1)).collect();
    // A breakpoint behind the last message is none.
    let newest_first = places.iter().rev().filter(|_| places.len() > message);
    newest_first
        .map(|(number, index)| (*number, segments[*number].last_block_end(*index)))
        .find_map(|(number, end)| Some((number, end?)))
}

fn push_messages(pieces: &mut BodyPieces, transcript: &Transcript, marks: &[CacheMarker]) {
    for (number, segment) in transcript.segments().iter().enumerate() {
        let json = segment.json();
        // The array's first message has no comma in front.
        let mut sent = usize::from(number == 0);
        for (_, offset) in marks.iter().filter(|(segment, _)| *segment == number) {
            pieces.push(&json.slice(sent..*offset));
            pieces.copy(MARKER.as_bytes());
            sent = *offset;
        }
        pieces.push(&json.slice(sent.min(json.len())..));
    }
}

/// Collects a body: large pieces by reference, small ones copied together.
struct BodyPieces {
    done: VecDeque<Bytes>,
    open: BytesMut,
    piece_bytes_min: usize,
}

impl BodyPieces {
    fn new(total: usize) -> Self {
        let (capacity, piece_bytes_min) =
            if total < CONTIGUOUS_BYTES_MAX { (total, usize::MAX) } else { (0, PIECE_BYTES_MIN) };
        Self { done: VecDeque::new(), open: BytesMut::with_capacity(capacity), piece_bytes_min }
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    fn push(&mut self, bytes: &Bytes) {
        if bytes.len() < self.piece_bytes_min {
            self.copy(bytes);
            return;
        }
        self.close();
        self.done.push_back(bytes.clone());
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push_back(self.open.split().freeze());
        }
    }

    fn finish(mut self) -> RequestBody {
        self.close();
        let left = self.done.iter().map(|piece| piece.len() as u64).sum();
        RequestBody { pieces: self.done, left }
    }
}

impl RequestBody {
    /// As the HTTP client takes it: whole if it is one piece.
    pub(super) fn into_reqwest(mut self) -> reqwest::Body {
        match self.pieces.len() {
            0 | 1 => reqwest::Body::from(self.pieces.pop_front().unwrap_or_default()),
            _ => reqwest::Body::wrap(self),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests;
