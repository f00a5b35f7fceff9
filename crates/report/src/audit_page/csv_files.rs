//! Writes the data of the audit page as CSV: weeks, overuse while others waited, complaints.

use std::collections::BTreeMap;

use evenhand_documents::{Cell, Csv};

use super::{EntitlementRecord, OveruseRecord, UseRecord};

/// Returns the data files of the page as (file name, text).
pub(super) fn csv_files(record: &EntitlementRecord) -> Vec<(&'static str, String)> {
    vec![
        ("weeks.csv", weeks_csv(record)),
        ("waited-while.csv", pairs_csv(record)),
        ("complaints.csv", complaints_csv(record)),
    ]
}

fn weeks_csv(record: &EntitlementRecord) -> String {
    let mut csv = Csv::new(&[
        "level",
        "name",
        "week",
        "from_s",
        "until_s",
        "resource",
        "unit",
        "capacity_hours",
        "share",
        "share_among_active",
        "entitled_hours",
        "entitled_among_active_hours",
        "wanted_hours",
        "got_hours",
        "unmet_hours",
        "over_hours",
    ]);
    let number = |x: f64| Cell::Number(Some(x));
    for level in &record.levels {
        let of: BTreeMap<(usize, usize), &super::PartyWeekRecord> =
            level.weeks.iter().map(|w| ((w.week, w.party), w)).collect();
        for ((week, party), row) in of {
            let (week, party) = (&record.weeks[week], &level.parties[party]);
            for (resource, u) in record.resources.iter().zip(&row.uses) {
                let UseRecord { entitled, entitled_among_active, wanted, got, unmet, over, .. } = u;
                let mut cells = vec![
                    Cell::Text(level.kind),
                    Cell::Text(&party.name),
                    Cell::Text(&week.label),
                    number(week.from_s),
                    number(week.until_s),
                    Cell::Text(&resource.name),
                    Cell::Text(&resource.unit),
                    number(resource.capacity * week.hours()),
                    number(party.share),
                    number(row.share),
                ];
                cells.extend([entitled, entitled_among_active, wanted, got, unmet, over].map(|x| number(*x)));
                csv.row(&cells);
            }
        }
    }
    csv.finish()
}

fn pairs_csv(record: &EntitlementRecord) -> String {
    let mut csv = Csv::new(&["level", "waited", "over_use_of", "resource", "unit", "over_hours"]);
    for level in &record.levels {
        for pair in &level.pairs {
            for (resource, over) in record.resources.iter().zip(&pair.over).filter(|(_, over)| **over > 0.0) {
                let [victim, holder] = [pair.victim, pair.holder].map(|p| Cell::Text(&level.parties[p].name));
                let over = Cell::Number(Some(*over));
                csv.row(&[
                    Cell::Text(level.kind),
                    victim,
                    holder,
                    Cell::Text(&resource.name),
                    Cell::Text(&resource.unit),
                    over,
                ]);
            }
        }
    }
    csv.finish()
}

fn complaints_csv(record: &EntitlementRecord) -> String {
    let mut csv = Csv::new(&[
        "level",
        "who",
        "resource",
        "unit",
        "from_s",
        "until_s",
        "from",
        "until",
        "unmet_hours",
        "against",
        "over_hours",
        "against_2",
        "over_hours_2",
        "against_3",
        "over_hours_3",
        "share_hours",
        "tie_with",
    ]);
    for level in &record.levels {
        for c in &level.complaints {
            let resource = &record.resources[c.resource];
            let mut cells = vec![
                Cell::Text(level.kind),
                Cell::Text(&level.parties[c.party].name),
                Cell::Text(&resource.name),
                Cell::Text(&resource.unit),
                Cell::Number(Some(c.from_s)),
                Cell::Number(Some(c.until_s)),
                Cell::Text(c.from.as_deref().unwrap_or_default()),
                Cell::Text(c.until.as_deref().unwrap_or_default()),
                Cell::Number(Some(c.unmet)),
            ];
            for at in 0..3 {
                let against: Option<&OveruseRecord> = c.against.get(at);
                cells.push(Cell::Text(against.map_or("", |a| &level.parties[a.party].name)));
                cells.push(Cell::Number(against.map(|a| a.over)));
            }
            cells.push(Cell::Number(Some(c.share_hours)));
            cells.push(Cell::Text(c.tie_with.map_or("", |party| &level.parties[party].name)));
            csv.row(&cells);
        }
    }
    csv.finish()
}
