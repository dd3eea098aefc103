//! The timeline: for each run a lane of the model, lanes of the engine, and as many lanes of tools as calls overlapped.

use std::fmt::Write as _;

use windlass_protocol::CallKind;

use super::{Sheet, shown};
use crate::figures::{counted, duration, money, percent, real, short, time_step};
use crate::lanes::pack;
use crate::story::{Call, CallOutcome, Mark, MarkKind, Request, Run, Story};

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

fn legend(story: &Story, out: &mut String) {
    out.push_str("<ul class=\"key\">\n");
    let mut key = |class: &str, text: &str| {
        let _ = writeln!(out, "<li><i class=\"{class}\"></i>{text}</li>");
    };
    key("d-wait", "waiting for the model");
    key("d-stream", "streaming");
    let has = |kind: CallKind| story.calls.iter().any(|call| call.kind == Some(kind));
    let kinds = [
        (CallKind::Read, "s k-read", "reads"),
        (CallKind::Edit, "s k-edit", "edits"),
        (CallKind::Execute, "s k-run", "runs commands"),
        (CallKind::Session, "s k-own", "changes the session only"),
    ];
    for (_, class, text) in kinds.into_iter().filter(|(kind, _, _)| has(*kind)) {
        key(class, text);
    }
    if story.calls.iter().any(|call| call.waited().is_some_and(|ms| ms > 0)) {
        key("s k-late", "queued");
    }
    if story.calls.iter().any(|call| call.question.is_some()) {
        key("d-ask", "waiting for approval");
    }
    if story.calls.iter().any(Call::failed) || story.requests.iter().any(Request::failed) {
        key("s bad", "\u{2715} failed");
    }
    let mut kinds: Vec<MarkKind> = story.marks.iter().map(|mark| mark.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // A prompt is the beginning of its run and needs no letter.
    for kind in kinds.into_iter().filter(|kind| *kind != MarkKind::Prompt) {
        let _ = writeln!(out, "<li><b class=\"letter\">{}</b>{}</li>", kind.letter(), kind.name());
    }
    out.push_str("</ul>\n");
}

/// All runs in a row, with what lies between them.
fn overview(story: &Story, out: &mut String) {
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
        let _ = write!(
            out,
            "<a{bad} href=\"#run{n}\" style=\"flex-grow:{}\" title=\"run {n}: {}, {}\">{n}</a>",
            run.length_ms.max(1),
            duration(run.length_ms),
            run.end.name(),
            n = place + 1
        );
    }
    out.push_str("</nav>\n");
}

/// How long nothing happened before a run, and whether another process went on.
fn gap_before(story: &Story, place: usize) -> Option<(u64, bool)> {
    let (run, before) = (&story.runs[place], &story.runs[place.checked_sub(1)?]);
    let gap = run.wall_ms.saturating_sub(before.wall_ms + before.length_ms);
    Some((gap, run.process != before.process))
}

/// A line between two runs that says what lies between them.
fn seam(sheet: &Sheet<'_>, place: usize, out: &mut String) {
    let Some((gap, resumed)) = gap_before(sheet.story, place) else { return };
    if !resumed {
        return;
    }
    let runs = &sheet.story.runs;
    let [before, process] = [place - 1, place].map(|place| &sheet.story.processes[runs[place].process]);
    let elsewhere = if process.cwd == before.cwd { "" } else { &*process.cwd };
    let said: Vec<String> = [&*process.version, &*process.entrypoint, elsewhere]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| sheet.words.line(text, 80))
        .collect();
    let by = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    let _ = writeln!(
        out,
        "<p class=\"seam\">\u{21bb} resumed by another process after {}{by}</p>",
        duration(gap)
    );
}

