//! What the framework asks of a metric.

/// The conditions of paper 003, section III.C. "More" and "less" are strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Static heaviness is never negative, and more with more of any one resource.
    C1,
    /// A guest that is endowed with anything is heavier than 0: d > -s. Else more guests would make a user
    /// lighter, or as light.
    C2,
    /// Non-minimalistic: with the same load x + y, a guest endowed with x is heavier than one endowed with
    /// x + y. Else the smallest guest would always be the lightest.
    C3,
    /// The dynamic heaviness of a guest that uses what it is endowed with is 0.
    C4,
    /// The dynamic heaviness of a guest that uses at most its endowment, and less of something, is below 0.
    C5,
    /// A user with a larger quota of a resource, and no smaller one of others, is lighter.
    C6,
}

impl Condition {
    /// All of them.
    pub const ALL: [Condition; 6] =
        [Condition::C1, Condition::C2, Condition::C3, Condition::C4, Condition::C5, Condition::C6];
}
