//! The rows of the audit page's tables.

use serde::Serialize;

use super::{EntitlementRecord, LevelRecord};
use crate::format_numbers::{duration, percent, three_digits};

/// Maximum numbers of rows on the page: rows and columns of a matrix, pairs, complaints, and parties.
const MAX_MATRIX_PARTIES: usize = 14;
const MAX_PAIRS: usize = 25;
const MAX_COMPLAINTS: usize = 50;
const MAX_PARTIES: usize = 200;

/// Entitlement, demand and use of one resource by one party.
#[derive(Serialize)]
pub(super) struct PartyRow {
    name: String,
    entitled: String,
    active: String,
    wanted: String,
    got: String,
    /// `worse` if it received visibly less than it demanded and was entitled to.
    class: &'static str,
    unmet: String,
    over: String,
    complaints: usize,
}

/// Returns the parties by decreasing unmet claim, then by decreasing use; also the unit of their unmet claims and overuse,
/// and the number of parties left out.
pub(super) fn parties(record: &EntitlementRecord, level: &LevelRecord, r: usize) -> (Vec<PartyRow>, String, usize) {
    let hours = record.hours();
    let mut order: Vec<usize> = (0..level.parties.len()).filter(|&p| level.parties[p].uses[r].wanted > 0.0).collect();
    order.sort_by(|&a, &b| {
        let of = |p: usize| &level.parties[p].uses[r];
        of(b).unmet.total_cmp(&of(a).unmet).then(of(b).got.total_cmp(&of(a).got))
    });
    let left_out = order.len().saturating_sub(MAX_PARTIES);
    let amounts = order.iter().map(|&p| &level.parties[p].uses[r]).flat_map(|u| [u.unmet, u.over]);
    let (size, unit) = record.unit_hours(r, typical(amounts));
    let text = |amount: f64| if amount == 0.0 { "0".into() } else { three_digits(amount / size) };
    let row = |&p: &usize| {
        let party = &level.parties[p];
        let u = &party.uses[r];
        let part = |amount: f64| percent(record.capacity_share(r, amount, hours));
        PartyRow {
            name: party.name.clone(),
            entitled: part(u.entitled),
            active: part(u.entitled_among_active),
            wanted: part(u.wanted),
            got: part(u.got),
            class: if record.falls_short(r, u, hours) { "worse" } else { "" },
            unmet: text(u.unmet),
            over: text(u.over),
            complaints: party.complaints,
        }
    };
    (order.iter().take(MAX_PARTIES).map(row).collect(), unit, left_out)
}

/// Returns the geometric mean of the amounts above 0, whose unit suits a column in which they differ much; 0 without any.
fn typical(amounts: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) =
        amounts.filter(|amount| *amount > 0.0).fold((0.0, 0.0), |(n, sum), amount| (n + 1.0, sum + amount.ln()));
    if count > 0.0 { (sum / count).exp() } else { 0.0 }
}

/// Overuse of one resource by each holder (columns) while each victim (rows) waited.
#[derive(Serialize)]
pub(super) struct Matrix {
    resource: String,
    /// The unit of all cells.
    unit: String,
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
    /// Strength of the background colour, from 0 to 50 per cent, in proportion to the largest cell.
    strength: f64,
}

