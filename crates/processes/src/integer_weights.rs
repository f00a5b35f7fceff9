//! Entitlements as whole numbers.

use evenhand_model::{Rational, UBig};

/// Largest sum of weights, at which a window of accrual in fixed point is exact to 1e-4 ns.
pub(crate) const LARGEST_SUM: u64 = 1 << 24;

/// Returns whole numbers in the ratios of `exact` (all above 0): exact if their sum is small enough, else rounded.
pub(crate) fn integer_weights(exact: &[&Rational]) -> Vec<u64> {
    let sum = exact.iter().fold(Rational::ZERO, |sum, w| sum + *w);
    let largest = Rational::from(LARGEST_SUM);
    let rounded = || {
        let part = |w: &Rational| (w * &largest / &sum).round().try_into().unwrap_or(1u64).max(1);
        exact.iter().map(|w| part(w)).collect()
    };
    let mut common = UBig::ONE;
    for weight in exact {
        let denominator = weight.denominator();
        common = &common / gcd(common.clone(), denominator.clone()) * denominator;
        // Unrelated denominators: no sufficiently small whole numbers exist.
        if common > (UBig::ONE << 1024) {
            return rounded();
        }
    }
    let scaled: Vec<UBig> = exact
        .iter()
        .filter_map(|w| UBig::try_from((*w * Rational::from(common.clone())).into_parts().0).ok())
        .collect();
    let divisor = scaled.iter().fold(UBig::ZERO, |g, w| gcd(g, w.clone()));
    let numbers: Option<Vec<u64>> = scaled.iter().map(|w| u64::try_from(w / &divisor).ok()).collect();
    let fits =
        |numbers: &Vec<u64>| numbers.iter().try_fold(0u64, |a, b| a.checked_add(*b)).is_some_and(|s| s <= LARGEST_SUM);
    numbers.filter(fits).unwrap_or_else(rounded)
}

fn gcd(mut a: UBig, mut b: UBig) -> UBig {
    while b != UBig::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::Quantity;

    fn of(texts: &[&str]) -> Vec<u64> {
        let exact: Vec<Rational> = texts.iter().map(|t| Quantity::parse(t).unwrap().exact().clone()).collect();
        integer_weights(&exact.iter().collect::<Vec<_>>())
    }

    #[test]
    fn only_ratios_matter_and_they_are_kept() {
        assert_eq!(of(&["0.1", "0.2", "0.3"]), [1, 2, 3]);
        assert_eq!(of(&["1/3", "1/2"]), [2, 3]);
        assert_eq!(of(&["50", "25", "12.5", "12.5"]), [4, 2, 1, 1]);
        assert_eq!(of(&["33.3", "33.3"]), [1, 1]);
    }

    #[test]
    fn extreme_ratios_are_rounded() {
        let extreme = of(&["1", "1e-30", "0.333333333333333333333"]);
        assert_eq!(extreme[1], 1);
        assert!(extreme.iter().sum::<u64>() <= LARGEST_SUM + 2);
        assert!((extreme[0] as f64 / extreme[2] as f64 - 3.0).abs() < 1e-5);
    }
}
