//! The conditions that Poullie et al. (2016) state for metrics.

/// A condition on metrics (Poullie et al. 2016, section III.C). "More", "larger" and "lighter" are strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricCondition {
    /// Static heaviness is never negative, and increases with each resource.
    C1,
    /// A workload with a positive endowment has positive heaviness: d > -s. Otherwise additional workloads would make a
    /// user lighter, or leave h_u unchanged.
    C2,
    /// Non-minimality: for the same load x + y, a workload with the endowment x is heavier than one with x + y. Otherwise
    /// the smallest workload would always be the lightest.
    C3,
    /// The dynamic heaviness of a workload whose load equals its endowment is 0.
    C4,
    /// The dynamic heaviness of a workload that uses at most its endowment, and less of some resource, is negative.
    C5,
    /// A user with a larger quota of one resource, and no smaller quota of any other, is lighter.
    C6,
}

impl MetricCondition {
    /// All conditions.
    pub const ALL: [MetricCondition; 6] = [
        MetricCondition::C1,
        MetricCondition::C2,
        MetricCondition::C3,
        MetricCondition::C4,
        MetricCondition::C5,
        MetricCondition::C6,
    ];
}
