//! The request of a batch script: its `#SBATCH` lines, as far as a forecast needs them.

use std::collections::BTreeSet;

use evenhand_model::{Requirements, Span};
use evenhand_workload::slurm_notation::{memory, parse_constraints, parse_gres};
use thiserror::Error;

use crate::error::quoted;
use crate::new_request::NewRequest;
use crate::parse_values::Limit;

/// What a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchRequest {
    /// The least number of nodes.
    pub nodes: Option<u64>,
    /// The number of Slurm tasks.
    pub tasks: Option<u64>,
    /// The number of Slurm tasks on each node.
    pub tasks_per_node: Option<u64>,
    /// The CPUs of each Slurm task.
    pub cpus_per_task: Option<u64>,
    /// The wall time.
    pub limit: Option<Span>,
    /// The partition; of several the first.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The GPUs on each node.
    pub gpus_per_node: u64,
    /// The GPUs of the whole job.
    pub gpus: u64,
    /// The types of these GPUs, where they are named.
    pub gpu_types: BTreeSet<String>,
    /// The features that its nodes must have (`--constraint`), and whether it has them for itself (`--exclusive`).
    pub requires: Requirements,
    /// The memory on each node, in bytes.
    pub memory_per_node: u64,
    /// The memory for each CPU, in bytes.
    pub memory_per_cpu: u64,
}

/// A line of a batch script that Slurm would not take.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: found {found}, expected {expected}")]
pub struct BatchScriptError {
    /// The name of the script.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What stands there, shortened.
    pub found: String,
    /// What should stand there.
    pub expected: &'static str,
}

impl BatchRequest {
    /// Parses the `#SBATCH` lines before the first command, as sbatch does. Options that do not matter for a forecast are
    /// passed over.
    ///
    /// # Errors
    /// Returns an error for a script without `#!`, a value that Slurm would not take, or an option without a value.
    ///
    /// ```
    /// use evenhand_slurm::BatchRequest;
    /// let request = BatchRequest::parse("job.sh", "#!/bin/sh\n#SBATCH -n 4 --cpus-per-task=16\n#SBATCH --time 2:00:00\nsrun x\n").unwrap();
    /// assert_eq!(request.cpus(), 64);
    /// ```
    pub fn parse(file: &str, text: &str) -> Result<BatchRequest, BatchScriptError> {
        let error = |line: usize, found: &str, expected| BatchScriptError {
            file: file.to_string(),
            line,
            found: quoted(found),
            expected,
        };
        if !text.starts_with("#!") {
            return Err(error(1, text.lines().next().unwrap_or(""), "#! and an interpreter, which sbatch requires"));
        }
        let mut request = BatchRequest::default();
        for (at, line) in text.lines().enumerate() {
            let Some(options) = line.strip_prefix("#SBATCH") else {
                if line.trim().is_empty() || line.starts_with('#') {
                    continue;
                }
                break;
            };
            let options = options.split(" #").next().unwrap_or(options);
            let mut words = options.split_whitespace();
            while let Some(word) = words.next() {
                let Some((name, inline)) = split_option(word) else {
                    return Err(error(at + 1, word, "an option of sbatch, such as --time=2:00:00"));
                };
                // With a value it is exclusive towards other users, or in another way, and not with its nodes for itself.
                if name == "--exclusive" {
                    request.requires.whole_machines |= inline.is_none();
                    continue;
                }
                if !KNOWN.contains(&name) {
                    // Its value, if it stands apart, is no option.
                    continue_past_value(&mut words, inline);
                    continue;
                }
                let value = inline.or_else(|| words.next());
                let value = value.ok_or_else(|| error(at + 1, word, "a value after this option"))?;
                request.set(name, value).map_err(|expected| error(at + 1, value, expected))?;
            }
        }
        Ok(request)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let count = |what: &'static str| value.parse::<u64>().ok().filter(|n| *n > 0).ok_or(what);
        match name {
            "-N" | "--nodes" => {
                let expected = "a number of nodes above 0, a range such as 2-4, or a list such as 1,2,4-8:2";
                self.nodes = Some(least_nodes(value).ok_or(expected)?);
            }
            "-n" | "--ntasks" => self.tasks = Some(count("a number of tasks above 0")?),
            "-c" | "--cpus-per-task" => self.cpus_per_task = Some(count("a number of CPUs above 0")?),
            "--ntasks-per-node" => self.tasks_per_node = Some(count("a number of tasks above 0")?),
            "-t" | "--time" => {
                self.limit = Limit::parse(value).ok_or("a time limit such as 2:00:00, 1-00:00:00, or minutes")?.span();
            }
            "--gres" | "--gpus-per-node" => self.gpus_per_node = self.gpus(name, value).ok_or(EXPECTED_GPUS)?,
            "-G" | "--gpus" => self.gpus = self.gpus(name, value).ok_or(EXPECTED_GPUS)?,
            "-C" | "--constraint" => {
                // What cannot be expressed, such as `[a|b]`, is passed over.
                let words = parse_constraints(value.trim_matches(['"', '\'']));
                self.requires.wanted = words.map_or(Vec::new(), |words| Requirements::parse(&words).wanted);
            }
            "--mem" | "--mem-per-cpu" => {
                let text = value.to_ascii_uppercase();
                let bytes = memory(text.as_bytes()).and_then(|nano| u64::try_from(nano / 1_000_000_000).ok());
                let bytes = bytes.ok_or("an amount of memory such as 4000 (MiB), 500M or 4G")?;
                *(if name == "--mem" { &mut self.memory_per_node } else { &mut self.memory_per_cpu }) = bytes;
            }
            "-p" | "--partition" => self.partition = value.split(',').next().map(str::to_string),
            _ => self.account = Some(value.to_string()),
        }
        Ok(())
    }

