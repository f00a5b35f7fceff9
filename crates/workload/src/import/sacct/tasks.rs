//! Whether a job asked for tasks and left to Slurm on how many nodes they run.

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

/// Options that determine on how many nodes a job runs, or how many of its tasks on each.
const OF_NODES: [&str; 6] =
    ["--nodes", "--ntasks-per-node", "--nodelist", "--nodefile", "--use-min-nodes", "--distribution"];

/// Returns how many processors each of a job's tasks has, if the tasks may run on any number of nodes: Slurm puts as many of them on
/// a node as are free there.
///
/// That is so if the command has `-n` and no number of nodes, and its processors are as many as the job's. Of a batch script's
/// options only the result is in sacct: a job that named no number of nodes (`node=1`) and had several, among which its
/// processors cannot be divided evenly. If they can, the script may have `--ntasks-per-node`, and the job counts as one that
/// asked for its nodes.
pub(super) fn processors_of_each(asked: Asked<'_>) -> Option<u32> {
    if asked.least_nodes.is_some_and(|least| least > 1) {
        return None;
    }
    let (mut tasks, mut of_each) = (None, 1);
    let mut words = asked.command.unwrap_or_default().split_whitespace();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        let is_of_nodes = ["-N", "-w", "-F", "-m"].iter().any(|short| word.starts_with(short));
        if is_of_nodes || OF_NODES.contains(&name) {
            return None;
        }
        let mut number = |names| command_options::value(word, &mut words, names)?.parse().ok().filter(|n: &u32| *n > 0);
        if let Some(found) = number(("--ntasks", "-n")) {
            tasks = Some(found);
        } else if let Some(found) = number(("--cpus-per-task", "-c")) {
            of_each = found;
        }
    }
    let is_stated = tasks.is_some_and(|n| n > 1 && u64::from(n) * u64::from(of_each) == asked.processors);
    let nodes = asked.nodes.filter(|nodes| *nodes > 1 && asked.least_nodes == Some(1));
    let is_uneven = nodes.is_some_and(|nodes| asked.processors > nodes && !asked.processors.is_multiple_of(nodes));
    is_stated.then_some(of_each).or_else(|| is_uneven.then_some(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, processors: u64, least: u64, nodes: u64) -> Option<u32> {
        let command = Some(command).filter(|command| !command.is_empty());
        processors_of_each(Asked { command, processors, least_nodes: Some(least), nodes: Some(nodes) })
    }

    /// The commands and numbers are those of a real Slurm 22.05.8.
    #[test]
    fn tasks_without_a_number_of_nodes_may_be_on_any() {
        for (command, processors, least, nodes, expected) in [
            ("sbatch --parsable --chdir=/ -o /dev/null --wrap sleep 25 -t 5 -n 10", 10, 1, 3, Some(1)),
            ("sbatch --parsable -t 5 -n 10 -N 3", 10, 3, 3, None),
            ("sbatch --parsable -t 5 -n 5 -c 2", 10, 1, 3, Some(2)),
            ("sbatch --parsable -t 5 -n 10 -N 2-4", 10, 2, 4, None),
            ("sbatch --parsable -t 5 -n 7", 7, 1, 1, Some(1)),
            ("sbatch --parsable -t 5 -N 3", 3, 3, 3, None),
            ("sbatch --parsable -t 5 -n 9 --ntasks-per-node=3", 9, 1, 3, None),
            ("sbatch --parsable -t 5 -n 12", 12, 1, 4, Some(1)),
        ] {
            assert_eq!(found(command, processors, least, nodes), expected, "{command}");
        }
    }

    #[test]
    fn options_have_two_names_and_two_forms() {
        for command in
            ["sbatch --ntasks=4 run.sh", "sbatch --ntasks 4 run.sh", "sbatch -n4 run.sh", "sbatch -n 4 run.sh"]
        {
            assert_eq!(found(command, 4, 1, 1), Some(1), "{command}");
        }
        for command in ["srun -n4 --cpus-per-task=3 a", "srun --ntasks=4 -c3 a", "srun -c 3 -n 4 a"] {
            assert_eq!(found(command, 12, 1, 2), Some(3), "{command}");
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
        assert_eq!(found("", 10, 1, 3), Some(1));
        assert_eq!(found("sbatch run.sh", 10, 1, 3), Some(1));
        for (processors, least, nodes) in [(9, 1, 3), (10, 3, 3), (10, 1, 1), (2, 1, 3)] {
            assert_eq!(found("sbatch run.sh", processors, least, nodes), None);
        }
        let unknown = Asked { command: None, processors: 10, least_nodes: None, nodes: Some(3) };
        assert_eq!(processors_of_each(unknown), None);
    }
}
