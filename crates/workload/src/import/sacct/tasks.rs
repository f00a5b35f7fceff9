//! Whether a job asked for tasks and left to Slurm how many of them run on each node.

use std::num::NonZeroU32;

use evenhand_model::JobTasks;

use super::command_options;

/// What a source states of a job's processors and nodes.
#[derive(Clone, Copy, Debug)]
pub(in crate::import) struct Asked<'a> {
    /// The command that submitted it, if that is known.
    pub(in crate::import) command: Option<&'a str>,
    /// The processors that it requested.
    pub(in crate::import) processors: u64,
    /// The least number of nodes that it requested (`node=` of ReqTRES): 1 where it named none.
    pub(in crate::import) least_nodes: Option<u64>,
    /// The number of nodes that it had.
    pub(in crate::import) nodes: Option<u64>,
}

/// Options that determine how many of a job's tasks run on each node, or on which.
const OF_LAYOUT: [&str; 5] = ["--ntasks-per-node", "--nodelist", "--nodefile", "--use-min-nodes", "--distribution"];

/// Returns the tasks of a job that Slurm does not divide evenly among its nodes: it puts as many on a node as are free there. `None` if
/// the job did not ask for such tasks, or that is unknown.
///
/// Without a number of nodes they may be on any number of nodes; with one (`-N 3`, not a range) they are on so many, at least one on each.
/// The job has such tasks if its command has `-n`, with as many processors as the job's, and no option that lays them out otherwise. Of a
/// batch script's options only the result is in sacct: the job has them if it had several nodes among which its processors cannot be
/// divided evenly. If they can, the script may have `--ntasks-per-node`, and the job counts as one with equal parts.
pub(super) fn of_job(asked: Asked<'_>) -> Option<JobTasks> {
    let (mut tasks, mut of_each, mut named) = (None, 1, None);
    let mut words = asked.command.unwrap_or_default().split_whitespace();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        let is_of_layout = ["-w", "-F", "-m"].iter().any(|short| word.starts_with(short));
        if is_of_layout || OF_LAYOUT.contains(&name) {
            return None;
        }
        if let Some(nodes) = command_options::value(word, &mut words, ("--nodes", "-N")) {
            named = Some(exact(nodes)?);
            continue;
        }
        let mut number = |names| command_options::value(word, &mut words, names)?.parse().ok().filter(|n: &u32| *n > 0);
        if let Some(found) = number(("--ntasks", "-n")) {
            tasks = Some(found);
        } else if let Some(found) = number(("--cpus-per-task", "-c")) {
            of_each = found;
        }
    }
    let stated = tasks.filter(|n| *n > 1 && u64::from(*n) * u64::from(of_each) == asked.processors);
    let job = |processors: u32, on_its_nodes: bool| {
        NonZeroU32::new(processors).map(|processors| JobTasks { processors, on_its_nodes })
    };
    match (stated, named, asked.least_nodes, asked.nodes) {
        (Some(_), None, None | Some(1), _) => job(of_each, false),
        (Some(tasks), Some(named), ..) => {
            let is_of_several = named > 1 && u64::from(tasks) > named && asked.nodes.is_none_or(|had| had == named);
            job(of_each, true).filter(|_| is_of_several)
        }
        (None, _, Some(least), Some(had)) if had > 1 => {
            let is_uneven = asked.processors > had && !asked.processors.is_multiple_of(had);
            job(1, least > 1).filter(|_| is_uneven && (least == 1 || least == had))
        }
        _ => None,
    }
}

