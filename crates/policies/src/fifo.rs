//! First come, first served: the user whose first waiting task was submitted earliest.

use evenhand_model::{Time, UserId};

use crate::kinetic::WinnerTree;
use crate::{Job, Policy, PolicyContext, Registration, Standing};

pub(crate) const REGISTRATION: Registration =
    Registration::new("fifo", "the task submitted first goes first, whichever user submitted it", |context| {
        Ok(Box::new(Fifo::new(context)))
    });

struct Fifo {
    first: Vec<Time>,
    order: WinnerTree,
}

impl Fifo {
    fn new(context: &PolicyContext<'_>) -> Fifo {
        let users = context.weights.len();
        Fifo { first: vec![Time::ZERO; users], order: WinnerTree::new(users) }
    }
}

impl Policy for Fifo {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        let first = first.map(|job| job.submitted);
        if let Some(submitted) = first {
            self.first[user.index()] = submitted;
        }
        let key = |u: u32| (self.first[u as usize], u);
        self.order.touch(user.0, first.is_some(), |a, b| key(a) < key(b));
    }

    fn started(&mut self, _now: Time, _job: &Job<'_>) {}

    fn finished(&mut self, _now: Time, _job: &Job<'_>) {}

    fn next(&mut self, _now: Time) -> Option<UserId> {
        self.order.winner().map(UserId)
    }

    fn standing(&mut self, _now: Time, user: UserId) -> Standing {
        Standing { key: self.first[user.index()].secs_f64(), ..Standing::default() }
    }
}
