//! What was recorded of the paper's experiments, once a second, by node.

use std::collections::BTreeMap;

use evenhand_documents::{Cell, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};
use thiserror::Error;

use super::overhead::Overhead;
use crate::{Drawn, ReproduceError};

/// What has to be there. What the agent costs, `overhead`, may be.
const NEEDED: [&str; 6] = ["one-off", "one-on", "two-off-a", "two-off-b", "two-on-a", "two-on-b"];

/// A run of the paper's experiments in guests under emulation, in a tenth of the paper's time.
const OURS: &[(&str, &str)] = &[
    ("one-off", include_str!("../../data/poullie/one-off.csv")),
    ("one-on", include_str!("../../data/poullie/one-on.csv")),
    ("two-off-a", include_str!("../../data/poullie/two-off-a.csv")),
    ("two-off-b", include_str!("../../data/poullie/two-off-b.csv")),
    ("two-on-a", include_str!("../../data/poullie/two-on-a.csv")),
    ("two-on-b", include_str!("../../data/poullie/two-on-b.csv")),
    ("overhead", include_str!("../../data/poullie/overhead.csv")),
];

const COLUMNS: &str = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight";

/// Why a recording cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// It is not there.
    #[error("there is no recording {name}.csv")]
    Missing {
        /// Its name.
        name: String,
    },
    /// It is not what a sampler writes.
    #[error("{name}.csv, line {line}: found {found:?}, expected {expected}")]
    Content {
        /// Its name.
        name: String,
        /// From 1.
        line: usize,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}

/// Recordings by name: `one-off`, `one-on`, and `two-off-a`, `two-off-b`, `two-on-a`, `two-on-b`, of which a and b are
/// the nodes; and, if it was measured, what the agent costs: `overhead`.
#[derive(Clone, Debug, PartialEq)]
pub struct Recordings {
    by_name: BTreeMap<String, Recording>,
    overhead: Option<Overhead>,
}

impl Recordings {
    /// Our own.
    ///
    /// # Errors
    /// None, if the tests of this room pass.
    pub fn ours() -> Result<Recordings, RecordingError> {
        Recordings::read(OURS.iter().copied())
    }

    /// From the text of files, by their names without `.csv`. Others are left aside.
    ///
    /// # Errors
    /// If one that is needed is missing or cannot be read.
    pub fn read<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Recordings, RecordingError> {
        let texts: BTreeMap<&str, &str> = texts.into_iter().collect();
        let of = |name: &str| {
            let text = texts.get(name).ok_or_else(|| RecordingError::Missing { name: name.into() })?;
            Ok((name.to_owned(), Recording::read(name, text)?))
        };
        let overhead = texts.get("overhead").map(|text| Overhead::read("overhead", text)).transpose()?;
        Ok(Recordings { by_name: NEEDED.iter().map(|name| of(name)).collect::<Result<_, _>>()?, overhead })
    }

    pub(super) fn overhead(&self) -> Option<&Overhead> {
        self.overhead.as_ref()
    }

    pub(super) fn get(&self, name: &str) -> Result<&Recording, ReproduceError> {
        let missing = || RecordingError::Missing { name: name.into() };
        self.by_name.get(name).ok_or_else(|| missing().into())
    }
}

/// What is recorded of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Processors.
    Cpu,
    /// Bytes a second.
    Disk,
    /// The kernel's weight.
    CpuWeight,
}

impl What {
    fn title(self) -> &'static str {
        match self {
            What::Cpu => "processors",
            What::Disk => "disk, MiB/s",
            What::CpuWeight => "cpu.weight",
        }
    }

    fn of(self, sample: &Sample) -> f64 {
        match self {
            What::Cpu => sample.cpu,
            What::Disk => sample.disk / f64::from(1 << 20),
            What::CpuWeight => sample.cpu_weight,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    time: f64,
    cpu: f64,
    disk: f64,
    cpu_weight: f64,
}

/// One node's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recording {
    guests: BTreeMap<String, Vec<Sample>>,
}

