//! Intervals from a few repeats.

/// The confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Returns the mean of some values and the interval in which another value of the same kind lies with 95 % probability:
/// mean ± t s √(1 + 1/n), with t Student's quantile for n - 1 degrees of freedom and s the standard deviation (the
/// prediction interval of a normal distribution). `None` for fewer than two values.
///
/// Unlike the confidence interval of the mean it does not shrink to nothing with the number of repeats: it shows how much
/// one outcome differs from another by luck, which is what a user experiences.
///
/// ```
/// let (mean, [low, high]) = evenhand_study::predicted(&[1.0, 2.0, 3.0]).unwrap();
/// assert_eq!(mean, 2.0);
/// // 4.3027 is the quantile for two degrees of freedom, s = 1.
/// assert!((high - (2.0 + 4.3027 * (4.0f64 / 3.0).sqrt())).abs() < 1e-3);
/// assert!((low + high - 4.0).abs() < 1e-12);
/// ```
pub fn predicted(values: &[f64]) -> Option<(f64, [f64; 2])> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    // From the first value on, so that equal values have exactly no deviation.
    let origin = values[0];
    let shift = values.iter().map(|x| x - origin).sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|x| (x - origin - shift).powi(2)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    let margin = t_quantile(n as u32 - 1) * deviation * (1.0 + 1.0 / n as f64).sqrt();
    let mean = origin + shift;
    Some((mean, [mean - margin, mean + margin]))
}

/// Returns the t for which |T| < t with 95 % probability, of Student's distribution with this many degrees of freedom,
/// at least 1.
pub fn t_quantile(degrees: u32) -> f64 {
    let (mut low, mut high) = (0.0, 16.0);
    // Bisection to the last digit; the quantile falls from 12.7 at one degree of freedom to 1.96.
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if within(middle, degrees.max(1)) < CONFIDENCE { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability that |T| < t: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn within(t: f64, degrees: u32) -> f64 {
    let n = f64::from(degrees);
    let (sine, cosine) = (t / (n + t * t).sqrt(), (n / (n + t * t)).sqrt());
    let odd = degrees % 2 == 1;
    // The terms of the series: cos θ, 2/3 cos³ θ, … for odd degrees, 1, 1/2 cos² θ, … for even ones.
    let (mut term, mut sum) = (if odd { cosine } else { 1.0 }, 0.0);
    let mut k = if odd { 1 } else { 0 };
    while k + 2 <= degrees {
        sum += term;
        term *= f64::from(k + 1) / f64::from(k + 2) * cosine * cosine;
        k += 2;
    }
    if odd { 2.0 / std::f64::consts::PI * (libm::atan(t / n.sqrt()) + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        // Two-sided 95 %, from the tables of Abramowitz and Stegun (26.10) to three decimals.
        let table =
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (19, 2.093), (30, 2.042), (120, 1.980)];
        for (degrees, t) in table {
            assert!((t_quantile(degrees) - t).abs() < 6e-4, "{degrees}: {}", t_quantile(degrees));
        }
    }

    #[test]
    fn probabilities_are_the_integral_of_the_density() {
        for degrees in 1..12u32 {
            let n = f64::from(degrees);
            let density = |x: f64| (1.0 + x * x / n).powf(-0.5 * (n + 1.0));
            let integral = |to: f64| (0..20_000).map(|i| density(to * (i as f64 + 0.5) / 20_000.0)).sum::<f64>() * to;
            // Normalized by a part of which the probability is computed, too: the ratio is free of the constant.
            let expected = integral(1.5) / integral(0.5);
            let found = within(1.5, degrees) / within(0.5, degrees);
            assert!((found / expected - 1.0).abs() < 1e-7, "{degrees}: {found} {expected}");
        }
    }

    #[test]
    fn equal_values_have_no_noise_and_one_value_has_no_interval() {
        assert_eq!(predicted(&[0.1; 7]), Some((0.1, [0.1; 2])));
        assert_eq!(predicted(&[1.0]), None);
        assert_eq!(predicted(&[]), None);
    }
}
