//! The array of a job: of its id, with the throttle of the command that submitted it.

use evenhand_model::JobArray;

use super::command_options;
use crate::slurm_notation::array_of_task;

/// Returns the array of a job whose id is that of a task of an array (`100_2`), in the notation of [`JobArray`].
///
/// The throttle is that of `--array=0-99%5` or `-a 0-99%5` in the line of the submission. One that the batch script states
/// (`#SBATCH --array=0-99%5`), or that was changed later, is not in sacct's text.
pub(super) fn of_task(id: &[u8], submit_line: Option<&str>) -> Option<String> {
    let name = array_of_task(std::str::from_utf8(id).ok()?)?;
    let throttle = submit_line.and_then(throttle);
    Some(JobArray { name, throttle }.to_string())
}

/// The throttle of the first option of a command that is that of an array.
fn throttle(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        if let Some(indices) = command_options::value(word, &mut words, ("--array", "-a"))
            && indices.starts_with(|c: char| c.is_ascii_digit())
        {
            return indices.rsplit_once('%')?.1.parse().ok().filter(|most| *most > 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttles_are_those_of_the_command() {
        for (line, expected) in [
            ("sbatch --array=0-99%5 run.sh", "100%5"),
            ("sbatch -p main --array 1,3,7-9:2%2 run.sh", "100%2"),
            ("sbatch -a0-9%3 run.sh", "100%3"),
            ("sbatch -A astro --array='0-9%4' run.sh -a 0-9%2", "100%4"),
            ("sbatch --array=0-9 run.sh --array=0-9%2", "100"),
            ("sbatch --array=0-9%0 run.sh", "100"),
            ("sbatch run.sh 50%5", "100"),
        ] {
            assert_eq!(of_task(b"100_2", Some(line)).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(of_task(b"100_2", None).as_deref(), Some("100"));
        for id in [&b"100"[..], b"200+1", b"100_[3-9%5]", b"_1"] {
            assert_eq!(of_task(id, Some("sbatch --array=0-9%5")), None);
        }
    }
}
