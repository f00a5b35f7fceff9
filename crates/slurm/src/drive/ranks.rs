//! Site factors for an order, with as few changes as possible.

/// The lowest and the highest site factor given, both exclusive. Other parts of a priority are weights times
/// factors up to 1, which sites keep far below; all of it has to fit in 32 bits.
const RANGE: (i64, i64) = (1_000_000_000, 2_000_000_000);

/// A job in its place, and the site factor it has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The number by which it is changed.
    pub job: u64,
    /// 0: none was given yet.
    pub now: i64,
}

/// A site factor to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// To which job.
    pub job: u64,
    /// Which.
    pub value: i64,
}

/// The changes after which the site factors of `order`, first first, fall from job to job.
///
/// As many as possible keep theirs: those of the longest part of the order whose values fall already (of several
/// such parts one that keeps later ones). The others get values evenly between. Only where there is no room
/// between two, all get new ones.
pub fn assign(order: &[Ranks]) -> Vec<Assigned> {
    let keeps = longest_falling(order);
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
        let Some(values) = between(above, below, end - at) else { return all_anew(order) };
        assigned.extend(order[at..end].iter().zip(values).map(|(r, value)| Assigned { job: r.job, value }));
        at = end;
    }
    assigned
}

fn all_anew(order: &[Ranks]) -> Vec<Assigned> {
    let values = between(RANGE.1, RANGE.0, order.len()).unwrap_or_default();
    let each = order.iter().zip(values).map(|(r, value)| (r.now, Assigned { job: r.job, value }));
    each.filter(|(now, assigned)| *now != assigned.value).map(|(_, assigned)| assigned).collect()
}

/// `many` values that fall evenly between two others.
fn between(above: i64, below: i64, many: usize) -> Option<Vec<i64>> {
    let parts = many as i64 + 1;
    let step = (above - below) / parts;
    (step > 0).then(|| (1..parts).map(|i| above - i * step).collect())
}

/// Which jobs are in a longest part of the order whose values fall, within the range.
fn longest_falling(order: &[Ranks]) -> Vec<bool> {
    // Patience: by length, the place of the largest last value of such a part.
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

    fn ranks(values: &[i64]) -> Vec<Ranks> {
        values.iter().enumerate().map(|(i, v)| Ranks { job: i as u64, now: *v }).collect()
    }

    fn after(order: &[Ranks], assigned: &[Assigned]) -> Vec<i64> {
        let value = |r: &Ranks| assigned.iter().find(|a| a.job == r.job).map_or(r.now, |a| a.value);
        order.iter().map(value).collect()
    }

    #[test]
    fn who_is_in_order_keeps_its_value() {
        let order = ranks(&[1_900_000_000, 1_100_000_000, 1_800_000_000, 1_700_000_000]);
        assert_eq!(assign(&order), [Assigned { job: 1, value: 1_850_000_000 }]);
        assert_eq!(
            assign(&ranks(&[0, 0, 0])).iter().map(|a| a.value).collect::<Vec<_>>(),
            [1_750_000_000, 1_500_000_000, 1_250_000_000]
        );
        assert_eq!(assign(&[]), []);
        // No room between: all anew.
        assert_eq!(assign(&ranks(&[1_500_000_001, 0, 1_500_000_000])).len(), 3);
    }

    proptest! {
        #[test]
        fn values_fall_and_as_few_change_as_can_be(
            values in prop::collection::vec(prop_oneof![Just(0i64), 1_000_000_001i64..2_000_000_000, -5i64..5], 0..9)
        ) {
            let order = ranks(&values);
            let assigned = assign(&order);
            let found = after(&order, &assigned);
            prop_assert!(found.windows(2).all(|w| w[0] > w[1]), "{found:?}");
            prop_assert!(found.iter().all(|v| *v > RANGE.0 && *v < RANGE.1));
            // Every subset that may stay, tried.
            let most = (0u32..1 << values.len()).filter_map(|kept| {
                let kept: Vec<i64> = (0..values.len()).filter(|i| kept >> i & 1 == 1).map(|i| values[i]).collect();
                let good = kept.windows(2).all(|w| w[0] > w[1]) && kept.iter().all(|v| *v > RANGE.0 && *v < RANGE.1);
                good.then_some(kept.len())
            }).max().unwrap_or(0);
            prop_assert!(values.len() - assigned.len() == most || assigned.len() == values.len());
        }
    }
}
