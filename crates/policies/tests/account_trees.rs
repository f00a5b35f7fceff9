//! The policies of sites with accounts against their documentation, in exact rationals.
//!
//! The reference models do what the documents state step by step: sort, merge, count ranks, walk up for the effective
//! usage. At whole multiples of the half-life usage is rational, so a tie is a tie.

#![allow(clippy::unwrap_used)]

use evenhand_model::{AccountTree, Amount, Capacity, Rational, Resource, Span, Time, UserId, Weights, to_f64};
use evenhand_policies::{Decay, Job, Policy, PolicyContext, Registry};
use proptest::prelude::*;

#[path = "reference_models/slurm_documents.rs"]
mod slurm_documents;
use slurm_documents::{CAPACITY, HALF_LIFE_S, Node, SlurmDocuments, tree};

fn policy(name: &str, tree: &AccountTree) -> Box<dyn Policy> {
    let capacity = Capacity::new(&[Resource::new("cpu", "")], vec![Rational::from(CAPACITY)]).unwrap();
    let weights = Weights::equal(tree.users());
    let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
    let setting = PolicyContext::new(&capacity, &weights).decay(Some(decay)).accounts(Some(tree));
    Registry::built_in().build(name, &setting).unwrap()
}

/// Each user has held its number for one half-life, so that its usage is in proportion to it.
fn used(name: &str, tree: &AccountTree, usage: &[u64]) -> (Box<dyn Policy>, Time) {
    let mut policy = policy(name, tree);
    let now = Time::from_secs(HALF_LIFE_S);
    for (user, &held) in usage.iter().enumerate() {
        policy.started(Time::ZERO, &Job::new(UserId(user as u32), &[Amount(held)]));
    }
    for (user, &held) in usage.iter().enumerate() {
        policy.finished(now, &Job::new(UserId(user as u32), &[Amount(held)]));
    }
    (policy, now)
}

fn factors(tree: &AccountTree, usage: &[u64]) -> Vec<f64> {
    let (mut policy, now) = used("fair-tree", tree, usage);
    (0..usage.len()).map(|u| 1.0 - policy.standing(now, UserId(u as u32)).key).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} is not {expected:?}");
}

/// K5, and continuous time: charged exactly while a job runs, however often priorities are read in between.
#[test]
fn usage_in_parts_is_as_in_one() {
    let t = tree(&[], &[(None, 1), (None, 1)]);
    let capacity = Capacity::new(&[Resource::new("cpu", "")], vec![Rational::from(CAPACITY)]).unwrap();
    let weights = Weights::equal(t.users());
    let setting = PolicyContext::new(&capacity, &weights);
    let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
    let usage = |looks: &[u64]| {
        let mut policy = Registry::built_in().build("half-life", &setting.decay(Some(decay))).unwrap();
        let user = UserId(0);
        policy.started(Time::ZERO, &Job::new(user, &[Amount(CAPACITY / 2)]));
        for look in looks.iter().filter(|l| **l < 7_000) {
            policy.standing(Time::from_nanos(look * 1_000_000), user);
        }
        policy.finished(Time::from_secs(7), &Job::new(user, &[Amount(CAPACITY / 2)]));
        for look in looks.iter().filter(|l| **l > 7_000) {
            policy.standing(Time::from_nanos(look * 1_000_000), user);
        }
        policy.standing(Time::from_nanos(33_333_000_000), user).key
    };
    let expected = 0.5 * (1.0 - 2f64.powf(-7.0 / 8.0)) * 2f64.powf(-26.333 / 8.0);
    close(&[usage(&[]), usage(&[1, 500, 6_999, 7_001, 30_000]), usage(&[3_141, 27_182])], &[expected; 3]);
}

#[test]
fn fair_tree_ranks_all_users_of_a_better_account_first() {
    let t = tree(
        &[("A", None, 40), ("B", None, 30), ("C", None, 30)],
        &[(Some(0), 1), (Some(0), 1), (Some(1), 2), (Some(1), 1), (Some(2), 1)],
    );
    // a1, a2, b1, b2, c1
    close(&factors(&t, &[100, 300, 100, 0, 500]), &[0.6, 0.4, 0.8, 1.0, 0.2]);
}

