//! The walk: from event to event, what each party is due, lacks and has too much.

use evenhand_model::{Capacity, Time, UBig};

use super::parties::{Claims, Parties};
use super::{Complaint, Entitlements, NAMED, Pair, PartyWeek, Use, Week};
use crate::events::{Event, Events};
use crate::instant::UserSet;
use crate::past::NO_ROW;
use crate::{Past, PastError};

/// Amounts are counted in 2^-20 of a step where that leaves them below 2^60.
const FINEST: u32 = 20;
const ROOM: u32 = 60;

/// What is integrated of one party and resource, in steps (of `over` and `unmet`: fine ones) times nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    got: u128,
    wanted: u128,
    unmet: u128,
    over: u128,
}

/// What is the case of one party and resource now.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    held: u64,
    waiting: u128,
    /// Fine steps.
    entitled: u64,
    unmet: u64,
    over: u64,
    /// The value of `per` up to which its pairs are counted as a victim, and as a holder.
    counted_unmet: u128,
    counted_over: u128,
}

/// A resource as a whole.
#[derive(Debug)]
struct Whole {
    /// A step is 2^bits fine ones.
    bits: u32,
    /// The capacity in fine steps, exactly, and in whole steps.
    capacity: (UBig, UBig),
    fits: u64,
    held: u64,
    unmet: u128,
    over: u128,
    /// Those with an unmet claim, and those with over-use.
    victims: UserSet,
    holders: UserSet,
    /// The integral of 2^64 / max(unmet, over) while there are both: differences of it are exact.
    per: u128,
}

/// A complaint that stands.
#[derive(Debug)]
struct Open {
    from: u64,
    unmet: u128,
    /// The row of the party at its beginning.
    row: Vec<f64>,
}

