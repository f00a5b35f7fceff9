//! Numbers of results, computed in 64 bits or exactly, as JSON and tables print them.

use evenhand_mechanisms::Number;
use evenhand_model::{Rational, to_f64};
use serde::ser::{Serialize, Serializer};

use super::numbers::four_digits;

/// Number of a result: computed in 64 bits (in JSON a number), or exact (in JSON a fraction as text).
#[derive(Clone, Debug)]
pub(crate) enum OutputNumber {
    Float(f64),
    Exact(Rational),
}

/// Conversion of computed numbers to numbers of results.
pub(crate) trait ToOutputNumber: Number {
    /// Returns the number as results print it.
    fn output_number(&self) -> OutputNumber;
}

impl<N: Number> ToOutputNumber for N {
    fn output_number(&self) -> OutputNumber {
        match N::EXACT.then(|| self.to_exact()).flatten() {
            Some(exact) => OutputNumber::Exact(exact),
            // -0 is written as 0.
            None => OutputNumber::Float(self.to_f64() + 0.0),
        }
    }
}

impl OutputNumber {
    /// Returns the number in 64 bits.
    pub(crate) fn to_f64(&self) -> f64 {
        match self {
            OutputNumber::Float(x) => *x,
            OutputNumber::Exact(x) => to_f64(x),
        }
    }

    /// Formats the number for a table: an exact one as a fraction, unless that is long.
    pub(crate) fn to_text(&self) -> String {
        const LONGEST: usize = 12;
        match self {
            OutputNumber::Exact(x) => Some(x.to_string()).filter(|t| t.len() <= LONGEST),
            OutputNumber::Float(_) => None,
        }
        .unwrap_or_else(|| four_digits(self.to_f64()))
    }
}

impl Serialize for OutputNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OutputNumber::Float(x) => serializer.serialize_f64(*x),
            OutputNumber::Exact(x) => serializer.collect_str(x),
        }
    }
}

/// Format of a resource's amounts in tables: sizes with a unit, if the capacity is a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AmountFormat(Option<(f64, &'static str)>);

impl AmountFormat {
    /// Returns the format for a resource of this capacity. A capacity of whole Mi is a size, in the largest unit that is
    /// not larger than the capacity.
    pub(crate) fn for_capacity(capacity: &Rational) -> AmountFormat {
        let mi = Rational::from(1u64 << 20);
        if capacity.is_zero() || !(capacity / &mi).is_int() {
            return AmountFormat(None);
        }
        let units = [(50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi")];
        let units = units.map(|(bits, unit)| ((1u64 << bits) as f64, unit));
        AmountFormat(units.into_iter().find(|(size, _)| to_f64(capacity) >= *size))
    }

    /// Formats an amount.
    pub(crate) fn format(self, amount: &OutputNumber) -> String {
        match self.0 {
            Some((size, unit)) if amount.to_f64() != 0.0 => format!("{}{unit}", four_digits(amount.to_f64() / size)),
            _ => amount.to_text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Quantity, Rational};

    use super::{AmountFormat, OutputNumber};

    #[test]
    fn amounts_of_a_resource_whose_capacity_is_a_size_are_sizes() {
        let format = |capacity: &str, amount: f64| {
            AmountFormat::for_capacity(Quantity::parse(capacity).unwrap().exact()).format(&OutputNumber::Float(amount))
        };
        assert_eq!(format("18Gi", (12u64 << 30) as f64), "12Gi");
        assert_eq!(format("1.5Ti", (1u64 << 39) as f64), "0.5Ti");
        assert_eq!(format("18Gi", 0.0), "0");
        assert_eq!(format("1000000", 500.0), "500");
        assert_eq!(format("0", 0.0), "0");
        let third = OutputNumber::Exact(Rational::ONE / Rational::from(3u8));
        assert_eq!(AmountFormat::for_capacity(&Rational::from(18u8)).format(&third), "1/3");
    }
}
