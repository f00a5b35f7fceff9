//! Compares entitlements with results computed by hand, with a reference model (which evaluates the definitions for each
//! elementary interval from scratch, in exact rationals, over all tasks), and with the audit, which computes the same
//! complaints in another way.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use evenhand_audit::{Calendar, Entitlements, History, MAX_NAMED_HOLDERS, Parties, Property, Window};
use evenhand_model::{
    Account, AccountTree, Capacity, Quantity, Rational, Resource, Span, Task, Time, Workload, WorkloadBuilder, to_f64,
};
use proptest::prelude::*;

const CALENDAR: Calendar = Calendar { origin: None, ahead: 0 };
const WEEK: u64 = 604_800;

/// A task; times in seconds.
#[derive(Clone, Debug)]
struct Row {
    user: usize,
    submit: u64,
    start: Option<u64>,
    duration: u64,
    amounts: Vec<u64>,
    count: u32,
}

fn row(user: usize, [submit, start, duration]: [u64; 3], amounts: &[u64]) -> Row {
    Row { user, submit, start: Some(start), duration, amounts: amounts.to_vec(), count: 1 }
}

fn workload(rows: &[Row], users: usize, width: usize) -> Workload {
    let mut b = WorkloadBuilder::new((0..width).map(|r| Resource::new(format!("r{r}"), "")));
    // One row per user first, without a start, so that users keep their indices.
    for user in 0..users {
        b.push(&Task { user: &user.to_string(), amounts: &vec![0; width], ..Task::default() });
    }
    for row in rows {
        let amounts: Vec<u128> = row.amounts.iter().map(|&a| u128::from(a) * 1_000_000_000).collect();
        b.push(&Task {
            submit: Time::from_secs(row.submit),
            start: row.start.map(Time::from_secs),
            duration: Span::from_secs(row.duration),
            user: &row.user.to_string(),
            amounts: &amounts,
            count: row.count,
            ..Task::default()
        });
    }
    b.finish().unwrap()
}

fn number(n: u64) -> Rational {
    Rational::from(n)
}

/// A tree of shares whose leaves' shares are computed from the definition, one level after another.
#[derive(Clone, Debug)]
struct Leaves {
    accounts: Vec<(Option<usize>, Rational)>,
    leaves: Vec<(Option<usize>, Rational)>,
}

impl Leaves {
    fn part(&self, leaf: usize, there: &BTreeSet<usize>) -> Rational {
        let lives = |account: usize| {
            there.iter().any(|&l| {
                let mut at = self.leaves[l].0;
                while let Some(a) = at {
                    if a == account {
                        return true;
                    }
                    at = self.accounts[a].0;
                }
                false
            })
        };
        let siblings = |parent: Option<usize>| {
            let of_leaves = there.iter().filter(|&&l| self.leaves[l].0 == parent).map(|&l| &self.leaves[l].1);
            let accounts = self.accounts.iter().enumerate().filter(|(a, account)| account.0 == parent && lives(*a));
            of_leaves.chain(accounts.map(|(_, a)| &a.1)).fold(Rational::ZERO, |sum, s| sum + s)
        };
        let &(mut at, ref shares) = &self.leaves[leaf];
        let mut part = shares / siblings(at);
        while let Some(account) = at {
            let (parent, shares) = &self.accounts[account];
            part *= shares / siblings(*parent);
            at = *parent;
        }
        part
    }
}

/// Use, demand, unmet claim, overuse.
type Sums = [Rational; 4];

fn nothing() -> Sums {
    [Rational::ZERO, Rational::ZERO, Rational::ZERO, Rational::ZERO]
}

/// An interval in seconds, and the unmet claim in it.
type Interval = (u64, u64, Rational);

