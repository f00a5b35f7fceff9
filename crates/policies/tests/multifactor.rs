//! The policy `multifactor` against Slurm's documentation, in exact rationals where there are any.

#![allow(clippy::unwrap_used)]

use evenhand_documents::{Document, Format};
use evenhand_model::{AccountTree, Amount, Capacity, Members, Rational, Resource, Span, Time, UserId, Weights, to_f64};
use evenhand_policies::multifactor::{
    FactorWeights, Factors, Fairshare, NoNormal, Settings, Size, in_minutes, normalised, tres,
};
use evenhand_policies::{Decay, Job, Policy, PolicyContext, PolicySettings, Registry, SITE_RULE, SiteConfiguration};
use proptest::prelude::*;

#[path = "reference_models/slurm_documents.rs"]
mod slurm_documents;
use slurm_documents::{CAPACITY, HALF_LIFE_S, Node, SlurmDocuments, tree};

const GPUS: u64 = 7;

/// What waits first of a user.
#[derive(Clone, Debug)]
struct Waits {
    submitted_ms: u64,
    demand: [u64; 2],
    queue: Option<u32>,
    qos: Option<u32>,
    nodes: Option<u32>,
    requested_s: u64,
    nice: i64,
}

fn built(name: &str, tree: &AccountTree, settings: &Settings) -> Box<dyn Policy> {
    let resources = ["cpu", "gpu"].map(|r| Resource::new(r, ""));
    let capacity = Capacity::new(&resources, vec![Rational::from(CAPACITY), Rational::from(GPUS)]).unwrap();
    let weights = Weights::equal(tree.users());
    let decay = Decay::from_half_life(Span::from_secs(HALF_LIFE_S)).unwrap();
    let registry = Registry::built_in();
    let queues: Vec<String> = (0..settings.partitions.len()).map(|queue| format!("q{queue}")).collect();
    let qos: Vec<String> = (0..settings.qos.len()).map(|qos| format!("s{qos}")).collect();
    let text = settings.to_toml(&resources, &queues, &qos);
    let mut sections = PolicySettings::default();
    let document = Document::parse("settings", &text, Some(Format::Toml)).unwrap();
    sections.set_section(&registry, "multifactor", document).unwrap();
    let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&queues).qos(&qos);
    registry.build(name, &context.decay(Some(decay)).accounts(Some(tree)).settings(&sections)).unwrap()
}

/// Each user has held its number of processors for the first half-life.
fn used(name: &str, tree: &AccountTree, usage: &[u64], settings: &Settings) -> Box<dyn Policy> {
    let mut policy = built(name, tree, settings);
    for (user, &held) in usage.iter().enumerate() {
        policy.started(Time::ZERO, &Job::new(UserId(user as u32), &[Amount(held), Amount(0)]));
    }
    for (user, &held) in usage.iter().enumerate() {
        let now = Time::from_secs(HALF_LIFE_S);
        policy.finished(now, &Job::new(UserId(user as u32), &[Amount(held), Amount(0)]));
    }
    policy
}

