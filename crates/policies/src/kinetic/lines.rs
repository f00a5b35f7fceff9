//! Compares maxima of straight lines in s: which of two is lower at an s, and down to which s it stays lower.
//!
//! Both results are exact for the given coefficients, in spite of cancellation. Users with amounts in steps often meet
//! in one point. A comparison with rounding errors would order them by noise, and two structures, or one structure at
//! two times, would disagree.

use std::cmp::Ordering;

/// A branch of a priority: a + b s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// The value at s = 0.
    pub(super) a: f64,
    /// The slope.
    pub(super) b: f64,
}

/// A bound on the relative error of a quotient of two differences: it is at most 3 units of 2^-53; this is more,
/// because the bounds themselves are rounded.
const QUOTIENT_ERROR: f64 = 5.0 * 0.5 * f64::EPSILON;

/// Returns the maximum of the lines at `s`, in `f64`.
#[inline]
pub(super) fn value(lines: &[Line], s: f64) -> f64 {
    lines.iter().fold(f64::NEG_INFINITY, |highest, l| {
        let line = l.a + l.b * s;
        if line > highest { line } else { highest }
    })
}

/// Returns the maximum of the lines at `s` in `f64`, and twice a bound on its error.
#[inline]
fn rounded(lines: &[Line], s: f64) -> (f64, f64) {
    let (mut highest, mut largest) = (f64::NEG_INFINITY, 0.0);
    for l in lines {
        let rise = l.b * s;
        let (line, parts) = (l.a + rise, l.a.abs() + rise.abs());
        highest = if line > highest { line } else { highest };
        largest = if parts > largest { parts } else { largest };
    }
    (highest, 2.0 * f64::EPSILON * largest + 1e-290)
}

/// Compares two maxima at `s` and, if they are equal there, right below `s`. Returns `Equal` if they are equal on an
/// interval below `s`.
#[inline]
pub(super) fn compare(x: &[Line], y: &[Line], s: f64) -> Ordering {
    let ((u, u_error), (v, v_error)) = (rounded(x, s), rounded(y, s));
    if (u - v).abs() > u_error + v_error {
        return order(u, v);
    }
    let (x, y) = (top(x, s), top(y, s));
    // s decreases: the steeper line falls faster.
    height(x, y, s).then(order(y.b, x.b))
}

/// Returns the line that is the maximum at `s` and right below `s`.
#[inline]
fn top(lines: &[Line], s: f64) -> Line {
    let mut top = lines[0];
    for &line in &lines[1..] {
        if height(line, top, s).then(order(top.b, line.b)).is_gt() {
            top = line;
        }
    }
    top
}

/// Returns the highest s below `s` at which `compare(first, second)` is Greater or, if `loses_ties`, Equal; 0 if there
/// is none. At `s` itself `first` must come first.
///
/// The result is never too low, and too high by at most a few units in the last place. A caller that compares again at
/// the result therefore never misses a swap.
///
/// At a swap, a line x of `first` rises above all lines of `second`. This is the case between the highest of its
/// crossings with steeper lines and the lowest of its crossings with flatter lines.
#[inline]
pub(super) fn next_swap(first: &[Line], second: &[Line], s: f64, loses_ties: bool) -> f64 {
    let mut next = 0.0;
    for x in first {
        // x is above all of `second` for from < s < until. Lines that never are need no division.
        let (mut from, mut until, mut alike, mut never) = (0.0_f64, f64::INFINITY, false, false);
        for y in second {
            let (da, db) = (x.a - y.a, y.b - x.b);
            let reach = db * s;
            if db > 0.0 {
                never |= da <= 0.0;
                if da < reach * (1.0 + 2.0 * QUOTIENT_ERROR) {
                    until = until.min(da / db);
                }
            } else if db < 0.0 {
                if da < reach * (1.0 + 2.0 * QUOTIENT_ERROR) {
                    never = true;
                } else if da < 0.0 {
                    from = from.max(da / db);
                }
            } else {
                never |= da < 0.0;
                alike |= da == 0.0;
            }
        }
        // Along a common line the two are only equal.
        if never
            || until <= next
            || until * (1.0 - QUOTIENT_ERROR) >= s
            || (alike && !loses_ties)
            || from > until * (1.0 + 4.0 * QUOTIENT_ERROR)
        {
            continue;
        }
        let above = until * (1.0 + QUOTIENT_ERROR);
        if above < s && from < until * (1.0 - 2.0 * QUOTIENT_ERROR) {
            next = next.max(above);
        } else {
            // The swap, or whether it is above `s`, is within the rounding error: test each of some twenty numbers.
            let turned = |at: f64| match compare(first, second, at) {
                Ordering::Less => false,
                Ordering::Equal => loses_ties,
                Ordering::Greater => true,
            };
            let mut at = above.min(s.next_down());
            while at > next && at >= until * (1.0 - 5.0 * QUOTIENT_ERROR) {
                if turned(at) {
                    next = at;
                }
                at = at.next_down();
            }
        }
    }
    next
}

