//! The bare client, and the parts of the benchmark harness on it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use windlass_lab::bench::{
    BenchProgram, Mode, Scenario, Subject, cat_run, cat_script, delta_latencies, delta_script, early_script,
    gaps, turn_script,
};
use windlass_testkit::{Project, Script, Server};

const BODY: &[u8] =
    br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

fn bare() -> Subject {
    Subject { program: BenchProgram::Bare, binary: PathBuf::from(env!("CARGO_BIN_EXE_windlass-bare")) }
}

fn scenario(script: &serde_json::Value, requests: usize, mode: Mode) -> Scenario {
    let scenario = Scenario::new(script, mode).unwrap();
    scenario.keep_bodies(vec![BODY; requests]).unwrap();
    scenario
}

#[test]
fn the_bare_client_sends_what_it_is_given_over_one_connection() {
    let project = Project::new().unwrap();
    let body = str::from_utf8(BODY).unwrap();
    let bodies = project.write("bodies", format!("{0}\n{body}{0}\n{body}", body.len())).unwrap();
    let script = r#"{"responses":[{"blocks":[{"text":"one"}]},{"blocks":[{"text":"t"},{"text":"wo"}]}]}"#;
    let server = Server::start(Script::parse(script).unwrap()).unwrap();
    let command = project.command(bare().binary).args([PathBuf::from(server.url()), bodies]);
    let finished = command.run().unwrap();
    assert_eq!((finished.code(), &*finished.stdout), (Some(0), "two\n"), "{}", finished.stderr);
    let exchanges = server.exchanges();
    assert!(exchanges.iter().all(|exchange| &*exchange.body == BODY && exchange.connection == 0));
    assert_eq!(exchanges.len(), 2);
}

#[test]
fn an_error_of_the_server_is_an_error_of_the_bare_client() {
    let script = json!({ "responses": [{ "fault": { "status": { "code": 500 } } }] });
    let error = scenario(&script, 1, Mode::Answer).run(&bare(), false).unwrap_err().to_string();
    assert!(error.contains("500"), "{error}");
}

#[test]
fn a_run_that_leaves_the_script_early_is_no_sample() {
    let error = scenario(&turn_script(3), 2, Mode::Answer).run(&bare(), false).unwrap_err().to_string();
    assert!(error.starts_with("Bare did not go through the script: 2 requests"), "{error}");
}

#[test]
fn gaps_are_measured_for_every_turn() {
    let sample = scenario(&turn_script(20), 21, Mode::Answer).run(&bare(), false).unwrap();
    let gaps = gaps(&sample.exchanges).unwrap();
    assert_eq!(gaps.len(), 20);
    assert!(gaps.iter().all(|gap| gap.first_byte > 0.0 && gap.first_byte <= gap.read), "{gaps:?}");
    assert!(sample.elapsed > Duration::ZERO);
}

#[test]
fn every_delta_has_its_latency() {
    let sample = scenario(&delta_script(50, 2), 1, Mode::Deltas).run(&bare(), true).unwrap();
    let latencies = delta_latencies(&sample, 50).unwrap();
    assert_eq!(latencies.len(), 50);
    assert!(latencies.iter().all(|latency| *latency > 0.0), "{latencies:?}");
    assert!(delta_latencies(&sample, 49).is_err());
}

/// How long after the stream the next request came, in milliseconds.
fn after_the_stream() -> f64 {
    let early = scenario(&early_script(100, 300), 2, Mode::Tools).run(&bare(), false).unwrap();
    let streamed = early.exchanges[0].reply.as_ref().unwrap();
    assert!(streamed.ended.duration_since(streamed.events[0]) >= Duration::from_millis(280));
    gaps(&early.exchanges).unwrap()[0].first_byte
}

/// How long four waits of 100 ms took.
fn four_waits() -> f64 {
    let cats = scenario(&cat_script(4), 2, Mode::Tools);
    let took = cat_run(&cats, &bare(), 4, Duration::from_millis(100)).unwrap();
    assert!(took >= 100.0, "four waits of 100 ms took {took} ms");
    took
}

/// A busy machine may delay anything, but not five times in a row.
#[test]
fn tools_run_beside_the_stream_and_beside_each_other() {
    assert!((0..5).any(|_| after_the_stream() < 60.0), "the tool is over before the stream");
    assert!((0..5).any(|_| four_waits() < 300.0), "the waits overlap");
}
