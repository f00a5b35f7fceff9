//! Settings of backfilling: what is reserved, by which end times, when that is planned, and which jobs pass.

use std::fmt;
use std::str::FromStr;

/// How many waiting jobs have a reservation at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// So many, the first in the policy's order that cannot start.
    First(u32),
    /// All.
    All,
}

/// How long a job is planned to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedLength {
    /// Until its limit: its estimate.
    Limit,
    /// Until its true end.
    RunTime,
}

/// When reservations are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanReservations {
    /// All anew at each event.
    Anew,
    /// Each once; it is kept until its job starts.
    Once,
    /// Each once; after a job has ended before its planned end they move to earlier starts, in the policy's order.
    Compress,
}

/// When a job with a reservation that was planned before starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedStart {
    /// As soon as it fits.
    Early,
    /// Not before the planned start.
    Planned,
}

/// Which jobs start before one with a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Those that take nothing from a reservation.
    Beside,
    /// Those that end before the reserved start.
    Before,
    /// All that fit: a reservation is a planned start, and keeps nothing free.
    Any,
}

/// In which order jobs without a reservation are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillOrder {
    /// The policy's.
    Policy,
    /// By planned length.
    Shortest,
    /// By planned length, the longest first.
    Longest,
    /// By the amount of the first resource.
    Narrowest,
    /// By the amount of the first resource, the largest first.
    Widest,
}

/// Which events are handled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// All of an instant, then jobs are started.
    Together,
    /// Jobs are started after each end and each submission.
    Each,
}

/// How the processors of a pool are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// How many are free.
    Counted,
    /// Which are free: a reservation is of particular ones.
    Named,
}

/// Backfilling by a plan of reservations; the default is EASY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBackfill {
    /// What is reserved.
    pub reserve: Reserve,
    /// How long jobs that wait are planned to run.
    pub waiting: PlannedLength,
    /// How long jobs that run are planned to run.
    pub running: PlannedLength,
    /// When reservations are planned.
    pub plan: PlanReservations,
    /// When a job with a reservation starts.
    pub start: ReservedStart,
    /// Which jobs start before one with a reservation.
    pub passing: Passing,
    /// In which order the other jobs are examined.
    pub order: BackfillOrder,
    /// Which events are handled together.
    pub events: Events,
    /// How the processors of a pool are planned.
    pub processors: Processors,
}

impl Default for PlannedBackfill {
    fn default() -> Self {
        PlannedBackfill::EASY
    }
}

/// The words of a setting.
type Words<T> = &'static [(&'static str, T)];

const LENGTHS: Words<PlannedLength> = &[("limit", PlannedLength::Limit), ("run-time", PlannedLength::RunTime)];
const PLANS: Words<PlanReservations> =
    &[("anew", PlanReservations::Anew), ("once", PlanReservations::Once), ("compress", PlanReservations::Compress)];
const STARTS: Words<ReservedStart> = &[("early", ReservedStart::Early), ("planned", ReservedStart::Planned)];
const PASSING: Words<Passing> = &[("beside", Passing::Beside), ("before", Passing::Before), ("any", Passing::Any)];
const ORDERS: Words<BackfillOrder> = &[
    ("policy", BackfillOrder::Policy),
    ("shortest", BackfillOrder::Shortest),
    ("longest", BackfillOrder::Longest),
    ("narrowest", BackfillOrder::Narrowest),
    ("widest", BackfillOrder::Widest),
];
const EVENTS: Words<Events> = &[("together", Events::Together), ("each", Events::Each)];
const PROCESSORS: Words<Processors> = &[("counted", Processors::Counted), ("named", Processors::Named)];

/// The names of the settings.
const KEYS: &str = "reserve, waiting, running, plan, start, passing, order, events, processors";

fn read<T: Copy>(key: &str, words: Words<T>, value: &str) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, setting)| *setting).ok_or_else(|| {
        let words = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        format!("{key}: found {value:?}, expected one of: {words}")
    })
}

