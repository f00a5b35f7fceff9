//! Digests: they show whether a stored run has the same inputs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use evenhand_model::Workload;
use twox_hash::XxHash3_128;

/// Feeds numbers, texts and files, each with its length, into one digest.
#[derive(Default)]
pub struct Digest(XxHash3_128);

impl Digest {
    /// Of nothing yet.
    pub fn new() -> Digest {
        Digest::default()
    }

    /// Feeds a text and its length.
    pub fn text(&mut self, text: &str) -> &mut Digest {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
        self
    }

    /// Feeds a number.
    pub fn number(&mut self, n: u64) -> &mut Digest {
        self.0.write(&n.to_le_bytes());
        self
    }

    /// Feeds what a file holds.
    ///
    /// # Errors
    /// If it cannot be read.
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

    /// 32 hexadecimal digits.
    pub fn hex(&self) -> String {
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
    // Backfilling, queues' rules and policies that go by jobs look at these.
    for requested in c.requested.iter() {
        d.text("requested").column(requested.iter().copied());
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
    fn what_a_job_asks_for_is_part_of_a_workload() {
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
