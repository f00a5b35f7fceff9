//! The trait that every scheduler implements, and the registry of schedulers.

use crate::recording::Observer;
use crate::scenario::{Reading, Scenario, TieBreak};
use crate::simulation::{Outcome, simulate};
use crate::usage_window::ResourceUsage;

/// Scheduler that can be selected by name.
pub struct SchedulerRegistration {
    /// Name that users type.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    pub(crate) run: fn(&Scenario, u64, &mut dyn Observer) -> Outcome,
}

/// All schedulers, the paper's first. A new scheduler is a file and a line here.
pub static SCHEDULERS: &[SchedulerRegistration] = &[
    SchedulerRegistration {
        name: "bottleneck",
        about: "one priority for all resources: the minimal gap between entitlement and consumption among the \
                bottlenecks, largest first (Zeldes & Feitelson 2013)",
        run: simulate::<crate::schedulers::bottleneck_priority::BottleneckPriority>,
    },
    SchedulerRegistration {
        name: "round-robin",
        about: "each resource independently: the request queued first",
        run: simulate::<crate::schedulers::round_robin::RoundRobin>,
    },
    SchedulerRegistration {
        name: "lottery",
        about: "each resource independently: at random, with probabilities in proportion to entitlements",
        run: simulate::<crate::schedulers::lottery::Lottery>,
    },
    SchedulerRegistration {
        name: "stride",
        about: "each resource independently: the lowest virtual time, which grows by use over entitlement",
        run: simulate::<crate::schedulers::stride::Stride>,
    },
    SchedulerRegistration {
        name: "least-use",
        about: "each resource independently: the minimal consumption over entitlement in the window (max-min)",
        run: simulate::<crate::schedulers::minimal_consumption::MinimalConsumption>,
    },
    SchedulerRegistration {
        name: "dominant-share",
        about: "all resources alike: the lowest dominant share of time over entitlement in the window (as DRF)",
        run: simulate::<crate::schedulers::dominant_share::DominantShare>,
    },
];

/// Returns the scheduler of that name.
pub fn scheduler_named(name: &str) -> Option<&'static SchedulerRegistration> {
    SCHEDULERS.iter().find(|s| s.name == name)
}

/// Data from which a scheduler is created.
pub(crate) struct SchedulerContext<'s> {
    /// Entitlements, as whole numbers.
    pub(crate) weights: &'s [u64],
    /// Number of servers of each resource.
    pub(crate) servers: &'s [u32],
    pub(crate) window: u64,
    pub(crate) grace: u64,
    pub(crate) reading: Reading,
    pub(crate) ties: TieBreak,
    pub(crate) seed: u64,
}

/// State on which a scheduler's decision may depend.
pub(crate) struct SchedulerView<'s> {
    pub(crate) now: u64,
    /// Consumption; the window is that of the last recalculation, or the current one for schedulers that need it
    /// ([`NEEDS_CURRENT_USAGE`](Scheduler::NEEDS_CURRENT_USAGE)).
    pub(crate) used: &'s ResourceUsage,
    /// Whether each resource is a bottleneck, as of the last recalculation.
    pub(crate) bottlenecks: &'s [bool],
}

/// Request in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedRequest {
    pub(crate) client: u32,
    /// Slot of the request; those of a client are numbered by thread.
    pub(crate) slot: u32,
    /// Time at which it arrived, or returned after a quantum.
    pub(crate) arrived: u64,
}

impl QueuedRequest {
    /// Returns whether this request precedes another: first come first served; at one instant the smaller client, then
    /// the smaller slot.
    pub(crate) fn precedes(&self, other: &QueuedRequest) -> bool {
        (self.arrived, self.client, self.slot) < (other.arrived, other.client, other.slot)
    }
}

/// Returns the index of the request that arrived first; 0 if there is none.
pub(crate) fn first_in_queue(queue: &[QueuedRequest]) -> usize {
    (1..queue.len()).fold(0, |best, at| if queue[at].precedes(&queue[best]) { at } else { best })
}

/// Rule that chooses the next request on each resource.
///
/// Times never decrease from call to call. Requests that a scheduler considers equal are served in the order of
/// [`QueuedRequest::precedes`].
pub(crate) trait Scheduler {
    /// Whether the window of consumption is moved to the present before every choice rather than every g.
    const NEEDS_CURRENT_USAGE: bool = false;

    /// Whether the scheduler must be called even if only one request waits, because it records its choices.
    const TRACKS_CHOICES: bool = false;

    fn new(context: &SchedulerContext<'_>) -> Self;

    /// A request of the client arrived at the resource. (A client has several at once only if it has several threads or
    /// asynchronous requests. On a change of resource, the arrival is reported before the departure.)
    fn request_arrives(&mut self, _now: u64, _client: usize, _resource: usize) {}

    /// A request of the client left the resource.
    fn request_leaves(&mut self, _now: u64, _client: usize, _resource: usize) {}

    /// The client has finished.
    fn client_finishes(&mut self, _now: u64, _client: usize) {}

    /// The client was served for `time` nanoseconds.
    fn request_served(&mut self, _client: usize, _resource: usize, _time: u64) {}

    /// A dispatch follows, and the last recalculation is at least g ago.
    fn recalculate(&mut self, _view: &SchedulerView<'_>) {}

    /// Returns the index in the queue (which is not empty and not ordered) of the request to serve next.
    fn choose(&mut self, view: &SchedulerView<'_>, resource: usize, queue: &[QueuedRequest]) -> usize;

    /// Returns the clients' priorities as of the last recalculation, in nanoseconds, `i64::MAX` for infinite; empty if
    /// the scheduler has none.
    fn priorities(&self) -> &[i64] {
        &[]
    }
}
