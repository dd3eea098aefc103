//! The words of real servers, each with the class and the numbers that must come of it.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use windlass_protocol::Failure;

use crate::random::XorShift;

use super::super::{ErrorBody, answer_failure, read_headers, stream_failure};

const FIXTURES: &str = include_str!("../fixtures.json");

/// The moment at which all answers came.
const NOW: u64 = 1_763_200_000;

fn failure_of(fixture: &Value) -> Failure {
    let body = fixture["body"].as_str().map_or_else(|| fixture["body"].to_string(), str::to_owned);
    let body = ErrorBody::parse(&body);
    if fixture["stream"] == true {
        return stream_failure(&body);
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let headers = read_headers(|name| fixture["headers"][name].as_str(), now);
    let status = u16::try_from(fixture["status"].as_u64().unwrap()).unwrap();
    answer_failure(status, &body, headers, "http://a")
}

fn check(fixture: &Value) {
    let failure = failure_of(fixture);
    assert_eq!(format!("{:?}", failure.class), fixture["class"].as_str().unwrap(), "{fixture}");
    let overflow = failure.overflow.map(|overflow| (Some(overflow.needed), Some(overflow.limit)));
    let numbers = |field: &str| {
        let list = fixture[field].as_array()?;
        Some((list.first().and_then(Value::as_u64), list.get(1).and_then(Value::as_u64)))
    };
    assert_eq!(overflow, numbers("overflow"), "{fixture}");
    assert_eq!(failure.resets_at, fixture["resets_at"].as_u64(), "{fixture}");
    assert_eq!(failure.retry_after_ms, fixture["wait_ms"].as_u64(), "{fixture}");
    let culprit = failure.culprit.map(|place| (Some(place.message as u64), place.block.map(|at| at as u64)));
    assert_eq!(culprit, numbers("culprit"), "{fixture}");
}

#[test]
fn every_wording_tells_its_class_and_numbers() {
    let fixtures: Vec<Value> = serde_json::from_str(FIXTURES).unwrap();
    assert!(fixtures.len() >= 100, "only {} fixtures", fixtures.len());
    fixtures.iter().for_each(check);
}

#[test]
fn every_class_that_an_answer_can_have_is_there() {
    let classes =
        "Overflow Media RateLimited Quota Overloaded Server Auth Forbidden NotFound BadRequest Binding";
    for class in classes.split(' ') {
        assert!(FIXTURES.contains(&format!(r#""class": "{class}""#)), "{class}");
    }
}

/// Bodies of all kinds, with bytes changed, moved and cut: whatever comes, there is a class and no panic.
#[test]
fn damaged_errors_are_errors_too() {
    let seed = XorShift::seed_for_this_run();
    let mut random = XorShift::new(seed);
    let fixtures: Vec<Value> = serde_json::from_str(FIXTURES).unwrap();
    for _ in 0..4_000 {
        let mut text = fixtures[random.below(fixtures.len())]["body"].to_string().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(text.len());
            match random.below(3) {
                0 => text.truncate(at.max(1)),
                1 => text[at] = u8::try_from(random.below(256)).unwrap(),
                _ => text.insert(at, b"0-9.:|> +TZ"[random.below(11)]),
            }
        }
        let body = ErrorBody::parse(&String::from_utf8_lossy(&text));
        let failure = stream_failure(&body);
        assert!(failure.message.ends_with(['.', '!', '?', '…']), "seed {seed}: {failure:?}");
    }
}
