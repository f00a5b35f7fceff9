//! The fairness properties that a history can be audited against.

use std::str::FromStr;

use thiserror::Error;

/// A fairness property; the [crate] documentation defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// Users never hold more than the capacity.
    Feasible,
    /// No user waits for a task that fits into the free capacity.
    Pareto,
    /// No user waits for a task that an equal partition (by weight) would run.
    SharingIncentive,
    /// No user waits while another user holds, relative to the weights, enough for the user's running tasks and next
    /// task.
    EnvyFree,
    /// No user waits who would stay within the entitlement on every resource that blocks the task.
    NoJustifiedComplaint,
}

impl Property {
    /// All properties, in the order of reports.
    pub const ALL: [Property; 5] = [
        Property::Feasible,
        Property::Pareto,
        Property::SharingIncentive,
        Property::EnvyFree,
        Property::NoJustifiedComplaint,
    ];

    /// Returns the name on the command line and in records, the same as in the audit of a single allocation.
    pub fn name(self) -> &'static str {
        match self {
            Property::Feasible => "feasible",
            Property::Pareto => "pareto",
            Property::SharingIncentive => "sharing_incentive",
            Property::EnvyFree => "envy_free",
            Property::NoJustifiedComplaint => "no_justified_complaint",
        }
    }

    /// Returns a one-line statement of what happened in a history in which the property `holds` or is violated.
    pub fn statement(self, holds: bool) -> &'static str {
        match (self, holds) {
            (Property::Feasible, true) => "users never held more than the capacity",
            (Property::Feasible, false) => "users held more than the capacity",
            (Property::Pareto, true) => "no user waited for a task that fit into the free capacity",
            (Property::Pareto, false) => "a user waited although the task fit into the free capacity",
            (Property::SharingIncentive, true) => "no user waited for a task that an equal partition would have run",
            (Property::SharingIncentive, false) => "a user waited although an equal partition would have run the task",
            (Property::EnvyFree, true) => {
                "no user waited while another user held, relative to the weights, enough for the waiting user's tasks"
            }
            (Property::EnvyFree, false) => {
                "a user waited while another user held, relative to the weights, enough for the waiting user's tasks"
            }
            (Property::NoJustifiedComplaint, true) => {
                "no user waited whose task was within the entitlement on every resource that blocked it"
            }
            (Property::NoJustifiedComplaint, false) => {
                "a user waited although the task was within the entitlement on every resource that blocked it"
            }
        }
    }
}

/// A name is not the name of a property.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown property {found:?}, expected one of: {}", Property::ALL.map(Property::name).join(", "))]
pub struct UnknownProperty {
    /// The unknown name.
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
    fn names_parse_to_their_properties() {
        for p in Property::ALL {
            assert_eq!(p.name().parse(), Ok(p));
        }
        let error = "fair".parse::<Property>().unwrap_err().to_string();
        assert!(error.starts_with("unknown property \"fair\", expected one of: feasible, pareto,"), "{error}");
    }
}
