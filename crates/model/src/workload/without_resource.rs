//! A workload without one of its resources.

use super::requested::{RequestedAmounts, billionths, table_of};
use super::{Detail, NO_ID, Nano, Workload, WorkloadError};
use crate::demand::DemandBuilder;
use crate::{DemandId, DemandTable, Names};

impl Workload {
    /// Returns the workload without resource `left_out`: what a builder would make of the same rows if it had never had it.
    /// Chunks that the source states lose their amounts of it too.
    ///
    /// ```
    /// # use evenhand_model::*;
    /// let mut jobs = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "MiB")]);
    /// jobs.push(&Task { user: "ann", amounts: &[4_000_000_000, 512_000_000_000], ..Task::default() });
    /// let jobs = jobs.finish().unwrap().without_resource(1).unwrap();
    /// assert_eq!((jobs.resources().len(), jobs.amounts(0)), (1, &[Amount(4)][..]));
    /// ```
    ///
    /// # Errors
    /// Returns an error if amounts of another resource have more than 18 digits; a workload from a builder has none.
    ///
    /// # Panics
    /// Panics if there is no resource `left_out`, or no other one.
    pub fn without_resource(mut self, left_out: usize) -> Result<Workload, WorkloadError> {
        assert!(self.resources.len() > 1, "another resource is left");
        let decimals: Vec<u8> = self.resources.iter().map(|resource| resource.decimals).collect();
        let name = self.resources.remove(left_out).name;
        let held = vectors_without(&self.demands, &decimals, left_out);
        let asked = vectors_without(&self.requested.demands, &self.requested.decimals, left_out);
        let mut demands = DemandBuilder::new(self.resources.len());
        let mut requested = demands.clone();
        let c = &mut self.columns;
        for (row, demand) in c.demand.iter_mut().enumerate() {
            let vector = &held[demand.index()];
            *demand = demands.intern(vector);
            let id = c.requested_demand.as_mut().map(|column| &mut column[row]);
            if let Some(id) = id.filter(|id| **id != DemandId::NONE) {
                let wanted = &asked[id.index()];
                *id = if wanted == vector { DemandId::NONE } else { requested.intern(wanted) };
            }
        }
        c.requested_demand.take_if(|column| column.iter().all(|id| *id == DemandId::NONE));
        self.requested = match requested.len() {
            0 => RequestedAmounts::default(),
            _ => {
                let (demands, decimals) = table_of(&requested, &self.resources)?;
                RequestedAmounts { demands, decimals }
            }
        };
        self.set_demands(&demands)?;
        self.remove_from_chunks(&name);
        Ok(self)
    }

    /// Removes a resource from the chunks that the source states.
    fn remove_from_chunks(&mut self, name: &str) {
        let mut chunks = Names::default();
        let without: Vec<String> =
            self.details[Detail::Chunks].list().iter().map(|c| chunks_without(c, name)).collect();
        for id in self.columns.details[Detail::Chunks].iter_mut().flatten().filter(|id| **id != NO_ID) {
            *id = chunks.intern(&without[*id as usize]);
        }
        self.details[Detail::Chunks] = chunks;
    }
}

/// The vectors of a table in billionths, without entry `left_out`.
fn vectors_without(table: &DemandTable, decimals: &[u8], left_out: usize) -> Vec<Vec<Nano>> {
    let without = |(_, row)| {
        let mut vector = billionths(row, decimals);
        vector.remove(left_out);
        vector
    };
    table.rows().map(without).collect()
}

/// Chunks, in the notation of [`Chunk::parse_all`](crate::Chunk::parse_all), without a resource.
fn chunks_without(text: &str, name: &str) -> String {
    let is_kept = |field: &&str| field.split('=').next().is_none_or(|key| key.trim() != name);
    let chunk = |chunk: &str| chunk.split([':', ',']).filter(is_kept).collect::<Vec<_>>().join(":");
    text.split('+').map(chunk).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Details, Resource, Span, Task, Time, WorkloadBuilder};

    /// A row: what it holds of two resources, in halves, what it requested, and its chunks.
    type Row = ([u64; 2], Option<[u64; 2]>, Option<[u64; 2]>);

    /// The workload of some rows with the resources of `kept`.
    fn built(rows: &[Row], kept: &[usize]) -> Workload {
        let names = ["cpu", "mem"];
        let mut builder = WorkloadBuilder::new(kept.iter().map(|r| Resource::new(names[*r], "")));
        builder.add_header("UnixStartTime", "100");
        for (at, (held, requested, chunk)) in rows.iter().enumerate() {
            let vector = |all: &[u64; 2]| kept.iter().map(|r| Nano::from(all[*r]) * 500_000_000).collect::<Vec<_>>();
            let (amounts, requested) = (vector(held), requested.as_ref().map(vector));
            let chunk = chunk.as_ref().map(|chunk| {
                let fields: Vec<String> = kept.iter().map(|r| format!("{}={}", names[*r], chunk[*r])).collect();
                format!("2:{0}+{0}", fields.join(":"))
            });
            let mut details = Details::default();
            details[Detail::Chunks] = chunk.as_deref();
            details[Detail::Qos] = Some("long").filter(|_| at % 2 == 0);
            builder.push(&Task {
                submit: Time::from_secs(at as u64 / 2),
                start: Some(Time::from_secs(100)),
                duration: Span::from_secs(60),
                user: ["ann", "bob"][at % 2],
                requested: Some(Span::from_secs(90)),
                eligible: Some(Time::from_secs(50)),
                account: Some("art"),
                queue: Some("main"),
                nodes: Some(3),
                amounts: &amounts,
                requested_amounts: requested.as_deref(),
                details,
                ..Task::default()
            });
        }
        builder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn it_is_what_a_builder_makes_without_the_resource(
            rows in prop::collection::vec(
                (
                    [0_u64..4, 0..4],
                    prop::option::of([0_u64..4, 0..4]),
                    prop::option::of([1_u64..3, 1..3]),
                ),
                1..20,
            ),
            left_out in 0_usize..2,
        ) {
            let without = built(&rows, &[0, 1]).without_resource(left_out).unwrap();
            prop_assert_eq!(without, built(&rows, &[1 - left_out]));
        }
    }

    #[test]
    fn chunks_in_both_notations_lose_the_resource() {
        assert_eq!(chunks_without("2:cpu=1:mem=4+cpu=2,mem=8", "mem"), "2:cpu=1+cpu=2");
    }
}
