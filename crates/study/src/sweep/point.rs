//! The points of a grid and their order.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use crate::jobs_on_site::SIMULATION;
use crate::{Backfill, Digest, scheduler_text};
use evenhand_policies::Registration;

use crate::sweep::grid::{CapacityAxis, DecayAxis, Grid, Variant, WeightsAxis};

/// Changes when the same point gives another result.
const SWEEP: &str = "sweep 1, pool 1";

/// One run, as places on the axes of its [`Grid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its place in the layout.
    pub number: usize,
    /// Place in [`Grid::workloads`].
    pub workload: usize,
    /// Place in [`Grid::weights`].
    pub weights: usize,
    /// Whether the run stops at the end of the trace.
    pub until_trace_end: bool,
    /// Whether a task that does not fit is passed over.
    pub no_blocking: bool,
    /// Place in [`Grid::schedulers`].
    pub scheduler: usize,
    /// Place in [`Grid::capacities`].
    pub capacity: usize,
    /// Place in [`Grid::policies`].
    pub policy: usize,
    /// Place in [`Grid::variants`]: the policy with its settings and its decay.
    pub variant: usize,
    /// Place in [`Grid::decays`], of policies that need a decay.
    pub decay: Option<usize>,
    /// Number of the first point that has the same workload, weights, end, blocking, scheduler and capacity: the first policy,
    /// which this point is compared with.
    pub base: usize,
}

/// Lays out a grid. The last axis changes fastest: workload, weights, until, no-blocking, scheduler, capacity, policy, the
/// policy's settings (options by name), decay; each in the order of the file. Settings and decays are axes only of
/// policies that have them.
pub fn layout(grid: &Grid) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for workload in 0..grid.workloads.len() {
        for weights in 0..grid.weights.len() {
            for &until_trace_end in &grid.until_trace_end {
                let schedulers =
                    |no_blocking: &bool| (0..grid.schedulers.len()).map(|s| (*no_blocking, s)).collect::<Vec<_>>();
                for (no_blocking, scheduler) in grid.no_blocking.iter().flat_map(schedulers) {
                    for capacity in 0..grid.capacities.len() {
                        let base = points.len();
                        for (variant, Variant { policy, decay, .. }) in grid.variants.iter().enumerate() {
                            let number = points.len();
                            points.push(Point {
                                number,
                                workload,
                                weights,
                                until_trace_end,
                                no_blocking,
                                scheduler,
                                capacity,
                                policy: *policy,
                                variant,
                                decay: *decay,
                                base,
                            });
                        }
                    }
                }
            }
        }
    }
    points
}

impl Point {
    /// Returns the policy of the point.
    pub(crate) fn registration<'g>(&self, grid: &'g Grid) -> &'g Registration {
        &grid.policies[self.policy]
    }

    /// Returns the value in words of a policy's option, if the policy has it and the grid has it as an axis.
    pub fn setting<'g>(&self, grid: &'g Grid, option: &str) -> Option<&'g str> {
        let axis = grid.setting_axes.iter().position(|axis| axis.option.option == option)?;
        grid.variants[self.variant].values[axis].as_deref()
    }

    /// Returns its scheduler, with settings.
    pub fn scheduler(&self, grid: &Grid) -> String {
        scheduler_text(grid.schedulers[self.scheduler])
    }

    /// Returns the decay, if the point has one.
    pub(crate) fn decay<'g>(&self, grid: &'g Grid) -> Option<&'g DecayAxis> {
        self.decay.map(|at| &grid.decays[at])
    }

    /// Returns its axes in words, for people.
    pub fn describe(&self, grid: &Grid) -> String {
        let workload = &grid.workloads[self.workload];
        let mut words = vec![workload.name()];
        words.extend(workload.seed().map(|seed| format!("seed {seed}")));
        if grid.weights.len() > 1 {
            words.push(format!("weights {}", grid.weights[self.weights].name()));
        }
        if grid.until_trace_end.len() > 1 {
            words.push(format!("until {}", if self.until_trace_end { "trace-end" } else { "finished" }));
        }
        if grid.no_blocking.len() > 1 {
            words.push(if self.no_blocking { "no blocking" } else { "blocking" }.to_string());
        }
        if grid.schedulers.len() > 1 {
            words.push(format!("scheduler {}", self.scheduler(grid)));
        }
        words.push(format!("capacity {}", grid.capacities[self.capacity].name()));
        words.push(self.variant_in_words(grid));
        words.join(", ")
    }

    /// Returns its policy, with settings and decay where the grid has several.
    pub fn variant_in_words(&self, grid: &Grid) -> String {
        let mut words = vec![grid.policies[self.policy].name.to_string()];
        let values = grid.setting_axes.iter().zip(&grid.variants[self.variant].values);
        words.extend(values.filter(|(axis, _)| axis.values.len() > 1).filter_map(|(_, value)| value.clone()));
        words.extend(self.decay(grid).filter(|_| grid.decays.len() > 1).map(|d| d.name.clone()));
        words.join(" ")
    }
}