impl Recording {
    fn read(name: &str, text: &str) -> Result<Recording, RecordingError> {
        let wrong = |line: usize, found: &str, expected| {
            Err(RecordingError::Content { name: name.into(), line, found: found.into(), expected })
        };
        let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
        match lines.next() {
            Some((_, COLUMNS)) => {}
            other => return wrong(1, other.map_or("", |(_, line)| line), COLUMNS),
        }
        let mut guests: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
        for (index, line) in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let number =
                |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
            let numbers = (number(0), number(3), number(4), number(5));
            let (Some(time), Some(cpu), Some(disk), Some(cpu_weight), 7) =
                (numbers.0, numbers.1, numbers.2, numbers.3, fields.len())
            else {
                return wrong(index + 1, line, "7 fields, of which times, uses and weights are numbers");
            };
            guests.entry(fields[1].to_owned()).or_default().push(Sample { time, cpu, disk, cpu_weight });
        }
        if guests.is_empty() {
            return wrong(2, "", "a sample");
        }
        Ok(Recording { guests })
    }

    /// Its last second.
    pub(super) fn end(&self) -> f64 {
        self.guests.values().flatten().fold(0.0, |end, sample| sample.time.max(end))
    }

    /// A guest's mean in that part of the whole time, for what is sampled at even times.
    pub(super) fn mean(&self, guest: &str, what: What, part: std::ops::Range<f64>) -> f64 {
        let end = self.end();
        let samples = self.guests.get(guest).into_iter().flatten();
        let within = samples.filter(|s| s.time >= part.start * end && s.time <= part.end * end);
        let (count, sum) = within.fold((0.0, 0.0), |(count, sum), s| (count + 1.0, sum + what.of(s)));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// A guest's part of what all of the node had.
    pub(super) fn share(&self, guest: &str, what: What, part: std::ops::Range<f64>) -> f64 {
        let all: f64 = self.guests.keys().map(|g| self.mean(g, what, part.clone())).sum();
        if all > 0.0 { self.mean(guest, what, part) / all } else { 0.0 }
    }

    /// From when on all guests' parts stay within `tolerance` of these, s; `None` if they do not.
    pub(super) fn settles(&self, shares: &[(&str, f64)], what: What, tolerance: f64) -> Option<f64> {
        let all = |index: usize| self.guests.values().filter_map(|s| s.get(index)).map(|s| what.of(s)).sum::<f64>();
        let outside = |(guest, share): &(&str, f64)| {
            let samples = self.guests.get(*guest)?.iter().enumerate();
            let far =
                |(index, s): &(usize, &Sample)| (what.of(s) - share * all(*index)).abs() > tolerance * all(*index);
            samples.filter(far).map(|(_, s)| s.time).reduce(f64::max)
        };
        let last = shares.iter().filter_map(outside).fold(0.0, f64::max);
        self.guests.values().flatten().map(|s| s.time).filter(|time| *time > last).reduce(f64::min)
    }

    /// One line a guest, each in its owner's colour or the next one.
    pub(super) fn draw(&self, name: &str, title: &str, what: What) -> Drawn {
        // Which users there are in the paper, in its order.
        const SERIES: [&str; 6] = ["d.1", "e.1", "f.1", "d.2", "e.2", "f.2"];
        let points = |samples: &Vec<Sample>| samples.iter().map(|s| (s.time, Some(what.of(s)))).collect::<Vec<_>>();
        let lines: Vec<_> = self.guests.iter().map(|(guest, samples)| (guest, points(samples))).collect();
        let all = self.guests.values().flatten().map(|s| what.of(s));
        let chart = LineChart {
            caption: Caption {
                name: format!("poullie-{name}"),
                title: title.into(),
                description: format!("What each guest has over time: {}.", what.title()),
            },
            x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, self.end(), Unit::Seconds) },
            y: Axis { title: what.title().into(), unit: Unit::Number, scale: Scale::linear(all, true, Unit::Number) },
            lines: lines
                .iter()
                .map(|(guest, points)| Line {
                    label: (*guest).clone(),
                    series: SERIES.iter().position(|s| s == guest).unwrap_or(SERIES.len()),
                    shape: Shape::Points(points),
                })
                .collect(),
        };
        Drawn { figure: chart.draw(), csv: self.csv(what) }
    }

    fn csv(&self, what: What) -> String {
        let mut csv = Csv::new(&["time_s", "guest", what.title()]);
        for (guest, samples) in &self.guests {
            for sample in samples {
                csv.row(&[Cell::Number(Some(sample.time)), Cell::Text(guest), Cell::Number(Some(what.of(sample)))]);
            }
        }
        csv.finish()
    }
}

/// As in 42.4 %.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight\n\
                        1,d.1,d,0.6,1048576,100,100\n1,e.1,e,0.2,0,50,50\n2,d.1,d,0.5,0,100,100\n2,e.1,e,0.5,0,100,100\n";

    #[test]
    fn our_own_recordings_can_be_read() {
        let ours = Recordings::ours().unwrap();
        NEEDED.iter().for_each(|name| assert!(ours.get(name).unwrap().end() > 25.0, "{name}"));
    }

    #[test]
    fn what_a_recording_says() {
        let recording = Recording::read("one", TEXT).unwrap();
        assert!((recording.share("d.1", What::Cpu, 0.0..0.5) - 0.75).abs() < 1e-12);
        assert!((recording.share("d.1", What::Cpu, 0.9..1.0) - 0.5).abs() < 1e-12);
        assert!((recording.mean("d.1", What::Disk, 0.0..1.0) - 0.5).abs() < 1e-12);
        assert_eq!(recording.share("e.1", What::Disk, 0.9..1.0), 0.0);
        let halves = [("d.1", 0.5), ("e.1", 0.5)];
        assert_eq!(recording.settles(&halves, What::Cpu, 0.1), Some(2.0));
        assert_eq!(recording.settles(&halves, What::Cpu, 0.3), Some(1.0));
        assert_eq!(recording.settles(&[("d.1", 0.9)], What::Cpu, 0.1), None);
        let drawn = recording.draw("test", "Test", What::CpuWeight);
        assert_eq!(drawn.csv.lines().nth(3), Some("1,e.1,50"));
    }

    #[test]
    fn what_is_no_recording_is_said() {
        let of = |text: &str| Recording::read("x", text).unwrap_err().to_string();
        assert!(of("").starts_with("x.csv, line 1: found \"\", expected time_s,"));
        assert!(of(COLUMNS).starts_with("x.csv, line 2: found \"\", expected a sample"));
        let wrong = ["1,d.1,d,0.6,0,100", "1,d.1,d,NaN,0,100,100", "1,d.1,d,-1,0,100,100", "", "1,d.1,d,0.6,0,,"];
        wrong.iter().for_each(|row| assert!(of(&format!("{COLUMNS}\n{row}\n")).contains("line 2"), "{row}"));
        assert_eq!(Recordings::read([("one-off", TEXT)]).unwrap_err().to_string(), "there is no recording one-on.csv");
    }
}
