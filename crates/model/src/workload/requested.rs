//! The amounts that tasks requested, where these differ from what they hold.

use super::details::Detail;
use super::{NO_ID, Nano, Workload, WorkloadError};
use crate::demand::DemandBuilder;
use crate::{Amount, DemandId, DemandTable, Resource};

/// The decimals of an amount in billionths.
const NANO_DECIMALS: u8 = 9;

/// The distinct vectors of requested amounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestedAmounts {
    pub(super) demands: DemandTable,
    /// The decimals of each resource in `demands`, which may differ from those of what tasks hold.
    pub(super) decimals: Vec<u8>,
}

impl Workload {
    /// Returns the amounts that row `row` requested, one per resource, if they differ from those that it holds. They
    /// have [`requested_decimals`](Workload::requested_decimals).
    pub fn requested_amounts(&self, row: usize) -> Option<&[Amount]> {
        let id = self.columns.requested_demand.as_ref()?[row];
        (id != DemandId::NONE).then(|| self.requested.demands.row(id))
    }

    /// Returns the decimals of the requested amounts of each resource; none if no row has any.
    pub fn requested_decimals(&self) -> &[u8] {
        &self.requested.decimals
    }

    /// Returns the number of rows that requested other amounts than they hold.
    pub fn rows_with_requested_amounts(&self) -> usize {
        self.columns.requested_demand.iter().flatten().filter(|id| **id != DemandId::NONE).count()
    }

    /// Returns the workload in which every row holds what it requested. Rows for which that is not known apart keep what
    /// they hold. Chunks of rows that change are dropped, as they make up what the rows held, and so are resources that no row
    /// requested.
    ///
    /// ```
    /// # use evenhand_model::*;
    /// let mut jobs = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// let (four, six) = ([4_000_000_000], [6_000_000_000]);
    /// jobs.push(&Task { user: "ann", amounts: &four, requested_amounts: Some(&six), ..Task::default() });
    /// jobs.push(&Task { user: "ann", amounts: &four, ..Task::default() });
    /// let jobs = jobs.finish().unwrap();
    /// assert_eq!(jobs.amounts(0), [Amount(4)]);
    /// let jobs = jobs.with_requested_amounts().unwrap();
    /// assert_eq!((jobs.amounts(0), jobs.amounts(1)), (&[Amount(6)][..], &[Amount(4)][..]));
    /// ```
    ///
    /// # Errors
    /// Returns an error if amounts of a resource have more than 18 digits with the decimals that all together need.
    pub fn with_requested_amounts(mut self) -> Result<Workload, WorkloadError> {
        let Some(requested) = self.columns.requested_demand.take() else { return Ok(self) };
        let RequestedAmounts { demands, decimals } = std::mem::take(&mut self.requested);
        let held_decimals: Vec<u8> = self.resources.iter().map(|r| r.decimals).collect();
        let mut all = DemandBuilder::new(self.resources.len());
        // The new id of each vector, of those held and of those requested.
        let mut of_held = vec![DemandId::NONE; self.demands.len()];
        let mut of_requested = vec![DemandId::NONE; demands.len()];
        for (held, requested) in self.columns.demand.iter_mut().zip(&requested) {
            let (new, row, decimals) = match *requested {
                DemandId::NONE => (&mut of_held[held.index()], self.demands.row(*held), &held_decimals),
                id => (&mut of_requested[id.index()], demands.row(id), &decimals),
            };
            if *new == DemandId::NONE {
                *new = all.intern(&billionths(row, decimals));
            }
            *held = *new;
        }
        for r in (0..self.resources.len()).rev() {
            if self.resources.len() > 1 && all.remove_if_unused(r) {
                self.resources.remove(r);
            }
        }
        self.set_demands(&all)?;
        let chunks = &mut self.columns.details[Detail::Chunks];
        for (chunks, _) in chunks.iter_mut().flatten().zip(&requested).filter(|(_, id)| **id != DemandId::NONE) {
            *chunks = NO_ID;
        }
        chunks.take_if(|ids| ids.iter().all(|id| *id == NO_ID));
        Ok(self)
    }

    /// Makes the vectors of a builder, with their ids, those that rows hold.
    pub(super) fn set_demands(&mut self, vectors: &DemandBuilder) -> Result<(), WorkloadError> {
        let (demands, decimals) = table_of(vectors, &self.resources)?;
        self.demands = demands;
        self.resources.iter_mut().zip(decimals).for_each(|(resource, decimals)| resource.decimals = decimals);
        Ok(())
    }
}

/// Returns the table of all vectors of a builder, with their ids, and the decimals of each resource.
pub(super) fn table_of(
    vectors: &DemandBuilder,
    resources: &[Resource],
) -> Result<(DemandTable, Vec<u8>), WorkloadError> {
    let order: Vec<u32> = (0..vectors.len() as u32).collect();
    vectors.finish(&order).map_err(|r| WorkloadError::TooLarge { resource: resources[r].name.clone() })
}

/// Returns amounts in billionths.
pub(super) fn billionths(amounts: &[Amount], decimals: &[u8]) -> Vec<Nano> {
    let steps = decimals.iter().map(|d| 10u128.pow(u32::from(NANO_DECIMALS - d)));
    amounts.iter().zip(steps).map(|(amount, step)| Nano::from(amount.0) * step).collect()
}
