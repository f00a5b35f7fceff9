//! `--explain` explains the columns of the tables of every verb.

use std::collections::BTreeSet;

use crate::test_folder::TestFolder;

/// Headers that say by themselves what the column holds, or that are names of the input.
const PLAIN: [&str; 23] = [
    "policy", "user", "users", "tasks", "jobs", "account", "resource", "count", "workload", "seed", "cpu", "mem",
    "gpu", "machines", "job", "property", "process", "max", "mean", "who", "capacity", "used", "state",
];

/// The headers of the tables in a text: lines above a rule, whose cells are at least two blanks apart.
fn headers(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    let tables = lines.windows(2).filter(|pair| is_rule(pair[1]) && !pair[0].is_empty());
    tables
        .flat_map(|pair| pair[0].split("  ").map(|cell| cell.trim().to_string()))
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn every_verb_with_tables_explains_their_columns() {
    let folder = TestFolder::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    for file in std::fs::read_dir(examples).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path(&file.file_name().to_string_lossy())).unwrap();
    }
    let study = ["study", "lab.swf", "--capacity", "pool.toml", "--no-tasks", "--policy", "fifo,drf,sdrf"];
    // A command, and how many of its columns are explained at least.
    let commands: [(&[&str], usize); 8] = [
        (&[&study[..], &["--classes", "--verbose", "--repeat", "3", "--out", "a"]].concat(), 14),
        (&[&study[..], &["--arrivals", "sessions", "--out", "b"]].concat(), 9),
        (&["audit", "--history", "two-weeks.sacct"], 8),
        (&["workload", "describe", "lab.swf"], 8),
        (&["why", "--log", "two-weeks.sacct", "user:paul"], 2),
        (&["price", "cpu=4:mem=8GiB", "--cluster", "site.toml"], 3),
        (&["timeline", "two-who-come.toml", "--mechanism", "drf"], 2),
        (&["allocate", "team.toml", "--mechanism", "drf"], 1),
    ];
    for (command, least) in commands {
        let output = folder.run(&[command, &["--explain"]].concat());
        assert!(output.status < 2, "{output:?}");
        let text = output.stdout;
        let unexplained: Vec<String> = headers(&text)
            .into_iter()
            .filter(|header| !PLAIN.contains(&header.as_str()))
            .filter(|header| {
                !text.lines().any(|line| {
                    line.strip_prefix(header.as_str()).is_some_and(|r| r.starts_with("  ") && r.trim().len() > 10)
                })
            })
            .collect();
        eprintln!("{}: not explained: {unexplained:?}", command[..2].join(" "));
        let explained = headers(&text).len() - unexplained.len();
        assert!(explained >= least, "{command:?}: {explained} explained, not {unexplained:?}\n{text}");
        // The sentences of these two are a line each.
        let is_wide = |line: &&str| line.chars().count() > 100;
        assert_eq!(text.lines().find(is_wide), None, "{command:?}");
    }
}
