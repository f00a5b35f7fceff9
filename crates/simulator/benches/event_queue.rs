//! The event queue beside a binary heap and the best crates: nanoseconds per hold, the minimum of five runs.
//!
//! `cargo bench -p evenhand-cluster --bench event_queue`: the hold model, in which the earliest event
//! is taken and another put in its place, at as many pending events as a month like Google's has
//! running tasks, and at fewer and more. Every queue is given the same times and must take them in
//! the same order.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

use dary_heap::QuaternaryHeap;
use evenhand_model::Time;
use evenhand_model::random::Stream;
use evenhand_simulator::EventQueue;
use radix_heap::RadixHeapMap;

const RUNS: usize = 5;
const HOLDS: usize = 2_000_000;

/// What every queue is asked to do: `push` at a time, and `pop` the earliest.
trait Queue {
    fn push(&mut self, time: u64, event: u64);
    fn pop(&mut self) -> (u64, u64);
}

/// Takes whole instants, of which the bench hands out one event after the other.
struct Own {
    queue: EventQueue<u64>,
    now: u64,
    taken: Vec<u64>,
}

impl Queue for Own {
    fn push(&mut self, time: u64, event: u64) {
        self.queue.push(Time::from_nanos(time), event);
    }

    fn pop(&mut self) -> (u64, u64) {
        if self.taken.is_empty() {
            self.now = self.queue.next_time().map_or(0, Time::nanos);
            let taken = &mut self.taken;
            self.queue.take_next(|event| taken.push(event));
        }
        (self.now, self.taken.pop().unwrap_or(0))
    }
}

impl Queue for BinaryHeap<Reverse<(u64, u64)>> {
    fn push(&mut self, time: u64, event: u64) {
        BinaryHeap::push(self, Reverse((time, event)));
    }

    fn pop(&mut self) -> (u64, u64) {
        BinaryHeap::pop(self).map_or((0, 0), |Reverse(first)| first)
    }
}

impl Queue for QuaternaryHeap<Reverse<(u64, u64)>> {
    fn push(&mut self, time: u64, event: u64) {
        QuaternaryHeap::push(self, Reverse((time, event)));
    }

    fn pop(&mut self) -> (u64, u64) {
        QuaternaryHeap::pop(self).map_or((0, 0), |Reverse(first)| first)
    }
}

impl Queue for RadixHeapMap<Reverse<u64>, u64> {
    fn push(&mut self, time: u64, event: u64) {
        RadixHeapMap::push(self, Reverse(time), event);
    }

    fn pop(&mut self) -> (u64, u64) {
        RadixHeapMap::pop(self).map_or((0, 0), |(Reverse(time), event)| (time, event))
    }
}

/// Nanoseconds a hold, and the sum of the times taken, by which queues are held to one order.
fn holds(queue: &mut dyn Queue, spans: &[u64], pending: usize) -> (f64, u64) {
    (0..pending).for_each(|i| queue.push(spans[i % spans.len()], i as u64));
    let begun = Instant::now();
    let mut check = 0u64;
    for i in 0..HOLDS {
        let (time, event) = queue.pop();
        check = check.rotate_left(1).wrapping_add(time);
        queue.push(time + spans[(pending + i) % spans.len()], event);
    }
    (begun.elapsed().as_secs_f64() * 1e9 / HOLDS as f64, black_box(check))
}

fn own() -> Box<dyn Queue> {
    Box::new(Own { queue: EventQueue::new(), now: 0, taken: Vec::new() })
}

type New = fn() -> Box<dyn Queue>;

const QUEUES: [(&str, New); 4] = [
    ("EventQueue", own),
    ("std BinaryHeap", || Box::new(BinaryHeap::<Reverse<(u64, u64)>>::new())),
    ("dary_heap, 4-ary", || Box::new(QuaternaryHeap::<Reverse<(u64, u64)>>::new())),
    ("radix-heap", || Box::new(RadixHeapMap::<Reverse<u64>, u64>::new())),
];

fn main() {
    let mut stream = Stream::new(1, "event queue bench", 0);
    // Run times with a mean of an hour, and such that nine in ten are short.
    let exponential: Vec<u64> = (0..1 << 20).map(|_| (stream.exponential(3600.0) * 1e9) as u64 + 1).collect();
    let mixed: Vec<u64> =
        exponential.iter().enumerate().map(|(i, &span)| if i % 10 == 0 { 10 * span } else { span / 100 + 1 }).collect();
    for (name, spans) in [("exponential", &exponential), ("nine in ten short", &mixed)] {
        for pending in [1_000, 150_000, 1_000_000] {
            println!("{name} run times, {pending} pending");
            let mut first = None;
            for (queue, new) in QUEUES {
                let runs = (0..RUNS).map(|_| holds(&mut *new(), spans, pending));
                let (ns, check) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
                assert_eq!(*first.get_or_insert(check), check, "all queues take the same times");
                println!("{queue:>20} {ns:>8.1} ns");
            }
        }
    }
}