pub(super) struct Ledger<'a> {
    past: &'a Past<'a>,
    parties: &'a Parties,
    width: usize,
    events: Events<'a>,
    /// Each party's first row that has not started, submitted or not, and each row's next of its party.
    first: Vec<u32>,
    next: Vec<u32>,
    runs: Vec<u32>,
    claims: Claims<'a>,
    claimants: UserSet,
    waiting: UserSet,
    wholes: Vec<Whole>,
    /// Party by party.
    now: Vec<Now>,
    sums: Vec<Sums>,
    /// Unmet claims over all weeks, for complaints.
    unmet: Vec<u128>,
    open: Vec<Option<Open>>,
    /// Up to when each party is counted, and whether it had a claim for some time of this week.
    since: Vec<u64>,
    claimed: Vec<bool>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// Of each victim, the over-use of each holder, by the holder's place, then by resource.
    rows: Vec<Vec<f64>>,
    rows_before: Vec<Vec<f64>>,
    holders: Vec<u32>,
    place: Vec<u32>,
    at: u64,
    week_from: u64,
    weeks: Vec<Week>,
    complaints: Vec<Complaint>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(past: &'a Past<'a>, capacity: &Capacity, parties: &'a Parties, from: u64) -> Ledger<'a> {
        let (n, width) = (parties.len(), capacity.width());
        let (first, next) = past.rows_of(n, parties.of_user());
        let most = past.most();
        let whole = |r: usize| {
            let (over, under) = capacity.exact_steps(r).clone().into_parts();
            let (over, fits) = (UBig::try_from(over).unwrap_or(UBig::ZERO), capacity.amounts()[r].0);
            let bits = ROOM.saturating_sub(u64::BITS - most[r].max(fits).leading_zeros()).min(FINEST);
            Whole {
                bits,
                capacity: (over << bits as usize, under),
                fits,
                held: 0,
                unmet: 0,
                over: 0,
                victims: UserSet::new(n),
                holders: UserSet::new(n),
                per: 0,
            }
        };
        Ledger {
            past,
            parties,
            width,
            events: Events::new(past),
            first,
            next,
            runs: vec![0; n],
            claims: Claims::new(parties),
            claimants: UserSet::new(n),
            waiting: UserSet::new(n),
            wholes: (0..width).map(whole).collect(),
            now: vec![Now::default(); n * width],
            sums: vec![Sums::default(); n * width],
            unmet: vec![0; n * width],
            open: (0..n * width).map(|_| None).collect(),
            since: vec![from; n],
            claimed: vec![false; n],
            touched: Vec::new(),
            is_touched: vec![false; n],
            rows: vec![Vec::new(); n],
            rows_before: vec![Vec::new(); n],
            holders: Vec::new(),
            place: vec![u32::MAX; n],
            at: from,
            week_from: from,
            weeks: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// Walks up to `until`; a week ends at each of `boundaries` and there.
    pub(super) fn run(mut self, boundaries: &[u64], until: Time) -> Result<Entitlements, PastError> {
        let until = until.nanos();
        let mut boundaries = boundaries.iter().copied().peekable();
        while let Some(event) = self.events.next_time() {
            let to = event.clamp(self.at, until.max(self.at));
            while let Some(week) = boundaries.next_if(|&week| week <= to) {
                self.pass(week);
                self.end_week();
            }
            self.pass(to);
            if event >= until {
                break;
            }
            self.advance(event);
            self.look();
        }
        for party in 0..self.parties.len() {
            (0..self.width).for_each(|r| self.complain(party, r, false));
        }
        if self.week_from < self.at || self.weeks.is_empty() {
            self.end_week();
        }
        self.complaints.sort_by_key(|c| (c.from, c.party, c.resource));
        let pairs = self.pairs();
        Ok(Entitlements { weeks: self.weeks, pairs, complaints: self.complaints })
    }

    /// What is the case lasts until `to`.
    fn pass(&mut self, to: u64) {
        let length = u128::from(to - self.at);
        self.at = to;
        for whole in self.wholes.iter_mut().filter(|w| w.unmet > 0 && w.over > 0) {
            // A length is at most 2^62.
            whole.per += (length << 64) / whole.unmet.max(whole.over);
        }
    }

    /// Makes everything of the instant `now` happen.
    fn advance(&mut self, now: u64) {
        while let Some(event) = self.events.take(now) {
            match event {
                Event::Finish(row) => self.hold(row, false),
                Event::Start(row) => {
                    if self.past.submit(row) < now {
                        self.wait(row, false);
                    }
                    if self.past.workload().columns().duration[row as usize].nanos() > 0 {
                        self.hold(row, true);
                    }
                }
                Event::Submit(row) if self.past.has_start(row) && self.past.start(row) > now => self.wait(row, true),
                Event::Submit(_) => {}
            }
        }
        for at in 0..self.touched.len() {
            let party = self.touched[at];
            let first = &mut self.first[party as usize];
            while *first != NO_ROW && self.past.start(*first) <= now {
                *first = self.next[*first as usize];
            }
            self.waiting.set(party, *first != NO_ROW && self.past.submit(*first) <= now);
        }
    }

    fn party(&self, row: u32) -> u32 {
        self.parties.of_user()[self.past.workload().columns().user[row as usize].index()]
    }

    /// Counts a party as it was, before it changes.
    fn touch(&mut self, party: u32) {
        if !std::mem::replace(&mut self.is_touched[party as usize], true) {
            self.settle(party as usize);
            self.touched.push(party);
        }
    }

    fn hold(&mut self, row: u32, starts: bool) {
        let party = self.party(row);
        self.touch(party);
        let count = u64::from(self.past.workload().count(row as usize));
        let now = &mut self.now[party as usize * self.width..][..self.width];
        for ((amount, now), whole) in self.past.workload().amounts(row as usize).iter().zip(now).zip(&mut self.wholes) {
            // The peak of the sum fits, as the past was measured.
            let amount = amount.0 * count;
            if starts {
                now.held += amount;
                whole.held += amount;
            } else {
                now.held -= amount;
                whole.held -= amount;
            }
        }
        let runs = &mut self.runs[party as usize];
        *runs = if starts { *runs + 1 } else { *runs - 1 };
    }

    fn wait(&mut self, row: u32, begins: bool) {
        let party = self.party(row);
        self.touch(party);
        let count = u128::from(self.past.workload().count(row as usize));
        let now = &mut self.now[party as usize * self.width..][..self.width];
        for (amount, now) in self.past.workload().amounts(row as usize).iter().zip(now) {
            // Below 2^60 a task, 2^32 tasks a row, 2^32 rows.
            let amount = u128::from(amount.0) * count;
            now.waiting = if begins { now.waiting + amount } else { now.waiting - amount };
        }
    }

    /// Adds up what has been the case of a party since it was last counted.
    fn settle(&mut self, party: usize) {
        let length = u128::from(self.at - std::mem::replace(&mut self.since[party], self.at));
        if length == 0 || !self.claims.has(party) {
            return;
        }
        self.claimed[party] = true;
        let of = party * self.width..(party + 1) * self.width;
        for ((sums, total), now) in self.sums[of.clone()].iter_mut().zip(&mut self.unmet[of.clone()]).zip(&self.now[of])
        {
            // Amounts are below 2^64, all time is below 2^62.
            let got = u128::from(now.held) * length;
            sums.got += got;
            sums.wanted = sums.wanted.saturating_add(got.saturating_add(now.waiting.saturating_mul(length)));
            sums.unmet += u128::from(now.unmet) * length;
            *total += u128::from(now.unmet) * length;
            sums.over += u128::from(now.over) * length;
        }
    }

    /// Sees what is the case from now on.
    fn look(&mut self) {
        let mut claims_changed = false;
        for at in 0..self.touched.len() {
            let party = self.touched[at];
            let claims = self.runs[party as usize] > 0 || self.waiting.has(party);
            self.claimants.set(party, claims);
            claims_changed |= self.claims.set(party as usize, claims);
        }
        if claims_changed {
            (0..self.claimants.members().len()).for_each(|at| self.touch(self.claimants.members()[at]));
            self.entitle();
        }
        for at in 0..self.touched.len() {
            let party = self.touched[at] as usize;
            (0..self.width).for_each(|r| self.weigh(party, r));
        }
        for at in 0..self.waiting.members().len() {
            self.hear(self.waiting.members()[at]);
        }
        for party in std::mem::take(&mut self.touched) {
            self.is_touched[party as usize] = false;
            if !self.waiting.has(party) {
                (0..self.width).for_each(|r| self.complain(party as usize, r, false));
            }
        }
    }

    /// Works out the entitlements of all who are touched.
    fn entitle(&mut self) {
        // Equal shares of one account are worked out once.
        let mut last = (0, 0);
        let mut entitled = vec![0; self.width];
        for &party in &self.touched {
            let party = party as usize;
            let share = if self.claims.has(party) { self.claims.share(party) } else { (0, 1) };
            if share != last {
                last = share;
                let of = self.wholes.iter().map(|whole| part(&whole.capacity, share));
                entitled.iter_mut().zip(of).for_each(|(e, part)| *e = part);
            }
            let now = &mut self.now[party * self.width..][..self.width];
            now.iter_mut().zip(&entitled).for_each(|(now, e)| now.entitled = *e);
        }
    }

    /// Finds a party's unmet claim and over-use.
    fn weigh(&mut self, party: usize, r: usize) {
        let now = self.now[party * self.width + r];
        let bits = self.wholes[r].bits;
        let held = now.held << bits;
        let below = now.entitled.saturating_sub(held);
        // What does not fit u64 in fine steps is more than anybody is below.
        let asked = u64::try_from(now.waiting).ok().and_then(|w| w.checked_mul(1 << bits));
        let unmet = asked.map_or(below, |asked| below.min(asked));
        let over = if self.claims.has(party) { held.saturating_sub(now.entitled) } else { 0 };
        if unmet != now.unmet {
            self.count_victim(party, r);
            let whole = &mut self.wholes[r];
            whole.unmet = whole.unmet - u128::from(now.unmet) + u128::from(unmet);
            whole.victims.set(party as u32, unmet > 0);
            self.now[party * self.width + r].unmet = unmet;
        }
        if over != now.over {
            self.count_holder(party, r);
            if self.place[party] == u32::MAX {
                self.place[party] = self.holders.len() as u32;
                self.holders.push(party as u32);
            }
            let whole = &mut self.wholes[r];
            whole.over = whole.over - u128::from(now.over) + u128::from(over);
            whole.holders.set(party as u32, over > 0);
            self.now[party * self.width + r].over = over;
        }
    }

    /// Adds up what ran of each holder's over-use while `victim`'s claim was what it is up to now.
    fn count_victim(&mut self, victim: usize, r: usize) {
        let whole = &self.wholes[r];
        let own = &self.now[victim * self.width + r];
        let row = &mut self.rows[victim];
        if own.unmet > 0 && own.counted_unmet < whole.per {
            row.resize(self.holders.len() * self.width, 0.0);
            for &holder in whole.holders.members() {
                let theirs = &self.now[holder as usize * self.width + r];
                let per = whole.per - own.counted_unmet.max(theirs.counted_over);
                row[self.place[holder as usize] as usize * self.width + r] += over_use(own.unmet, theirs.over, per);
            }
        }
        self.now[victim * self.width + r].counted_unmet = whole.per;
    }

    /// The same for one holder and all who wait.
    fn count_holder(&mut self, holder: usize, r: usize) {
        let whole = &self.wholes[r];
        let own = self.now[holder * self.width + r];
        if own.over > 0 && own.counted_over < whole.per {
            let place = self.place[holder] as usize * self.width + r;
            for &victim in whole.victims.members() {
                let theirs = &self.now[victim as usize * self.width + r];
                let per = whole.per - own.counted_over.max(theirs.counted_unmet);
                let row = &mut self.rows[victim as usize];
                row.resize(row.len().max(self.holders.len() * self.width), 0.0);
                row[place] += over_use(theirs.unmet, own.over, per);
            }
        }
        self.now[holder * self.width + r].counted_over = whole.per;
    }

    /// Sees what a party that waits has to complain of.
    fn hear(&mut self, party: u32) {
        let p = party as usize;
        let now = &self.now[p * self.width..][..self.width];
        let asked = self.past.workload().amounts(self.first[p] as usize);
        let (mut in_the_way, mut within) = (0u64, true);
        for (r, ((asked, now), whole)) in asked.iter().zip(now).zip(&self.wholes).enumerate() {
            if asked.0 > whole.fits.saturating_sub(whole.held) {
                in_the_way |= 1 << r;
                within &= u128::from(now.held + asked.0) << whole.bits <= u128::from(now.entitled);
            }
        }
        for r in 0..self.width {
            self.complain(p, r, within && in_the_way >> r & 1 != 0);
        }
    }

    /// From now on a complaint stands or does not.
    #[inline]
    fn complain(&mut self, party: usize, r: usize, stands: bool) {
        let at = party * self.width + r;
        if self.open[at].is_some() == stands {
            return;
        }
        self.settle(party);
        self.count_victim(party, r);
        let row = self.rows[party].iter().skip(r).step_by(self.width);
        if stands {
            let row = row.copied().collect();
            self.open[at] = Some(Open { from: self.at, unmet: self.unmet[at], row });
        } else if let Some(open) = self.open[at].take().filter(|open| open.from < self.at) {
            let before = open.row.iter().copied().chain(std::iter::repeat(0.0));
            let against = row.zip(before).map(|(now, before)| now - before);
            self.complaints.push(Complaint {
                party,
                resource: r,
                from: Time::from_nanos(open.from),
                until: Time::from_nanos(self.at),
                unmet: steps(self.unmet[at] - open.unmet, self.wholes[r].bits),
                against: self.most(against, r),
            });
        }
    }

    /// Those with most, in steps.
    fn most(&self, against: impl Iterator<Item = f64>, r: usize) -> Vec<(usize, f64)> {
        let fine = 2f64.powi(-(self.wholes[r].bits as i32));
        let named = against.enumerate().map(|(place, x)| (self.holders[place] as usize, x * fine));
        let mut most: Vec<(usize, f64)> = named.filter(|(_, x)| *x > 0.0).collect();
        most.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        most.truncate(NAMED);
        most
    }

    /// Counts everybody up to now and begins a week.
    fn end_week(&mut self) {
        let n = self.parties.len();
        for party in 0..n {
            self.settle(party);
            (0..self.width).for_each(|r| self.count_victim(party, r));
        }
        let shares = self.parties.shares_among(&self.claimed);
        let mut parties = Vec::new();
        for (party, share) in shares.into_iter().enumerate().filter(|(party, _)| self.claimed[*party]) {
            let use_of = |r: usize| {
                let sums = self.sums[party * self.width + r];
                let bits = self.wholes[r].bits;
                let before = self.rows_before[party].iter().copied().chain(std::iter::repeat(0.0));
                let week = self.rows[party].iter().zip(before).map(|(now, before)| now - before);
                Use {
                    got: sums.got,
                    wanted: sums.wanted,
                    unmet: steps(sums.unmet, bits),
                    over: steps(sums.over, bits),
                    against: self.most(week.skip(r).step_by(self.width), r),
                }
            };
            parties.push(PartyWeek { party, share, uses: (0..self.width).map(use_of).collect() });
        }
        for (before, row) in self.rows_before.iter_mut().zip(&self.rows) {
            before.clone_from(row);
        }
        let (from, until) = (Time::from_nanos(self.week_from), Time::from_nanos(self.at));
        self.weeks.push(Week { from, until, parties });
        self.week_from = self.at;
        self.sums.fill(Sums::default());
        self.claimed.fill(false);
    }

    /// All pairs, counted up to the end.
    fn pairs(&self) -> Vec<Pair> {
        let fine: Vec<f64> = self.wholes.iter().map(|whole| 2f64.powi(-(whole.bits as i32))).collect();
        let mut pairs = Vec::new();
        for (victim, row) in self.rows.iter().enumerate() {
            for (over, &holder) in row.chunks_exact(self.width).zip(&self.holders) {
                if over.iter().any(|x| *x > 0.0) {
                    let over = over.iter().zip(&fine).map(|(x, fine)| x * fine).collect();
                    pairs.push(Pair { victim, holder: holder as usize, over });
                }
            }
        }
        pairs.sort_by_key(|pair| (pair.victim, pair.holder));
        pairs
    }
}

/// Part of a capacity in whole fine steps, cut to half of what u64 holds: more than can be held.
fn part(capacity: &(UBig, UBig), (over, under): (u128, u128)) -> u64 {
    const MOST: u128 = u64::MAX as u128 >> 1;
    let small = || {
        let (steps, of) = (u128::try_from(&capacity.0).ok()?, u128::try_from(&capacity.1).ok()?);
        Some(steps.checked_mul(over)? / of.checked_mul(under)?)
    };
    let part = small().unwrap_or_else(|| {
        let exact = &capacity.0 * UBig::from(over) / (&capacity.1 * UBig::from(under));
        u128::try_from(exact).unwrap_or(u128::MAX)
    });
    part.min(MOST) as u64
}

fn over_use(unmet: u64, over: u64, per: u128) -> f64 {
    unmet as f64 * (over as f64 * (per as f64 * 2f64.powi(-64)))
}

fn steps(fine: u128, bits: u32) -> f64 {
    fine as f64 * 2f64.powi(-(bits as i32))
}