/// One run with everything on its lanes.
struct Lanes<'a> {
    requests: Vec<(usize, &'a Request)>,
    calls: Vec<(usize, &'a Call)>,
    marks: Vec<(usize, &'a Mark)>,
    calls_on: Vec<usize>,
    marks_on: Vec<usize>,
    length_ms: u64,
}

impl<'a> Lanes<'a> {
    fn of(sheet: &'a Sheet<'_>, place: usize, run: &Run) -> Self {
        let story = sheet.story;
        let requests = within(&story.requests, place, |request| request.run);
        let calls = within(&story.calls, place, |call| call.run);
        let marks = within(&story.marks, place, |mark| mark.run);
        let requests: Vec<_> = shown(&story.requests, &sheet.shown.requests)
            .skip_while(|(at, _)| *at < requests.0)
            .take_while(|(at, _)| *at < requests.1)
            .collect();
        let mut calls: Vec<_> = shown(&story.calls, &sheet.shown.calls)
            .skip_while(|(at, _)| *at < calls.0)
            .take_while(|(at, _)| *at < calls.1)
            .collect();
        let mut marks: Vec<_> = shown(&story.marks, &sheet.shown.marks)
            .skip_while(|(at, _)| *at < marks.0)
            .take_while(|(at, _)| *at < marks.1)
            .filter(|(_, mark)| !matches!(mark.kind, MarkKind::Backoff | MarkKind::Prompt))
            .collect();
        calls.sort_by_key(|(_, call)| call.asked);
        let begins = |mark: &Mark| mark.from.unwrap_or(mark.at);
        marks.sort_by_key(|(_, mark)| begins(mark));
        let length_ms = run.length_ms.max(1);
        let calls_on = pack(calls.iter().map(|(_, call)| (call.asked, call.over())), LANES_MAX);
        let letter_ms = length_ms / LETTER_SHARE;
        let marks_on =
            pack(marks.iter().map(|(_, mark)| (begins(mark), mark.at.max(begins(mark) + letter_ms))), 3);
        Self { requests, calls, marks, calls_on, marks_on, length_ms }
    }
}

impl Lanes<'_> {
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

/// Where the things of a run begin and end in a list that is ordered by run.
fn within<T>(list: &[T], run: usize, run_of: impl Fn(&T) -> usize) -> (usize, usize) {
    (list.partition_point(|thing| run_of(thing) < run), list.partition_point(|thing| run_of(thing) <= run))
}

fn draw_run(sheet: &Sheet<'_>, (place, run): (usize, &Run), out: &mut String) {
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
    let width = (turns_of(sheet.story, place) * TURN_PX).min(WIDTH_PX_MAX);
    let _ = write!(
        out,
        "</div>\n<div class=\"scroll\" role=\"group\" aria-label=\"Timeline of run {}\"><div class=\"track\" data-ms=\"{}\" style=\"min-width:{width}px\">\n",
        place + 1,
        lanes.length_ms
    );
    ticks(lanes.length_ms, out);
    let pauses = within(&sheet.story.marks, place, |mark| mark.run);
    for (at, mark) in (pauses.0..).zip(&sheet.story.marks[pauses.0..pauses.1]) {
        if mark.kind == MarkKind::Backoff && sheet.shown.marks[at] {
            mark_bar(&lanes, (at, mark), top(0), out);
        }
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

fn turns_of(story: &Story, run: usize) -> usize {
    let (from, to) = within(&story.requests, run, |request| request.run);
    to - from
}

fn summary(sheet: &Sheet<'_>, (place, run): (usize, &Run), out: &mut String) {
    let story = sheet.story;
    let requests = within(&story.requests, place, |request| request.run);
    let calls = within(&story.calls, place, |call| call.run);
    let requests = &story.requests[requests.0..requests.1];
    let turns = requests.last().map_or(0, |last| u64::from(last.turn - requests[0].turn) + 1);
    let cost = if run.cost_usd > 0.0 { format!(" \u{b7} {}", money(run.cost_usd)) } else { String::new() };
    let (class, sign) = if run.end.is_success() { ("good", "") } else { ("bad", "\u{2715} ") };
    let _ = write!(
        out,
        "<b>Run {}</b> <span class=\"prompt\" dir=\"auto\">{}</span> <span class=\"quiet\">{} \u{b7} {} \u{b7} {}{cost} \u{b7} <span class=\"{class}\">{sign}{}</span></span>",
        place + 1,
        sheet.words.line(&run.prompt, 100),
        counted(turns, "turn"),
        counted((calls.1 - calls.0) as u64, "call"),
        duration(run.length_ms),
        run.end.name()
    );
}

fn ticks(length_ms: u64, out: &mut String) {
    let step = time_step(length_ms / 6);
    let mut at = 0;
    while at <= length_ms {
        let _ = write!(
            out,
            "<i class=\"t\" style=\"left:{}%\">{}</i>",
            percent(at, length_ms),
            tick_label(at, step)
        );
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
    let (from, to) = (from.min(lanes.length_ms), to.min(lanes.length_ms));
    format!(
        "left:{}%;width:{}%;top:{top_px}px",
        percent(from, lanes.length_ms),
        percent(to.saturating_sub(from), lanes.length_ms)
    )
}

fn request_bar(lanes: &Lanes<'_>, (at, request): (usize, &Request), top_px: usize, out: &mut String) {
    let end = request.end.unwrap_or(lanes.length_ms);
    let waited = request.first.unwrap_or(end).saturating_sub(request.sent);
    let (bad, sign) = if request.failed() { (" bad", "\u{2715} ") } else { ("", "") };
    let _ = writeln!(
        out,
        "<a class=\"b q{bad}\" href=\"#q{at}\" style=\"{};--f:{}%\">{sign}{}</a>",
        place_of(lanes, request.sent, end, top_px),
        percent(waited, end.saturating_sub(request.sent)),
        request.turn
    );
}

/// A call on its lane. `next` is when the next one on the same lane begins: a name may stand in the free space before it.
fn call_bar(
    (sheet, lanes): (&Sheet<'_>, &Lanes<'_>),
    (at, call): (usize, &Call),
    next: u64,
    top_px: usize,
    out: &mut String,
) {
    let end = if call.outcome == CallOutcome::Open { lanes.length_ms } else { call.over() };
    let kind = match call.kind {
        Some(CallKind::Read | CallKind::Fetch) => "k-read",
        Some(CallKind::Edit) => "k-edit",
        Some(CallKind::Execute) => "k-run",
        Some(CallKind::Session) | None => "k-own",
    };
    let (bad, sign) = match call.outcome {
        CallOutcome::Unknown => (" bad odd", "? "),
        _ if call.failed() => (" bad", "\u{2715} "),
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

fn mark_bar(lanes: &Lanes<'_>, (at, mark): (usize, &Mark), top_px: usize, out: &mut String) {
    let letter = mark.kind.letter();
    match mark.from.filter(|from| *from < mark.at) {
        Some(from) => {
            let _ = writeln!(
                out,
                "<a class=\"b w-{letter}\" href=\"#m{at}\" style=\"{}\"><b>{letter}</b> {}</a>",
                place_of(lanes, from, mark.at, top_px),
                mark.name
            );
        }
        None => {
            let _ = writeln!(
                out,
                "<a class=\"m w-{letter}\" href=\"#m{at}\" style=\"left:{}%;top:{top_px}px\">{letter}</a>",
                percent(mark.at.min(lanes.length_ms), lanes.length_ms)
            );
        }
    }
}
