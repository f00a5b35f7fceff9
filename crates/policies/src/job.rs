//! One job as a policy sees it.

use evenhand_model::{Amount, Span, Time, UserId};

use crate::LogPlace;

/// A job that waits, starts or finishes: what a policy may go by.
///
/// The caller fills in the fields that it knows: a pool of tasks knows user, submission and demand, machines and live
/// engines all of it.
///
/// ```
/// use evenhand_model::{Amount, Span, UserId};
/// use evenhand_policies::Job;
/// let demand = [Amount(4)];
/// let job = Job { requested: Span::from_secs(3600), ..Job::new(UserId(7), &demand) };
/// assert_eq!((job.chunks, job.rate), (1, 1.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Whose it is.
    pub user: UserId,
    /// When it was submitted, and its position among the jobs submitted then.
    pub place: LogPlace,
    /// What it holds of each resource, over all its chunks, in steps of [`Amount`].
    pub demand: &'a [Amount],
    /// On how many machines it runs at once, in equal parts.
    pub chunks: u32,
    /// Its queue, as an index of the workload's queues.
    pub queue: Option<u32>,
    /// Its quality of service, as an index of the workload's.
    pub qos: Option<u32>,
    /// How many nodes it asked for, if that is known.
    pub nodes: Option<u32>,
    /// By how much its user lowers its priority; negative: raises it.
    pub nice: i64,
    /// The wall time it asked for, on the machines it runs on.
    pub requested: Span,
    /// When it started, once it has.
    pub started: Time,
    /// What a second is charged at: the speed of the machines it runs on (the mean over its chunks) times the
    /// price of its queue.
    pub rate: f64,
}

impl<'a> Job<'a> {
    /// A job of one chunk, in no queue and of no quality of service, at speed and price 1, of which no times are known.
    pub fn new(user: UserId, demand: &'a [Amount]) -> Job<'a> {
        Job {
            user,
            place: LogPlace::default(),
            demand,
            chunks: 1,
            queue: None,
            qos: None,
            nodes: None,
            nice: 0,
            requested: Span::ZERO,
            started: Time::ZERO,
            rate: 1.0,
        }
    }

    /// The same at a place in the log.
    pub fn at(self, submitted: Time, position: u64) -> Job<'a> {
        Job { place: LogPlace::new(submitted, position), ..self }
    }
}
