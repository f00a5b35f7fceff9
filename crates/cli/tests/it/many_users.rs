//! Studies of very many users: what is written stays small enough to be read.

use crate::test_folder::TestFolder;

/// One task each of so many users, and ten tasks of `last`.
fn trace(users: u64) -> String {
    let row = |at: u64, user: &str| format!("{at},{at},{},{user},{at},1,1\n", at + 50_000);
    let each: String = (0..users).map(|i| row(i * 10, &format!("u{i}"))).collect();
    each + &(0..10).map(|i| row(users * 10 + i, "last")).collect::<String>()
}

#[test]
fn of_very_many_users_the_most_affected_are_listed_and_all_are_in_users_csv() {
    let folder = TestFolder::with("t.csv", trace(12_000));
    let study = ["study", "t.csv", "--policy", "fifo,drf", "--capacity", "0.5", "--out", "out", "--format", "json"];
    let first = folder.run(&study).assert_succeeds();
    let summary: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    for run in summary["runs"].as_array().unwrap() {
        assert_eq!(run["users"].as_array().unwrap().len(), 1000);
        assert_eq!(run["other_users"]["users"], 11_001);
        let listed: u64 = run["users"].as_array().unwrap().iter().map(|user| user["submitted"].as_u64().unwrap()).sum();
        assert_eq!(listed + run["other_users"]["submitted"].as_u64().unwrap(), 12_010);
    }
    assert_eq!(folder.read("out/summary.json"), first.stdout);
    assert_eq!(folder.read("out/users.csv").lines().count(), 1 + 2 * 12_001);
    let size = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
    assert!(size("out/runs/drf-0.5.json.zst") < 1 << 20, "{}", size("out/runs/drf-0.5.json.zst"));
    // The same command reuses the compressed results.
    let second = folder.run(&study).assert_succeeds();
    assert_eq!(first.stdout, second.stdout, "with the times of the first simulation");
    let all = folder.run(&[&study[..], &["--list-all-users"]].concat()).assert_succeeds();
    let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["runs"][1]["users"].as_array().unwrap().len(), 12_001);
    assert!(all["runs"][1].get("other_users").is_none());
    // A damaged one is not reused.
    folder.write("out/runs/drf-0.5.json.zst", "no archive");
    let third = folder.run(&study).assert_succeeds();
    assert!(third.stderr.contains("drf-0.5.json.zst"), "{third:?}");
    // With fewer users the same run is a file of another name, and the old one goes.
    folder.write("t.csv", trace(100));
    folder.run(&study).assert_succeeds();
    assert!(folder.path("out/runs/drf-0.5.json").exists() && !folder.path("out/runs/drf-0.5.json.zst").exists());
}
