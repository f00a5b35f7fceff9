//! Recordings of the paper's experiments, with one sample per second and node.

use std::collections::BTreeMap;

use evenhand_documents::{Cell, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};
use thiserror::Error;

use super::overhead_measurements::Overhead;
use crate::{FigureWithData, ReproduceError};

/// The recordings that must be present; `overhead` is optional.
const REQUIRED: [&str; 6] = ["one-off", "one-on", "two-off-a", "two-off-b", "two-on-a", "two-on-b"];

/// Recordings of the paper's experiments in emulated machines, in a tenth of the paper's time.
const BUNDLED: &[(&str, &str)] = &[
    ("one-off", include_str!("../../data/poullie/one-off.csv")),
    ("one-on", include_str!("../../data/poullie/one-on.csv")),
    ("two-off-a", include_str!("../../data/poullie/two-off-a.csv")),
    ("two-off-b", include_str!("../../data/poullie/two-off-b.csv")),
    ("two-on-a", include_str!("../../data/poullie/two-on-a.csv")),
    ("two-on-b", include_str!("../../data/poullie/two-on-b.csv")),
    ("overhead", include_str!("../../data/poullie/overhead.csv")),
];

const COLUMNS: &str = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight";

/// An error of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// A recording is missing.
    #[error("there is no recording {name}.csv")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A recording is not in the sampler's format.
    #[error("{name}.csv, line {line}: found {found:?}, expected {expected}")]
    Content {
        /// Its name.
        name: String,
        /// The line number, from 1.
        line: usize,
        /// The text found.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
}

/// Recordings by name: experiments `one` and `two`, without (`off`) and with (`on`) the agent, and for experiment two
/// by node (`a`, `b`); and optionally `overhead`, the measured CPU time of updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Recordings {
    by_name: BTreeMap<String, Recording>,
    overhead: Option<Overhead>,
}

impl Recordings {
    /// Returns the recordings that come with the program.
    ///
    /// # Errors
    /// None, if the tests of this crate pass.
    pub fn bundled() -> Result<Recordings, RecordingError> {
        Recordings::read(BUNDLED.iter().copied())
    }

    /// Reads recordings from texts of files by their names without `.csv`. Ignores files of other names.
    ///
    /// # Errors
    /// Returns an error if a required recording is missing or a recording is invalid.
    pub fn read<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Recordings, RecordingError> {
        let texts: BTreeMap<&str, &str> = texts.into_iter().collect();
        let of = |name: &str| {
            let text = texts.get(name).ok_or_else(|| RecordingError::Missing { name: name.into() })?;
            Ok((name.to_owned(), Recording::read(name, text)?))
        };
        let overhead = texts.get("overhead").map(|text| Overhead::read("overhead", text)).transpose()?;
        Ok(Recordings { by_name: REQUIRED.iter().map(|name| of(name)).collect::<Result<_, _>>()?, overhead })
    }

    pub(super) fn overhead(&self) -> Option<&Overhead> {
        self.overhead.as_ref()
    }

    pub(super) fn get(&self, name: &str) -> Result<&Recording, ReproduceError> {
        let missing = || RecordingError::Missing { name: name.into() };
        self.by_name.get(name).ok_or_else(|| missing().into())
    }
}

/// A measured quantity of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// CPU time per time: processors.
    Cpu,
    /// Disk throughput, in MiB/s.
    Disk,
    /// The kernel's CPU weight.
    CpuWeight,
}

