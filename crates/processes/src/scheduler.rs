//! What every scheduler looks like to the simulator, and the list of all of them.

use crate::recording::Observer;
use crate::scenario::{Reading, Scenario, TieBreak};
use crate::simulation::{Outcome, simulate};
use crate::usage_window::ResourceUsage;

/// A scheduler that can be chosen by name.
pub struct SchedulerRegistration {
    /// What users type.
    pub name: &'static str,
    /// Who goes first, in one line.
    pub about: &'static str,
    pub(crate) run: fn(&Scenario, u64, &mut dyn Observer) -> Outcome,
}

/// Every scheduler, the paper's first. A new one is a file and a line here.
pub static SCHEDULERS: &[SchedulerRegistration] = &[
    SchedulerRegistration {
        name: "bottleneck",
        about: "one priority for all resources: the least gap between entitlement and use among the bottlenecks, \
                largest first (paper 000)",
        run: simulate::<crate::schedulers::bottleneck_priority::BottleneckPriority>,
    },
    SchedulerRegistration {
        name: "round-robin",
        about: "each resource by itself: who queued first",
        run: simulate::<crate::schedulers::round_robin::RoundRobin>,
    },
    SchedulerRegistration {
        name: "lottery",
        about: "each resource by itself: at random, with chances in proportion to entitlements",
        run: simulate::<crate::schedulers::lottery::Lottery>,
    },
    SchedulerRegistration {
        name: "stride",
        about: "each resource by itself: the least virtual time, which grows by use over entitlement",
        run: simulate::<crate::schedulers::stride::Stride>,
    },
    SchedulerRegistration {
        name: "least-use",
        about: "each resource by itself: the least use of it over entitlement in the window (max-min)",
        run: simulate::<crate::schedulers::minimal_consumption::MinimalConsumption>,
    },
    SchedulerRegistration {
        name: "dominant-share",
        about: "all resources alike: the least dominant share of time over entitlement in the window (as DRF)",
        run: simulate::<crate::schedulers::dominant_share::DominantShare>,
    },
];

/// The scheduler of that name.
pub fn scheduler_named(name: &str) -> Option<&'static SchedulerRegistration> {
    SCHEDULERS.iter().find(|s| s.name == name)
}

/// What a scheduler is built from.
pub(crate) struct SchedulerContext<'s> {
    /// Entitlements, as whole numbers.
    pub(crate) weights: &'s [u64],
    /// Servers of each resource.
    pub(crate) servers: &'s [u32],
    pub(crate) window: u64,
    pub(crate) grace: u64,
    pub(crate) reading: Reading,
    pub(crate) ties: TieBreak,
    pub(crate) seed: u64,
}

/// What a scheduler may look at when it decides.
pub(crate) struct SchedulerView<'s> {
    pub(crate) now: u64,
    /// ResourceUsage; the window is that of the last recalculation, or of now for schedulers that are
    /// [`NEEDS_CURRENT_USAGE`](Scheduler::NEEDS_CURRENT_USAGE).
    pub(crate) used: &'s ResourceUsage,
    /// Which resources are bottlenecks, as of the last recalculation.
    pub(crate) bottlenecks: &'s [bool],
}

/// A request in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedRequest {
    pub(crate) client: u32,
    /// Which of the requests that can be under way at once; those of a client are numbered by thread.
    pub(crate) slot: u32,
    /// When it came, or came back after a quantum.
    pub(crate) arrived: u64,
}

impl QueuedRequest {
    /// First come first; at one instant the smaller client, then the smaller request.
    pub(crate) fn precedes(&self, other: &QueuedRequest) -> bool {
        (self.arrived, self.client, self.slot) < (other.arrived, other.client, other.slot)
    }
}

/// The request that came first; 0 if there is none.
pub(crate) fn first_in_queue(queue: &[QueuedRequest]) -> usize {
    (1..queue.len()).fold(0, |best, at| if queue[at].precedes(&queue[best]) { at } else { best })
}

/// Who is served next on each resource.
///
/// Times never decrease from call to call. Whatever it decides by, requests that it holds equal go in the
/// order of [`QueuedRequest::before`].
pub(crate) trait Scheduler {
    /// Whether the window of use is brought to the present before every choice, not only every g.
    const NEEDS_CURRENT_USAGE: bool = false;

    /// Whether it must be asked even if only one request waits, because it notes whom it chose.
    const TRACKS_CHOICES: bool = false;

    fn new(context: &SchedulerContext<'_>) -> Self;

    /// A request of the client came to the resource. (A client has several at once only if it has several
    /// threads or does not wait for some. A change of resource is told as coming first and leaving then.)
    fn request_arrives(&mut self, _now: u64, _client: usize, _resource: usize) {}

    /// A request of the client left the resource.
    fn request_leaves(&mut self, _now: u64, _client: usize, _resource: usize) {}

    /// The client has finished.
    fn client_finishes(&mut self, _now: u64, _client: usize) {}

    /// The client was served so long.
    fn request_served(&mut self, _client: usize, _resource: usize, _time: u64) {}

    /// A dispatch comes, and the last recalculation is at least g ago.
    fn recalculate(&mut self, _view: &SchedulerView<'_>) {}

    /// The place in the queue (which is not empty and in no order) of who goes next.
    fn choose(&mut self, view: &SchedulerView<'_>, resource: usize, queue: &[QueuedRequest]) -> usize;

    /// The clients' priorities as of the last recalculation, in nanoseconds, `i64::MAX` for infinite; empty
    /// if it has none.
    fn priorities(&self) -> &[i64] {
        &[]
    }
}