#[derive(Debug, Default)]
struct ReferenceModel {
    /// By week, party, resource; in unit-seconds.
    sums: BTreeMap<(usize, usize, usize), Sums>,
    /// The parties that were active at any time of each week.
    claims: BTreeMap<usize, BTreeSet<usize>>,
    /// By week (`None`: over all weeks), victim, holder, resource.
    pairs: BTreeMap<(Option<usize>, usize, usize, usize), Rational>,
    /// By party and resource: intervals with the unmet claim.
    complaints: BTreeMap<(usize, usize), Vec<Interval>>,
    until: u64,
}

fn evaluate(
    rows: &[Row],
    of_user: &[usize],
    tree: &Leaves,
    capacity: &[Rational],
    window: (u64, u64),
) -> ReferenceModel {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.start.is_some()).collect();
    let start = |row: &Row| row.start.unwrap();
    let first = rows.iter().map(|row| row.submit.min(start(row))).min().unwrap();
    let last = rows.iter().map(|row| start(row) + row.duration).max().unwrap();
    let from = window.0.max(first).min(last);
    let until = window.1.min(last).max(from);
    let mut events = BTreeSet::from([from, until]);
    events.extend(rows.iter().flat_map(|row| [row.submit, start(row), start(row) + row.duration]));
    events.extend((1..).map(|k| from + k * WEEK).take_while(|t| *t < until));
    let events: Vec<u64> = events.into_iter().filter(|t| (from..=until).contains(t)).collect();
    let (n, width) = (tree.leaves.len(), capacity.len());
    let mut model = ReferenceModel { until, ..ReferenceModel::default() };
    for step in events.windows(2) {
        let (now, next) = (step[0], step[1]);
        let week = ((now - from) / WEEK) as usize;
        let seconds = number(next - now);
        let of = |p: usize, row: &Row| of_user[row.user] == p;
        let runs = |row: &Row| start(row) <= now && now < start(row) + row.duration;
        let waits = |row: &Row| row.submit <= now && now < start(row);
        let sum = |p: usize, r: usize, which: &dyn Fn(&Row) -> bool| {
            let own = rows.iter().filter(|row| of(p, row) && which(row));
            own.fold(Rational::ZERO, |sum, row| sum + number(row.amounts[r] * u64::from(row.count)))
        };
        let there: BTreeSet<usize> =
            (0..n).filter(|&p| rows.iter().any(|row| of(p, row) && (runs(row) || waits(row)))).collect();
        model.claims.entry(week).or_default().extend(&there);
        let held: Vec<Vec<Rational>> = (0..n).map(|p| (0..width).map(|r| sum(p, r, &runs)).collect()).collect();
        let total = |r: usize| held.iter().fold(Rational::ZERO, |sum, h| sum + &h[r]);
        let due = |p: usize, r: usize| tree.part(p, &there) * &capacity[r];
        let unmet = |p: usize, r: usize| (due(p, r) - &held[p][r]).max(Rational::ZERO).min(sum(p, r, &waits));
        let over = |p: usize, r: usize| (&held[p][r] - due(p, r)).max(Rational::ZERO);
        (0..width).for_each(|r| {
            let add = |of: fn(Rational, Rational) -> Rational, values: &BTreeMap<usize, Rational>| {
                values.values().cloned().fold(Rational::ZERO, of)
            };
            let lacks: BTreeMap<usize, Rational> = there.iter().map(|&p| (p, unmet(p, r))).collect();
            let has: BTreeMap<usize, Rational> = there.iter().map(|&p| (p, over(p, r))).collect();
            let larger = add(|a, b| a + b, &lacks).max(add(|a, b| a + b, &has));
            for &p in &there {
                let wanted = &held[p][r] + sum(p, r, &waits);
                let values = [held[p][r].clone(), wanted, lacks[&p].clone(), has[&p].clone()];
                let sums = model.sums.entry((week, p, r)).or_insert_with(nothing);
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * &seconds);
                for (&h, theirs) in &has {
                    let x = if larger.is_zero() { Rational::ZERO } else { &lacks[&p] * theirs / &larger * &seconds };
                    for week in [Some(week), None] {
                        *model.pairs.entry((week, p, h, r)).or_insert(Rational::ZERO) += &x;
                    }
                }
            }
        });
        for &p in &there {
            // Rows are sorted by submission.
            let Some(task) = rows.iter().find(|row| of(p, row) && waits(row)) else { continue };
            let d = |r: usize| number(task.amounts[r]);
            let blocking: Vec<usize> =
                (0..width).filter(|&r| task.amounts[r] > 0 && total(r) + d(r) > capacity[r]).collect();
            if !blocking.is_empty() && blocking.iter().all(|&r| &held[p][r] + d(r) <= due(p, r)) {
                for r in blocking {
                    let amount = unmet(p, r) * &seconds;
                    let intervals = model.complaints.entry((p, r)).or_default();
                    match intervals.last_mut().filter(|last| last.1 == now) {
                        Some(last) => (last.1, last.2) = (next, &last.2 + amount),
                        None => intervals.push((now, next, amount)),
                    }
                }
            }
        }
    }
    model
}

