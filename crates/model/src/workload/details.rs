//! What a log states of a job in words.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

/// A statement of a log about a job, in words. Each is an optional column of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// The chunks of a job whose chunks differ, in the notation of [`Chunk::parse_all`](crate::Chunk::parse_all):
    /// `1:cpu=4+2:cpu=8`, in the workload's units.
    Chunks,
    /// What the job requires of its machines, in the notation of [`Requirements`].
    Requires,
    /// The quality of service.
    Qos,
    /// The machines on which the job ran: a list of hosts such as `n[01-03,7],g1`.
    Machines,
    /// How the job ended.
    Outcome,
    /// The reservation in which the job ran.
    Reservation,
    /// The licences that the job holds, in the notation of [`parse_licences`](crate::parse_licences).
    Licences,
    /// The array of which the job is a task, in the notation of [`JobArray::parse`](crate::JobArray::parse).
    Array,
    /// The nice value, a whole number by which its user lowers the job's priority: `100`.
    Nice,
}

impl Detail {
    /// Every detail.
    pub const ALL: [Detail; 9] = [
        Detail::Chunks,
        Detail::Requires,
        Detail::Qos,
        Detail::Machines,
        Detail::Outcome,
        Detail::Reservation,
        Detail::Licences,
        Detail::Array,
        Detail::Nice,
    ];

    /// Returns the name of the column.
    pub fn name(self) -> &'static str {
        match self {
            Detail::Chunks => "chunks",
            Detail::Requires => "requires",
            Detail::Qos => "qos",
            Detail::Machines => "machines",
            Detail::Outcome => "outcome",
            Detail::Reservation => "reservation",
            Detail::Licences => "licences",
            Detail::Array => "array",
            Detail::Nice => "nice",
        }
    }
}

/// A value for each [`Detail`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details<T>([T; Detail::ALL.len()]);

impl<T> Details<T> {
    /// Returns the details with the value that a function has for each.
    pub fn from_fn(mut value: impl FnMut(Detail) -> T) -> Details<T> {
        Details(std::array::from_fn(|i| value(Detail::ALL[i])))
    }

    /// Returns every detail with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Detail, &T)> {
        Detail::ALL.into_iter().zip(&self.0)
    }

    /// Returns every detail with its value, which may be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Detail, &mut T)> {
        Detail::ALL.into_iter().zip(&mut self.0)
    }

    /// Returns the values in the order of [`Detail::ALL`].
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }

    /// Returns the results of a function for each value.
    pub fn map<U>(self, value: impl FnMut(T) -> U) -> Details<U> {
        Details(self.0.map(value))
    }
}

impl<T> Index<Detail> for Details<T> {
    type Output = T;

    fn index(&self, detail: Detail) -> &T {
        &self.0[detail as usize]
    }
}

impl<T> IndexMut<Detail> for Details<T> {
    fn index_mut(&mut self, detail: Detail) -> &mut T {
        &mut self.0[detail as usize]
    }
}

/// The tasks of a job, which are not divided evenly among its machines: a machine has as many as are free there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTasks {
    /// The processors of each task.
    pub processors: NonZeroU32,
    /// Whether they are on as many machines as the job has nodes, at least one on each; else they may be on any number.
    pub on_its_nodes: bool,
}

