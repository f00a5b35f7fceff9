//! The quadratic program of a Newton step: a convex model, minimized over prices of at least 0.

use super::ROUNDING;

/// Second-order model, and the step to its minimum.
pub(super) struct NewtonModel {
    width: usize,
    /// Second derivatives: lower triangle, row-major.
    pub(super) curvature: Vec<f64>,
    /// Addition to the second derivative of each price.
    pub(super) stiffness: Vec<f64>,
    /// Step from the prices to the minimum.
    pub(super) step: Vec<f64>,
    /// Unit of each price.
    scale: Vec<f64>,
    /// Triangle in such units, and its Cholesky factor for the free resources.
    scaled: Vec<f64>,
    factor: Vec<f64>,
}

/// Returns the index of the entry of two resources in a triangle.
pub(super) fn at(j: usize, k: usize) -> usize {
    let (j, k) = if j >= k { (j, k) } else { (k, j) };
    j * (j + 1) / 2 + k
}

impl NewtonModel {
    pub(super) fn new(width: usize) -> NewtonModel {
        let triangle = width * (width + 1) / 2;
        NewtonModel {
            width,
            curvature: vec![0.0; triangle],
            stiffness: vec![0.0; width],
            step: vec![0.0; width],
            scale: vec![0.0; width],
            scaled: vec![0.0; triangle],
            factor: vec![0.0; triangle],
        }
    }

    /// Finds the step d with `prices + d >= 0` that minimizes d H d / 2 + sum_j d_j (1 - load_j), by the active-set
    /// method of Lawson and Hanson: some resources held at price 0, the others free. In units in which every second
    /// derivative is 1, with a small addition (determined by `off`, the distance of loads from 1), since resources that
    /// are demanded alike make the model singular. O(resources³) per iteration.
    pub(super) fn minimize(&mut self, prices: &[f64], loads: &[f64], budgets: f64, off: f64) {
        let m = self.width;
        for j in 0..m {
            // Few users may react to a price (none, if all who pay it have all they want), so that the model is too
            // flat to be trusted far away. This addition lets a price grow tenfold at most.
            let price = if prices[j] > 0.0 { prices[j] } else { budgets };
            let own = self.curvature[at(j, j)] + self.stiffness[j] + 0.1 * (1.0 - loads[j]).abs() / price;
            self.scale[j] = if own > 0.0 { 1.0 / own.sqrt() } else { price.sqrt() };
        }
        for j in 0..m {
            for k in 0..j {
                self.scaled[at(j, k)] = self.curvature[at(j, k)] * self.scale[j] * self.scale[k];
            }
            self.scaled[at(j, j)] = 1.0 + (1e-6 * off * off).clamp(1e-14, 1e-3);
        }
        // Where hardly any user reacts, a step against rounding errors would go far.
        let slope: Vec<f64> = (0..m)
            .map(|j| if (1.0 - loads[j]).abs() <= ROUNDING { 0.0 } else { (1.0 - loads[j]) * self.scale[j] })
            .collect();
        let lowest: Vec<f64> = (0..m).map(|j| -prices[j] / self.scale[j]).collect();
        let mut free: Vec<bool> = (0..m).map(|j| prices[j] > 0.0 || slope[j] < 0.0).collect();
        let mut step = vec![0.0; m];
        // Each iteration frees or holds a resource. About as many are needed as there are resources; the bound prevents
        // cycling by rounding. Any step is then acceptable, since the caller checks.
        for _ in 0..6 * m + 10 {
            let mut part = 1.0;
            let mut stops = None;
            let target = self.solve(&free, &slope, &lowest);
            for j in (0..m).filter(|j| free[*j] && target[*j] < lowest[*j]) {
                let reaches = (lowest[j] - step[j]) / (target[j] - step[j]);
                if reaches < part {
                    (part, stops) = (reaches.max(0.0), Some(j));
                }
            }
            for j in (0..m).filter(|j| free[*j]) {
                step[j] += part * (target[j] - step[j]);
            }
            if let Some(j) = stops {
                (free[j], step[j]) = (false, lowest[j]);
                continue;
            }
            let mut steepest = None;
            for j in (0..m).filter(|j| !free[*j]) {
                let gradient = slope[j] + (0..m).map(|k| self.scaled[at(j, k)] * step[k]).sum::<f64>();
                if gradient < steepest.map_or(-1e-14, |(lowest, _)| lowest) {
                    steepest = Some((gradient, j));
                }
            }
            match steepest {
                Some((_, j)) => free[j] = true,
                None => break,
            }
        }
        for j in 0..m {
            // Exactly to 0 where the price is held there.
            self.step[j] = if step[j] <= lowest[j] { -prices[j] } else { step[j] * self.scale[j] };
        }
    }

    /// Returns the minimum over the free resources, with the others held at price 0, by Cholesky factorization.
    fn solve(&mut self, free: &[bool], slope: &[f64], lowest: &[f64]) -> Vec<f64> {
        let m = self.width;
        let list: Vec<usize> = (0..m).filter(|j| free[*j]).collect();
        let mut right: Vec<f64> = Vec::with_capacity(list.len());
        for (a, &j) in list.iter().enumerate() {
            let held: f64 = (0..m).filter(|k| !free[*k]).map(|k| self.scaled[at(j, k)] * lowest[k]).sum();
            right.push(-slope[j] - held);
            for (b, &k) in list[..=a].iter().enumerate() {
                let mut sum = self.scaled[at(j, k)];
                for c in 0..b {
                    sum -= self.factor[at(a, c)] * self.factor[at(b, c)];
                }
                // Rounding may make the pivot of a flat direction negative.
                self.factor[at(a, b)] = if a == b { sum.max(1e-14).sqrt() } else { sum / self.factor[at(b, b)] };
            }
        }
        let n = list.len();
        for a in 0..n {
            for c in 0..a {
                right[a] -= self.factor[at(a, c)] * right[c];
            }
            right[a] /= self.factor[at(a, a)];
        }
        for a in (0..n).rev() {
            for c in a + 1..n {
                right[a] -= self.factor[at(c, a)] * right[c];
            }
            right[a] /= self.factor[at(a, a)];
        }
        let mut target = lowest.to_vec();
        for (j, value) in list.into_iter().zip(right) {
            target[j] = value;
        }
        target
    }
}
