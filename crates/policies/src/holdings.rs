//! Current holdings of every user, in whole steps.

use std::collections::BTreeMap;

use evenhand_model::{Amount, Capacity, Rational, UserId, Weights};

/// Current holdings of all users, in steps of [`Amount`], and the capacity that turns them into shares.
#[derive(Clone, Debug)]
pub struct Holdings {
    width: usize,
    held: Vec<u64>,
    /// 1 / capacity, by resource.
    per_step: Vec<f64>,
    capacity: Capacity,
}

impl Holdings {
    /// Returns the holdings of so many users, who hold nothing.
    pub fn new(capacity: &Capacity, users: usize) -> Holdings {
        let width = capacity.width();
        Holdings {
            width,
            held: vec![0; users * width],
            per_step: (0..width).map(|r| 1.0 / capacity.steps(r)).collect(),
            capacity: capacity.clone(),
        }
    }

    /// Returns the number of resources.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns a user's holdings, by resource.
    #[inline]
    pub fn row(&self, user: UserId) -> &[u64] {
        &self.held[user.index() * self.width..][..self.width]
    }

    /// Adds a demand that starts.
    #[inline]
    pub fn add(&mut self, user: UserId, demand: &[Amount]) {
        for (held, d) in self.held[user.index() * self.width..].iter_mut().zip(demand) {
            *held += d.0;
        }
    }

    /// Subtracts a demand that ends; it must have been added before.
    #[inline]
    pub fn remove(&mut self, user: UserId, demand: &[Amount]) {
        for (held, d) in self.held[user.index() * self.width..].iter_mut().zip(demand) {
            debug_assert!(*held >= d.0, "a task finishes once");
            *held -= d.0;
        }
    }

    /// Returns an amount of resource `r` over its capacity, rounded twice.
    #[inline]
    pub fn share(&self, r: usize, steps: u64) -> f64 {
        steps as f64 * self.per_step[r]
    }

    /// Returns an amount of resource `r` over its capacity, exactly.
    pub fn exact_share(&self, r: usize, steps: u64) -> Rational {
        Rational::from(steps) / self.capacity.exact_steps(r)
    }

    /// Returns a user's shares, by resource.
    pub fn shares(&self, user: UserId) -> Vec<f64> {
        self.row(user).iter().enumerate().map(|(r, &h)| self.share(r, h)).collect()
    }
}

/// Users' weights over the mean weight, ready for keys.
#[derive(Clone, Debug)]
pub struct RelativeWeights {
    inverse: Vec<f64>,
    /// Users of equal weight have one class, so that the exact comparison can skip dividing.
    class: Vec<u32>,
    first_of_class: Vec<UserId>,
    weights: Weights,
}

impl RelativeWeights {
    /// Prepares weights.
    pub fn new(weights: &Weights) -> RelativeWeights {
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

    /// Returns which of the different weights a user has, numbered by first appearance.
    pub fn class(&self, user: UserId) -> u32 {
        self.class[user.index()]
    }

    /// Returns the first user of each class of equal weights.
    pub fn first_of_class(&self) -> &[UserId] {
        &self.first_of_class
    }

    /// Returns the mean weight over the user's weight: what a key is multiplied by.
    #[inline]
    pub fn inverse(&self, user: UserId) -> f64 {
        self.inverse[user.index()]
    }

    /// Returns whether two users have the same weight.
    #[inline]
    pub fn equal(&self, a: UserId, b: UserId) -> bool {
        self.class[a.index()] == self.class[b.index()]
    }

    /// Returns the user's weight over the mean weight, exactly.
    pub fn exact_over_mean(&self, user: UserId) -> Rational {
        self.weights.exact_over_mean(user.index())
    }
}