impl JobTasks {
    /// How the word begins of tasks that may be on any number of machines, and of those on the job's nodes; the processors of each
    /// follow.
    const BEGINNINGS: [&'static str; 2] = ["#tasks=", "#tasks-on-nodes="];

    /// Returns the word of such a job among the [requirements](Requirements).
    pub fn word(self) -> String {
        format!("{}{}", JobTasks::BEGINNINGS[usize::from(self.on_its_nodes)], self.processors)
    }

    /// Whether the tasks of a word are on the job's nodes, and their processors as written; `None` for another word.
    fn split(word: &str) -> Option<(bool, &str)> {
        let mut all = [false, true].into_iter().zip(JobTasks::BEGINNINGS);
        all.find_map(|(on_its_nodes, begin)| Some((on_its_nodes, word.strip_prefix(begin)?)))
    }
}

/// What a job requires of its machines: words, separated by commas, each of which a machine must have as a property.
///
/// `a|b` requires one of the two, `^a` the absence of a, and `#excl` that the job has its machines for itself. `#tasks=2` requires
/// nothing: the job's tasks of two processors each may be on any number of machines. With `#tasks-on-nodes=2` they are on as many
/// machines as the job has nodes, at least one on each. `gpu:h100` requires GPUs of a type, whatever the case of its letters.
///
/// ```
/// use evenhand_model::Requirements;
/// let found = Requirements::parse("cl_zewura,ssd|nvme,^node12,#excl,#scatter");
/// assert_eq!(found.wanted, [vec!["cl_zewura"], vec!["ssd", "nvme"]]);
/// assert_eq!(found.unwanted, ["node12"]);
/// assert!(found.whole_machines && found.separate_machines);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Of each of these a machine must have one.
    pub wanted: Vec<Vec<String>>,
    /// A machine must have none of these.
    pub unwanted: Vec<String>,
    /// The job has its machines for itself.
    pub whole_machines: bool,
    /// No two chunks of the job are on one machine.
    pub separate_machines: bool,
    /// The job's tasks, if they are not divided evenly among its machines.
    pub tasks: Option<JobTasks>,
}

impl Requirements {
    /// The word of a job that has its machines for itself.
    pub const WHOLE_MACHINES: &'static str = "#excl";

    /// The word of a job whose chunks are each on a machine of its own.
    pub const SEPARATE_MACHINES: &'static str = "#scatter";

    /// What the word of a type of GPUs begins with.
    const GPU: &'static str = "gpu:";

    /// Returns the word of machines with GPUs of a type, such as `gpu:h100`, in small letters; `None` if the type has a character
    /// that separates words.
    ///
    /// ```
    /// use evenhand_model::Requirements;
    /// assert_eq!(Requirements::gpu_type("H100").as_deref(), Some("gpu:h100"));
    /// assert_eq!(Requirements::gpu_type("a,b"), None);
    /// ```
    pub fn gpu_type(name: &str) -> Option<String> {
        let is_name =
            !name.is_empty() && !name.contains(|c: char| ",|".contains(c) || c.is_whitespace() || c.is_control());
        is_name.then(|| format!("{}{}", Requirements::GPU, name.to_ascii_lowercase()))
    }

    /// Returns whether a property of a machine is the required word: the same text, or a type of GPUs whose letters differ in case
    /// only.
    ///
    /// ```
    /// use evenhand_model::Requirements;
    /// assert!(Requirements::is_met_by("gpu:H100", "gpu:h100") && !Requirements::is_met_by("SSD", "ssd"));
    /// ```
    pub fn is_met_by(word: &str, property: &str) -> bool {
        word == property || (word.starts_with(Requirements::GPU) && word.eq_ignore_ascii_case(property))
    }

    /// Parses the words.
    pub fn parse(text: &str) -> Requirements {
        let mut found = Requirements::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.strip_prefix('^') {
                _ if word == Requirements::WHOLE_MACHINES => found.whole_machines = true,
                _ if word == Requirements::SEPARATE_MACHINES => found.separate_machines = true,
                None if let Some((on_its_nodes, processors)) = JobTasks::split(word) => {
                    found.tasks = processors.parse().ok().map(|processors| JobTasks { processors, on_its_nodes });
                }
                Some(unwanted) => found.unwanted.push(unwanted.to_string()),
                None => found.wanted.push(word.split('|').map(str::to_string).collect()),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_found_by_their_place() {
        let names = Details::from_fn(Detail::name);
        for detail in Detail::ALL {
            assert_eq!(names[detail], detail.name());
        }
        assert_eq!(names.iter().map(|(detail, name)| (detail.name(), *name)).filter(|(a, b)| a != b).count(), 0);
        assert_eq!(Requirements::parse(" , "), Requirements::default());
        let tasks = |text: &str| Requirements::parse(text).tasks;
        for on_its_nodes in [false, true] {
            let job = JobTasks { processors: NonZeroU32::MIN.saturating_add(2), on_its_nodes };
            assert_eq!(tasks(&format!("a,{}", job.word())), Some(job));
        }
        assert_eq!([tasks("#tasks=0"), tasks("#tasks-on-nodes=x"), tasks("a")], [None; 3]);
    }
}