/// Tries all other orders of one tie: returns the parties of the tasks with which it would have turned the complaint of
/// party `p` on resource `r` in `from..until`.
fn turned_by(
    case: (&[Row], &[usize], &Leaves, &[Rational]),
    (p, r): (usize, usize),
    (from, until): (u64, u64),
) -> BTreeSet<usize> {
    let (rows, of_user, tree, capacity) = case;
    let of = |row: &Row| of_user[row.user];
    let first = rows.iter().position(|row| of(row) == p && row.submit <= from && row.start.is_some_and(|s| s > from));
    let a = first.unwrap();
    let mut found = BTreeSet::new();
    for (b, other) in rows.iter().enumerate() {
        let task = &rows[a];
        let (Some(start), Some(instead)) = (task.start, other.start) else { continue };
        let enough = |r: usize| task.amounts[r] * u64::from(task.count) <= other.amounts[r] * u64::from(other.count);
        let ran_through = instead <= from && instead + other.duration >= until;
        if of(other) == p || other.submit != task.submit || !ran_through || start < until {
            continue;
        }
        if !(0..capacity.len()).all(enough) {
            continue;
        }
        let mut exchanged = rows.to_vec();
        (exchanged[a].start, exchanged[b].start) = (Some(instead), Some(start));
        if !evaluate(&exchanged, of_user, tree, capacity, (from, until)).complaints.contains_key(&(p, r)) {
            found.insert(of(other));
        }
    }
    found
}

/// Checks which complaints are marked as turned by one tie. Returns how many are, and how many are not.
fn assert_ties(found: &Entitlements, case: (&[Row], &[usize], &Leaves, &[Rational])) -> [usize; 2] {
    let mut counts = [0, 0];
    for c in &found.complaints {
        let of = |time: Time| time.nanos() / 1_000_000_000;
        let ties = turned_by(case, (c.party, c.resource), (of(c.from), of(c.until)));
        assert_eq!(c.tie_with.is_some(), !ties.is_empty(), "{c:?} {ties:?}");
        assert!(c.tie_with.is_none_or(|party| ties.contains(&party)), "{c:?} {ties:?}");
        counts[usize::from(ties.is_empty())] += 1;
    }
    counts
}

/// Converts steps times nanoseconds to unit-seconds; amounts in these tests have no decimals.
fn seconds(x: f64) -> f64 {
    x / 1e9
}

fn near(found: f64, exact: &Rational, what: &str) {
    let exact = to_f64(exact);
    // Entitlements are rounded down to 2^-20 of a step, over some weeks.
    assert!((seconds(found) - exact).abs() <= 1e-6 * 2e6 + 1e-9 * exact, "{what}: {} against {exact}", seconds(found));
}

