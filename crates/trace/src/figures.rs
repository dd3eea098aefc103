//! Numbers for people: times, tokens, money, dates.

pub(crate) use windlass_text::numbers::{number, quantity};
pub(crate) use windlass_text::time::moment;

/// A count as a number that can be divided.
#[expect(clippy::cast_precision_loss, reason = "a drawing needs three digits of it")]
pub(crate) fn real(n: u64) -> f64 {
    n as f64
}

/// `part` of `whole` in percent, in the shortest form that is exact enough for a drawing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let value = if whole == 0 { 0.0 } else { real(part) * 100.0 / real(whole) };
    short(value, 3)
}

/// A number with at most so many places, without zeros at its end.
pub(crate) fn short(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `340 ms`, `3.25 s`, `2 min 5 s`, `3 h 12 min` or `4 d 2 h`.
pub(crate) fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{}.{:02} s", seconds, ms % 1000 / 10),
        10_000..60_000 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..172_800_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// A place in a run: `0.000`, `1:02.345`, `1:00:02.345`.
pub(crate) fn offset(ms: u64) -> String {
    let (seconds, minutes) = (ms / 1000 % 60, ms / 60_000 % 60);
    match ms {
        0..60_000 => format!("{seconds}.{:03}", ms % 1000),
        60_000..3_600_000 => format!("{minutes}:{seconds:02}.{:03}", ms % 1000),
        _ => format!("{}:{minutes:02}:{seconds:02}.{:03}", ms / 3_600_000, ms % 1000),
    }
}

/// A number of tokens for an axis: `950`, `12.5k`, `200k`, `1M`.
pub(crate) fn rough(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{}k", short(real(n) / 1000.0, 1)),
        _ => format!("{}M", short(real(n) / 1_000_000.0, 2)),
    }
}

/// Money, with as many places as small amounts need.
pub(crate) fn money(usd: f64) -> String {
    if usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// The smallest of 1, 2, 5, 10, 20, … that is at least `least`.
pub(crate) fn round_step(least: u64) -> u64 {
    let powers = std::iter::successors(Some(1_u64), |power| Some(power.saturating_mul(10)));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|factor| power.saturating_mul(factor)));
    steps.find(|step| *step >= least).unwrap_or(u64::MAX)
}

/// The smallest step of a clock that is at least so many milliseconds.
pub(crate) fn time_step(least_ms: u64) -> u64 {
    const SECONDS: [u64; 17] =
        [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400];
    let mut clock = SECONDS.into_iter().map(|s| s * 1000).filter(|_| least_ms > 500);
    clock.find(|step| *step >= least_ms).unwrap_or_else(|| round_step(least_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_easily() {
        let shown = [0, 999, 1_234, 12_345, 125_400, 7_260_000, 180_000_000].map(duration);
        assert_eq!(shown, ["0 ms", "999 ms", "1.23 s", "12.3 s", "2 min 5 s", "2 h 1 min", "2 d 2 h"]);
        assert_eq!([0, 61_002, 3_661_002].map(offset), ["0.000", "1:01.002", "1:01:01.002"]);
    }

    #[test]
    fn counts_and_money_read_easily() {
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([950, 12_500, 200_000, 1_000_000].map(rough), ["950", "12.5k", "200k", "1M"]);
        assert_eq!([0.012_34, 12.345].map(money), ["$0.0123", "$12.35"]);
        assert_eq!([quantity(1, "call"), quantity(2, "call")], ["1 call", "2 calls"]);
        assert_eq!([short(1.50, 2), short(100.0, 0), short(-0.001, 2)], ["1.5", "100", "0"]);
        assert_eq!([percent(1, 3), percent(1, 0), percent(1, 2)], ["33.333", "0", "50"]);
        assert_eq!([0, 1, 3, 11, 5_001].map(round_step), [1, 1, 5, 20, 10_000]);
        assert_eq!(round_step(u64::MAX), u64::MAX);
        assert_eq!([0, 3, 400, 501, 6_000, 31_000].map(time_step), [1, 5, 500, 1_000, 10_000, 60_000]);
        assert_eq!(time_step(100_000_000), 100_000_000);
    }
}
