//! Where and when a job of one chunk can start first.

use super::availability_profile::Profile;
use super::kind::Kind;
use super::placement::{Placement, Scores};
use super::placements::Placements;
use super::site::Site;

/// The machine on which a job of one chunk can start first; of several the rule's choice.
pub(super) struct BestMachine<'a> {
    pub(super) site: &'a Site,
    pub(super) kind: &'a Kind,
    pub(super) estimate: u64,
    pub(super) now: u64,
    pub(super) scores: &'a mut Scores,
    pub(super) free: Vec<u64>,
    /// The licences that are free, if the job needs some.
    pub(super) licences: Option<&'a Profile>,
    /// Start, score, machine, and the time that the job is expected to take there.
    pub(super) found: Option<(u64, u64, u32, u64)>,
}

impl BestMachine<'_> {
    /// Considers a machine of a group for a start until `latest`; of machines of one profile the first is the best.
    pub(super) fn consider(&mut self, group: u16, profile: &Profile, machine: u32, latest: u64) {
        let is_first_fit = self.scores.rule == Placement::FirstFit;
        let latest = match self.found {
            Some((start, _, other, _)) if is_first_fit && start == self.now && other < machine => return,
            Some((start, ..)) => start.min(latest),
            None => latest,
        };
        let takes = self.site.groups[usize::from(group)].scale(self.estimate);
        let Some(start) = self.earliest(profile, takes, latest) else { return };
        let score = match is_first_fit {
            true => 0,
            false => {
                profile.min_free(start, takes, &mut self.free);
                self.scores.score(&self.free)
            }
        };
        let found = (start, score, machine, takes);
        self.found = Some(self.found.map_or(found, |best| best.min(found)));
    }

    /// The earliest start until `latest` at which the machine and the licences are free for so long.
    fn earliest(&self, profile: &Profile, takes: u64, latest: u64) -> Option<u64> {
        let mut start = profile.earliest(self.now, takes, &self.kind.chunk, latest)?;
        let Some(licences) = self.licences else { return Some(start) };
        loop {
            let with_licences = licences.earliest(start, takes, &self.kind.licences, latest)?;
            if with_licences == start {
                return Some(start);
            }
            start = profile.earliest(with_licences, takes, &self.kind.chunk, latest)?;
        }
    }

    /// The start, the time that the job is expected to take, and the machine.
    pub(super) fn placed(self) -> Option<(u64, u64, Placements)> {
        let (start, _, machine, takes) = self.found?;
        Some((start, takes, Placements::one(machine)))
    }
}