/// Checks that the named holders have the largest overuse, up to rounding.
fn assert_largest(found: &[(usize, f64)], exact: &BTreeMap<usize, Rational>, what: &str) {
    found.iter().for_each(|(h, x)| near(*x, &exact[h], what));
    assert!(found.windows(2).all(|w| w[0].1 > w[1].1 || (w[0].1 == w[1].1 && w[0].0 < w[1].0)), "{what}: {found:?}");
    let smallest = found.last().filter(|_| found.len() == MAX_NAMED_HOLDERS).map_or(0.0, |last| seconds(last.1));
    for (h, x) in exact.iter().filter(|(h, _)| !found.iter().any(|f| f.0 == **h)) {
        assert!(to_f64(x) <= smallest + 4.0, "{what}: {h} is missing with {x}");
    }
}

fn assert_agreement(found: &Entitlements, model: &ReferenceModel, tree: &Leaves, width: usize) {
    for (k, week) in found.weeks.iter().enumerate() {
        let claims = model.claims.get(&k).cloned().unwrap_or_default();
        assert_eq!(week.parties.iter().map(|p| p.party).collect::<BTreeSet<_>>(), claims, "week {k}");
        for party in &week.parties {
            assert_eq!(party.share, tree.part(party.party, &claims), "week {k}, {}", party.party);
            for (r, u) in party.uses.iter().enumerate() {
                let what = format!("week {k}, party {}, resource {r}", party.party);
                let [got, wanted, unmet, over] = &model.sums[&(k, party.party, r)];
                assert_eq!(Rational::from(u.got), got * number(1_000_000_000), "{what}");
                assert_eq!(Rational::from(u.wanted), wanted * number(1_000_000_000), "{what}");
                near(u.unmet, unmet, &what);
                near(u.over, over, &what);
                let own = model.pairs.iter().filter(|(key, _)| (key.0, key.1, key.3) == (Some(k), party.party, r));
                assert_largest(&u.against, &own.map(|(key, x)| (key.2, x.clone())).collect(), &what);
            }
        }
    }
    assert_eq!(found.weeks.last().unwrap().until, Time::from_secs(model.until));
    assert!(found.weeks.windows(2).all(|w| w[0].until == w[1].from));
    for (&(week, v, h, r), exact) in &model.pairs {
        if week.is_none() {
            let pair = found.pairs.iter().find(|p| (p.victim, p.holder) == (v, h));
            near(pair.map_or(0.0, |pair| pair.over[r]), exact, &format!("{v} against {h} on {r}"));
        }
    }
    assert!(found.pairs.iter().all(|p| model.pairs.contains_key(&(None, p.victim, p.holder, 0))));
    assert!(found.pairs.is_sorted_by_key(|p| (p.victim, p.holder)));
    let mut intervals: BTreeMap<(usize, usize), Vec<_>> = BTreeMap::new();
    for c in &found.complaints {
        assert!(!c.against.is_empty(), "a complaint without overuse: {c:?}");
        intervals.entry((c.party, c.resource)).or_default().push(c);
    }
    assert!(intervals.keys().eq(model.complaints.keys()), "{intervals:?} {:?}", model.complaints);
    for (key, exact) in &model.complaints {
        let found = &intervals[key];
        assert_eq!(found.len(), exact.len(), "{key:?}");
        for (c, (from, until, unmet)) in found.iter().zip(exact) {
            assert_eq!((c.from, c.until), (Time::from_secs(*from), Time::from_secs(*until)), "{key:?}");
            near(c.unmet, unmet, &format!("{c:?}"));
        }
    }
    assert_eq!(width, found.weeks[0].parties.first().map_or(width, |p| p.uses.len()));
}

