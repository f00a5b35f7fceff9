//! The types of GPUs that a job requested.

use evenhand_model::Requirements;

use super::command_options;
use crate::import::summary::Tally;
use crate::slurm_notation::{Gres, NamedGres, parse_gres};

/// A job of which only the GPUs that it held have a type.
pub(in crate::import) const HELD_TYPE: &str = "type of GPUs held";
pub(in crate::import) const HELD_TYPE_SENTENCE: &str = "a type of GPUs in AllocTRES and no known request, so that GPUs of any type will do; ReqTRES and \
     SubmitLine of sacct have the request.";
/// A job whose request has a type and no number of all GPUs.
pub(in crate::import) const TYPE_ALONE: &str = "type of GPUs alone";
pub(in crate::import) const TYPE_ALONE_SENTENCE: &str = "a type of GPUs without gres/gpu in ReqTRES, which is required. Slurm names one of its types there \
     for requests without a type, unless AccountingStorageTRES has gres/gpu; SubmitLine of sacct has the request.";

/// What a source states of the types of GPUs of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::import) struct GpuTypes<'a> {
    /// What the requested TRES name.
    pub(in crate::import) requested: Option<&'a NamedGres>,
    /// What the allocated TRES name.
    pub(in crate::import) held: Option<&'a NamedGres>,
    /// Generic resources as they were requested: `gpu:h100:2`.
    pub(in crate::import) gres: &'a [&'a str],
    /// The command that submitted the job.
    pub(in crate::import) command: Option<&'a str>,
}

impl GpuTypes<'_> {
    /// Returns the words that the job requires of its machines for the types that it requested.
    ///
    /// The requested TRES have them if the site accounts for types and for all GPUs. If it accounts for types alone, Slurm writes
    /// one of them for a request without a type; if for all GPUs alone, TRES have no type. Then the request itself decides, where it
    /// is known. What was only allocated is no requirement.
    pub(in crate::import) fn words(self, tally: &mut Tally) -> Vec<String> {
        let of_tres = |named: &NamedGres| words(named.gpu_types.iter().map(String::as_str));
        let requested = self.requested.map(of_tres).unwrap_or_default();
        let is_certain = self.requested.is_some_and(|named| named.has_all_gpus) && !requested.is_empty();
        if is_certain {
            return requested;
        }
        let asked: Vec<Gres> = self.gres.iter().filter_map(|list| parse_gres(list)).flatten().collect();
        let asked = Some(gpus(asked)).filter(|gpus| !gpus.is_empty()).or_else(|| {
            // The command of a heterogeneous job has the options of all its components.
            let command = self.command.filter(|command| !command.split_whitespace().any(|word| word == ":"))?;
            Some(gpus_of_command(command)).filter(|gpus| !gpus.is_empty())
        });
        if let Some(gpus) = asked {
            return words(gpus.iter().filter_map(|gpus| gpus.kind.as_deref()));
        }
        if !requested.is_empty() {
            tally.adjust(TYPE_ALONE);
        } else if self.requested.is_none() && self.held.is_some_and(|named| !of_tres(named).is_empty()) {
            tally.adjust(HELD_TYPE);
        }
        requested
    }
}

/// Returns the words of types, each once.
fn words<'a>(types: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = types.filter_map(Requirements::gpu_type).collect();
    words.sort();
    words.dedup();
    words
}

fn gpus(list: Vec<Gres>) -> Vec<Gres> {
    list.into_iter().filter(|one| one.name == "gpu" && one.count > 0).collect()
}

/// The options of sbatch, srun and salloc that request GPUs by numbers, with or without a type.
const NUMBERS: [(&str, &str); 4] =
    [("--gpus", "-G"), ("--gpus-per-node", ""), ("--gpus-per-task", ""), ("--gpus-per-socket", "")];
/// Those that request generic resources.
const LISTS: [(&str, &str); 2] = [("--gres", ""), ("--tres-per-task", "")];

