//! Dates.

/// A day of the proleptic Gregorian calendar, from the number of days since 1 January 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years of 400, 100, 4 and 1, counted from 1 March of the year 0, so that leap days come last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

/// `2026-03-02`, from seconds since 1970.
pub fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-03-02 14:05`, from seconds since 1970; with seconds where they are not 0.
pub fn date_and_time(seconds: u64) -> String {
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let second = if second == 0 { String::new() } else { format!(":{second:02}") };
    format!("{} {hour:02}:{minute:02}{second}", date(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // By GNU date -u -d @… +%F.
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_868_799, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_603_200, "2024-12-31"),
            (1_767_571_200, "2026-01-05"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), text);
        }
        assert_eq!(date_and_time(951_868_799), "2000-02-29 23:59:59");
        assert_eq!(date_and_time(1_767_571_200 + 3660), "2026-01-05 01:01");
        // Each day follows the one before.
        let mut last = civil(0);
        for day in 1..60_000 {
            let (year, month, date) = civil(day);
            let next = [(last.0, last.1, last.2 + 1), (last.0, last.1 + 1, 1), (last.0 + 1, 1, 1)];
            assert!(next.contains(&(year, month, date)) && date <= 31 && month <= 12, "{day}: {year}-{month}-{date}");
            last = (year, month, date);
        }
    }
}