#[test]
fn accounts_that_tie_are_merged() {
    let t = tree(&[("A", None, 1), ("B", None, 1)], &[(Some(0), 1), (Some(0), 1), (Some(1), 1), (Some(1), 1)]);
    // Slurm's own program gives a2 3/4 here.
    close(&factors(&t, &[100, 300, 200, 200]), &[1.0, 0.25, 0.75, 0.75]);
}

#[test]
fn a_user_who_ties_with_an_account_gets_the_rank_of_its_best_user() {
    let t = tree(&[("A", None, 1)], &[(None, 1), (Some(0), 1), (Some(0), 1)]);
    close(&factors(&t, &[400, 100, 300]), &[1.0, 1.0, 1.0 / 3.0]);
    // That the best one does not wait makes no difference: x comes before a2.
    let (mut policy, now) = used("fair-tree", &t, &[400, 100, 300]);
    policy.set_first_pending(UserId(2), Some(&Job::new(UserId(2), &[]).at(Time::ZERO, 0)));
    policy.set_first_pending(UserId(0), Some(&Job::new(UserId(0), &[]).at(Time::from_secs(1), 0)));
    assert_eq!(policy.next(now), Some(UserId(0)));
    // But before a1 it is submission that decides.
    policy.set_first_pending(UserId(1), Some(&Job::new(UserId(1), &[]).at(Time::ZERO, 0)));
    assert_eq!(policy.next(now), Some(UserId(1)));
}

/// 2^-(U_E / S)
fn classic_factor(tree: &AccountTree, usage: &[u64], user: u32) -> f64 {
    let (mut policy, now) = used("half-life", tree, usage);
    2f64.powf(-policy.standing(now, UserId(user)).key)
}

#[test]
fn the_classic_factor_is_half_for_who_used_its_share() {
    let t = tree(&[], &[(None, 1), (None, 1)]);
    close(&[classic_factor(&t, &[50, 50], 0)], &[0.5]);
    close(&[classic_factor(&t, &[100, 0], 0)], &[0.25]);
    close(&[classic_factor(&t, &[100, 0], 1)], &[1.0]);
}

#[test]
fn effective_usage_bears_some_of_the_accounts() {
    // The account has .6 of all usage, its user .1, with half of the account's shares: U_E = .35.
    let t = tree(&[("A", None, 1), ("B", None, 1)], &[(Some(0), 1), (Some(0), 1), (Some(1), 1)]);
    let factor = classic_factor(&t, &[10, 50, 40], 0);
    // S = 1/4
    close(&[factor], &[2f64.powf(-0.35 / 0.25)]);
}

/// sdrf-tree by definition: held steps of users, commitments of users and accounts.
#[derive(Default)]
struct Stateful {
    held: Vec<(usize, u64)>,
    commitment: Vec<(Node, Rational)>,
}

impl Stateful {
    fn hold(&mut self, user: usize, held: u64) {
        self.held.retain(|(u, _)| *u != user);
        self.held.push((user, held));
    }

    fn share(&self, reference: &SlurmDocuments, node: Node) -> Rational {
        let below = reference.users_below(node);
        let held: u64 = self.held.iter().filter(|(u, _)| below.contains(u)).map(|(_, held)| held).sum();
        Rational::from(held) / Rational::from(CAPACITY)
    }

