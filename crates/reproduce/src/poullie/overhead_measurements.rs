//! Reads measurements of the CPU time of updates for several numbers of VMs and update intervals.

use super::recording::RecordingError;

const COLUMNS: &str = "guests,interval_s,loaded,variant,cpu_s_per_4min";

/// The program that does the updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The agent.
    Agent,
    /// Only reads the same counters, from open descriptors: a lower bound.
    Floor,
    /// Opens and closes each file at each update, and writes each value.
    Naive,
}

impl Variant {
    pub(super) const ALL: [Variant; 3] = [Variant::Agent, Variant::Floor, Variant::Naive];

    pub(super) fn name(self) -> &'static str {
        match self {
            Variant::Agent => "agent",
            Variant::Floor => "floor",
            Variant::Naive => "naive",
        }
    }
}

/// The measurement of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// The number of VMs.
    pub(super) vms: f64,
    /// The time between updates, in seconds.
    pub(super) interval: f64,
    /// Whether the VMs have load.
    pub(super) loaded: bool,
    pub(super) variant: Variant,
    /// CPU time in four minutes, in seconds.
    pub(super) cpu: f64,
}

/// The measurements of all runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overhead {
    runs: Vec<Run>,
}

/// Runs that differ in one variable alone, as pairs of this variable and CPU time, ordered by the variable.
pub(super) type Line = Vec<(f64, f64)>;

impl Overhead {
    /// Reads comma-separated values.
    ///
    /// # Errors
    /// Returns an error if the header or a row is invalid, or if there is no row.
    pub(super) fn read(name: &str, text: &str) -> Result<Overhead, RecordingError> {
        let error = |line: usize, found: &str, expected| {
            Err(RecordingError::Content { name: name.into(), line, found: found.into(), expected })
        };
        let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
        match lines.next() {
            Some((_, COLUMNS)) => {}
            other => return error(1, other.map_or("", |(_, line)| line), COLUMNS),
        }
        let mut runs = Vec::new();
        for (index, line) in lines {
            match Run::read(line) {
                Some(run) => runs.push(run),
                None => return error(index + 1, line, "guests, an interval, true or false, a variant and a CPU time"),
            }
        }
        if runs.is_empty() {
            return error(2, "", "a run");
        }
        Ok(Overhead { runs })
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the update intervals of a variant, the shortest first.
    pub(super) fn intervals(&self, variant: Variant) -> Vec<f64> {
        distinct(self.runs.iter().filter(|run| run.variant == variant).map(|run| run.interval))
    }

    /// Returns CPU time by the number of VMs.
    pub(super) fn by_vms(&self, variant: Variant, loaded: bool, interval: f64) -> Line {
        self.line(|run| run.variant == variant && run.loaded == loaded && run.interval == interval, |run| run.vms)
    }

    /// Returns CPU time by updates per second, for each number of VMs.
    pub(super) fn by_rate(&self, variant: Variant, loaded: bool) -> Vec<Line> {
        let is_selected = |run: &&Run| run.variant == variant && run.loaded == loaded;
        let counts = distinct(self.runs.iter().filter(is_selected).map(|run| run.vms));
        let of = |vms: f64| self.line(|run| is_selected(&run) && run.vms == vms, |run| 1.0 / run.interval);
        counts.into_iter().map(of).collect()
    }

    fn line(&self, is_selected: impl Fn(&Run) -> bool, x: impl Fn(&Run) -> f64) -> Line {
        let mut line: Line = self.runs.iter().filter(|run| is_selected(run)).map(|run| (x(run), run.cpu)).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        line
    }
}

impl Run {
    fn read(line: &str) -> Option<Run> {
        let mut fields = line.split(',');
        let mut next = || fields.next();
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        let run = Run {
            vms: number(next()?)?,
            interval: number(next()?).filter(|interval| *interval > 0.0)?,
            loaded: next()?.parse().ok()?,
            variant: next().and_then(|name| Variant::ALL.into_iter().find(|variant| variant.name() == name))?,
            cpu: number(next()?)?,
        };
        next().is_none().then_some(run)
    }
}

fn distinct(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

/// A straight line fitted to points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) slope: f64,
    /// The part of the variance that it explains.
    pub(super) explained: f64,
}

/// Fits a straight line by least squares. Returns `None` for fewer than three distinct x, where the fit says little.
pub(super) fn fit(line: &[(f64, f64)]) -> Option<Fit> {
    if distinct(line.iter().map(|(x, _)| *x)).len() < 3 {
        return None;
    }
    let count = line.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| line.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| line.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    Some(Fit { slope: xy / xx, explained: if yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_gives_slope_and_explained_variance() {
        let straight = [(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)];
        let found = fit(&straight).unwrap();
        assert!((found.slope - 2.0).abs() < 1e-12 && (found.explained - 1.0).abs() < 1e-12);
        // 0, 1, 4, 9 over 0 to 3: slope 3, xy^2 / (xx yy) = 15^2 / (5 x 49).
        let bent = fit(&[(0.0, 0.0), (1.0, 1.0), (2.0, 4.0), (3.0, 9.0)]).unwrap();
        assert!((bent.slope - 3.0).abs() < 1e-12 && (bent.explained - 225.0 / 245.0).abs() < 1e-12);
        assert_eq!(fit(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), Some(Fit { slope: 0.0, explained: 0.0 }));
        assert_eq!(fit(&[(0.0, 1.0), (1.0, 2.0), (1.0, 2.5)]), None);
    }

    #[test]
    fn invalid_rows_are_reported_with_their_line() {
        let of = |row: &str| Overhead::read("x", &format!("{COLUMNS}\n{row}\n")).unwrap_err().to_string();
        let invalid =
            ["", "1,10,true,agent", "1,0,true,agent,1", "1,10,T,agent,1", "1,10,true,me,1", "1,10,true,agent,1,2"];
        invalid.iter().for_each(|row| assert!(of(row).starts_with("x.csv, line 2"), "{row}"));
        assert!(Overhead::read("x", COLUMNS).is_err() && Overhead::read("x", "").is_err());
    }
}
