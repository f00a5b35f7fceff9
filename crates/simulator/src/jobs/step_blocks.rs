//! Amounts as a function of time that has many steps: blocks of steps, and the least and the most in each.

use super::step_function::StepFunction;

/// No block has more steps; a full one becomes two.
const STEPS: usize = if cfg!(debug_assertions) { 4 } else { 32 };

/// Several amounts as a step function of time, with a count at each step; the last step has no end.
///
/// A change meets each block between its ends once, and a search passes over those whose least or most decides for all of their
/// steps. With n steps a change costs O(n / [`STEPS`] + [`STEPS`]), where an array of steps costs O(n).
#[derive(Clone, Debug)]
pub(super) struct StepBlocks {
    /// Where blocks begin, increasing.
    begins: Vec<u64>,
    blocks: Vec<Block>,
}

/// Successive steps, one at least.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Amounts less `more` of each, modulo 2^64.
    steps: StepFunction,
    more: Vec<u64>,
    least: Vec<u64>,
    most: Vec<u64>,
    counts: Vec<u32>,
    /// The sum of the counts.
    counted: u32,
}

/// A step: its block, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    block: usize,
    step: usize,
}

impl Block {
    fn times(&self) -> &[u64] {
        self.steps.times()
    }

    /// An amount in a step.
    #[inline]
    pub(super) fn amount(&self, step: usize, at: usize) -> u64 {
        self.steps.step(step)[at].wrapping_add(self.more[at])
    }

    /// The least of an amount in its steps.
    #[inline]
    pub(super) fn least(&self, at: usize) -> u64 {
        self.least[at]
    }

    /// The most of an amount in its steps.
    #[inline]
    pub(super) fn most(&self, at: usize) -> u64 {
        self.most[at]
    }

    fn step(&self, step: usize) -> impl Iterator<Item = u64> + '_ {
        (0..self.more.len()).map(move |at| self.amount(step, at))
    }

    /// Finds the least and the most again.
    fn bound(&mut self) {
        self.least.fill(u64::MAX);
        self.most.fill(0);
        for step in 0..self.steps.times().len() {
            for (at, amount) in self.steps.step(step).iter().enumerate() {
                let amount = amount.wrapping_add(self.more[at]);
                self.least[at] = self.least[at].min(amount);
                self.most[at] = self.most[at].max(amount);
            }
        }
    }

    /// Parts the steps from one on from the others.
    fn split_off(&mut self, step: usize) -> Block {
        let counts = self.counts.split_off(step);
        let mut new = Block {
            steps: self.steps.split_off(step),
            counted: counts.iter().sum(),
            counts,
            more: self.more.clone(),
            least: self.least.clone(),
            most: self.most.clone(),
        };
        self.counted -= new.counted;
        self.bound();
        new.bound();
        new
    }

    /// Adds the steps of the next block.
    fn append(&mut self, next: Block) {
        let more = |at: usize| next.more[at].wrapping_sub(self.more[at]);
        self.steps.append(next.steps, |amount, at| amount.wrapping_add(more(at)));
        self.counts.extend_from_slice(&next.counts);
        self.counted += next.counted;
        self.bound();
    }

    /// Removes the steps before one.
    fn drop_before(&mut self, step: usize) {
        self.steps.drop_before(step);
        self.counted -= self.counts.drain(..step).sum::<u32>();
        self.bound();
    }
}

impl StepBlocks {
    /// The same amounts at all times, and a count of 0.
    pub(super) fn new(amounts: Vec<u64>) -> StepBlocks {
        let block = Block {
            more: vec![0; amounts.len()],
            least: amounts.clone(),
            most: amounts.clone(),
            counts: vec![0],
            counted: 0,
            steps: StepFunction::new(amounts),
        };
        StepBlocks { begins: vec![0], blocks: vec![block] }
    }

    fn block_at(&self, time: u64) -> usize {
        self.begins.partition_point(|begin| *begin <= time) - 1
    }

    /// The step in which an instant lies.
    #[inline]
    fn at(&self, time: u64) -> At {
        let block = self.block_at(time);
        At { block, step: self.blocks[block].steps.at(time) }
    }

    /// The first instant from one on in a step that has what is looked for; `has` answers that for a step of a block, and for a block
    /// whether it may.
    #[inline]
    pub(super) fn first(&self, from: u64, mut has: impl FnMut(&Block, Option<usize>) -> bool) -> Option<u64> {
        let At { block: first, step } = self.at(from);
        for (number, block) in self.blocks.iter().enumerate().skip(first) {
            let begin = if number == first { step } else { 0 };
            if has(block, None)
                && let Some(step) = (begin..block.times().len()).find(|step| has(block, Some(*step)))
            {
                return Some(block.times()[step].max(from));
            }
        }
        None
    }

