//! Grids, their points, and runs of them on this machine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use evenhand_policies::Registry;
use evenhand_study::Digest;
use evenhand_study::sweep::{Folder, Grid, PointFailure, SweepError, Watch, layout, local, summarize};
use tempfile::TempDir;

/// Tasks of two users, in the seven-column CSV.
fn trace(seed: u64) -> String {
    (0..60u64)
        .map(|i| {
            let (submit, run) = (i * i % 50 * 1_000_000, (3 + (i * 7 + seed) % 11) * 1_000_000);
            (
                submit,
                format!(
                    "{submit},{submit},{},{},1,{},1\n",
                    submit + run,
                    ["ann", "bob"][(i % 3 / 2) as usize],
                    1 + i % 2
                ),
            )
        })
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .collect()
}

const GRID: &str = r#"
workload = ["a.csv"]
generate = { like = "google2011", tasks = 800, users = 9, days = 1, seeds = [3, 4] }
policy = ["fifo", "sdrf", "drf"]
capacity = [0.8, "pool.toml"]
delta = [0.99, 0.999999]
weights = ["equal", "weights.toml"]
sdrf-key = ["sum", "dominant"]
"#;

/// A folder with the files that grids name.
fn bench() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.csv", &trace(1));
    write("pool.toml", "[pool]\ncpu = 3\nmem = 3\n");
    write("weights.toml", "[weights]\nann = 2\n");
    dir
}

fn grid(dir: &Path, text: &str) -> Result<Grid, String> {
    let path = dir.join("grid.toml");
    std::fs::write(&path, text).unwrap();
    Grid::read(&path, 1, &Registry::built_in()).map_err(|e| e.to_string().replace(&format!("{}/", dir.display()), ""))
}

#[test]
fn the_last_axis_changes_fastest_and_policies_have_the_axes_they_need() {
    let dir = bench();
    let grid = grid(dir.path(), GRID).unwrap();
    let points = layout(&grid);
    // Workloads, weights, capacities, then fifo, sdrf with keys and decays, drf.
    assert_eq!(points.len(), 3 * 2 * 2 * (1 + 2 * 2 + 1));
    let descriptions: Vec<String> = points.iter().map(|p| p.describe(&grid)).collect();
    assert_eq!(descriptions[0], "a.csv, weights equal, capacity 0.8, fifo");
    assert_eq!(descriptions[1], "a.csv, weights equal, capacity 0.8, sdrf sum 0.99");
    assert_eq!(descriptions[2], "a.csv, weights equal, capacity 0.8, sdrf sum 0.999999");
    assert_eq!(descriptions[3], "a.csv, weights equal, capacity 0.8, sdrf dominant 0.99");
    assert_eq!(descriptions[5], "a.csv, weights equal, capacity 0.8, drf");
    assert_eq!(descriptions[6], "a.csv, weights equal, capacity pool.toml, fifo");
    assert_eq!(descriptions[12], "a.csv, weights weights.toml, capacity 0.8, fifo");
    assert_eq!(descriptions[24], "google2011, 800 tasks, 9 users, 1 days, seed 3, weights equal, capacity 0.8, fifo");
    assert_eq!(
        descriptions[71],
        "google2011, 800 tasks, 9 users, 1 days, seed 4, weights weights.toml, capacity pool.toml, drf"
    );
    for (at, point) in points.iter().enumerate() {
        assert_eq!((point.number, point.base), (at, at / 6 * 6));
    }
}

