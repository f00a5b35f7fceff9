//! First come, first served: the user whose first waiting task was submitted earliest.

use evenhand_model::{Time, UserId};

use crate::kinetic::WinnerTree;
use crate::{Job, Policy, PolicyContext, Registration, Standing, TieRule};

pub(crate) const REGISTRATION: Registration =
    Registration::new("fifo", "the task submitted first goes first, whichever user submitted it", |context| {
        Ok(Box::new(Fifo::new(context)))
    })
    .ignoring_weights();

pub(crate) struct Fifo {
    first: TieRule,
    order: WinnerTree,
}

impl Fifo {
    pub(crate) fn new(context: &PolicyContext<'_>) -> Fifo {
        let users = context.weights.len();
        Fifo { first: TieRule::new(users), order: WinnerTree::new(users) }
    }
}

impl Policy for Fifo {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.first.set_first_pending(user, first);
        let submitted = |user: UserId| self.first.place(user).submitted;
        self.order.touch(user.0, first.is_some(), |a, b| {
            let (a, b) = (UserId(a), UserId(b));
            submitted(a).cmp(&submitted(b)).then_with(|| self.first.compare(a, b)).is_lt()
        });
    }

    fn started(&mut self, _now: Time, _job: &Job<'_>) {}

    fn finished(&mut self, _now: Time, _job: &Job<'_>) {}

    fn next(&mut self, _now: Time) -> Option<UserId> {
        self.order.winner().map(UserId)
    }

    fn key_depends_on_job(&self) -> bool {
        false
    }

    fn standing(&mut self, _now: Time, user: UserId) -> Standing {
        Standing { key: self.first.place(user).submitted.secs_f64(), ..Standing::default() }
    }
}
