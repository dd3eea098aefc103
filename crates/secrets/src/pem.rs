//! Private keys between `-----BEGIN … PRIVATE KEY-----` and `-----END …`, in lines, escaped, or cut.

use memchr::memmem;

use crate::span::{SecretKind, Span};
use crate::words::{BASE64, count, count_back, is};

/// A key has at least one piece of base64 that long. Without it somebody only speaks of keys.
const BODY_BYTES_MIN: usize = 40;
/// A line of a key that was cut, except the last, has so much.
const LINE_BYTES_MIN: usize = 32;
const LABEL_BYTES_MAX: usize = 48;
const DASHES: &[u8] = b"-----";

pub(crate) fn find(text: &[u8], spans: &mut Vec<Span>) {
    let first = spans.len();
    let mut done_to = 0;
    for begin in memmem::find_iter(text, b"-----BEGIN ") {
        let Some(body) = label_end(text, begin + 11).filter(|_| begin >= done_to) else { continue };
        if let Some(end) = block_end(text, body) {
            spans.push(Span { start: begin, end, kind: SecretKind::PrivateKey });
            done_to = end;
        }
    }
    cut_at_the_front(text, first, spans);
}

/// Keys whose beginning is not there: only what stands before the last line is known to be one.
fn cut_at_the_front(text: &[u8], first: usize, spans: &mut Vec<Span>) {
    let (mut whole, last) = (first, spans.len());
    let mut done_to = 0;
    for dashes in memmem::find_iter(text, b"-----END ") {
        while whole < last && spans[whole].end <= dashes {
            done_to = done_to.max(spans[whole].end);
            whole += 1;
        }
        let is_inside = whole < last && spans[whole].start < dashes;
        let Some(end) = label_end(text, dashes + 9).filter(|_| !is_inside && dashes >= done_to) else {
            continue;
        };
        let start = done_to + lines_before(&text[done_to..dashes]);
        if has_body(&text[start..dashes]) {
            spans.push(Span { start, end, kind: SecretKind::PrivateKey });
        }
        done_to = end;
    }
}

/// Where the line with a label ends, if it is the label of a private key.
fn label_end(text: &[u8], start: usize) -> Option<usize> {
    let rest = &text[start..text.len().min(start + LABEL_BYTES_MAX)];
    let length = memmem::find(rest, DASHES)?;
    memmem::find(&rest[..length], b"PRIVATE KEY")?;
    Some(start + length + DASHES.len())
}

/// Where the key ends that begins behind a label.
fn block_end(text: &[u8], start: usize) -> Option<usize> {
    let rest = &text[start..];
    let length = memmem::find(rest, DASHES).unwrap_or(rest.len());
    if rest[length..].starts_with(b"-----END ") && has_body(&rest[..length]) {
        return label_end(text, start + length + 9);
    }
    let end = lines_behind(&rest[..length]);
    has_body(&rest[..end]).then_some(start + end)
}

fn has_body(body: &[u8]) -> bool {
    body.split(|byte| !is(*byte, BASE64)).any(|piece| piece.len() >= BODY_BYTES_MIN)
}

/// How far lines go that can be part of a key. The first may be the rest of the label's line.
fn lines_behind(rest: &[u8]) -> usize {
    let mut end = 0;
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.trim_ascii_end();
        let is_before_body = is_header(bare) || (end == 0 && bare.is_empty());
        if !is_before_body && piece(bare) < LINE_BYTES_MIN {
            // The last line of a key is short.
            let all = bare.trim_ascii_start();
            let is_rest = !all.is_empty() && count(all, BASE64) + padding(all) == all.len();
            return if is_rest { end + bare.len() } else { end };
        }
        end += line.len();
    }
    end
}

/// Where lines begin that can be part of the key that ends behind this text.
fn lines_before(text: &[u8]) -> usize {
    let line_start = |end: usize| memchr::memrchr(b'\n', &text[..end]).map_or(0, |newline| newline + 1);
    let mut start = line_start(text.len());
    let in_one_line = piece(&text[start..]);
    if in_one_line >= LINE_BYTES_MIN {
        return text.len() - in_one_line;
    }
    let mut is_last = true;
    while start > 0 {
        let former = line_start(start - 1);
        let length = piece(text[former..start - 1].trim_ascii_end());
        if length < LINE_BYTES_MIN && !(is_last && length > 0) {
            break;
        }
        start = former;
        is_last = false;
    }
    start
}

/// The length of the base64 at the end of a line.
fn piece(line: &[u8]) -> usize {
    let padding = padding(line);
    padding + count_back(&line[..line.len() - padding], line.len(), |byte| is(byte, BASE64))
}

fn padding(line: &[u8]) -> usize {
    count_back(line, 2, |byte| byte == b'=')
}

/// `Proc-Type: 4,ENCRYPTED` and the like.
fn is_header(line: &[u8]) -> bool {
    [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"]
        .iter()
        .any(|name| line.trim_ascii_start().starts_with(name))
}
