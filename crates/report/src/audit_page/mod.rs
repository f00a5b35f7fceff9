//! The page of an audited history: entitlement, demand and use of accounts and users by week, overuse while others
//! waited, and justified complaints.

mod csv_files;
mod entitlement_record;
mod figures;
mod render_page;
mod summary_sentences;
mod tables;

use std::path::Path;

pub use entitlement_record::{
    ComplaintRecord, EntitlementRecord, LevelRecord, OverusePairRecord, OveruseRecord, PartyRecord, PartyWeekRecord,
    ResourceRecord, SteadyRecord, UseRecord, WeekRecord,
};

use crate::write_file::{create_folder, write_file};
use crate::{ReportError, WrittenReport};

/// Writes `index.html`, `weeks.csv`, `waited-while.csv`, `complaints.csv` and `figures/*.svg` into `folder`, which is
/// created if it does not exist.
///
/// Files of the same names are replaced, each atomically; other files stay. The page is written last and needs neither
/// the other files nor a network.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_audit_report(folder: &Path, record: &EntitlementRecord) -> Result<WrittenReport, ReportError> {
    let (page, figures) = render_page::render(record)?;
    let figure_folder = folder.join("figures");
    create_folder(&figure_folder)?;
    let mut written = WrittenReport { index: folder.join("index.html"), figures: Vec::new(), bytes: 0 };
    let drawings =
        figures.iter().map(|figure| (figure_folder.join(format!("{}.svg", figure.name())), figure.standalone()));
    let data = csv_files::csv_files(record).into_iter().map(|(name, text)| (folder.join(name), text));
    for (path, text) in drawings.chain(data) {
        write_file(&path, &text)?;
        written.bytes += text.len() as u64;
        written.figures.push(path);
    }
    write_file(&written.index, &page)?;
    written.bytes += page.len() as u64;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record of two accounts, one of which exceeds its share for most of a week while the other waits.
    pub(super) fn small_record() -> EntitlementRecord {
        let hours = 168.0;
        let of = |among: f64, wanted: f64, got: f64, unmet: f64, over: f64, against: Vec<OveruseRecord>| UseRecord {
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
            vec![of(0.5, 0.6, 0.2, 0.3, 0.0, vec![OveruseRecord { party: 0, over }])],
        ];
        let names = ["chem", "<b>bio"];
        let parties = names.iter().zip(&uses).enumerate().map(|(p, (name, uses))| PartyRecord {
            name: (*name).into(),
            share: 0.25,
            uses: uses.clone(),
            complaints: p,
        });
        let week = |party: usize| PartyWeekRecord { week: 0, party, share: 0.5, uses: uses[party].clone() };
        let (from_s, until_s) = (100.0, 100.0 + hours * 3600.0);
        EntitlementRecord {
            source: "jobs.sacct".into(),
            details: vec![("Jobs".into(), "3".into())],
            shares_are: "Equal shares.".into(),
            weeks_are: "Mondays.".into(),
            capacity_is: "what the machine has.".into(),
            resources: vec![ResourceRecord { name: "cpu".into(), unit: String::new(), capacity: 8.0 }],
            weeks: vec![WeekRecord {
                label: "2026-03-02".into(),
                from_s,
                until_s,
                from: Some("2026-03-02 00:00".into()),
                until: Some("2026-03-09 00:00".into()),
            }],
            steady: None,
            levels: vec![LevelRecord {
                kind: "account",
                weeks_in_json: true,
                parties: parties.collect(),
                weeks: vec![week(0), week(1)],
                pairs: vec![OverusePairRecord { victim: 1, holder: 0, over: vec![over] }],
                complaints: vec![ComplaintRecord {
                    party: 1,
                    from_s: 4000.0,
                    until_s: 7600.0,
                    unmet: over,
                    share_hours: over / 8.0,
                    against: vec![OveruseRecord { party: 0, over }],
                    tie_with: Some(0),
                    ..ComplaintRecord::default()
                }],
            }],
        }
    }

    #[test]
    fn names_are_escaped_and_the_page_needs_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_audit_report(folder.path(), &small_record()).unwrap();
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
        for text in ["403 cpu-hours", "60.0 min", "chem (403 cpu-hours)", "Justified complaints of accounts", "4000 s"]
        {
            assert!(plain.contains(text), "{text}");
        }
        let again = tempfile::tempdir().unwrap();
        write_audit_report(again.path(), &small_record()).unwrap();
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
    fn a_complaint_that_one_tie_would_have_turned_is_marked_and_the_others_have_no_column_for_it() {
        let page = |record: &EntitlementRecord| {
            let folder = tempfile::tempdir().unwrap();
            let written = write_audit_report(folder.path(), record).unwrap();
            std::fs::read_to_string(written.index).unwrap()
        };
        let mut record = small_record();
        let with = page(&record);
        assert!(with.contains("One tie would have turned 1 of them"), "{with}");
        assert!(with.contains("<td class=\"text\"><span class=\"name\" title=\"chem\">chem</span></td>"), "{with}");
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["levels"][0]["complaints_turned_by_a_tie"], 1);
        record.levels[0].complaints[0].tie_with = None;
        let without = page(&record);
        assert!(!without.contains("One tie would have turned 1") && !without.contains(">Tie</th>"));
        assert!(serde_json::to_value(&record).unwrap()["levels"][0]["complaints"][0].get("tie_with").is_none());
    }

    #[test]
    fn complaints_are_sorted_by_harm_and_not_by_duration() {
        let mut record = small_record();
        let worst = record.levels[0].complaints[0].clone();
        let longer = ComplaintRecord { until_s: 90_000.0, unmet: 8.0, share_hours: 1.0, ..worst.clone() };
        record.levels[0].complaints = vec![longer.clone(), worst.clone()];
        assert_eq!(record.worst_complaints(&record.levels[0]), [&worst, &longer]);
    }

    #[test]
    fn csv_files_hold_all_numbers() {
        let folder = tempfile::tempdir().unwrap();
        write_audit_report(folder.path(), &small_record()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let weeks = read("weeks.csv");
        assert!(weeks.starts_with("level,name,week,from_s,until_s,resource,"), "{weeks}");
        assert!(weeks.contains("\naccount,<b>bio,2026-03-02,100,604900,cpu,,1344,0.25,0.5,336,672,"), "{weeks}");
        assert_eq!(
            read("waited-while.csv").lines().nth(1).unwrap(),
            format!("account,<b>bio,chem,cpu,,{}", 0.3 * 8.0 * 168.0)
        );
        assert!(
            read("complaints.csv").contains("\naccount,<b>bio,cpu,,4000,7600,,,403.2,chem,403.2,,,,,50.4,chem\n"),
            "{}",
            read("complaints.csv")
        );
    }

    #[test]
    fn an_empty_record_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let levels = vec![LevelRecord { kind: "user", ..LevelRecord::default() }];
        let none = EntitlementRecord { levels, ..EntitlementRecord::default() };
        let written = write_audit_report(folder.path(), &none).unwrap();
        assert!(std::fs::read_to_string(written.index).unwrap().contains("None: no user waited"));
    }

    #[test]
    fn many_weeks_are_drawn_as_lines_and_many_parties_are_merged() {
        let mut record = small_record();
        let week = record.weeks[0].clone();
        record.weeks = (0..20).map(|k| WeekRecord { label: format!("week {k}"), from: None, ..week.clone() }).collect();
        for (k, week) in record.weeks.iter_mut().enumerate() {
            (week.from_s, week.until_s) = (k as f64 * 604_800.0, (k + 1) as f64 * 604_800.0);
        }
        let level = &mut record.levels[0];
        let (party, of_week) = (level.parties[1].clone(), level.weeks[1].clone());
        for p in 2..40 {
            level.parties.push(PartyRecord { name: format!("a{p}"), ..party.clone() });
            level.weeks.push(PartyWeekRecord { party: p, week: p / 2, ..of_week.clone() });
            level.pairs.push(OverusePairRecord { victim: p, holder: 0, over: vec![p as f64] });
        }
        let folder = tempfile::tempdir().unwrap();
        let written = write_audit_report(folder.path(), &record).unwrap();
        let page = std::fs::read_to_string(written.index).unwrap();
        assert!(page.contains("25 others") && page.contains("The data files hold 28 more accounts."), "{page}");
        assert_eq!(std::fs::read_dir(folder.path().join("figures")).unwrap().count(), 13);
    }
}
