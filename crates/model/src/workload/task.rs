//! One row, as a reader of a trace has it.

use super::Nano;
use super::details::Details;
use crate::{Span, Time};

/// One task, or several identical ones, for [`WorkloadBuilder::push`](crate::WorkloadBuilder::push).
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The time of submission.
    pub submit: Time,
    /// The original start, if it is known.
    pub start: Option<Time>,
    /// The run time.
    pub duration: Span,
    /// When it could first have started, after holds and dependencies, if it is known.
    pub eligible: Option<Time>,
    /// The requested wall time, if it is known.
    pub requested: Option<Span>,
    /// The name of the user.
    pub user: &'a str,
    /// The name of the account (group, project), if it has one.
    pub account: Option<&'a str>,
    /// The name of the queue (partition), if it has one.
    pub queue: Option<&'a str>,
    /// The amounts that the task holds while it runs, in the order of the builder's resources.
    pub amounts: &'a [Nano],
    /// The amounts that it requested, if the source states these apart from those that it holds.
    pub requested_amounts: Option<&'a [Nano]>,
    /// The number of identical tasks that were submitted together, at least 1.
    pub count: u32,
    /// The number of nodes on which the task runs at once, in equal parts, if it is known.
    pub nodes: Option<u32>,
    /// What its source states of it in words.
    pub details: Details<Option<&'a str>>,
}

impl Default for Task<'_> {
    fn default() -> Self {
        Task {
            submit: Time::ZERO,
            start: None,
            eligible: None,
            duration: Span::ZERO,
            requested: None,
            user: "",
            account: None,
            queue: None,
            amounts: &[],
            requested_amounts: None,
            count: 1,
            nodes: None,
            details: Details::default(),
        }
    }
}
