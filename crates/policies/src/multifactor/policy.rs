//! Orders users by the priority of their first pending job.
//!
//! A job's priority depends on its requests, its age, its quality of service, its nice value and its user's association and
//! fair-share factor. Site factors are known to Slurm alone and left out.
//!
//! **As in Slurm**, priorities are whole numbers, so priorities that differ only in their fractions tie. Ties go by
//! this crate's rule, which is Slurm's: earlier submission, then the job's place in the log (in Slurm, its number).
//!
//! **Exact**: a sum is computed in `f64`, and in rationals if rounding could change its integral part. The classic and
//! the depth-oblivious factor are irrational powers: the nearest `f64` is used, and a sum that is below a whole number
//! by at most weight times 2^-40 counts as that number.
//!
//! **Cost.** Age changes every priority and decay every factor, each along a different curve, so each decision
//! evaluates all waiting users; under Fair Tree, the first decision of an instant also ranks all users.

use std::cmp::Reverse;
use std::collections::HashMap;

use evenhand_model::{AccountTree, Capacity, Rational, Resource, Span, Time, UBig, UserId, Weights, to_f64};

use super::exact_sum::Fraction;
use super::factors::to_priority;
use super::read::MultifactorSection;
use super::{Factors, Fairshare, Settings, Size, age, depth_oblivious_ratio, fairshare_factor, in_minutes, tres};
use crate::account_usage::AccountUsage;
use crate::billing::{BILLING_OPTION, JobBilling};
use crate::fair_tree::FairTree;
use crate::half_life::ClassicFairshare;
use crate::settings::{Listed, SettingOption};
use crate::user_set::UserSet;
use crate::{Job, JobPriorities, Policy, PolicyContext, Registration, Standing, TieRule};

const NAME: &str = "multifactor";

pub(crate) const REGISTRATION: Registration = Registration::new(
    NAME,
    "highest weighted sum of age, fairshare, size, partition and resources (Slurm's multifactor priority)",
    |context| {
        let section: MultifactorSection = context.read_settings(NAME)?;
        Ok(Box::new(Multifactor::new(context, &section.billing, &section.settings)))
    },
)
.needing_decay()
.with_settings::<MultifactorSection>()
.with_options(&[&BILLING_OPTION, &FILE_OPTION]);

/// The policy with the settings of a site; the context has a decay.
pub(crate) fn policy_of_site(
    context: &PolicyContext<'_>,
    billing: &JobBilling,
    settings: &Settings,
) -> Box<dyn Policy> {
    Box::new(Multifactor::new(context, billing, settings))
}

const FILE_OPTION: SettingOption = SettingOption {
    option: "multifactor",
    key: None,
    value_name: "FILE",
    help: "Weights and settings of the policy multifactor: TOML with [weights], [tres], [partitions] [default: the \
           example of Slurm's documentation]",
    values: &[],
    default: Some("Slurm's example"),
    label: "settings of multifactor",
    listed: Listed::WithPolicy,
    words: &[],
};

/// A bound on the rounding error of a sum, relative to the sum of all weights.
const NEAR: f64 = 256.0 * f64::EPSILON;

const SECOND: u64 = 1_000_000_000;

/// The fair-share factors of users at one instant.
enum Source {
    /// By user: the number of users with a better rank.
    FairTree {
        tree: FairTree,
        better: Vec<u64>,
        /// How many users each user of the tree is: others than those who have jobs are one together.
        counts: Vec<u32>,
        all: u64,
    },
    Classic(ClassicFairshare),
    /// R of the accounts.
    DepthOblivious {
        tree: AccountUsage,
        ratio: Vec<f64>,
        all: f64,
        s: f64,
    },
}

/// A constant part of a priority: size, partition, QOS, resources and nice, or the user's association.
struct Fixed {
    exact: Rational,
    /// The same, if it fits.
    short: Option<Fraction>,
    near: f64,
}

impl Fixed {
    fn new(exact: Rational) -> Fixed {
        Fixed { near: to_f64(&exact), short: Fraction::of(&exact), exact }
    }
}

/// How many steps of an amount are one of Slurm's units: a mebibyte of what is in bytes, else one.
fn steps_of_unit(resource: &Resource) -> Rational {
    let unit: u64 = if resource.unit == "B" { 1 << 20 } else { 1 };
    Rational::from(resource.steps()) * Rational::from(unit)
}

