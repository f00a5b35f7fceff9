//! Places the ticks of an axis of dates at round times of the calendar: hours, days, Mondays, months, years.

use evenhand_model::calendar::{date, date_and_time, parse_date_time};

use super::ticks::Tick;

const DAY: u64 = 86_400;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Maximum number of ticks: more labels would touch.
const MAX_TICKS: usize = 8;

/// A step between ticks.
#[derive(Clone, Copy)]
enum Step {
    /// Seconds; they divide a day.
    Seconds(u64),
    /// Whole days since a Monday.
    Days(u64),
    /// Months; they divide a year, or are whole years.
    Months(u64),
}

const STEPS: [Step; 20] = [
    Step::Seconds(1),
    Step::Seconds(10),
    Step::Seconds(60),
    Step::Seconds(300),
    Step::Seconds(900),
    Step::Seconds(3600),
    Step::Seconds(10_800),
    Step::Seconds(21_600),
    Step::Seconds(43_200),
    Step::Days(1),
    Step::Days(2),
    Step::Days(7),
    Step::Days(14),
    Step::Months(1),
    Step::Months(2),
    Step::Months(3),
    Step::Months(6),
    Step::Months(12),
    Step::Months(60),
    Step::Months(240),
];

/// Returns the ticks between `low` and `high`, in seconds since `origin`, which is in seconds since 1970.
pub(super) fn date_ticks(low: f64, high: f64, origin: u64) -> Vec<Tick> {
    let from = origin.saturating_add(low.max(0.0).ceil() as u64);
    let until = origin.saturating_add(high.max(0.0) as u64);
    let fits = |step: Step| instants(step, from, until).filter(|all| all.len() <= MAX_TICKS).map(|all| (step, all));
    let Some((step, instants)) = STEPS.into_iter().find_map(fits) else { return Vec::new() };
    let mut before: Option<String> = None;
    let labelled = instants.into_iter().filter_map(|at| {
        let text = date_and_time(at)?;
        let label = label(step, at, &text, before.as_deref());
        // A time of day names no year.
        if !label.contains(':') {
            before = Some(text);
        }
        Some(Tick { value: (at - origin) as f64, label })
    });
    labelled.collect()
}

/// Returns the multiples of a step from `from` to `until`; `None` if there are many more than fit.
fn instants(step: Step, from: u64, until: u64) -> Option<Vec<u64>> {
    match step {
        Step::Seconds(step) => multiples(from, until, step, 0),
        // 5 January 1970 was a Monday.
        Step::Days(days) => multiples(from, until, days * DAY, 4 * DAY),
        Step::Months(months) => {
            let month_of = |at: u64| Some(numbers(&date(at)?)).map(|[year, month, _]| year * 12 + month - 1);
            let first = month_of(from)?.div_ceil(months) * months;
            let last = month_of(until)?;
            if last.saturating_sub(first) / months > 2 * MAX_TICKS as u64 {
                return None;
            }
            // The month of `from` may have begun before it.
            let begins = (first..=last).step_by(months as usize).map(|month| {
                let text = format!("{:04}-{:02}-01T00:00:00", month / 12, month % 12 + 1);
                parse_date_time(text.as_bytes()).map(|time| time.nanos() / 1_000_000_000)
            });
            Some(begins.flatten().filter(|at| (from..=until).contains(at)).collect())
        }
    }
}

fn multiples(from: u64, until: u64, step: u64, phase: u64) -> Option<Vec<u64>> {
    let first = from.saturating_sub(phase).div_ceil(step) * step + phase;
    let few = until.saturating_sub(first) / step <= 2 * MAX_TICKS as u64;
    few.then(|| (first..=until).step_by(step as usize).collect())
}

/// The year, month and day of a text that begins with a date.
fn numbers(date: &str) -> [u64; 3] {
    let mut parts = date.get(..10).unwrap_or(date).split('-').map(|part| part.parse().unwrap_or(1));
    [(); 3].map(|()| parts.next().unwrap_or(1))
}

/// Labels a tick; the year stands where it is new, and the date beside times of day where that is new.
fn label(step: Step, at: u64, text: &str, before: Option<&str>) -> String {
    let [year, month, day] = numbers(text);
    let name = MONTHS[(month.clamp(1, 12) - 1) as usize];
    let new_year = before.is_none_or(|before| numbers(before)[0] != year);
    let year = if new_year { format!(" {year}") } else { String::new() };
    match step {
        Step::Months(months) if months.is_multiple_of(12) => year.trim().to_owned(),
        Step::Months(_) => format!("{name}{year}"),
        Step::Days(_) => format!("{day} {name}{year}"),
        Step::Seconds(_) if before.is_none_or(|before| before[..10] != text[..10]) && at.is_multiple_of(DAY) => {
            format!("{day} {name}{year}")
        }
        Step::Seconds(_) => text[11..].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: &str, days: f64) -> Vec<String> {
        let origin = parse_date_time(from.as_bytes()).unwrap().nanos() / 1_000_000_000;
        date_ticks(0.0, days * 86_400.0, origin).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_at_round_times_and_name_what_is_new() {
        assert_eq!(
            labels("2026-03-02T06:00:00", 0.75),
            ["06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "3 Mar 2026"]
        );
        assert_eq!(labels("2026-03-02T00:00:00", 4.0), ["2 Mar 2026", "3 Mar", "4 Mar", "5 Mar", "6 Mar"]);
        assert_eq!(labels("2012-12-31T23:22:27", 30.0), ["7 Jan 2013", "14 Jan", "21 Jan", "28 Jan"]);
        assert_eq!(labels("1996-09-23T12:00:00", 333.0)[..3], ["Nov 1996", "Jan 1997", "Mar"]);
        assert_eq!(labels("1996-09-23T12:00:00", 2000.0)[..2], ["1997", "1998"]);
    }

    #[test]
    fn any_range_has_few_ticks_in_order() {
        for days in [1e-4, 0.01, 0.5, 3.0, 9.0, 40.0, 100.0, 400.0, 3000.0, 40_000.0] {
            let ticks = date_ticks(0.0, days * 86_400.0, 1_700_000_123);
            assert!(ticks.len() <= MAX_TICKS && ticks.windows(2).all(|two| two[0].value < two[1].value), "{ticks:?}");
            assert!(days < 0.01 || ticks.len() >= 2, "{days}: {ticks:?}");
        }
    }
}