#[test]
fn errors_of_a_grid_are_reported_with_their_position() {
    let dir = bench();
    let error = |text: &str| grid(dir.path(), text).unwrap_err();
    let rest = "\nworkload = \"a.csv\"\npolicy = \"drf\"\ncapacity = 1\n";
    assert!(grid(dir.path(), rest).is_ok(), "one value is a list of one");
    let reports = |text: &str, part: &str| {
        let error = error(text);
        assert!(error.starts_with(part), "{error}");
        assert!(error.contains('^') || part.contains("found no"), "{error}");
    };
    reports(&format!("polcy = 1{rest}"), "grid.toml:1:1: unknown field \"polcy\"");
    reports("workload = [\"b.csv\"]\npolicy = \"drf\"\ncapacity = 1", "grid.toml:1:13: workload: there is no b.csv");
    reports("workload = \"a.csv\"\npolicy = [\"drf\", \"dfr\"]\ncapacity = 1", "grid.toml:2:18: policy: found \"dfr\"");
    reports(
        "workload = \"a.csv\"\npolicy = [\"drf\", \"drf\"]\ncapacity = 1",
        "grid.toml:2:18: policy: found drf a second",
    );
    reports("workload = \"a.csv\"\npolicy = []\ncapacity = 1", "grid.toml:2:10: policy: found an empty list");
    reports("workload = \"a.csv\"\npolicy = \"drf\"\ncapacity = [1, 0]", "grid.toml:3:16: capacity: found \"0\"");
    reports("workload = \"a.csv\"\npolicy = \"drf\"\ncapacity = \"p\"", "grid.toml:3:12: capacity: found \"p\"");
    reports("workload = \"a.csv\"\npolicy = \"drf\"\n", "grid.toml:1:1: the document: found no capacity");
    reports("policy = \"drf\"\ncapacity = 1\n", "grid.toml:1:1: the document: found no workload");
    reports(&format!("delta = 1{rest}"), "grid.toml:1:9: delta: ");
    reports(&format!("half-life = 8{rest}"), "grid.toml:1:13: half-life: found the number 8");
    reports(&format!("delta = 0.9\nhalf-life = \"8d\"{rest}"), "grid.toml:2:13: half-life: found both");
    reports(
        &format!("until = \"finish\"{rest}"),
        "grid.toml:1:9: until: found \"finish\", expected finished or trace-end",
    );
    reports(&format!("order = \"heap\"{rest}"), "grid.toml:1:9: order: found \"heap\", expected one of: auto, scan");
    reports(&format!("no-blocking = 1{rest}"), "grid.toml:1:15: no-blocking: found a number");
    reports(
        &format!("scheduler = \"easy:plan=x\"{rest}"),
        "grid.toml:1:13: scheduler: plan: found \"x\", expected one of",
    );
    reports(&format!("scheduler = \"slurm\"{rest}"), "grid.toml:1:13: scheduler: found slurm, which needs machines");
    reports(
        &format!("no-blocking = true\nscheduler = \"easy\"{rest}"),
        "grid.toml:2:13: scheduler: backfilling already lets tasks start",
    );
    reports(&format!("weights = \"w.toml\"{rest}"), "grid.toml:1:11: weights: there is no w.toml");
    reports(
        &format!("generate = {{ tasks = 0 }}{rest}"),
        "grid.toml:1:22: tasks: found 0, expected a whole number, 1 to",
    );
    reports(&format!("generate = {{ seeds = [1, 1] }}{rest}"), "grid.toml:1:26: seeds: found 1 a second time");
    reports(
        &format!("generate = [{{ days = 1 }}, {{ days = 1 }}]{rest}"),
        "grid.toml:1:27: generate: google2011, 200000",
    );
    std::fs::write(dir.path().join("bad.toml"), "[weights]\nann = 0\n").unwrap();
    reports(&format!("weights = \"bad.toml\"{rest}"), "bad.toml:2:7: weight of ann");
    std::fs::write(dir.path().join("bad.toml"), "[poool]\n").unwrap();
    reports("workload = \"a.csv\"\npolicy = \"drf\"\ncapacity = \"bad.toml\"", "bad.toml:1:1: no [pool]");
}