struct Multifactor {
    settings: Settings,
    damping: f64,
    /// The resource that is processors.
    processors: usize,
    capacity: Capacity,
    /// By resource: how many steps of an amount are one of Slurm's units.
    steps: Vec<Rational>,
    /// By user: what its association adds; empty if that has no weight.
    associations: Vec<Fixed>,
    source: Source,
    /// The instant of the factors.
    now: Option<Time>,
    /// Indices in `fixed` by requested amounts, queue, QOS, nodes, minutes and nice.
    known: HashMap<Box<[u64]>, usize>,
    fixed: Vec<Fixed>,
    /// By user: the index in `fixed` of its first pending job.
    first: Vec<Option<usize>>,
    ties: TieRule,
    present: UserSet,
    /// Sums closer than this to a whole number are computed exactly, as are those closer than what the constant parts add.
    error: f64,
}

impl Multifactor {
    fn new(context: &PolicyContext<'_>, billing: &JobBilling, settings: &Settings) -> Multifactor {
        let users = context.weights.len();
        let flat;
        let of_workload = match context.accounts {
            Some(tree) => tree,
            None => {
                let shares = (0..users).map(|u| context.weights.exact(u).clone()).collect();
                flat = AccountTree::new(Vec::new(), vec![None; users], shares).expect("weights are greater than 0");
                &flat
            }
        };
        let (tree, counts) = of_workload.of_all_users();
        let users = counts.len();
        let weights = Weights::equal(users);
        let context = PolicyContext { weights: &weights, ..*context }.accounts(Some(&tree));
        let source = match settings.fairshare {
            Fairshare::FairTree => {
                let all = counts.iter().map(|count| u64::from(*count)).sum();
                Source::FairTree { tree: FairTree::new(&context, billing), better: vec![0; users], counts, all }
            }
            Fairshare::Classic => Source::Classic(ClassicFairshare::new(&context, billing)),
            Fairshare::DepthOblivious => {
                let tree = AccountUsage::new(&context, billing);
                let ratio = vec![0.0; tree.nodes() as usize - users];
                Source::DepthOblivious { tree, ratio, all: 0.0, s: 1.0 }
            }
        };
        let weights = &settings.weights;
        let moving = f64::from(weights.age) + f64::from(weights.fairshare);
        let associations = match (weights.association, context.accounts) {
            (1.., Some(tree)) => {
                let of_user = |user: usize| {
                    let factor = settings.association(tree.priority(user), tree.highest_priority());
                    Fixed::new(Rational::from(weights.association) * factor)
                };
                (0..users).map(of_user).collect()
            }
            _ => Vec::new(),
        };
        Multifactor {
            damping: to_f64(&settings.damping),
            processors: context.equivalents.map_or(0, crate::equivalents::Equivalents::processors),
            capacity: context.capacity.clone(),
            steps: context.resources.iter().map(steps_of_unit).collect(),
            associations,
            source,
            now: None,
            known: HashMap::new(),
            fixed: Vec::new(),
            first: vec![None; users],
            ties: TieRule::new(users),
            present: UserSet::new(users),
            error: NEAR * moving + to_f64(&short_of_whole(settings)),
            settings: settings.clone(),
        }
    }

    fn usage(&mut self) -> &mut AccountUsage {
        match &mut self.source {
            Source::FairTree { tree, .. } => tree.usage(),
            Source::Classic(classic) => classic.usage(),
            Source::DepthOblivious { tree, .. } => tree,
        }
    }

    /// Updates the factors to `now`. Within an instant usage, and so the factors, do not change.
    fn advance(&mut self, now: Time) {
        if self.now == Some(now) {
            return;
        }
        self.now = Some(now);
        match &mut self.source {
            Source::FairTree { tree, better, counts, .. } => {
                let mut before = 0;
                for rank in tree.ranks_at(now).iter() {
                    rank.iter().for_each(|user| better[*user as usize] = before);
                    before += rank.iter().map(|user| u64::from(counts[*user as usize])).sum::<u64>();
                }
            }
            Source::Classic(classic) => classic.ratios_at(now),
            Source::DepthOblivious { tree, ratio, all, s } => {
                *s = tree.at(now);
                *all = tree.all_usage(*s);
                let users = tree.users();
                // Each after its parent.
                for account in users..tree.nodes() {
                    ratio[(account - users) as usize] = depth_oblivious(tree, ratio, *all, account, *s);
                }
            }
        }
    }

