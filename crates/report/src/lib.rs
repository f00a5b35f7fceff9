//! Draws the record of a study: one page for people, and every figure and its data as files.
//!
//! [`write_study_report`] takes a [`StudyRecord`] and leaves a folder that opens without a network
//! and without a server. The page gives the answer first (who wins and who loses under each policy
//! against the first one named), then each user, then how things went over time, then the method.
//! Figures 4 and 5 of paper 001 (Sadok et al., "Stateful DRF") are among the figures.
//!
//! [`past`] shows what everybody was entitled to in a real past, and got.
//!
//! [`process`] shows runs of processes that alternate between resources, as in the figures of paper 000.
//!
//! This room computes no results: what it shows is in the record, at most rounded, sorted or
//! subtracted. [`chart`] knows nothing of studies, and other reports draw with it too.
//!
//! Names of users, resources and files come from outside and are text wherever they appear. The same
//! record gives the same bytes.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod chart;
pub mod past;
pub mod process;

mod description;
mod figures;
mod format;
mod names;
mod page;
mod sweep;
mod timeline;
mod view;
mod write;

use std::path::{Path, PathBuf};

pub use description::write_description_figures;
use evenhand_study::record::StudyRecord;
pub use sweep::write_sweep_report;
pub use timeline::{Held, draw_timeline};

use crate::figures::{Drawn, draw_figures};
use crate::view::View;
use crate::write::{make_folder, write_whole};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or folder of the report could not be written.
    #[error("cannot write {}: {source}; free some space, allow writing there, or choose another folder", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Two runs of the record have different users, so they are not of one study.
    #[error(
        "runs {first:?} and {run:?} are of different workloads: user {position} is {expected} in the first and {found} \
         in the second; run the study again into an empty folder"
    )]
    UsersDiffer {
        /// The run.
        run: String,
        /// The first run of the record.
        first: String,
        /// The first position, from 0, at which the users differ.
        position: usize,
        /// The user there in the first run.
        expected: String,
        /// The user there in this run.
        found: String,
    },
    /// Two runs have the same policy, discount and capacity.
    #[error("runs {first:?} and {second:?} have the same policy, discount and capacity; remove one of them")]
    SameRunTwice {
        /// The run that comes first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A run of processes holds what is not of it: a mistake of who filled it.
    #[error("the run of processes cannot be shown: {0}; please report this")]
    Run(#[from] process::RunError),
    /// The page could not be put together: a mistake in this crate, not in the record.
    #[error("the page cannot be put together: {0}; please report this")]
    Page(#[from] minijinja::Error),
    /// The data of the page could not be written as JSON: a mistake in this crate, not in the record.
    #[error("the data of the page cannot be written as JSON: {0}; please report this")]
    Data(#[from] serde_json::Error),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub index: PathBuf,
    /// The figures and their data, in the order of the page.
    pub figures: Vec<PathBuf>,
    /// The size of all files together.
    pub bytes: u64,
}

/// Writes `index.html`, `figures/*.svg` and `figures/*.csv` into `folder`, which is made if needed.
/// Files of the same names are replaced, each at once; other files are left alone.
///
/// # Errors
/// If a file cannot be written, or if the record's runs are not of one study. The page is written
/// last: if it is there, all it refers to is there.
pub fn write_study_report(folder: &Path, record: &StudyRecord) -> Result<Written, ReportError> {
    let view = View::new(record)?;
    let figures = draw_figures(&view);
    let page = page::render(&view, &figures)?;
    let drawings = folder.join("figures");
    make_folder(&drawings)?;
    let mut written = Written { index: folder.join("index.html"), figures: Vec::new(), bytes: 0 };
    for Drawn { figure, csv, .. } in figures.all() {
        for (ending, text) in [("svg", &figure.standalone()), ("csv", csv)] {
            let path = drawings.join(format!("{}.{ending}", figure.name()));
            write_whole(&path, text)?;
            written.bytes += text.len() as u64;
            written.figures.push(path);
        }
    }
    write_whole(&written.index, &page)?;
    written.bytes += page.len() as u64;
    Ok(written)
}
