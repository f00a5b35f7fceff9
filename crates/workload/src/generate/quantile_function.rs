//! Distributions that are defined by measured quantiles.

use evenhand_model::random::{Stream, normal_quantile};

/// The quantile function of a positive quantity, interpolated as the logarithm of the value over the normal score; for
/// a log-normal distribution it is a straight line. It is constant below the first and above the last measured
/// quantile, so that no value exceeds the measured ones.
#[derive(Clone, Debug)]
pub(super) struct QuantileFunction {
    knots: Vec<(f64, f64)>,
}

impl QuantileFunction {
    /// Creates a quantile function from pairs of probability and value, both increasing.
    pub(super) fn new(quantiles: &[(f64, f64)]) -> QuantileFunction {
        debug_assert!(quantiles.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        QuantileFunction { knots: quantiles.iter().map(|&(p, v)| (normal_quantile(p), libm::log(v))).collect() }
    }

    /// Returns the value at a normal score.
    pub(super) fn at(&self, score: f64) -> f64 {
        let k = &self.knots;
        let above = k.partition_point(|&(z, _)| z < score);
        let log = match (above.checked_sub(1).map(|i| k[i]), k.get(above)) {
            (Some((z0, v0)), Some(&(z1, v1))) => v0 + (v1 - v0) * (score - z0) / (z1 - z0),
            (Some((_, v)), None) => v,
            (None, first) => first.map_or(0.0, |&(_, v)| v),
        };
        libm::exp(log)
    }
}

/// Distributes `tasks` tasks to users: each gets at least one, and the rest is proportional to the quantiles at evenly
/// spaced probabilities (with jitter, so that seeds differ), in random order. Also returns the quantile of each user.
pub(super) fn tasks_per_user(
    quantiles: &QuantileFunction,
    tasks: u64,
    users: u32,
    random: &mut Stream,
) -> Vec<(u64, f64)> {
    let n = f64::from(users);
    let mut weights: Vec<f64> =
        (0..users).map(|i| quantiles.at(normal_quantile((f64::from(i) + 0.3 + 0.4 * random.uniform()) / n))).collect();
    random.shuffle(&mut weights);
    let rest = tasks - u64::from(users);
    // The excess over the one task that each user has.
    let above = |w: f64| (w - 1.0).max(1e-3);
    let sum: f64 = weights.iter().map(|&w| above(w)).sum();
    let exact = |w: f64| rest as f64 * above(w) / sum;
    let mut counts: Vec<(u64, f64)> = weights.iter().map(|&w| (exact(w) as u64, w)).collect();
    // The largest remainders get the tasks that rounding down left; ties go to the smaller index.
    let assigned: u64 = counts.iter().map(|c| c.0).sum();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|&a, &b| exact(weights[b]).fract().total_cmp(&exact(weights[a]).fract()).then(a.cmp(&b)));
    let mut left = rest.saturating_sub(assigned);
    for &i in order.iter().cycle() {
        if left == 0 {
            break;
        }
        counts[i].0 += 1;
        left -= 1;
    }
    // Floating-point rounding can assign a few tasks too many.
    let mut excess = assigned.saturating_sub(rest);
    while excess > 0 {
        let largest = (0..counts.len()).max_by_key(|&i| counts[i].0).expect("there is a user");
        let removed = excess.min(counts[largest].0);
        counts[largest].0 -= removed;
        excess -= removed;
    }
    counts.iter().map(|&(c, w)| (c + 1, w)).collect()
}

/// Rounds `value` to four significant digits, in billionths.
pub(super) fn four_digits(value: f64) -> u128 {
    let mut nano = (value * 1e9) as u128;
    let mut step = 1;
    while nano >= 10_000 {
        nano /= 10;
        step *= 10;
    }
    nano.max(1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_quantiles_are_returned() {
        let law = QuantileFunction::new(&[(0.05, 28.0), (0.5, 626.0), (0.95, 13_981.0)]);
        for (p, v) in [(0.05, 28.0), (0.5, 626.0), (0.95, 13_981.0), (0.001, 28.0), (0.9999, 13_981.0)] {
            assert!((law.at(normal_quantile(p)) / v - 1.0).abs() < 1e-9);
        }
        assert!(law.at(0.3) > 626.0 && law.at(0.3) < 13_981.0);
    }

    #[test]
    fn all_tasks_are_distributed() {
        let law = QuantileFunction::new(&[(0.25, 1.0), (0.5, 6.0), (0.99, 24_204.0)]);
        for (tasks, users) in
            [(1, 1), (7, 7), (8, 7), (1000, 3), (509_816, 391), (32_000_000, 627), (1_000_000_007, 10_000)]
        {
            let counts = tasks_per_user(&law, tasks, users, &mut Stream::new(1, "t", 0));
            assert_eq!(counts.len(), users as usize);
            assert_eq!(counts.iter().map(|c| c.0).sum::<u64>(), tasks);
            assert!(counts.iter().all(|c| c.0 >= 1));
        }
    }

    #[test]
    fn amounts_have_four_digits() {
        assert_eq!(four_digits(0.024996), 24_990_000);
        assert_eq!(four_digits(0.0062490001), 6_249_000);
        assert_eq!(four_digits(1.0), 1_000_000_000);
        assert_eq!(four_digits(0.0), 1);
    }
}
