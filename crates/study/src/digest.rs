//! Digests: whether a run that a folder holds is the one that is asked for.

use evenhand_model::Workload;
use twox_hash::XxHash3_128;

/// Feeds numbers and texts, each with its length, into one digest.
pub(crate) struct Digest(XxHash3_128);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(XxHash3_128::new())
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Digest {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
        self
    }

    pub(crate) fn number(&mut self, n: u64) -> &mut Digest {
        self.0.write(&n.to_le_bytes());
        self
    }

    fn column(&mut self, values: impl ExactSizeIterator<Item = u64>) -> &mut Digest {
        self.number(values.len() as u64);
        // In blocks: a hash call a value would cost more than the hashing.
        let mut block = Vec::with_capacity(8 * 1024);
        for value in values {
            block.extend_from_slice(&value.to_le_bytes());
            if block.len() == block.capacity() {
                self.0.write(&block);
                block.clear();
            }
        }
        self.0.write(&block);
        self
    }

    pub(crate) fn hex(&self) -> String {
        format!("{:032x}", self.0.finish_128())
    }
}

/// Digest of everything in a workload that a simulation or its record depends on.
pub fn workload_digest(workload: &Workload) -> String {
    let mut d = Digest::new();
    for resource in workload.resources() {
        d.text(&resource.name).number(u64::from(resource.decimals));
    }
    for user in workload.users() {
        d.text(user);
    }
    let c = workload.columns();
    d.column(c.submit.iter().map(|t| t.nanos()))
        .column(c.duration.iter().map(|t| t.nanos()))
        .column(c.user.iter().map(|u| u64::from(u.0)))
        .column(c.demand.iter().map(|id| u64::from(id.0)));
    for start in c.start.iter() {
        d.column(start.iter().copied());
    }
    for (_, row) in workload.demands().rows() {
        d.column(row.iter().map(|a| a.0));
    }
    d.hex()
}
