//! What each request was made of and what it took: context by part, tokens, cost, one above the other over the same requests.

use std::fmt::Write as _;
use std::sync::Arc;

use windlass_protocol::{ContextReport, Usage};

use super::head::percent_of;
use super::{Sheet, each_once};
use crate::figures::{money, number, percent, quantity, real, rough, round_step, short};
use crate::traced_session::{MarkKind, TracedRequest, TracedSession};

/// More columns than this are not told apart on a screen; each then stands for the largest of several requests.
const COLUMNS_MAX: usize = 600;
/// The width of a drawing in its own units.
const WIDTH: f64 = 1000.0;
/// Columns this narrow have no space between them.
const GAP_FROM_PX: f64 = 6.0;
/// The parts in the order of a request, as far as they have a colour of their own.
const PARTS: [&str; 8] = ContextReport::PARTS;

/// What is stacked: its class, its name, its value in each column.
type Stack = (String, String, Vec<f64>);

/// One drawing: columns of stacked values.
struct Plot {
    class: &'static str,
    title: &'static str,
    /// From below.
    stacks: Vec<Stack>,
    top: f64,
    label: fn(f64) -> String,
    /// A line over the columns, with a scale of its own.
    line: Option<Vec<f64>>,
    /// A level with its name, drawn if it fits.
    level: Option<(f64, String)>,
    /// What takes the place of the names of the stacks.
    note: String,
}

pub(super) fn draw(sheet: &Sheet<'_>, out: &mut String) {
    let story = sheet.story;
    if story.requests.is_empty() {
        return;
    }
    let columns = Columns::of(story);
    out.push_str(
        "<section id=\"series\" aria-labelledby=\"series-h\">\n<h2 id=\"series-h\">Requests over time</h2>\n",
    );
    let _ = writeln!(out, "<p class=\"quiet\">{}</p>", columns.says());
    let names: Vec<String> = sheet.parts.iter().map(|name| sheet.words.line(name, 30)).collect();
    let (n, names) = (story.requests.len(), names.join("|"));
    let _ = writeln!(out, "<div class=\"series\" data-n=\"{n}\" data-parts=\"{names}\">");
    context(sheet, &columns).draw(&columns, out);
    tokens_in(&columns).draw(&columns, out);
    tokens_out(&columns).draw(&columns, out);
    cost(&columns).draw(&columns, out);
    turns_axis(&columns, out);
    out.push_str("<i class=\"cursor\" hidden></i></div>\n");
    parts_table(sheet, out);
    out.push_str("</section>\n");
}

/// The requests as columns.
struct Columns<'a> {
    story: &'a TracedSession,
    /// The requests of each column: where they begin, and where the last one ends.
    edges: Vec<usize>,
}

impl<'a> Columns<'a> {
    fn of(story: &'a TracedSession) -> Self {
        let (n, columns) = (story.requests.len(), story.requests.len().min(COLUMNS_MAX));
        Self { story, edges: (0..=columns).map(|column| column * n / columns.max(1)).collect() }
    }

    fn len(&self) -> usize {
        self.edges.len() - 1
    }

    fn says(&self) -> String {
        let n = self.story.requests.len();
        let each = n.div_ceil(self.len().max(1));
        let bounds = match self.boundaries().len() {
            0 => String::new(),
            n => format!(" Dashed lines: {}.", quantity(n as u64, "compaction")),
        };
        match each {
            1 => format!(
                "One column per request, the same requests in all four charts; vertical lines separate the runs.{bounds}"
            ),
            _ => format!("Each column shows the largest of up to {each} requests.{bounds}"),
        }
    }

    fn requests(&self, column: usize) -> &'a [TracedRequest] {
        &self.story.requests[self.edges[column]..self.edges[column + 1]]
    }

    /// A value of each column: that of the request for which `size` is largest.
    fn largest(
        &self,
        size: &dyn Fn(&TracedRequest) -> f64,
        value: &dyn Fn(&TracedRequest) -> f64,
    ) -> Vec<f64> {
        let of = |column| {
            let requests = self.requests(column).iter();
            requests.max_by(|a, b| size(a).total_cmp(&size(b))).map_or(0.0, value)
        };
        (0..self.len()).map(of).collect()
    }

    /// Where compactions lie, in requests.
    fn boundaries(&self) -> Vec<usize> {
        let marks = self.story.marks.iter().filter(|mark| mark.kind == MarkKind::Compaction);
        marks.map(|mark| mark.requests_before).collect()
    }

    /// Where runs begin, but for the first, in requests.
    fn run_starts(&self) -> Vec<usize> {
        let pairs = self.story.requests.windows(2).enumerate();
        pairs.filter(|(_, pair)| pair[0].run != pair[1].run).map(|(at, _)| at + 1).collect()
    }
}

/// The names of all parts, in the order of the first request that has them.
pub(super) fn part_names(story: &TracedSession) -> Vec<Arc<str>> {
    let parts = story.requests.iter().flat_map(|request| &request.parts);
    let mut names = each_once(parts.map(|(name, _)| name.clone()));
    let place = |name: &Arc<str>| PARTS.iter().position(|part| **part == **name).unwrap_or(PARTS.len());
    names.sort_by_key(place);
    names
}

