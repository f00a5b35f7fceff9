//! What every user holds, in whole steps.

use std::collections::BTreeMap;

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
    first_of_class: Vec<UserId>,
    weights: Weights,
}

impl RelativeWeights {
    pub(crate) fn new(weights: &Weights) -> RelativeWeights {
        let mut classes: BTreeMap<&Rational, u32> = BTreeMap::new();
        let mut first_of_class = Vec::new();
        let class: Vec<u32> = (0..weights.len())
            .map(|u| {
                *classes.entry(weights.exact(u)).or_insert_with(|| {
                    first_of_class.push(UserId(u as u32));
                    first_of_class.len() as u32 - 1
                })
            })
            .collect();
        let of_class: Vec<f64> = first_of_class.iter().map(|u| 1.0 / weights.over_mean(u.index())).collect();
        let inverse = class.iter().map(|&c| of_class[c as usize]).collect();
        RelativeWeights { inverse, class, first_of_class, weights: weights.clone() }
    }

    /// Which of the different weights is this user's, numbered by first appearance.
    pub(crate) fn class(&self, user: UserId) -> u32 {
        self.class[user.index()]
    }

    /// The first user of each class.
    pub(crate) fn first_of_class(&self) -> &[UserId] {
        &self.first_of_class
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