/// Returns the GPUs that the options of a command request. An option in the batch script (`#SBATCH`) is not in sacct's text.
fn gpus_of_command(command: &str) -> Vec<Gres> {
    let mut found = Vec::new();
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let mut value = |names| command_options::value(word, &mut words, names);
        if let Some(list) = LISTS.iter().find_map(|names| value(*names)) {
            found.extend(parse_gres(list).unwrap_or_default());
        } else if let Some(numbers) = NUMBERS.iter().find_map(|names| value(*names)) {
            // `a100:2,l4:1`; a type without a number is none of these options.
            let all: Option<Vec<Gres>> = numbers
                .split(',')
                .map(|one| {
                    let is_number = one.rsplit(':').next()?.bytes().all(|byte| byte.is_ascii_digit());
                    parse_gres(&format!("gpu:{one}"))?.pop().filter(|_| is_number)
                })
                .collect();
            found.extend(all.unwrap_or_default());
        }
    }
    gpus(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a request, with the sentences that they take.
    fn found(requested: Option<&str>, gres: &[&str], command: &str, held: &str) -> (String, [u64; 2]) {
        let named = requested.map(|text| NamedGres::of_text(text.as_bytes()));
        let held = NamedGres::of_text(held.as_bytes());
        let mut tally = Tally::default();
        let types = GpuTypes { requested: named.as_ref(), held: Some(&held), gres, command: Some(command) };
        let words = types.words(&mut tally).join(",");
        (words, [HELD_TYPE, TYPE_ALONE].map(|what| tally.adjusted.of(what)))
    }

    #[test]
    fn types_are_those_of_the_request() {
        const A100: &str = "cpu=1,gres/gpu=2,gres/gpu:a100=2";
        for (requested, gres, command, words, notes) in [
            // ReqTRES with all GPUs and types decides alone, also against a command that a plugin changed.
            (Some("gres/gpu=2,gres/gpu:H100=2"), &[][..], "sbatch -G 2 x", "gpu:h100", [0, 0]),
            (Some("gres/gpu=2,gres/gpu:h100=1,gres/gpu:a100=1"), &[], "", "gpu:a100,gpu:h100", [0, 0]),
            // What was only allocated is no requirement.
            (Some("gres/gpu=2"), &[], "", "", [0, 0]),
            (Some("cpu=1"), &[], "", "", [0, 0]),
            (None, &[], "sbatch x", "", [1, 0]),
            // The site does not account for types.
            (Some("gres/gpu=2"), &[], "sbatch --gres=gpu:h100:2 x", "gpu:h100", [0, 0]),
            (Some("cpu=1"), &["gpu:tesla:2"], "", "gpu:tesla", [0, 0]),
            (None, &["PER_NODE:gpu:V100:2"], "", "gpu:v100", [0, 0]),
            (None, &["7696487:2"], "", "", [1, 0]),
            // It accounts for types alone.
            (Some("gres/gpu:h100=2"), &[], "", "gpu:h100", [0, 1]),
            (Some("gres/gpu:h100=2"), &[], "sbatch -G 2 x", "", [0, 0]),
            (Some("gres/gpu:h100=2"), &[], "sbatch -Gh100:2 x", "gpu:h100", [0, 0]),
            // Options of the components of a heterogeneous job.
            (Some("gres/gpu=2"), &[], "sbatch --gres=gpu:h100:2 : --gres=gpu:a100:2 x", "", [0, 0]),
        ] {
            assert_eq!(found(requested, gres, command, A100), (words.to_string(), notes), "{requested:?} {command}");
        }
        assert_eq!(found(None, &[], "", "cpu=1,gres/gpu=2"), (String::new(), [0, 0]));
    }

    #[test]
    fn options_of_commands_request_types() {
        for (command, words) in [
            ("sbatch --gres gpu:h100:2,fpga:x:1 run.sh", "gpu:h100"),
            ("sbatch --gres=gpu:h100 run.sh", "gpu:h100"),
            ("sbatch --gres=gpu:1g.5gb:1,gpu:A100:1(S:0) run.sh", "gpu:1g.5gb,gpu:a100"),
            ("srun --gpus=h100:2 --gpus-per-node=h100:1 a", "gpu:h100"),
            ("srun -G a100:1,l4:1 a", "gpu:a100,gpu:l4"),
            ("srun --gpus-per-task l4:1 --tres-per-task=cpu:2,gres/gpu:l4:1 a", "gpu:l4"),
            ("sbatch --gres=gpu:2 run.sh", ""),
            ("sbatch --gres=none run.sh", ""),
            ("sbatch --wrap train --gpus all --gpus h100", ""),
            ("sbatch --gres=gpu:a|b:1 run.sh", ""),
            ("sbatch --gres", ""),
        ] {
            assert_eq!(found(Some("cpu=1"), &[], command, ""), (words.to_string(), [0, 0]), "{command}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,30}|((--gres|-G|--gpus) ?=?[a-z:0-9,=(]{0,9} ?){0,4}") {
            let (words, _) = found(Some(&text), &[&text], &text, &text);
            // Nothing that separates words or means something else.
            proptest::prop_assert!(words.split(',').all(|word| word.is_empty() || word.starts_with("gpu:")), "{}", words);
        }
    }
}
