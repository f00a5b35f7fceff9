//! A report on a past, for people who were there: who was entitled to what, wanted and got, week by week; who waited
//! while whose over-use ran; and when somebody could rightly complain.

mod dates;
mod figures;
mod page;
mod record;
mod sentences;
mod tables;

use std::path::Path;

pub use dates::{date, date_and_time};
pub use record::{Against, ComplaintOf, Level, PairOf, Party, PartyWeek, PastRecord, PastResource, PastWeek, UseOf};

use crate::write::{make_folder, write_whole};
use crate::{ReportError, Written};

/// Writes `index.html`, `weeks.csv`, `waited-while.csv`, `complaints.csv` and `figures/*.svg` into `folder`, which is
/// made if needed. Files of the same names are replaced, each at once; other files are left alone. The page needs
/// none of the others, and no network.
///
/// # Errors
/// If a file cannot be written. The page is written last: if it is there, all it refers to is there.
pub fn write_past_report(folder: &Path, record: &PastRecord) -> Result<Written, ReportError> {
    let (page, figures) = page::render(record)?;
    let drawings = folder.join("figures");
    make_folder(&drawings)?;
    let mut written = Written { index: folder.join("index.html"), figures: Vec::new(), bytes: 0 };
    let drawn = figures.iter().map(|figure| (drawings.join(format!("{}.svg", figure.name())), figure.standalone()));
    let data = tables::csvs(record).into_iter().map(|(name, text)| (folder.join(name), text));
    for (path, text) in drawn.chain(data) {
        write_whole(&path, &text)?;
        written.bytes += text.len() as u64;
        written.figures.push(path);
    }
    write_whole(&written.index, &page)?;
    written.bytes += page.len() as u64;
    Ok(written)
}
