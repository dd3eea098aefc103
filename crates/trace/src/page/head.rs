//! What the session came to, at a glance.

use std::fmt::Write as _;

use super::{Sheet, each_once, end_html};
use crate::activities::{Activity, time_saved, time_spent};
use crate::figures::{duration, moment, money, number, percent, quantity, rough};
use crate::traced_session::{CallOutcome, TracedCall, TracedSession};

/// The drum of a windlass with its rope.
const DRAWING: &str = "<svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\"><path d=\"M5 6v20M27 6v20M5 16H1m26 0h4\"/>\
    <rect x=\"8\" y=\"9\" width=\"16\" height=\"14\" rx=\"2\"/><path d=\"M11 9l-1 14m5-14l-1 14m5-14l-1 14m5-14l-1 14m-4 0v7\"/></svg>";

pub(super) fn draw(sheet: &Sheet<'_>, title: &str, out: &mut String) {
    let story = sheet.story;
    let _ =
        writeln!(out, "<header>\n{DRAWING}<div><p class=\"kicker\">{}</p><h1>{title}</h1>", kicker(story));
    if let Some(run) = story.runs.iter().find(|run| !run.prompt.is_empty()) {
        let prompt = sheet.words.line(&run.prompt, 240);
        let _ = writeln!(out, "<p class=\"first\" dir=\"auto\">{prompt}</p>");
    }
    out.push_str("</div>\n</header>\n<dl class=\"facts\">\n");
    let mut fact = |name: &str, value: &str, more: &str| {
        let more = if more.is_empty() { String::new() } else { format!("<small>{more}</small>") };
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{value}{more}</dd></div>");
    };
    end_fact(story, &mut fact);
    let active: u64 = story.runs.iter().map(|run| run.length_ms).sum();
    fact("Active", &duration(active), &quantity(story.runs.len() as u64, "run"));
    let failed = story.calls.iter().filter(|call| call.has_failed()).count();
    let turns = story.requests.last().map_or(0, |request| request.turn);
    let retries = story.requests.iter().filter(|request| request.attempt > 1).count();
    let asked = quantity(story.requests.len() as u64, "request");
    fact("Turns", &number(turns.into()), &with_some(asked, retries, "retried"));
    let names = tools_by_use(story);
    let names: Vec<String> =
        names.iter().map(|(name, n)| format!("{} {n}", sheet.words.line(name, 24))).collect();
    fact("Tool calls", &number(story.calls.len() as u64), &with_some(names.join(", "), failed, "failed"));
    let (read, new, output) = tokens(story);
    let cached = percent_of(read, read + new);
    fact("Tokens", &format!("{} in", rough(read + new)), &format!("{cached} cached, {} out", rough(output)));
    cost_fact(sheet, &mut fact);
    let models = each_once(story.requests.iter().map(|request| &request.model));
    let shown: Vec<String> = models.iter().map(|model| sheet.words.line(model, 40)).collect();
    let names = if shown.is_empty() { "\u{2013}".to_owned() } else { shown.join(", ") };
    fact(if shown.len() == 1 { "Model" } else { "Models" }, &names, "");
    out.push_str("</dl>\n");
    where_time_went(story, out);
}

/// What the page is, when the session began, and how often it was resumed.
fn kicker(story: &TracedSession) -> String {
    let run = story.runs.first().map(|run| run.wall_ms);
    let process = story.processes.first().map(|process| process.wall_ms);
    let began = [run, process].into_iter().flatten().find(|wall_ms| *wall_ms > 0);
    let resumed = match story.processes.len() {
        0 | 1 => None,
        2 => Some("resumed once".to_owned()),
        n => Some(format!("resumed {} times", n - 1)),
    };
    let said = ["windlass trace".to_owned()].into_iter().chain(began.map(moment)).chain(resumed);
    said.collect::<Vec<_>>().join(" \u{b7} ")
}

fn cost_fact(sheet: &Sheet<'_>, fact: &mut dyn FnMut(&str, &str, &str)) {
    let unpriced: Vec<String> =
        sheet.story.unpriced.iter().map(|model| sheet.words.line(model, 40)).collect();
    let more = (!unpriced.is_empty()).then(|| format!("excludes {}: price unknown", unpriced.join(", ")));
    fact("Cost", &sheet.story.total_usd.map_or("\u{2013}".to_owned(), money), &more.unwrap_or_default());
}

fn end_fact(story: &TracedSession, fact: &mut dyn FnMut(&str, &str, &str)) {
    let Some(run) = story.runs.last() else { return fact("End", "\u{2013}", "") };
    let unknown = story.calls.iter().filter(|call| call.outcome == CallOutcome::Unknown).count();
    let more = (unknown > 0).then(|| format!("{}, outcome unknown", quantity(unknown as u64, "call")));
    fact("End", &end_html(run.end), &more.unwrap_or_default());
}

fn with_some(text: String, n: usize, what: &str) -> String {
    match (text.is_empty(), n) {
        (_, 0) => text,
        (true, n) => format!("{n} {what}"),
        (false, n) => format!("{text}; {n} {what}"),
    }
}

/// The tools that were called most.
fn tools_by_use(story: &TracedSession) -> Vec<(String, usize)> {
    let mut names: Vec<(String, usize)> = Vec::new();
    for call in &story.calls {
        match names.iter_mut().find(|(name, _)| **name == *call.name) {
            Some((_, n)) => *n += 1,
            None => names.push((call.name.to_string(), 1)),
        }
    }
    names.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    names.truncate(4);
    names
}

/// Tokens read from the cache, other input, output.
fn tokens(story: &TracedSession) -> (u64, u64, u64) {
    story.requests.iter().map(|request| &request.usage).fold((0, 0, 0), |(read, new, output), usage| {
        let cached = usage.cache_read_input_tokens;
        (read + cached, new + (usage.input_total() - cached), output + usage.output_tokens)
    })
}

pub(super) fn percent_of(part: u64, whole: u64) -> String {
    if part > 0 && part * 100 < whole {
        return "&lt;\u{202f}1\u{202f}%".to_owned();
    }
    format!("{}\u{202f}%", (part * 100).checked_div(whole).unwrap_or_default())
}

fn where_time_went(story: &TracedSession, out: &mut String) {
    let sums = time_spent(story);
    let total: u64 = sums.iter().sum();
    if total == 0 {
        return;
    }
    out.push_str("<section class=\"went\" aria-labelledby=\"went\">\n<h2 id=\"went\">Where the time went</h2>\n<div class=\"split\" aria-hidden=\"true\">");
    let spent = || Activity::ALL.into_iter().zip(sums).filter(|(_, ms)| *ms > 0);
    for ((_, class, _), ms) in spent() {
        let _ = write!(out, "<i class=\"{class}\" style=\"width:{}%\"></i>", percent(ms, total));
    }
    out.push_str("</div>\n<ul class=\"key\">\n");
    for ((_, class, name), ms) in spent() {
        let (time, share) = (duration(ms), percent_of(ms, total));
        let _ =
            writeln!(out, "<li><i class=\"{class}\"></i>{name} <b>{time}</b> <small>{share}</small></li>");
    }
    out.push_str("</ul>\n");
    let saved = time_saved(story);
    if saved > 0 {
        let _ = writeln!(
            out,
            "<p class=\"quiet\">Tools ran for {} in total; {} of it while the model answered or other tools ran.</p>",
            duration(story.calls.iter().filter_map(TracedCall::took).sum()),
            duration(saved)
        );
    }
    out.push_str("</section>\n");
}
