//! Assigns site factors that put jobs into an order, with as few changes as possible.

/// The range of assigned site factors, both ends exclusive. The other parts of a priority are weights times factors up to 1,
/// far below this range at all known sites; the sum must fit in 32 bits.
const RANGE: (i64, i64) = (1_000_000_000, 2_000_000_000);

/// A job in the order, with its present site factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedJob {
    /// The job id by which it is modified.
    pub job: u64,
    /// The present site factor; 0 if none was assigned.
    pub now: i64,
}

/// A change of a site factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteFactorChange {
    /// The job id.
    pub job: u64,
    /// The new site factor.
    pub value: i64,
}

/// Returns the changes after which the site factors strictly decrease along `order`, first job first.
///
/// As many jobs as possible keep theirs: those of a longest decreasing subsequence (of several, one that keeps later jobs).
/// The others get values evenly between. Only if there are not enough values between two of them do all jobs get new ones.
/// O(n log n).
pub fn assign_site_factors(order: &[RankedJob]) -> Vec<SiteFactorChange> {
    let keeps = longest_decreasing(order);
    let mut assigned = Vec::new();
    let mut above = RANGE.1;
    let mut at = 0;
    while at < order.len() {
        if keeps[at] {
            above = order[at].now;
            at += 1;
            continue;
        }
        let end = (at..order.len()).find(|i| keeps[*i]).unwrap_or(order.len());
        let below = order.get(end).map_or(RANGE.0, |r| r.now);
        let Some(values) = between(above, below, end - at) else { return assign_all(order) };
        assigned.extend(order[at..end].iter().zip(values).map(|(r, value)| SiteFactorChange { job: r.job, value }));
        at = end;
    }
    assigned
}

fn assign_all(order: &[RankedJob]) -> Vec<SiteFactorChange> {
    let values = between(RANGE.1, RANGE.0, order.len()).unwrap_or_default();
    let each = order.iter().zip(values).map(|(r, value)| (r.now, SiteFactorChange { job: r.job, value }));
    each.filter(|(now, assigned)| *now != assigned.value).map(|(_, assigned)| assigned).collect()
}

/// Returns `count` values that decrease evenly between two others; `None` if they do not fit.
fn between(above: i64, below: i64, count: usize) -> Option<Vec<i64>> {
    let parts = count as i64 + 1;
    let step = (above - below) / parts;
    (step > 0).then(|| (1..parts).map(|i| above - i * step).collect())
}

/// Returns which jobs belong to a longest decreasing subsequence of values within the range, by patience sorting.
fn longest_decreasing(order: &[RankedJob]) -> Vec<bool> {
    // By length minus 1, the index of the largest last value of a decreasing subsequence of this length.
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![None; order.len()];
    for (at, rank) in order.iter().enumerate() {
        if rank.now <= RANGE.0 || rank.now >= RANGE.1 {
            continue;
        }
        let length = tails.partition_point(|tail| order[*tail].now > rank.now);
        before[at] = length.checked_sub(1).map(|l| tails[l]);
        if length == tails.len() { tails.push(at) } else { tails[length] = at }
    }
    let mut keeps = vec![false; order.len()];
    let mut at = tails.last().copied();
    while let Some(here) = at {
        keeps[here] = true;
        at = before[here];
    }
    keeps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranked_jobs(values: &[i64]) -> Vec<RankedJob> {
        values.iter().enumerate().map(|(i, v)| RankedJob { job: i as u64, now: *v }).collect()
    }

    fn after(order: &[RankedJob], assigned: &[SiteFactorChange]) -> Vec<i64> {
        let value = |r: &RankedJob| assigned.iter().find(|a| a.job == r.job).map_or(r.now, |a| a.value);
        order.iter().map(value).collect()
    }

    #[test]
    fn jobs_in_order_keep_their_site_factors() {
        let order = ranked_jobs(&[1_900_000_000, 1_100_000_000, 1_800_000_000, 1_700_000_000]);
        assert_eq!(assign_site_factors(&order), [SiteFactorChange { job: 1, value: 1_850_000_000 }]);
        assert_eq!(
            assign_site_factors(&ranked_jobs(&[0, 0, 0])).iter().map(|a| a.value).collect::<Vec<_>>(),
            [1_750_000_000, 1_500_000_000, 1_250_000_000]
        );
        assert_eq!(assign_site_factors(&[]), []);
        // No value between the two: all change.
        assert_eq!(assign_site_factors(&ranked_jobs(&[1_500_000_001, 0, 1_500_000_000])).len(), 3);
    }

    proptest! {
        #[test]
        fn site_factors_decrease_with_the_fewest_changes(
            values in prop::collection::vec(prop_oneof![Just(0i64), 1_000_000_001i64..2_000_000_000, -5i64..5], 0..9)
        ) {
            let order = ranked_jobs(&values);
            let assigned = assign_site_factors(&order);
            let found = after(&order, &assigned);
            prop_assert!(found.windows(2).all(|w| w[0] > w[1]), "{found:?}");
            prop_assert!(found.iter().all(|v| *v > RANGE.0 && *v < RANGE.1));
            // The reference model tries every subset that may stay.
            let largest = (0u32..1 << values.len()).filter_map(|kept| {
                let kept: Vec<i64> = (0..values.len()).filter(|i| kept >> i & 1 == 1).map(|i| values[i]).collect();
                let good = kept.windows(2).all(|w| w[0] > w[1]) && kept.iter().all(|v| *v > RANGE.0 && *v < RANGE.1);
                good.then_some(kept.len())
            }).max().unwrap_or(0);
            prop_assert!(values.len() - assigned.len() == largest || assigned.len() == values.len());
        }
    }
}
