//! The nice value of a job, of the command that submitted it.

/// The value of `--nice` without one.
const DEFAULT: i64 = 100;

/// Returns the nice value of the first `--nice` or `--nice=100` of a command, as a text; `None` for 0.
///
/// One that the batch script states (`#SBATCH --nice=100`), or that was changed later, is not in sacct's text.
pub(super) fn of_command(line: &str) -> Option<String> {
    let mut options = line.split_whitespace().filter_map(|word| word.strip_prefix("--nice"));
    let value = options.find_map(|rest| match rest {
        "" => Some(DEFAULT),
        _ => rest.strip_prefix('=')?.trim_matches(['"', '\'']).parse().ok(),
    });
    value.filter(|nice| *nice != 0).map(|nice| nice.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_values_are_those_of_the_command() {
        for (line, expected) in [
            ("sbatch --nice=50 run.sh", Some("50")),
            ("sbatch -n 4 --nice run.sh", Some("100")),
            ("srun --nice=-5 --nice=7 hostname", Some("-5")),
            ("sbatch --nice=0 run.sh", None),
            ("sbatch --nicely run.sh", None),
            ("nice -n 5 run.sh", None),
        ] {
            assert_eq!(of_command(line).as_deref(), expected, "{line}");
        }
    }
}
