//! One step of an ordinary differential equation, with an error estimate.
//!
//! The pair of Dormand and Prince ("A family of embedded Runge-Kutta formulae", J. Comp. Appl. Math. 6, 1980): order 5,
//! with an embedded solution of order 4 for comparison. Crates that provide it depend on a linear algebra library; the
//! formula is seven lines of coefficients.

/// Coefficients of the previous stages' derivatives, for each stage.
const STAGES: [&[f64]; 6] = [
    &[1.0 / 5.0],
    &[3.0 / 40.0, 9.0 / 40.0],
    &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
    &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
    &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
    // The solution of order 5, from which the next step continues.
    &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];

/// Solution of order 5 minus that of order 4.
const ERROR: [f64; 7] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];

/// Result of a step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// State at the end.
    pub(crate) state: Vec<f64>,
    /// Derivative at the end.
    pub(crate) slope: Vec<f64>,
    /// Largest error of a component, relative to `1 + |component|`.
    pub(crate) error: f64,
}

/// Takes one step of length `h` of y' = f(y) from `state`, where the derivative is `slope`.
///
/// # Errors
/// Returns the error of `f`.
pub(crate) fn step<E>(
    state: &[f64],
    slope: &[f64],
    h: f64,
    mut f: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Step, E> {
    let mut slopes = vec![slope.to_vec()];
    let mut y = state.to_vec();
    for weights in STAGES {
        for (i, y) in y.iter_mut().enumerate() {
            let sum: f64 = weights.iter().zip(&slopes).map(|(w, k)| w * k[i]).sum();
            *y = state[i] + h * sum;
        }
        slopes.push(f(&y)?);
    }
    let error = (0..y.len()).map(|i| {
        let sum: f64 = ERROR.iter().zip(&slopes).map(|(w, k)| w * k[i]).sum();
        (h * sum).abs() / (1.0 + y[i].abs())
    });
    let error = error.fold(0.0, f64::max);
    Ok(Step { error, slope: slopes.pop().unwrap_or_default(), state: y })
}

/// Returns the length to try after a step of length `h` whose error was `error` times the allowed one.
pub(crate) fn next_length(h: f64, error: f64) -> f64 {
    // The allowed error is proportional to h, the error to its fifth power, hence the fourth root; with a safety
    // factor, and within bounds.
    h * (0.9 * libm::pow(error.max(1e-10), -0.25)).clamp(0.2, 5.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(y: &[f64]) -> Result<Vec<f64>, ()> {
        Ok(vec![-y[1], y[0]])
    }

    fn around(steps: usize) -> f64 {
        let h = std::f64::consts::TAU / steps as f64;
        let mut y = vec![1.0, 0.0];
        let mut slope = circle(&y).unwrap();
        for _ in 0..steps {
            let next = step(&y, &slope, h, circle).unwrap();
            (y, slope) = (next.state, next.slope);
        }
        (y[0] - 1.0).hypot(y[1])
    }

    #[test]
    fn halving_the_step_divides_the_error_by_32() {
        let ratio = around(50) / around(100);
        assert!((28.0..40.0).contains(&ratio), "{ratio}");
        assert!(around(400) < 1e-11);
    }

    #[test]
    fn weights_add_up_to_the_step() {
        let sums: Vec<f64> = STAGES.iter().map(|w| w.iter().sum()).collect();
        for (sum, at) in sums.iter().zip([0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0]) {
            assert!((sum - at).abs() < 1e-13, "{sums:?}");
        }
        assert!(ERROR.iter().sum::<f64>().abs() < 1e-15);
        // The estimate contains no term of order 4 or lower.
        let one = step(&[0.0], &[1.0], 0.5, |_| Ok::<_, ()>(vec![1.0])).unwrap();
        assert!((one.state[0] - 0.5).abs() < 1e-15 && one.error < 1e-16, "{one:?}");
    }
}
