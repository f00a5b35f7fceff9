//! Output of real sites of several releases. It is not part of the repository; without it these tests are skipped.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;

use evenhand_slurm::{ClusterOptions, Nodes, cluster};

fn recorded(path: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/slurm").join(path);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("skipped: no {}", path.display());
    }
    text
}

#[test]
fn nodes_are_read_from_tres_alone() {
    let Some(text) = recorded("habrok-jobinfo/scontrol_nodes.txt") else { return };
    let nodes = Nodes::parse(&text).unwrap().nodes;
    assert_eq!(nodes.len(), text.lines().filter(|l| l.starts_with("NodeName=")).count());
    let described = cluster(&nodes, &[], &ClusterOptions::default());
    assert_eq!(described.cluster.machines(), nodes.len() as u64);
    assert_eq!(described.cluster.resources, ["cpu", "mem", "gpu"]);
    assert!(described.cluster.groups.len() < 20, "{}", described.cluster.groups.len());
    let gpus: u64 = nodes.iter().map(|n| n.gpus()).sum();
    assert!(gpus >= 24, "{gpus}");
}

#[test]
fn nodes_of_release_20_11_are_read_from_several_lines() {
    let Some(text) = recorded("clockwork/scontrol_node_3") else { return };
    let nodes = Nodes::parse(&text).unwrap().nodes;
    assert_eq!((nodes[0].cpus, nodes[0].memory, nodes[0].gpus()), (80, 386_619 << 20, 8));
    assert_eq!((nodes[1].gpus(), nodes[1].allocated_cpus), (8, 34));
    assert!(nodes[0].partitions.contains(&"unkillable".to_string()));
}
