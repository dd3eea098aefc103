use std::borrow::Cow;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use proptest::prelude::*;

use super::{EVENT_BYTES_MAX, EventTooLarge, SseDecoder};
use crate::random::XorShift;

type Events = Vec<(String, String)>;

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Events {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().expect("small events") {
            events.push((event.name.into_owned(), event.data.into_owned()));
        }
    }
    events
}

fn check(input: &[u8], expected: &[(&str, &str)]) {
    let expected: Events =
        expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
    assert_eq!(decode([input]), expected, "{}", String::from_utf8_lossy(input));
    assert_eq!(decode(input.chunks(1)), expected, "byte by byte: {}", String::from_utf8_lossy(input));
}

#[test]
fn the_format() {
    check(b"", &[]);
    check(b"event: a\ndata: b\n\n", &[("a", "b")]);
    check(b"data:b\n\n", &[("", "b")]);
    check(b"data:  b \n\n", &[("", " b ")]);
    check(b"data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
    check(b"data: a\ndata: b\ndata\ndata: c\n\n", &[("", "a\nb\n\nc")]);
    check(b"data\n\n", &[("", "")]);
    check(b"data: a:b: c\n\n", &[("", "a:b: c")]);
    check(b": comment\ndata: a\n: another\n\n: last\n\n", &[("", "a")]);
    check(b"event: only\n\ndata: a\n\n", &[("", "a")]);
    check(b"event: a\nevent: b\ndata: c\n\n", &[("b", "c")]);
    check(b"id: 1\nretry: 5\nother: x\nDATA: no\ndata : no\ndata: yes\n\n", &[("", "yes")]);
    check(b"\n\n\ndata: a\n\n\n\n", &[("", "a")]);
}

#[test]
fn line_ends() {
    check(b"event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", &[("a", "b"), ("", "c")]);
    check(b"event: a\rdata: b\r\rdata: c\r\r", &[("a", "b"), ("", "c")]);
    check(b"data: a\r\n\rdata: b\n\r\ndata: c\r\r\n", &[("", "a"), ("", "b"), ("", "c")]);
    check("data: a\u{2028}b\u{85}\u{b}\n\n".as_bytes(), &[("", "a\u{2028}b\u{85}\u{b}")]);
}

#[test]
fn a_crlf_event_does_not_wait_for_the_last_lf() {
    let mut decoder = SseDecoder::default();
    decoder.push(b"data: a\r\n\r");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
    decoder.push(b"\ndata: b\r\n\r");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "b");
    assert!(decoder.next_event().unwrap().is_none());
}

#[test]
fn byte_order_mark_and_broken_utf8() {
    check(b"\xef\xbb\xbfdata: a\n\n", &[("", "a")]);
    check(b"\xef\xbb\xbf\ndata: a\n\n", &[("", "a")]);
    check(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", &[("", "a")]);
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &[("", "b")]);
    check("data: é😀\n\n".as_bytes(), &[("", "é😀")]);
    check(b"data: \xff\xc3\n\n", &[("", "\u{fffd}\u{fffd}")]);
}

/// Pushes the pieces and checks that the event they make up is a view of the decoder's own bytes.
fn check_borrowed(pieces: &[&[u8]], name: &str, data: &str) {
    let mut decoder = SseDecoder::default();
    for piece in pieces {
        assert_eq!(decoder.next_event(), Ok(None));
        decoder.push(piece);
    }
    let buffer = decoder.buffer.as_ptr_range();
    let event = decoder.next_event().unwrap().unwrap();
    assert_eq!((&*event.name, &*event.data), (name, data));
    for text in [&event.name, &event.data] {
        assert!(matches!(text, Cow::Borrowed(_)), "{event:?}");
        assert!(buffer.contains(&text.as_ptr()), "{event:?}");
    }
}

#[test]
fn an_event_of_one_line_is_not_copied() {
    check_borrowed(&[b"event: a\ndata: b\n\n"], "a", "b");
    check_borrowed(&["\u{feff}data: é😀\r\nevent: a\r\n\r\n".as_bytes()], "a", "é😀");
    check_borrowed(&[b"event: lo", b"ng\ndata: in", b" pieces\n", b"\n"], "long", "in pieces");
    check_borrowed(&[b": note\n\nevent: a\ndata: b\n\nevent: c\ndata: d\n\n"], "a", "b");
}

#[test]
fn an_event_without_its_blank_line_does_not_count() {
    check(b"data: a\n\ndata: b\n", &[("", "a")]);
    check(b"data: a\n\ndata: b", &[("", "a")]);
    check(b"data: a", &[]);
}

