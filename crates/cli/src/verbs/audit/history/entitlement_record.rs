//! Entitlement, demand and use of accounts and users by week: the record that the page, the tables and JSON print.

use evenhand_audit::{AuditError, Calendar, Entitlements, History, Parties, Window};
use evenhand_model::calendar::{date, date_and_time};
use evenhand_model::{AccountTree, Capacity, Rational, Time, Weights, Workload, mean_use, to_f64};
use evenhand_report::audit_page::{
    ComplaintRecord, EntitlementRecord, LevelRecord, OverusePairRecord, OveruseRecord, PartyRecord, PartyWeekRecord,
    ResourceRecord, SteadyRecord, UseRecord, WeekRecord,
};
use evenhand_study::{AccountsFile, unix_origin};

use crate::arguments::HistoryArgs;
use crate::failure::Failure;
use crate::inputs::weights_and_accounts::note_mismatches;
use crate::output::console::Console;

/// Nanoseconds in an hour.
const HOUR: f64 = 3.6e12;

/// Accounts and shares of users, and a sentence that describes where the shares come from.
pub(super) struct Shares {
    pub(super) tree: AccountTree,
    description: String,
}

/// Places the workload's users in the accounts of `--accounts`, if given.
pub(super) fn place_in_accounts(
    args: &HistoryArgs,
    workload: Workload,
    console: &Console,
) -> Result<(Workload, Option<Shares>), Failure> {
    let Some(path) = &args.accounts else { return Ok((workload, None)) };
    let placed = AccountsFile::read(path).and_then(|file| file.place(workload)).map_err(Failure::document)?;
    note_mismatches(path, &placed, console);
    let description = format!("Those of {}; 1 each for accounts and users it does not name.", path.display());
    Ok((placed.workload, Some(Shares { tree: placed.tree, description })))
}

/// Places the workload's users in the accounts of the trace, or in none with `--weights`, for a page without `--accounts`. The
/// findings do not depend on these shares.
pub(super) fn place_in_accounts_of_trace(
    args: &HistoryArgs,
    workload: &Workload,
    weights: &Weights,
) -> Result<(Workload, Shares), Failure> {
    if let Some(path) = &args.weights {
        let users = workload.users().len();
        let shares = (0..users).map(|user| weights.exact(user).clone()).collect();
        let tree = AccountTree::new(Vec::new(), vec![None; users], shares);
        let tree = tree.map_err(|e| Failure::Input(format!("{}: {e}", path.display())))?;
        let description = format!("Weights of users: {}; no accounts.", path.display());
        return Ok((workload.clone(), Shares { tree, description }));
    }
    let placed = AccountsFile::empty().place(workload.clone()).map_err(Failure::document)?;
    let description = match placed.tree.accounts().len() > 1 {
        true => "Not given: the trace's accounts have equal shares, and so have the users of each account.".to_owned(),
        false => "Not given, and the trace does not distinguish accounts: its users have equal shares.".to_owned(),
    };
    let several = placed.workload.users().len() > workload.users().len();
    let several = if several { " A user of several accounts has a row for each, as user@account." } else { "" };
    Ok((placed.workload, Shares { tree: placed.tree, description: description + several }))
}

/// Parses `--utc-offset` into nanoseconds.
pub(super) fn parse_utc_offset(text: Option<&str>) -> Result<i128, Failure> {
    let Some(text) = text else { return Ok(0) };
    let parse = || {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i128>().ok()).flatten();
        let (hours, minutes) = (number(hours)?, number(minutes).filter(|m| *m < 60)?);
        (hours <= 14).then_some(sign * (hours * 60 + minutes) * 60_000_000_000)
    };
    parse().ok_or_else(|| {
        Failure::Input(format!("--utc-offset: found {text:?}, expected hours from -14 to 14, such as +1 or -05:30"))
    })
}

/// Returns how the workload's times convert to dates, if they do.
pub(super) fn calendar(workload: &Workload, offset_ns: i128) -> Calendar {
    let origin = unix_origin(workload).map(|seconds| i128::from(seconds) * 1_000_000_000);
    Calendar { origin, ahead: offset_ns }
}

