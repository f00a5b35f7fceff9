//! What a row of a table holds and requests of each resource.

use evenhand_model::size_units::power_of_1024;
use evenhand_model::{Amount, Quantity, Resource};

use super::presets::Notation;
use super::{BY_REQUEST, NO_AMOUNT, NO_REQUEST, NOT_ALLOCATED, Place, ROUNDED, Row, TableReader};
use crate::import::Processors;
use crate::import::error::FieldError;
use crate::import::parse_number::{Decimal, NANO, decimal, fits};
use crate::slurm_notation;

/// The amounts that a row holds, in billionths, and those that it requested, if the table states them apart.
type HeldAndAsked = (Vec<u128>, Option<Vec<u128>>);

impl TableReader<'_> {
    /// Returns the amounts of a row.
    ///
    /// An amount that is not known as allocated is that requested, and the other way round.
    pub(super) fn amounts(&mut self, row: &Row<'_, '_>) -> Result<HeldAndAsked, Box<FieldError>> {
        let (mut rounded, mut is_any_asked) = (false, false);
        let mut held = Vec::with_capacity(row.table.resources.len());
        let mut asked = Vec::with_capacity(row.table.resources.len());
        let places = row.table.resources.iter().zip(&row.table.requested);
        for ((place, of_request), resource) in places.zip(self.columns.resources()) {
            let allocated = self.amount(row, place.as_ref(), resource)?;
            let requested = self.amount(row, of_request.as_ref(), resource);
            let requested = self.optional(requested)?;
            match (allocated, requested) {
                (None, Some(_)) => self.tally.adjust(NOT_ALLOCATED),
                (None, None) if place.is_some() => self.tally.adjust(NO_AMOUNT),
                _ => {}
            }
            is_any_asked |= requested.is_some();
            rounded |= allocated.into_iter().chain(requested).any(|amount| amount.rounded);
            let nano = |amount: Option<Decimal>| amount.map_or(0, |amount| amount.nano);
            held.push(nano(allocated.or(requested)));
            asked.push(nano(requested.or(allocated)));
        }
        if rounded {
            self.tally.adjust(ROUNDED);
        }
        let states_requests = row.table.requested.iter().any(Option::is_some);
        Ok(match self.processors {
            Processors::Allocated => (held, is_any_asked.then_some(asked)),
            Processors::Requested => {
                if states_requests {
                    self.tally.adjust(if is_any_asked { BY_REQUEST } else { NO_REQUEST });
                }
                (asked, None)
            }
        })
    }

    /// Returns an amount of a resource; `None` if the table lacks it or it is unknown.
    fn amount(
        &self,
        row: &Row<'_, '_>,
        place: Option<&Place>,
        resource: &Resource,
    ) -> Result<Option<Decimal>, Box<FieldError>> {
        let Some((at, text, times)) = place.and_then(|place| row.at(place)) else { return Ok(None) };
        let found = match self.notation {
            Notation::Slurm if resource.unit == "GiB" => slurm_notation::memory(text)
                .map(|nano| Decimal { nano: (nano + (1 << 29)) >> 30, rounded: !nano.is_multiple_of(1 << 30) }),
            _ => number(text, times).or_else(|| quantity(text, &resource.unit)),
        };
        found.filter(|d| fits(d.nano)).map(Some).ok_or_else(|| {
            let what = match found {
                Some(_) => format!("an amount of {} of at most {}", resource.name, Amount::MAX.0),
                None => format!("an amount of {}, a number that is not negative", resource.name),
            };
            FieldError::new(at, text, what)
        })
    }
}

/// Parses a number and multiplies it by a factor in billionths; rounds halves up.
pub(super) fn number(text: &[u8], times: u128) -> Option<Decimal> {
    let Decimal { nano, rounded } = decimal(text)?;
    if times == NANO {
        return Some(Decimal { nano, rounded });
    }
    let product = nano.checked_mul(times)?.checked_add(NANO / 2)?;
    Some(Decimal { nano: product / NANO, rounded: rounded || !(nano * times).is_multiple_of(NANO) })
}

/// Parses a quantity with a suffix of Kubernetes (`500m`, `64Gi`), in the unit of the resource: a size is in bytes, and
/// divided by the unit of a resource that is measured in one.
fn quantity(text: &[u8], unit: &str) -> Option<Decimal> {
    let last = text.last().filter(|b| b.is_ascii_alphabetic())?;
    let text = str::from_utf8(text).ok()?;
    let nano = Quantity::parse(text).ok()?.nano()?;
    let shift = 10 * power_of_1024(unit).unwrap_or(0);
    // Thousandths are of the unit itself.
    let divisor = if *last == b'm' { 1 } else { 1u128 << shift };
    Some(Decimal { nano: (nano + divisor / 2) / divisor, rounded: !nano.is_multiple_of(divisor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_kubernetes_are_in_the_unit_of_the_resource() {
        let nano = |text: &str, unit: &str| quantity(text.as_bytes(), unit).map(|d| d.nano);
        assert_eq!(nano("500m", ""), Some(NANO / 2));
        assert_eq!(nano("64Gi", "GiB"), Some(64 * NANO));
        assert_eq!(nano("64Gi", "B"), Some(NANO << 36));
        assert_eq!(nano("1536Mi", "GB"), Some(3 * NANO / 2));
        assert_eq!(nano("64Gi", "KB"), Some(NANO << 26));
        assert_eq!((nano("64", "GiB"), nano("64Xi", ""), nano("-1Gi", "")), (None, None, None));
    }
}
