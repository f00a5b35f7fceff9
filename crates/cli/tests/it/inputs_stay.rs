//! No command replaces what it reads, under whatever name.

use std::os::unix::fs::symlink;

use crate::test_folder::{CSV, SWF, TestFolder};

const CONF: &str = "ClusterName=lab\nSelectType=select/cons_tres\nPriorityType=priority/basic\n\
    NodeName=n[1-3] CPUs=4\nPartitionName=main Nodes=ALL Default=YES\n";

fn import(output: &str) -> [&str; 6] {
    ["site", "import", "--slurm-conf", "slurm.conf", "-o", output]
}

#[test]
fn a_site_is_not_written_over_the_files_that_it_is_read_from() {
    let folder = TestFolder::with("slurm.conf", CONF);
    folder.assert_rejects(
        &import("."),
        2,
        &["./slurm.conf: the output would replace the input slurm.conf", "--output"],
    );
    assert_eq!(folder.read("slurm.conf"), CONF);
    // Under other names, and as an included file.
    std::fs::create_dir(folder.path("lab")).unwrap();
    symlink("../slurm.conf", folder.path("lab/slurm.conf")).unwrap();
    folder.assert_rejects(&import("lab"), 2, &["lab/slurm.conf: the output would replace"]);
    std::fs::remove_file(folder.path("lab/slurm.conf")).unwrap();
    std::fs::hard_link(folder.path("slurm.conf"), folder.path("lab/slurm.conf")).unwrap();
    folder.assert_rejects(&import("lab"), 2, &["lab/slurm.conf: the output would replace"]);
    std::fs::remove_file(folder.path("lab/slurm.conf")).unwrap();
    folder.write("lab/accounts.toml", "NodeName=extra CPUs=1\n");
    folder.write("slurm.conf", format!("{CONF}include lab/accounts.toml\n"));
    let input = "lab/accounts.toml: the output would replace the input lab/accounts.toml";
    folder.assert_rejects(&import("lab"), 2, &[input]);
}

#[test]
fn a_slurm_conf_that_no_import_wrote_is_not_replaced() {
    let folder = TestFolder::with("slurm.conf", CONF);
    std::fs::create_dir(folder.path("etc")).unwrap();
    folder.write("etc/slurm.conf", "ClusterName=other\n");
    folder.assert_rejects(&import("etc"), 2, &["etc/slurm.conf: found a file that evenhand did not write", "another"]);
    assert_eq!(folder.read("etc/slurm.conf"), "ClusterName=other\n");
    // One of an earlier import is.
    folder.run(&import("lab")).assert_succeeds();
    folder.run(&import("lab")).assert_succeeds();
}

#[test]
fn a_site_is_written_whole_or_not_at_all() {
    let folder = TestFolder::with("slurm.conf", CONF.replace("basic", "multifactor"));
    folder.run(&import("lab")).assert_succeeds();
    let before = folder.read("lab/cluster.toml");
    folder.write("slurm.conf", CONF.replace("basic", "multifactor").replace("CPUs=4", "CPUs=8"));
    std::fs::remove_file(folder.path("lab/policy-settings.toml")).unwrap();
    std::fs::create_dir(folder.path("lab/policy-settings.toml")).unwrap();
    folder.assert_rejects(&import("lab"), 3, &["cannot write lab/policy-settings.toml: is a folder"]);
    assert_eq!(folder.read("lab/cluster.toml"), before);
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let folder = TestFolder::with("w.swf", SWF);
    folder.write("b.swf", SWF);
    symlink("w.swf", folder.path("link")).unwrap();
    std::fs::create_dir(folder.path("shards")).unwrap();
    folder.write("shards/part.csv", CSV);
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = folder.assert_rejects(&[&["workload"], arguments].concat(), 2, words);
        assert_eq!((folder.read("w.swf").as_str(), folder.read("shards/part.csv").as_str()), (SWF, CSV), "{output:?}");
    };
    refused(&["import", "w.swf", "-o", "w.swf"], &["w.swf: the output is the input w.swf", "name another file"]);
    refused(&["import", "w.swf", "-o", "link"], &["link: the output is the input w.swf"]);
    refused(&["import", "b.swf", "link", "-o", "w.swf"], &["w.swf: the output is the input link"]);
    refused(&["import", "shards", "-o", "shards/part.csv"], &["the output is the input shards/part.csv"]);
    refused(&["export", "w.swf", "--to", "swf", "-o", "./w.swf"], &["./w.swf: the output is the input w.swf"]);
    let swf = std::fs::File::open(folder.path("w.swf")).unwrap();
    let piped = folder.command(&["workload", "import", "-", "-o", "w.swf"]).stdin(swf).output().unwrap();
    assert_eq!((piped.status.code(), folder.read("w.swf").as_str()), (Some(2), SWF));
    // A new file in a folder of shards is none of them.
    folder.run(&["workload", "import", "shards", "-o", "shards/w.parquet"]).assert_succeeds();
    folder.run(&["workload", "import", "shards", "-o", "shards/w.parquet"]).assert_succeeds();
}
