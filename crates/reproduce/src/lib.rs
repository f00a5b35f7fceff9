//! The papers' experiments, run again.
//!
//! An [`Experiment`] names a figure of a paper, says how we set it up, and when [run](Experiment::run) gives
//! an [`Outcome`]: figures with their data, and a [`Verdict`] for each thing the paper says about the
//! figure: what it states, what we got, whether that holds. Where a paper leaves something open or its own
//! method cannot be run as printed, the set-up says what was run instead.
//!
//! A new experiment is one file and one line in [`EXPERIMENTS`]. This room computes nothing that other
//! rooms can: it sets up, asks, and compares. It reads no files.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod experiment;
mod page;
mod paper_000;
mod paper_001;
mod paper_002;
mod paper_003;
mod paper_004;

pub use experiment::{Drawn, Experiment, Outcome, ReproduceError, Settings, Verdict};
pub use page::{Ran, write_results};
pub use paper_003::{RecordingError, Recordings};

/// Every experiment, by paper and figure. A new one is a file and a line here.
pub static EXPERIMENTS: &[&Experiment] = &[
    &paper_000::figure_2::EXPERIMENT,
    &paper_000::figure_3::EXPERIMENT,
    &paper_000::figure_4::EXPERIMENT,
    &paper_000::figure_5::EXPERIMENT,
    &paper_000::figure_6::EXPERIMENT,
    &paper_000::figure_7::EXPERIMENT,
    &paper_000::figure_8::A,
    &paper_000::figure_8::B,
    &paper_000::figure_9::EXPERIMENT,
    &paper_000::figure_10::A,
    &paper_000::figure_10::B,
    &paper_000::figure_11::EXPERIMENT,
    &paper_000::figure_12::EXPERIMENT,
    &paper_000::figure_13::EXPERIMENT,
    &paper_000::figure_14::EXPERIMENT,
    &paper_000::schedulers::EXPERIMENT,
    &paper_001::figure_1a::EXPERIMENT,
    &paper_001::figure_1b::EXPERIMENT,
    &paper_001::figure_2a::EXPERIMENT,
    &paper_001::figure_2b::EXPERIMENT,
    &paper_001::figure_4::EXPERIMENT,
    &paper_001::figure_5::EXPERIMENT,
    &paper_001::figure_6::EXPERIMENT,
    &paper_002::figure_1::EXPERIMENT,
    &paper_002::figure_2::EXPERIMENT,
    &paper_002::figure_3::EXPERIMENT,
    &paper_003::figure_2::EXPERIMENT,
    &paper_003::figure_4::EXPERIMENT,
    &paper_003::figure_5::EXPERIMENT,
    &paper_004::memory::EXPERIMENT,
    &paper_004::placement::EXPERIMENT,
    &paper_004::speed::EXPERIMENT,
    &paper_004::gpus::EXPERIMENT,
];

/// The experiments of a paper (`001`) or of a figure (`001/figure-1b`; `001/figure-1` for all its parts), in
/// order. Empty if there is none.
pub fn experiments_named(name: &str) -> Vec<&'static Experiment> {
    let is_meant = |e: &&&Experiment| {
        let (paper, figure) = name.split_once('/').unwrap_or((name, ""));
        let part = e.figure.strip_prefix(figure);
        // A part is called by a letter; figure-1 is not the beginning of figure-10.
        e.paper == paper
            && part.is_some_and(|part| figure.is_empty() || !part.starts_with(|c: char| c.is_ascii_digit()))
    };
    EXPERIMENTS.iter().filter(is_meant).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_to_their_experiments() {
        let names = |name: &str| experiments_named(name).iter().map(|e| e.name()).collect::<Vec<_>>();
        for experiment in EXPERIMENTS {
            assert_eq!(names(&experiment.name()), [experiment.name()]);
        }
        assert_eq!(names("001/figure-1"), ["001/figure-1a", "001/figure-1b"]);
        assert_eq!(names("002"), ["002/figure-1", "002/figure-2", "002/figure-3"]);
        for none in ["", "00", "001/figure-9", "005", "/"] {
            assert!(names(none).is_empty(), "{none}");
        }
    }

    /// Every experiment runs, by every seed tried, and everything it says is said in words.
    #[test]
    fn every_experiment_runs_the_same_way_twice() {
        for experiment in EXPERIMENTS {
            let settings = || Settings::new(7).tasks(Some(2000));
            let outcome = experiment.run(&settings()).unwrap();
            assert_eq!(outcome, experiment.run(&settings()).unwrap(), "{}", experiment.name());
            assert!(!outcome.verdicts.is_empty() && !outcome.drawn.is_empty(), "{}", experiment.name());
            for drawn in &outcome.drawn {
                assert!(drawn.csv.lines().count() > 1);
                assert!(!drawn.figure.standalone().contains("NaN"));
            }
        }
    }
}