impl Metric {
    fn title(self) -> &'static str {
        match self {
            Metric::Cpu => "processors",
            Metric::Disk => "disk, MiB/s",
            Metric::CpuWeight => "cpu.weight",
        }
    }

    fn of(self, sample: &Sample) -> f64 {
        match self {
            Metric::Cpu => sample.cpu,
            Metric::Disk => sample.disk / f64::from(1 << 20),
            Metric::CpuWeight => sample.cpu_weight,
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

/// The recording of one node, by VM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recording {
    vms: BTreeMap<String, Vec<Sample>>,
}

impl Recording {
    fn read(name: &str, text: &str) -> Result<Recording, RecordingError> {
        let error = |line: usize, found: &str, expected| {
            Err(RecordingError::Content { name: name.into(), line, found: found.into(), expected })
        };
        let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
        match lines.next() {
            Some((_, COLUMNS)) => {}
            other => return error(1, other.map_or("", |(_, line)| line), COLUMNS),
        }
        let mut vms: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
        for (index, line) in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let number =
                |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
            let numbers = (number(0), number(3), number(4), number(5));
            let (Some(time), Some(cpu), Some(disk), Some(cpu_weight), 7) =
                (numbers.0, numbers.1, numbers.2, numbers.3, fields.len())
            else {
                return error(index + 1, line, "7 fields, of which times, uses and weights are numbers");
            };
            vms.entry(fields[1].to_owned()).or_default().push(Sample { time, cpu, disk, cpu_weight });
        }
        if vms.is_empty() {
            return error(2, "", "a sample");
        }
        Ok(Recording { vms })
    }

    /// Returns the time of the last sample, in seconds.
    pub(super) fn end(&self) -> f64 {
        self.vms.values().flatten().fold(0.0, |end, sample| sample.time.max(end))
    }

    /// Returns a VM's mean in a part of the recording (fractions of its length); 0 without samples.
    pub(super) fn mean(&self, vm: &str, metric: Metric, part: std::ops::Range<f64>) -> f64 {
        let end = self.end();
        let samples = self.vms.get(vm).into_iter().flatten();
        let within = samples.filter(|s| s.time >= part.start * end && s.time <= part.end * end);
        let (count, sum) = within.fold((0.0, 0.0), |(count, sum), s| (count + 1.0, sum + metric.of(s)));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Returns a VM's share of the sum over the node's VMs.
    pub(super) fn share(&self, vm: &str, metric: Metric, part: std::ops::Range<f64>) -> f64 {
        let all: f64 = self.vms.keys().map(|vm| self.mean(vm, metric, part.clone())).sum();
        if all > 0.0 { self.mean(vm, metric, part) / all } else { 0.0 }
    }

    /// Returns the time, in seconds, from which all VMs' shares stay within `tolerance` of these; `None` if they never
    /// do.
    pub(super) fn settles(&self, shares: &[(&str, f64)], metric: Metric, tolerance: f64) -> Option<f64> {
        let all = |index: usize| self.vms.values().filter_map(|s| s.get(index)).map(|s| metric.of(s)).sum::<f64>();
        let outside = |(vm, share): &(&str, f64)| {
            let samples = self.vms.get(*vm)?.iter().enumerate();
            let far =
                |(index, s): &(usize, &Sample)| (metric.of(s) - share * all(*index)).abs() > tolerance * all(*index);
            samples.filter(far).map(|(_, s)| s.time).reduce(f64::max)
        };
        let last = shares.iter().filter_map(outside).fold(0.0, f64::max);
        self.vms.values().flatten().map(|s| s.time).filter(|time| *time > last).reduce(f64::min)
    }

    /// Draws one line per VM, in a colour that is the same in all figures.
    pub(super) fn draw(&self, name: &str, title: &str, metric: Metric) -> FigureWithData {
        // The paper's VMs, in the order of its colours.
        const SERIES: [&str; 6] = ["d.1", "e.1", "f.1", "d.2", "e.2", "f.2"];
        let points = |samples: &Vec<Sample>| samples.iter().map(|s| (s.time, Some(metric.of(s)))).collect::<Vec<_>>();
        let lines: Vec<_> = self.vms.iter().map(|(vm, samples)| (vm, points(samples))).collect();
        let all = self.vms.values().flatten().map(|s| metric.of(s));
        let chart = LineChart {
            caption: Caption {
                name: format!("poullie-{name}"),
                title: title.into(),
                description: format!("Measurement of each VM over time: {}.", metric.title()),
            },
            x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, self.end(), Unit::Seconds) },
            y: Axis { title: metric.title().into(), unit: Unit::Number, scale: Scale::linear(all, true, Unit::Number) },
            lines: lines
                .iter()
                .map(|(vm, points)| Line {
                    label: (*vm).clone(),
                    series: SERIES.iter().position(|s| s == vm).unwrap_or(SERIES.len()),
                    shape: Shape::Points(points),
                })
                .collect(),
        };
        FigureWithData { figure: chart.draw(), csv: self.csv(metric) }
    }

    fn csv(&self, metric: Metric) -> String {
        let mut csv = Csv::new(&["time_s", "guest", metric.title()]);
        for (vm, samples) in &self.vms {
            for sample in samples {
                csv.row(&[Cell::Number(Some(sample.time)), Cell::Text(vm), Cell::Number(Some(metric.of(sample)))]);
            }
        }
        csv.finish()
    }
}

/// Formats a fraction: `42.4 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight\n\
                        1,d.1,d,0.6,1048576,100,100\n1,e.1,e,0.2,0,50,50\n2,d.1,d,0.5,0,100,100\n2,e.1,e,0.5,0,100,100\n";

    #[test]
    fn the_bundled_recordings_can_be_read() {
        let bundled = Recordings::bundled().unwrap();
        REQUIRED.iter().for_each(|name| assert!(bundled.get(name).unwrap().end() > 25.0, "{name}"));
    }

    #[test]
    fn a_recording_gives_shares_means_and_the_time_at_which_shares_settle() {
        let recording = Recording::read("one", TEXT).unwrap();
        assert!((recording.share("d.1", Metric::Cpu, 0.0..0.5) - 0.75).abs() < 1e-12);
        assert!((recording.share("d.1", Metric::Cpu, 0.9..1.0) - 0.5).abs() < 1e-12);
        assert!((recording.mean("d.1", Metric::Disk, 0.0..1.0) - 0.5).abs() < 1e-12);
        assert_eq!(recording.share("e.1", Metric::Disk, 0.9..1.0), 0.0);
        let halves = [("d.1", 0.5), ("e.1", 0.5)];
        assert_eq!(recording.settles(&halves, Metric::Cpu, 0.1), Some(2.0));
        assert_eq!(recording.settles(&halves, Metric::Cpu, 0.3), Some(1.0));
        assert_eq!(recording.settles(&[("d.1", 0.9)], Metric::Cpu, 0.1), None);
        let figure = recording.draw("test", "Test", Metric::CpuWeight);
        assert_eq!(figure.csv.lines().nth(3), Some("1,e.1,50"));
    }

    #[test]
    fn invalid_and_missing_recordings_are_reported() {
        let of = |text: &str| Recording::read("x", text).unwrap_err().to_string();
        assert!(of("").starts_with("x.csv, line 1: found \"\", expected time_s,"));
        assert!(of(COLUMNS).starts_with("x.csv, line 2: found \"\", expected a sample"));
        let invalid = ["1,d.1,d,0.6,0,100", "1,d.1,d,NaN,0,100,100", "1,d.1,d,-1,0,100,100", "", "1,d.1,d,0.6,0,,"];
        invalid.iter().for_each(|row| assert!(of(&format!("{COLUMNS}\n{row}\n")).contains("line 2"), "{row}"));
        assert_eq!(Recordings::read([("one-off", TEXT)]).unwrap_err().to_string(), "there is no recording one-on.csv");
    }
}
