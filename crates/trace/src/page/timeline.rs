//! The timeline: for each run a lane of the model, lanes of the engine, and as many lanes of tools as calls overlapped.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use windlass_protocol::CallKind;

use super::{Sheet, TracedItem, end_html};
use crate::figures::{duration, money, percent, quantity, real, short, time_step};
use crate::traced_session::{
    CallOutcome, MarkKind, TraceMark, TracedCall, TracedRequest, TracedRun, TracedSession,
};

/// Runs beyond this many are closed at first, but for the last.
const OPEN_RUNS_MAX: usize = 8;
const RULER_PX: usize = 20;
const LANE_PX: usize = 24;
const LANES_MAX: usize = 24;
/// A letter on the timeline takes about so much of its width.
const LETTER_SHARE: u64 = 70;
/// A wait that takes less than this share of the width is not drawn.
const WAIT_SHARE: u64 = 250;
/// A name takes about so much of the width.
const ROOM_SHARE: u64 = 7;
/// So wide is a turn at first, so that a long run can be read by scrolling.
const TURN_PX: usize = 22;
const WIDTH_PX_MAX: usize = 50_000;

pub(super) fn draw(sheet: &Sheet<'_>, out: &mut String) {
    let story = sheet.story;
    out.push_str(
        "<section id=\"timeline\" aria-labelledby=\"timeline-h\">\n<h2 id=\"timeline-h\">Timeline</h2>\n",
    );
    if story.runs.is_empty() {
        out.push_str(
            "<p class=\"quiet\">No timeline: another program wrote this log, and it holds no times.</p>\n</section>\n",
        );
        return;
    }
    legend(story, out);
    out.push_str(
        "<div class=\"controls\" hidden><span>Zoom</span><button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">\u{2212}</button>\
         <button type=\"button\" data-zoom=\"fit\">Fit</button><button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button>\
         <span class=\"quiet hint\">Arrow keys move between bars; Enter opens the row.</span></div>\n",
    );
    overview(story, out);
    for (place, run) in story.runs.iter().enumerate() {
        seam(sheet, place, out);
        draw_run(sheet, (place, run), out);
    }
    out.push_str("</section>\n");
}

fn legend(story: &TracedSession, out: &mut String) {
    out.push_str("<ul class=\"key\">\n");
    let any = |fits: fn(&TracedCall) -> bool| story.calls.iter().any(fits);
    let has_failed = any(TracedCall::has_failed) || story.requests.iter().any(TracedRequest::has_failed);
    let keys = [
        (true, "d-wait", "waiting for the model"),
        (true, "d-stream", "streaming"),
        (any(|call| call.kind == Some(CallKind::Read)), "s k-read", "reads"),
        (any(|call| call.kind == Some(CallKind::Edit)), "s k-edit", "edits"),
        (any(|call| call.kind == Some(CallKind::Execute)), "s k-run", "runs commands"),
        (any(|call| call.kind == Some(CallKind::Session)), "s k-own", "changes the session only"),
        (any(|call| call.wait_ms().is_some_and(|ms| ms > 0)), "s k-late", "queued"),
        (any(|call| call.question.is_some()), "d-ask", "waiting for approval"),
        (has_failed, "s bad", "\u{2715} failed"),
    ];
    for (_, class, text) in keys.into_iter().filter(|(is_shown, ..)| *is_shown) {
        let _ = writeln!(out, "<li><i class=\"{class}\"></i>{text}</li>");
    }
    let kinds: BTreeSet<MarkKind> = story.marks.iter().map(|mark| mark.kind).collect();
    // A prompt is the beginning of its run and needs no letter.
    for kind in kinds.into_iter().filter(|kind| *kind != MarkKind::Prompt) {
        let (letter, name) = kind.label();
        let _ = writeln!(out, "<li><b class=\"letter\">{letter}</b>{name}</li>");
    }
    out.push_str("</ul>\n");
}

/// All runs in a row, with what lies between them.
fn overview(story: &TracedSession, out: &mut String) {
    if story.runs.len() < 2 {
        return;
    }
    out.push_str("<nav class=\"runs\" aria-label=\"Runs\">");
    for (place, run) in story.runs.iter().enumerate() {
        if let Some((gap, resumed)) = gap_before(story, place) {
            let (class, sign) = if resumed { ("gap re", "\u{21bb}") } else { ("gap", "\u{22ef}") };
            let _ = write!(out, "<span class=\"{class}\">{sign} {}</span>", duration(gap));
        }
        let bad = if run.end.is_success() { "" } else { " class=\"bad\"" };
        let (n, grow) = (place + 1, run.length_ms.max(1));
        let title = format!("run {n}: {}, {}", duration(run.length_ms), run.end.name());
        let _ = write!(out, "<a{bad} href=\"#run{n}\" style=\"flex-grow:{grow}\" title=\"{title}\">{n}</a>");
    }
    out.push_str("</nav>\n");
}