/// A sum before it is cut, by the words of the documentation; the fair-share factor as an exact `f64` where it is
/// a power.
fn by_hand(settings: &Settings, reference: &SlurmDocuments, waits: &Waits, user: usize, now: Time) -> Rational {
    let weight = |n: u32| Rational::from(n);
    let w = &settings.weights;
    let waited = now.since(Time::from_nanos(waits.submitted_ms * 1_000_000));
    let age = match waited < settings.max_age {
        true => Rational::from(waited.nanos()) / Rational::from(settings.max_age.nanos()),
        false => Rational::ONE,
    };
    let cpus = Rational::from(waits.demand[0]) / Rational::from(CAPACITY);
    // A job that names no number of nodes asks for one.
    let nodes =
        (settings.nodes > 0).then(|| weight(waits.nodes.unwrap_or(1).min(settings.nodes)) / weight(settings.nodes));
    let minutes = Rational::from(waits.requested_s.div_ceil(60).max(1));
    let large = match (settings.small_relative_to_time, nodes) {
        (true, Some(nodes)) => (&cpus).max(&nodes) / minutes,
        (true, None) => &cpus / minutes,
        (false, Some(nodes)) => (&cpus + nodes) / weight(2),
        (false, None) => cpus.clone(),
    };
    let size = if settings.favor_small { Rational::ONE - large } else { large };
    let of_partition = waits.queue.and_then(|q| settings.partitions.get(q as usize)).copied().unwrap_or(1);
    let over = |plain: bool, number: u32, highest: u32| match plain {
        true => weight(number),
        false => weight(number) / weight(highest.max(1)),
    };
    let partition = over(settings.no_normal.partition, of_partition, settings.highest_partition);
    let of_qos = waits.qos.and_then(|q| settings.qos.get(q as usize)).copied().unwrap_or(0);
    let qos = over(settings.no_normal.qos, of_qos, settings.highest_qos);
    let tree = &reference.tree;
    let association = over(settings.no_normal.association, tree.priority(user), tree.highest_priority());
    let [cpu_part, gpu_part] = match settings.no_normal.tres {
        true => waits.demand.map(Rational::from),
        false => [cpus.clone(), Rational::from(waits.demand[1]) / Rational::from(GPUS)],
    };
    let power = |ratio: f64| Rational::try_from((-ratio / to_f64(&settings.damping)).exp2()).unwrap();
    let fairshare = match settings.fairshare {
        Fairshare::FairTree => Rational::from(reference.ranks()[user]) / Rational::from(reference.usage.len()),
        _ if reference.total().is_zero() => Rational::ONE,
        Fairshare::Classic => power(to_f64(&reference.classic(user))),
        Fairshare::DepthOblivious => power(reference.depth_oblivious(Node::User(user))),
    };
    weight(w.age) * age
        + weight(w.fairshare) * fairshare
        + weight(w.job_size) * size
        + weight(w.partition) * partition
        + weight(w.qos) * qos
        + weight(w.association) * association
        + &w.tres[0] * cpu_part
        + &w.tres[1] * gpu_part
        - Rational::from(waits.nice)
}

fn whole(sum: &Rational) -> u32 {
    u32::try_from(sum.floor().clamp(1.into(), u32::MAX.into())).unwrap()
}

fn settings() -> impl Strategy<Value = Settings> {
    let weight = || prop::sample::select(vec![0u32, 1, 10, 1000, 10_000, u32::MAX / 8]);
    let tres = || prop::sample::select(vec![-1000i64, 0, 1, 3000]);
    let weights = (weight(), weight(), weight(), weight(), (weight(), weight()), tres(), tres());
    let rest = (
        prop::sample::select(vec![0u64, 3, 40, 604_800]),
        prop::sample::select(Fairshare::ALL.to_vec()),
        prop::sample::select(vec![(1i64, 1u64), (5, 1), (1, 3)]),
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(0u32..20, 0..3),
        (
            prop::collection::vec(prop::sample::select(vec![0u32, 1, 10, u32::MAX]), 0..3),
            prop::sample::select(vec![0u32, 1, 7]),
            prop::array::uniform4(any::<bool>()),
        ),
    );
    (weights, rest).prop_map(|((age, fairshare, job_size, partition, (of_qos, association), cpu, gpu), rest)| {
        let (max_age, kind, (damping, over), favor_small, small_relative_to_time, partitions, rest) = rest;
        let (qos, nodes, plain) = rest;
        let [of_association, of_partition, of_job_qos, of_tres] = plain;
        Settings {
            weights: FactorWeights {
                age,
                fairshare,
                job_size,
                partition,
                qos: of_qos,
                tres: vec![Rational::from(cpu), Rational::from(gpu)],
                association,
            },
            max_age: Span::from_secs(max_age),
            fairshare: kind,
            damping: Rational::from_parts(damping.into(), over.into()),
            favor_small,
            small_relative_to_time,
            highest_partition: partitions.iter().copied().max().unwrap_or(0).max(1),
            partitions,
            highest_qos: qos.iter().copied().max().unwrap_or(0),
            qos,
            nodes,
            no_normal: NoNormal {
                association: of_association,
                partition: of_partition,
                qos: of_job_qos,
                tres: of_tres,
            },
        }
    })
}

