//! Moments as text: `2026-05-01T12:00:00Z`, of RFC 3339, in UTC and whole seconds.

/// The days of 400 years, after which the calendar repeats.
const DAYS_OF_ERA: u64 = 146_097;
/// The days from 0000-03-01 to 1970-01-01. A year that begins in March ends with its leap day.
const DAYS_TO_1970: u64 = 719_468;
const DAY: u64 = 86_400;
/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

/// Returns the text of a moment, in Unix seconds. A moment after the year 9999 is written as its last second.
///
/// ```
/// assert_eq!(antiphon_seal::utc::format(1_777_636_800), "2026-05-01T12:00:00Z");
/// ```
#[must_use]
pub fn format(unix_seconds: u64) -> String {
    let seconds = unix_seconds.min(LAST);
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the moment of a text that [`format`](fn@format) writes, in Unix seconds; `None` for any other text.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = text.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || day == 0 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day)?.checked_mul(DAY)? + hour * 3600 + minute * 60 + second;
    // A day that the month does not have, and other separators, are found by writing the moment again.
    (format(seconds) == text).then_some(seconds)
}

/// Returns the days from 1970-01-01 to a date; `None` before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year / 4 - year / 100 + year / 400;
    (365 * year + leap_days + day_of_year).checked_sub(DAYS_TO_1970)
}

/// Returns the year, month and day that begin this number of days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let (era, day) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    // The leap days before this day are taken out, so that each year has 365 days.
    let year_of_era = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_ERA - 1)) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values come from another program (`date -u`).
    #[test]
    fn moments_have_one_text() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_777_636_800, "2026-05-01T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(format(seconds), text);
            assert_eq!(parse(text), Some(seconds));
        }
        assert_eq!(format(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn every_day_comes_back() {
        for day in 0..150_000 {
            let seconds = day * DAY + 45_296;
            assert_eq!(parse(&format(seconds)), Some(seconds));
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "2026-05-01",
            "2026-05-01T12:00:00",
            "2026-05-01 12:00:00Z",
            "2026-05-01T12:00:00+00:00",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-05-00T12:00:00Z",
            "2026-05-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "+026-05-01T12:00:00Z",
            "2026-05-01T12:00:00Zx",
            "२026-05-01T12:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
