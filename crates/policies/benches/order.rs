//! What keeps users in order, by how many there are: nanoseconds a decision and events.
//!
//! `cargo bench -p evenhand-policies --bench order [-- scan|tournament|live-tree|auto … N … ties]`
//!
//! Two resources, and a load as a full pool sees it: a decision takes the lowest user, gives it one
//! task more (its share jumps and its commitment starts to grow towards it), and one task of a random
//! user finishes. Between two decisions passes `step` half-lives. At delta = 1 - 1e-6 and ten tasks a
//! second, as in Google's trace, that is 1.4e-7; at 1 - 1e-4, 1.4e-5; at 1 - 1e-2, 1.4e-3.
//!
//! Sizes and pasts are random numbers, so that few users are equal; with `ties` they come in steps, and
//! all who are equally lowest are returned at each decision. Who is left out (-) took too long with fewer
//! users.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use evenhand_policies::Order;

const STEPS: [f64; 3] = [1.4e-7, 1.4e-5, 1.4e-3];
const SIZES: [usize; 12] = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 32_768, 131_072, 524_288, 1_000_000];
/// Each measurement goes on for about so long.
const FOR: Duration = Duration::from_millis(100);
/// Nanoseconds a decision after which more users are not tried.
const TOO_SLOW: f64 = 2e6;
const AT_MOST: usize = 1_000_000;
/// Decisions between two looks at the clock.
const BATCH: usize = 32;
/// Tasks each user has at first.
const RUNNING: u32 = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let mut orders: Vec<Order> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let ties = arguments.iter().any(|a| a == "ties");
    if orders.is_empty() {
        orders = vec![Order::Scan, Order::Tournament, Order::LiveTree];
    }
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    for step in STEPS {
        println!(
            "{step} half-lives between decisions: ns a decision, events a thousand decisions, users lowest or nearly so"
        );
        print!("{:>9}", "users");
        orders.iter().for_each(|o| print!(" {:>12} {:>12}", o.name(), "events"));
        println!(" {:>9}", "lowest");
        let mut slow = vec![false; orders.len()];
        for &n in &sizes {
            print!("{n:>9}");
            let here = orders.iter().zip(&slow).map(|(&o, slow)| (!slow).then(|| Load::new(n, step, o, ties)));
            let mut load: Vec<Option<Load>> = here.collect();
            let mut times = vec![Vec::new(); orders.len()];
            // In turns, so that whatever else the machine does hits all alike.
            for _ in 0..5 {
                let here = load.iter_mut().zip(&mut times).filter_map(|(load, times)| Some((load.as_mut()?, times)));
                here.for_each(|(load, times)| load.measure(times));
            }
            for ((load, times), slow) in load.iter().zip(&mut times).zip(&mut slow) {
                let Some(load) = load else {
                    print!(" {:>12} {:>12}", "-", "-");
                    continue;
                };
                let (time, events) = (mean(times), load.order.order_events() as f64 / load.decisions as f64);
                print!(" {time:>12.0} {:>12.2}", 1000.0 * events);
                *slow = time > TOO_SLOW;
            }
            let first = load.iter().flatten().next();
            println!(" {:>9.1}", first.map_or(0.0, |l| l.returned as f64 / l.decisions as f64));
        }
        println!();
    }
}

struct User {
    /// Tasks running.
    held: u32,
    /// Commitments, as of `since`, to each resource.
    commitment: [f64; 2],
    since: f64,
}

/// What a scheduler does with the order of users.
struct Load {
    order: Box<dyn evenhand_policies::kinetic::LineOrder>,
    users: Vec<User>,
    /// What a task of a user takes of each resource, in shares.
    demand: Vec<[f64; 2]>,
    half_lives: f64,
    epoch: f64,
    step: f64,
    decisions: u64,
    /// Users returned by all decisions.
    returned: u64,
    random: u64,
    near: Vec<u32>,
}