fn priority() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0u32, 1, 13, 64, u32::MAX])
}

/// Accounts of up to three levels.
fn trees() -> impl Strategy<Value = (AccountTree, Vec<u64>)> {
    let account = (any::<prop::sample::Index>(), any::<bool>(), 1u64..4);
    let user = (any::<prop::sample::Index>(), 1u64..4, prop_oneof![Just(0u64), 1u64..6, 1u64..5000], priority());
    (prop::collection::vec(account, 0..4), prop::collection::vec(user, 1..7), priority()).prop_map(
        |(accounts, users, highest)| {
            let priorities: Vec<u32> = users.iter().map(|user| user.3).collect();
            let accounts: Vec<(String, Option<usize>, u64)> = accounts
                .iter()
                .enumerate()
                .map(|(i, (at, top, shares))| (format!("a{i}"), (i > 0 && !top).then(|| at.index(i)), *shares))
                .collect();
            let named: Vec<(&str, Option<usize>, u64)> =
                accounts.iter().map(|(n, p, s)| (n.as_str(), *p, *s)).collect();
            let homes: Vec<(Option<usize>, u64)> =
                users.iter().map(|(at, shares, ..)| (at.index(accounts.len() + 1).checked_sub(1), *shares)).collect();
            (tree(&named, &homes).with_priorities(priorities, highest), users.iter().map(|u| u.2).collect())
        },
    )
}

/// The same tree of the first users alone, with the others as others.
fn of_first_users(tree: &AccountTree, first: usize) -> AccountTree {
    let home = |user: usize| tree.account_of(user);
    let others =
        (first..tree.users()).map(|user| (home(user), Members { users: 1, shares: tree.shares(user).clone() }));
    let shares = (0..first).map(|user| tree.shares(user).clone()).collect();
    let priorities = (0..first).map(|user| tree.priority(user)).collect();
    let new = AccountTree::new(tree.accounts().to_vec(), (0..first).map(home).collect(), shares).unwrap();
    new.with_priorities(priorities, tree.highest_priority()).with_other_users(others)
}

/// The tree with a user in each account that has none: the shares of such an account count in Slurm, and AccountTree leaves it out.
/// In ranks it would be one user more.
fn with_users_everywhere(tree: AccountTree, settings: &Settings) -> AccountTree {
    if settings.fairshare == Fairshare::FairTree {
        return tree;
    }
    let accounts = 0..tree.accounts().len();
    let is_empty = |a: &usize| tree.account_entitlement(*a).is_zero();
    let all = (0..tree.users()).map(|user| tree.account_of(user)).chain(accounts.filter(is_empty).map(Some));
    let homes: Vec<Option<usize>> = all.collect();
    let mut shares: Vec<Rational> = (0..tree.users()).map(|user| tree.shares(user).clone()).collect();
    shares.resize(homes.len(), Rational::ONE);
    let mut priorities: Vec<u32> = (0..tree.users()).map(|user| tree.priority(user)).collect();
    priorities.resize(homes.len(), 0);
    AccountTree::new(tree.accounts().to_vec(), homes, shares)
        .unwrap()
        .with_priorities(priorities, tree.highest_priority())
}

