//! Who holds and who wants what at one instant, kept up from event to event.

use crate::Past;
use crate::events::{Event, Events};
use crate::past::NO_ROW;
use crate::scale::Scale;

/// A set of users that can be walked in no particular order.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserSet {
    members: Vec<u32>,
    place: Vec<u32>,
}

impl UserSet {
    pub(crate) fn new(users: usize) -> UserSet {
        UserSet { members: Vec::new(), place: vec![u32::MAX; users] }
    }

    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    #[inline]
    pub(crate) fn has(&self, user: u32) -> bool {
        self.place[user as usize] != u32::MAX
    }

    pub(crate) fn set(&mut self, user: u32, member: bool) {
        let place = self.place[user as usize];
        match (place != u32::MAX, member) {
            (false, true) => {
                self.place[user as usize] = self.members.len() as u32;
                self.members.push(user);
            }
            (true, false) => {
                self.members.swap_remove(place as usize);
                if let Some(&moved) = self.members.get(place as usize) {
                    self.place[moved as usize] = place;
                }
                self.place[user as usize] = u32::MAX;
            }
            _ => {}
        }
    }
}

/// The state of a past between two events.
#[derive(Debug)]
pub(crate) struct Instant<'a> {
    past: &'a Past<'a>,
    width: usize,
    events: Events<'a>,
    /// Each user's first row that has not started, submitted or not, and each row's next of its user.
    first: Vec<u32>,
    next: Vec<u32>,
    /// How many rows of each user run.
    runs: Vec<u32>,
    /// What each user holds, user by user.
    held: Vec<u64>,
    /// The same with his first waiting task, if he has one; user by user.
    wanted: Vec<u64>,
    /// What that task asks for, user by user.
    asked: Vec<u64>,
    /// What all hold.
    pub(crate) total: Vec<u64>,
    /// Sum of the weights of active users.
    pub(crate) active_weight: u64,
    active: Vec<bool>,
    pub(crate) waiting: UserSet,
    pub(crate) running: UserSet,
    /// Users whose holdings or first waiting task may have changed since they were last cleared; each once.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

impl<'a> Instant<'a> {
    /// Before the first event.
    pub(crate) fn new(past: &'a Past<'a>) -> Instant<'a> {
        let (n, width) = (past.workload().users().len(), past.workload().resources().len());
        let (first, next) = past.rows_of_users();
        Instant {
            past,
            width,
            events: Events::new(past),
            first,
            next,
            runs: vec![0; n],
            held: vec![0; n * width],
            wanted: vec![0; n * width],
            asked: vec![0; n * width],
            total: vec![0; width],
            active_weight: 0,
            active: vec![false; n],
            waiting: UserSet::new(n),
            running: UserSet::new(n),
            touched: Vec::new(),
            is_touched: vec![false; n],
        }
    }

    #[inline]
    pub(crate) fn held(&self, user: u32) -> &[u64] {
        &self.held[user as usize * self.width..][..self.width]
    }

    /// What a waiting user would hold with his first waiting task.
    #[inline]
    pub(crate) fn wanted(&self, user: u32) -> &[u64] {
        &self.wanted[user as usize * self.width..][..self.width]
    }

    /// What a waiting user's first waiting task asks for.
    #[inline]
    pub(crate) fn asked(&self, user: u32) -> &[u64] {
        &self.asked[user as usize * self.width..][..self.width]
    }

    /// When the next event is.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.events.next_time()
    }

    /// Makes everything of the instant `now` happen, which is the next event.
    pub(crate) fn advance(&mut self, now: u64, scale: &Scale) {
        while let Some(event) = self.events.take(now) {
            match event {
                Event::Finish(row) => self.hold(row, false),
                Event::Start(row) if self.past.workload().columns().duration[row as usize].nanos() > 0 => {
                    self.hold(row, true);
                }
                Event::Start(row) => self.touch(self.user(row)),
                Event::Submit(row) => {
                    // Behind a task that waits already it changes nothing; if that one starts now, that is seen to
                    // above.
                    let user = self.user(row);
                    if self.past.has_start(row) && !self.waiting.has(user) {
                        self.touch(user);
                    }
                }
            }
        }
        // Those touched at an earlier instant and not yet taken are looked at again, which changes nothing
        // that has not changed.
        for at in 0..self.touched.len() {
            self.look_again(self.touched[at], now, scale);
        }
    }

    fn user(&self, row: u32) -> u32 {
        self.past.workload().columns().user[row as usize].0
    }

    fn touch(&mut self, user: u32) {
        if !std::mem::replace(&mut self.is_touched[user as usize], true) {
            self.touched.push(user);
        }
    }

    fn hold(&mut self, row: u32, starts: bool) {
        let user = self.user(row);
        let count = u64::from(self.past.workload().count(row as usize));
        let held = &mut self.held[user as usize * self.width..][..self.width];
        let amounts = self.past.workload().amounts(row as usize);
        for ((amount, h), total) in amounts.iter().zip(held).zip(&mut self.total) {
            // The peak of the sum fits, as the past was measured.
            let amount = amount.0 * count;
            if starts {
                *h += amount;
                *total += amount;
            } else {
                *h -= amount;
                *total -= amount;
            }
        }
        let runs = &mut self.runs[user as usize];
        *runs = if starts { *runs + 1 } else { *runs - 1 };
        self.touch(user);
    }

    /// Works out anew what follows from a user's rows.
    fn look_again(&mut self, user: u32, now: u64, scale: &Scale) {
        let u = user as usize;
        while self.first[u] != NO_ROW && self.past.start(self.first[u]) <= now {
            self.first[u] = self.next[self.first[u] as usize];
        }
        let first = Some(self.first[u]).filter(|&row| row != NO_ROW && self.past.submit(row) <= now);
        if let Some(row) = first {
            let amounts = self.past.workload().amounts(row as usize);
            for (r, amount) in amounts.iter().enumerate() {
                let at = u * self.width + r;
                self.asked[at] = amount.0;
                self.wanted[at] = self.held[at] + amount.0;
            }
        }
        self.waiting.set(user, first.is_some());
        self.running.set(user, self.runs[u] > 0);
        let active = first.is_some() || self.runs[u] > 0;
        if active != self.active[u] {
            self.active[u] = active;
            let weight = scale.weight(u);
            self.active_weight = if active { self.active_weight + weight } else { self.active_weight - weight };
        }
    }

    /// The users whose state may have changed since the last call.
    pub(crate) fn take_touched(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.touched);
        into.iter().for_each(|&user| self.is_touched[user as usize] = false);
    }
}