    /// Returns how many CPUs it asks for, at least.
    pub fn cpus(&self) -> u64 {
        let nodes = self.nodes.unwrap_or(1);
        self.tasks_at_least(nodes).saturating_mul(self.cpus_per_task.unwrap_or(1))
    }

    /// Returns how much memory it asks for in all, at least, in bytes; 0 if it names none.
    pub fn memory(&self) -> u64 {
        let of_nodes = self.nodes.unwrap_or(1).saturating_mul(self.memory_per_node);
        of_nodes.max(self.cpus().saturating_mul(self.memory_per_cpu))
    }

    fn tasks_at_least(&self, nodes: u64) -> u64 {
        self.tasks.unwrap_or_else(|| nodes.saturating_mul(self.tasks_per_node.unwrap_or(1))).max(nodes)
    }

    /// Returns what nodes have to have for it, if it runs for `limit`.
    pub fn request(&self, limit: Span) -> NewRequest {
        let (nodes, cpus_per_chunk) = (self.nodes.unwrap_or(1), self.cpus_per_task.unwrap_or(1));
        NewRequest {
            nodes,
            chunks: self.tasks_at_least(nodes),
            cpus_per_chunk,
            memory_per_node: self.memory_per_node.max(self.memory_per_cpu.saturating_mul(cpus_per_chunk)),
            gpus_per_node: self.gpus_per_node,
            gpus: self.gpus,
            // Of several types it is not known which node has to have which.
            gpu_type: self.gpu_types.first().filter(|_| self.gpu_types.len() == 1).cloned(),
            requires: self.requires.clone(),
            limit,
        }
    }

    /// Returns how many GPUs an option asks for, and notes their types: `--gres=gpu:a100:2,shard:1`, `--gpus=a100:2`.
    fn gpus(&mut self, option: &str, value: &str) -> Option<u64> {
        let list = match option {
            "--gres" => parse_gres(value)?,
            // These options name the GPU's type, or nothing before the number.
            _ => parse_gres(&value.split(',').map(|part| format!("gpu:{part}")).collect::<Vec<_>>().join(","))?,
        };
        let of_gpus = || list.iter().filter(|gres| gres.name == "gpu");
        self.gpu_types.extend(of_gpus().filter_map(|gres| gres.kind.clone()));
        Some(of_gpus().fold(0, |sum: u64, gres| sum.saturating_add(gres.count)))
    }
}

/// Returns the least number of nodes of `-N`: `4`, `2-4`, `1k`, and in newer releases `1,2,4-8:2` (sbatch(1)). `None` if it is none
/// of these, or a range ends below its beginning.
fn least_nodes(text: &str) -> Option<u64> {
    let number = |text: &str| {
        let (digits, factor) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1024),
            None => text.strip_suffix(['m', 'M']).map_or((text, 1), |digits| (digits, 1024 * 1024)),
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|n| is_plain && *n > 0)?.checked_mul(factor)
    };
    let least = |part: &str| {
        let range = part.split_once(':').map_or(Some(part), |(range, step)| number(step).map(|_| range))?;
        match range.split_once('-') {
            None => number(range),
            Some((from, to)) => number(from).filter(|from| number(to).is_some_and(|to| *from <= to)),
        }
    };
    text.split(',').map(least).try_fold(u64::MAX, |so_far, part| Some(so_far.min(part?)))
}

const EXPECTED_GPUS: &str = "a number of GPUs, such as gpu:2 or gpu:a100:2 for --gres, and 2 or a100:2 for others";

const KNOWN: [&str; 21] = [
    "-N",
    "--nodes",
    "-n",
    "--ntasks",
    "-c",
    "--cpus-per-task",
    "--ntasks-per-node",
    "-t",
    "--time",
    "-p",
    "--partition",
    "-A",
    "--account",
    "--gres",
    "-G",
    "--gpus",
    "--gpus-per-node",
    "--mem",
    "--mem-per-cpu",
    "-C",
    "--constraint",
];

