//! Mistakes in the files of `evenhand site import`.

use crate::test_folder::TestFolder;

const NODES: &str = "NodeName=n[1-3] CPUs=4\nPartitionName=main Nodes=ALL Default=YES\n";

fn conf(settings: &str) -> String {
    format!("ClusterName=lab\nSelectType=select/cons_tres\n{settings}{NODES}")
}

const IMPORT: [&str; 6] = ["site", "import", "--slurm-conf", "slurm.conf", "-o", "lab"];

#[test]
fn malformed_values_of_slurm_conf_are_errors_with_their_place() {
    for (settings, message) in [
        ("PriorityType=priority/basic\nPriorityDecayHalfLife=14x\n", "slurm.conf:4:23: found \"14x\", expected a time"),
        ("PriorityWeightAge=many\n", "slurm.conf:3:19: found \"many\", expected a whole number, at most 4294967295"),
        ("PriorityType=priority/multifactor\nPriorityWeightTRES=CPU\n", "slurm.conf:4:20: "),
    ] {
        let folder = TestFolder::with("slurm.conf", conf(settings));
        folder.assert_rejects(&IMPORT, 2, &[message]);
    }
}

#[test]
fn what_is_not_known_of_slurm_conf_is_named() {
    let folder = TestFolder::with("slurm.conf", format!("\u{feff}{}", conf("PriorityType=priority/bogus\n")));
    let output = folder.run(&[&IMPORT[..], &["--release", "99.99"]].concat()).assert_succeeds();
    let newer =
        "The release of Slurm is 99.99, and the newest that is known is 26.05: simulated by the rules of 24.11.";
    assert!(output.stderr.contains(newer), "{}", output.stderr);
    assert!(!output.stderr.contains("no parameter"), "{}", output.stderr);
    let line = "PriorityType: priority/bogus (slurm.conf:3:14); simulated as priority/basic";
    assert!(output.stdout.replace("\n    ", " ").contains(line), "{}", output.stdout);
    folder.write("slurm.conf", conf("ClusterNam=lab\n"));
    let output = folder.run(&IMPORT).assert_succeeds();
    assert!(output.stderr.contains("is ignored; did you mean \"ClusterName\"?\n"), "{}", output.stderr);
}

#[test]
fn files_that_are_not_the_texts_of_commands_are_named() {
    let folder = TestFolder::with("slurm.conf", conf(""));
    for (name, text) in
        [("empty", "\n"), ("nodes.json", "{\"nodes\": []}"), ("other", "hello\n"), ("assoc", "art|zoe\n")]
    {
        folder.write(name, text);
    }
    std::fs::create_dir(folder.path("folder")).unwrap();
    let refused = |option: &str, file: &str, words: &str| {
        folder.assert_rejects(&[&IMPORT[..], &[option, file]].concat(), 2, &[words]);
    };
    for option in ["--assoc", "--qos", "--sacctmgr-dump", "--nodes", "--partitions", "--reservations", "--events"] {
        refused(option, "empty", "empty:1:1: found an empty file, expected the text of s");
        refused(option, "nodes.json", "nodes.json:1:1: found JSON, which is not read here, expected the text of s");
        refused(option, "folder", "cannot read folder: Is a directory");
    }
    refused("--nodes", "other", "other:1:1: found no line that begins with NodeName=, expected the text of scontrol");
    refused("--partitions", "other", "other:1:1: found no line that begins with PartitionName=, expected the text of");
    refused("--assoc", "assoc", "assoc:1:1: found \"art|zoe\", expected a header line with Account, User, Share");
    // The message that names the verb for nodes also says in which form it reads them.
    let import = ["workload", "import", "nodes.json", "-o", "w.parquet"];
    folder.assert_rejects(&import, 2, &["evenhand site import reads nodes and partitions as text, not as JSON"]);
}

#[test]
fn a_folder_in_place_of_a_file_is_an_error_of_the_command_line() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("folder")).unwrap();
    let site = ["site", "import", "--slurm-conf", "folder", "-o", "lab"];
    let allocate = ["allocate", "folder", "--mechanism", "drf"];
    for arguments in [&site[..], &allocate, &["config", "check", "folder"]] {
        folder.assert_rejects(arguments, 2, &["folder: Is a directory"]);
    }
}
