//! Wall time as hosts read it.

/// Formats milliseconds since 1970 as `2026-11-13T10:20:30.123Z`.
pub(crate) fn iso(wall_ms: u64) -> String {
    let (seconds, millis) = (wall_ms / 1000, wall_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is the last of its year, in cycles of 400 years
    // (146,097 days) from 0000-03-01, which is 719,468 days before 1970.
    let days = days + 719_468;
    let (cycle, day_of_cycle) = (days / 146_097, days % 146_097);
    let leap_days = day_of_cycle / 1460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
    let year_of_cycle = (day_of_cycle - leap_days) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wall_ms: u64, expected: &str) {
        assert_eq!(iso(wall_ms), expected);
    }

    #[test]
    fn dates_are_right_around_leap_days_and_year_ends() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_251_199_000, "2024-02-29T23:59:59.000Z");
        check(1_709_251_200_000, "2024-03-01T00:00:00.000Z");
        check(1_735_689_599_001, "2024-12-31T23:59:59.001Z");
        check(1_794_565_230_123, "2026-11-13T10:20:30.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }
}