#[inline]
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or(Ordering::Equal)
}

/// Compares two lines at `s` exactly, for s from 2^-400 to 2^400 and coefficients up to 2^400.
#[inline]
fn height(x: Line, y: Line, s: f64) -> Ordering {
    let (da, db) = (x.a - y.a, x.b - y.b);
    if db == 0.0 {
        return order(da, 0.0);
    }
    if da == 0.0 {
        return order(db, 0.0);
    }
    let rise = db * s;
    let difference = da + rise;
    // The differences, the product and the sum each have an error of half an epsilon; the last term covers subnormal
    // products.
    if difference.abs() > 4.0 * f64::EPSILON * (da.abs() + rise.abs()) + 1e-290 {
        return order(difference, 0.0);
    }
    exact_height(x, y, s)
}

#[cold]
fn exact_height(x: Line, y: Line, s: f64) -> Ordering {
    // Scaled up, so that no product is subnormal.
    let up = f64::from_bits((1023 + 500) << 52);
    let [xb, yb] = [x.b, -y.b].map(|b| {
        let product = b * up * s;
        // The exact rounding error of the product.
        (product, (b * up).mul_add(s, -product))
    });
    sign_of_sum([xb.1, yb.1, xb.0, yb.0, x.a * up, -y.a * up])
}