    /// Returns the fair-share factor as of the last `advance`.
    fn fairshare(&self, user: UserId) -> f64 {
        let ratio = match &self.source {
            Source::FairTree { better, all, .. } => {
                return 1.0 - better[user.index()] as f64 / *all as f64;
            }
            Source::Classic(classic) => classic.ratio(user),
            Source::DepthOblivious { tree, ratio, all, s } => depth_oblivious(tree, ratio, *all, user.0, *s),
        };
        fairshare_factor(ratio, self.damping)
    }

    fn exact_fairshare(&self, user: UserId) -> Rational {
        match &self.source {
            Source::FairTree { better, all, .. } => {
                let better = better[user.index()];
                Rational::from_parts((all - better).into(), (*all).into())
            }
            // Finite, so it is one.
            _ => Rational::try_from(self.fairshare(user)).unwrap_or(Rational::ZERO),
        }
    }

    /// The priority of the user's first pending job, or of its last first one.
    fn first_priority(&self, now: Time, user: UserId) -> u32 {
        let waited = now.since(self.ties.place(user).submitted);
        self.priority_of(waited, user, self.first[user.index()])
    }

    /// The priority of a job that has waited so long; `sort` is its index in `fixed`.
    fn priority_of(&self, waited: Span, user: UserId, sort: Option<usize>) -> u32 {
        let (weights, max_age) = (&self.settings.weights, self.settings.max_age);
        let fixed = [sort.map(|at| &self.fixed[at]), self.associations.get(user.index())];
        let fixed = fixed.into_iter().flatten();
        let near = |sum: f64, of: fn(f64) -> f64| fixed.clone().fold(sum, |sum, fixed| sum + of(fixed.near));
        let old = if waited >= max_age { 1.0 } else { waited.nanos() as f64 / max_age.nanos() as f64 };
        let moving = f64::from(weights.age) * old + f64::from(weights.fairshare) * self.fairshare(user);
        let sum = near(moving, |part| part);
        let error = self.error + NEAR * near(0.0, f64::abs);
        let whole = (sum - error).floor();
        if whole == (sum + error).floor() {
            // A cast keeps to what a u32 can hold.
            return (whole as u32).max(1);
        }
        if let Some(sum) = self.short_sum(waited, user, fixed.clone()) {
            return sum.to_priority();
        }
        let moving = Factors { age: age(waited, max_age), fairshare: self.exact_fairshare(user), ..Factors::default() };
        let fixed = fixed.fold(Rational::ZERO, |sum, fixed| sum + &fixed.exact);
        to_priority(&(weights.sum(&moving) + fixed + short_of_whole(&self.settings)))
    }

    /// Returns the exact sum, if it fits and every factor is a ratio of whole numbers. Many sums are whole numbers, as ranks of
    /// few users and ages of old jobs are, and rationals allocate at each step.
    fn short_sum<'f>(
        &self,
        waited: Span,
        user: UserId,
        mut fixed: impl Iterator<Item = &'f Fixed>,
    ) -> Option<Fraction> {
        let Source::FairTree { better, all, .. } = &self.source else { return None };
        let (weights, max_age) = (&self.settings.weights, self.settings.max_age);
        let are_seconds = [waited, max_age].iter().all(|span| span.nanos().is_multiple_of(SECOND));
        let unit = if are_seconds { SECOND } else { 1 };
        let age = match waited >= max_age {
            true => Fraction::weighted(weights.age, 1, 1),
            false => Fraction::weighted(weights.age, waited.nanos() / unit, max_age.nanos() / unit),
        };
        let fairshare = Fraction::weighted(weights.fairshare, all - better[user.index()], *all);
        fixed.try_fold(age?.plus(fairshare?)?, |sum, fixed| sum.plus(fixed.short?))
    }

    /// Returns the index in `fixed` of jobs like this one.
    fn sort_of(&mut self, job: &Job<'_>) -> usize {
        let minutes = self.settings.small_relative_to_time.then(|| in_minutes(job.requested));
        let asked = job.demand.iter().map(|a| a.0);
        let named = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
        // What does not count does not tell jobs apart.
        let qos = job.qos.filter(|_| self.settings.weights.qos > 0);
        let nodes = job.nodes.filter(|_| self.settings.nodes > 0);
        let others = [named(job.queue), named(qos), named(nodes), minutes.unwrap_or(0), job.nice as u64];
        let sort: Box<[u64]> = asked.chain(others).collect();
        if let Some(at) = self.known.get(&sort) {
            return *at;
        }
        let part = |r: usize| tres(&Rational::from(job.demand[r].0), self.capacity.exact_steps(r));
        let plain = |r: usize| match self.settings.no_normal.tres {
            true => Rational::from(job.demand[r].0) / self.steps.get(r).unwrap_or(&Rational::ONE),
            false => part(r),
        };
        let factors = Factors {
            job_size: Size { processors: part(self.processors), nodes: self.settings.part_of_nodes(nodes), minutes }
                .factor(self.settings.favor_small),
            partition: self.settings.partition(job.queue),
            qos: self.settings.qos(qos),
            tres: (0..self.settings.weights.tres.len().min(job.demand.len())).map(plain).collect(),
            nice: job.nice,
            ..Factors::default()
        };
        let exact = self.settings.weights.sum(&factors);
        self.fixed.push(Fixed::new(exact));
        self.known.insert(sort, self.fixed.len() - 1);
        self.fixed.len() - 1
    }
}