fn waits() -> impl Strategy<Value = Option<Waits>> {
    let queue = (
        prop::option::of(0u32..4),
        prop::option::of(0u32..3),
        prop::option::of(prop::sample::select(vec![1u32, 3, 9])),
    );
    let demand = (prop::sample::select(vec![0, 1, 25_000, CAPACITY / 3, CAPACITY]), 0..=GPUS);
    let nice = prop::sample::select(vec![0i64, 0, 100, -7, 2_147_483_645, -2_147_483_645]);
    let asked = (prop::sample::select(vec![0u64, 1, 60, 61, 7200]), nice);
    let job = (prop_oneof![0u64..40_000, Just(8000)], demand, queue, asked);
    let job = job.prop_map(|(submitted_ms, (cpu, gpu), (queue, qos, nodes), (requested_s, nice))| Waits {
        submitted_ms,
        demand: [cpu, gpu],
        queue,
        qos,
        nodes,
        requested_s,
        nice,
    });
    prop::option::weighted(0.8, job)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn priorities_are_those_of_the_documents(
        (tree, mut usage) in trees(),
        with_jobs in prop_oneof![Just(6usize), 1usize..6],
        settings in settings(),
        first in prop::collection::vec(waits(), 6),
        half_lives in 5u64..9,
    ) {
        // The users behind these have no jobs: the policy knows only how many they are, the documents know each.
        let with_jobs = with_jobs.min(usage.len());
        usage[with_jobs..].fill(0);
        let (known, tree) = match with_jobs < usage.len() {
            true => (of_first_users(&tree, with_jobs), with_users_everywhere(tree, &settings)),
            false => (tree.clone(), tree),
        };
        let mut policy = used("multifactor", &known, &usage[..with_jobs], &settings);
        usage.resize(tree.users(), 0);
        let reference = SlurmDocuments { usage: usage.iter().map(|u| Rational::from(*u)).collect(), tree };
        let now = Time::from_secs(half_lives * HALF_LIFE_S);
        let mut best = None;
        let mut certain = true;
        // Positions in the log against the order of the users' numbers.
        let position = |user: usize| (first.len() - user) as u64;
        for (user, waits) in first.iter().take(with_jobs).enumerate() {
            let Some(waits) = waits else { continue };
            let id = UserId(user as u32);
            let submitted = Time::from_nanos(waits.submitted_ms * 1_000_000);
            let demand = waits.demand.map(Amount);
            let requested = Span::from_secs(waits.requested_s);
            policy.set_first_pending(id, Some(&Job { queue: waits.queue, qos: waits.qos, nodes: waits.nodes, nice: waits.nice, requested, ..Job::new(id, &demand).at(submitted, position(user)) }));
            let sum = by_hand(&settings, &reference, waits, user, now);
            let expected = whole(&sum);
            let found = -policy.standing(now, id).key;
            if settings.fairshare == Fairshare::FairTree {
                prop_assert_eq!(found, f64::from(expected), "user {}", user);
            } else {
                // A power: what is next to a whole number may be either.
                let slack = Rational::try_from(1e-9 * (1.0 + f64::from(settings.weights.fairshare))).unwrap();
                let (low, high) = (whole(&(&sum - &slack)), whole(&(&sum + &slack)));
                certain &= low == high;
                prop_assert!(f64::from(low) <= found && found <= f64::from(high), "{} {} {}", low, found, high);
            }
            let key = (std::cmp::Reverse(expected), submitted, position(user), id);
            if best.is_none_or(|b| key < b) {
                best = Some(key);
            }
        }
        if certain {
            prop_assert_eq!(policy.next(now), best.map(|b| b.3));
        }
    }

    /// K7: all users of a better account come before all of a worse one; factors are in (0, 1].
    #[test]
    fn fair_tree_keeps_accounts_apart((tree, usage) in trees()) {
        let mut policy = used("fair-tree", &tree, &usage, &Settings::default());
        let now = Time::from_secs(HALF_LIFE_S);
        let factors: Vec<f64> =
            (0..usage.len()).map(|u| 1.0 - policy.standing(now, UserId(u as u32)).key).collect();
        let reference = SlurmDocuments { usage: usage.iter().map(|u| Rational::from(*u)).collect(), tree };
        prop_assert!(factors.iter().all(|f| *f > 0.0 && *f <= 1.0));
        prop_assert!(factors.contains(&1.0));
        for parent in std::iter::once(None).chain((0..reference.tree.accounts().len()).map(Some)) {
            let siblings = reference.children(parent);
            for (a, b) in siblings.iter().flat_map(|a| siblings.iter().map(move |b| (*a, *b))) {
                let better = match (reference.level_fairshare(a), reference.level_fairshare(b)) {
                    (None, Some(_)) => true,
                    (Some(x), Some(y)) => x > y,
                    (_, None) => false,
                };
                let below = |n: Node| reference.users_below(n).into_iter().map(|u| factors[u]);
                let (worst, best) = (below(a).fold(f64::INFINITY, f64::min), below(b).fold(0.0, f64::max));
                prop_assert!(!better || worst > best, "{:?} before {:?}: {} {}", a, b, worst, best);
            }
        }
    }

    /// K8: the classic factor is in (0, 1], falls with a user's own usage and grows with its shares.
    #[test]
    fn the_classic_factor_falls_with_usage_and_grows_with_shares((tree, usage) in trees(), more in 1u64..50) {
        let factor = |tree: &AccountTree, usage: &[u64]| {
            let settings = Settings::default();
            let key = used("half-life", tree, usage, &settings).standing(Time::from_secs(HALF_LIFE_S), UserId(0)).key;
            evenhand_policies::multifactor::fairshare_factor(key, 1.0)
        };
        let now = factor(&tree, &usage);
        prop_assert!(now > 0.0 && now <= 1.0);
        let mut heavier = usage.clone();
        heavier[0] += more;
        prop_assert!(factor(&tree, &heavier) <= now * (1.0 + 1e-9));
        let homes: Vec<Option<usize>> = (0..tree.users()).map(|u| tree.account_of(u)).collect();
        let mut shares: Vec<Rational> = (0..tree.users()).map(|u| tree.shares(u).clone()).collect();
        shares[0] += Rational::from(more);
        let richer = AccountTree::new(tree.accounts().to_vec(), homes, shares).unwrap();
        prop_assert!(factor(&richer, &usage) >= now * (1.0 - 1e-9));
    }
}

