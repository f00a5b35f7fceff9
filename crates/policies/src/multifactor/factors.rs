//! The priority formula, and the factors that depend on the job alone.

use evenhand_model::{IBig, Rational, Span, UBig};

/// The weights of the factors: `PriorityWeightAge` and so on, whole numbers as in Slurm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactorWeights {
    /// Of the time a job has waited.
    pub age: u32,
    /// Of the association's own priority.
    pub association: u32,
    /// Of the fair-share factor.
    pub fairshare: u32,
    /// Of the job's size.
    pub job_size: u32,
    /// Of the partition's own priority.
    pub partition: u32,
    /// Of the quality of service's own priority.
    pub qos: u32,
    /// Of what the job asks of each resource; may be negative. Resources past the end count 0.
    pub tres: Vec<Rational>,
}

/// The factors of one job at one time, each from 0 to 1 except for the last two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factors {
    /// [`age`]
    pub age: Rational,
    /// The association's priority, [`normalised`].
    pub association: Rational,
    /// [`fairshare_factor`](super::fairshare_factor) or Fair Tree's.
    pub fairshare: Rational,
    /// [`Size::factor`]
    pub job_size: Rational,
    /// The partition's priority, [`normalised`].
    pub partition: Rational,
    /// The quality of service's priority, [`normalised`].
    pub qos: Rational,
    /// [`tres`], by resource.
    pub tres: Vec<Rational>,
    /// What an administrator adds.
    pub site: i64,
    /// What the job's owner takes away, from -2147483645 to 2147483645.
    pub nice: i64,
}

impl FactorWeights {
    /// The weighted sum, before it becomes a whole number.
    pub fn sum(&self, factors: &Factors) -> Rational {
        let weighted = [
            (self.age, &factors.age),
            (self.association, &factors.association),
            (self.fairshare, &factors.fairshare),
            (self.job_size, &factors.job_size),
            (self.partition, &factors.partition),
            (self.qos, &factors.qos),
        ];
        let weighted = weighted.into_iter().map(|(weight, factor)| Rational::from(weight) * factor);
        let tres = self.tres.iter().zip(&factors.tres).map(|(weight, factor)| weight * factor);
        let added = Rational::from(IBig::from(factors.site - factors.nice));
        weighted.chain(tres).fold(added, |sum, part| sum + part)
    }

    /// The priority: the sum without what follows its point, from 1 (0 is what Slurm gives a job that is held)
    /// to 2^32 - 1.
    ///
    /// ```
    /// use evenhand_model::{Rational, Span};
    /// use evenhand_policies::multifactor::{FactorWeights, Factors, age};
    /// let weights = FactorWeights { age: 1000, fairshare: 10_000, ..FactorWeights::default() };
    /// let factors = Factors {
    ///     age: age(Span::from_secs(86_400), Span::from_secs(14 * 86_400)),
    ///     fairshare: Rational::from_parts(1.into(), 2u8.into()),
    ///     nice: 100,
    ///     ..Factors::default()
    /// };
    /// assert_eq!(weights.priority(&factors), 4971); // 1000 / 14 + 5000 - 100
    /// ```
    pub fn priority(&self, factors: &Factors) -> u32 {
        to_priority(&self.sum(factors))
    }
}

/// Truncates to a whole number from 1 to 2^32 - 1.
pub(crate) fn to_priority(sum: &Rational) -> u32 {
    if *sum < Rational::ONE {
        return 1;
    }
    // What is too large is not negative.
    u32::try_from(sum.floor()).unwrap_or(u32::MAX)
}

/// The age factor: the time waited over the age at which it is 1 (`PriorityMaxAge`), 1 from then on.
pub fn age(waited: Span, max_age: Span) -> Rational {
    if waited >= max_age {
        return Rational::ONE;
    }
    Rational::from_parts(waited.nanos().into(), UBig::from(max_age.nanos()))
}

/// The factor of a partition, a quality of service or an association: its own priority over the highest of
/// all; 0 where that is 0.
pub fn normalised(priority: u32, highest: u32) -> Rational {
    if highest == 0 {
        return Rational::ZERO;
    }
    Rational::from_parts(priority.min(highest).into(), UBig::from(highest))
}

