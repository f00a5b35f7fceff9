//! Quantities of a resource as site descriptions write them.

use dashu_int::IBig;

use crate::size_units::power_of_1024;
use crate::{Quantity, QuantityError, Rational};

/// A quantity of a resource as written: a number in the workload's own unit, or a size in bytes.
///
/// ```
/// use evenhand_model::ResourceQuantity;
/// let kb = ResourceQuantity::parse("64GiB").unwrap().in_unit("KB");
/// assert_eq!(kb.to_string(), "67108864");
/// assert_eq!(ResourceQuantity::parse("16").unwrap().in_unit("processors").to_string(), "16");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceQuantity {
    /// The number as written.
    pub exact: Rational,
    /// Whether it counts bytes: it was written as a size (`64Gi`, `64GiB`, `500GB`).
    pub is_bytes: bool,
}

impl ResourceQuantity {
    /// No quantity.
    pub const ZERO: ResourceQuantity = ResourceQuantity { exact: Rational::ZERO, is_bytes: false };

    /// Parses a number (`16`, `0.5`) or a size in bytes (`64Gi`, `64GiB`, `500GB`: Gi is 2^30, G is 10^9).
    ///
    /// # Errors
    /// Returns an error if the text is neither, or if it is negative.
    pub fn parse(text: &str) -> Result<ResourceQuantity, QuantityError> {
        let trimmed = text.trim();
        let number = trimmed.strip_suffix('B').unwrap_or(trimmed);
        let quantity = Quantity::parse(number).map_err(|e| QuantityError { found: text.to_string(), ..e })?;
        // Thousandths (250m) are of CPUs, not of bytes.
        let is_size = number.ends_with(|c: char| c.is_ascii_alphabetic() && c != 'm');
        Ok(ResourceQuantity { exact: quantity.exact().clone(), is_bytes: is_size || number.len() < trimmed.len() })
    }

    /// Converts to a workload's own unit. A size is converted to units of bytes (`B`, `KB`, `MiB`, …: steps of 1024, as
    /// in job logs). If `unit` is not one of these, the size counts bytes.
    pub fn in_unit(&self, unit: &str) -> Rational {
        match power_of_1024(unit).filter(|_| self.is_bytes) {
            Some(power) => &self.exact / Rational::from(IBig::ONE << (10 * power as usize)),
            None => self.exact.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_and_numbers_are_in_the_workload_s_unit() {
        let text = |t: &str, unit: &str| ResourceQuantity::parse(t).unwrap().in_unit(unit).to_string();
        assert_eq!(text("1Gi", "KB"), "1048576");
        assert_eq!(text("1GiB", "MiB"), "1024");
        assert_eq!(text("1GB", "B"), "1000000000");
        assert_eq!(text("2048B", "KB"), "2");
        assert_eq!(text("64", "KB"), "64");
        assert_eq!(text("250m", "KB"), "1/4");
        // A workload whose memory has no unit.
        assert_eq!(text("1Ki", ""), "1024");
        assert!(ResourceQuantity::parse("-1").is_err());
        assert!(ResourceQuantity::parse("GiB").is_err());
        assert_eq!(ResourceQuantity::parse("x").unwrap_err().found, "x");
    }
}
