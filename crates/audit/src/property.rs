//! The properties a past can be held against.

use std::str::FromStr;

use thiserror::Error;

/// A fairness property; see the [crate] for what each means in a past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// No more is held than there is.
    Feasible,
    /// Nobody waits for what lies idle.
    Pareto,
    /// Nobody waits who would not in a partition of his own.
    SharingIncentive,
    /// Nobody waits while another holds, for his weight, enough for all he runs and his next task.
    EnvyFree,
    /// Nobody waits who is within his entitlement of everything that keeps him waiting.
    NoJustifiedComplaint,
}

impl Property {
    /// Every property, in the order in which they are reported.
    pub const ALL: [Property; 5] = [
        Property::Feasible,
        Property::Pareto,
        Property::SharingIncentive,
        Property::EnvyFree,
        Property::NoJustifiedComplaint,
    ];

    /// What users type; the same names as for a single allocation.
    pub fn name(self) -> &'static str {
        match self {
            Property::Feasible => "feasible",
            Property::Pareto => "pareto",
            Property::SharingIncentive => "sharing_incentive",
            Property::EnvyFree => "envy_free",
            Property::NoJustifiedComplaint => "no_justified_complaint",
        }
    }

    /// What it says against a past, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Property::Feasible => "no more was held than there is",
            Property::Pareto => "nobody waited for what lay idle",
            Property::SharingIncentive => "nobody waited who would not have in a partition of his own",
            Property::EnvyFree => {
                "nobody waited while another held, for his weight, enough for all he ran and his next task"
            }
            Property::NoJustifiedComplaint => {
                "nobody waited who was within his entitlement of everything that kept him waiting"
            }
        }
    }
}

/// There is no property of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown property {found:?}, expected one of: {}", Property::ALL.map(Property::name).join(", "))]
pub struct UnknownProperty {
    /// What was asked for.
    pub found: String,
}

impl FromStr for Property {
    type Err = UnknownProperty;

    fn from_str(text: &str) -> Result<Property, UnknownProperty> {
        Property::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| UnknownProperty { found: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for p in Property::ALL {
            assert_eq!(p.name().parse(), Ok(p));
        }
        let error = "fair".parse::<Property>().unwrap_err().to_string();
        assert!(error.starts_with("unknown property \"fair\", expected one of: feasible, pareto,"), "{error}");
    }
}
