//! Numbers with their limits.

use std::time::Duration;

/// One line of the table: what was measured, for whom, and whether it is within its limit.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    unit: &'static str,
    ours: f64,
    bare: Option<f64>,
    limit: String,
    /// Whether it is within its limit.
    pub is_within_limit: bool,
}

impl Row {
    /// A number with a fixed limit.
    #[must_use]
    pub fn at_most(what: &str, unit: &'static str, (ours, bare): (f64, Option<f64>), limit: f64) -> Self {
        let text = format!("≤ {limit} {unit}");
        Self::limited(what, unit, (ours, bare), (limit, text))
    }

    /// A number with a limit that is worded on its own.
    #[must_use]
    pub fn limited(
        what: &str,
        unit: &'static str,
        (ours, bare): (f64, Option<f64>),
        (limit, text): (f64, String),
    ) -> Self {
        Self { what: what.to_owned(), unit, ours, bare, limit: text, is_within_limit: ours <= limit }
    }
}

/// The rows as a Markdown table with aligned columns.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let head = ["what", "windlass", "bare", "ratio", "limit", ""].map(str::to_owned);
    let cells = |row: &Row| {
        let number = |value: f64| format!("{value:.2} {}", row.unit);
        let ratio = row.bare.filter(|bare| *bare > 0.0).map(|bare| format!("{:.2}", row.ours / bare));
        [
            row.what.clone(),
            number(row.ours),
            row.bare.map_or_else(|| "–".to_owned(), number),
            ratio.unwrap_or_else(|| "–".to_owned()),
            row.limit.clone(),
            if row.is_within_limit { "ok" } else { "FAILED" }.to_owned(),
        ]
    };
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let widths: [usize; 6] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let text = |line: &[String; 6]| {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let rule = format!("|{}|", widths.map(|width| "-".repeat(width + 2)).join("|"));
    let mut out: Vec<String> = lines.iter().map(text).collect();
    out.insert(1, rule);
    out.join("\n")
}

/// The middle of the values; 0 if there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// A quarter of the values is not above this one; 0 if there are none.
pub(crate) fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(0.0)
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_numbers_ratios_and_verdicts() {
        let rows = [
            Row::at_most("one answer", "ms", (4.0, Some(2.0)), 4.0),
            Row::limited("size", "MiB", (26.0, None), (25.0, "≤ 25 MiB".to_owned())),
        ];
        assert_eq!(
            table(&rows),
            "\
| what       | windlass  | bare    | ratio | limit    |        |
|------------|-----------|---------|-------|----------|--------|
| one answer | 4.00 ms   | 2.00 ms | 2.00  | ≤ 4 ms   | ok     |
| size       | 26.00 MiB | –       | –     | ≤ 25 MiB | FAILED |"
        );
        assert_eq!(rows.map(|row| row.is_within_limit), [true, false]);
    }

    #[test]
    fn a_quarter_is_below_the_lower_quartile() {
        assert!((lower_quartile(vec![4.0, 1.0, 3.0, 2.0, 5.0]) - 2.0).abs() < 1e-9);
        assert!((lower_quartile(vec![4.0]) - 4.0).abs() < 1e-9);
        assert!(lower_quartile(vec![]).abs() < 1e-9);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(vec![]).abs() < 1e-9);
    }
}