#[test]
fn an_endless_event_is_an_error_and_endless_comments_are_not() {
    let chunk = vec![b'x'; 1024 * 1024];
    let mut decoder = SseDecoder::default();
    decoder.push(b"data: ");
    for _ in 0..EVENT_BYTES_MAX / chunk.len() {
        assert_eq!(decoder.next_event(), Ok(None));
        decoder.push(&chunk);
    }
    assert_eq!(decoder.next_event(), Err(EventTooLarge));
    assert_eq!(decoder.next_event(), Err(EventTooLarge));

    let mut decoder = SseDecoder::default();
    for _ in 0..100_000 {
        decoder.push(b": waiting\r\n");
        assert_eq!(decoder.next_event(), Ok(None));
        assert!(decoder.buffer.len() < 64);
    }
}

/// What another implementation makes of a valid stream.
fn oracle(pieces: &[&[u8]]) -> Events {
    let pieces: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
    let stream = sse_stream::SseByteStream::new(futures_util::stream::iter(pieces));
    let events: Vec<_> = stream.collect().now_or_never().expect("nothing to wait for");
    events
        .into_iter()
        .map(|event| event.expect("a valid stream"))
        .filter_map(|event| event.data.map(|data| (event.event.unwrap_or_default(), data)))
        .collect()
}

/// Lines as streams have them, to be put together at random.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        "data: [a-z é😀:{}\"]{0,20}",
        Just("data".to_owned()),
        "event: [a-z_]{1,9}",
        ": [a-z]{0,9}",
        Just("id: 7".to_owned()),
    ];
    let line_end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let event = (prop::collection::vec(field, 1..5), line_end).prop_map(|(lines, end)| {
        let mut text: String = lines.iter().flat_map(|line| [line.as_str(), end]).collect();
        text.push_str(end);
        text
    });
    (any::<bool>(), prop::collection::vec(event, 0..8)).prop_map(|(mark, events)| {
        let text = events.concat();
        if mark { format!("\u{feff}{text}") } else { text }.into_bytes()
    })
}

fn split_at<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        stream in any_stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let pieces = split_at(&stream, &cuts);
        prop_assert_eq!(decode(pieces), decode([&stream[..]]));
    }

    #[test]
    fn any_bytes_split_anywhere_give_the_same_events(
        bytes in prop::collection::vec(prop::sample::select(b"data: event\n\r\n\r:\xef\xbb\xbf\xff".to_vec()), 0..80),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        prop_assert_eq!(decode(split_at(&bytes, &cuts)), decode([&bytes[..]]));
    }

    #[test]
    fn valid_streams_read_as_another_implementation_reads_them(
        stream in any_stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        prop_assert_eq!(decode([&stream[..]]), oracle(&split_at(&stream, &cuts)));
    }
}

/// Valid streams that the mutations start from.
const CORPUS: &[&[u8]] = &[
    b"event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
    b"\xef\xbb\xbfevent: a\r\ndata: {\"x\":\"\xc3\xa9\xf0\x9f\x98\x80\"}\r\n\r\n: note\r\n\r\ndata: z\r\n\r\n",
    b"data: a\rdata: b\r\rdata\r\r:c\r\rid: 1\rretry: 2\r\r",
    b": OPENROUTER PROCESSING\n\ndata: [DONE]\n\n",
    b"event: content_block_delta\ndata: {\"delta\":{\"text\":\"one\\ntwo\"}}\n\n\n\ndata:\ndata:\n\n",
];

fn mutate(random: &mut XorShift, bytes: &mut Vec<u8>) {
    const SPICE: &[u8] = b"\n\r:\xef\xbb\xbf\x00 d\xff";
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, SPICE[random.below(SPICE.len())]),
            2 if at < bytes.len() => {
                bytes.remove(at);
            }
            3 if at < bytes.len() => bytes[at] = SPICE[random.below(SPICE.len())],
            _ => {
                let other = CORPUS[random.below(CORPUS.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + random.below(30)).min(other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn mutated_streams_never_panic_and_never_depend_on_the_split() {
    let seed = XorShift::seed_for_this_run();
    println!("seed {seed}");
    let mut random = XorShift::new(seed);
    for _ in 0..30_000 {
        let mut bytes = CORPUS[random.below(CORPUS.len())].to_vec();
        mutate(&mut random, &mut bytes);
        let whole = decode([&bytes[..]]);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(1 + random.below(rest.len().min(12)));
            pieces.push(piece);
            rest = later;
        }
        assert_eq!(decode(pieces), whole, "seed {seed}: {}", bytes.escape_ascii());
    }
}

/// The time to decode one event of `size` bytes that comes in pieces of `piece` bytes.
fn time_of(size: usize, piece: usize) -> Duration {
    let mut stream = b"data: ".to_vec();
    stream.resize(size, b'x');
    stream.extend_from_slice(b"\n\n");
    let start = Instant::now();
    assert_eq!(decode(stream.chunks(piece)).len(), 1);
    start.elapsed()
}

/// Eight times the size may take 32 times as long, for a busy machine, but not 64 times, five times in a row.
#[test]
fn time_grows_with_the_size_alone() {
    for piece in [7, 8192] {
        let linear = || time_of(8 * 256 * 1024, piece) < time_of(256 * 1024, piece) * 8 * 4;
        assert!((0..5).any(|_| linear()), "in pieces of {piece}");
    }
}