/// The example of the page on classic fairshare, figure 3: five users under six accounts.
#[test]
fn the_classic_factors_of_the_example() {
    let t = tree(
        &[
            ("A", None, 40),
            ("D", None, 60),
            ("B", Some(0), 30),
            ("C", Some(0), 10),
            ("E", Some(1), 25),
            ("F", Some(1), 35),
        ],
        &[(Some(2), 1), (Some(3), 1), (Some(3), 1), (Some(4), 1), (Some(5), 1)],
    );
    let shares: Vec<f64> = (0..5).map(|u| to_f64(t.user_entitlement(u))).collect();
    assert_eq!(shares, [0.3, 0.05, 0.05, 0.25, 0.35]);
    // The page: .2, .25 and .25 of the machine, of which .7 is in use. Its U is "actual usage of the machine",
    // so the rest is put under an account of its own with next to no shares.
    let accounts = ["A", "D", "B", "C", "E", "F", "rest"];
    let parents = [None, None, Some(0), Some(0), Some(1), Some(1), None];
    let raw = [40_000_000u64, 60_000_000, 30, 10, 25, 35, 1];
    let named: Vec<(&str, Option<usize>, u64)> = (0..7).map(|i| (accounts[i], parents[i], raw[i])).collect();
    let users = [(Some(2), 1), (Some(3), 1), (Some(3), 1), (Some(4), 1), (Some(5), 1), (Some(6), 1)];
    let t = tree(&named, &users);
    let mut policy = used("half-life", &t, &[200, 250, 0, 250, 0, 300], &Settings::default());
    let expected = [0.408479, 0.022097, 0.125, 0.5, 0.749154];
    for (user, expected) in expected.into_iter().enumerate() {
        let ratio = policy.standing(Time::from_secs(HALF_LIFE_S), UserId(user as u32)).key;
        let found = evenhand_policies::multifactor::fairshare_factor(ratio, 1.0);
        assert!((found - expected).abs() < 2e-4, "user {}: {found} is not {expected}", user + 1);
    }
}