fn part_class(name: &str) -> String {
    let place = PARTS.iter().position(|part| *part == name);
    place.map_or("p-else".to_owned(), |place| format!("p{place}"))
}

pub(super) fn part_of(request: &TracedRequest, name: &str) -> u64 {
    request.parts.iter().filter(|(part, _)| **part == *name).map(|(_, tokens)| tokens).sum()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of tokens, rounded for a label"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

fn context(sheet: &Sheet<'_>, columns: &Columns<'_>) -> Plot {
    let size = |request: &TracedRequest| real(request.context());
    let stacks: Vec<_> = sheet
        .parts
        .iter()
        .map(|name| {
            let values = columns.largest(&size, &|request| real(part_of(request, name)));
            (part_class(name), sheet.words.line(name, 30), values)
        })
        .collect();
    let most = columns.story.requests.iter().map(TracedRequest::context).max().unwrap_or_default();
    let last = columns.story.requests.last();
    let window =
        last.and_then(|last| columns.story.windows.get(&last.model)).copied().filter(|window| *window > 0);
    // A window that is far away would make the parts unreadable; then it is only named.
    let near = window.filter(|window| most * 5 >= *window * 2);
    let note = window.map_or_else(String::new, |window| {
        format!("window {}, at most {} used", rough(window), percent_of(most, window))
    });
    Plot {
        top: real(most.max(near.unwrap_or_default())) * 1.06,
        level: near.map(|window| (real(window), format!("window {}", rough(window)))),
        note,
        ..simple("context", "Context by part", stacks)
    }
}

fn tokens_in(columns: &Columns<'_>) -> Plot {
    let size = |request: &TracedRequest| real(request.usage.input_total());
    let stack = |class: &str, name: &str, value: &dyn Fn(&Usage) -> u64| {
        let values = columns.largest(&size, &|request| real(value(&request.usage)));
        (class.to_owned(), name.to_owned(), values)
    };
    let stacks = vec![
        stack("u-read", "from the cache", &|usage| usage.cache_read_input_tokens),
        stack("u-write", "written to the cache", &|usage| usage.cache_creation_input_tokens),
        stack("u-fresh", "neither", &|usage| usage.input_tokens),
    ];
    simple("input", "Tokens in", stacks)
}

fn tokens_out(columns: &Columns<'_>) -> Plot {
    let output = |request: &TracedRequest| real(request.usage.output_tokens);
    let stack = ("u-out".to_owned(), String::new(), columns.largest(&output, &output));
    simple("output", "Tokens out", vec![stack])
}

fn simple(class: &'static str, title: &'static str, stacks: Vec<Stack>) -> Plot {
    let sums = (0..stacks.first().map_or(0, |stack| stack.2.len()))
        .map(|column| stacks.iter().map(|(_, _, values)| values[column]).sum::<f64>());
    let top = sums.fold(0.0, f64::max) * 1.06;
    let label = |value| rough(whole(value));
    Plot { class, title, stacks, top, label, line: None, level: None, note: String::new() }
}

fn cost(columns: &Columns<'_>) -> Plot {
    let own = |request: &TracedRequest| request.cost_usd.unwrap_or_default();
    let forks = |request: &TracedRequest| request.forks_usd;
    let size = |request: &TracedRequest| own(request) + forks(request);
    let mut stacks = vec![("u-cost".to_owned(), "requests".to_owned(), columns.largest(&size, &own))];
    if columns.story.requests.iter().any(|request| request.forks_usd > 0.0) {
        stacks.push(("u-forks".to_owned(), "forks".to_owned(), columns.largest(&size, &forks)));
    }
    let mut sum = 0.0;
    let line = (0..columns.len()).map(|column| {
        sum += columns.requests(column).iter().map(size).sum::<f64>();
        sum
    });
    let line: Vec<f64> = line.collect();
    let total = line.last().copied().unwrap_or_default();
    let note = if total > 0.0 {
        format!("line: running total, {} at the end", money(total))
    } else {
        "price unknown".to_owned()
    };
    Plot { label: money, line: (total > 0.0).then_some(line), note, ..simple("cost", "Cost", stacks) }
}

impl Plot {
    fn draw(&self, columns: &Columns<'_>, out: &mut String) {
        let _ = write!(out, "<figure class=\"plot {}\"><figcaption><b>{}</b>", self.class, self.title);
        for (class, name, _) in self.stacks.iter().rev().filter(|(_, name, _)| !name.is_empty()) {
            let _ = write!(out, " <span class=\"named\"><i class=\"{class}\"></i>{name}</span>");
        }
        if !self.note.is_empty() {
            let _ = write!(out, " <span class=\"quiet\">{}</span>", self.note);
        }
        out.push_str("</figcaption>\n<div class=\"area\">");
        self.scale(out);
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}, by request; the numbers are in the table below\">",
            self.title
        );
        self.columns(columns, out);
        let n = columns.story.requests.len();
        for (class, places) in [("starts", columns.run_starts()), ("bounds", columns.boundaries())] {
            let mut path = String::new();
            for at in places {
                let x = real(at as u64) * WIDTH / real(n as u64);
                let _ = write!(path, "M{} 0V100", short(x, 2));
            }
            push_path(class, &path, out);
        }
        if let Some((level, _)) = &self.level {
            push_path("level", &format!("M0 {}H{WIDTH}", self.y(*level)), out);
        }
        self.draw_line(columns, out);
        out.push_str("</svg></div></figure>\n");
    }

    fn y(&self, value: f64) -> String {
        let share = if self.top > 0.0 { value / self.top } else { 0.0 };
        short(100.0 - 100.0 * share, 2)
    }

    /// Two or three round values on the left.
    fn scale(&self, out: &mut String) {
        let marks: Vec<f64> = if self.class == "cost" {
            vec![self.top / 1.06]
        } else {
            let step = round_step(whole(self.top / 2.5).max(1));
            (1..=2).map(|n| real(step * n)).filter(|value| *value <= self.top).collect()
        };
        for value in marks.iter().filter(|_| self.top > 0.0) {
            let (top, label) = (self.y(*value), (self.label)(*value));
            let _ = write!(out, "<i class=\"y\" style=\"top:{top}%\"><b>{label}</b></i>");
        }
        if let Some((level, name)) = &self.level {
            let _ = write!(out, "<i class=\"y level\" style=\"top:{}%\"><b>{name}</b></i>", self.y(*level));
        }
    }

    fn columns(&self, columns: &Columns<'_>, out: &mut String) {
        let each = WIDTH / real(columns.len().max(1) as u64);
        let gap = if each >= GAP_FROM_PX { (each * 0.15).min(4.0) } else { 0.0 };
        let mut below = vec![0.0; columns.len()];
        for (class, _, values) in &self.stacks {
            let mut path = String::new();
            for (column, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let bottom = self.y(below[column]);
                below[column] += value;
                let top = self.y(below[column]);
                let x = real(column as u64) * each + gap / 2.0;
                let (left, right) = (short(x, 2), short(x + each - gap, 2));
                let _ = write!(path, "M{left} {bottom}H{right}V{top}H{left}z");
            }
            push_path(class, &path, out);
        }
    }

    fn draw_line(&self, columns: &Columns<'_>, out: &mut String) {
        let Some(line) = &self.line else { return };
        let most = line.iter().copied().fold(0.0, f64::max) * 1.06;
        let each = WIDTH / real(columns.len().max(1) as u64);
        let mut path = String::new();
        for (column, value) in line.iter().enumerate() {
            let (x, y) = ((real(column as u64) + 0.5) * each, 100.0 - 100.0 * value / most);
            let _ = write!(path, "{}{} {}", if column == 0 { 'M' } else { 'L' }, short(x, 2), short(y, 2));
        }
        push_path("line", &path, out);
    }
}

