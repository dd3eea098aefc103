//! Wall time and civil dates in UTC, as other programs write and read them: `2026-11-13T10:20:30.123Z`.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seconds of a day.
const DAY_S: u64 = 86_400;

/// The days from 0000-03-01 to 1970-01-01: years are counted from March, so that the leap day is the last of its year.
const DAYS_BEFORE_1970: u64 = 719_468;
/// The days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: u64 = 146_097;

/// Milliseconds since 1970, now.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Formats milliseconds since 1970 as `2026-11-13T10:20:30.123Z`.
pub fn iso(wall_ms: u64) -> String {
    let (seconds, millis) = (wall_ms / 1000, wall_ms % 1000);
    let (year, month, day) = date(seconds / DAY_S);
    let (hour, minute, second) = (seconds % DAY_S / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Formats milliseconds since 1970 for people: `2026-11-13 10:20:30 UTC`.
pub fn moment(wall_ms: u64) -> String {
    let iso = iso(wall_ms);
    format!("{} UTC", iso[..iso.len() - ".123Z".len()].replace('T', " "))
}

/// Milliseconds since 1970; `None` for what is no such text. A time zone may be given as an offset.
pub fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.split_at_checked(10)?;
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let time = time.strip_prefix(['T', ' '])?;
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.split(':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next().unwrap_or(Some(0))?);
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
    let millis = number(format!("{fraction:0<3}").get(..3)?)?;
    let (sign, offset) = zone.split_at_checked(1).unwrap_or(("Z", ""));
    let offset = match number(&offset.replace(':', "")).unwrap_or(0) {
        hours @ ..100 => hours * 3600,
        both => both / 100 * 3600 + both % 100 * 60,
    };
    let seconds = match sign {
        "+" => seconds.checked_sub(offset)?,
        "-" => seconds + offset,
        _ => seconds,
    };
    Some(seconds * 1000 + millis)
}

fn number(digits: &str) -> Option<u64> {
    const DIGITS_MAX: usize = 9;
    let plain =
        !digits.is_empty() && digits.len() <= DIGITS_MAX && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Year, month and day of a day counted from 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (cycle, day_of_cycle) = (days / CYCLE_DAYS, days % CYCLE_DAYS);
    let leap_days = day_of_cycle / 1460 - day_of_cycle / 36_524 + day_of_cycle / (CYCLE_DAYS - 1);
    let year_of_cycle = (day_of_cycle - leap_days) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (cycle * 400 + year_of_cycle + u64::from(month <= 2), month, day)
}

/// Counts the days from 1970-01-01 to a date; 0 for an earlier one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let (cycle, year_of_cycle) = (year / 400, year % 400);
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    (cycle * CYCLE_DAYS + day_of_cycle).saturating_sub(DAYS_BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_in_both_directions() {
        let check = |wall_ms: u64, expected: &str| {
            assert_eq!(iso(wall_ms), expected);
            assert_eq!(parse(expected), Some(wall_ms), "{expected}");
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_251_199_000, "2024-02-29T23:59:59.000Z");
        check(1_709_251_200_000, "2024-03-01T00:00:00.000Z");
        check(1_735_689_599_001, "2024-12-31T23:59:59.001Z");
        check(1_794_565_230_123, "2026-11-13T10:20:30.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn people_read_dates_and_times_without_fractions() {
        assert_eq!(
            [0, 951_782_400_000, 1_709_164_800_000, 1_773_480_413_999].map(moment),
            [
                "1970-01-01 00:00:00 UTC",
                "2000-02-29 00:00:00 UTC",
                "2024-02-29 00:00:00 UTC",
                "2026-03-14 09:26:53 UTC"
            ]
        );
    }

    #[test]
    fn days_and_dates_belong_together() {
        let check = |day: u64, expected: (u64, u64, u64)| assert_eq!(date(day), expected);
        check(0, (1970, 1, 1));
        check(11_016, (2000, 2, 29));
        check(11_017, (2000, 3, 1));
        check(20_772, (2026, 11, 15));
        check(20_818, (2026, 12, 31));
        check(20_819, (2027, 1, 1));
        for day in 0..80_000 {
            let (year, month, day_of_month) = date(day);
            assert_eq!(days(year, month, day_of_month), day);
        }
    }

    #[test]
    fn other_spellings_are_understood_or_refused() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(parse(text), expected, "{text}");
        check("2026-11-13T10:20:30Z", Some(1_794_565_230_000));
        check("2026-11-13T12:20:30.1+02:00", Some(1_794_565_230_100));
        check("2026-11-13T05:20:30.123456-05:00", Some(1_794_565_230_123));
        check("2026-11-13T05:20:30-0500", Some(1_794_565_230_000));
        check("2026-11-13T15:50:30+05:30", Some(1_794_565_230_000));
        check("2026-11-13T12:20:30+02", Some(1_794_565_230_000));
        check("2026-11-13 10:20:30", Some(1_794_565_230_000));
        check("2026-13-13T10:20:30Z", None);
        check("yesterday at noon", None);
        check("2026-11-13T10:20:30.12\u{e9}Z", None);
        check("2026-11-13T10:20:3\u{e9}Z", None);
        check("1969-12-31T23:59:59Z", None);
        check("", None);
    }
}
