//! Demand vectors, each stored once.

use std::collections::HashMap;

use crate::{Amount, Nano};

/// The row of a [`DemandTable`] that a task holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DemandId(pub u32);

impl DemandId {
    /// The value of an optional column for a task without a demand of its own.
    pub const NONE: DemandId = DemandId(u32::MAX);

    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The distinct demand vectors of a workload.
///
/// A month of Google's trace has about 2,200 of them for 32 million tasks, so a task stores a [`DemandId`] of 4 bytes
/// instead of its amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemandTable {
    width: usize,
    amounts: Vec<Amount>,
}

impl DemandTable {
    /// Creates a table from rows of `width` amounts, one after another.
    pub(crate) fn new(width: usize, amounts: Vec<Amount>) -> DemandTable {
        debug_assert!(width > 0 && amounts.len().is_multiple_of(width));
        DemandTable { width, amounts }
    }

    /// Returns the amounts of one row, in the order of the resources.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn row(&self, id: DemandId) -> &[Amount] {
        &self.amounts[id.index() * self.width..][..self.width]
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.amounts.len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// Returns every row with its id.
    pub fn rows(&self) -> impl Iterator<Item = (DemandId, &[Amount])> {
        self.amounts.chunks_exact(self.width.max(1)).enumerate().map(|(i, row)| (DemandId(i as u32), row))
    }
}

/// Collects demand vectors in billionths; the decimals of each resource are chosen at the end.
#[derive(Clone, Debug)]
pub(crate) struct DemandBuilder {
    width: usize,
    rows: Vec<Nano>,
    ids: HashMap<Box<[Nano]>, DemandId>,
    last: Option<DemandId>,
}

impl DemandBuilder {
    pub(crate) fn new(width: usize) -> DemandBuilder {
        DemandBuilder { width, rows: Vec::new(), ids: HashMap::new(), last: None }
    }

    pub(crate) fn row(&self, id: DemandId) -> &[Nano] {
        &self.rows[id.index() * self.width..][..self.width]
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn intern(&mut self, row: &[Nano]) -> DemandId {
        debug_assert_eq!(row.len(), self.width);
        // Consecutive tasks of one job have the same vector: skip the hash.
        if let Some(last) = self.last
            && self.row(last) == row
        {
            return last;
        }
        let next = DemandId(u32::try_from(self.ids.len()).expect("fewer than 2^32 demand vectors"));
        let id = match self.ids.get(row) {
            Some(&id) => id,
            None => {
                self.ids.insert(row.into(), next);
                self.rows.extend_from_slice(row);
                next
            }
        };
        self.last = Some(id);
        id
    }

    /// Removes column `r` if it is zero in every row, and returns whether it was. Ids do not change.
    pub(crate) fn remove_if_unused(&mut self, r: usize) -> bool {
        let width = self.width;
        if self.rows.iter().skip(r).step_by(width).any(|v| *v != 0) {
            return false;
        }
        let mut i = 0;
        self.rows.retain(|_| {
            i += 1;
            (i - 1) % width != r
        });
        self.width -= 1;
        let rows = self.rows.chunks_exact(self.width).enumerate();
        self.ids = rows.map(|(i, row)| (row.into(), DemandId(i as u32))).collect();
        true
    }

    /// Returns all rows, one after another.
    pub(crate) fn into_rows(self) -> Vec<Nano> {
        self.rows
    }

    /// Returns the table of the rows in `order`, and the fewest decimals that hold each column exactly.
    ///
    /// # Errors
    /// Returns the column whose amounts do not fit.
    pub(crate) fn finish(&self, order: &[u32]) -> Result<(DemandTable, Vec<u8>), usize> {
        let mut steps: Vec<Nano> = Vec::with_capacity(self.width);
        let mut decimals = Vec::with_capacity(self.width);
        for r in 0..self.width {
            let column = || order.iter().map(|&id| self.row(DemandId(id))[r]);
            let (mut d, mut step) = (9, 1);
            while d > 0 && column().all(|v| v % (step * 10) == 0) {
                d -= 1;
                step *= 10;
            }
            if column().max().unwrap_or(0) / step > Nano::from(Amount::MAX.0) {
                return Err(r);
            }
            decimals.push(d);
            steps.push(step);
        }
        let amounts = order
            .iter()
            .flat_map(|&id| self.row(DemandId(id)).iter().zip(&steps))
            .map(|(v, step)| Amount((v / step) as u64))
            .collect();
        Ok((DemandTable::new(self.width, amounts), decimals))
    }
}
