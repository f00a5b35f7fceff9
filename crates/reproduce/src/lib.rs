//! Reproduces the experiments of the papers.
//!
//! An [`Experiment`] names a figure of a paper and describes its set-up; [running](Experiment::run) it gives
//! an [`Outcome`]: drawings with their data, and a [`Verdict`] for each statement of the paper about the
//! figure: the statement, the measured result, and whether the statement holds. Where a paper leaves a setting open, or
//! its method cannot be run as printed, the set-up states what was run instead.
//!
//! A new experiment is one file and one line in [`EXPERIMENTS`]. This crate computes nothing that other
//! crates can: it sets up, runs, and compares. It reads no files.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bao;
mod experiment;
mod klusacek_rudova;
mod poullie;
mod sadok;
mod write_results;
mod zeldes_feitelson;

pub use experiment::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};
pub use poullie::{RecordingError, Recordings};
pub use write_results::{ExperimentResult, write_results};

/// All experiments, by paper and figure.
pub static EXPERIMENTS: &[&Experiment] = &[
    &zeldes_feitelson::figure_2::EXPERIMENT,
    &zeldes_feitelson::figure_3::EXPERIMENT,
    &zeldes_feitelson::figure_4::EXPERIMENT,
    &zeldes_feitelson::figure_5::EXPERIMENT,
    &zeldes_feitelson::figure_6::EXPERIMENT,
    &zeldes_feitelson::figure_7::EXPERIMENT,
    &zeldes_feitelson::figure_8::A,
    &zeldes_feitelson::figure_8::B,
    &zeldes_feitelson::figure_9::EXPERIMENT,
    &zeldes_feitelson::figure_10::A,
    &zeldes_feitelson::figure_10::B,
    &zeldes_feitelson::figure_11::EXPERIMENT,
    &zeldes_feitelson::figure_12::EXPERIMENT,
    &zeldes_feitelson::figure_13::EXPERIMENT,
    &zeldes_feitelson::figure_14::EXPERIMENT,
    &zeldes_feitelson::schedulers::EXPERIMENT,
    &sadok::figure_1a::EXPERIMENT,
    &sadok::figure_1b::EXPERIMENT,
    &sadok::figure_2a::EXPERIMENT,
    &sadok::figure_2b::EXPERIMENT,
    &sadok::figure_4::EXPERIMENT,
    &sadok::figure_5::EXPERIMENT,
    &sadok::figure_6::EXPERIMENT,
    &bao::figure_1::EXPERIMENT,
    &bao::figure_2::EXPERIMENT,
    &bao::figure_3::EXPERIMENT,
    &poullie::figure_2::EXPERIMENT,
    &poullie::figure_4::EXPERIMENT,
    &poullie::figure_5::EXPERIMENT,
    &klusacek_rudova::memory::EXPERIMENT,
    &klusacek_rudova::placement::EXPERIMENT,
    &klusacek_rudova::speed::EXPERIMENT,
    &klusacek_rudova::gpus::EXPERIMENT,
];

/// The papers in the order of [`EXPERIMENTS`]: id, the number by which it is known too, authors and year.
pub const PAPERS: [(&str, &str, &str); 5] = [
    ("zeldes-feitelson", "000", "Zeldes and Feitelson (2013)"),
    ("sadok", "001", "Sadok et al. (2021)"),
    ("bao", "002", "Bao (2015)"),
    ("poullie", "003", "Poullie et al. (2016)"),
    ("klusacek-rudova", "004", "Klusáček and Rudová (2013)"),
];

/// Returns the experiments of a paper (`sadok`) or of a figure (`sadok/figure-1b`; `sadok/figure-1` for all its parts),
/// in order; empty if there is none. A paper's number (`001`) stands for its id.
pub fn experiments_named(name: &str) -> Vec<&'static Experiment> {
    let (paper, figure) = name.split_once('/').unwrap_or((name, ""));
    let id = PAPERS.iter().find(|(_, number, _)| *number == paper).map_or(paper, |(id, _, _)| id);
    let matches = |e: &&&Experiment| {
        // Parts are letters: figure-1 stands for figure-1a, but not for figure-10.
        let is_part = |rest: &str| figure.is_empty() || !rest.starts_with(|c: char| c.is_ascii_digit());
        e.paper == id && e.figure.strip_prefix(figure).is_some_and(is_part)
    };
    EXPERIMENTS.iter().filter(matches).copied().collect()
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
        assert_eq!(names("sadok/figure-1"), ["sadok/figure-1a", "sadok/figure-1b"]);
        assert_eq!(names("bao"), ["bao/figure-1", "bao/figure-2", "bao/figure-3"]);
        for (id, number, _) in PAPERS {
            assert_eq!(names(number), names(id));
            assert!(!names(id).is_empty());
        }
        assert_eq!(names("001/figure-1"), names("sadok/figure-1"));
        for unknown in ["", "00", "sadok/figure-9", "005", "/"] {
            assert!(names(unknown).is_empty(), "{unknown}");
        }
    }

    #[test]
    fn every_experiment_gives_verdicts_and_figures_and_the_same_outcome_twice() {
        for experiment in EXPERIMENTS {
            let settings = || Settings::new(7).tasks(Some(2000));
            let outcome = experiment.run(&settings()).unwrap();
            assert_eq!(outcome, experiment.run(&settings()).unwrap(), "{}", experiment.name());
            assert!(!outcome.verdicts.is_empty() && !outcome.figures.is_empty(), "{}", experiment.name());
            for FigureWithData { figure, csv } in &outcome.figures {
                assert!(csv.lines().count() > 1);
                assert!(!figure.standalone().contains("NaN"));
            }
        }
    }
}
