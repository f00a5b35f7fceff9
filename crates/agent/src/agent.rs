//! The loop: look, measure, tell, weigh, write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::discovery::Guests;
use evenhand_enforcers::cgroups::{Change, Control, Enforcer, KernelError, Levels, Meter};
use evenhand_heaviness::HeavinessError;
use evenhand_protocol::exchange::{Record, Totals};
use evenhand_protocol::transport::Peers;
use thiserror::Error;

use crate::configuration::{ControlSection, Law};
use crate::journal::{Entry, Journal, JournalError};
use crate::levels::{Claim, of_points, of_weight, protections};
use crate::loads::{Load, Loads};
use crate::round::{Round, Terms};
use crate::slots::{Hands, Slot, Slots, said};
use crate::status::TotalStatus;

/// The number of the folder of a group that is there now, by its path.
pub type Identity = Box<dyn Fn(&str) -> Option<u64> + Send>;

/// What an agent is made of. Everything that touches the machine is handed in.
pub struct Parts {
    /// The node's name.
    pub node: String,
    /// What the metric is called.
    pub metric: String,
    /// Everything that does not change.
    pub terms: Terms,
    /// How weights follow.
    pub control: ControlSection,
    /// Who runs here.
    pub guests: Guests,
    /// Reads what they use.
    pub meter: Box<dyn Meter>,
    /// Gives them weights.
    pub enforcer: Box<dyn Enforcer>,
    /// What divides each resource, for people, by [`Control::ALL`].
    pub enforced_by: [Option<String>; 4],
    /// The others.
    pub peers: Box<dyn Peers>,
    /// Where what groups had is kept; `None`: nothing is written.
    pub journal: Option<Journal>,
    /// Which group is there now.
    pub identity: Identity,
    /// Of the settings that all nodes must agree about.
    pub digest: u64,
    /// Larger at each start of the agent.
    pub incarnation: u64,
}

/// Why the agent cannot go on. What it wrote is still to be put back.
#[derive(Debug, Error)]
pub enum AgentError {
    /// What groups had cannot be written down, so nothing may be written to them.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A number that is none.
    #[error("heaviness cannot be worked out: {0}")]
    Heaviness(#[from] HeavinessError),
}

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// What was written, or would be.
    pub changes: Vec<Change>,
    /// How many guests there are.
    pub guests: usize,
    /// How many users, on all nodes.
    pub users: usize,
    /// Nodes that count in full.
    pub nodes: usize,
    /// Things an operator should know that were not so at the last update.
    pub news: Vec<String>,
}

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// How many groups have what they had.
    pub groups: usize,
    /// What could not be put back, in sentences.
    pub failed: Vec<String>,
    /// The groups that this is about. The journal keeps them.
    pub left: BTreeSet<String>,
}

/// A node's daemon, but for the clock that calls it.
pub struct Agent {
    pub(crate) parts: Parts,
    pub(crate) round: Round,
    pub(crate) slots: Slots,
    pub(crate) totals: Totals,
    pub(crate) remarks: Vec<String>,
    pub(crate) counts: TotalStatus,
    pub(crate) updates: u64,
    loads: Loads,
    /// What an earlier life of the agent wrote down and did not put back.
    kept: BTreeMap<String, Entry>,
    /// For how many updates no other node was heard, although some should be.
    pub(crate) alone: u32,
}

/// After so many updates without any other node everything is put back. Before, words of others have aged, and at
/// each of these updates weights go half of the way to neutral, so that nothing jumps far.
const AGED: u32 = 5;

impl Agent {
    /// That has not done anything yet.
    ///
    /// # Errors
    /// If the supply or a quota is no amount, or the journal cannot be read.
    pub fn start(parts: Parts) -> Result<Agent, AgentError> {
        let entries = parts.journal.as_ref().map(Journal::entries).transpose()?.unwrap_or_default();
        Ok(Agent {
            round: Round::new(parts.terms.clone())?,
            loads: Loads::new(parts.control.smoothing),
            kept: entries.into_iter().map(|entry| (entry.group.path.clone(), entry)).collect(),
            slots: Slots::default(),
            totals: Totals::default(),
            remarks: Vec::new(),
            counts: TotalStatus::default(),
            updates: 0,
            alone: 0,
            parts,
        })
    }