/// Returns the record of all accounts and users.
pub(super) fn record(
    history: &History<'_>,
    shares: &Shares,
    (pool, pool_is): (&Capacity, &str),
    calendar: Calendar,
    window: Window,
) -> Result<EntitlementRecord, AuditError> {
    let workload = history.workload();
    let names = workload.users();
    let tree = &shares.tree;
    let users = Parties::users(tree, names)?;
    // A single account for all users adds no information.
    let accounts = Some(Parties::accounts(tree, names)?)
        .filter(|accounts| accounts.len() > 1 && (0..names.len()).any(|user| tree.account_of(user).is_some()));
    let has_accounts = accounts.is_some();
    let mut levels = Vec::new();
    let mut weeks = Vec::new();
    for (kind, parties) in accounts.iter().map(|a| ("account", a)).chain([("user", &users)]) {
        let found = history.entitlements(pool, parties, calendar, window);
        weeks = found.weeks.iter().enumerate().map(|(at, week)| week_record(at, week, calendar)).collect();
        let weeks_in_json = kind == "account" || !has_accounts;
        levels.push(LevelRecord { weeks_in_json, ..level(kind, workload, pool, parties, &found, calendar) });
    }
    let capacity_is = match pool_is {
        super::PEAK_USE => format!("{pool_is}, since neither --capacity nor the log's header states it."),
        other => format!("{other}."),
    };
    let monday = "From Monday 00:00 to Monday 00:00 by";
    let weeks_are = match (calendar.origin, calendar.ahead) {
        (None, _) => "Seven days each from the first event; the trace has no dates.".to_string(),
        (Some(_), 0) => format!("{monday} the trace's clock; the first and the last week may be incomplete."),
        (Some(_), ahead) => {
            let hours = ahead as f64 / HOUR;
            format!(
                "{monday} a clock {hours:+} hours ahead of the trace's; the first and the last week may be incomplete."
            )
        }
    };
    let resources = workload.resources().iter().enumerate();
    Ok(EntitlementRecord {
        shares_are: shares.description.clone(),
        weeks_are,
        capacity_is,
        resources: resources
            .map(|(r, resource)| ResourceRecord {
                name: resource.name.clone(),
                unit: resource.unit.clone(),
                capacity: pool.units(r),
            })
            .collect(),
        steady: steady(workload, &weeks),
        weeks,
        levels,
        ..EntitlementRecord::default()
    })
}

/// Returns the part of the history between the time at which the use of the first resource first reaches its mean and the
/// last submission. `None` if it has less than half of the history: a short history is nothing but edges.
fn steady(workload: &Workload, weeks: &[WeekRecord]) -> Option<SteadyRecord> {
    let (begin, end) = (weeks.first()?.from_s, weeks.last()?.until_s);
    let filled = first_reaching_mean(workload)?.secs_f64().max(begin);
    let last = workload.columns().submit.last()?.secs_f64().min(end);
    (last - filled >= 0.5 * (end - begin)).then_some(SteadyRecord { from_s: filled, until_s: last })
}

/// Returns when the use of the first resource first reaches its mean; `None` without starts.
fn first_reaching_mean(workload: &Workload) -> Option<Time> {
    let mean = to_f64(mean_use(workload).units.first()?) * workload.resources().first()?.steps() as f64;
    let mut changes = Vec::new();
    for row in 0..workload.len() {
        let Some(start) = workload.start(row) else { continue };
        let amount = i128::from(workload.amounts(row)[0].0) * i128::from(workload.count(row));
        changes.push((start, amount));
        changes.push((start + workload.columns().duration[row], -amount));
    }
    changes.sort_unstable();
    let mut held = 0;
    for (at, change) in changes {
        held += change;
        if held as f64 >= mean {
            return Some(at);
        }
    }
    None
}

fn week_record(at: usize, week: &evenhand_audit::Week, calendar: Calendar) -> WeekRecord {
    let monday = calendar
        .local_seconds(week.from)
        .map(|s| s.saturating_sub(calendar.since_monday(week.from).nanos() / 1_000_000_000));
    WeekRecord {
        label: monday.and_then(date).unwrap_or_else(|| format!("week {}", at + 1)),
        from_s: week.from.secs_f64(),
        until_s: week.until.secs_f64(),
        from: calendar.local_seconds(week.from).and_then(date_and_time),
        until: calendar.local_seconds(week.until).and_then(date_and_time),
    }
}

