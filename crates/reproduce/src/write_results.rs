//! Writes results into a folder: each figure with its data, and a page with all verdicts and figures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use evenhand_report::chart::style;

use crate::{Experiment, FigureWithData, Outcome, ReproduceError};

/// An experiment and its outcome.
pub type ExperimentResult = (&'static Experiment, Outcome);

const PAGE_STYLE: &str = "body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; \
     padding: 0 1rem; background: var(--paper); color: var(--ink); } \
     h2 { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 1rem; } \
     .figures { display: flex; flex-wrap: wrap; gap: 1.5rem; } figure { margin: 0; flex: 1 1 30rem; max-width: 35rem; } \
     figcaption { font-weight: bold; } table { border-collapse: collapse; margin: 1rem 0; } \
     td, th { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--rule); } \
     .holds { color: var(--better); } .fails { color: var(--worse); } .soft { color: var(--soft); }";

/// Writes `index.html`, and for each figure `NAME.svg` and `NAME.csv`, into a folder, which it creates if necessary.
/// Returns the path of the page. Files of the same names are replaced atomically; the page is written last.
///
/// # Errors
/// Returns an error if the folder cannot be created or a file cannot be written.
pub fn write_results(folder: &Path, results: &[ExperimentResult]) -> Result<PathBuf, ReproduceError> {
    evenhand_model::files::create_folder(folder)
        .map_err(|source| ReproduceError::Write { path: folder.to_owned(), source })?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        match evenhand_model::files::write_atomically(&path, text.as_bytes()) {
            Ok(()) => Ok(path),
            Err(source) => Err(ReproduceError::Write { path, source }),
        }
    };
    for FigureWithData { figure, csv } in results.iter().flat_map(|(_, outcome)| &outcome.figures) {
        write(&format!("{}.csv", figure.name()), csv)?;
        write(&format!("{}.svg", figure.name()), &figure.standalone())?;
    }
    write("index.html", &page(results))
}

fn page(results: &[ExperimentResult]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>The papers' experiments</title>\n\
         <style>{}\n{PAGE_STYLE}</style></head><body>\n<h1>The papers' experiments</h1>\n",
        style()
    );
    for (experiment, outcome) in results {
        section(&mut page, experiment, outcome);
    }
    page.push_str("</body></html>\n");
    page
}

/// Appends an experiment's section. Writing to a string cannot fail.
fn section(page: &mut String, experiment: &Experiment, outcome: &Outcome) {
    let name = experiment.name();
    let _ = writeln!(page, "<h2 id=\"{name}\">{name}: {}</h2>", escaped(experiment.title));
    let _ = writeln!(page, "<p class=\"soft\">{}</p>", escaped(experiment.setting));
    page.push_str("<table><tr><th></th><th>the paper states</th><th>measured</th></tr>\n");
    for verdict in &outcome.verdicts {
        let (class, word) = if verdict.holds { ("holds", "holds") } else { ("fails", "does not hold") };
        let [statement, measured] = [&verdict.statement, &verdict.measured].map(|text| escaped(text));
        let _ = writeln!(page, "<tr><td class=\"{class}\">{word}</td><td>{statement}</td><td>{measured}</td></tr>");
    }
    page.push_str("</table>\n");
    for note in &outcome.notes {
        let _ = writeln!(page, "<p>{}</p>", escaped(note));
    }
    page.push_str("<div class=\"figures\">\n");
    for FigureWithData { figure, .. } in &outcome.figures {
        let (file, title) = (figure.name(), escaped(figure.title()));
        let figure = figure.inline();
        let _ = writeln!(
            page,
            "<figure><figcaption>{title}</figcaption>\n{figure}\
             <a href=\"{file}.svg\">SVG</a> <a href=\"{file}.csv\">data</a></figure>"
        );
    }
    page.push_str("</div>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Settings, experiments_named};

    #[test]
    fn the_page_links_only_to_existing_files_of_its_folder() {
        let settings = Settings::new(1).tasks(Some(5000));
        let results: Vec<ExperimentResult> =
            experiments_named("sadok").into_iter().map(|e| (e, e.run(&settings).unwrap())).collect();
        let folder = tempfile::tempdir().unwrap();
        let index = write_results(&folder.path().join("new"), &results).unwrap();
        let page = fs::read_to_string(&index).unwrap();
        let links: Vec<&str> = page.split("href=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
        assert_eq!(links.len(), 2 * results.iter().map(|(_, outcome)| outcome.figures.len()).sum::<usize>());
        assert!(links.len() >= 14);
        for link in links {
            assert!(index.with_file_name(link).is_file(), "{link}");
        }
        assert!(!page.contains("<script") && !page.contains("src="));
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"));
    }
}
