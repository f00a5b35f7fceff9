//! A report on a past, for people who were there: who was entitled to what, wanted and got, week by week; who waited
//! while whose over-use ran; and when somebody could rightly complain.

mod figures;
mod page;
mod record;
mod sentences;
mod tables;

use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two accounts of which one, for most of a week, holds more than its own while the other waits.
    pub(super) fn small() -> PastRecord {
        let hours = 168.0;
        let of = |among: f64, wanted: f64, got: f64, unmet: f64, over: f64, against: Vec<Against>| UseOf {
            entitled: 0.25 * 8.0 * hours,
            entitled_among_active: among * 8.0 * hours,
            wanted: wanted * 8.0 * hours,
            got: got * 8.0 * hours,
            unmet: unmet * 8.0 * hours,
            over: over * 8.0 * hours,
            against,
        };
        let over = 0.3 * 8.0 * hours;
        let uses = [
            vec![of(0.5, 0.8, 0.8, 0.0, 0.3, vec![])],
            vec![of(0.5, 0.6, 0.2, 0.3, 0.0, vec![Against { party: 0, over }])],
        ];
        let names = ["chem", "<b>bio"];
        let parties = names.iter().zip(&uses).enumerate().map(|(p, (name, uses))| Party {
            name: (*name).into(),
            share: 0.25,
            uses: uses.clone(),
            complaints: p,
        });
        let week = |party: usize| PartyWeek { week: 0, party, share: 0.5, uses: uses[party].clone() };
        let (from_s, until_s) = (100.0, 100.0 + hours * 3600.0);
        PastRecord {
            source: "jobs.sacct".into(),
            facts: vec![("Jobs".into(), "3".into())],
            shares_are: "Nobody said.".into(),
            weeks_are: "Mondays.".into(),
            capacity_is: "what the machine has.".into(),
            resources: vec![PastResource { name: "cpu".into(), unit: String::new(), capacity: 8.0 }],
            weeks: vec![PastWeek {
                label: "2026-03-02".into(),
                from_s,
                until_s,
                from: Some("2026-03-02 00:00".into()),
                until: Some("2026-03-09 00:00".into()),
            }],
            levels: vec![Level {
                kind: "account",
                weeks_in_json: true,
                parties: parties.collect(),
                weeks: vec![week(0), week(1)],
                pairs: vec![PairOf { victim: 1, holder: 0, over: vec![over] }],
                complaints: vec![ComplaintOf {
                    party: 1,
                    from_s: 4000.0,
                    until_s: 7600.0,
                    unmet: over,
                    against: vec![Against { party: 0, over }],
                    ..ComplaintOf::default()
                }],
            }],
        }
    }

    #[test]
    fn names_are_text_and_nothing_comes_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_past_report(folder.path(), &small()).unwrap();
        let page = std::fs::read_to_string(&written.index).unwrap();
        assert!(page.contains("&lt;b&gt;bio") && !page.contains("<b>bio"));
        assert!(!page.contains("<script"));
        let links = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http:") && !links.contains("https:") && !links.contains("src=\""));
        let identities: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let distinct: std::collections::BTreeSet<_> = identities.iter().collect();
        assert_eq!(identities.len(), distinct.len(), "{identities:?}");
        // The matrix, the complaint and its lane.
        assert!(page.contains("var(--worse) 50.0%"), "{page}");
        let plain = page.replace(['\u{a0}', '\u{202f}'], " ");
        for text in
            ["403 cpu-hours", "60.0 min", "chem (403 cpu-hours)", "When accounts could rightly complain", "4000 s"]
        {
            assert!(plain.contains(text), "{text}");
        }
        let again = tempfile::tempdir().unwrap();
        write_past_report(again.path(), &small()).unwrap();
        let names = |path: &Path| {
            let mut names: Vec<_> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(folder.path()), ["complaints.csv", "figures", "index.html", "waited-while.csv", "weeks.csv"]);
        for name in names(folder.path()).into_iter().filter(|name| name != "figures") {
            let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
            assert_eq!(read(folder.path()), read(again.path()), "the same bytes of {name:?}");
        }
        assert_eq!(names(&folder.path().join("figures")).len(), 3);
    }

    #[test]
    fn data_are_rows() {
        let folder = tempfile::tempdir().unwrap();
        write_past_report(folder.path(), &small()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let weeks = read("weeks.csv");
        assert!(weeks.starts_with("level,name,week,from_s,until_s,resource,"), "{weeks}");
        assert!(weeks.contains("\naccount,<b>bio,2026-03-02,100,604900,cpu,,1344,0.25,0.5,336,672,"), "{weeks}");
        assert_eq!(
            read("waited-while.csv").lines().nth(1).unwrap(),
            format!("account,<b>bio,chem,cpu,,{}", 0.3 * 8.0 * 168.0)
        );
        assert!(
            read("complaints.csv").contains("\naccount,<b>bio,cpu,,4000,7600,,,403.2,chem,403.2,,,,\n"),
            "{}",
            read("complaints.csv")
        );
    }

    #[test]
    fn a_past_without_anything_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let none = PastRecord { levels: vec![Level { kind: "user", ..Level::default() }], ..PastRecord::default() };
        let written = write_past_report(folder.path(), &none).unwrap();
        assert!(std::fs::read_to_string(written.index).unwrap().contains("None: nobody waited"));
    }

    #[test]
    fn many_weeks_are_lines_and_many_parties_others() {
        let mut record = small();
        let week = record.weeks[0].clone();
        record.weeks = (0..20).map(|k| PastWeek { label: format!("week {k}"), from: None, ..week.clone() }).collect();
        for (k, week) in record.weeks.iter_mut().enumerate() {
            (week.from_s, week.until_s) = (k as f64 * 604_800.0, (k + 1) as f64 * 604_800.0);
        }
        let level = &mut record.levels[0];
        let (party, of_week) = (level.parties[1].clone(), level.weeks[1].clone());
        for p in 2..40 {
            level.parties.push(Party { name: format!("a{p}"), ..party.clone() });
            level.weeks.push(PartyWeek { party: p, week: p / 2, ..of_week.clone() });
            level.pairs.push(PairOf { victim: p, holder: 0, over: vec![p as f64] });
        }
        let folder = tempfile::tempdir().unwrap();
        let written = write_past_report(folder.path(), &record).unwrap();
        let page = std::fs::read_to_string(written.index).unwrap();
        assert!(page.contains("25 others") && page.contains("28 more accounts are in the data files."), "{page}");
        assert_eq!(std::fs::read_dir(folder.path().join("figures")).unwrap().count(), 13);
    }
}