    /// One update, at this time of a clock that never steps.
    ///
    /// # Errors
    /// If the agent cannot go on. Everything else that goes wrong is among the remarks.
    pub fn update(&mut self, at: Duration) -> Result<Update, AgentError> {
        let begun = (Instant::now(), thread_cpu());
        let mut remarks = Vec::new();
        self.updates += 1;
        let mut changed = self.take_in(&mut remarks)?;
        changed |= self.read(at, &mut remarks);
        if changed {
            self.round.set_guests(self.slots.iter().map(|slot| slot.facts()).collect())?;
        }
        let loads: Vec<Load> = self.slots.iter().map(|slot| slot.load).collect();
        let measured = self.round.measure(&loads)?;
        for (control, used) in &measured.beyond {
            let said = self.parts.terms.supply[*control as usize];
            remarks.push(format!(
                "guests use {used:.4e} of {control}, more than the {said:.4e} that this node has by its configuration"
            ));
        }
        let record = Record {
            node: self.parts.node.clone(),
            incarnation: self.parts.incarnation,
            sequence: self.updates,
            digest: self.parts.digest,
            supply: measured.supply,
            users: measured.users,
        };
        self.totals = self.parts.peers.exchange(record);
        let mut changes = Vec::new();
        if self.totals.isolated_since.is_some() {
            self.alone = self.alone.saturating_add(1);
            self.round.hear(&self.totals)?;
            self.round.age(0.5);
        } else {
            self.alone = 0;
            self.round.weigh(&self.totals)?;
        }
        if self.alone < AGED {
            self.write(&mut changes, &mut remarks);
        } else {
            // Once: from then on nothing is written that would have to go back.
            if self.alone == AGED {
                remarks.extend(self.put_back().failed);
            }
            remarks.push("no other node is heard: what was written is as it was, until one is".into());
        }
        self.counts.changes += changes.len() as u64;
        let news = remarks.iter().filter(|remark| !self.remarks.contains(remark)).cloned().collect();
        self.remarks = remarks;
        self.counts.update_s = begun.0.elapsed().as_secs_f64();
        self.counts.update_cpu_s = thread_cpu().saturating_sub(begun.1).as_secs_f64();
        let fresh = |node: &&evenhand_protocol::exchange::NodeStatus| {
            node.state == evenhand_protocol::exchange::NodeState::Fresh
        };
        Ok(Update {
            changes,
            guests: self.slots.iter().len(),
            users: self.totals.users.len(),
            nodes: self.totals.nodes.iter().filter(fresh).count(),
            news,
        })
    }

    /// Who is here. Answers whether that is another than at the last update.
    fn take_in(&mut self, remarks: &mut Vec<String>) -> Result<bool, AgentError> {
        let seen = self.parts.guests.look();
        remarks.extend(seen.remarks.iter().map(ToString::to_string));
        let mut hands = Hands {
            meter: &mut *self.parts.meter,
            enforcer: &mut *self.parts.enforcer,
            loads: &mut self.loads,
            journal: self.parts.journal.as_ref(),
        };
        // At most updates nothing is another, and all that are here were taken in.
        let same = seen.added.is_empty() && seen.changed.is_empty() && seen.removed.is_empty();
        let changed = !(same && self.slots.iter().len() == seen.guests.len())
            && self.slots.become_those(&seen.guests, &mut self.kept, &mut hands, remarks)?;
        if !changed {
            self.slots.weigh_late(&mut hands, remarks)?;
        }
        // What an earlier life wrote to groups that are nobody's guests now.
        for (path, entry) in std::mem::take(&mut self.kept) {
            if (self.parts.identity)(&path) == Some(entry.identity)
                && let Err(error) = self.parts.enforcer.restore(&entry.group, &entry.before)
            {
                // Tried again at the next update.
                said(remarks, &error);
                self.kept.insert(path, entry);
                continue;
            }
            if let Some(journal) = &self.parts.journal {
                journal.forget([path.as_str()])?;
            }
        }
        Ok(changed)
    }

    /// What they use. Answers whether somebody is gone meanwhile.
    fn read(&mut self, at: Duration, remarks: &mut Vec<String>) -> bool {
        let mut gone = Vec::new();
        for slot in self.slots.iter_mut() {
            match self.parts.meter.read(slot.id) {
                Ok(usage) => {
                    let reading = self.loads.of(slot.id, at, usage);
                    self.counts.backwards += u64::from(reading.backwards.is_some());
                    // What nobody knows the size of cannot be shared out, here or by other nodes.
                    let known = self.parts.terms.supply.iter().map(|supply| f64::from(u8::from(*supply > 0.0)));
                    slot.load = reading.load;
                    slot.load.iter_mut().zip(known).for_each(|(load, known)| *load *= known);
                }
                Err(KernelError::Gone(_)) => gone.push(slot.guest.group.path.clone()),
                Err(error) => {
                    self.counts.errors += 1;
                    said(remarks, &error);
                }
            }
        }
        let mut hands = Hands {
            meter: &mut *self.parts.meter,
            enforcer: &mut *self.parts.enforcer,
            loads: &mut self.loads,
            journal: None,
        };
        // Its entry in the journal goes with the next look, which does not find it.
        gone.iter().for_each(|path| drop(self.slots.remove(path, &mut hands)));
        !gone.is_empty()
    }

