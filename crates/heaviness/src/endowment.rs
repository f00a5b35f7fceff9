//! What is budgeted for whom: a supply divided in proportion to sizes or quotas.

use crate::{HeavinessError, Number};

/// How a guest's endowment comes from its virtual size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endowment {
    /// Paper 003, Eq. 1: the whole supply of the node in proportion to sizes. On a node that is not
    /// overcommitted a guest is endowed with more than its size.
    #[default]
    Proportional,
    /// The authors' implementations: the same, but never more than the size. On a node that is not
    /// overcommitted nobody is endowed with the rest.
    CappedProportional,
}

/// Divides `supply` in proportion to `sizes` into `parts`, with a stride of `width`.
///
/// A size that is not known is the mean of those that are. So a resource for which nobody has a size is
/// divided equally (paper 003, section IV.C), and a guest without a memory limit among others that have
/// one is neither free nor everything. If all are 0, all parts are 0.
pub(crate) fn divide<'a, N: Number>(
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
    // Without any size there is nothing that a cap could be.
    let cap = rule == Endowment::CappedProportional && known > 0 && sum < *supply;
    let divided = if cap { &sum } else { supply };
    for (size, part) in sizes.zip(parts.iter_mut().skip(first).step_by(width)) {
        let size = size.unwrap_or(&mean);
        // The quotient first: it is at most 1, whatever the unit.
        *part = if size.is_zero() { N::zero() } else { size.clone() / &sum * divided };
    }
}

/// Whether it is finite and not negative.
pub(crate) fn quantity<N: Number>(
    n: &N,
    what: &'static str,
    index: usize,
    resource: usize,
) -> Result<(), HeavinessError> {
    // A NaN is not at least zero; infinity has no difference from itself.
    if *n >= N::zero() && (n.clone() - n).is_zero() {
        Ok(())
    } else {
        Err(HeavinessError::NotAQuantity { what, index, resource })
    }
}

/// Whether there is one number a resource.
pub(crate) fn width(what: &'static str, found: usize, expected: usize) -> Result<(), HeavinessError> {
    if found == expected { Ok(()) } else { Err(HeavinessError::Width { what, found, expected }) }
}
