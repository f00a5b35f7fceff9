//! Spearman's rank correlation.

/// Returns Spearman's rank correlation, with mean ranks for ties; `None` for fewer than two pairs, or where all values
/// of one side are equal.
pub(super) fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let x = ranks(pairs.iter().map(|p| p.0));
    let y = ranks(pairs.iter().map(|p| p.1));
    let n = pairs.len() as f64;
    let mean = (n + 1.0) / 2.0;
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&y).map(|(a, b)| f(a - mean, b - mean)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|a, _| a * a), sum(&|_, b| b * b), sum(&|a, b| a * b));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// Returns the rank of each value from 1 on; equal values have the mean of their ranks.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|at| values[**at] == values[order[first]]).count();
        let mean = (2 * first + 1 + equal) as f64 / 2.0;
        order[first..first + equal].iter().for_each(|at| ranks[*at] = mean);
        first += equal;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_values_are_their_mean() {
        assert_eq!(ranks([10.0, 20.0, 10.0, 5.0].into_iter()), [2.5, 4.0, 2.5, 1.0]);
    }

    #[test]
    fn correlation_is_by_rank() {
        let of = |pairs: &[(f64, f64)]| rank_correlation(pairs);
        assert_eq!(of(&[(1.0, 1.0), (2.0, 100.0), (3.0, 1e6)]), Some(1.0));
        assert_eq!(of(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        // 1 - 6 sum d² / (n (n² - 1)), with d = 0, 1, 1.
        assert_eq!(of(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]), Some(0.5));
        assert_eq!(of(&[(1.0, 1.0), (2.0, 1.0)]), None);
        assert_eq!(of(&[]), None);
    }
}