/// Appends a path, unless it is empty.
fn push_path(class: &str, path: &str, out: &mut String) {
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

fn turns_axis(columns: &Columns<'_>, out: &mut String) {
    let requests = &columns.story.requests;
    let n = requests.len() as u64;
    let step = round_step(n.div_ceil(10)).max(1);
    out.push_str("<div class=\"x\" aria-hidden=\"true\"><span>turn</span>");
    let mut shown = None;
    for (at, request) in (0_u64..).zip(requests) {
        let due = request.turn == 1 || u64::from(request.turn).is_multiple_of(step);
        if due && shown != Some(request.turn) {
            let middle = short((real(at) + 0.5) * 100.0 / real(n), 2);
            let _ = write!(out, "<i style=\"left:{middle}%\">{}</i>", request.turn);
            shown = Some(request.turn);
        }
    }
    out.push_str("</div>\n");
}

/// The context in numbers, for the largest request and the last.
fn parts_table(sheet: &Sheet<'_>, out: &mut String) {
    let requests = &sheet.story.requests;
    let largest = requests.iter().max_by_key(|request| request.context());
    let Some((largest, last)) = largest.zip(requests.last()) else { return };
    if sheet.parts.is_empty() || largest.context() == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "<details class=\"parts\"><summary>Context by part, in numbers</summary>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Part</th>\
         <th scope=\"col\">Largest request (turn {})</th><th scope=\"col\">Last request (turn {})</th></tr></thead>\n<tbody>",
        largest.turn, last.turn
    );
    for name in &sheet.parts {
        let cell = |request: &TracedRequest| {
            let tokens = part_of(request, name);
            let share = short(percent(tokens, request.context()).parse().unwrap_or_default(), 0);
            format!("<td>{} <small>{share}\u{202f}%</small></td>", number(tokens))
        };
        let (class, shown) = (part_class(name), sheet.words.line(name, 30));
        let cells = cell(largest) + &cell(last);
        let _ = writeln!(out, "<tr><th scope=\"row\"><i class=\"{class}\"></i>{shown}</th>{cells}</tr>");
    }
    let (largest, last) = (number(largest.context()), number(last.context()));
    let _ = writeln!(
        out,
        "<tr><th scope=\"row\">total</th><td>{largest}</td><td>{last}</td></tr>\n</tbody></table></div></details>"
    );
}
