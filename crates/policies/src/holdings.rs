//! What every user holds, in whole steps.

use evenhand_model::{Amount, Capacity, Rational, UserId, Weights};

/// Held amounts of all users, and what turns them into shares.
#[derive(Clone, Debug)]
pub(crate) struct Holdings {
    width: usize,
    held: Vec<u64>,
    /// 1 / capacity, by resource.
    per_step: Vec<f64>,
    capacity: Capacity,
}

impl Holdings {
    pub(crate) fn new(capacity: &Capacity, users: usize) -> Holdings {
        let width = capacity.width();
        Holdings {
            width,
            held: vec![0; users * width],
            per_step: (0..width).map(|r| 1.0 / capacity.steps(r)).collect(),
            capacity: capacity.clone(),
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    #[inline]
    pub(crate) fn row(&self, user: UserId) -> &[u64] {
        &self.held[user.index() * self.width..][..self.width]
    }

    #[inline]
    pub(crate) fn add(&mut self, user: UserId, demand: &[Amount]) {
        for (held, d) in self.held[user.index() * self.width..].iter_mut().zip(demand) {
            *held += d.0;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, user: UserId, demand: &[Amount]) {
        for (held, d) in self.held[user.index() * self.width..].iter_mut().zip(demand) {
            debug_assert!(*held >= d.0, "a task finishes once");
            *held -= d.0;
        }
    }

    /// An amount over capacity.
    #[inline]
    pub(crate) fn share(&self, r: usize, steps: u64) -> f64 {
        steps as f64 * self.per_step[r]
    }

    /// An amount over capacity, exactly.
    pub(crate) fn exact_share(&self, r: usize, steps: u64) -> Rational {
        Rational::from(steps) / self.capacity.exact_steps(r)
    }

    /// A user's shares.
    pub(crate) fn shares(&self, user: UserId) -> Vec<f64> {
        self.row(user).iter().enumerate().map(|(r, &h)| self.share(r, h)).collect()
    }
}

/// Users' weights over the mean, ready for keys.
#[derive(Clone, Debug)]
pub(crate) struct RelativeWeights {
    inverse: Vec<f64>,
    /// Users of equal weight have one class, so that the exact comparison can skip dividing.
    class: Vec<u32>,
    weights: Weights,
}

impl RelativeWeights {
    pub(crate) fn new(weights: &Weights) -> RelativeWeights {
        let mut distinct: Vec<&Rational> = Vec::new();
        let class = (0..weights.len())
            .map(|u| {
                let w = weights.exact(u);
                distinct.iter().position(|d| *d == w).unwrap_or_else(|| {
                    distinct.push(w);
                    distinct.len() - 1
                }) as u32
            })
            .collect();
        let inverse = (0..weights.len()).map(|u| 1.0 / weights.over_mean(u)).collect();
        RelativeWeights { inverse, class, weights: weights.clone() }
    }

    #[inline]
    pub(crate) fn inverse(&self, user: UserId) -> f64 {
        self.inverse[user.index()]
    }

    #[inline]
    pub(crate) fn equal(&self, a: UserId, b: UserId) -> bool {
        self.class[a.index()] == self.class[b.index()]
    }

    pub(crate) fn exact_over_mean(&self, user: UserId) -> Rational {
        self.weights.exact_over_mean(user.index())
    }
}