impl Grid {
    /// Returns the digest of everything that the result of a point depends on. Files are read once.
    ///
    /// # Errors
    /// Returns an error, with its path, if a file cannot be read.
    pub fn digest(&self, point: &Point) -> Result<String, (PathBuf, io::Error)> {
        let settings = &self.variants[point.variant].settings;
        let mut d = Digest::new();
        d.text(SWEEP).text(env!("CARGO_PKG_VERSION"));
        let workload = &self.workloads[point.workload];
        match workload {
            crate::sweep::WorkloadAxis::File { path, .. } => d.text(&self.cached(path, || workload.digest())?),
            // No file has an empty name.
            crate::sweep::WorkloadAxis::Generated(_) => d.text(&self.cached(Path::new(""), || workload.digest())?),
        };
        match &self.weights[point.weights] {
            WeightsAxis::Equal => d.text("equal"),
            // The extension decides how a weights file is read.
            WeightsAxis::File(_, path) => {
                let ending = path.extension().unwrap_or_default().to_string_lossy();
                d.text(&ending).text(&self.cached(path, || file_digest(path))?)
            }
        };
        d.number(u64::from(point.until_trace_end)).number(u64::from(point.no_blocking));
        match &self.capacities[point.capacity] {
            CapacityAxis::Multiple(_, quantity) => d.text("multiple").text(&quantity.to_string()),
            CapacityAxis::File(_, path) => d.text("pool").text(&self.cached(path, || file_digest(path))?),
        };
        d.text(point.registration(self).name);
        match point.decay(self) {
            None => d.text(""),
            // As written: one decay written in two ways gives two results.
            Some(axis) => d.text(&axis.name).number(axis.decay.tau_s().to_bits()).text(self.order.name()),
        };
        if let Some((_, path)) = &self.accounts {
            d.text("accounts").text(&self.cached(path, || file_digest(path))?);
        }
        let settings = settings.fingerprint(point.registration(self).name);
        let settings = settings.map_err(|e| (PathBuf::from(&self.name), io::Error::other(e.to_string())))?;
        if !settings.is_empty() {
            d.text("settings").text(&settings);
        }
        if self.schedulers[point.scheduler] != Backfill::None {
            d.text("scheduler").text(SIMULATION).text(&point.scheduler(self));
        }
        Ok(d.hex())
    }

    fn cached(&self, path: &Path, digest: impl FnOnce() -> io::Result<String>) -> Result<String, (PathBuf, io::Error)> {
        if path.as_os_str().is_empty() {
            return digest().map_err(|e| (path.to_path_buf(), e));
        }
        let mut known: std::sync::MutexGuard<'_, BTreeMap<PathBuf, String>> =
            self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = known.get(path) {
            return Ok(digest.clone());
        }
        let new = digest().map_err(|e| (path.to_path_buf(), e))?;
        known.insert(path.to_path_buf(), new.clone());
        Ok(new)
    }
}

fn file_digest(path: &Path) -> io::Result<String> {
    let mut d = Digest::new();
    d.file(path)?;
    Ok(d.hex())
}