impl Load {
    fn new(n: usize, step: f64, order: Order, ties: bool) -> Load {
        let mut load = Load {
            order: order.structure(n, 2),
            users: Vec::new(),
            demand: Vec::new(),
            half_lives: 0.0,
            epoch: 0.0,
            step,
            decisions: 0,
            returned: 0,
            random: 1,
            near: Vec::new(),
        };
        let whole = 1.0 / (n as f64 * f64::from(RUNNING));
        for user in 0..n as u32 {
            // From a half to twice the mean.
            let demand = [0, 1].map(|_| whole * (0.5 + 1.5 * load.unit(ties)));
            load.demand.push(demand);
            let held = 1 + (load.next() % u64::from(2 * RUNNING - 1)) as u32;
            let share = |r: usize| demand[r] * f64::from(held);
            let past = load.unit(ties);
            let commitment = [0, 1].map(|r| (2.0 * past * share(r) - 1.0 / n as f64).max(0.0));
            load.users.push(User { held, commitment, since: 0.0 });
            load.set(user);
        }
        load
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, in twelfths if there are to be ties.
    fn unit(&mut self, ties: bool) -> f64 {
        if ties { (self.next() % 13) as f64 / 12.0 } else { (self.next() >> 11) as f64 / (1_u64 << 53) as f64 }
    }

    fn overuse(&self, user: u32) -> [f64; 2] {
        let User { held, .. } = self.users[user as usize];
        self.demand[user as usize].map(|d| (d * f64::from(held) - 1.0 / self.users.len() as f64).max(0.0))
    }

    fn set(&mut self, user: u32) {
        let over = self.overuse(user);
        let User { held, commitment, since } = self.users[user as usize];
        let at_epoch = (since - self.epoch).exp2();
        let a = [0, 1].map(|r| self.demand[user as usize][r] * f64::from(held) + over[r]);
        let b = [0, 1].map(|r| (commitment[r] - over[r]) * at_epoch);
        self.order.set(user, &a, &b);
    }

    fn change(&mut self, user: u32, held: u32) {
        let over = self.overuse(user);
        let now = self.half_lives;
        let it = &mut self.users[user as usize];
        let kept = (it.since - now).exp2();
        for (c, over) in it.commitment.iter_mut().zip(over) {
            *c = over + (*c - over) * kept;
        }
        (it.held, it.since) = (held, now);
        self.set(user);
    }

    fn decide(&mut self) {
        self.half_lives += self.step;
        if self.half_lives - self.epoch > 32.0 {
            self.epoch += 32.0;
            self.order.rebase(2f64.powi(-32));
        }
        let s = (self.epoch - self.half_lives).exp2();
        let mut near = std::mem::take(&mut self.near);
        self.order.lowest(s, 1e-14, 1e-17, &mut near);
        let lowest = near.iter().copied().min();
        self.returned += near.len() as u64;
        self.near = near;
        if let Some(user) = lowest {
            self.change(user, self.users[user as usize].held + 1);
        }
        let finished = (self.next() % self.users.len() as u64) as u32;
        let held = self.users[finished as usize].held;
        if held > 0 {
            self.change(finished, held - 1);
        }
        self.decisions += 1;
        black_box(lowest);
    }

    /// Adds nanoseconds a decision, batch by batch.
    fn measure(&mut self, times: &mut Vec<f64>) {
        let begun = Instant::now();
        let mut batch = begun;
        for _ in 0..AT_MOST / BATCH {
            for _ in 0..BATCH {
                self.decide();
            }
            times.push(batch.elapsed().as_nanos() as f64 / BATCH as f64);
            batch = Instant::now();
            if batch - begun > FOR {
                break;
            }
        }
    }
}

/// The mean of all but the slowest tenth: in those, something else ran.
fn mean(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let kept = &times[..times.len() - times.len() / 10];
    kept.iter().sum::<f64>() / kept.len() as f64
}
