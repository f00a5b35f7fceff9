//! Statistics of columns, weighted with the tasks of each row.

use rayon::prelude::*;

use super::{Concentration, Distribution, Interarrival, Tail};

/// Values in increasing order, with the number of tasks of each.
pub(super) enum Sorted {
    /// Every value is one task.
    Single(Vec<u64>),
    /// Each value with the number of tasks up to and including it.
    Weighted(Vec<(u64, u64)>),
}

impl Sorted {
    /// Sorts the values of some rows.
    pub(super) fn single(mut values: Vec<u64>) -> Sorted {
        values.par_sort_unstable();
        Sorted::Single(values)
    }

    /// Sorts pairs of value and tasks.
    pub(super) fn weighted(mut values: Vec<(u64, u64)>) -> Sorted {
        values.par_sort_unstable();
        let mut sum = 0;
        for (_, tasks) in &mut values {
            sum += *tasks;
            *tasks = sum;
        }
        Sorted::Weighted(values)
    }

    /// Returns the number of tasks.
    pub(super) fn tasks(&self) -> u64 {
        match self {
            Sorted::Single(v) => v.len() as u64,
            Sorted::Weighted(v) => v.last().map_or(0, |l| l.1),
        }
    }

    /// Returns the smallest value that at least the fraction `p` of tasks does not exceed; 0 if there is no task.
    pub(super) fn quantile(&self, p: f64) -> u64 {
        let rank = ((p * self.tasks() as f64).ceil() as u64).clamp(1, self.tasks().max(1));
        match self {
            Sorted::Single(v) => v.get(rank as usize - 1).copied().unwrap_or(0),
            Sorted::Weighted(v) => v.get(v.partition_point(|e| e.1 < rank)).map_or(0, |e| e.0),
        }
    }

    fn mean(&self) -> f64 {
        let sum: u128 = match self {
            Sorted::Single(v) => v.iter().map(|&v| u128::from(v)).sum(),
            Sorted::Weighted(v) => {
                let mut before = 0;
                // 64-bit values times 64-bit tasks; tasks sum to less than 2^64.
                v.iter()
                    .map(|&(value, upto)| u128::from(value) * u128::from(upto - std::mem::replace(&mut before, upto)))
                    .sum()
            }
        };
        sum as f64 / self.tasks().max(1) as f64
    }

    /// Returns quantiles and mean, with every value divided by `unit`.
    pub(super) fn distribution(&self, unit: f64) -> Distribution {
        let q = |p| self.quantile(p) as f64 / unit;
        Distribution {
            q05: q(0.05),
            q25: q(0.25),
            q50: q(0.5),
            q75: q(0.75),
            q90: q(0.9),
            q95: q(0.95),
            q99: q(0.99),
            max: q(1.0),
            mean: self.mean() / unit,
        }
    }
}

/// Returns the distribution of positive counts with the parameters of its tail.
pub(super) fn tail(counts: &[u64]) -> Tail {
    let sorted = Sorted::single(counts.to_vec());
    let distribution = sorted.distribution(1.0);
    let mut largest: Vec<f64> = counts.iter().map(|&c| (c.max(1) as f64).ln()).collect();
    largest.sort_by(|a, b| b.total_cmp(a));
    let ranks: Vec<(f64, f64)> =
        largest.iter().take(200).enumerate().map(|(i, &log)| (((i + 1) as f64).ln(), log)).collect();
    let k = largest.len() / 10;
    // The mean log excess over the (k+1)-th largest.
    let excess = |k: usize| largest[..k].iter().map(|l| l - largest[k]).sum::<f64>() / k as f64;
    let hill = (k >= 2).then(|| excess(k)).filter(|&e| e > 0.0).map(f64::recip);
    Tail { distribution, rank_slope: slope(&ranks), hill }
}

/// Returns the slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (points.len() > 2 && sxx > 0.0).then(|| sxy / sxx)
}

/// Returns the concentration of shares.
pub(super) fn concentration(mut shares: Vec<f64>) -> Concentration {
    shares.sort_by(|a, b| b.total_cmp(a));
    let sum: f64 = shares.iter().sum();
    let of_sum = |part: f64| if sum > 0.0 { part / sum } else { 0.0 };
    let top = |k: usize| of_sum(shares.iter().take(k).sum());
    let n = shares.len() as f64;
    // Shares fall, so rank 1 is the largest: G = (n + 1 - 2 sum(rank x share) / sum) / n.
    let ranked: f64 = shares.iter().enumerate().map(|(i, s)| (i + 1) as f64 * s).sum();
    let gini = if sum > 0.0 { (n + 1.0 - 2.0 * ranked / sum) / n } else { 0.0 };
    Concentration { gini, top1: top(1), top5: top(5), top10: top(10), top50: top(50) }
}

