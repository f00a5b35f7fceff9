//! Endowments: a supply divided in proportion to sizes or quotas.

use crate::{HeavinessError, Number};

/// How the endowment of a workload follows from its virtual size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endowment {
    /// Divides the whole supply of the node in proportion to sizes (Poullie et al. 2016, Eq. 1). On a node that is not
    /// overcommitted an endowment exceeds the size.
    #[default]
    Proportional,
    /// The same, but at most the size, as in the authors' implementations. On a node that is not overcommitted the rest
    /// belongs to no workload.
    CappedProportional,
}

/// Divides `supply` in proportion to `sizes` into `parts`, starting at index `first` with a stride of `width`.
///
/// An unknown size counts as the mean of the known ones. So a resource without any known size is divided equally (Poullie
/// et al. 2016, section IV.C), and a workload without a memory limit beside others that have one counts neither as empty
/// nor as the whole node. If all sizes are 0, all parts are 0. O(sizes).
pub(crate) fn divide_proportionally<'a, N: Number>(
    supply: &N,
    sizes: impl Iterator<Item = Option<&'a N>> + Clone,
    rule: Endowment,
    parts: &mut [N],
    (first, width): (usize, usize),
) {
    let (mut sum, mut known, mut all) = (N::zero(), 0, 0);
    for size in sizes.clone() {
        all += 1;
        if let Some(size) = size {
            sum += size;
            known += 1;
        }
    }
    let mean = if known == 0 { N::one() } else { sum.clone() / &N::from_count(known) };
    sum += &(mean.clone() * &N::from_count(all - known));
    // Without any known size there is no cap.
    let cap = rule == Endowment::CappedProportional && known > 0 && sum < *supply;
    let divided = if cap { &sum } else { supply };
    for (size, part) in sizes.zip(parts.iter_mut().skip(first).step_by(width)) {
        let size = size.unwrap_or(&mean);
        // The quotient first: it is at most 1, whatever the unit.
        *part = if size.is_zero() { N::zero() } else { size.clone() / &sum * divided };
    }
}

/// Returns an error unless `n` is finite and not negative.
pub(crate) fn check_quantity<N: Number>(
    n: &N,
    quantity: &'static str,
    index: usize,
    resource: usize,
) -> Result<(), HeavinessError> {
    // NaN is not at least 0; infinity minus itself is NaN.
    if *n >= N::zero() && (n.clone() - n).is_zero() {
        Ok(())
    } else {
        Err(HeavinessError::InvalidQuantity { quantity, index, resource })
    }
}

/// Returns an error unless there is one number for each resource.
pub(crate) fn check_length(quantity: &'static str, found: usize, expected: usize) -> Result<(), HeavinessError> {
    if found == expected { Ok(()) } else { Err(HeavinessError::Length { quantity, found, expected }) }
}
