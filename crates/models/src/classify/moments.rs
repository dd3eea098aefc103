//! Moments and waits as errors and headers write them, in seconds since 1970 and milliseconds.

use windlass_text::time;

/// Later than any moment that seconds since 1970 name for long to come; a larger number counts milliseconds.
const SECONDS_MAX: u64 = 100_000_000_000;

/// Earlier than any moment a server of today names; a smaller number is a wait.
const SECONDS_MIN: u64 = 1_000_000_000;

/// What stands in front of a wait.
const WAITS: &[&str] =
    &["try again in ", "retry in ", "retry after ", "resets in ", "reset in ", "retrydelay\":\""];

/// What stands in front of seconds since 1970.
const STAMPS: &[&str] = &["limit reached|", "resets_at\":", "reset_at\":"];

/// A moment: seconds or milliseconds since 1970, or a date.
pub(super) fn moment(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(number) => stamp(number),
        Err(_) => date(text),
    }
}

/// Seconds since 1970 from a number of either unit.
pub(super) fn stamp(number: u64) -> Option<u64> {
    match number {
        ..SECONDS_MIN => None,
        SECONDS_MIN..SECONDS_MAX => Some(number),
        _ => Some(number / 1000),
    }
}

/// The first moment in a text.
pub(super) fn moment_in(words: &str) -> Option<u64> {
    let lower = words.to_ascii_lowercase();
    let after_stamp = STAMPS.iter().find_map(|start| {
        let rest = &lower[lower.find(start)? + start.len()..];
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        moment(&digits)
    });
    let dates = || lower.match_indices('-').find_map(|(at, _)| date(lower.get(at.checked_sub(4)?..)?));
    after_stamp.or_else(dates)
}

/// The first wait in a text, in milliseconds: `58.8s`, `6m0s`, `1h2m`, `20 seconds`, `250ms`.
pub(super) fn wait_in(words: &str) -> Option<u64> {
    let lower = words.to_ascii_lowercase();
    WAITS.iter().find_map(|start| wait(&lower[lower.find(start)? + start.len()..]))
}

fn wait(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut total_ms = 0.0;
    let mut found = false;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let Some(unit_ms) = unit_ms(&after[..letters]) else { break };
        total_ms += number * unit_ms;
        found = true;
        rest = after[letters..].trim_start();
    }
    found
        .then(|| std::time::Duration::try_from_secs_f64(total_ms / 1000.0).ok())?
        .and_then(|wait| u64::try_from(wait.as_millis()).ok())
}

fn unit_ms(name: &str) -> Option<f64> {
    Some(match name {
        "ms" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => return None,
    })
}

/// A date with a time of day: `2026-11-15T18:00:00Z`, `… at 18:00 UTC`; with an offset, otherwise in UTC.
fn date(text: &str) -> Option<u64> {
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(" at ").unwrap_or_else(|| rest.trim_start_matches(['T', 't', ' ']));
    let is_clock = |c: char| c.is_ascii_digit() || c == ':' || c == '.';
    let (clock, zone) = rest.split_at(rest.find(|c| !is_clock(c)).unwrap_or(rest.len()));
    let offset = zone.find(|c: char| !c.is_ascii_digit() && !"+-:".contains(c)).unwrap_or(zone.len());
    let moment = time::parse(&format!("{day}T{clock}{}", &zone[..offset]));
    Some(moment.or_else(|| time::parse(&format!("{day}T00:00")))? / 1000)
}

/// A moment for people: `2026-11-15 18:00 UTC`.
pub(super) fn in_utc(seconds: u64) -> String {
    let iso = time::iso(seconds.saturating_mul(1000));
    format!("{} UTC", iso[..iso.len() - ":00.000Z".len()].replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(moment(text), expected, "{text}");
        check("1763200000", Some(1_763_200_000));
        check("1763200000123", Some(1_763_200_000));
        check("18", None);
        check("2025-11-15T09:46:40Z", Some(1_763_200_000));
        check("2025-11-15T09:46:40.5Z", Some(1_763_200_000));
        check("2025-11-15T10:46:40+01:00", Some(1_763_200_000));
        check("2025-11-15T04:46:40-0500", Some(1_763_200_000));
        check("2024-02-29T00:00:00Z", Some(1_709_164_800));
        check("1970-01-01T00:00:00Z", Some(0));
        check("2025-11-15", Some(1_763_164_800));
        check("2025-13-15T00:00:00Z", None);
        check("soon", None);
        check("", None);
    }

    #[test]
    fn moments_in_words() {
        let check = |words: &str, expected: Option<u64>| assert_eq!(moment_in(words), expected, "{words}");
        check("Claude AI usage limit reached|1763200000", Some(1_763_200_000));
        check("You will regain access on 2025-12-01 at 00:00 UTC.", Some(1_764_547_200));
        check("limit resets at: 2025-09-11T10:13:01+0000", Some(1_757_585_581));
        check("pre-paid x-y 3-4", None);
        check("resets 8pm (America/New_York)", None);
    }

    #[test]
    fn waits_in_words() {
        let check = |words: &str, expected: Option<u64>| assert_eq!(wait_in(words), expected, "{words}");
        check("Please try again in 6m0s.", Some(360_000));
        check("Please try again in 25m55.2s. Visit", Some(1_555_200));
        check("Please retry in 58.82s.", Some(58_820));
        check("Please retry after 8 seconds.", Some(8_000));
        check("try again in 250ms", Some(250));
        check("try again in 1 hour", Some(3_600_000));
        check("try again in a while", None);
        check("nothing", None);
    }

    #[test]
    fn a_moment_reads_back() {
        assert_eq!(in_utc(1_763_200_000), "2025-11-15 09:46 UTC");
        assert_eq!(in_utc(1_709_164_800), "2024-02-29 00:00 UTC");
        assert_eq!(in_utc(0), "1970-01-01 00:00 UTC");
        for days in (0..40_000).step_by(13) {
            let text = in_utc(days * 86_400 + 3_600);
            assert_eq!(moment(&text), Some(days * 86_400 + 3_600), "{text}");
        }
    }
}
