//! Bottleneck-based global priorities (Zeldes and Feitelson, 2013).
//!
//! With J(t) the bottlenecks, a_i(j) the entitlement of client i on resource j within the window (t-T, t] and c_i(j)
//! its consumption,
//!
//! ```text
//! pri_i = min over j in J of ( a_i(j) - c_i(j) )      largest first
//! pri_i = a_i - sum over j of c_i(j)                  if J is empty (asset fairness)
//! ```
//!
//! and every queue is in the order of this one priority. In the default interpretation only bottlenecks count that the
//! client uses: on which it is active, or was within the window. A client that uses none goes first, since what it
//! takes is scarce to no other. Priorities are compared in whole nanoseconds.

use crate::entitlement_accrual::{EntitlementAccrual, round};
use crate::scenario::{Reading, TieBreak};
use crate::scheduler::{QueuedRequest, Scheduler, SchedulerContext, SchedulerView};

pub(crate) struct BottleneckPriority {
    reading: Reading,
    ties: TieBreak,
    weights: Vec<f64>,
    mean_weight: f64,
    accrual: EntitlementAccrual,
    resources: usize,
    /// Priorities before rounding.
    gaps: Vec<f64>,
    priorities: Vec<i64>,
    /// Resources on which the priorities of the last recalculation depend; the last entry stands for the accrual over
    /// all resources.
    counts: Vec<bool>,
}

/// Priority of a client that uses nothing that counts.
const FIRST: i64 = i64::MAX;

impl BottleneckPriority {
    /// Computes the unused entitlement of each client in the column, infinite for a client without a claim; with
    /// `minimum`, keeps the smaller of it and the previous gap.
    fn gap_into(&mut self, accrued: usize, used: &[f64], now: u64, minimum: bool) {
        let growth = self.accrual.sync(now, accrued);
        let corrections = self.accrual.corrections(accrued);
        let each = self.gaps.iter_mut().zip(&self.weights).zip(corrections).zip(used);
        if minimum {
            for (((gap, weight), correction), used) in each {
                let new = weight * (growth + correction) - used;
                *gap = if new < *gap { new } else { *gap };
            }
        } else {
            for (((gap, weight), correction), used) in each {
                *gap = weight * (growth + correction) - used;
            }
        }
    }
}

impl Scheduler for BottleneckPriority {
    fn new(context: &SchedulerContext<'_>) -> BottleneckPriority {
        let mut servers: Vec<u64> = context.servers.iter().map(|s| u64::from(*s)).collect();
        // The last column: active on any resource.
        servers.push(1);
        let clients = context.weights.len();
        BottleneckPriority {
            reading: context.reading,
            ties: context.ties,
            weights: context.weights.iter().map(|w| *w as f64).collect(),
            mean_weight: context.weights.iter().sum::<u64>() as f64 / clients as f64,
            accrual: EntitlementAccrual::new(context.weights, &servers, context.grace, context.window),
            resources: context.servers.len(),
            gaps: vec![0.0; clients],
            priorities: vec![0; clients],
            counts: vec![false; servers.len()],
        }
    }

    #[inline]
    fn request_arrives(&mut self, now: u64, client: usize, resource: usize) {
        self.accrual.enter(now, client, resource);
        self.accrual.enter(now, client, self.resources);
        // The priority that a recalculation would give a newcomer, which has neither entitlement nor consumption.
        if self.priorities[client] == FIRST && (self.counts[resource] || self.counts[self.resources]) {
            self.priorities[client] = 0;
        }
    }

    #[inline]
    fn request_leaves(&mut self, now: u64, client: usize, resource: usize) {
        self.accrual.leave(now, client, resource);
        self.accrual.leave(now, client, self.resources);
    }

    fn client_finishes(&mut self, now: u64, client: usize) {
        self.accrual.end(now, client);
    }

    fn recalculate(&mut self, view: &SchedulerView<'_>) {
        let all = self.resources;
        let contended = view.bottlenecks.contains(&true);
        let per_resource = contended && self.reading == Reading::PerResource;
        self.counts[..all].copy_from_slice(view.bottlenecks);
        self.counts[all] = !per_resource;
        if !contended {
            self.gap_into(all, view.used.in_window(all), view.now, false);
        } else {
            self.gaps.fill(f64::INFINITY);
            for resource in (0..all).filter(|r| view.bottlenecks[*r]) {
                let accrued = if per_resource { resource } else { all };
                self.gap_into(accrued, view.used.in_window(resource), view.now, true);
            }
            if self.reading == Reading::Normalized {
                for (gap, weight) in self.gaps.iter_mut().zip(&self.weights) {
                    // Relative to the mean weight, so that the unit of weights does not matter.
                    *gap *= self.mean_weight / weight;
                }
            }
        }
        for column in 0..=all {
            self.accrual.keep_up(view.now, column);
        }
        for (priority, gap) in self.priorities.iter_mut().zip(&self.gaps) {
            *priority = round(*gap);
        }
    }

    #[inline]
    fn choose(&mut self, view: &SchedulerView<'_>, resource: usize, queue: &[QueuedRequest]) -> usize {
        let mut best = 0;
        let mut best_lag = None;
        let mut virtual_time = None;
        for at in 1..queue.len() {
            let (new, old) = (queue[at].client as usize, queue[best].client as usize);
            let (priority, best_priority) = (self.priorities[new], self.priorities[old]);
            if priority < best_priority {
                continue;
            }
            let mut lag = None;
            let ahead = priority > best_priority || {
                let order = if self.ties == TieBreak::Lag && new != old {
                    let accrual = &mut self.accrual;
                    let v = *virtual_time.get_or_insert_with(|| accrual.v(view.now, resource));
                    let of =
                        |client| accrual.ever(v, client, resource) - view.used.ever(view.now, client, resource) as i64;
                    let old_lag = *best_lag.get_or_insert_with(|| of(old));
                    let new_lag = of(new);
                    lag = Some(new_lag);
                    new_lag.cmp(&old_lag)
                } else {
                    std::cmp::Ordering::Equal
                };
                order.is_gt() || (order.is_eq() && queue[at].precedes(&queue[best]))
            };
            if ahead {
                best = at;
                best_lag = lag;
            }
        }
        best
    }

    fn priorities(&self) -> &[i64] {
        &self.priorities
    }
}