/// Converts accounts (parent, shares) and users (account, shares) to a tree.
fn account_tree(accounts: &[(Option<usize>, Rational)], users: &[(Option<usize>, Rational)]) -> AccountTree {
    let account = |(i, (parent, shares)): (usize, &(Option<usize>, Rational))| Account {
        name: format!("a{i}"),
        parent: *parent,
        shares: shares.clone(),
    };
    let accounts = accounts.iter().enumerate().map(account).collect();
    AccountTree::new(accounts, users.iter().map(|u| u.0).collect(), users.iter().map(|u| u.1.clone()).collect())
        .unwrap()
}

#[test]
fn a_small_week_has_the_values_computed_by_hand() {
    // Four processors. x has an account; y and z share another one with an equal share.
    // x holds 4 from 0 to 100. y requests 1 at 20 and runs from 100 for 50. z requests 3 at 60 and runs from 100 for 20.
    let rows = [row(0, [0, 0, 100], &[4]), row(1, [20, 100, 50], &[1]), row(2, [60, 100, 20], &[3])];
    let w = workload(&rows, 3, 1);
    let one = || Rational::ONE;
    let tree = account_tree(&[(None, one()), (None, one())], &[(Some(0), one()), (Some(1), one()), (Some(1), one())]);
    let history = History::original(&w).unwrap();
    let pool = Capacity::new(w.resources(), vec![number(4)]).unwrap();
    let all = Window::default();

    let accounts = Parties::accounts(&tree, w.users()).unwrap();
    let found = history.entitlements(&pool, &accounts, CALENDAR, all);
    let [week] = &found.weeks[..] else { panic!() };
    let numbers = |p: usize| {
        let u = &week.parties[p].uses[0];
        [u.got as f64, u.wanted as f64, u.unmet, u.over].map(seconds)
    };
    // x: from 20 on it is entitled to 2 and holds 4.
    assert_eq!(numbers(0), [400.0, 400.0, 0.0, 160.0]);
    // Account 1 demands 1 from 20 and 4 from 60, and is entitled to 2: its unmet claim is 40 x 1 + 40 x 2. From 100 it
    // holds 4 and is entitled to all.
    assert_eq!(numbers(1), [110.0, 110.0 + 40.0 + 160.0, 120.0, 0.0]);
    // Until 60, account 1 waits for 1, matched with 1 of x's overuse of 2; then both are 2.
    assert_eq!(
        found.pairs.iter().map(|p| (p.victim, p.holder, seconds(p.over[0]))).collect::<Vec<_>>(),
        [(1, 0, 120.0)]
    );
    assert_eq!(week.parties[1].uses[0].against, [(0, 120e9)]);
    let [complaint] = &found.complaints[..] else { panic!("{found:?}") };
    assert_eq!((complaint.party, complaint.from, complaint.until), (1, Time::from_secs(20), Time::from_secs(100)));
    assert_eq!((seconds(complaint.unmet), &complaint.against[..]), (120.0, &[(0, 120e9)][..]));

    let users = Parties::users(&tree, w.users()).unwrap();
    let found = history.entitlements(&pool, &users, CALENDAR, all);
    // From 60 on y and z are entitled to 1 each: z's task of 3 exceeds that, y's task of 1 does not. Both lack 1; x has an
    // overuse of 2.
    let pairs: Vec<_> = found.pairs.iter().map(|p| (p.victim, p.holder, seconds(p.over[0]))).collect();
    assert_eq!(pairs[..2], [(1, 0, 80.0), (2, 0, 40.0)]);
    let complaints: Vec<_> = found.complaints.iter().map(|c| (c.party, c.from.nanos(), seconds(c.unmet))).collect();
    assert_eq!(complaints, [(1, 20_000_000_000, 80.0)]);
    // From 100 to 120 z holds 3 and y 1, entitled to 2 each: an overuse of 1, but no user waits.
    let z = found.weeks[0].parties[2].uses[0].clone();
    assert_eq!(seconds(z.over), 20.0);

    // A window contains only its part of the week.
    let late = Window { from: Time::from_secs(50), until: Time::from_secs(90) };
    let found = history.entitlements(&pool, &accounts, CALENDAR, late);
    let week = &found.weeks[0];
    assert_eq!((week.from, week.until, found.weeks.len()), (Time::from_secs(50), Time::from_secs(90), 1));
    assert_eq!(seconds(week.parties[1].uses[0].unmet), 10.0 + 60.0);
    assert_eq!((found.complaints[0].from, found.complaints[0].until), (Time::from_secs(50), Time::from_secs(90)));
}

