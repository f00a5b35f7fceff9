//! One variation of a workload.

use evenhand_model::random::Stream;
use evenhand_model::{Span, Time, UserId, Workload};
use evenhand_policies::{DrawnTies, Policy};

use super::{Repeats, Vary, WEEK};

/// A workload as it could have been recorded as well, and the draws that decide ties.
#[derive(Clone, Debug)]
pub struct Variation {
    /// The varied workload. Users have the numbers of the original; some may have no tasks.
    pub workload: Workload,
    /// The seed of the draws that decide ties; `None`: the log decides.
    pub ties: Option<u64>,
}

/// A row of the original with its new submission, and the draw that orders rows of the same submission.
struct Resubmission {
    submit: Time,
    draw: u64,
    row: u32,
}

impl Variation {
    /// Draws variation `number` of a workload; the same for the same seed and number, whatever the number of repeats.
    /// Variation 0 is the workload itself.
    ///
    /// # Panics
    /// Panics if the workload has 2^32 rows or more, or if weeks are drawn from less than two
    /// ([`check`](Repeats::check)).
    pub fn new(workload: &Workload, repeats: &Repeats, number: u32) -> Variation {
        if number == 0 {
            return Variation { workload: workload.clone(), ties: None };
        }
        let stream = |name: &str| Stream::new(repeats.seed, name, u64::from(number));
        let varies = |vary: Vary| repeats.vary.contains(&vary);
        let mut rows: Vec<Resubmission> = (0u32..)
            .zip(&workload.columns().submit)
            .map(|(row, submit)| Resubmission { submit: *submit, draw: 0, row })
            .collect();
        if varies(Vary::Weeks) {
            rows = draw_weeks(rows, &mut stream("weeks"));
        }
        if varies(Vary::Users) {
            shift_users(&mut rows, workload, &mut stream("users"));
        }
        if varies(Vary::Arrivals) {
            let (resolution, mut stream) = (resolution(workload), stream("arrivals"));
            for row in &mut rows {
                let by = Span::from_nanos(stream.below(resolution.nanos()));
                row.submit = row.submit.checked_add(by).unwrap_or(row.submit);
            }
        }
        if varies(Vary::Ties) || varies(Vary::Arrivals) {
            let mut stream = stream("order");
            rows.iter_mut().for_each(|row| row.draw = stream.bits());
        }
        rows.sort_by_key(|row| (row.submit, row.draw));
        let (order, submit): (Vec<u32>, Vec<Time>) = rows.into_iter().map(|row| (row.row, row.submit)).unzip();
        let ties = varies(Vary::Ties).then(|| stream("draws").bits());
        Variation { workload: workload.resubmitted(&order, submit), ties }
    }

    /// Makes a newly built policy decide ties as this variation does.
    pub fn with_ties(&self, policy: Box<dyn Policy>) -> Box<dyn Policy> {
        match self.ties {
            Some(seed) => Box::new(DrawnTies::new(policy, seed)),
            None => policy,
        }
    }
}

/// Replaces each whole week by one drawn from all whole weeks; what follows the last whole week stays.
fn draw_weeks(rows: Vec<Resubmission>, stream: &mut Stream) -> Vec<Resubmission> {
    let (Some(first), Some(last)) = (rows.first().map(|r| r.submit), rows.last().map(|r| r.submit)) else {
        return rows;
    };
    let week_of = |submit: Time| (submit - first).nanos() / WEEK.nanos();
    let weeks = week_of(last);
    let begin = |week: u64| rows.partition_point(|row| week_of(row.submit) < week);
    let mut drawn = Vec::with_capacity(rows.len());
    for week in 0..weeks {
        let from = stream.below(weeks);
        for row in &rows[begin(from)..begin(from + 1)] {
            let nanos = row.submit.nanos() + week * WEEK.nanos() - from * WEEK.nanos();
            drawn.push(Resubmission { submit: Time::from_nanos(nanos), ..*row });
        }
    }
    let rest = begin(weeks);
    drawn.extend(rows.into_iter().skip(rest));
    drawn
}

/// Moves the tasks of each user by a drawn number of weeks; what passes the end of the last begun week goes on at the
/// beginning.
fn shift_users(rows: &mut [Resubmission], workload: &Workload, stream: &mut Stream) {
    let (Some(first), Some(last)) = (rows.first().map(|r| r.submit), rows.last().map(|r| r.submit)) else { return };
    let weeks = (last - first).nanos() / WEEK.nanos() + 1;
    let shifts: Vec<u64> = workload.users().iter().map(|_| stream.below(weeks) * WEEK.nanos()).collect();
    let user = |row: u32| -> UserId { workload.columns().user[row as usize] };
    for row in rows {
        let moved = ((row.submit - first).nanos() + shifts[user(row.row).index()]) % (weeks * WEEK.nanos());
        row.submit = first.checked_add(Span::from_nanos(moved)).unwrap_or(row.submit);
    }
}

/// The units in which logs are written, finest first, each with the number of different submissions from which on it can
/// be told from chance.
const UNITS: [(Span, usize); 8] = [
    (Span::from_nanos(1), 0),
    (Span::from_nanos(1_000), 0),
    (Span::from_nanos(1_000_000), 0),
    (Span::from_secs(1), 0),
    (Span::from_secs(60), 20),
    (Span::from_secs(300), 20),
    (Span::from_secs(900), 20),
    (Span::from_secs(3600), 20),
];

/// Returns the resolution of the submissions of a workload: the coarsest unit of which all are whole multiples, counted
/// from the first. A unit above a second needs 20 different submissions.
///
/// ```
/// use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};
/// let of = |step: u64| {
///     let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
///     for i in 0..30 {
///         builder.push(&Task { submit: Time::from_nanos(5 + i * step), user: "ann", amounts: &[1], ..Task::default() });
///     }
///     evenhand_study::resolution(&builder.finish().unwrap())
/// };
/// assert_eq!(of(60_000_000_000), Span::from_secs(60));
/// assert_eq!(of(7_000_000_000), Span::from_secs(1));
/// assert_eq!(of(7_000), Span::from_nanos(1_000));
/// ```
pub fn resolution(workload: &Workload) -> Span {
    let submit = &workload.columns().submit;
    let Some(first) = submit.first() else { return Span::from_nanos(1) };
    let mut divisor = 0;
    let mut different = 1;
    for (before, submit) in submit.iter().zip(submit.iter().skip(1)) {
        different += usize::from(before != submit);
        divisor = greatest_common_divisor(divisor, (*submit - *first).nanos());
    }
    let fits = |(unit, needed): &&(Span, usize)| divisor % unit.nanos() == 0 && different >= *needed;
    // Without two different submissions nothing is known of the resolution: a second, as most logs have.
    let known = UNITS.iter().rev().find(fits).map_or(Span::from_nanos(1), |(unit, _)| *unit);
    if divisor == 0 { Span::from_secs(1) } else { known }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
