//! Budgets: turns, money over the whole tree, and output tokens that are to be spent.

use serde_json::{Value, json};

use crate::host::{Host, prompt};
use crate::resume::logs;
use crate::support::{Stage, Told, check_refused, script};
use crate::talk::Talk;

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn answer(text: &str, output_tokens: u32) -> Value {
    json!({"blocks": [{"text": text}], "usage": {"output_tokens": output_tokens}})
}

fn prompted(stage: &Stage, prompt: &str) -> Told {
    let flags = ["-p", prompt, "--output-format", "stream-json", "--verbose"];
    Told::new(stage.command(&flags).run().unwrap())
}

#[test]
fn turns_are_counted_by_the_calls_they_make() {
    let call = |n: u32| json!({"blocks": [{"tool": "Bash", "input": {"command": format!("echo {n}")}}]});
    let check = |most: &str, requests: usize, reason: &str| {
        let stage = Stage::serving(&json!([call(1), call(2), answer("Done.", 5)]), |server| server);
        let told = stage.told(&[&BASH[..], &["--max-turns", most]].concat(), &[]);
        assert_eq!((told.result["terminal_reason"].as_str(), stage.requests()), (Some(reason), requests));
    };
    check("1", 1, "max_turns");
    check("2", 2, "max_turns");
    check("3", 3, "completed");
}

#[test]
fn forks_count_towards_the_budget() {
    // The summaries of the small model cost more than the cap; the main loop alone would stay far below it.
    let small = script(
        &json!([{"model": "claude-haiku-5-5", "blocks": [{"text": "Counted."}], "usage": {"output_tokens": 1_000_000}, "repeat": 9}]),
    );
    let call = |n: u32| json!({"blocks": [{"tool": "Bash", "input": {"command": format!("echo {n}; sleep 0.2")}}], "usage": {"input_tokens": 10, "output_tokens": 1}});
    let responses =
        json!([call(1), call(2), call(3), call(4), call(5), call(6), call(7), call(8), answer("Done.", 5)]);
    let stage = Stage::serving(&responses, |server| server.script_for("haiku", small));
    let flags = [&BASH[..], &["--max-budget-usd", "0.3"]].concat();
    let told = stage.told(&flags, &[("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1")]);
    told.ended("error_max_budget_usd", "budget_exhausted", 1);
    assert!(told.result["total_cost_usd"].as_f64().unwrap() > 0.3, "{}", told.result);
    assert!(told.result["modelUsage"].get("claude-haiku-5-5").is_some(), "{}", told.result);
    let calls = stage.server.exchanges().iter().filter(|one| one.model().contains("opus")).count();
    assert!(calls < 8, "{calls} requests after the budget was spent");
}

#[test]
fn a_budget_needs_prices() {
    let stage = Stage::hello();
    let refused = stage.run(&["-p", "go", "--model", "local-7b", "--max-budget-usd", "1"]);
    check_refused(&refused, &["budget in USD", "price of local-7b", "leave out the budget"]);
    let refused = stage.run(&["-p", "go", "--fallback-model", "local-7b", "--max-budget-usd", "1"]);
    check_refused(&refused, &["budget in USD", "price of local-7b", "leave out the budget"]);
    assert_eq!(stage.requests(), 0, "nothing was sent");
    let told = stage.told(&["--model", "local-7b"], &[]);
    assert_eq!(told.result["total_cost_usd"], Value::Null, "unknown is not zero: {}", told.result);
}

#[test]
fn a_budget_of_output_tokens_is_spent_to_nine_tenths() {
    let stage = Stage::serving(
        &json!([answer("A.", 700), answer("B.", 700), answer("C.", 700), answer("D.", 700)]),
        |s| s,
    );
    let told = prompted(&stage, "+2k go");
    told.completed("C.");
    assert_eq!(stage.requests(), 3, "2100 of 2000");
    assert!(stage.newest(1).contains("700 of 2000 output tokens (35 %)"), "{}", stage.newest(1));
    assert!(stage.newest(2).contains("1400 of 2000 output tokens (70 %)"), "{}", stage.newest(2));
}

#[test]
fn a_budget_that_brings_little_is_given_up() {
    let responses: Vec<Value> = (0..20).map(|_| answer("Nothing to add.", 10)).collect();
    let stage = Stage::serving(&Value::from(responses), |server| server);
    let told = prompted(&stage, "go +500k");
    told.completed("Nothing to add.");
    assert_eq!(stage.requests(), 4, "three continuations, the last two of them small gains");
}