/// A number of nodes that is not a range.
fn exact(nodes: &str) -> Option<u64> {
    let (least, most) = nodes.split_once('-').unwrap_or((nodes, nodes));
    least.parse().ok().filter(|_| least == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processors of each task, and whether they are on the job's nodes.
    fn found(command: &str, processors: u64, least: u64, nodes: u64) -> Option<(u32, bool)> {
        let command = Some(command).filter(|command| !command.is_empty());
        let found = of_job(Asked { command, processors, least_nodes: Some(least), nodes: Some(nodes) });
        found.map(|tasks| (tasks.processors.get(), tasks.on_its_nodes))
    }

    /// The commands and numbers are those of a real Slurm 22.05.8.
    #[test]
    fn tasks_are_not_divided_evenly_unless_the_command_says_so() {
        for (command, processors, least, nodes, expected) in [
            ("sbatch --parsable --chdir=/ -o /dev/null --wrap sleep 25 -t 5 -n 10", 10, 1, 3, Some((1, false))),
            ("sbatch --parsable -t 5 -n 10 -N 3", 10, 3, 3, Some((1, true))),
            ("sbatch --parsable -t 5 -N3 -n12", 12, 3, 3, Some((1, true))),
            ("sbatch --parsable -t 5 --nodes=3-3 -n 9 -c 2", 18, 3, 3, Some((2, true))),
            ("sbatch --parsable -t 5 -n 5 -c 2", 10, 1, 3, Some((2, false))),
            ("sbatch --parsable -t 5 -n 10 -N 2-4", 10, 2, 4, None),
            ("sbatch --parsable -t 5 -n 7", 7, 1, 1, Some((1, false))),
            ("sbatch --parsable -t 5 -N 3", 3, 3, 3, None),
            ("sbatch --parsable -t 5 -N 3 -n 3", 3, 3, 3, None),
            ("sbatch --parsable -t 5 -N 1 -n 4", 4, 1, 1, None),
            ("sbatch --parsable -t 5 -N3 -n12 --ntasks-per-node=4", 12, 3, 3, None),
            ("sbatch --parsable -t 5 -n 9 --ntasks-per-node=3", 9, 1, 3, None),
            ("sbatch --parsable -t 5 -n 12", 12, 1, 4, Some((1, false))),
        ] {
            assert_eq!(found(command, processors, least, nodes), expected, "{command}");
        }
    }

    #[test]
    fn options_have_two_names_and_two_forms() {
        for command in
            ["sbatch --ntasks=4 run.sh", "sbatch --ntasks 4 run.sh", "sbatch -n4 run.sh", "sbatch -n 4 run.sh"]
        {
            assert_eq!(found(command, 4, 1, 1), Some((1, false)), "{command}");
        }
        for command in ["srun -n4 --cpus-per-task=3 a", "srun --ntasks=4 -c3 a", "srun -c 3 -n 4 a"] {
            assert_eq!(found(command, 12, 1, 2), Some((3, false)), "{command}");
        }
        for command in [
            "sbatch -n1 run.sh",
            "sbatch -c 4 run.sh",
            "sbatch run.sh",
            "sbatch -n4 -N1 run.sh",
            "sbatch -n4 -w n1 run.sh",
        ] {
            assert_eq!(found(command, 4, 1, 1), None, "{command}");
        }
        // The arguments of a job's own program.
        assert_eq!(found("sbatch --wrap mpirun -n 64 a", 4, 1, 1), None);
    }

    #[test]
    fn without_a_command_an_uneven_job_shows_it() {
        assert_eq!(found("", 10, 1, 3), Some((1, false)));
        assert_eq!(found("sbatch run.sh", 10, 1, 3), Some((1, false)));
        assert_eq!(found("sbatch run.sh", 10, 3, 3), Some((1, true)));
        assert_eq!(found("sbatch -N 3 run.sh", 10, 3, 3), Some((1, true)));
        for (processors, least, nodes) in [(9, 1, 3), (9, 3, 3), (10, 2, 3), (10, 1, 1), (2, 1, 3)] {
            assert_eq!(found("sbatch run.sh", processors, least, nodes), None);
        }
        let unknown = Asked { command: None, processors: 10, least_nodes: None, nodes: Some(3) };
        assert_eq!(of_job(unknown), None);
    }
}