/// Age alone is first come, first served, up to the maximal age.
#[test]
fn age_counts_until_it_is_the_maximal() {
    let t = tree(&[], &[(None, 1), (None, 1)]);
    let weights = FactorWeights { age: 1000, ..FactorWeights::default() };
    let settings = Settings { weights, max_age: Span::from_secs(100), ..Settings::unset() };
    let mut policy = built("multifactor", &t, &settings);
    let demand = [Amount(1), Amount(0)];
    let (early, late) = (UserId(1), UserId(0));
    policy.set_first_pending(late, Some(&Job::new(late, &demand).at(Time::from_secs(50), 0)));
    policy.set_first_pending(early, Some(&Job::new(early, &demand)));
    let key = |policy: &mut dyn Policy, at: u64, user| policy.standing(Time::from_secs(at), user).key;
    assert_eq!((key(policy.as_mut(), 60, early), key(policy.as_mut(), 60, late)), (-600.0, -100.0));
    assert_eq!(policy.next(Time::from_secs(60)), Some(early));
    assert_eq!((key(policy.as_mut(), 200, early), key(policy.as_mut(), 200, late)), (-1000.0, -1000.0));
    assert_eq!(policy.next(Time::from_secs(200)), Some(early), "a tie: submitted earlier");
    policy.set_first_pending(early, None);
    assert_eq!(policy.next(Time::from_secs(200)), Some(late));
}

/// What `sprio` of Slurm 22.05.8 printed for jobs that waited on three nodes with 8, 4 and 8 processors and 112,000 MB
/// together, partitions with PriorityJobFactor=4 and none: the sum is cut and not rounded, at least 1, a limit of
/// 61 s is 2 minutes, and a partition without a factor has 1.
#[test]
fn priorities_that_slurm_printed() {
    let ratio = |a: u64, b: u64| Rational::from(a) / Rational::from(b);
    let size = |nodes: u64, processors: u64, minutes| Size {
        processors: ratio(processors, 20),
        nodes: Some(ratio(nodes, 3)),
        minutes,
    };
    let weights = FactorWeights {
        job_size: 100_000,
        partition: 1000,
        tres: vec![Rational::from(10_000), Rational::from(20_000)],
        ..FactorWeights::default()
    };
    for (nodes, processors, memory, factor, nice, printed) in [
        (3, 20, 2000, 4, 0, 111_357),
        (1, 1, 100, 4, 0, 20_684),
        (1, 5, 5000, 4, 0, 33_559),
        (1, 5, 5000, 1, 0, 32_809),
        (1, 1, 8000, 4, 50, 22_045),
    ] {
        let factors = Factors {
            job_size: size(nodes, processors, None).factor(false),
            partition: normalised(factor, 4),
            tres: vec![
                tres(&Rational::from(processors), &Rational::from(20)),
                tres(&Rational::from(memory), &Rational::from(112_000)),
            ],
            nice,
            ..Factors::default()
        };
        assert_eq!(weights.priority(&factors), printed);
    }
    // PriorityWeightJobSize alone; limits in seconds.
    let weights = FactorWeights { job_size: 1_000_000, ..FactorWeights::default() };
    let priority = |nodes, processors, limit: Option<u64>, favor_small| {
        let minutes = limit.map(|s| in_minutes(Span::from_secs(s)));
        let job_size = size(nodes, processors, minutes).factor(favor_small);
        weights.priority(&Factors { job_size, ..Factors::default() })
    };
    assert_eq!(priority(1, 20, None, true), 333_333);
    assert_eq!(priority(3, 20, None, true), 1);
    let by_time = [(3, 20, 600, 100_000, 900_000), (1, 1, 600, 33_333, 966_666), (1, 5, 60, 333_333, 666_666)];
    let by_time = by_time.into_iter().chain([(1, 5, 61, 166_666, 833_333)]);
    for (nodes, processors, limit, large, small) in by_time {
        assert_eq!(priority(nodes, processors, Some(limit), false), large);
        assert_eq!(priority(nodes, processors, Some(limit), true), small);
    }
    assert_eq!(priority(3, 20, Some(60), true), 1);
}