/// Returns the matrix of a resource; parties beyond the first [`MAX_MATRIX_PARTIES`] are merged. `None` if it is empty.
pub(super) fn matrix(record: &EntitlementRecord, level: &LevelRecord, r: usize) -> Option<Matrix> {
    let n = level.parties.len();
    let (mut by_victim, mut by_holder) = (vec![0.0; n], vec![0.0; n]);
    let pairs = || level.pairs.iter().filter(|pair| pair.over[r] > 0.0);
    for pair in pairs() {
        by_victim[pair.victim] += pair.over[r];
        by_holder[pair.holder] += pair.over[r];
    }
    // The index of each party by decreasing sum; all parties beyond the last index share one more.
    let places = |sums: &[f64]| {
        let mut order: Vec<usize> = (0..n).filter(|&p| sums[p] > 0.0).collect();
        order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]));
        let mut names: Vec<String> =
            order.iter().take(MAX_MATRIX_PARTIES).map(|&p| level.parties[p].name.clone()).collect();
        if order.len() > MAX_MATRIX_PARTIES {
            names.push(format!("{} others", order.len() - MAX_MATRIX_PARTIES));
        }
        let mut place = vec![0; n];
        order.iter().enumerate().for_each(|(at, &p)| place[p] = at.min(MAX_MATRIX_PARTIES));
        (names, place)
    };
    let ((victims, row), (holders, column)) = (places(&by_victim), places(&by_holder));
    let mut cells = vec![vec![0.0; holders.len()]; victims.len()];
    pairs().for_each(|pair| cells[row[pair.victim]][column[pair.holder]] += pair.over[r]);
    let largest = cells.iter().flatten().fold(0.0f64, |a, &b| a.max(b));
    let (size, unit) = record.unit_hours(r, typical(cells.iter().flatten().copied()));
    let cell = |&x: &f64| MatrixCell {
        text: if x > 0.0 { three_digits(x / size) } else { String::new() },
        strength: if largest > 0.0 { (500.0 * x / largest).round() / 10.0 } else { 0.0 },
    };
    let rows = victims.into_iter().zip(&cells).map(|(name, cells)| MatrixRow {
        name,
        cells: cells.iter().map(cell).collect(),
        sum: three_digits(cells.iter().sum::<f64>() / size),
    });
    let rows: Vec<MatrixRow> = rows.collect();
    (!rows.is_empty()).then(|| Matrix { resource: record.resources[r].name.clone(), unit, holders, rows })
}

/// Overuse of one resource by one party while another waited.
#[derive(Serialize)]
pub(super) struct PairRow {
    victim: String,
    holder: String,
    resource: String,
    over: String,
}

/// Returns the pairs with the largest overuse as a fraction of the capacity.
pub(super) fn pairs(record: &EntitlementRecord, level: &LevelRecord) -> Vec<PairRow> {
    let all = level.pairs.iter().flat_map(|pair| pair.over.iter().enumerate().map(move |(r, &x)| (pair, r, x)));
    let mut all: Vec<_> = all.filter(|(_, _, x)| *x > 0.0).collect();
    let part = |r: usize, x: f64| x / record.resources[r].capacity;
    let largest = |r: usize| level.pairs.iter().fold(0.0f64, |most, pair| most.max(pair.over[r]));
    all.sort_by(|a, b| part(b.1, b.2).total_cmp(&part(a.1, a.2)));
    let row = |(pair, r, x): &(&super::OverusePairRecord, usize, f64)| PairRow {
        victim: level.parties[pair.victim].name.clone(),
        holder: level.parties[pair.holder].name.clone(),
        resource: record.resources[*r].name.clone(),
        over: record.format_amount_like(*r, *x, largest(*r)),
    };
    all.iter().take(MAX_PAIRS).map(row).collect()
}

/// A justified complaint.
#[derive(Serialize)]
pub(super) struct ComplaintRow {
    who: String,
    on: String,
    from: String,
    until: String,
    length: String,
    unmet: String,
    /// The party with whose task one tie decided it; empty if no tie alone did.
    tie_with: String,
    against: String,
}

/// Returns the complaints with the most harm, and the number of complaints left out.
pub(super) fn complaints(record: &EntitlementRecord, level: &LevelRecord) -> (Vec<ComplaintRow>, usize) {
    let row = |c: &&super::ComplaintRecord| ComplaintRow {
        who: level.parties[c.party].name.clone(),
        on: record.resources[c.resource].name.clone(),
        from: c.from.clone().unwrap_or_else(|| format!("{} s", c.from_s)),
        until: c.until.clone().unwrap_or_else(|| format!("{} s", c.until_s)),
        length: duration(c.until_s - c.from_s),
        unmet: record.format_amount(c.resource, c.unmet),
        tie_with: c.tie_with.map_or(String::new(), |party| level.parties[party].name.clone()),
        against: record.format_holders(level, &c.against, c.resource, c.unmet),
    };
    let worst = record.worst_complaints(level);
    (worst.iter().take(MAX_COMPLAINTS).map(row).collect(), worst.len().saturating_sub(MAX_COMPLAINTS))
}
