//! The nodes of a site: `scontrol show node`.

use std::collections::BTreeSet;

use evenhand_model::Requirements;
use evenhand_workload::slurm_notation::{Gres, parse_gres};

use crate::error::{ReadError, TextError};
use crate::parse_key_values::{Record, records};
use crate::parse_table::Field;
use crate::run_commands::{Call, Commands};
use crate::tres::Tres;

/// The nodes of a site that the user may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// In the order of `scontrol`.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The CPUs available to jobs.
    pub cpus: u64,
    /// The CPUs allocated to jobs.
    pub allocated_cpus: u64,
    /// The memory available to jobs, in bytes.
    pub memory: u64,
    /// The memory allocated to jobs, in bytes.
    pub allocated_memory: u64,
    /// The generic resources (Gres).
    pub gres: Vec<Gres>,
    /// The trackable resources (CfgTRES).
    pub configured: Tres,
    /// The trackable resources allocated to jobs (AllocTRES).
    pub allocated: Tres,
    /// The active features that jobs can require.
    pub features: Vec<String>,
    /// The partitions of the node.
    pub partitions: Vec<String>,
    /// The state and its flags: `["IDLE", "DRAIN"]`.
    pub state: Vec<String>,
    /// The scheduling weight: Slurm prefers nodes with a lower weight.
    pub weight: u64,
    /// The line of the text that names it, from 1 on; 0 if it is not from the output of `scontrol`.
    pub line: usize,
}

impl Node {
    /// Returns the number of GPUs of all types: the larger of Gres and CfgTRES, since one of them may be missing while
    /// the node is down.
    pub fn gpus(&self) -> u64 {
        let has = self.gres.iter().filter(|g| g.name == "gpu").fold(0, |sum: u64, g| sum.saturating_add(g.count));
        has.max(self.configured.gpus())
    }

    /// Returns the number of GPUs of a type, whatever the case of its letters, and how many of them jobs hold. On a node with several
    /// types that Slurm does not track by type, those held count as of each type.
    pub fn gpus_of_type(&self, kind: &str) -> (u64, u64) {
        let of = |counts: &mut dyn Iterator<Item = (&str, u64)>| {
            let of_type = counts.filter(|(name, _)| name.eq_ignore_ascii_case(kind));
            of_type.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
        };
        let mut typed =
            self.gres.iter().filter(|g| g.name == "gpu").filter_map(|g| Some((g.kind.as_deref()?, g.count)));
        let has = of(&mut typed).max(of(&mut self.configured.gpu_types()));
        let held = match self.allocated.gpu_types().next() {
            Some(_) => of(&mut self.allocated.gpu_types()),
            None => self.allocated.gpus(),
        };
        (has, held.min(has))
    }

    /// Returns the words that jobs require to have GPUs of its types: those of Gres, else of CfgTRES, where Slurm may name a
    /// type of GPUs without one.
    pub fn gpu_types(&self) -> BTreeSet<String> {
        let of_gres: Vec<&Gres> = self.gres.iter().filter(|g| g.name == "gpu" && g.count > 0).collect();
        let words = |kinds: &mut dyn Iterator<Item = &str>| kinds.filter_map(Requirements::gpu_type).collect();
        match of_gres.is_empty() {
            true => words(&mut self.configured.gpu_types().filter(|(_, n)| *n > 0).map(|(kind, _)| kind)),
            false => words(&mut of_gres.iter().filter_map(|g| g.kind.as_deref())),
        }
    }

    /// Returns whether no job can start on it: it is down, drained, failing, being shut down, or of state FUTURE.
    pub fn is_unavailable(&self) -> bool {
        const OUT: [&str; 9] = ["DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "INVAL"];
        self.state.iter().any(|word| OUT.contains(&word.as_str()))
    }

    /// Returns whether it is defined for future use only.
    pub fn is_future(&self) -> bool {
        self.state.iter().any(|word| word == "FUTURE")
    }
}

impl Nodes {
    /// Returns the command that prints all nodes, including those of hidden partitions.
    pub fn call() -> Call {
        Call::new("scontrol", ["--all", "--oneliner", "show", "node"])
    }

    /// Reads the nodes.
    ///
    /// # Errors
    /// Returns an error if `scontrol` fails or its output is not understood.
    pub fn read(commands: &dyn Commands) -> Result<Nodes, ReadError> {
        Ok(Nodes::parse(&commands.run(&Nodes::call())?)?)
    }