#[test]
fn a_digest_changes_with_everything_that_changes_a_result_and_with_nothing_else() {
    let dir = bench();
    let text = "workload = \"a.csv\"\npolicy = \"sdrf\"\ncapacity = \"pool.toml\"\nweights = \"weights.toml\"\n";
    let digest = |text: &str| {
        let grid = grid(dir.path(), text).unwrap();
        grid.digest(&layout(&grid)[0]).unwrap()
    };
    let base = digest(text);
    assert_eq!(base, digest(&format!("# a comment\n{text}")));
    assert_eq!(base, digest(&text.replace("\"sdrf\"", "[\"sdrf\", \"drf\"]")), "other points do not matter");
    let mut seen = vec![base.clone()];
    let mut differs = |new: String| {
        assert!(!seen.contains(&new));
        seen.push(new);
    };
    differs(digest(&text.replace("sdrf", "drf")));
    differs(digest(&text.replace("\"pool.toml\"", "1")));
    differs(digest(&text.replace("\"pool.toml\"", "2")));
    differs(digest(&text.replace("weights.toml", "equal")));
    differs(digest(&format!("sdrf-key = \"dominant\"\n{text}")));
    differs(digest(&format!("no-blocking = true\n{text}")));
    assert_eq!(base, digest(&format!("scheduler = \"strict\"\n{text}")));
    differs(digest(&format!("scheduler = \"easy\"\n{text}")));
    differs(digest(&format!("scheduler = \"easy:reserve=2\"\n{text}")));
    differs(digest(&format!("until = \"trace-end\"\n{text}")));
    differs(digest(&format!("delta = 0.5\n{text}")));
    differs(digest(&format!("order = \"live-tree\"\n{text}")));
    differs(digest(&text.replace("\"a.csv\"", "{ file = \"a.csv\", lenient = true }")));
    let generated =
        |with: &str| digest(&text.replace("workload = \"a.csv\"", &format!("generate = {{ tasks = 500{with} }}")));
    differs(generated(""));
    differs(generated(", seeds = 2"));
    differs(generated(", users = 7"));
    differs(generated(", days = 2"));
    for name in ["a.csv", "pool.toml", "weights.toml"] {
        let before = std::fs::read_to_string(dir.path().join(name)).unwrap();
        std::fs::write(dir.path().join(name), format!("{before}\n")).unwrap();
        differs(digest(text));
        std::fs::write(dir.path().join(name), before).unwrap();
        assert_eq!(digest(text), base);
    }
}

fn run(grid: &Grid, out: &Path, threads: usize, memory: u64, watch: &Watch) -> Result<Vec<PointFailure>, SweepError> {
    let folder = Folder::create(out).unwrap();
    let (points, digests) = folder.plan(grid, 1).unwrap();
    let options = local::Options { threads: NonZeroUsize::new(threads).unwrap(), memory };
    let all: Vec<usize> = (0..points.len()).collect();
    let failures = local::run(grid, &points, &digests, &all, &folder, options, watch)?;
    summarize(grid, &points, &digests, &folder)?;
    Ok(failures)
}

/// Every file that must be the same, by name. (The page and its figures are written by the crate report.)
fn files(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !["timing.csv", "plan.json"].map(|n| out.join(n)).contains(&path) {
            found.insert(path.strip_prefix(out).unwrap().to_path_buf(), std::fs::read(path).unwrap());
        }
    }
    found
}

const MEMORY: u64 = 1 << 30;

#[test]
fn results_do_not_depend_on_threads_memory_or_interruptions() {
    let dir = bench();
    let grid = grid(dir.path(), GRID).unwrap();
    let out = |name: &str| dir.path().join(name);
    assert_eq!(run(&grid, &out("one"), 1, 9 << 20, &Watch::default()).unwrap(), []);
    let expected = files(&out("one"));
    assert!(expected.keys().eq(["results.csv", "sweep.json"].map(Path::new)), "{:?}", expected.keys());
    assert_eq!(run(&grid, &out("four"), 4, MEMORY, &Watch::default()).unwrap(), []);
    assert_eq!(files(&out("four")), expected);
    // Some results lost, one of them damaged; first nothing is allowed to run.
    let mut kept: Vec<PathBuf> =
        std::fs::read_dir(out("four").join("points")).unwrap().map(|e| e.unwrap().path()).collect();
    kept.sort();
    assert_eq!(kept.len(), 72);
    kept.iter().step_by(5).for_each(|path| std::fs::remove_file(path).unwrap());
    std::fs::write(&kept[1], "{").unwrap();
    let watch = Watch::default();
    watch.cancel();
    run(&grid, &out("four"), 2, MEMORY, &watch).unwrap();
    let csv = String::from_utf8(files(&out("four"))[Path::new("results.csv")].clone()).unwrap();
    assert_eq!(csv.lines().count(), 1 + 72 - 15 - 1);
    let watch = Watch::default();
    run(&grid, &out("four"), 2, MEMORY, &watch).unwrap();
    assert_eq!(watch.points(), (16, 16), "only what was missing is run");
    assert_eq!(watch.tasks().0, watch.tasks().1);
    assert_eq!(files(&out("four")), expected);
}

