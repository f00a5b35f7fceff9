//! Amounts as a function of time that changes at instants alone.

/// Several amounts as a step function of time; the last step has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepFunction {
    /// Number of amounts in a step.
    width: usize,
    /// Where steps begin, increasing.
    times: Vec<u64>,
    /// Amounts, step by step.
    amounts: Vec<u64>,
}

impl StepFunction {
    /// The same amounts at all times.
    pub(super) fn new(amounts: Vec<u64>) -> StepFunction {
        StepFunction { width: amounts.len(), times: vec![0], amounts }
    }

    /// Where steps begin, increasing.
    #[inline]
    pub(super) fn times(&self) -> &[u64] {
        &self.times
    }

    /// The amounts in a step.
    #[inline]
    pub(super) fn step(&self, i: usize) -> &[u64] {
        &self.amounts[i * self.width..][..self.width]
    }

    /// The step in which an instant lies.
    #[inline]
    pub(super) fn at(&self, time: u64) -> usize {
        self.times.partition_point(|t| *t <= time) - 1
    }

    /// Makes a step begin at an instant; returns which.
    pub(super) fn cut(&mut self, time: u64) -> usize {
        let i = self.at(time);
        if self.times[i] == time {
            return i;
        }
        self.times.insert(i + 1, time);
        let (from, end) = (i * self.width, self.amounts.len());
        self.amounts.resize(end + self.width, 0);
        self.amounts.copy_within(from..end, from + self.width);
        i + 1
    }

    /// Changes the amounts from one step to another, without that one: `new` has the amount of before and its place.
    pub(super) fn change(&mut self, first: usize, end: usize, new: impl Fn(u64, usize) -> u64) {
        for step in self.amounts[first * self.width..end * self.width].chunks_exact_mut(self.width) {
            step.iter_mut().enumerate().for_each(|(at, amount)| *amount = new(*amount, at));
        }
    }

    /// Makes a step one with the step before, if their amounts do not differ; returns whether it did so.
    pub(super) fn join(&mut self, i: usize) -> bool {
        let joins = i > 0 && self.step(i) == self.step(i - 1);
        if joins {
            self.remove(i);
        }
        joins
    }

    /// Removes a step, so that the one before takes its time as well.
    pub(super) fn remove(&mut self, i: usize) {
        self.times.remove(i);
        self.amounts.drain(i * self.width..(i + 1) * self.width);
    }

    /// Parts the steps from one on from those before.
    pub(super) fn split_off(&mut self, i: usize) -> StepFunction {
        let (times, amounts) = (self.times.split_off(i), self.amounts.split_off(i * self.width));
        StepFunction { width: self.width, times, amounts }
    }

    /// Adds the steps of a function that begins after the last one, with its amounts changed as by [`change`](Self::change).
    pub(super) fn append(&mut self, mut next: StepFunction, new: impl Fn(u64, usize) -> u64) {
        next.change(0, next.times.len(), new);
        self.times.append(&mut next.times);
        self.amounts.append(&mut next.amounts);
    }

    /// Drops the steps before one.
    pub(super) fn drop_before(&mut self, i: usize) {
        self.times.drain(..i);
        self.amounts.drain(..i * self.width);
    }

    /// Makes the first step stand for all time before, too.
    pub(super) fn begin_at_zero(&mut self) {
        self.times[0] = 0;
    }

    /// All numbers that make up the function.
    pub(super) fn parts(&self) -> impl Iterator<Item = u64> + '_ {
        self.times.iter().chain(&self.amounts).copied()
    }
}
