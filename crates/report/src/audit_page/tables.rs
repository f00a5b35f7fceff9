//! The tables of a past's page, and its data as CSV.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{OveruseRecord, LevelRecord, EntitlementRecord, UseRecord};
use crate::format_numbers::{duration, percent};
use evenhand_documents::{Cell, Csv};

/// The most rows and columns of a matrix, pairs, complaints, and parties of a table on the page.
const MATRIX: usize = 14;
const PAIRS: usize = 25;
const COMPLAINTS: usize = 50;
const PARTIES: usize = 200;

/// A party's numbers on one resource.
#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    entitled: String,
    active: String,
    wanted: String,
    got: String,
    /// `worse` if it got less than it both wanted and was entitled to.
    class: &'static str,
    unmet: String,
    over: String,
    complaints: usize,
}

/// The parties with most unmet or got, and how many others there are.
pub(super) fn parties(record: &EntitlementRecord, level: &LevelRecord, r: usize) -> (Vec<Row>, usize) {
    let hours = record.hours();
    let mut order: Vec<usize> = (0..level.parties.len()).filter(|&p| level.parties[p].uses[r].wanted > 0.0).collect();
    order.sort_by(|&a, &b| {
        let of = |p: usize| &level.parties[p].uses[r];
        of(b).unmet.total_cmp(&of(a).unmet).then(of(b).got.total_cmp(&of(a).got))
    });
    let left_out = order.len().saturating_sub(PARTIES);
    let row = |&p: &usize| {
        let party = &level.parties[p];
        let u = &party.uses[r];
        let part = |amount: f64| percent(record.capacity_share(r, amount, hours));
        Row {
            name: party.name.clone(),
            entitled: part(u.entitled),
            active: part(u.entitled_among_active),
            wanted: part(u.wanted),
            got: part(u.got),
            class: if record.capacity_share(r, u.shortfall(), hours) >= 0.0005 { "worse" } else { "" },
            unmet: record.format_amount(r, u.unmet),
            over: record.format_amount(r, u.over),
            complaints: party.complaints,
        }
    };
    (order.iter().take(PARTIES).map(row).collect(), left_out)
}

/// Who waited (rows) while whose over-use ran (columns), on one resource.
#[derive(Serialize)]
pub(super) struct Matrix {
    resource: String,
    holders: Vec<String>,
    rows: Vec<MatrixRow>,
}

#[derive(Serialize)]
struct MatrixRow {
    name: String,
    cells: Vec<MatrixCell>,
    sum: String,
}

#[derive(Serialize)]
struct MatrixCell {
    text: String,
    /// How strong its colour is, from 0 to 50 per cent, in proportion to the largest.
    strength: f64,
}

/// The matrix of a resource; those beyond the first are put together as others. `None` if there is nothing in it.
pub(super) fn matrix(record: &EntitlementRecord, level: &LevelRecord, r: usize) -> Option<Matrix> {
    let n = level.parties.len();
    let (mut by_victim, mut by_holder) = (vec![0.0; n], vec![0.0; n]);
    let pairs = || level.pairs.iter().filter(|pair| pair.over[r] > 0.0);
    for pair in pairs() {
        by_victim[pair.victim] += pair.over[r];
        by_holder[pair.holder] += pair.over[r];
    }
    // Each party's place, the largest sums first; all beyond the last place share one more.
    let places = |sums: &[f64]| {
        let mut order: Vec<usize> = (0..n).filter(|&p| sums[p] > 0.0).collect();
        order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]));
        let mut names: Vec<String> = order.iter().take(MATRIX).map(|&p| level.parties[p].name.clone()).collect();
        if order.len() > MATRIX {
            names.push(format!("{} others", order.len() - MATRIX));
        }
        let mut place = vec![0; n];
        order.iter().enumerate().for_each(|(at, &p)| place[p] = at.min(MATRIX));
        (names, place)
    };
    let ((victims, row), (holders, column)) = (places(&by_victim), places(&by_holder));
    let mut cells = vec![vec![0.0; holders.len()]; victims.len()];
    pairs().for_each(|pair| cells[row[pair.victim]][column[pair.holder]] += pair.over[r]);
    let largest = cells.iter().flatten().fold(0.0f64, |a, &b| a.max(b));
    let cell = |&x: &f64| MatrixCell {
        text: if x > 0.0 { record.format_amount(r, x) } else { String::new() },
        strength: if largest > 0.0 { (500.0 * x / largest).round() / 10.0 } else { 0.0 },
    };
    let rows = victims.into_iter().zip(&cells).map(|(name, cells)| MatrixRow {
        name,
        cells: cells.iter().map(cell).collect(),
        sum: record.format_amount(r, cells.iter().sum()),
    });
    let rows: Vec<MatrixRow> = rows.collect();
    (!rows.is_empty()).then(|| Matrix { resource: record.resources[r].name.clone(), holders, rows })
}

/// A pair of parties on one resource.
#[derive(Serialize)]
pub(super) struct PairRow {
    victim: String,
    holder: String,
    resource: String,
    over: String,
}

/// The pairs with the largest part of a capacity.
pub(super) fn pairs(record: &EntitlementRecord, level: &LevelRecord) -> Vec<PairRow> {
    let all = level.pairs.iter().flat_map(|pair| pair.over.iter().enumerate().map(move |(r, &x)| (pair, r, x)));
    let mut all: Vec<_> = all.filter(|(_, _, x)| *x > 0.0).collect();
    let part = |r: usize, x: f64| x / record.resources[r].capacity;
    all.sort_by(|a, b| part(b.1, b.2).total_cmp(&part(a.1, a.2)));
    let row = |(pair, r, x): &(&super::OverusePairRecord, usize, f64)| PairRow {
        victim: level.parties[pair.victim].name.clone(),
        holder: level.parties[pair.holder].name.clone(),
        resource: record.resources[*r].name.clone(),
        over: record.format_amount(*r, *x),
    };
    all.iter().take(PAIRS).map(row).collect()
}

/// An interval with a justified complaint.
#[derive(Serialize)]
pub(super) struct ComplaintRow {
    who: String,
    on: String,
    from: String,
    until: String,
    length: String,
    unmet: String,
    against: String,
}

/// The worst complaints, and how many more there are.
pub(super) fn complaints(record: &EntitlementRecord, level: &LevelRecord) -> (Vec<ComplaintRow>, usize) {
    let row = |c: &&super::ComplaintRecord| ComplaintRow {
        who: level.parties[c.party].name.clone(),
        on: record.resources[c.resource].name.clone(),
        from: c.from.clone().unwrap_or_else(|| format!("{} s", c.from_s)),
        until: c.until.clone().unwrap_or_else(|| format!("{} s", c.until_s)),
        length: duration(c.until_s - c.from_s),
        unmet: record.format_amount(c.resource, c.unmet),
        against: record.format_holders(level, &c.against, c.resource),
    };
    let worst = record.worst_complaints(level);
    (worst.iter().take(COMPLAINTS).map(row).collect(), worst.len().saturating_sub(COMPLAINTS))
}

/// The page's data: file name and text.
pub(super) fn csvs(record: &EntitlementRecord) -> Vec<(&'static str, String)> {
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
            csv.row(&cells);
        }
    }
    csv.finish()
}