/// Computes the mean and variation of the gaps between events, from their number, period and sum of squares.
#[derive(Default)]
pub(super) struct Gaps {
    events: u64,
    first: Option<u64>,
    last: u64,
    squares: f64,
}

impl Gaps {
    /// Adds `tasks` events at the same time, which is not before the last one.
    pub(super) fn add(&mut self, ns: u64, tasks: u64) {
        if self.first.is_none() {
            self.first = Some(ns);
            self.last = ns;
        }
        let gap = (ns - self.last) as f64 / 1e9;
        self.squares += gap * gap;
        self.last = ns;
        self.events += tasks;
    }

    pub(super) fn finish(&self) -> Option<Interarrival> {
        let gaps = self.events.checked_sub(1).filter(|&g| g > 0)? as f64;
        let mean_s = (self.last - self.first?) as f64 / 1e9 / gaps;
        let variance = (self.squares / gaps - mean_s * mean_s).max(0.0);
        Some(Interarrival { mean_s, variation: if mean_s > 0.0 { variance.sqrt() / mean_s } else { 0.0 } })
    }
}

/// Returns Spearman's correlation of weighted pairs: Pearson's correlation of the mid-ranks.
pub(super) fn spearman(pairs: &[(u64, u64, u64)]) -> Option<f64> {
    let total: f64 = pairs.iter().map(|p| p.2 as f64).sum();
    let ranks = |value: fn(&(u64, u64, u64)) -> u64| {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by_key(|&i| value(&pairs[i]));
        let mut ranks = vec![0.0; pairs.len()];
        let mut before = 0.0;
        for same in order.chunk_by(|&a, &b| value(&pairs[a]) == value(&pairs[b])) {
            let tasks: f64 = same.iter().map(|&i| pairs[i].2 as f64).sum();
            same.iter().for_each(|&i| ranks[i] = before + tasks / 2.0);
            before += tasks;
        }
        ranks
    };
    let (x, y) = (ranks(|p| p.0), ranks(|p| p.1));
    let middle = total / 2.0;
    let moment = |a: &[f64], b: &[f64]| -> f64 {
        pairs.iter().zip(a.iter().zip(b)).map(|(p, (a, b))| p.2 as f64 * (a - middle) * (b - middle)).sum()
    };
    let scale = (moment(&x, &x) * moment(&y, &y)).sqrt();
    (scale > 0.0).then(|| moment(&x, &y) / scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn weights_are_repetitions(values in proptest::collection::vec((0..50u64, 1..5u64), 1..40)) {
            let repeated = values.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n as usize)).collect();
            let (a, b) = (Sorted::single(repeated), Sorted::weighted(values));
            prop_assert_eq!(a.distribution(2.0), b.distribution(2.0));
        }

        #[test]
        fn no_more_than_the_share_lies_below_a_quantile(
            values in proptest::collection::vec(0..50u64, 1..80),
            p in 0.001..1.0f64,
        ) {
            let q = Sorted::single(values.clone()).quantile(p);
            let n = values.len() as f64;
            prop_assert!(values.iter().filter(|&&v| v <= q).count() as f64 >= p * n - 1e-9);
            prop_assert!((values.iter().filter(|&&v| v < q).count() as f64) < p * n + 1e-9);
        }
    }

    #[test]
    fn statistics_match_known_values() {
        let c = concentration(vec![1.0, 1.0, 1.0, 1.0]);
        assert_eq!((c.gini, c.top1, c.top5), (0.0, 0.25, 1.0));
        assert!((concentration(vec![0.0, 0.0, 0.0, 8.0]).gini - 0.75).abs() < 1e-12);
        // Zipf: the slope of 1/rank is -1.
        let zipf: Vec<u64> = (1..=100).map(|r| 1_000_000 / r).collect();
        assert!((tail(&zipf).rank_slope.unwrap() + 1.0).abs() < 1e-3);
        // Monotone is 1, reversed is -1.
        assert!((spearman(&[(1, 10, 3), (2, 20, 1), (3, 21, 5)]).unwrap() - 1.0).abs() < 1e-12);
        assert!((spearman(&[(1, 9, 1), (2, 5, 1), (3, 1, 2)]).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[(1, 9, 4), (1, 5, 1)]), None);
        let mut gaps = Gaps::default();
        [0, 1, 3].iter().for_each(|s| gaps.add(s * 1_000_000_000, 1));
        let g = gaps.finish().unwrap();
        assert!((g.mean_s - 1.5).abs() < 1e-12 && (g.variation - 1.0 / 3.0).abs() < 1e-12);
    }
}
