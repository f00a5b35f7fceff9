//! `evenhand price`

use crate::bench::Bench;

const SITE: &str = include_str!("../../../../docs/examples/site.toml");

fn price(arguments: &[&str]) -> serde_json::Value {
    let bench = Bench::with("site.toml", SITE);
    let fixed = ["price", "--cluster", "site.toml", "--format", "json"];
    bench.run(&[&fixed, arguments].concat()).done().json()
}

#[test]
fn the_least_price_is_the_sum_over_chunks() {
    let record = price(&["2:cpu=1:mem=32GiB+cpu=16:mem=200GiB"]);
    assert_eq!(record["processors"], 2.0 + 25.0);
    assert_eq!(record["chunks"][0]["cheapest"], "odd");
    let on: Vec<&serde_json::Value> =
        record["chunks"][0]["machines"].as_array().unwrap().iter().map(|m| &m["processors"]).collect();
    assert_eq!(on, [8.0, 1.0, 4.0]);
    assert_eq!(record["chunks"][1]["machines"][0]["unsuitable"], "has 64Gi mem");
    let warnings: Vec<&str> = record["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert!(warnings[0].starts_with("one odd kind of machine sets the price: odd has 0.2 %"), "{warnings:?}");
    assert!(
        warnings[1].starts_with("splitting pays: the chunk in 4 pieces would cost 16 instead of 25"),
        "{warnings:?}"
    );
}

#[test]
fn the_queue_s_price_and_the_machine_s_speed_multiply_the_charge() {
    let record = price(&["cpu=4", "--queue", "long", "--walltime", "100s", "--property", "cuda"]);
    assert_eq!(record["penalty"], serde_json::json!([4.0 * 100.0 * 2.0 * 1.5, 4.0 * 100.0 * 2.0 * 1.5]));
    assert_eq!(record["chunks"][0]["machines"][0]["unsuitable"], "lacks cuda");
    let gpus = |how: &str| price(&["cpu=8:gpu=2", "--combine", how])["processors"].clone();
    assert_eq!((gpus("max"), gpus("sum")), (16.0.into(), 24.0.into()));
    assert_eq!(gpus("max-plus-optional"), 8.0 + 2.0 * 1732.0 / 16.0);
}

#[test]
fn what_no_machine_suits_or_the_queue_forbids_is_refused_with_the_reason() {
    let bench = Bench::with("site.toml", SITE);
    let refused = |arguments: &[&str]| -> Vec<String> {
        let fixed = ["price", "--cluster", "site.toml", "--format", "json"];
        let ran = bench.run(&[&fixed, arguments].concat());
        assert_eq!(ran.status, 1, "{ran:?}");
        ran.json()["refused"].as_array().unwrap().iter().map(|r| r.as_str().unwrap().to_string()).collect()
    };
    assert_eq!(refused(&["cpu=64"]), ["no machine suits 64 cpu"]);
    assert_eq!(
        refused(&["4:cpu=16", "--queue", "long", "--walltime", "8d"]),
        [
            "queue long allows 604800 s at most, the job asks for 691200 s",
            "queue long allows a job 32 cpu at most, this one wants 64 cpu"
        ]
    );
}

#[test]
fn what_is_not_there_is_named() {
    let bench = Bench::with("site.toml", SITE);
    let wrong = |arguments: &[&str], says: &str| {
        bench.refuses(&[&["price", "--cluster", "site.toml"], arguments].concat(), 2, &[says]);
    };
    wrong(&["cpus=1"], "JOB: found \"cpus\", expected one of: cpu, mem, gpu; did you mean \"cpu\"?");
    wrong(&["cpu=x"], "JOB: found \"cpu=x\"");
    wrong(&["cpu=1", "--queue", "lang"], "did you mean \"long\"?");
    wrong(&["cpu=1", "--property", "gpu"], "no machine has \"gpu\"");
    wrong(&["cpu=1", "--walltime", "0s"], "--walltime: found 0");
    wrong(&["cpu=1", "--combine", "mix"], "expected one of: max, sum, max-plus-optional");
}
