//! Logs of real life, as bytes on disk: cut, flipped, torn apart and mixed. Every one opens, and what is sent next is valid.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;
use windlass_core::{Config, Effect, Event, Input, Recall, step};
use windlass_protocol::{Record, SessionSeed};
use windlass_session::{Encoder, Header, LogEnd, Tail, load};
use windlass_sim::{Rng, check_request, walk_log};

const LOGS: u64 = 60;
const DAMAGES: u64 = 25;

/// The log of a walk as it stands on disk: what follows from one event is one append.
fn bytes(seed: u64) -> Vec<u8> {
    let header = Header::new(SessionSeed(u128::from(seed)), Path::new("/project"), 1_000);
    let mut encoder = Encoder::new(Uuid::nil(), Arc::new(header), Tail::default());
    let mut bytes = Vec::new();
    encoder.open(&mut bytes);
    let records = walk_log(seed);
    for batch in records.chunk_by(|_, next| !matches!(next, Record::Heard(_))) {
        encoder.encode(batch, &mut bytes);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let place = |rng: &mut Rng, bytes: &[u8]| usize::try_from(rng.below(bytes.len().max(1) as u64)).unwrap();
    let (here, there) = (place(rng, bytes), place(rng, bytes));
    let (from, to) = (here.min(there), here.max(there));
    match rng.below(6) {
        0 => bytes.truncate(here),
        1 if !bytes.is_empty() => bytes[here] ^= 1 << rng.below(8),
        2 => drop(bytes.drain(from..to.min(from + 2_000))),
        3 => bytes[from..to.min(from + 4_096)].fill(0),
        4 => {
            let piece = bytes[from..to.min(from + 3_000)].to_vec();
            let at = place(rng, bytes);
            bytes.splice(at..at, piece);
        }
        _ => {
            let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let (one, other) = (here % lines.len(), there % lines.len());
            lines.swap(one, other);
            *bytes = lines.join(&b'\n');
        }
    }
}

/// Opens what is left and sends the next prompt.
fn check(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).unwrap();
    let loaded = load(path, LogEnd::End).map_err(|error| format!("it does not open: {error}"))?;
    let mut recall = Recall::new("/project".into());
    loaded.records.into_iter().for_each(|record| recall.take(record));
    let recalled = recall.finish();
    let (_, effects) = step(recalled.state, Input::at(0, Event::Submit("go on".into())), &Config::default());
    let sent = effects.list.into_iter().find_map(|effect| match effect {
        Effect::CallModel(_, body) => Some(body),
        _ => None,
    });
    sent.map_or(Ok(()), |body| check_request(&body.transcript))
}

#[test]
fn whatever_is_done_to_a_log_it_opens_and_the_next_request_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("11111111-2222-4333-8444-555555555555.jsonl");
    let (mut size, mut tried) = (0, 0);
    for seed in 0..LOGS {
        let whole = bytes(seed);
        size += whole.len();
        check(&path, &whole).unwrap_or_else(|why| panic!("seed {seed}, untouched: {why}"));
        let mut rng = Rng::new(seed);
        for round in 0..DAMAGES {
            let mut damaged = whole.clone();
            for _ in 0..=rng.below(4) {
                damage(&mut damaged, &mut rng);
            }
            check(&path, &damaged).unwrap_or_else(|why| panic!("seed {seed}, damage {round}: {why}"));
            tried += 1;
        }
    }
    println!("{LOGS} logs of {size} bytes in all, {tried} damaged ones, all opened");
}