/// Splits `--time=5`, `-t5` and `--time` into the option and its value.
fn split_option(word: &str) -> Option<(&str, Option<&str>)> {
    if word.starts_with("--") && word.len() > 2 {
        return Some(word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))));
    }
    let letter = word.strip_prefix('-')?.chars().next().filter(char::is_ascii_alphabetic)?;
    let (name, value) = word.split_at(1 + letter.len_utf8());
    Some((name, Some(value).filter(|value| !value.is_empty())))
}

fn continue_past_value<'a>(words: &mut (impl Iterator<Item = &'a str> + Clone), inline: Option<&str>) {
    if inline.is_none() && words.clone().next().is_some_and(|next| !next.starts_with('-')) {
        words.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<BatchRequest, BatchScriptError> {
        BatchRequest::parse("job.sh", &format!("#!/bin/bash\n{lines}"))
    }

    #[test]
    fn requests_are_read_in_every_form_up_to_the_first_command() {
        let request = parse(
            "#SBATCH --job-name x -N2-4 --ntasks-per-node=8\n# a comment\n\n#SBATCH -t 1-00:00:00 -p a,b # why\nmodule load x\n#SBATCH -n 99\n",
        );
        let request = request.unwrap();
        assert_eq!((request.nodes, request.tasks, request.cpus()), (Some(2), None, 16));
        assert_eq!((request.limit, request.partition.as_deref()), (Some(Span::from_secs(86_400)), Some("a")));
        assert_eq!(parse("true\n").unwrap().cpus(), 1);
    }

    #[test]
    fn gpus_and_memory_are_asked_of_nodes() {
        let of = |options: &str| {
            let request = parse(&format!("#SBATCH {options}\n")).unwrap().request(Span::from_secs(60));
            (request.nodes, request.gpus_per_node, request.gpus, request.memory_per_node >> 20)
        };
        assert_eq!(of("--gres=gpu:a100:7,shard:2 -N2 --mem=4G"), (2, 7, 0, 4096));
        assert_eq!(of("--gpus=3 --mem-per-cpu 500 -c 4"), (1, 0, 3, 2000));
        assert_eq!(of("-G a100:2,v100:1 --gpus-per-node=v100:2 --gres=none"), (1, 0, 3, 0));
        let kind =
            |options: &str| parse(&format!("#SBATCH {options}\n")).unwrap().request(Span::from_secs(60)).gpu_type;
        assert_eq!(kind("--gres=gpu:a100:7,shard:2").as_deref(), Some("a100"));
        assert_eq!((kind("-G 2"), kind("-G a100:2,v100:1")), (None, None), "which node has to have which is not known");
        let error = parse("#SBATCH --gres=gpu:many:x\n").unwrap_err().to_string();
        assert!(error.starts_with("job.sh:2: found \"gpu:many:x\", expected a number of GPUs"), "{error}");
    }

    #[test]
    fn features_and_nodes_of_its_own_are_required() {
        let of = |options: &str| {
            let requires = parse(&format!("#SBATCH {options}\n")).unwrap().requires;
            (requires.wanted, requires.whole_machines)
        };
        let words = |lists: &[&[&str]]| -> Vec<Vec<String>> {
            lists.iter().map(|list| list.iter().map(|word| word.to_string()).collect()).collect()
        };
        assert_eq!(of("--exclusive -C intel&ib"), (words(&[&["intel"], &["ib"]]), true));
        assert_eq!(of("--constraint=\"intel|amd\" --exclusive=user"), (words(&[&["intel", "amd"]]), false));
        assert_eq!(of("-C [rack1|rack2] --exclusive"), (vec![], true), "an expression that is not followed");
        assert_eq!(of("-C ib*2"), (vec![], false));
    }

    #[test]
    fn of_ranges_and_lists_of_nodes_the_least_counts() {
        let found = ["4", "2-4", "3-3", "1k", "2,1,4-8:2", "16-20"].map(least_nodes);
        assert_eq!(found, [4, 2, 3, 1024, 1, 16].map(Some));
        assert_eq!(
            ["", "0", "4-2", "2-", "-4", "+3", "x", "1,,2", "2-x", "99999999999999999999"].map(least_nodes),
            [None; 10]
        );
    }

    #[test]
    fn wrong_lines_are_reported_with_their_number() {
        let message = |lines| parse(lines).unwrap_err().to_string();
        assert_eq!(message("#SBATCH -n 0\n"), "job.sh:2: found \"0\", expected a number of tasks above 0");
        assert_eq!(
            message("\n#SBATCH --time=soon\n"),
            "job.sh:3: found \"soon\", expected a time limit such as 2:00:00, 1-00:00:00, or minutes"
        );
        assert_eq!(message("#SBATCH --time\n"), "job.sh:2: found \"--time\", expected a value after this option");
        assert_eq!(
            message("#SBATCH 4 tasks\n"),
            "job.sh:2: found \"4\", expected an option of sbatch, such as --time=2:00:00"
        );
        let no_interpreter = BatchRequest::parse("job.sh", "echo").unwrap_err().to_string();
        assert!(no_interpreter.starts_with("job.sh:1: found \"echo\""), "{no_interpreter}");
    }
}