    fn entitlement<'a>(&self, reference: &'a SlurmDocuments, node: Node) -> &'a Rational {
        match node {
            Node::User(u) => reference.tree.user_entitlement(u),
            Node::Account(a) => reference.tree.account_entitlement(a),
        }
    }

    fn committed(&self, node: Node) -> Rational {
        self.commitment.iter().find(|(n, _)| *n == node).map_or(Rational::ZERO, |(_, c)| c.clone())
    }

    /// Eq. 6 for users and accounts alike.
    fn pass(&mut self, reference: &SlurmDocuments, keep: &Rational) {
        let accounts = (0..reference.tree.accounts().len()).map(Node::Account);
        let nodes = (0..reference.tree.users()).map(Node::User).chain(accounts);
        self.commitment = nodes
            .map(|node| {
                let overuse = (self.share(reference, node) - self.entitlement(reference, node)).max(Rational::ZERO);
                (node, &overuse + (self.committed(node) - &overuse) * keep)
            })
            .collect();
    }

    fn choice(&self, reference: &SlurmDocuments, parent: Option<usize>, first: &[Option<(u64, u64)>]) -> Option<usize> {
        let waits = |node: &Node| reference.users_below(*node).iter().any(|u| first[*u].is_some());
        let siblings: Vec<Node> = reference.children(parent).into_iter().filter(waits).collect();
        let key = |n: &Node| (self.share(reference, *n) + self.committed(*n)) / self.entitlement(reference, *n);
        let lowest = siblings.iter().map(key).min()?;
        let tied = siblings.into_iter().filter(|n| key(n) == lowest);
        let choices = tied.filter_map(|n| match n {
            Node::User(u) => Some(u),
            Node::Account(a) => self.choice(reference, Some(a), first),
        });
        choices.min_by_key(|u| first[*u])
    }
}

#[derive(Clone, Debug)]
enum Event {
    Wait(usize, bool),
    Start(usize, u64),
    FinishOldest(usize),
    Pass(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0usize..8, any::<bool>()).prop_map(|(u, w)| Event::Wait(u, w)),
        // Some beyond any entitlement.
        6 => (0usize..8, prop::sample::select(vec![0u64, 1, 2, 10_000, 30_000])).prop_map(|(u, d)| Event::Start(u, d)),
        4 => (0usize..8).prop_map(Event::FinishOldest),
        3 => (0usize..4).prop_map(Event::Pass),
        // Past an epoch.
        1 => Just(Event::Pass(40)),
    ]
}

fn check(name: &str, tree: AccountTree, events: &[Event]) -> Result<(), TestCaseError> {
    let n = tree.users();
    let mut policy = policy(name, &tree);
    let mut reference = SlurmDocuments { usage: vec![Rational::ZERO; n], tree };
    let mut stateful = Stateful::default();
    let (mut running, mut rate) = (vec![Vec::new(); n], vec![0u64; n]);
    let mut first: Vec<Option<(u64, u64)>> = vec![None; n];
    let mut now = Time::ZERO;
    let mut passed = 0;
    for event in events {
        // A usage nearer to its limit than 2^-80 may tie with it: 36 digits are kept.
        passed += if let Event::Pass(half_lives) = event { *half_lives } else { 0 };
        if passed > 80 {
            break;
        }
        match *event {
            Event::Wait(u, waits) => {
                first[u % n] = waits.then_some((now.nanos() % 3, (n - u % n) as u64));
                let user = UserId((u % n) as u32);
                policy.set_first_pending(
                    user,
                    first[u % n].map(|(t, position)| Job::new(user, &[]).at(Time::from_nanos(t), position)).as_ref(),
                );
            }
            Event::Start(u, d) => {
                running[u % n].push(d);
                rate[u % n] += d;
                stateful.hold(u % n, rate[u % n]);
                policy.started(now, &Job::new(UserId((u % n) as u32), &[Amount(d)]));
            }
            Event::FinishOldest(u) => {
                if !running[u % n].is_empty() {
                    let d = running[u % n].remove(0);
                    rate[u % n] -= d;
                    stateful.hold(u % n, rate[u % n]);
                    policy.finished(now, &Job::new(UserId((u % n) as u32), &[Amount(d)]));
                }
            }
            Event::Pass(half_lives) => {
                let keep = Rational::from_parts(1.into(), evenhand_model::UBig::ONE << half_lives);
                stateful.pass(&reference, &keep);
                for (usage, rate) in reference.usage.iter_mut().zip(&rate) {
                    let rate = Rational::from(*rate) / Rational::from(CAPACITY);
                    *usage = &rate + (&*usage - &rate) * &keep;
                }
                now = now + Span::from_secs(HALF_LIFE_S * half_lives as u64);
            }
        }
        if name == "sdrf-tree" {
            let expected = stateful.choice(&reference, None, &first).map(|u| UserId(u as u32));
            prop_assert_eq!(policy.next(now), expected, "after {:?}", event);
            continue;
        }
        let key: Vec<Rational> = match name {
            "fair-tree" => reference.ranks().into_iter().map(|rank| Rational::from((n - rank) as u64)).collect(),
            _ => (0..n).map(|u| reference.classic(u)).collect(),
        };
        let waiting = (0..n).filter(|u| first[*u].is_some());
        let expected = waiting.min_by_key(|u| (&key[*u], first[*u])).map(|u| UserId(u as u32));
        prop_assert_eq!(policy.next(now), expected, "{} after {:?}: {:?}", name, event, key);
        for (u, key) in key.iter().enumerate() {
            let found = policy.standing(now, UserId(u as u32)).key;
            let expected = to_f64(key) / if name == "fair-tree" { n as f64 } else { 1.0 };
            prop_assert!((found - expected).abs() <= 1e-9 * expected.max(1e-3), "{found} is not {expected}");
        }
    }
    Ok(())
}