    /// The last step between two instants of which `find` finds something, and where the step after it begins; in blocks alone of which
    /// `may` holds.
    #[inline]
    pub(super) fn last<T>(
        &self,
        from: u64,
        to: u64,
        may: impl Fn(&Block) -> bool,
        find: impl Fn(&Block, usize) -> Option<T>,
    ) -> Option<(T, Option<u64>)> {
        let At { block: last, step } = self.at(to - 1);
        for (number, block) in self.blocks[..=last].iter().enumerate().rev() {
            let end = if number == last { step + 1 } else { block.times().len() };
            let steps = if may(block) { 0..end } else { 0..0 };
            for step in steps.rev() {
                if let Some(found) = find(block, step) {
                    let next = block.times().get(step + 1).or(self.begins.get(number + 1));
                    return Some((found, next.copied()));
                }
                if block.times()[step] <= from {
                    return None;
                }
            }
            if self.begins[number] <= from {
                return None;
            }
        }
        None
    }

    /// Makes a step begin at an instant, with a count of 0.
    pub(super) fn cut(&mut self, time: u64) {
        let block = self.block_at(time);
        let cut = &mut self.blocks[block];
        let step = cut.steps.cut(time);
        if cut.counts.len() == cut.times().len() {
            return;
        }
        cut.counts.insert(step, 0);
        if cut.counts.len() > STEPS {
            let new = cut.split_off(STEPS / 2);
            self.begins.insert(block + 1, new.times()[0]);
            self.blocks.insert(block + 1, new);
        }
    }

    /// Changes the count of the step that begins at an instant.
    pub(super) fn count(&mut self, time: u64, new: impl Fn(u32) -> u32) {
        let At { block, step } = self.at(time);
        let counted = &mut self.blocks[block];
        let count = &mut counted.counts[step];
        counted.counted -= *count;
        *count = new(*count);
        counted.counted += *count;
    }

    /// Changes the amounts from the step that begins at `from` until the one that begins at `to`: `new` has the amount of
    /// before and its place, and adds the same to all of that place.
    pub(super) fn change(&mut self, from: u64, to: u64, new: impl Fn(u64, usize) -> u64) {
        let (first, end) = (self.at(from), self.at(to));
        for number in first.block..=end.block {
            let block = &mut self.blocks[number];
            let begin = if number == first.block { first.step } else { 0 };
            let until = if number == end.block { end.step } else { block.times().len() };
            if until - begin == block.times().len() {
                for at in 0..block.more.len() {
                    let least = new(block.least[at], at);
                    let more = least.wrapping_sub(block.least[at]);
                    block.more[at] = block.more[at].wrapping_add(more);
                    block.least[at] = least;
                    block.most[at] = new(block.most[at], at);
                }
                continue;
            }
            let more = &block.more;
            let changed = |amount: u64, at: usize| new(amount.wrapping_add(more[at]), at).wrapping_sub(more[at]);
            block.steps.change(begin, until, changed);
            if begin < until {
                block.bound();
            }
        }
    }

    /// Makes the step that begins at an instant one with the step before, if their amounts do not differ and its count is 0.
    pub(super) fn join(&mut self, time: u64) {
        let At { block, step } = self.at(time);
        let joined = &self.blocks[block];
        let before = match step {
            0 if block == 0 => return,
            0 => (&self.blocks[block - 1], self.blocks[block - 1].times().len() - 1),
            _ => (joined, step - 1),
        };
        if joined.counts[step] > 0 || !joined.step(step).eq(before.0.step(before.1)) {
            return;
        }
        if joined.times().len() == 1 {
            self.begins.remove(block);
            self.blocks.remove(block);
            return;
        }
        let joined = &mut self.blocks[block];
        joined.steps.remove(step);
        joined.counts.remove(step);
        joined.bound();
        self.begins[block] = joined.times()[0];
        // So that blocks do not become many and small.
        let steps = joined.times().len();
        if self.blocks.get(block + 1).is_some_and(|next| steps + next.times().len() <= STEPS / 2) {
            let next = self.blocks.remove(block + 1);
            self.begins.remove(block + 1);
            self.blocks[block].append(next);
        }
    }

    /// Drops steps before an instant.
    pub(super) fn forget(&mut self, before: u64) {
        let At { block, step } = self.at(before);
        if block > 0 {
            self.blocks.drain(..block);
            self.begins.drain(..block);
        }
        if step > STEPS / 8 {
            self.blocks[0].drop_before(step);
            self.begins[0] = self.blocks[0].times()[0];
        }
    }

