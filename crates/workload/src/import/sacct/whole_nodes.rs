//! Whether a job asks for whole nodes.

/// Whether the command that submitted a job asks for whole nodes (`--exclusive`).
///
/// An option in the batch script (`#SBATCH --exclusive`) is not in sacct's text. `--exclusive=user` and `=mcs` allow other jobs of the
/// user or the group on the nodes, and are left out.
pub(super) fn are_asked_for(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "--exclusive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_nodes_are_those_of_the_command() {
        for (line, expected) in [
            ("sbatch -p main -N 2 --exclusive run.sh", true),
            ("sbatch run.sh", false),
            ("sbatch --exclusive=user run.sh", false),
            ("", false),
        ] {
            assert_eq!(are_asked_for(line), expected, "{line}");
        }
    }
}