/// What `sprio -l` of Slurm 22.05.8 printed for jobs of QOS with the priorities 0, 1000 and 370 that waited on three nodes of
/// 4, 4 and 8 processors: the policy `site` gives the same, by the priorities of the QOS over the highest, and by nodes too.
#[test]
fn the_site_s_rule_gives_the_priorities_that_slurm_printed() {
    let resources = [Resource::new("cpu", ""), Resource::new("mem", "MB")];
    let capacity = Capacity::new(&resources, vec![Rational::from(16), Rational::from(32_000)]).unwrap();
    let weights = Weights::equal(1);
    let conf = [
        ("PriorityType", "priority/multifactor"),
        ("PriorityWeightJobSize", "100000"),
        ("PriorityWeightPartition", "2000"),
        ("PriorityWeightQOS", "70000"),
        ("PriorityWeightTRES", "CPU=30000,Mem=5000"),
    ];
    let named = |list: &[(&str, u32)]| list.iter().map(|(name, number)| (name.to_string(), *number)).collect();
    let site = SiteConfiguration {
        settings: conf.map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())).into(),
        partition_factors: named(&[("main", 1), ("low", 5), ("high", 20)]),
        qos_priorities: named(&[("normal", 0), ("urgent", 1000), ("odd", 370)]),
        nodes: 3,
        ..SiteConfiguration::default()
    };
    let registry = Registry::built_in().with(SITE_RULE).unwrap();
    let (queues, qos) = (["main", "high"].map(String::from), ["odd", "urgent", "normal"].map(String::from));
    let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&queues).qos(&qos);
    let mut policy = registry.build("site", &context.site(Some(&site))).unwrap();
    for (nodes, processors, memory, queue, qos, printed) in [
        (None, 5, 500, 1, Some(0), 69_644),
        (Some(2), 2, 200, 1, Some(0), 71_264),
        (Some(3), 16, 1600, 1, Some(1), 202_250),
        (Some(1), 1, 2000, 0, Some(2), 22_079),
        (None, 1, 2000, 0, None, 22_079),
    ] {
        let demand = [Amount(processors), Amount(memory)];
        let job = Job { nodes, queue: Some(queue), qos, ..Job::new(UserId(0), &demand) };
        assert_eq!(policy.job_priorities().unwrap().priority(Time::ZERO, &job), printed);
    }
}

