//! The queues among which a job may be placed: one, or several where its source names a list (`Partition=a,b`).

use std::collections::HashMap;

use evenhand_model::{Span, Workload, queue_names};

use super::lay_out::exceeded_limit;
use super::site::Site;

/// The choice of each row: the queues of the site that it names, in the order in which Slurm tries them.
///
/// Queues of higher priority come first, queues of equal priority in the order in which the job names them. Names that
/// the site does not know are left out; so are, of several, those whose limits of a single job refuse it or whose limits of 0 hold
/// all jobs, unless all do.
#[derive(Clone, Debug)]
pub(crate) struct QueueChoices {
    /// Indices of queues; the first choice is that of jobs in no queue of the site.
    choices: Vec<Vec<u16>>,
    /// By name of the workload: the choice of those who name it.
    of_name: Vec<usize>,
    /// The choices of rows that name several queues.
    of_row: HashMap<usize, usize>,
}

/// Distinct choices, by their queues.
struct Numbered {
    choices: Vec<Vec<u16>>,
    number: HashMap<Vec<u16>, usize>,
}

impl Numbered {
    fn number(&mut self, choice: Vec<u16>) -> usize {
        let choices = &mut self.choices;
        *self.number.entry(choice).or_insert_with_key(|choice| {
            choices.push(choice.clone());
            choices.len() - 1
        })
    }
}

impl QueueChoices {
    pub(super) fn new(workload: &Workload, site: &Site) -> QueueChoices {
        let mut numbered = Numbered { choices: vec![Vec::new()], number: HashMap::from([(Vec::new(), 0)]) };
        let of_name: Vec<usize> = workload.queues().iter().map(|name| numbered.number(named(name, site))).collect();
        let mut of_row = HashMap::new();
        if let Some(column) = workload.columns().queue.as_ref().filter(|_| numbered.choices.iter().any(|c| c.len() > 1))
        {
            for (row, name) in column.iter().enumerate() {
                // Jobs in no queue have a number that no name has.
                let Some(&choice) = of_name.get(*name as usize) else { continue };
                if numbered.choices[choice].len() > 1 {
                    let admitted = admitting(&numbered.choices[choice], workload, site, row);
                    of_row.insert(row, numbered.number(admitted));
                }
            }
        }
        QueueChoices { choices: numbered.choices, of_name, of_row }
    }

    /// How many choices there are.
    pub(super) fn len(&self) -> usize {
        self.choices.len()
    }

    /// The choice of a row: its number, and its queues.
    pub(super) fn of(&self, workload: &Workload, row: usize) -> (usize, &[u16]) {
        let name = workload.columns().queue.as_ref().map(|column| column[row] as usize);
        let of_name = || name.and_then(|name| self.of_name.get(name)).copied().unwrap_or(0);
        // Without lists there is nothing to look up.
        let of_row = if self.of_row.is_empty() { None } else { self.of_row.get(&row).copied() };
        let choice = of_row.unwrap_or_else(of_name);
        (choice, &self.choices[choice])
    }
}

/// The queues of the site that a text names, in order.
fn named(text: &str, site: &Site) -> Vec<u16> {
    let index = |name: &str| site.queues.iter().position(|queue| queue.name == name).map(|at| at as u16);
    // The site may have a queue with a comma in its name.
    if let Some(one) = index(text) {
        return vec![one];
    }
    let mut found = Vec::new();
    for queue in queue_names(text).filter_map(index) {
        if !found.contains(&queue) {
            found.push(queue);
        }
    }
    // Stable: equal priorities keep the order of the text.
    found.sort_by_key(|queue| std::cmp::Reverse(site.queues[usize::from(*queue)].priority));
    found
}

/// Those of several queues whose limits of one job admit a row, and that take jobs; the first if none do, which then refuses it.
fn admitting(queues: &[u16], workload: &Workload, site: &Site, row: usize) -> Vec<u16> {
    let demand: Vec<u64> = workload.amounts(row).iter().map(|amount| amount.0).collect();
    let asked = workload.requested(row).filter(|asked| *asked > Span::ZERO);
    let wall = asked.unwrap_or(workload.columns().duration[row]);
    let admits = |queue: &u16| {
        let rules = &site.queues[usize::from(*queue)];
        let is_within = rules.max_wall.is_none_or(|most| wall <= most) && exceeded_limit(rules, &demand).is_none();
        is_within && !rules.holds_all
    };
    let admitted: Vec<u16> = queues.iter().copied().filter(admits).collect();
    if admitted.is_empty() { queues[..1].to_vec() } else { admitted }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use evenhand_model::{
        Cluster, MachineGroup, Queue, Rational, Resource, ResourceQuantity, Task, Time, WorkloadBuilder,
    };

    use super::*;

    /// A site with queues of a priority and a limit on wall time in hours, and a job of two hours in a queue.
    fn choice(queues: &[(&str, i32, Option<u64>)], name: Option<&str>) -> Vec<String> {
        let queue = |&(name, priority, hours): &(&str, i32, Option<u64>)| Queue {
            priority,
            max_wall: hours.map(|hours| Span::from_secs(3600 * hours)),
            ..Queue::new(name)
        };
        let machines = MachineGroup {
            name: "m".into(),
            count: 1,
            capacity: vec![ResourceQuantity::parse("4").unwrap()],
            speed: Rational::ONE,
            weight: 1,
            properties: Vec::new(),
            hosts: Vec::new(),
        };
        let cluster = Cluster {
            resources: vec!["cpu".into()],
            groups: vec![machines],
            queues: queues.iter().map(queue).collect(),
            ..Cluster::default()
        };
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
        let (duration, amounts) = (Span::from_secs(7200), [1_000_000_000]);
        builder.push(&Task { submit: Time::ZERO, duration, queue: name, amounts: &amounts, ..Task::default() });
        let workload = builder.finish().unwrap();
        let site = Site::machines(&cluster, workload.resources()).unwrap();
        let choices = QueueChoices::new(&workload, &site);
        let (_, queues) = choices.of(&workload, 0);
        queues.iter().map(|queue| site.queues[usize::from(*queue)].name.clone()).collect()
    }

    #[test]
    fn queues_of_a_list_are_ordered_by_priority_and_then_as_named() {
        let queues = [("a", 0, None), ("b", 5, None), ("c", 0, None), ("x,y", 0, None)];
        assert_eq!(choice(&queues, Some("c,a,b")), ["b", "c", "a"]);
        assert_eq!(choice(&queues, Some("c, unknown,c,")), ["c"]);
        assert_eq!(choice(&queues, Some("x,y")), ["x,y"], "a queue may have a comma in its name");
        assert_eq!(choice(&queues, Some("unknown")), Vec::<String>::new());
        assert_eq!(choice(&queues, None), Vec::<String>::new());
    }

    #[test]
    fn queues_that_refuse_a_job_are_left_out_unless_all_do() {
        let queues = [("short", 5, Some(1)), ("tiny", 3, Some(1)), ("long", 0, Some(9))];
        assert_eq!(choice(&queues, Some("short,long,tiny")), ["long"]);
        assert_eq!(choice(&queues, Some("tiny,short")), ["short"]);
        assert_eq!(choice(&queues, Some("short")), ["short"]);
    }
}