fn word<T: Copy + PartialEq>(words: Words<T>, setting: T) -> &'static str {
    words.iter().find(|(_, other)| *other == setting).map_or("", |(word, _)| *word)
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Reserve::All),
            number => number
                .parse()
                .map(Reserve::First)
                .map_err(|_| format!("reserve: found {number:?}, expected how many jobs have a reservation, or all")),
        }
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::First(jobs) => write!(f, "{jobs}"),
            Reserve::All => f.write_str("all"),
        }
    }
}

impl PlannedBackfill {
    /// EASY backfilling (Lifka 1995).
    pub const EASY: PlannedBackfill = PlannedBackfill {
        reserve: Reserve::First(1),
        waiting: PlannedLength::Limit,
        running: PlannedLength::Limit,
        plan: PlanReservations::Anew,
        start: ReservedStart::Early,
        passing: Passing::Beside,
        order: BackfillOrder::Policy,
        events: Events::Together,
        processors: Processors::Counted,
    };

    /// Conservative backfilling (Mu'alem and Feitelson 2001).
    pub const CONSERVATIVE: PlannedBackfill =
        PlannedBackfill { reserve: Reserve::All, plan: PlanReservations::Compress, ..PlannedBackfill::EASY };

    /// Changes one setting, `KEY=VALUE`.
    ///
    /// # Errors
    /// If the key is unknown or does not have such a value; the text says what is expected.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(format!("found {setting:?}, expected KEY=VALUE with one of: {KEYS}"));
        };
        match key {
            "reserve" => self.reserve = value.parse()?,
            "waiting" => self.waiting = read(key, LENGTHS, value)?,
            "running" => self.running = read(key, LENGTHS, value)?,
            "plan" => self.plan = read(key, PLANS, value)?,
            "start" => self.start = read(key, STARTS, value)?,
            "passing" => self.passing = read(key, PASSING, value)?,
            "order" => self.order = read(key, ORDERS, value)?,
            "events" => self.events = read(key, EVENTS, value)?,
            "processors" => self.processors = read(key, PROCESSORS, value)?,
            _ => return Err(format!("found the setting {key:?}, expected one of: {KEYS}")),
        }
        Ok(())
    }

    /// Returns whether the settings go together.
    ///
    /// # Errors
    /// A sentence on two that do not.
    pub fn check(&self) -> Result<(), String> {
        let is_kept = self.plan != PlanReservations::Anew;
        let problem = if self.start == ReservedStart::Planned && !is_kept {
            "start=planned: a plan made anew at each event has no start to wait for; add plan=once"
        } else if self.passing != Passing::Beside && self.reserve != Reserve::First(1) {
            "passing: before and any are about one reservation; add reserve=1, or leave passing out"
        } else if self.waiting != self.running && is_kept {
            "waiting and running differ: that needs plan=anew; what is kept must hold for a job once it runs"
        } else if self.events == Events::Each && is_kept {
            "events=each: needs plan=anew; what is kept was planned for all ends of an instant"
        } else if self.order != BackfillOrder::Policy && self.reserve == Reserve::All {
            "order: is that of jobs without a reservation, and with reserve=all there are none; leave one out"
        } else {
            return Ok(());
        };
        Err(problem.into())
    }

    /// Writes the settings that differ from those of `base`.
    pub fn differences(&self, base: &PlannedBackfill) -> String {
        let of = |s: &PlannedBackfill| {
            [
                ("reserve", s.reserve.to_string()),
                ("waiting", word(LENGTHS, s.waiting).into()),
                ("running", word(LENGTHS, s.running).into()),
                ("plan", word(PLANS, s.plan).into()),
                ("start", word(STARTS, s.start).into()),
                ("passing", word(PASSING, s.passing).into()),
                ("order", word(ORDERS, s.order).into()),
                ("events", word(EVENTS, s.events).into()),
                ("processors", word(PROCESSORS, s.processors).into()),
            ]
        };
        let both = of(self).into_iter().zip(of(base));
        let differing = both.filter(|((_, own), (_, other))| own != other);
        differing.map(|((key, value), _)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }
}
