//! The page as a file: well-formed, closed to the outside, without power for the words of a session, and not too large.

use std::borrow::Cow;

use windlass_protocol::{Answer, CallKind, Event, FailureClass, HookAnswer, StopReason, Terminal};
use windlass_trace::{SessionProcess, Trace, is_trace};

use crate::markup::read;
use crate::page_of;
use crate::tape::{Tape, eventful, long, usage};

/// A session in which everybody tries to break out of the page, with the same words in every place that is shown.
fn hostile(words: &str) -> Tape {
    let mut tape = Tape::new();
    tape.submit(words).request(1, &[(words, 10)]);
    tape.wait(10).started().text(words);
    let made = tape.tool(words, words, CallKind::Read);
    tape.intended(made.0, words, CallKind::Read).wait(5).finished(made.0, words, true);
    tape.result(made, words, words, true);
    let asked = tape.tool(words, words, CallKind::Execute);
    tape.answer(asked.0, Answer::Deny(words.into())).result(asked, words, words, true);
    tape.hooked(HookAnswer { notices: vec![words.into()], ..HookAnswer::default() });
    tape.heard(Event::Steer(words.into()));
    tape.failed(FailureClass::Server, words);
    tape.wait(9).heard(Event::StoreFailed { why: words.into(), unstarted: vec![] });
    tape.request(1, &[(words, 20)]);
    tape.wait(5).started().stopped(StopReason::Other(words.into()), usage(1, 1, 1, 1), Some(0.1));
    tape.end(Terminal::Completed);
    tape
}

fn hostile_page(words: &str, redact: &dyn Fn(&str) -> Cow<'_, str>) -> String {
    let tape = hostile(words);
    let mut trace = Trace::default();
    let text = words.to_owned();
    let opening = |wall_ms| SessionProcess {
        wall_ms,
        version: text.clone(),
        entrypoint: text.clone(),
        cwd: text.clone(),
    };
    trace.on_opened(opening(1));
    tape.records.iter().for_each(|record| trace.take(record));
    trace.on_opened(opening(tape.wall_ms + 1_000));
    let mut again = Tape::new();
    again.submit(words);
    again.records.iter().for_each(|record| trace.take(record));
    trace.page(words, redact)
}

#[test]
fn pages_are_well_formed_and_every_link_leads_somewhere() {
    for tape in [eventful(), long(30), Tape::new(), hostile("x")] {
        let page = page_of(&tape);
        let markup = read(&page).unwrap();
        for link in &markup.links {
            let id = link.strip_prefix('#').unwrap_or_default();
            assert!(markup.ids.contains(id), "{link} leads nowhere");
        }
    }
}

#[test]
fn words_of_a_session_have_no_power() {
    for words in [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<!--",
        "]]></style><svg onload=alert(1)>",
        "&lt;b&gt; &#60;",
        "javascript:alert(1) data:text/html,x",
        "a\u{202e}b\u{2066}c\u{200b}d\u{feff}\u{0}\u{1b}[31m\u{85}\u{2028}\u{ffff}",
    ] {
        let page = hostile_page(words, &|text| Cow::Borrowed(text));
        let markup = read(&page).unwrap();
        assert_eq!(page.matches("<script").count(), 1, "{words}");
        assert!(!markup.elements.iter().any(|name| name == "img" || name == "b<"), "{words}");
        assert!(!markup.attributes.iter().any(|(name, _)| name.starts_with("on")), "{words}");
        let hidden = |c: char| {
            (c.is_control() && c != '\n') || "\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}\u{ffff}".contains(c)
        };
        assert!(!page.contains(hidden), "{words:?}");
    }
}

#[test]
fn what_is_redacted_is_nowhere_on_the_page() {
    const SECRET: &str = "sk-ant-secret-0123456789";
    fn redact(text: &str) -> Cow<'_, str> {
        text.replace(SECRET, "[redacted]").into()
    }
    let words = format!("key {SECRET} used");
    assert!(hostile_page(&words, &|text| Cow::Borrowed(text)).matches(SECRET).count() > 15);
    let page = hostile_page(&words, &redact);
    assert!(!page.contains("0123456789") && page.contains("[redacted]"));
}

#[test]
fn a_secret_at_the_edge_of_what_is_shown_is_still_found() {
    fn redact(text: &str) -> Cow<'_, str> {
        text.replace(&format!("BEGIN{}END", "k".repeat(4_000)), "[redacted]").into()
    }
    for before in [0, 100, 315, 319] {
        let words = format!("{}BEGIN{}END", "x".repeat(before), "k".repeat(4_000));
        let page = hostile_page(&words, &redact);
        assert!(!page.contains("kkk"), "{before}");
    }
}

#[test]
fn pages_are_closed_to_the_outside() {
    let page = page_of(&eventful());
    for outside in [
        "http:",
        "https:",
        "//cdn",
        "src=",
        "@import",
        "url(",
        "<link",
        "<iframe",
        "fetch(",
        "XMLHttp",
        "WebSocket",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_page_tells_its_session() {
    let page = page_of(&eventful());
    let text = read(&page).unwrap().text;
    for told in [
        "Session 0198f3a2",
        "The checkout total is wrong",
        "completed",
        "claude-sonnet-5",
        "2026-03-14 09:26:53 UTC",
        "$0.9728",
        "resumed once",
        "resumed by another process after 2 h 5 min",
        "1 call, outcome unknown",
        "pause before a retry",
        "outcome unknown",
        "\u{2715} denied",
        "waited 2.70 s for approval",
        "window 200k",
        "Tools ran for 9.79 s in total; 2.85 s of it while the model answered or other tools ran.",
    ] {
        assert!(text.contains(told), "{told}");
    }
}

#[test]
fn a_page_is_the_same_each_time() {
    assert_eq!(page_of(&eventful()), page_of(&eventful()));
}

#[test]
fn long_sessions_stay_small_and_say_what_is_left_out() {
    let page = page_of(&long(2_000));
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(!page.contains("Long session:") && page.contains("messages not shown"));
    assert!(page.contains("Each column shows the largest of up to 4 requests"));
    let page = page_of(&long(12_000));
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(page.contains("short requests, calls and notes count in all sums and charts"));
    read(&page).unwrap();
}

#[test]
fn a_session_without_times_says_so() {
    let mut tape = eventful();
    tape.records.retain(|record| matches!(record, windlass_protocol::Record::Said(_)));
    let text = read(&page_of(&tape)).unwrap().text;
    assert!(text.contains("it holds no times") && text.contains("Did the docs go out?"));
}

#[test]
fn only_pages_of_its_own_are_known() {
    assert!(is_trace(page_of(&Tape::new()).as_bytes()));
    assert!(!is_trace(b"<!DOCTYPE html>\n<html><head><title>my notes</title>"));
    assert!(!is_trace(b""));
}