    /// Parses the output of `scontrol show node`, with each node on one line or on several.
    ///
    /// # Errors
    /// Returns an error if a value is malformed, or a node has no CPUs.
    pub fn parse(text: &str) -> Result<Nodes, TextError> {
        let nodes = records("scontrol show node", text, "NodeName").iter().map(node).collect::<Result<_, _>>()?;
        Ok(Nodes { nodes })
    }
}

/// Returns the words of a state such as IDLE*+DRAIN, where the star marks a node that does not respond.
pub(crate) fn state_words(text: &str) -> Vec<String> {
    let word = |word: &str| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_string();
    text.split('+').map(word).collect()
}

fn node(record: &Record<'_>) -> Result<Node, TextError> {
    let count = |key: &str| record.get(key).map(|field| field.whole()).transpose();
    let tres = |key: &str| match record.get(key) {
        Some(field) => Tres::parse(field.text).map_err(|error| {
            let (at, part) = (error.at, error.found);
            let text = std::str::from_utf8(part).unwrap_or_default();
            Field { column: field.column + at, text, ..field }.error("TRES like cpu=8,mem=4G,gres/gpu=1")
        }),
        None => Ok(Tres::default()),
    };
    let list = |key: &str| record.get(key).map_or(Vec::new(), |f| f.text.split(',').map(String::from).collect());
    let megabytes = |n: u64| n.saturating_mul(1 << 20);
    let name = record.get("NodeName");
    let configured = tres("CfgTRES")?;
    // CPUEfctv (22.05 and later) excludes cores reserved for the system.
    let cpus = match (count("CPUEfctv")?, count("CPUTot")?) {
        (Some(cpus), _) | (None, Some(cpus)) => cpus,
        (None, None) => configured.cpus(),
    };
    let memory = match count("RealMemory")? {
        Some(all) => megabytes(all.saturating_sub(count("MemSpecLimit")?.unwrap_or(0))),
        None => configured.bytes(),
    };
    if let (Some(name), 0) = (name, cpus) {
        return Err(name.error("a node with CPUs (CPUTot or CfgTRES)"));
    }
    let gres = match record.get("Gres") {
        Some(field) => field.read("generic resources like gpu:a100:4", parse_gres)?,
        None => Vec::new(),
    };
    let allocated = tres("AllocTRES")?;
    let active = list("ActiveFeatures");
    Ok(Node {
        name: name.map_or(String::new(), |f| f.text.to_string()),
        cpus,
        allocated_cpus: count("CPUAlloc")?.unwrap_or(allocated.cpus()),
        memory,
        allocated_memory: count("AllocMem")?.map_or(allocated.bytes(), megabytes),
        gres,
        configured,
        allocated,
        features: if active.is_empty() { list("AvailableFeatures") } else { active },
        partitions: list("Partitions"),
        state: record.get("State").map_or(Vec::new(), |f| state_words(f.text)),
        weight: count("Weight")?.unwrap_or(1),
        line: name.map_or(0, |field| field.line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_node_is_read_from_one_line_or_several() {
        let lines = "NodeName=g1 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=34 CPUEfctv=62 CPUTot=64 CPULoad=19.88\n   \
            AvailableFeatures=a,b,spec_150\n   ActiveFeatures=a,spec_150\n   Gres=gpu:a100:4(S:0-3),vis:no_consume:1\n   \
            OS=Linux 6.1 #1 SMP\n   RealMemory=386619 AllocMem=196976 MemSpecLimit=1000 Sockets=2\n   \
            State=MIXED*+DRAIN ThreadsPerCore=2 Weight=5 Owner=N/A\n   Partitions=main,long \n   \
            CfgTRES=cpu=62,mem=385619M,billing=136,gres/gpu=4\n   AllocTRES=cpu=34,mem=196976M,gres/gpu=3\n   Comment=State=IDLE\n";
        let nodes = Nodes::parse(lines).unwrap();
        let flat = Nodes::parse(&lines.replace("\n  ", "")).unwrap();
        assert_eq!(nodes, flat);
        let node = &nodes.nodes[0];
        assert_eq!((node.cpus, node.allocated_cpus, node.memory), (62, 34, 385_619 << 20));
        assert_eq!((node.gpus(), node.allocated.gpus(), node.weight), (4, 3, 5));
        assert_eq!((node.features.join(" "), node.partitions.join(" ")), ("a spec_150".into(), "main long".into()));
        assert_eq!((node.state.join(" "), node.is_unavailable()), ("MIXED DRAIN".to_string(), true));
    }

    #[test]
    fn few_fields_are_required() {
        let nodes =
            Nodes::parse("NodeName=g CfgTRES=cpu=64,mem=4G,gres/gpu=4,gres/gpu:a100=4\nNodeName=h CPUTot=2\n").unwrap();
        assert_eq!((nodes.nodes[0].cpus, nodes.nodes[0].memory, nodes.nodes[0].gpus()), (64, 4 << 30, 4));
        assert_eq!((nodes.nodes[1].cpus, nodes.nodes[1].memory, nodes.nodes[1].is_unavailable()), (2, 0, false));
        let types = |text: &str| Vec::from_iter(Nodes::parse(text).unwrap().nodes[0].gpu_types()).join(" ");
        assert_eq!(types("NodeName=g CPUTot=2 CfgTRES=cpu=64,gres/gpu=4,gres/gpu:A100=4\n"), "gpu:a100");
        let mixed = "NodeName=g CPUTot=2 Gres=gpu:1g.5gb:7(S:0),gpu:A100:2,gpu:l4:0,fpga:x:1 CfgTRES=gres/gpu:v100=9\n";
        assert_eq!(types(mixed), "gpu:1g.5gb gpu:a100");
        assert_eq!(types("NodeName=g CPUTot=2 Gres=gpu:4 CfgTRES=gres/gpu:v100=4\n"), "");
        let error = |text: &str| Nodes::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("NodeName=g CPUTot=many\n"),
            "scontrol show node:1:19: found \"many\", expected a whole number"
        );
        assert!(error("NodeName=g State=IDLE\n").contains("expected a node with CPUs"));
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,60}|(NodeName=a( (CPUTot|Gres|State|CfgTRES|RealMemory)=[a-z0-9=:,(]{0,9}){0,4}\n){0,3}") {
            let _ = Nodes::parse(&text);
        }
    }
}
