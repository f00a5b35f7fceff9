//! Resources of a site that hold no job back in a simulation: memory that Slurm does not count, types of GPUs
//! of which one node has several, and generic resources other than GPUs.

use std::collections::BTreeSet;

use evenhand_workload::slurm_notation::parse_gres;

use super::effect::Unmodelled;
use super::slurm_conf::SlurmConf;
use crate::configuration::Configuration;

/// The parameters of the select plugin, which decide whether memory is a resource.
const PARAMETERS: &str = "SelectTypeParameters";

/// The option with the generic resources of nodes.
const GRES: &str = "NodeName Gres";

/// Returns the setting by which Slurm does not count memory; `None` if it does. `place` is that of the setting.
pub fn memory_without_effect(configuration: &Configuration, place: String) -> Option<Unmodelled> {
    if configuration.counts_memory() {
        return None;
    }
    let value = configuration.get(PARAMETERS).unwrap_or("not set");
    Some(Unmodelled {
        name: PARAMETERS.into(),
        values: vec![value.to_string()],
        places: if place.is_empty() { Vec::new() } else { vec![place] },
        instead: "Slurm does not count memory: a study with this slurm.conf leaves the memory of jobs out, so that limits, weights \
                  and prices of memory have no effect",
    })
}

/// Lists the generic resources of nodes that a simulation does not tell apart or does not count.
pub(super) fn note_generic_resources(conf: &SlurmConf, found: &mut Vec<Unmodelled>) {
    let (mut mixed, mut others) = (Vec::new(), Vec::new());
    for (option, values) in conf.options.iter().filter(|(option, _)| option.eq_ignore_ascii_case(GRES)) {
        for (at, value) in values.iter().enumerate() {
            let resources = value.split_once('=').and_then(|(_, text)| parse_gres(text)).unwrap_or_default();
            let (gpus, other): (Vec<_>, Vec<_>) = resources.into_iter().partition(|one| one.name == "gpu");
            let entry = (value.clone(), conf.place_of_option(option, at));
            if !other.is_empty() {
                others.push(entry.clone());
            }
            let kinds: BTreeSet<_> =
                gpus.iter().map(|one| one.kind.as_ref().map(|kind| kind.to_ascii_lowercase())).collect();
            if kinds.len() > 1 {
                mixed.push(entry);
            }
        }
    }
    let mut add = |entries: Vec<(String, String)>, instead| {
        if entries.is_empty() {
            return;
        }
        let (values, places) = entries.into_iter().unzip();
        found.push(Unmodelled { name: GRES.into(), values, places, instead });
    };
    add(
        mixed,
        "jobs that name a type run on nodes that have it, but where a node has several types, its GPUs are counted together",
    );
    add(others, "of generic resources only GPUs are counted: jobs share all others without limit");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_gpus_are_listed_where_one_node_has_several() {
        let names = |values: &[&str]| {
            let mut conf = SlurmConf::default();
            conf.options.insert(GRES.into(), values.iter().map(|value| value.to_string()).collect());
            let mut found = Vec::new();
            note_generic_resources(&conf, &mut found);
            found.into_iter().map(|one| one.values).collect::<Vec<_>>()
        };
        let one_each = ["g[1-2]=gpu:a100:4", "g3=gpu:h100:2", "g4=gpu:2", "g5=gpu:A100:1,gpu:a100:1(S:1)", "n1=(null)"];
        assert_eq!(names(&one_each), Vec::<Vec<String>>::new());
        assert_eq!(names(&["g1=gpu:a100:1", "g2=gpu:1g.5gb:7,gpu:3g.20gb:1"]), [["g2=gpu:1g.5gb:7,gpu:3g.20gb:1"]]);
        assert_eq!(names(&["g1=gpu:a100:1,gpu:1"]), [["g1=gpu:a100:1,gpu:1"]]);
        assert_eq!(names(&["f1=fpga:1", "g1=gpu:2"]), [["f1=fpga:1"]]);
    }

    #[test]
    fn memory_is_named_where_slurm_does_not_count_it() {
        let of = |text: &str| memory_without_effect(&Configuration::parse(text).unwrap(), "slurm.conf:3:22".into());
        assert_eq!(of("SelectTypeParameters=CR_Core_Memory\n"), None);
        let found = of("SelectTypeParameters=CR_Core\n").unwrap();
        assert_eq!((found.values, found.places), (vec!["CR_Core".to_string()], vec!["slurm.conf:3:22".to_string()]));
        assert_eq!(of("SelectType=select/linear\n").unwrap().values, ["not set"]);
    }
}