/// How long nothing happened before a run, and whether another process went on.
fn gap_before(story: &TracedSession, place: usize) -> Option<(u64, bool)> {
    let (run, before) = (&story.runs[place], &story.runs[place.checked_sub(1)?]);
    let gap = run.wall_ms.saturating_sub(before.wall_ms + before.length_ms);
    Some((gap, run.process != before.process))
}

/// A line between two runs that says what lies between them.
fn seam(sheet: &Sheet<'_>, place: usize, out: &mut String) {
    let Some((gap, true)) = gap_before(sheet.story, place) else { return };
    let runs = &sheet.story.runs;
    let [before, process] = [place - 1, place].map(|place| &sheet.story.processes[runs[place].process]);
    let elsewhere = if process.cwd == before.cwd { "" } else { &*process.cwd };
    let said: Vec<String> = [&*process.version, &*process.entrypoint, elsewhere]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| sheet.words.line(text, 80))
        .collect();
    let by = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    let gap = duration(gap);
    let _ = writeln!(out, "<p class=\"seam\">\u{21bb} resumed by another process after {gap}{by}</p>");
}

/// One run with everything on its lanes.
struct Lanes<'a> {
    requests: Vec<(usize, &'a TracedRequest)>,
    calls: Vec<(usize, &'a TracedCall)>,
    marks: Vec<(usize, &'a TraceMark)>,
    /// Marks that stand on the lane of the model.
    pauses: Vec<(usize, &'a TraceMark)>,
    calls_on: Vec<usize>,
    marks_on: Vec<usize>,
    length_ms: u64,
}

impl<'a> Lanes<'a> {
    fn of(sheet: &'a Sheet<'_>, place: usize, run: &TracedRun) -> Self {
        let (mut requests, mut calls, mut marks, mut pauses) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for item in &sheet.items[run_range(&sheet.items, place, TracedItem::run)] {
            match *item {
                TracedItem::Request(at, request) => requests.push((at, request)),
                TracedItem::Call(at, call) => calls.push((at, call)),
                // A prompt is the beginning of its run and needs no letter.
                TracedItem::Mark(_, mark) if mark.kind == MarkKind::Prompt => {}
                TracedItem::Mark(at, mark) if mark.kind == MarkKind::Backoff => pauses.push((at, mark)),
                TracedItem::Mark(at, mark) => marks.push((at, mark)),
            }
        }
        let length_ms = run.length_ms.max(1);
        let calls_on = pack(calls.iter().map(|(_, call)| (call.asked, call.end_ms())), LANES_MAX);
        let letter_ms = length_ms / LETTER_SHARE;
        let marks_on =
            pack(marks.iter().map(|(_, mark)| (mark.began(), mark.at.max(mark.began() + letter_ms))), 3);
        Self { requests, calls, marks, pauses, calls_on, marks_on, length_ms }
    }

    /// When the next call on the lane of each begins; the end of the run for the last.
    fn next_on_lane(&self) -> Vec<u64> {
        let mut begins = [self.length_ms; LANES_MAX];
        let newest_first = self.calls.iter().zip(&self.calls_on).rev();
        let mut nexts: Vec<u64> =
            newest_first.map(|((_, call), lane)| std::mem::replace(&mut begins[*lane], call.asked)).collect();
        nexts.reverse();
        nexts
    }
}

/// The first free lane of each span, in order of their beginnings; beyond `lanes_max` the last is shared.
fn pack(spans: impl Iterator<Item = (u64, u64)>, lanes_max: usize) -> Vec<usize> {
    let mut free_from: Vec<u64> = Vec::new();
    let lane_of = |(from, to): (u64, u64)| {
        let free = free_from.iter().position(|free| *free <= from);
        let lane = free.unwrap_or(free_from.len()).min(lanes_max.saturating_sub(1));
        if lane == free_from.len() {
            free_from.push(to);
        } else {
            free_from[lane] = free_from[lane].max(to);
        }
        lane
    };
    spans.map(lane_of).collect()
}

/// Where the things of a run stand in a list that is ordered by run.
fn run_range<T>(list: &[T], run: usize, run_of: impl Fn(&T) -> usize) -> Range<usize> {
    list.partition_point(|thing| run_of(thing) < run)..list.partition_point(|thing| run_of(thing) <= run)
}

fn requests_of(story: &TracedSession, run: usize) -> Range<usize> {
    run_range(&story.requests, run, |request| request.run)
}

fn draw_run(sheet: &Sheet<'_>, (place, run): (usize, &TracedRun), out: &mut String) {
    let lanes = Lanes::of(sheet, place, run);
    let count = sheet.story.runs.len();
    let open = if count <= OPEN_RUNS_MAX || place + 1 == count { " open" } else { "" };
    let _ = write!(out, "<details class=\"run\" id=\"run{}\"{open}>\n<summary>", place + 1);
    summary(sheet, (place, run), out);
    out.push_str("</summary>\n");
    let height = |lanes: &[usize]| lanes.iter().max().map_or(0, |most| most + 1);
    let (marks, calls) = (height(&lanes.marks_on), height(&lanes.calls_on));
    // A run that only compacts asks no model.
    let models = usize::from(!lanes.requests.is_empty());
    let top = |lane: usize| RULER_PX + lane * LANE_PX;
    let _ = write!(
        out,
        "<div class=\"lanes\" style=\"height:{}px\">\n<div class=\"names\" aria-hidden=\"true\">",
        top(models + marks + calls) + 14
    );
    let names = [(0, "model", models), (models, "engine", marks), (models + marks, "tools", calls)];
    for (lane, name, _) in names.into_iter().filter(|(_, _, count)| *count > 0) {
        let _ = write!(out, "<span style=\"top:{}px\">{name}</span>", top(lane));
    }
    let width = (requests_of(sheet.story, place).len() * TURN_PX).min(WIDTH_PX_MAX);
    let _ = write!(
        out,
        "</div>\n<div class=\"scroll\" role=\"group\" aria-label=\"Timeline of run {}\"><div class=\"track\" data-ms=\"{}\" style=\"min-width:{width}px\">\n",
        place + 1,
        lanes.length_ms
    );
    ticks(lanes.length_ms, out);
    for (at, mark) in &lanes.pauses {
        mark_bar(&lanes, (*at, mark), top(0), out);
    }
    for (at, request) in &lanes.requests {
        request_bar(&lanes, (*at, request), top(0), out);
    }
    for ((at, mark), lane) in lanes.marks.iter().zip(&lanes.marks_on) {
        mark_bar(&lanes, (*at, mark), top(models + lane), out);
    }
    let nexts = lanes.next_on_lane();
    for (((at, call), lane), next) in lanes.calls.iter().zip(&lanes.calls_on).zip(nexts) {
        call_bar((sheet, &lanes), (*at, call), next, top(models + marks + lane), out);
    }
    out.push_str("</div></div>\n</div>\n</details>\n");
}

fn summary(sheet: &Sheet<'_>, (place, run): (usize, &TracedRun), out: &mut String) {
    let story = sheet.story;
    let (requests, calls) =
        (&story.requests[requests_of(story, place)], run_range(&story.calls, place, |call| call.run));
    let turns = requests.last().map_or(0, |last| u64::from(last.turn - requests[0].turn) + 1);
    let cost = if run.cost_usd > 0.0 { format!(" \u{b7} {}", money(run.cost_usd)) } else { String::new() };
    let _ = write!(
        out,
        "<b>Run {}</b> <span class=\"prompt\" dir=\"auto\">{}</span> <span class=\"quiet\">{} \u{b7} {} \u{b7} {}{cost} \u{b7} {}</span>",
        place + 1,
        sheet.words.line(&run.prompt, 100),
        quantity(turns, "turn"),
        quantity(calls.len() as u64, "call"),
        duration(run.length_ms),
        end_html(run.end)
    );
}

fn ticks(length_ms: u64, out: &mut String) {
    let step = time_step(length_ms / 6);
    let mut at = 0;
    while at <= length_ms {
        let (left, label) = (percent(at, length_ms), tick_label(at, step));
        let _ = write!(out, "<i class=\"t\" style=\"left:{left}%\">{label}</i>");
        at += step;
    }
    out.push('\n');
}

fn tick_label(ms: u64, step: u64) -> String {
    match ms {
        0 => "0".to_owned(),
        _ if step < 1000 && ms < 1000 => format!("{ms} ms"),
        _ if ms < 60_000 => format!("{} s", short(real(ms) / 1000.0, 2)),
        _ if ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
        _ => format!("{}:{:02}", ms / 60_000, ms / 1000 % 60),
    }
}

/// Where a bar stands, in percent of the run.
fn place_of(lanes: &Lanes<'_>, from: u64, to: u64, top_px: usize) -> String {
    let whole = lanes.length_ms;
    let (from, to) = (from.min(whole), to.min(whole));
    let (left, width) = (percent(from, whole), percent(to.saturating_sub(from), whole));
    format!("left:{left}%;width:{width}%;top:{top_px}px")
}

fn request_bar(lanes: &Lanes<'_>, (at, request): (usize, &TracedRequest), top_px: usize, out: &mut String) {
    let end = request.end.unwrap_or(lanes.length_ms);
    let waited = request.first.unwrap_or(end).saturating_sub(request.sent);
    let waited = percent(waited, end.saturating_sub(request.sent));
    let (bad, sign) = if request.has_failed() { (" bad", "\u{2715} ") } else { ("", "") };
    let style = format!("{};--f:{waited}%", place_of(lanes, request.sent, end, top_px));
    let turn = request.turn;
    let _ = writeln!(out, "<a class=\"b q{bad}\" href=\"#q{at}\" style=\"{style}\">{sign}{turn}</a>");
}

/// A call on its lane. `next` is when the next one on the same lane begins: a name may stand in the free space before it.
fn call_bar(
    (sheet, lanes): (&Sheet<'_>, &Lanes<'_>),
    (at, call): (usize, &TracedCall),
    next: u64,
    top_px: usize,
    out: &mut String,
) {
    let end = if call.outcome == CallOutcome::Open { lanes.length_ms } else { call.end_ms() };
    let kind = match call.kind {
        Some(CallKind::Read | CallKind::Fetch) => "k-read",
        Some(CallKind::Edit) => "k-edit",
        Some(CallKind::Execute) => "k-run",
        Some(CallKind::Session) | None => "k-own",
    };
    let (bad, sign) = match call.outcome {
        CallOutcome::Unknown => (" bad odd", "? "),
        _ if call.has_failed() => (" bad", "\u{2715} "),
        _ => ("", ""),
    };
    let label = format!("{sign}{}", sheet.words.line(&format!("{} {}", call.name, call.target), 40));
    let late = call.started.unwrap_or(end).saturating_sub(call.asked);
    let asked = if call.question.is_some() { " asked" } else { "" };
    // A wait that nobody could see is left out.
    let from =
        if late * WAIT_SHARE < lanes.length_ms { call.started.unwrap_or(call.asked) } else { call.asked };
    let whole = end.saturating_sub(from);
    let (class, inside) = if from > call.asked || late == 0 {
        (String::new(), label)
    } else {
        // The name stands where there is room for it.
        let (before, within) =
            if late * 2 > whole { (format!("<em>{label}</em>"), "") } else { (String::new(), &*label) };
        let share = percent(late, whole);
        (format!(" late{asked}"), format!("<i style=\"width:{share}%\">{before}</i><span>{within}</span>"))
    };
    let free = if next.saturating_sub(end) > lanes.length_ms / ROOM_SHARE { " o" } else { "" };
    let place = place_of(lanes, from, end, top_px);
    let _ = writeln!(
        out,
        "<a class=\"b {kind}{class}{bad}{free}\" href=\"#c{at}\" style=\"{place}\">{inside}</a>"
    );
}

fn mark_bar(lanes: &Lanes<'_>, (at, mark): (usize, &TraceMark), top_px: usize, out: &mut String) {
    let (letter, _) = mark.kind.label();
    let (shape, style, inside) = if let Some(from) = mark.from.filter(|from| *from < mark.at) {
        ("b", place_of(lanes, from, mark.at, top_px), format!("<b>{letter}</b> {}", mark.name))
    } else {
        let left = percent(mark.at.min(lanes.length_ms), lanes.length_ms);
        ("m", format!("left:{left}%;top:{top_px}px"), letter.to_string())
    };
    let _ = writeln!(out, "<a class=\"{shape} w-{letter}\" href=\"#m{at}\" style=\"{style}\">{inside}</a>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_stand_on_lanes_of_their_own() {
        let check = |spans: &[(u64, u64)], lanes: &[usize]| assert_eq!(pack(spans.iter().copied(), 3), lanes);
        check(&[], &[]);
        check(&[(0, 10), (10, 20), (20, 30)], &[0, 0, 0]);
        check(&[(0, 10), (5, 20), (10, 30)], &[0, 1, 0]);
        check(&[(0, 100), (1, 5), (2, 6), (5, 7)], &[0, 1, 2, 1]);
        check(&[(0, 9), (1, 9), (2, 9), (3, 9), (9, 10)], &[0, 1, 2, 2, 0]);
        check(&[(3, 3), (3, 3)], &[0, 0]);
    }
}
