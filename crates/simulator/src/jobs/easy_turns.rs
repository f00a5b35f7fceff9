//! EASY backfilling: the order in which the users whose jobs could start beside the reservation take their turns.

use evenhand_model::{Time, UserId};
use evenhand_policies::Policy;

use super::engine::Engine;
use super::pending_jobs::{Entry, NO_ROW};
use super::waiting_groups::Among;
use crate::SimulationError;

/// Which of a user's jobs the policy is shown until the turn of the first that could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The candidate alone: the key depends on the user, so the jobs before it change nothing.
    Candidate,
    /// Each job up to it, one after the other.
    EachJob,
    /// The job up to it that the policy places last. In its turn the others have had theirs.
    LastPlaced,
}

/// Where a policy that [groups jobs](evenhand_policies::JobPriorities::group) places a job: by priority, then by the log.
type PolicyPlace = (std::cmp::Reverse<u32>, u32);

/// A user's turns in a pass.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The user's next job that could start.
    candidate: Entry,
    /// The first row that may not have had its turn.
    from: u32,
    /// The row of the job that the policy is shown: the candidate's or an earlier one; [`NO_ROW`]: none is left.
    shown: u32,
    /// The last place at which another user took a turn since this user did.
    passed: Option<PolicyPlace>,
}

impl Engine<'_> {
    /// Determines which jobs a policy is shown; none waits yet.
    pub(super) fn choose_shown(&mut self, policy: &mut dyn Policy) {
        self.shown = Shown::Candidate;
        if !policy.key_depends_on_job() {
            return;
        }
        self.shown = Shown::EachJob;
        // Where users react, rows are not in the order of submission.
        if self.pending.submissions_found().is_some() {
            return;
        }
        let Some(priorities) = policy.job_priorities() else { return };
        let rows = 0..self.workload.len() as u32;
        let groups: Option<Vec<u64>> = rows.map(|row| priorities.group(&self.pending_job(row))).collect();
        if let Some(groups) = groups {
            self.pending.group_by(&groups);
            self.last_placed = vec![NO_ROW; self.workload.users().len()];
            self.shown = Shown::LastPlaced;
        }
    }

    /// Lets the candidates, which are their users' first, take their turns; whether any job started.
    pub(super) fn backfill_in_turns(
        &mut self,
        now: Time,
        head: u32,
        candidates: &[Entry],
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let mut touched: Vec<u32> = candidates.iter().map(|c| c.user).collect();
        touched.iter().for_each(|&user| self.notified_in_pass[user as usize] = self.pass);
        for user in self.pending.users_by_first(self.class) {
            if std::mem::replace(&mut self.notified_in_pass[user as usize], self.pass) != self.pass {
                policy.set_first_pending(UserId(user), None);
                touched.push(user);
            }
        }
        // A pass covers several classes.
        touched.iter().for_each(|&user| self.notified_in_pass[user as usize] = 0);
        if let Some(priorities) = policy.job_priorities().filter(|_| self.shown == Shown::LastPlaced) {
            priorities.update(now);
        }
        let turn = |&candidate: &Entry| Turn { candidate, from: 0, shown: NO_ROW, passed: None };
        let mut turns: Vec<Turn> = candidates.iter().map(turn).collect();
        for turn in &mut turns {
            let candidate = turn.candidate;
            let first = self.pending.first(candidate.class, candidate.user).unwrap_or(candidate.row);
            self.take_turn(turn, Some(candidate), first, head, policy);
        }
        let mut started = false;
        while let Some(user) = policy.next(now) {
            self.progress.check()?;
            let Some(turn) = turns.get_mut(self.place[user.index()] as usize) else { break };
            if !self.is_due(now, head, turn, reserved, policy) {
                continue;
            }
            self.decisions += 1;
            let Turn { candidate, shown, .. } = *turn;
            let starts = self.could_start(now, head, candidate, reserved)
                && self.start_beside_reservation(now, candidate, policy)?;
            let next = self.next_candidate(now, head, candidate, reserved);
            started |= starts;
            self.take_turn(turn, next, candidate.row.saturating_add(1), head, policy);
            if self.hides_held_back(policy) {
                self.pass(now, shown, user, &mut turns, policy);
                if starts {
                    self.pass_over_limits(now, head, candidate.row, &mut turns, reserved, policy);
                }
            }
        }
        for user in touched {
            self.notify_first_pending(user, policy);
        }
        Ok(started)
    }

    /// Whether it is the candidate's turn, as the policy has named its user; if not, the policy is shown another job.
    fn is_due(&mut self, now: Time, head: u32, turn: &mut Turn, reserved: &mut bool, policy: &mut dyn Policy) -> bool {
        match self.shown {
            Shown::Candidate => true,
            Shown::EachJob => {
                let is_due = turn.shown == turn.candidate.row;
                if !is_due {
                    self.decisions += 1;
                    self.take_turn(turn, Some(turn.candidate), turn.shown.saturating_add(1), head, policy);
                }
                is_due
            }
            Shown::LastPlaced => {
                // What cannot start now cannot start later in the pass, in whichever turn.
                let next = match self.could_start(now, head, turn.candidate, reserved) {
                    true => Some(turn.candidate),
                    false => self.next_candidate(now, head, turn.candidate, reserved),
                };
                let Some(candidate) = next else {
                    self.take_turn(turn, None, turn.from, head, policy);
                    return false;
                };
                turn.candidate = candidate;
                let last = self.last_placed(now, turn, head, policy);
                let is_due = last == turn.shown;
                if !is_due {
                    self.last_placed[candidate.user as usize] = last;
                    turn.shown = last;
                    policy.set_first_pending(UserId(candidate.user), Some(&self.pending_job(last)));
                }
                is_due
            }
        }
    }

    /// The jobs of a turn up to its candidate.
    fn of_turn(turn: &Turn, head: u32) -> Among {
        let Entry { class, user, row: to, .. } = turn.candidate;
        Among { class, user, from: turn.from, to, except: head }
    }

    /// Returns the job of a turn that the policy places last.
    fn last_placed(&self, now: Time, turn: &Turn, head: u32, policy: &mut dyn Policy) -> u32 {
        let place = |row| self.policy_place(now, row, policy);
        let last = self.pending.greatest_within(&self.limits, Self::of_turn(turn, head), place);
        last.unwrap_or(turn.candidate.row)
    }

    fn policy_place(&self, now: Time, row: u32, policy: &mut dyn Policy) -> PolicyPlace {
        let priority = policy.job_priorities().map_or(0, |p| p.priority(now, &self.pending_job(row)));
        (std::cmp::Reverse(priority), row)
    }

    /// Returns the job, from row `from` on, that the policy is shown for a user whose next job that could start is `candidate`.
    fn job_to_show(&self, from: u32, candidate: Entry, head: u32) -> u32 {
        match self.shown {
            Shown::Candidate => candidate.row,
            Shown::EachJob => {
                let Entry { class, user, row, .. } = candidate;
                let first = self.pending.first_within(&self.limits, class, user, from, head);
                first.map_or(row, |first| first.min(row))
            }
            // Most often it is the same as in the pass before. If it is not, it is found in its turn.
            Shown::LastPlaced => {
                let before = self.last_placed[candidate.user as usize];
                let is_of_turn =
                    (from..candidate.row).contains(&before) && before != head && self.pending.waits(before);
                let is_last = is_of_turn && self.pending.entry(before).class == candidate.class;
                if is_last && !self.limits.is_over(before) { before } else { candidate.row }
            }
        }
    }

    /// Notes at which place a user took a turn, for the others.
    fn pass(&self, now: Time, shown: u32, user: UserId, turns: &mut [Turn], policy: &mut dyn Policy) {
        if self.shown != Shown::LastPlaced {
            return;
        }
        let place = self.policy_place(now, shown, policy);
        let others = turns.iter_mut().filter(|turn| turn.candidate.user != user.0);
        others.for_each(|turn| turn.passed = turn.passed.max(Some(place)));
    }

    /// After the start of a job: jobs that are over a limit now wait no longer in this pass.
    fn pass_over_limits(
        &mut self,
        now: Time,
        head: u32,
        started: u32,
        turns: &mut [Turn],
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) {
        for turn in turns.iter_mut().filter(|turn| turn.shown != NO_ROW) {
            let Turn { candidate, shown, .. } = *turn;
            let next = match self.limits.is_over(candidate.row) {
                true => self.next_candidate(now, head, candidate, reserved),
                false => Some(candidate),
            };
            if next.is_none() || self.limits.is_over(shown) {
                let from = match self.shown {
                    Shown::LastPlaced => self.first_without_turn(now, head, started, turn, policy),
                    _ => shown.saturating_add(1),
                };
                self.take_turn(turn, next, from, head, policy);
            } else if let Some(next) = next {
                turn.candidate = next;
            }
        }
    }

    /// Returns the first row of a turn that has not had its turn: the first that the policy places after all turns of others,
    /// of those that no limit held back before the start of a job.
    fn first_without_turn(&mut self, now: Time, head: u32, started: u32, turn: &Turn, policy: &mut dyn Policy) -> u32 {
        let Some(passed) = turn.passed else { return turn.from };
        self.limits.remove(started);
        let place = |row| self.policy_place(now, row, policy);
        let first = self.pending.first_above(&self.limits, Self::of_turn(turn, head), &passed, place);
        self.limits.add(started);
        first.unwrap_or(turn.candidate.row)
    }

    /// Shows the policy a job of the user from row `from` on; `next` is the first of these that could start.
    fn take_turn(&self, turn: &mut Turn, next: Option<Entry>, from: u32, head: u32, policy: &mut dyn Policy) {
        let user = UserId(turn.candidate.user);
        let Some(candidate) = next else {
            turn.shown = NO_ROW;
            return policy.set_first_pending(user, None);
        };
        *turn = Turn { candidate, from, shown: self.job_to_show(from, candidate, head), passed: None };
        policy.set_first_pending(user, Some(&self.pending_job(turn.shown)));
    }
}