#[test]
fn a_point_that_cannot_be_run_does_not_stop_the_others() {
    let dir = bench();
    std::fs::write(dir.path().join("broken.csv"), "0,0,1\n").unwrap();
    std::fs::write(dir.path().join("small.toml"), "[pool]\ncpu = 3\n").unwrap();
    let text = GRID.replace("\"a.csv\"", "\"broken.csv\", \"a.csv\"").replace("pool.toml", "small.toml");
    let grid = grid(dir.path(), &text).unwrap();
    let failures = run(&grid, &dir.path().join("out"), 2, MEMORY, &Watch::default()).unwrap();
    assert_eq!(failures[0].points, (0..24).collect::<Vec<_>>(), "all points of a workload that cannot be read");
    assert!(failures[0].sentence.contains("broken.csv: found a first line"), "{failures:?}");
    assert_eq!(failures[1].points.len(), 3 * 12, "and all of a pool without memory");
    assert_eq!((failures.len(), &failures[1].points[..3]), (2, &[30, 31, 32][..]));
    assert!(failures[1].sentence.contains("small.toml:1:1: [pool]: found no mem"), "{failures:?}");
    assert!(failures.iter().all(|f| !f.environment));
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 12);
}

#[test]
fn a_workload_that_does_not_fit_the_memory_is_refused_before_anything_runs() {
    let dir = bench();
    let grid = grid(dir.path(), GRID).unwrap();
    let error = run(&grid, &dir.path().join("out"), 2, 8 << 20, &Watch::default()).unwrap_err();
    assert!(error.to_string().contains("needs about 8.0 MiB for one run"), "{error}");
    assert!(!error.is_environment());
}

#[test]
fn results_of_two_contents_of_one_workload_are_not_mixed() {
    let dir = bench();
    let text = "workload = \"a.csv\"\npolicy = [\"fifo\", \"drf\"]\ncapacity = 1\n";
    let out = dir.path().join("out");
    run(&grid(dir.path(), text).unwrap(), &out, 1, MEMORY, &Watch::default()).unwrap();
    let path = std::fs::read_dir(out.join("points")).unwrap().next().unwrap().unwrap().path();
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    kept["workload"]["digest"] = "another".into();
    // Sealed again, as if it had been computed so.
    kept["check"] = "0".repeat(32).into();
    let text_with = |kept: &serde_json::Value| serde_json::to_string_pretty(kept).unwrap() + "\n";
    kept["check"] = Digest::new().bytes(text_with(&kept).as_bytes()).hex().into();
    std::fs::write(&path, text_with(&kept)).unwrap();
    let error = run(&grid(dir.path(), text).unwrap(), &out, 1, MEMORY, &Watch::default()).unwrap_err();
    assert!(error.to_string().contains("are of different contents (points 0 and 1)"), "{error}");
}

#[test]
fn a_plan_reads_back_and_a_folder_without_a_plan_is_refused() {
    let dir = bench();
    let grid = grid(dir.path(), GRID).unwrap();
    let folder = Folder::create(&dir.path().join("out")).unwrap();
    let (points, digests) = folder.plan(&grid, 1).unwrap();
    let (_, again, same) = Folder::open(&dir.path().join("out")).unwrap().planned(&Registry::built_in()).unwrap();
    assert_eq!((again, same), (points, digests));
    let error = Folder::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("is not the folder of a sweep"), "{error}");
}