#[test]
fn unmet_claims_and_overuse_are_matched_in_proportion() {
    // Twelve processors, four users entitled to 3 each. 0 holds 8 (overuse 5), 1 holds 4 (overuse 1), 2 waits for 1 and 3
    // for 9 (unmet claims 1 and 3). The unmet claims of 4 are matched with the overuse of 6: 5/6 from 0 and 1/6 from 1.
    let rows = [row(0, [0, 0, 60], &[8]), row(1, [0, 0, 60], &[4]), row(2, [0, 60, 1], &[1]), row(3, [0, 60, 1], &[9])];
    let w = workload(&rows, 4, 1);
    let history = History::original(&w).unwrap();
    let equal = (0..4).map(|_| (None, Rational::ONE)).collect::<Vec<_>>();
    let users = Parties::users(&account_tree(&[], &equal), w.users()).unwrap();
    let pool = Capacity::new(w.resources(), vec![number(12)]).unwrap();
    let found = history.entitlements(&pool, &users, CALENDAR, Window::default());
    let pairs: Vec<_> =
        found.pairs.iter().map(|p| (p.victim, p.holder, (seconds(p.over[0]) * 1e6).round() / 1e6)).collect();
    assert_eq!(pairs, [(2, 0, 50.0), (2, 1, 10.0), (3, 0, 150.0), (3, 1, 30.0)]);
    assert_eq!(found.weeks[0].parties[3].uses[0].against.iter().map(|a| a.0).collect::<Vec<_>>(), [0, 1]);
    // The task of 9 exceeds 3's entitlement: only 2 has a justified complaint.
    assert_eq!(found.complaints.iter().map(|c| c.party).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_complaint_that_one_tie_would_have_turned_names_the_other_party() {
    // Two processors, of which user 0 holds both until 50 while user 1 waits for one.
    let equal = |n: usize| (0..n).map(|_| (None, Rational::ONE)).collect::<Vec<_>>();
    let found = |rows: &[Row], processors: u64| {
        let users = rows.iter().map(|row| row.user).max().unwrap() + 1;
        let w = workload(rows, users, 1);
        let tree = Leaves { accounts: Vec::new(), leaves: equal(users) };
        let parties = Parties::users(&account_tree(&[], &equal(users)), w.users()).unwrap();
        let pool = Capacity::new(w.resources(), vec![number(processors)]).unwrap();
        let found = History::original(&w).unwrap().entitlements(&pool, &parties, CALENDAR, Window::default());
        let own: Vec<usize> = (0..users).collect();
        assert_ties(&found, (rows, &own, &tree, &[number(processors)]));
        found.complaints.iter().map(|c| (c.party, c.tie_with)).collect::<Vec<_>>()
    };
    let first = row(0, [0, 0, 50], &[2]);
    assert_eq!(found(&[first.clone(), row(1, [0, 50, 10], &[1])], 2), [(1, Some(0))], "their order decided");
    assert_eq!(found(&[first.clone(), row(1, [1, 50, 10], &[1])], 2), [(1, None)], "not submitted together");
    assert_eq!(found(&[first.clone(), row(1, [0, 60, 10], &[1]), row(0, [50, 50, 10], &[2])], 2), [(1, None)]);
    // Its next task, submitted at 5, would have waited as well, and both are within its half of four processors; in place
    // of three processors there is space for both.
    let both = [row(1, [0, 50, 60], &[1]), row(1, [5, 50, 10], &[1])];
    let after = |tied: u64, other: u64| {
        let others = [row(0, [0, 0, 50], &[tied]), both[0].clone(), row(0, [1, 1, 50], &[other]), both[1].clone()];
        found(&others, 4)
    };
    assert_eq!((after(1, 3), after(3, 1)), (vec![(1, None)], vec![(1, Some(0))]));
}

#[test]
fn examples_of_the_reference_model_have_complaints_that_one_tie_would_have_turned_and_others() {
    let mut counts = [0, 0];
    let mut stream = evenhand_model::random::Stream::new(1, "ties", 0);
    for _ in 0..300 {
        let mut rows: Vec<Row> = (0..12)
            .map(|_| {
                let submit = stream.below(3) * 10;
                let times = [submit, submit + stream.below(6) * 10, 10 + stream.below(8) * 10];
                row(stream.below(4) as usize, times, &[1 + stream.below(3)])
            })
            .collect();
        rows.sort_by_key(|row| row.submit);
        let leaves = Leaves { accounts: Vec::new(), leaves: (0..4).map(|_| (None, Rational::ONE)).collect() };
        let w = workload(&rows, 4, 1);
        let parties = Parties::users(&account_tree(&[], &leaves.leaves), w.users()).unwrap();
        let pool = Capacity::new(w.resources(), vec![number(12)]).unwrap();
        let found = History::original(&w).unwrap().entitlements(&pool, &parties, CALENDAR, Window::default());
        let of_case = assert_ties(&found, (&rows, &[0, 1, 2, 3], &leaves, &[number(12)]));
        counts = [counts[0] + of_case[0], counts[1] + of_case[1]];
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

fn rational() -> impl Strategy<Value = Rational> {
    prop::sample::select(&["1", "1", "1", "2", "1/3", "0.5", "1000003"][..])
        .prop_map(|text| Quantity::parse(text).unwrap().exact().clone())
}

fn any_row(users: usize, width: usize) -> impl Strategy<Value = Row> {
    // Few distinct values, so that ties in time and in amounts are common; a week is not a multiple of the time step.
    let time = |t: u64| t * 100_003;
    let start = prop_oneof![1 => Just(None), 9 => (0u64..16).prop_map(Some)];
    let amounts = prop::collection::vec(prop_oneof![1 => Just(0u64), 4 => 1u64..4], width);
    let count = prop_oneof![4 => Just(1u32), 1 => 2u32..4];
    (0..users, 0u64..8, start, 0u64..8, amounts, count).prop_map(
        move |(user, submit, start, duration, amounts, count)| Row {
            user,
            submit: time(submit),
            start: start.map(time),
            duration: time(duration),
            amounts,
            count,
        },
    )
}

#[derive(Clone, Debug)]
struct Case {
    rows: Vec<Row>,
    accounts: Vec<(Option<usize>, Rational)>,
    users: Vec<(Option<usize>, Rational)>,
    capacity: Vec<Rational>,
    window: (u64, u64),
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..6, 1usize..3, 0usize..4).prop_flat_map(|(users, width, accounts)| {
        let capacity = prop::sample::select(&["1", "3", "4", "6", "13/2", "12", "1e30"][..])
            .prop_map(|text| Quantity::parse(text).unwrap().exact().clone());
        // A parent is an earlier account, or the root.
        let parents: Vec<_> = (0..accounts).map(|a| (prop::option::of(0..a.max(1)), rational())).collect();
        let homes = prop::collection::vec((prop::option::of(0..accounts.max(1)), rational()), users);
        let window = prop_oneof![
            Just((0u64, 1_000_000_000u64)),
            (0u64..12, 0u64..12).prop_map(|(a, l)| (a * 100_003, (a + l) * 100_003 + 17))
        ];
        (
            prop::collection::vec(any_row(users, width), 1..16),
            parents,
            homes,
            prop::collection::vec(capacity, width),
            window,
        )
            .prop_filter("some task starts", |case| case.0.iter().any(|row| row.start.is_some()))
            .prop_map(move |(mut rows, mut parents, mut homes, capacity, window)| {
                rows.sort_by_key(|row| row.submit);
                if let Some(first) = parents.first_mut() {
                    first.0 = None;
                }
                if accounts == 0 {
                    homes.iter_mut().for_each(|home| home.0 = None);
                }
                Case { rows, accounts: parents, users: homes, capacity, window }
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entitlements_agree_with_the_reference_model(case in case()) {
        let n = case.users.len();
        let w = workload(&case.rows, n, case.capacity.len());
        let history = History::original(&w).unwrap();
        let pool = Capacity::new(w.resources(), case.capacity.clone()).unwrap();
        let tree = account_tree(&case.accounts, &case.users);
        let window = Window { from: Time::from_secs(case.window.0), until: Time::from_secs(case.window.1) };

        let leaves = Leaves { accounts: case.accounts.clone(), leaves: case.users.clone() };
        let users = Parties::users(&tree, w.users()).unwrap();
        let found = history.entitlements(&pool, &users, CALENDAR, window);
        let own: Vec<usize> = (0..n).collect();
        assert_agreement(&found, &evaluate(&case.rows, &own, &leaves, &case.capacity, case.window), &leaves, case.capacity.len());
        assert_ties(&found, (&case.rows, &own, &leaves, &case.capacity));

        let accounts = Parties::accounts(&tree, w.users()).unwrap();
        let of_user: Vec<usize> = accounts.of_user().iter().map(|&p| p as usize).collect();
        let leaf = |p: usize| {
            let members = (0..n).filter(|&u| of_user[u] == p);
            let shares = members.clone().fold(Rational::ZERO, |sum, u| sum + &case.users[u].1);
            (case.users[members.min().unwrap()].0, shares)
        };
        let leaves = Leaves { accounts: case.accounts.clone(), leaves: (0..accounts.len()).map(leaf).collect() };
        let found = history.entitlements(&pool, &accounts, CALENDAR, window);
        assert_agreement(&found, &evaluate(&case.rows, &of_user, &leaves, &case.capacity, case.window), &leaves, case.capacity.len());
        assert_ties(&found, (&case.rows, &of_user, &leaves, &case.capacity));
    }

    #[test]
    fn complaints_agree_with_the_audit(case in case()) {
        // Users without accounts: compare with an audit whose weights are their shares.
        let n = case.users.len();
        let w = workload(&case.rows, n, case.capacity.len());
        let history = History::original(&w).unwrap();
        let pool = Capacity::new(w.resources(), case.capacity.clone()).unwrap();
        let flat: Vec<_> = case.users.iter().map(|user| (None, user.1.clone())).collect();
        let tree = account_tree(&[], &flat);
        let window = Window { from: Time::from_secs(case.window.0), until: Time::from_secs(case.window.1) };
        let users = Parties::users(&tree, w.users()).unwrap();
        let found = history.entitlements(&pool, &users, CALENDAR, window);
        let audit = history.audit(&pool, &tree.weights(), &[Property::NoJustifiedComplaint], window).unwrap();
        let mut seen = 0;
        for f in &audit.findings {
            let (who, on) = (f.who.unwrap().index(), f.on.unwrap());
            let own: Vec<_> = found.complaints.iter().filter(|c| (c.party, c.resource) == (who, on)).collect();
            let lengths = || own.iter().map(|c| c.until.since(c.from));
            let total: u64 = lengths().map(|l| l.nanos()).sum();
            prop_assert_eq!((f.intervals, f.first, f.longest), (own.len() as u64, own[0].from, lengths().max().unwrap()));
            prop_assert_eq!(f.duration.nanos(), total);
            seen += own.len();
        }
        prop_assert_eq!(seen, found.complaints.len());
    }
}