/// What `sprio -l` of Slurm 22.05.8 printed for jobs of four users on three nodes of 4, 4 and 8 processors: one whose account's
/// account has Priority=40, one with 13, one without and one with 64; those on the partition `low` with `--nice=77`.
#[test]
fn associations_nice_and_plain_factors_are_those_that_slurm_printed() {
    let resources = [Resource::new("cpu", ""), Resource::new("mem", "B")];
    let memory = |mebibytes: u64| Amount(mebibytes << 20);
    let capacity = Capacity::new(&resources, vec![Rational::from(16), Rational::from(memory(32_000).0)]).unwrap();
    let weights = Weights::equal(4);
    let accounts = tree(&[], &[(None, 1), (None, 1), (None, 1), (None, 1)]).with_priorities(vec![40, 13, 0, 64], 64);
    let named = |list: &[(&str, u32)]| list.iter().map(|(name, number)| (name.to_string(), *number)).collect();
    let (queues, qos) = (["high", "low"].map(String::from), ["normal", "urgent"].map(String::from));
    for (flags, of_high, of_low) in [
        ("", [82_302, 61_208, 51_052, 101_052], [52_183, 31_089, 20_933, 70_933]),
        ("NO_NORMAL_ALL", [2_092_958, 742_958, 92_958, 3_292_958], [2_740_014, 1_390_014, 740_014, 3_940_014]),
        (
            "NO_NORMAL_ASSOC,NO_NORMAL_TRES",
            [2_054_958, 704_958, 54_958, 3_254_958],
            [2_031_214, 681_214, 31_214, 3_231_214],
        ),
    ] {
        let conf = [
            ("PriorityType", "priority/multifactor"),
            ("PriorityFlags", flags),
            ("PriorityWeightAssoc", "50000"),
            ("PriorityWeightJobSize", "100000"),
            ("PriorityWeightPartition", "2000"),
            ("PriorityWeightQOS", "700"),
            ("PriorityWeightTRES", "CPU=300,Mem=5"),
        ];
        let site = SiteConfiguration {
            settings: conf.map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())).into(),
            partition_factors: named(&[("main", 1), ("low", 5), ("high", 20)]),
            qos_priorities: named(&[("normal", 0), ("urgent", 1000)]),
            nodes: 3,
            ..SiteConfiguration::default()
        };
        let registry = Registry::built_in().with(SITE_RULE).unwrap();
        let context = PolicyContext::new(&capacity, &weights).resources(&resources).queues(&queues).qos(&qos);
        let context = context.site(Some(&site)).accounts(Some(&accounts));
        let mut policy = registry.build("site", &context).unwrap();
        for user in 0..4 {
            let id = UserId(user as u32);
            let (large, small) = ([Amount(5), memory(500)], [Amount(1), memory(2000)]);
            let high = Job { nodes: Some(2), queue: Some(0), qos: Some(0), ..Job::new(id, &large) };
            let low = Job { nodes: Some(1), queue: Some(1), qos: Some(1), nice: 77, ..Job::new(id, &small) };
            for (job, printed) in [(high, of_high[user]), (low, of_low[user])] {
                let found = policy.job_priorities().unwrap().priority(Time::ZERO, &job);
                assert_eq!(found, printed, "{flags} {user}");
            }
        }
    }
}

/// sprio of Slurm 22.05.8 for jobs of four users where root and an account `all` have a user each who has no jobs: two of the
/// users are in an account `lab` with Fairshare=parent, so that they are children of `dept`. Usage is that of sshare.
#[test]
fn users_without_jobs_count_in_the_factors_that_slurm_printed() {
    let accounts = [("all", None, 1), ("dept", None, 10), ("other", None, 20)];
    let users = [(Some(1), 1), (Some(1), 3), (Some(1), 1), (Some(2), 1)];
    let one = Members { users: 1, shares: Rational::ONE };
    let others = [(None, one.clone()), (Some(0), one)];
    let settings =
        Settings { weights: FactorWeights { fairshare: 100_000, ..FactorWeights::default() }, ..Settings::unset() };
    let priorities = |tree: &AccountTree| {
        let mut policy = used("multifactor", tree, &[399, 179, 599, 319], &settings);
        let demand = [Amount(1), Amount(0)];
        let now = Time::from_secs(HALF_LIFE_S);
        [0, 1, 2, 3].map(|user| {
            policy.set_first_pending(UserId(user), Some(&Job::new(UserId(user), &demand).at(now, 0)));
            -policy.standing(now, UserId(user)).key
        })
    };
    let tree = tree(&accounts, &users);
    assert_eq!(priorities(&tree.clone().with_other_users(others)), [33_333.0, 50_000.0, 16_666.0, 66_666.0]);
    assert_eq!(priorities(&tree), [50_000.0, 75_000.0, 25_000.0, 100_000.0]);
}
