//! The page of a study: who waits less and who waits longer under each policy than under one of them.

mod account_table;
mod answer_sentences;
mod class_table;
mod figures;
mod grid;
mod machine_tables;
mod nuwt_and_idle_tables;
mod reduction_chart;
mod render_page;
mod script_data;
mod trust_section;
mod user_and_fairness_tables;
mod work_table;

use std::path::Path;

use evenhand_study::record::StudyRecord;

use self::figures::{FigureWithData, draw_figures};
use self::grid::StudyGrid;
use crate::figure_list::FigureList;
use crate::write_file::{create_folder, write_file};
use crate::{ReportError, WrittenReport};

/// Writes `index.html`, `figures/*.svg` and `figures/*.csv` into `folder`, which is created if it does not exist.
///
/// Files of the same names are replaced, each atomically. The figures of an earlier report that this one lacks are removed
/// by the list that it left in `figures/figures.json`; other files stay. The page is written after its figures, and theirs
/// are removed after that: if a page exists, so does every file that it links to.
///
/// # Errors
/// Returns an error if a file cannot be written, or if the record's runs belong to different studies.
pub fn write_study_report(folder: &Path, record: &StudyRecord) -> Result<WrittenReport, ReportError> {
    let grid = StudyGrid::new(record)?;
    let figures = draw_figures(&grid);
    let page = render_page::render(&grid, &figures)?;
    let figure_folder = folder.join("figures");
    create_folder(&figure_folder)?;
    let names = figures.all().flat_map(|it| ["svg", "csv"].map(|end| format!("{}.{end}", it.figure.name())));
    let (earlier, own) = (FigureList::read(&figure_folder), FigureList::of(names));
    own.write_with(&earlier, &figure_folder)?;
    let mut written = WrittenReport { index: folder.join("index.html"), figures: Vec::new(), bytes: 0 };
    for FigureWithData { figure, csv, .. } in figures.all() {
        for (extension, text) in [("svg", &figure.standalone()), ("csv", csv)] {
            let path = figure_folder.join(format!("{}.{extension}", figure.name()));
            write_file(&path, text)?;
            written.bytes += text.len() as u64;
            written.figures.push(path);
        }
    }
    write_file(&written.index, &page)?;
    written.bytes += page.len() as u64;
    earlier.replace_by(&own, &figure_folder)?;
    Ok(written)
}
