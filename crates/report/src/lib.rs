//! Draws figures and writes HTML pages from result records.
//!
//! | page | function | input |
//! |---|---|---|
//! | study: waits under several policies | [`write_study_report`] | `StudyRecord` of `evenhand-study` |
//! | sweep: waits along the axes of a grid | [`write_sweep_report`] | `SweepRecord` of `evenhand-study` |
//! | audit: entitlement, demand and use by week | [`audit_page::write_audit_report`] | [`audit_page::EntitlementRecord`] |
//! | processes: who uses which resource when | [`processes_page::render_processes_page`] | [`processes_page::ProcessRun`] |
//!
//! Every page opens from its folder, without a network and without a server. The study page begins with the
//! answer (who gains and who loses under each policy against the first one), then lists each user, shows the
//! course over time and ends with the method. Among its figures are Figures 4 and 5 of Sadok et al. (2021).
//! [`processes_page`] draws the figures of Zeldes & Feitelson (2013).
//!
//! This crate computes no results: it rounds, sorts and subtracts the numbers of a record, nothing else.
//! [`chart`] does not depend on studies; other crates draw with it too.
//!
//! Names of users, resources and files are untrusted input: they are escaped wherever they appear. Equal
//! records give equal bytes.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "analysis")]
pub mod audit_page;
pub mod chart;
#[cfg(feature = "analysis")]
pub mod processes_page;

mod description_figures;
mod figure_list;
mod file_names;
mod format_numbers;
mod study_page;
mod sweep_page;
mod template;
#[cfg(feature = "analysis")]
mod timeline_figure;
mod write_file;

use std::path::PathBuf;

pub use description_figures::write_description_figures;
pub use study_page::write_study_report;
pub use sweep_page::write_sweep_report;
#[cfg(feature = "analysis")]
pub use timeline_figure::{StackedShare, draw_timeline};

/// Returns the style sheet that all pages share, light and dark, for pages that are not reports.
pub fn page_style() -> String {
    format!("{}\n{}", chart::style(), template::PAGE_STYLE)
}

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or folder of the report cannot be written.
    #[error("cannot write {}: {source}; free some disk space, allow writing there, or choose another folder", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Two runs of the record have different users, so they do not belong to one study.
    #[error(
        "runs {first:?} and {run:?} belong to different workloads: user {position} is {expected} in the first and \
         {found} in the second; run the study again into an empty folder"
    )]
    UsersDiffer {
        /// Id of the run.
        run: String,
        /// Id of the first run of the record.
        first: String,
        /// The first position, counted from 0, at which the users differ.
        position: usize,
        /// The user at that position in the first run.
        expected: String,
        /// The user at that position in this run.
        found: String,
    },
    /// Two runs have the same policy, discount and capacity.
    #[error("runs {first:?} and {second:?} have the same policy, discount and capacity; remove one of them")]
    DuplicateRun {
        /// Id of the earlier run.
        first: String,
        /// Id of the later run.
        second: String,
    },
    /// A run of processes is inconsistent: a bug in the code that filled it.
    #[cfg(feature = "analysis")]
    #[error("the run of processes is inconsistent: {0}; please report this")]
    Run(#[from] processes_page::ProcessRunError),
    /// The template cannot be rendered: a bug in this crate, not in the record.
    #[error("cannot render the page: {0}; please report this")]
    Page(#[from] minijinja::Error),
    /// The page's data cannot be written as JSON: a bug in this crate, not in the record.
    #[error("cannot write the page's data as JSON: {0}; please report this")]
    Data(#[from] serde_json::Error),
}

/// The files of a written report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenReport {
    /// Path of the page.
    pub index: PathBuf,
    /// Paths of the figures and data files, in the order of the page.
    pub figures: Vec<PathBuf>,
    /// Total size of all files in bytes.
    pub bytes: u64,
}
