//! Options of nodes and partitions in the texts of `scontrol show node` and `scontrol show partition`.

use std::path::Path;

use super::effect::option_names;
use super::{Position, SlurmConf};
use crate::cluster_from_site::shortened;
use crate::nodes::{Node, state_words};
use crate::parse_key_values::{Record, records};
use crate::parse_table::Field;

/// Options that `scontrol` spells otherwise than slurm.conf(5).
const SPELLED: [(&str, &str); 2] = [("CpuSpecList", "CPUSpecList"), ("QOS", "QoS")];

/// An option with its value, the nodes that have it, and the place of the first.
struct Found<'a> {
    option: &'a str,
    value: &'a str,
    names: Vec<&'a str>,
    place: Position,
}

impl SlurmConf {
    /// Puts the options of nodes in a text of `scontrol show node` in the place of those of slurm.conf. Nodes with the same value
    /// are together. The states of nodes on which jobs can start are left out.
    pub fn set_options_of_nodes(&mut self, file: &Path, text: &str) {
        self.forget_options("NodeName");
        let records = records("scontrol show node", text, "NodeName");
        let mut found: Vec<Found<'_>> = Vec::new();
        for record in &records {
            // CPUEfctv has the processors for jobs, and is what a cluster has of the node.
            let has_effective = record.get("CPUEfctv").is_some();
            for option in option_names("NodeName") {
                let Some((name, field)) = of_record(record, "NodeName", option) else { continue };
                let is_followed = match option {
                    "State" => !takes_no_jobs(field.text),
                    "CoreSpecCount" | "CpuSpecList" => has_effective,
                    _ => false,
                };
                if is_followed {
                    continue;
                }
                match found.iter_mut().find(|other| other.option == option && other.value == field.text) {
                    Some(same) => same.names.push(name),
                    None => found.push(Found { option, value: field.text, names: vec![name], place: at(file, &field) }),
                }
            }
        }
        for Found { option, value, names, place } in found {
            self.add_option("NodeName", option, &shortened(&names), value, place);
        }
    }

    /// Puts the options of partitions in a text of `scontrol show partition` in the place of those of slurm.conf.
    pub fn set_options_of_partitions(&mut self, file: &Path, text: &str) {
        self.forget_options("PartitionName");
        self.qos_places.clear();
        for record in &records("scontrol show partition", text, "PartitionName") {
            for option in option_names("PartitionName") {
                let Some((name, field)) = of_record(record, "PartitionName", option) else { continue };
                if option == "QOS" {
                    self.qos_places.insert(name.to_string(), at(file, &field));
                }
                self.add_option("PartitionName", option, name, field.text, at(file, &field));
            }
        }
    }

    fn forget_options(&mut self, kind: &str) {
        let is_other = |option: &String| option.split(' ').next() != Some(kind);
        self.options.retain(|option, _| is_other(option));
        self.option_places.retain(|option, _| is_other(option));
    }

    fn add_option(&mut self, kind: &str, option: &str, name: &str, value: &str, place: Position) {
        let option = format!("{kind} {option}");
        self.option_places.entry(option.clone()).or_default().push(place);
        self.options.entry(option).or_default().push(format!("{name}={value}"));
    }
}

/// The name of a record, and the value of one of its options.
fn of_record<'a>(record: &Record<'a>, kind: &str, option: &str) -> Option<(&'a str, Field<'a>)> {
    let spelled = SPELLED.iter().find(|(known, _)| *known == option).map_or(option, |(_, spelled)| spelled);
    Some((record.get(kind)?.text, record.get(spelled)?))
}

fn at(file: &Path, field: &Field<'_>) -> Position {
    Position { file: file.to_owned(), line: field.line, column: field.column }
}

fn takes_no_jobs(state: &str) -> bool {
    let node = Node { state: state_words(state), ..Node::default() };
    node.is_unavailable() && !node.is_future()
}

#[cfg(test)]
mod tests {
    use super::super::{TextFiles, unmodelled_settings};
    use super::*;

    #[test]
    fn options_of_the_texts_take_the_place_of_those_of_slurm_conf() {
        let mut conf = SlurmConf::default();
        let place = Position { file: "slurm.conf".into(), line: 1, column: 1 };
        conf.add_option("NodeName", "State", "old", "DRAIN", place.clone());
        conf.add_option("PartitionName", "RootOnly", "old", "YES", place);
        let nodes = "NodeName=n1 CPUTot=4 CoreSpecCount=2 State=IDLE+DRAIN Gres=(null)\n\
            NodeName=n2 CPUTot=4 CPUEfctv=2 CoreSpecCount=2 State=IDLE+DRAIN\nNodeName=n3 CPUTot=4 State=MIXED+PLANNED\n\
            NodeName=g1 CPUTot=4 State=IDLE Gres=gpu:a100:1,gpu:l4:1\nNodeName=g2 CPUTot=4 State=IDLE Gres=gpu:h100:1(S:0),fpga:2\n";
        conf.set_options_of_nodes(Path::new("n.txt"), nodes);
        let partitions = "PartitionName=main\n   AllowAccounts=physics AllowGroups=ALL QoS=pq\n   DefMemPerCPU=100 DefaultTime=00:10:00\n\
            \x20  MaxCPUsPerNode=2 MaxNodes=1 OverSubscribe=FORCE:4 State=INACTIVE\n\
            PartitionName=all AllowAccounts=ALL QoS=N/A DefaultTime=NONE MaxCPUsPerNode=UNLIMITED MaxNodes=UNLIMITED State=UP OverSubscribe=NO\n";
        conf.set_options_of_partitions(Path::new("p.txt"), partitions);
        let found = unmodelled_settings(Some(&conf), &[], &[], TextFiles::default());
        let mut found: Vec<String> = found
            .iter()
            .map(|one| format!("{} {} ({})", one.name, one.values.join(", "), one.places.join(", ")))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "NodeName CoreSpecCount n1=2 (n.txt:1:36)",
                "NodeName Gres g1=gpu:a100:1,gpu:l4:1 (n.txt:4:38)",
                "NodeName Gres g2=gpu:h100:1(S:0),fpga:2 (n.txt:5:38)",
                "NodeName State n[1-2]=IDLE+DRAIN (n.txt:1:44)",
                "PartitionName AllowAccounts main=physics (p.txt:2:18)",
                "PartitionName DefMemPerCPU main=100 (p.txt:3:17)",
                "PartitionName DefaultTime main=00:10:00 (p.txt:3:33)",
                "PartitionName MaxCPUsPerNode main=2 (p.txt:4:19)",
                "PartitionName MaxNodes main=1 (p.txt:4:30)",
                "PartitionName OverSubscribe main=FORCE:4 (p.txt:4:46)",
                "PartitionName QOS main=pq (p.txt:2:46)",
                "PartitionName State main=INACTIVE (p.txt:4:60)",
            ]
        );
        assert_eq!(conf.qos_places["main"].line, 2);
    }
}