#[test]
fn a_budget_is_a_word_of_its_own_at_the_beginning_or_the_end_of_a_prompt() {
    let check = |prompt: &str, requests: usize| {
        let responses: Vec<Value> = (0..9).map(|_| answer("Done.", 5)).collect();
        let stage = Stage::serving(&Value::from(responses), |server| server);
        prompted(&stage, prompt).completed("Done.");
        assert!(stage.request(0).to_string().contains(prompt), "the text stays as it is");
        assert_eq!(stage.requests(), requests, "{prompt}");
    };
    for text in [
        "is +500k the right amount?",
        "add +500k rows to the fixture",
        "grow it by x+500k",
        "x+500k is a formula",
        "use +500kb",
        "+500kb of memory",
        "(+500k) or less",
    ] {
        check(text, 1);
    }
    check("+500k refactor this", 4);
    check("refactor this +500k", 4);
}

#[test]
fn piped_data_names_no_budget() {
    let check = |prompt: &str, data: &str, requests: usize| {
        let responses: Vec<Value> = (0..9).map(|_| answer("Done.", 5)).collect();
        let stage = Stage::serving(&Value::from(responses), |server| server);
        let finished = stage.command(&["-p", prompt]).stdin(data).run().unwrap();
        assert!(finished.code() == Some(0), "{finished:?}");
        assert_eq!(stage.requests(), requests, "{prompt} | {data}");
    };
    check("review this", "+500k\n+4096\n", 1);
    check("call +14155550123", "", 1);
    check("review this +500k", "-1\n+2\n", 4);
}

/// Each answer costs the same.
fn equally_dear() -> Stage {
    let usage = json!({"input_tokens": 10, "output_tokens": 1_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let answer = json!({"blocks": [{"text": "Done."}], "usage": usage, "repeat": 9});
    Stage::serving(&json!([answer]), |server| server)
}

#[test]
fn a_prompt_that_is_refused_by_the_budget_is_no_turn() {
    let stage = equally_dear();
    let mut talk = Talk::begin(&stage, &["go", "--max-budget-usd", "0.000001"]);
    talk.sees("1 turn, 10 tokens in");
    talk.types("more");
    talk.sees("0 turns, 0 tokens in");
    talk.types("/exit");
    talk.ends();
    assert_eq!(stage.requests(), 1);
}

#[test]
fn a_cap_in_usd_belongs_to_the_run_that_was_given_it() {
    let stage = equally_dear();
    let cost = |told: &Told| told.result["total_cost_usd"].as_f64().unwrap();
    let first = stage.told(&["--max-budget-usd", "0.000001"], &[]);
    first.ended("error_max_budget_usd", "budget_exhausted", 1);
    let once = cost(&first);

    let resumed = stage.told(&["--continue"], &[]);
    resumed.completed("Done.");
    assert!(
        (cost(&resumed) - 2.0 * once).abs() < once / 2.0,
        "what was spent before is shown: {}",
        resumed.result
    );

    // Less than the session has cost already, more than one answer costs.
    let cap = format!("{:.6}", 1.5 * once);
    let capped = stage.told(&["--continue", "--max-budget-usd", &cap], &[]);
    capped.completed("Done.");
    assert!(cost(&capped) > 2.5 * once, "{}", capped.result);

    let spent = stage.told(&["--continue", "--max-budget-usd", "0.000001"], &[]);
    spent.ended("error_max_budget_usd", "budget_exhausted", 1);
    spent.says(&["since the session was resumed", "in all", "--max-budget-usd"]);
    assert_eq!(stage.requests(), 4);
}

/// Going back within a session gives nothing of its cap back.
#[test]
fn a_cap_in_usd_holds_for_a_session_that_goes_back() {
    let stage = equally_dear();
    let once = stage.told(&[], &[]).result["total_cost_usd"].as_f64().unwrap();
    let cap = format!("{:.6}", 1.5 * once);
    let mut host = Host::start(&stage, &["--max-budget-usd", &cap]);
    let mut ends = Vec::new();
    for text in ["first", "/rewind 1", "second", "third"] {
        host.say(&prompt(text, text));
        ends.push(host.hear_until("result").pop().unwrap()["subtype"].as_str().unwrap().to_owned());
    }
    host.end();
    assert_eq!(ends, ["success", "success", "error_max_budget_usd", "error_max_budget_usd"]);
    assert_eq!(stage.requests(), 3);
    let log = logs(&stage).into_iter().max_by_key(|log| std::fs::metadata(log).unwrap().modified().unwrap());
    let id = log.unwrap().file_stem().unwrap().to_str().unwrap().to_owned();
    let replayed = stage.run(&["replay", &id]);
    assert!(replayed.stdout.contains(", no differences. "), "{}", replayed.stdout);
}
