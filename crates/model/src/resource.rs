//! Resources and their amounts.

use dashu_int::UBig;

use crate::Rational;

/// A resource that tasks hold while they run: `cpu`, `mem`, `gpu`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The name; `cpu`, `mem`, `gpu`, `disk` and `net` are customary.
    pub name: String,
    /// The unit in the workload (`"KB"`, `"machines"`); empty if there is none.
    pub unit: String,
    /// The decimals of an [`Amount`], which counts steps of 10^-decimals of `unit`.
    pub decimals: u8,
}

impl Resource {
    /// Creates a resource without decimals.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Resource {
        Resource { name: name.into(), unit: unit.into(), decimals: 0 }
    }

    /// Returns the steps of an [`Amount`] in one unit: 10^decimals.
    pub fn steps(&self) -> u64 {
        10u64.pow(u32::from(self.decimals))
    }

    /// Converts an amount to the workload's own unit, as the nearest `f64`.
    pub fn value(&self, amount: Amount) -> f64 {
        amount.0 as f64 / self.steps() as f64
    }

    /// Converts an amount to the workload's own unit, exactly.
    pub fn exact(&self, amount: Amount) -> Rational {
        Rational::from_parts(amount.0.into(), UBig::from(self.steps()))
    }

    /// Formats an amount as an exact decimal number in the workload's own unit: `0.0125`.
    pub fn format(&self, amount: Amount) -> String {
        let (whole, part) = (amount.0 / self.steps(), amount.0 % self.steps());
        if part == 0 {
            return whole.to_string();
        }
        let digits = format!("{part:0width$}", width = usize::from(self.decimals));
        format!("{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// A quantity of a resource in whole steps of 10^-[`decimals`](Resource::decimals) of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Amount(pub u64);

impl Amount {
    /// The largest amount of one task: 18 digits, which fit a signed 64-bit column.
    pub const MAX: Amount = Amount(999_999_999_999_999_999);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_print_exactly() {
        let r = Resource { decimals: 4, ..Resource::new("cpu", "") };
        assert_eq!(r.format(Amount(125)), "0.0125");
        assert_eq!(r.format(Amount(20_000)), "2");
        assert_eq!(r.value(Amount(125)), 0.0125);
    }
}