    /// Where the first step after an instant begins that has a count.
    pub(super) fn next_counted(&self, after: u64) -> Option<u64> {
        let at = self.at(after);
        let firsts = std::iter::once(at.step + 1).chain(std::iter::repeat(0));
        let counted = self.blocks[at.block..].iter().zip(firsts).filter(|(block, _)| block.counted > 0);
        let mut steps = counted.flat_map(|(block, first)| block.times().iter().zip(&block.counts).skip(first));
        steps.find(|(_, count)| **count > 0).map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The steps in their order: where each begins, its amounts, and its count.
    fn steps(of: &StepBlocks) -> Vec<(u64, Vec<u64>, u32)> {
        let of_block = |block: &Block| -> Vec<_> {
            let step = |i: usize| (block.times()[i], block.step(i).collect(), block.counts[i]);
            (0..block.times().len()).map(step).collect()
        };
        of.blocks.iter().flat_map(of_block).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn is_the_same_function_as_one_array_of_steps(
            jobs in prop::collection::vec((0u64..40, 1u64..20, 0u64..5, 0u64..5), 1..40),
            ends in prop::collection::vec((any::<prop::sample::Index>(), 0u64..3), 1..40),
        ) {
            let mut blocks = StepBlocks::new(vec![1_000, 2_000]);
            let mut model = StepFunction::new(vec![1_000, 2_000]);
            let mut counted = std::collections::BTreeMap::<u64, u32>::new();
            let mut held = Vec::new();
            let mut now = 0;
            let mut ends = ends.into_iter();
            for (from, length, a, b) in jobs {
                let (from, to, amounts) = (now + from, now + from + length, [a, b]);
                held.push((from, to, amounts));
                blocks.cut(from);
                blocks.cut(to);
                blocks.count(to, |count| count + 1);
                blocks.change(from, to, |free, at| free - amounts[at]);
                let (first, end) = (model.cut(from), model.cut(to));
                model.change(first, end, |free, at| free - amounts[at]);
                *counted.entry(to).or_default() += 1;

                let Some((which, passes)) = ends.next() else { continue };
                let (from, to, amounts) = held.swap_remove(which.index(held.len()));
                now += passes;
                blocks.forget(now);
                held.retain(|(_, to, _)| *to > now);
                counted.retain(|time, _| *time > now);
                let from = from.max(now);
                if from < to {
                    blocks.cut(from);
                    blocks.cut(to);
                    blocks.count(to, |count| count - 1);
                    blocks.change(from, to, |free, at| free + amounts[at]);
                    blocks.join(to);
                    blocks.join(from);
                    let (first, end) = (model.cut(from), model.cut(to));
                    model.change(first, end, |free, at| free + amounts[at]);
                    counted.entry(to).and_modify(|count| *count -= 1);
                }

                let all = steps(&blocks);
                prop_assert!(all.is_sorted_by(|a, b| a.0 < b.0));
                prop_assert!(blocks.begins.iter().zip(&blocks.blocks).all(|(begin, block)| *begin == block.times()[0]));
                prop_assert!(blocks.blocks.iter().all(|block| block.times().len() <= STEPS));
                for (time, amounts, count) in all.iter().filter(|step| step.0 > now) {
                    prop_assert_eq!(amounts.as_slice(), model.step(model.at(*time)));
                    prop_assert_eq!(*count, counted.get(time).copied().unwrap_or(0));
                }
                for time in now..now + 60 {
                    let At { block, step } = blocks.at(time);
                    let amounts: Vec<u64> = blocks.blocks[block].step(step).collect();
                    prop_assert_eq!(amounts.as_slice(), model.step(model.at(time)));
                    let next = counted.range(time + 1..).find(|(_, count)| **count > 0);
                    prop_assert_eq!(blocks.next_counted(time), next.map(|(time, _)| *time));
                }
                for from in now..now + 60 {
                    let is_enough = |amount: u64| amount >= 995;
                    let model_has = |time: &u64| is_enough(model.step(model.at(*time))[0]);
                    let first = blocks.first(from, |block, step| is_enough(step.map_or(block.most(0), |i| block.amount(i, 0))));
                    prop_assert_eq!(first, (from..from + 200).find(model_has));
                    let to = from + 7;
                    let find = |block: &Block, step: usize| Some(block.times()[step]).filter(|_| !is_enough(block.amount(step, 0)));
                    let last = blocks.last(from, to, |block| !is_enough(block.least(0)), find);
                    let time = (from..to).rev().find(|time| !model_has(time));
                    let begin = time.map(|time| all.iter().rev().find(|step| step.0 <= time).unwrap().0);
                    prop_assert_eq!(last.map(|last| last.0), begin);
                    if let Some((begin, next)) = last {
                        prop_assert_eq!(next, all.iter().find(|step| step.0 > begin).map(|step| step.0));
                    }
                }
                for block in &blocks.blocks {
                    for at in 0..2 {
                        let amounts = || (0..block.times().len()).map(|step| block.amount(step, at));
                        prop_assert_eq!(Some(block.least(at)), amounts().min());
                        prop_assert_eq!(Some(block.most(at)), amounts().max());
                    }
                    prop_assert_eq!(block.counted, block.counts.iter().sum::<u32>());
                }
            }
        }
    }
}