/// R of a user or account; those of `accounts` above it are known. Everything is used below some account, so that
/// the usage of all siblings together is their parent's.
fn depth_oblivious(tree: &AccountUsage, accounts: &[f64], all: f64, node: u32, s: f64) -> f64 {
    let over_share = |node: u32| match tree.usage.is_nothing(node) || all <= 0.0 {
        true => 0.0,
        false => tree.usage.at(node, s).0.max(0.0) / all / to_f64(tree.entitlement(node)),
    };
    let own = over_share(node);
    match tree.above(node) {
        _ if own == 0.0 => 0.0,
        None => own,
        Some(account) => depth_oblivious_ratio(accounts[(account - tree.users()) as usize], own / over_share(account)),
    }
}

/// The largest amount by which a sum may be below a whole number and still count as it.
fn short_of_whole(settings: &Settings) -> Rational {
    match settings.fairshare {
        Fairshare::FairTree => Rational::ZERO,
        _ => Rational::from_parts(settings.weights.fairshare.into(), UBig::ONE << 40),
    }
}

impl Policy for Multifactor {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        if let Some(job) = first {
            let sort = self.sort_of(job);
            self.first[user.index()] = Some(sort);
            self.ties.set_first_pending(user, first);
        }
        self.present.set(user, first.is_some());
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.usage().started(now, job);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.usage().finished(now, job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        // No priority is needed for at most one waiting user.
        if let [] | [_] = self.present.users() {
            return self.present.users().first().copied();
        }
        self.advance(now);
        let of = |user: &UserId| (Reverse(self.first_priority(now, *user)), *user);
        let first = |(p, a): &(_, UserId), (q, b): &(_, UserId)| Ord::cmp(p, q).then_with(|| self.ties.compare(*a, *b));
        self.present.users().iter().map(of).min_by(first).map(|(_, user)| user)
    }

    /// The key is the negative priority of the user's first pending job, or of its last first one.
    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.advance(now);
        let key = -f64::from(self.first_priority(now, user));
        Standing { shares: self.usage().holdings.shares(user), commitments: Vec::new(), key }
    }

    fn depends_on_job_details(&self) -> bool {
        true
    }

    fn job_priorities(&mut self) -> Option<&mut dyn JobPriorities> {
        Some(self)
    }
}

impl JobPriorities for Multifactor {
    fn update(&mut self, now: Time) {
        self.advance(now);
    }

    fn priority(&mut self, now: Time, job: &Job<'_>) -> u32 {
        // Before the first update nothing has been used.
        if self.now.is_none() {
            self.advance(now);
        }
        let sort = self.sort_of(job);
        self.priority_of(now.since(job.place.submitted), job.user, Some(sort))
    }

    /// Jobs with the same constant part. Fair-share factors, which are the user's, are those of the instant.
    fn group(&mut self, job: &Job<'_>) -> Option<u64> {
        Some(self.sort_of(job) as u64)
    }
}
