//! Who envies whom, pair by pair.
//!
//! Whether i envies k depends on what the two hold, on i's first waiting task and on nothing else, so an
//! event concerns only pairs with a user it touched: waiting + running of them, not waiting x running.

use std::collections::HashMap;

use crate::episodes::Episodes;
use crate::instant::Instant;
use crate::scale::Scale;

/// All pairs of a past so far.
#[derive(Debug)]
pub(crate) struct Envy {
    users: usize,
    /// For each user who waits, whom he envies now, as bits; none for those who do not wait.
    envied: Vec<Option<Box<[u64]>>>,
    spare: Vec<Box<[u64]>>,
    /// How many each user envies now.
    count: Vec<u32>,
    episodes: HashMap<(u32, u32), Episodes>,
    /// When each user envied anybody. Only for how long: an interval in which one he envies follows another
    /// may be counted as two.
    any: Vec<Episodes>,
}

impl Envy {
    pub(crate) fn new(users: usize) -> Envy {
        Envy {
            users,
            envied: vec![None; users],
            spare: Vec::new(),
            count: vec![0; users],
            episodes: HashMap::new(),
            any: vec![Episodes::default(); users],
        }
    }

    /// Takes account of what happened to the `touched` users up to `now`.
    pub(crate) fn update(&mut self, now: u64, state: &Instant<'_>, scale: &Scale, touched: &[u32]) {
        for &user in touched {
            if !state.waiting.has(user) {
                self.stops_waiting(user, now);
            }
        }
        for &user in touched {
            if state.waiting.has(user) {
                if self.envied[user as usize].is_none() {
                    let words = self.users.div_ceil(64);
                    self.envied[user as usize] = Some(self.spare.pop().unwrap_or_else(|| vec![0; words].into()));
                }
                for &other in state.running.members() {
                    self.set(user, other, envies(user, other, state, scale), now);
                }
            }
            let runs = state.running.has(user);
            for &other in state.waiting.members() {
                // One who waits only since this instant has all his pairs looked at on his own account.
                if self.envied[other as usize].is_some() {
                    self.set(other, user, runs && envies(other, user, state, scale), now);
                }
            }
        }
    }

    /// For how long each user envied anybody.
    pub(crate) fn any(&self) -> &[Episodes] {
        &self.any
    }

    /// Ends what still lasts.
    pub(crate) fn end(&mut self, now: u64) {
        (0..self.users as u32).for_each(|user| self.stops_waiting(user, now));
    }

    /// Each pair that there ever was, in no order: who, against whom, when.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = ((u32, u32), &Episodes)> {
        self.episodes.iter().map(|(pair, episodes)| (*pair, episodes))
    }

    fn stops_waiting(&mut self, user: u32, now: u64) {
        let Some(mut bits) = self.envied[user as usize].take() else { return };
        for (word, set) in bits.iter_mut().enumerate() {
            while *set != 0 {
                let other = word as u32 * 64 + set.trailing_zeros();
                *set &= *set - 1;
                self.episodes.entry((user, other)).or_default().set(false, now);
            }
        }
        self.count[user as usize] = 0;
        self.any[user as usize].set(false, now);
        self.spare.push(bits);
    }

    #[inline]
    fn set(&mut self, user: u32, other: u32, envies: bool, now: u64) {
        let Some(bits) = &mut self.envied[user as usize] else { return };
        let (word, bit) = (&mut bits[other as usize / 64], 1u64 << (other % 64));
        if (*word & bit != 0) == envies {
            return;
        }
        *word ^= bit;
        let count = &mut self.count[user as usize];
        *count = if envies { *count + 1 } else { *count - 1 };
        // Within an instant each pair comes to its final state at once, so nobody is counted who envies no one.
        self.any[user as usize].set(*count > 0, now);
        self.episodes.entry((user, other)).or_default().set(envies, now);
    }
}

/// Whether `user`, who waits, would run all he runs and his first waiting task with what `other` holds,
/// scaled to his weight.
#[inline]
fn envies(user: u32, other: u32, state: &Instant<'_>, scale: &Scale) -> bool {
    let (own, theirs) = (scale.weight(user as usize), scale.weight(other as usize));
    let mut pairs = state.wanted(user).iter().zip(state.held(other));
    user != other
        && if own == theirs {
            pairs.all(|(wanted, held)| wanted <= held)
        } else {
            pairs.all(|(&wanted, &held)| u128::from(wanted) * u128::from(theirs) <= u128::from(own) * u128::from(held))
        }
}