fn trees() -> impl Strategy<Value = AccountTree> {
    let accounts = prop::collection::vec((0usize..4, 1u64..4), 0..5);
    let users = prop::collection::vec((0usize..6, 1u64..4), 1..8);
    (accounts, users).prop_map(|(accounts, users)| {
        let above = |i: usize, p: usize| (p > 0 && i > 0).then(|| (p - 1) % i);
        let all = accounts.len();
        let accounts: Vec<_> = accounts.iter().enumerate().map(|(i, (p, s))| ("", above(i, *p), *s)).collect();
        let users: Vec<_> = users.iter().map(|(h, s)| (above(all, *h), *s)).collect();
        tree(&accounts, &users)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fair_tree_is_as_documented(t in trees(), events in prop::collection::vec(event(), 1..40)) {
        check("fair-tree", t, &events)?;
    }

    #[test]
    fn classic_fairshare_is_as_documented(t in trees(), events in prop::collection::vec(event(), 1..40)) {
        check("half-life", t, &events)?;
    }

    #[test]
    fn sdrf_tree_is_as_defined(t in trees(), events in prop::collection::vec(event(), 1..40)) {
        check("sdrf-tree", t, &events)?;
    }

    /// K7: all users under a better account before all under a worse. K6: only ratios count.
    #[test]
    fn a_better_account_is_better_for_all_its_users(t in trees(), usage in prop::array::uniform8(0u64..5), k in 1u64..9) {
        let usage = &usage[..t.users()];
        let reference = SlurmDocuments { usage: usage.iter().map(|u| Rational::from(*u)).collect(), tree: t.clone() };
        let found = factors(&t, usage);
        let scaled: Vec<u64> = usage.iter().map(|u| u * k).collect();
        prop_assert_eq!(&found, &factors(&t, &scaled));
        prop_assert!(found.iter().all(|f| *f > 0.0 && *f <= 1.0));
        let level = |n: Node| reference.level_fairshare(n).map_or(f64::INFINITY, |lf| to_f64(&lf));
        let children = reference.children(None);
        for (a, b) in children.iter().flat_map(|a| children.iter().map(move |b| (*a, *b))) {
            if level(a) > level(b) * (1.0 + 1e-12) {
                let worst = reference.users_below(a).into_iter().map(|u| found[u]).fold(1.0, f64::min);
                let best = reference.users_below(b).into_iter().map(|u| found[u]).fold(0.0, f64::max);
                prop_assert!(worst > best, "{a:?} {b:?}");
            }
        }
    }
}
