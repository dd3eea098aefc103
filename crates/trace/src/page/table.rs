//! Everything that is on the timeline as a table: for those who read, search, copy or listen.

use std::fmt::Write as _;

use windlass_protocol::FailureClass;

use super::series::part_of;
use super::{Sheet, TracedItem};
use crate::figures::{duration, money, number, offset};
use crate::traced_session::{CallOutcome, RequestOutcome, TraceMark, TracedCall, TracedRequest};

const COLUMNS: [&str; 11] =
    ["At", "What", "About", "Outcome", "Waited", "Took", "Context", "Cached", "New", "Out", "Cost"];

pub(super) fn draw(sheet: &Sheet<'_>, out: &mut String) {
    if sheet.items.is_empty() {
        return;
    }
    out.push_str("<section id=\"all\" aria-labelledby=\"all-h\">\n<h2 id=\"all-h\">Requests, calls and decisions</h2>\n");
    filters(sheet, out);
    out.push_str("<div class=\"wide\" role=\"region\" aria-label=\"Requests, calls and decisions\" tabindex=\"0\"><table id=\"rows\">\n<thead><tr>");
    for column in COLUMNS {
        let _ = write!(out, "<th scope=\"col\">{column}</th>");
    }
    out.push_str("</tr></thead>\n");
    for items in sheet.items.chunk_by(|former, item| former.run() == item.run()) {
        let _ = writeln!(
            out,
            "<tbody>\n<tr class=\"of\"><th colspan=\"11\" scope=\"colgroup\"><a href=\"#run{n}\">Run {n}</a></th></tr>",
            n = items[0].run() + 1
        );
        for item in items {
            match item {
                TracedItem::Request(at, request) => request_row(sheet, *at, request, out),
                TracedItem::Call(at, call) => call_row(sheet, *at, call, out),
                TracedItem::Mark(at, mark) => mark_row(sheet, *at, mark, out),
            }
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table></div>\n</section>\n");
}

fn filters(sheet: &Sheet<'_>, out: &mut String) {
    out.push_str("<fieldset class=\"filters\"><legend>Show</legend>");
    let kinds = [
        ("all", "all"),
        ("q", "requests"),
        ("c", "calls"),
        ("m", "other"),
        ("bad", "failed"),
        ("long", "long"),
    ];
    for (kind, name) in kinds {
        let checked = if kind == "all" { " checked" } else { "" };
        let _ = write!(
            out,
            "<label><input type=\"radio\" name=\"show\" id=\"f-{kind}\" value=\"{kind}\"{checked}>{name}</label>"
        );
    }
    let _ = writeln!(
        out,
        "<label class=\"find\" hidden>containing <input type=\"search\" id=\"find\" placeholder=\"text\"></label></fieldset>\n\
         <p class=\"quiet\">Long: over {} for a request, over {} for a call (three times the median, at least one second).</p>",
        duration(sheet.long.request_ms),
        duration(sheet.long.call_ms)
    );
}

/// The beginning of a row. `class` is its kind, with what else is said of it; `data` is a further attribute.
fn row(id: &str, class: &str, data: &str, at: u64, out: &mut String) {
    let _ = write!(out, "<tr id=\"{id}\" class=\"{class}\"{data}><td>{}</td>", offset(at));
}

fn cells(cells: &[String], out: &mut String) {
    for cell in cells {
        let _ = write!(out, "<td>{cell}</td>");
    }
    out.push_str("</tr>\n");
}

fn time(ms: Option<u64>) -> String {
    ms.map(duration).unwrap_or_default()
}

fn class(kind: &str, is_bad: bool, is_long: bool) -> String {
    format!("{kind}{}{}", if is_bad { " bad" } else { "" }, if is_long { " long" } else { "" })
}

fn request_row(sheet: &Sheet<'_>, at: usize, request: &TracedRequest, out: &mut String) {
    let long = request.took().is_some_and(|ms| ms > sheet.long.request_ms);
    let parts: Vec<String> = sheet.parts.iter().map(|name| part_of(request, name).to_string()).collect();
    let data = format!(" data-p=\"{}\"", parts.join(","));
    row(&format!("q{at}"), &class("q", request.has_failed(), long), &data, request.sent, out);
    let attempt = if request.attempt > 1 { format!(", attempt {}", request.attempt) } else { String::new() };
    let usage = &request.usage;
    let cached = usage.cache_read_input_tokens;
    let tokens = |n: u64| if n == 0 { String::new() } else { number(n) };
    cells(
        &[
            format!("request, turn {}{attempt}", request.turn),
            sheet.words.line(&request.model, 60),
            request_outcome(sheet, &request.outcome),
            time(request.wait_ms()),
            time(request.took()),
            tokens(request.context()),
            tokens(cached),
            tokens(usage.input_total() - cached),
            tokens(usage.output_tokens),
            cost(request),
        ],
        out,
    );
}

fn cost(request: &TracedRequest) -> String {
    let own = request.cost_usd.map(money).unwrap_or_default();
    if request.forks_usd > 0.0 { format!("{own} + {} by forks", money(request.forks_usd)) } else { own }
}

fn request_outcome(sheet: &Sheet<'_>, outcome: &RequestOutcome) -> String {
    match outcome {
        RequestOutcome::Open => "open".to_owned(),
        RequestOutcome::Stopped(reason) => sheet.words.line(reason, 40),
        RequestOutcome::Failed(class, why) => {
            format!("\u{2715} {}: {}", failure_name(*class), sheet.words.line(why, 160))
        }
        RequestOutcome::Interrupted => "\u{2715} interrupted".to_owned(),
        RequestOutcome::Left => "\u{2715} the process ended".to_owned(),
    }
}

fn failure_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Overflow => "prompt too long",
        FailureClass::Media => "media rejected",
        FailureClass::RateLimited => "too many requests",
        FailureClass::Quota => "quota used up",
        FailureClass::Overloaded => "overloaded",
        FailureClass::Server => "server error",
        FailureClass::Auth => "API key rejected",
        FailureClass::Forbidden => "access denied",
        FailureClass::NotFound => "not found",
        FailureClass::BadRequest => "invalid request",
        FailureClass::Binding => "thinking rejected",
        FailureClass::Connect => "no connection",
        FailureClass::Tls => "TLS error",
        FailureClass::Cut => "stream broke off",
        FailureClass::Stalled => "stalled",
        FailureClass::Malformed => "invalid response",
    }
}

