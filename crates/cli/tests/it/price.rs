//! `evenhand price`

use crate::test_folder::TestFolder;

const SITE: &str = include_str!("../../../../docs/examples/site.toml");

fn price(arguments: &[&str]) -> serde_json::Value {
    let folder = TestFolder::with("site.toml", SITE);
    let fixed = ["price", "--cluster", "site.toml", "--format", "json"];
    folder.run(&[&fixed, arguments].concat()).assert_succeeds().json()
}

#[test]
fn the_price_is_the_sum_of_the_chunks_lowest_prices() {
    let record = price(&["2:cpu=1:mem=32GiB+cpu=16:mem=200GiB"]);
    assert_eq!(record["processors"], 2.0 + 25.0);
    assert_eq!(record["chunks"][0]["cheapest"], "odd");
    let on: Vec<&serde_json::Value> =
        record["chunks"][0]["machines"].as_array().unwrap().iter().map(|m| &m["processors"]).collect();
    assert_eq!(on, [8.0, 1.0, 4.0]);
    assert_eq!(record["chunks"][1]["machines"][0]["unsuitable"], "has 64Gi mem");
    let warnings: Vec<&str> = record["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert!(warnings[0].starts_with("one unusual kind of machine determines the price: odd has 0.2 %"), "{warnings:?}");
    assert!(
        warnings[1].starts_with("splitting is profitable: the chunk in 4 pieces would cost 16 instead of 25"),
        "{warnings:?}"
    );
}

/// Eq. 1 of Klusáček and Rudová is the largest part of all machines that the whole job takes, not one chunk after another.
#[test]
fn one_machine_of_all_prices_the_whole_job() {
    let cluster = "[[machines]]\nname = \"a\"\ncount = 2\ncpu = 10\nmem = \"10Gi\"\n";
    let folder = TestFolder::with("two.toml", cluster);
    for job in ["1:cpu=4:mem=0Gi+1:cpu=1:mem=8Gi", "cpu=5:mem=8Gi"] {
        let run = folder.run(&["price", "--cluster", "two.toml", "--format", "json", job]);
        assert_eq!(run.assert_succeeds().json()["maui_processors"], 8.0, "{job}");
    }
}

#[test]
fn the_charge_is_multiplied_by_the_queues_price_and_the_machines_speed() {
    let record = price(&["cpu=4", "--queue", "long", "--walltime", "100s", "--property", "cuda"]);
    assert_eq!(record["penalty"], serde_json::json!([4.0 * 100.0 * 2.0 * 1.5, 4.0 * 100.0 * 2.0 * 1.5]));
    assert_eq!(record["chunks"][0]["machines"][0]["unsuitable"], "lacks cuda");
    let gpus = |how: &str| price(&["cpu=8:gpu=2", "--combine", how])["processors"].clone();
    assert_eq!((gpus("max"), gpus("sum")), (16.0.into(), 24.0.into()));
    assert_eq!(gpus("max-plus-optional"), 8.0 + 2.0 * 1732.0 / 16.0);
    // All rules side by side, whichever is chosen, and a warning where a GPU costs more than its machine.
    let record = price(&["cpu=8:gpu=2"]);
    let rules: Vec<_> = record["rules"].as_array().unwrap().iter().map(|r| (&r["combine"], &r["processors"])).collect();
    let expected: Vec<serde_json::Value> = vec![16.0.into(), 24.0.into(), (8.0 + 2.0 * 1732.0 / 16.0).into()];
    assert_eq!(rules.iter().map(|r| r.1.clone()).collect::<Vec<_>>(), expected, "{rules:?}");
    let of_gpu = &record["rules"][0]["unit_prices"][0];
    assert_eq!((&of_gpu["resource"], &of_gpu["processors"]), (&"gpu".into(), &8.0.into()));
    let warning = record["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("under max-plus-optional one gpu of gpu costs 108.2 processors, more than the 32"),
        "{warning}"
    );
}

#[test]
fn jobs_that_fit_no_machine_or_exceed_a_queues_limit_are_refused_with_the_reason() {
    let folder = TestFolder::with("site.toml", SITE);
    let refused = |arguments: &[&str]| -> Vec<String> {
        let fixed = ["price", "--cluster", "site.toml", "--format", "json"];
        let output = folder.run(&[&fixed, arguments].concat());
        assert_eq!(output.status, 1, "{output:?}");
        output.json()["refused"].as_array().unwrap().iter().map(|r| r.as_str().unwrap().to_string()).collect()
    };
    assert_eq!(refused(&["cpu=64"]), ["no machine suits 64 cpu"]);
    assert_eq!(
        refused(&["4:cpu=16", "--queue", "long", "--walltime", "8d"]),
        [
            "queue long allows at most 604800 s, the job requests 691200 s",
            "queue long allows at most 32 cpu per job, the job requests 64 cpu"
        ]
    );
}

#[test]
fn unknown_names_are_reported() {
    let folder = TestFolder::with("site.toml", SITE);
    let assert_rejected = |arguments: &[&str], expected: &str| {
        folder.assert_rejects(&[&["price", "--cluster", "site.toml"], arguments].concat(), 2, &[expected]);
    };
    assert_rejected(&["cpus=1"], "JOB: found \"cpus\", expected one of: cpu, mem, gpu; did you mean \"cpu\"?");
    assert_rejected(&["cpu=x"], "JOB: found \"cpu=x\"");
    assert_rejected(&["cpu=1", "--queue", "lang"], "did you mean \"long\"?");
    assert_rejected(&["cpu=1", "--property", "gpu"], "no machine has \"gpu\"");
    assert_rejected(&["cpu=1", "--walltime", "0s"], "--walltime: found 0");
    assert_rejected(&["cpu=1", "--combine", "mix"], "expected one of: max, sum, max-plus-optional");
}
