//! Tables of the entitlement, demand and use of accounts and users.

use evenhand_model::counted;
use evenhand_report::audit_page::{EntitlementRecord, LevelRecord};

use crate::output::fold_lines::{COLUMNS, fold_lines, table_width};
use crate::output::numbers::rounded;
use crate::output::table::{Table, printable};

/// Largest numbers of parties, pairs and complaints in the tables.
const MAX_PARTIES: usize = 15;
const MAX_PAIRS: usize = 8;
const MAX_COMPLAINTS: usize = 8;
/// Largest number of parties with the most overuse in a row.
const MAX_HOLDERS: usize = 3;

/// Returns the summary, then each level's tables.
pub(super) fn tables(record: &EntitlementRecord) -> Vec<String> {
    let mut parts = vec![format!(
        "Shares: {}\nWeeks: {}\nCapacity: {}",
        record.shares_are,
        record.weeks_are,
        with_plain_spaces(&record.capacity_sentence())
    )];
    if let Some((number, sentence)) = record.headline() {
        parts.push(with_plain_spaces(&format!("{number} {sentence}")));
    }
    let sentences = record.summary_sentences();
    parts.push(sentences.iter().map(|s| printable(&with_plain_spaces(s))).collect::<Vec<_>>().join("\n"));
    for level in &record.levels {
        parts.extend((0..record.resources.len()).filter_map(|r| parties(record, level, r)));
        parts.extend(pairs(record, level));
        parts.extend(complaints(record, level));
    }
    parts
}

/// Replaces the non-breaking and narrow spaces of the page by plain ones.
fn with_plain_spaces(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

fn parties(record: &EntitlementRecord, level: &LevelRecord, r: usize) -> Option<String> {
    let mut order: Vec<usize> = (0..level.parties.len()).filter(|&p| level.parties[p].uses[r].wanted > 0.0).collect();
    order.sort_by(|&a, &b| {
        let of = |p: usize| &level.parties[p].uses[r];
        of(b).unmet.total_cmp(&of(a).unmet).then(of(b).got.total_cmp(&of(a).got))
    });
    if order.is_empty() {
        return None;
    }
    let hours = record.hours();
    let header = ["entitled %", "among active %", "demanded %", "received %", "unmet %", "overuse %", "complaints"];
    let resource = &record.resources[r].name;
    let mut table =
        Table::new(1, std::iter::once(format!("{} on {resource}", level.kind)).chain(header.map(String::from)));
    for &p in order.iter().take(MAX_PARTIES) {
        let (party, u) = (&level.parties[p], &level.parties[p].uses[r]);
        let mut row = vec![printable(&party.name)];
        let amounts = [u.entitled, u.entitled_among_active, u.wanted, u.got, u.unmet, u.over];
        row.extend(amounts.map(|amount| format!("{:.1}", 100.0 * record.capacity_share(r, amount, hours))));
        row.push(party.complaints.to_string());
        table.row(row);
    }
    Some(format!("{}{}", table.render(), more(order.len(), MAX_PARTIES)))
}

fn more(count: usize, listed: usize) -> String {
    if count > listed { format!("\nand {} more; --out has all", count - listed) } else { String::new() }
}

fn pairs(record: &EntitlementRecord, level: &LevelRecord) -> Option<String> {
    let all = level.pairs.iter().flat_map(|pair| pair.over.iter().enumerate().map(move |(r, &x)| (pair, r, x)));
    let mut all: Vec<_> = all.filter(|(_, _, x)| *x > 0.0).collect();
    let part = |r: usize, x: f64| record.capacity_share(r, x, record.hours());
    let largest = |r: usize| level.pairs.iter().fold(0.0f64, |most, pair| most.max(pair.over[r]));
    all.sort_by(|a, b| part(b.1, b.2).total_cmp(&part(a.1, a.2)));
    let mut table = Table::new(3, ["waited", "overuse by", "on", "overuse", "% of capacity"]);
    for (pair, r, x) in all.iter().take(MAX_PAIRS) {
        let [victim, holder] = [pair.victim, pair.holder].map(|p| printable(&level.parties[p].name));
        let cells = [
            record.resources[*r].name.clone(),
            with_plain_spaces(&record.format_amount_like(*r, *x, largest(*r))),
            format!("{:.1}", 100.0 * part(*r, *x)),
        ];
        table.row([victim, holder].into_iter().chain(cells).collect());
    }
    (!all.is_empty()).then(|| format!("{}{}", table.render(), more(all.len(), MAX_PAIRS)))
}

fn complaints(record: &EntitlementRecord, level: &LevelRecord) -> Option<String> {
    let worst = record.worst_complaints(level);
    let who = format!("{} with a complaint", level.kind);
    let turned = level.turned_by_a_tie();
    let mut header = vec![who.as_str(), "on", "from", "hours", "unmet", "overuse meanwhile"];
    header.extend((turned > 0).then_some("tie with"));
    let table = |holders: usize| {
        let mut table = Table::new(2, header.iter().copied());
        for c in worst.iter().take(MAX_COMPLAINTS) {
            let against = &c.against[..holders.min(c.against.len())];
            let mut row = vec![
                printable(&level.parties[c.party].name),
                record.resources[c.resource].name.clone(),
                c.from.clone().unwrap_or_else(|| format!("{} s", c.from_s)),
                rounded((c.until_s - c.from_s) / 3600.0),
                with_plain_spaces(&record.format_amount(c.resource, c.unmet)),
                printable(&with_plain_spaces(&record.format_holders(level, against, c.resource, c.unmet))),
            ];
            let tie = || c.tie_with.map_or("-".into(), |party| printable(&level.parties[party].name));
            row.extend((turned > 0).then(tie));
            table.row(row);
        }
        table
    };
    // As many of those with the largest overuse as lines have space for.
    let fits = |table: &Table| table.width() <= table_width();
    let table = (2..=MAX_HOLDERS).rev().map(&table).find(fits).unwrap_or_else(|| table(1));
    let table = table.fit(table_width(), &["unmet", "on"]);
    let ties = match turned {
        0 => String::new(),
        turned => format!(
            "\n{}",
            fold_lines(
                &format!(
                    "tie with: {turned} of {} would not exist if one tie had been decided otherwise; a task of that {} was \
                     submitted at the same instant and ran instead",
                    counted(level.complaints.len(), "complaint", "complaints"),
                    level.kind
                ),
                COLUMNS,
                ""
            )
        ),
    };
    (!worst.is_empty()).then(|| format!("{}{}{ties}", table.render(), more(worst.len(), MAX_COMPLAINTS)))
}