    /// Gives everybody what followed.
    fn write(&mut self, changes: &mut Vec<Change>, remarks: &mut Vec<String>) {
        let levels = self.levels();
        for (slot, levels) in self.slots.iter().zip(&levels) {
            if slot.before.is_none() {
                continue;
            }
            match self.parts.enforcer.apply(slot.id, levels, changes) {
                Ok(()) | Err(KernelError::Gone(_)) => {}
                Err(error) => {
                    self.counts.errors += 1;
                    said(remarks, &error);
                }
            }
        }
        if let Err(error) = self.parts.enforcer.flush() {
            self.counts.errors += 1;
            said(remarks, &error);
        }
        changes.iter().for_each(|change| self.slots.note(change));
    }

    fn levels(&self) -> Vec<Levels> {
        let ControlSection { law, controls, protected, .. } = &self.parts.control;
        if *law == Law::Linear {
            let of = |(guest, slot): (usize, &Slot)| {
                of_points(|range| self.round.mapped(guest, range), slot.memory(), controls)
            };
            return self.slots.iter().enumerate().map(of).collect();
        }
        let weights: Vec<f64> = self.round.outcomes().map(|outcome| outcome.weight).collect();
        let mut levels: Vec<Levels> = weights.iter().map(|weight| of_weight(*weight, controls)).collect();
        if controls.contains(&Control::Memory) && *protected > 0.0 {
            let claim = |(slot, weight): (&Slot, &f64)| Claim { weight: *weight, size: slot.memory() };
            let claims: Vec<Claim> = self.slots.iter().zip(&weights).map(claim).collect();
            let total = protected * self.parts.terms.supply[Control::Memory as usize];
            levels.iter_mut().zip(protections(total, &claims)).for_each(|(l, bytes)| l.memory = Some(bytes));
        }
        levels
    }

    /// Puts back what was written, by this life of the agent and those before. The agent may go on afterwards.
    pub fn release(&mut self) -> Released {
        let mut released = self.put_back();
        let paths: Vec<&str> = self.slots.iter().map(|slot| slot.guest.group.path.as_str()).collect();
        let done = paths.into_iter().chain(self.kept.keys().map(String::as_str));
        let done: Vec<&str> = done.filter(|path| !released.left.contains(*path)).collect();
        if let Some(Err(error)) = self.parts.journal.as_ref().map(|journal| journal.forget(done)) {
            released.failed.push(error.to_string());
        }
        released
    }

    /// The same, but the journal still knows what was there.
    fn put_back(&mut self) -> Released {
        let mut released = Released::default();
        let left = self.kept.values().map(|entry| (&entry.group, entry.identity, &entry.before, None));
        let slots = self
            .slots
            .iter()
            .filter_map(|slot| Some((&slot.guest.group, slot.guest.identity, slot.before.as_ref()?, Some(slot.id))));
        for (group, identity, before, id) in left.chain(slots) {
            // Another group of the same name has never been written to.
            let there = (self.parts.identity)(&group.path) == Some(identity);
            match if there { self.parts.enforcer.restore(group, before) } else { Ok(()) } {
                Ok(()) => released.groups += usize::from(there),
                Err(KernelError::Gone(_)) => {}
                Err(error) => {
                    released.left.insert(group.path.clone());
                    released.failed.push(error.to_string());
                }
            }
            // It has to learn anew what is there now.
            if let Some(id) = id {
                self.parts.enforcer.dismiss(id);
                let _ = self.parts.enforcer.admit(id, group);
            }
        }
        if let Err(error) = self.parts.enforcer.flush() {
            released.failed.push(error.to_string());
        }
        self.slots.iter_mut().for_each(|slot| slot.written = [None; 4]);
        released
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// The digest of settings on which nodes must agree: FNV-1a over the texts, each with its length.
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for text in texts {
        (text.len() as u64).to_le_bytes().into_iter().chain(text.bytes()).for_each(&mut eat);
    }
    hash
}