fn level(
    kind: &'static str,
    workload: &Workload,
    pool: &Capacity,
    parties: &Parties,
    found: &Entitlements,
    calendar: Calendar,
) -> LevelRecord {
    let width = workload.resources().len();
    // Steps times nanoseconds of a resource per unit times hour.
    let scale: Vec<f64> = workload.resources().iter().map(|r| r.steps() as f64 * HOUR).collect();
    let overuses = |against: &[(usize, f64)], r: usize| {
        against.iter().map(|&(party, x)| OveruseRecord { party, over: x / scale[r] }).collect::<Vec<_>>()
    };
    let shares = parties.shares_among(&vec![true; parties.len()]);
    let entitled = |share: &Rational, r: usize, hours: f64| to_f64(&(share * pool.exact_units(r))) * hours;
    let mut weeks = Vec::new();
    let mut totals = vec![vec![UseRecord::default(); width]; parties.len()];
    // Exact sums, because floating-point sums would depend on how the history is divided into weeks.
    let mut sums = vec![(0u128, 0u128); parties.len() * width];
    for (at, week) in found.weeks.iter().enumerate() {
        let hours = week.until.since(week.from).nanos() as f64 / HOUR;
        for (party, totals) in totals.iter_mut().enumerate() {
            for (r, total) in totals.iter_mut().enumerate() {
                total.entitled += entitled(&shares[party], r, hours);
            }
        }
        for of in &week.parties {
            let mut uses = Vec::new();
            for (r, u) in of.uses.iter().enumerate() {
                let record = UseRecord {
                    entitled: entitled(&shares[of.party], r, hours),
                    entitled_among_active: entitled(&of.share, r, hours),
                    wanted: u.wanted as f64 / scale[r],
                    got: u.got as f64 / scale[r],
                    unmet: u.unmet / scale[r],
                    over: u.over / scale[r],
                    against: overuses(&u.against, r),
                };
                let (total, sum) = (&mut totals[of.party][r], &mut sums[of.party * width + r]);
                *sum = (sum.0 + u.got, sum.1.saturating_add(u.wanted));
                total.got = sum.0 as f64 / scale[r];
                total.wanted = sum.1 as f64 / scale[r];
                total.entitled_among_active += record.entitled_among_active;
                total.unmet += record.unmet;
                total.over += record.over;
                uses.push(record);
            }
            weeks.push(PartyWeekRecord { week: at, party: of.party, share: to_f64(&of.share), uses });
        }
    }
    let mut complaints = vec![0; parties.len()];
    found.complaints.iter().for_each(|c| complaints[c.party] += 1);
    let named_parties = parties.names().iter().zip(totals).enumerate();
    let pairs = found.pairs.iter().map(|pair| OverusePairRecord {
        victim: pair.victim,
        holder: pair.holder,
        over: pair.over.iter().zip(&scale).map(|(x, scale)| x / scale).collect(),
    });
    let of_complaint = |c: &evenhand_audit::Complaint| ComplaintRecord {
        party: c.party,
        resource: c.resource,
        from_s: c.from.secs_f64(),
        until_s: c.until.secs_f64(),
        from: calendar.local_seconds(c.from).and_then(date_and_time),
        until: calendar.local_seconds(c.until).and_then(date_and_time),
        unmet: c.unmet / scale[c.resource],
        share_hours: c.unmet / scale[c.resource] / pool.units(c.resource),
        tie_with: c.tie_with,
        against: overuses(&c.against, c.resource),
    };
    LevelRecord {
        kind,
        weeks_in_json: true,
        parties: named_parties
            .map(|(p, (name, uses))| PartyRecord {
                name: name.clone(),
                share: to_f64(&shares[p]),
                uses,
                complaints: complaints[p],
            })
            .collect(),
        weeks,
        pairs: pairs.collect(),
        complaints: found.complaints.iter().map(of_complaint).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_hours_and_minutes() {
        let hours = |text| parse_utc_offset(Some(text)).ok().map(|ns| ns as f64 / HOUR);
        assert_eq!(["+1", "1", "-05:30", "14", "+00:45"].map(hours), [1.0, 1.0, -5.5, 14.0, 0.75].map(Some));
        assert_eq!(["", "x", "15", "1:60", "--1", "+ 1", "1:"].map(hours), [None; 7]);
        assert_eq!(parse_utc_offset(None).ok(), Some(0));
    }
}