/// The factor of a resource: what a job asks of it over what there is, in the partition or, for what is shared by
/// all, in the whole system; at most 1.
pub fn tres(asked: &Rational, there_is: &Rational) -> Rational {
    if there_is.is_zero() {
        return Rational::ZERO;
    }
    (asked / there_is).min(Rational::ONE)
}

/// A time limit in Slurm's unit: whole minutes, of which a part counts as one, and at least 1.
pub fn in_minutes(limit: Span) -> u64 {
    limit.nanos().div_ceil(60_000_000_000).max(1)
}

/// The size of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Processors it asks for, over all there are.
    pub processors: Rational,
    /// Nodes it asks for, over all there are, where nodes are counted.
    pub nodes: Option<Rational>,
    /// Its time limit in whole minutes ([`in_minutes`]) under `SMALL_RELATIVE_TO_TIME`.
    pub minutes: Option<u64>,
}

impl Size {
    /// The job size factor.
    ///
    /// * The mean of the job's parts of the nodes and of the processors; of the processors alone where no nodes
    ///   are counted. The whole machine has 1.
    /// * With `minutes` (`SMALL_RELATIVE_TO_TIME`) the larger of the two parts over the time limit in minutes: 1
    ///   for the whole machine for a minute. (A job is taken to have the processors of its nodes.)
    /// * With `favor_small` (`PriorityFavorSmall`) 1 less that.
    pub fn factor(&self, favor_small: bool) -> Rational {
        let processors = &self.processors;
        let large = match (&self.nodes, self.minutes) {
            (None, None) => processors.clone(),
            (Some(nodes), None) => (processors + nodes) / Rational::from(2u8),
            (nodes, Some(minutes)) => {
                let nodes = nodes.as_ref().unwrap_or(processors);
                processors.max(nodes) / Rational::from(minutes.max(1))
            }
        };
        let large = large.clamp(Rational::ZERO, Rational::ONE);
        if favor_small { Rational::ONE - large } else { large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(a: i64, b: u64) -> Rational {
        Rational::from_parts(a.into(), b.into())
    }

    #[test]
    fn a_sum_is_cut_to_a_whole_number_from_1_to_the_largest() {
        assert_eq!(to_priority(&ratio(-5, 2)), 1);
        assert_eq!(to_priority(&ratio(1, 2)), 1);
        assert_eq!(to_priority(&ratio(5, 2)), 2);
        assert_eq!(to_priority(&Rational::from(3u8)), 3);
        assert_eq!(to_priority(&Rational::from(u32::MAX)), u32::MAX);
        assert_eq!(to_priority(&(Rational::from(u32::MAX) + Rational::ONE)), u32::MAX);
    }

    /// "starting around 1000": of .59534 and .50002 a weight of 10 makes one priority.
    #[test]
    fn weights_should_be_high_enough() {
        let priority = |fairshare: u32, factor: i64| {
            let weights = FactorWeights { fairshare, ..FactorWeights::default() };
            weights.priority(&Factors { fairshare: ratio(factor, 100_000), ..Factors::default() })
        };
        assert_eq!((priority(10, 59_534), priority(10, 50_002)), (5, 5));
        assert_eq!((priority(1000, 59_534), priority(1000, 50_002)), (595, 500));
    }

    /// "all jobs over 30 minutes old would get the same age-based priority".
    #[test]
    fn age_grows_to_1_and_stays() {
        let minutes = |m: u64| Span::from_secs(60 * m);
        assert_eq!(age(minutes(0), minutes(30)), Rational::ZERO);
        assert_eq!(age(minutes(10), minutes(30)), ratio(1, 3));
        assert_eq!(age(minutes(30), minutes(30)), Rational::ONE);
        assert_eq!(age(minutes(31), minutes(30)), Rational::ONE);
        assert_eq!(age(minutes(0), minutes(0)), Rational::ONE);
    }

    #[test]
    fn priorities_are_normalised_to_the_highest() {
        assert_eq!(normalised(10, 40), ratio(1, 4));
        assert_eq!(normalised(40, 40), Rational::ONE);
        assert_eq!(normalised(0, 40), Rational::ZERO);
        assert_eq!(normalised(0, 0), Rational::ZERO);
    }

    #[test]
    fn a_limit_is_whole_minutes() {
        let minutes = |s: u64| in_minutes(Span::from_secs(s));
        assert_eq!([minutes(0), minutes(1), minutes(60), minutes(61), minutes(3600)], [1, 1, 1, 2, 60]);
    }

    #[test]
    fn all_nodes_are_1_and_a_full_system_job_of_a_minute_is_1() {
        let size = |c: u64, n: Option<u64>, minutes| Size {
            processors: ratio(c as i64, 64),
            nodes: n.map(|n| ratio(n as i64, 4)),
            minutes,
        };
        assert_eq!(size(64, Some(4), None).factor(false), Rational::ONE);
        assert_eq!(size(64, None, None).factor(false), Rational::ONE);
        assert_eq!(size(64, Some(4), None).factor(true), Rational::ZERO);
        // 1 of 4 nodes and 8 of 64 processors.
        assert_eq!(size(8, Some(1), None).factor(false), ratio(3, 16));
        assert_eq!(size(8, Some(1), None).factor(true), ratio(13, 16));
        assert_eq!(size(8, None, None).factor(true), ratio(7, 8));
        assert_eq!(size(64, Some(4), Some(1)).factor(false), Rational::ONE);
        assert_eq!(size(64, None, Some(2)).factor(false), ratio(1, 2));
        // A tiny job with a large limit: close to 0. Its node is a quarter of the processors.
        assert_eq!(size(1, None, Some(1440)).factor(false), ratio(1, 92_160));
        assert_eq!(size(1, Some(1), Some(1440)).factor(false), ratio(1, 5760));
        assert_eq!(size(64, None, Some(2)).factor(true), ratio(1, 2));
        assert_eq!(size(640, None, None).factor(false), Rational::ONE);
    }

    /// The weights of the documentation's example: age 1000, fairshare 10000, size 1000, partition 1000, over two
    /// weeks, by hand.
    #[test]
    fn the_example_configuration_by_hand() {
        let weights =
            FactorWeights { age: 1000, fairshare: 10_000, job_size: 1000, partition: 1000, ..Default::default() };
        let day = |d: u64| Span::from_secs(86_400 * d);
        // A week in the queue, used exactly its share, a quarter of the machine, the best of two partitions.
        let factors = Factors {
            age: age(day(7), day(14)),
            fairshare: ratio(1, 2),
            job_size: Size { processors: ratio(1, 4), nodes: None, minutes: None }.factor(false),
            partition: normalised(20, 20),
            // Does not count: its weight is 0.
            qos: Rational::ONE,
            ..Factors::default()
        };
        assert_eq!(weights.priority(&factors), 500 + 5000 + 250 + 1000);
        let nice = Factors { nice: 6000, ..factors.clone() };
        assert_eq!(weights.priority(&nice), 750);
        assert_eq!(weights.priority(&Factors { nice: 2_147_483_645, ..factors.clone() }), 1);
        assert_eq!(weights.priority(&Factors { site: 7, nice: -3, ..factors }), 6760);
    }

    /// PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000; "negative values are allowed".
    #[test]
    fn resources_have_weights_of_their_own() {
        let tres_weights = [1000, 2000, 3000].map(Rational::from).into();
        let weights = FactorWeights { tres: tres_weights, ..FactorWeights::default() };
        let of = |asked: i64, there_is: u8| tres(&Rational::from(asked), &Rational::from(there_is));
        let factors = Factors { tres: vec![of(8, 64), of(32, 128), of(1, 4)], ..Factors::default() };
        assert_eq!(weights.priority(&factors), 125 + 500 + 750);
        let less_memory = FactorWeights { tres: vec![Rational::from(1000), ratio(-400, 1)], ..weights };
        assert_eq!(less_memory.priority(&factors), 25);
        assert_eq!(of(9, 3), Rational::ONE);
    }
}
