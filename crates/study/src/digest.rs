//! Computes digests of inputs, which show whether a stored run has the same inputs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use evenhand_model::{Detail, Workload};
use twox_hash::XxHash3_128;

/// A digest of numbers, texts and files; texts and files are fed with their lengths.
#[derive(Default)]
pub struct Digest(XxHash3_128);

impl Digest {
    /// Creates a digest of no input.
    pub fn new() -> Digest {
        Digest::default()
    }

    /// Feeds a text and its length.
    pub fn text(&mut self, text: &str) -> &mut Digest {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
        self
    }

    /// Feeds bytes, without their number.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Digest {
        self.0.write(bytes);
        self
    }

    /// Feeds a number.
    pub fn number(&mut self, n: u64) -> &mut Digest {
        self.0.write(&n.to_le_bytes());
        self
    }

    /// Feeds the content of a file and its length.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn file(&mut self, path: &Path) -> io::Result<&mut Digest> {
        let mut file = File::open(path)?;
        let mut block = vec![0; 1 << 20];
        let mut length = 0;
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(self.number(length)),
                Ok(n) => {
                    self.0.write(&block[..n]);
                    length += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn column(&mut self, values: impl ExactSizeIterator<Item = u64>) -> &mut Digest {
        self.number(values.len() as u64);
        // In blocks, because a call per value would cost more than the hashing.
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

    /// Returns the digest as 32 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:032x}", self.0.finish_128())
    }
}

/// Returns the digest of everything in a workload that a simulation or its record depends on.
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
    // Backfilling, rules of queues and policies that order jobs use these columns.
    for requested in c.requested.iter() {
        d.text("requested").column(requested.iter().copied());
    }
    for nodes in c.nodes.iter() {
        d.text("nodes").column(nodes.iter().map(|n| u64::from(*n)));
    }
    for detail in
        [Detail::Requires, Detail::Chunks, Detail::Machines, Detail::Licences, Detail::Array, Detail::Qos, Detail::Nice]
    {
        for ids in c.details[detail].iter() {
            d.text(detail.name()).column(ids.iter().map(|id| u64::from(*id)));
            workload.details(detail).iter().for_each(|text| _ = d.text(text));
        }
    }
    // Slurm's scheduler gives jobs of whole nodes any that hold what they requested.
    if workload.rows_with_requested_amounts() > 0 {
        d.text("requested amounts").column(workload.requested_decimals().iter().map(|n| u64::from(*n)));
        for row in 0..workload.len() {
            d.column(workload.requested_amounts(row).unwrap_or_default().iter().map(|amount| amount.0));
        }
    }
    for queue in c.queue.iter() {
        d.text("queue").column(queue.iter().map(|q| u64::from(*q)));
        for name in workload.queues() {
            d.text(name);
        }
    }
    for (_, row) in workload.demands().rows() {
        d.column(row.iter().map(|a| a.0));
    }
    d.hex()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Span, Task, WorkloadBuilder};

    #[test]
    fn requested_wall_times_and_queues_change_the_digest() {
        let digest = |requested: Option<u64>, queue: Option<&str>| {
            let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
            let requested = requested.map(Span::from_secs);
            b.push(&Task { user: "a", requested, queue, amounts: &[1], ..Task::default() });
            workload_digest(&b.finish().unwrap())
        };
        let all = [
            digest(None, None),
            digest(Some(1), None),
            digest(Some(2), None),
            digest(None, Some("long")),
            digest(None, Some("short")),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