/// Returns the sign of an exact sum. Each part is the rounding error of the next (Shewchuk 1997, grow-expansion), so
/// the last part that is not 0 has the sign of the sum.
fn sign_of_sum(terms: [f64; 6]) -> Ordering {
    let mut parts = [0.0; 6];
    for (n, &term) in terms.iter().enumerate() {
        let mut carried = term;
        for part in &mut parts[..n] {
            let sum = carried + *part;
            let of_part = sum - carried;
            *part = (carried - (sum - of_part)) + (*part - of_part);
            carried = sum;
        }
        parts[n] = carried;
    }
    parts.iter().rev().find(|p| **p != 0.0).map_or(Ordering::Equal, |p| order(*p, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::Rational;
    use proptest::prelude::*;

    fn rational(x: f64) -> Rational {
        Rational::try_from(x).unwrap()
    }

    /// The comparison by definition, in rationals.
    fn expected(x: &[Line], y: &[Line], s: f64) -> Ordering {
        let top = |lines: &[Line]| {
            let at = |l: &Line| (rational(l.a) + rational(l.b) * rational(s), -rational(l.b));
            lines.iter().map(at).max().unwrap()
        };
        let (x, y) = (top(x), top(y));
        x.cmp(&y)
    }

    /// Coefficients that often cancel: small fractions, and such fractions after a rounding or with a
    /// last digit changed.
    fn coefficient() -> impl Strategy<Value = f64> {
        prop_oneof![
            3 => (-6i32..7).prop_map(|n| f64::from(n) / 4.0),
            3 => (-6i32..7, 1i32..8).prop_map(|(n, d)| f64::from(n) / f64::from(d)),
            1 => (-6i32..7, 1i32..8).prop_map(|(n, d)| (f64::from(n) / f64::from(d)).next_up()),
            1 => (-6i32..7, -60i32..60).prop_map(|(n, k)| f64::from(n) / 3.0 * 2f64.powi(k)),
            1 => (-6i32..7).prop_map(|n| f64::from(n) / 3.0 * 1e-300),
        ]
    }

    fn lines() -> impl Strategy<Value = Vec<Line>> {
        prop::collection::vec((coefficient(), coefficient()).prop_map(|(a, b)| Line { a, b }), 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_comparison_is_that_of_rationals(x in lines(), y in lines(), n in 1u32..13, d in 1u32..13, k in 0i32..3) {
            let s = f64::from(n) / f64::from(d) * 2f64.powi(-20 * k);
            prop_assert_eq!(compare(&x, &y, s), expected(&x, &y, s));
            // Also at the crossings of two of their lines, up to rounding.
            for (p, q) in x.iter().flat_map(|p| y.iter().map(move |q| (p, q))) {
                let at = (q.a - p.a) / (p.b - q.b);
                if at > 1e-100 && at < 1e100 {
                    for s in [at.next_down(), at, at.next_up()] {
                        prop_assert_eq!(compare(&x, &y, s), expected(&x, &y, s));
                    }
                }
            }
        }

        /// Tests every crossing of two lines below s and its neighbours: the order holds above the predicted swap, and
        /// the swap is at most a few units in the last place below it.
        #[test]
        fn a_swap_is_where_the_order_turns(x in lines(), y in lines(), s in 1u32..25, loses_ties in any::<bool>()) {
            let s = f64::from(s) / 12.0;
            let turned = |x: &[Line], y: &[Line], loses_ties: bool, s: f64| {
                let order = compare(x, y, s);
                order.is_gt() || (loses_ties && order.is_eq())
            };
            let (x, y, loses_ties) = if turned(&x, &y, loses_ties, s) { (y, x, !loses_ties) } else { (x, y, loses_ties) };
            let turned = |s: f64| turned(&x, &y, loses_ties, s);
            let next = next_swap(&x, &y, s, loses_ties);
            prop_assert!(next < s);
            let both: Vec<Line> = x.iter().chain(&y).copied().collect();
            let crossings = both.iter().flat_map(|p| both.iter().map(move |q| (q.a - p.a) / (p.b - q.b)));
            let mut near: Vec<f64> = crossings
                .filter(|c| c.is_finite() && *c > 1e-100)
                .chain([next, s])
                .flat_map(|c| [c, c.next_up(), c.next_down(), c * (1.0 + 1e-15), c * (1.0 - 4e-15), c * 0.75])
                .filter(|c| *c < s && *c > 1e-100)
                .collect();
            near.sort_by(f64::total_cmp);
            let turns = near.iter().rev().find(|&&at| turned(at));
            match turns {
                None => prop_assert!(next < 1e-99, "{next}"),
                Some(&at) => prop_assert!(next >= at && next <= at * (1.0 + 1e-14), "{next} {at}"),
            }
        }
    }

    #[test]
    fn two_users_swap_at_the_reference_values() {
        let line = |a, b| Line { a, b };
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-14, "{found} {expected}");
        let (i, k) = ([line(0.3, 0.4)], [line(0.5, 0.1)]);
        close(next_swap(&k, &i, 1.0, false), 2.0 / 3.0);
        // Users i and k of the reference example: at first i is lower.
        let (i, k) = ([line(0.65, 0.55), line(1.15, -0.25)], [line(1.25, -0.45), line(0.85, 0.25)]);
        let (mut first, mut second, mut s) = (&i, &k, 1.0);
        if compare(first, second, s).is_gt() {
            (first, second) = (second, first);
        }
        for expected in [2.0 / 3.0, 3.0 / 5.0, 1.0 / 2.0] {
            let next = next_swap(first, second, s, false);
            close(next, expected);
            (first, second, s) = (second, first, next - 1e-13);
        }
        assert_eq!(next_swap(first, second, s, false), 0.0);
    }
}