fn call_row(sheet: &Sheet<'_>, at: usize, call: &TracedCall, out: &mut String) {
    let long = call.took().is_some_and(|ms| ms > sheet.long.call_ms);
    row(&format!("c{at}"), &class("c", call.has_failed(), long), "", call.asked, out);
    let asked = call
        .question
        .map(|(from, to)| format!(", waited {} for approval", duration(to.saturating_sub(from))));
    let sign = match call.outcome {
        CallOutcome::Unknown => "? ",
        _ if call.has_failed() => "\u{2715} ",
        _ => "",
    };
    let complaint = sheet.words.line(&call.complaint, 160);
    let complaint = if complaint.is_empty() { complaint } else { format!(": {complaint}") };
    cells(
        &[
            sheet.words.line(&call.name, 40),
            sheet.words.line(&call.target, 120),
            format!("{sign}{}{}{complaint}", call.outcome.name(), asked.unwrap_or_default()),
            time(call.wait_ms().filter(|ms| *ms > 0)),
            time(call.took()),
        ],
        out,
    );
}

fn mark_row(sheet: &Sheet<'_>, at: usize, mark: &TraceMark, out: &mut String) {
    row(&format!("m{at}"), "m", "", mark.began(), out);
    let about = sheet.words.line(&mark.about, 160);
    cells(&[mark.name.clone(), about, String::new(), String::new(), time(mark.took())], out);
}
