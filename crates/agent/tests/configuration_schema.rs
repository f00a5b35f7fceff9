//! The published schema of configurations accepts what the agent accepts, and refuses what it refuses.
#![allow(clippy::unwrap_used)]

#[path = "common/json_schema.rs"]
mod json_schema;

use evenhand_agent::{CONFIGURATION_SCHEMA, Configuration};
use evenhand_documents::{Document, Format, Node};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};
use serde_json::Value;

const SLICES: &str = "from = \"user-slices\"";

fn document(text: &str) -> Document {
    Document::parse("agent.toml", text, Some(Format::Toml)).unwrap()
}

/// Returns why the agent refuses a configuration, if it does.
fn refusal(text: &str) -> Option<String> {
    let protected = ProtectedCgroups::from_text("");
    Configuration::read(&document(text), &Hierarchies::default(), protected).err().map(|error| error.to_string())
}

/// Returns what a value of a document is in JSON.
fn json(node: &Node<'_>) -> Value {
    if let Ok(table) = node.table() {
        return table.entries().map(|(key, value)| (key.name().to_owned(), json(&value))).collect();
    }
    if node.is_list() {
        return node.list().unwrap().map(|item| json(&item)).collect();
    }
    match node.flag() {
        Ok(flag) => flag.into(),
        Err(_) if node.is_text() => node.text().unwrap().into(),
        Err(_) => node.written().unwrap().parse::<f64>().unwrap().into(),
    }
}

fn is_accepted_by_schema(text: &str) -> bool {
    let schema: Value = serde_json::from_str(CONFIGURATION_SCHEMA).unwrap();
    json_schema::holds(&schema, &json(document(text).root().unwrap().node()), &schema)
}

/// Asserts that the agent and the schema both accept a configuration, or both refuse it.
fn assert_both(text: &str, accept: bool) {
    let refused = refusal(text);
    assert_eq!(refused.is_none(), accept, "the agent: {refused:?}\n{text}");
    assert_eq!(is_accepted_by_schema(text), accept, "the schema\n{text}");
}

/// Checks values of keys in a section, each valid or not, beside a source and what the section needs.
fn check(section: &str, needs: &str, accept: bool, settings: &[&str]) {
    for setting in settings {
        assert_both(&format!("[[guests]]\n{SLICES}\n[{section}]\n{needs}\n{setting}\n"), accept);
    }
}

#[test]
fn numbers_have_the_same_limits() {
    let control = |accept, settings: &[&str]| check("control", "", accept, settings);
    for key in ["gain", "slew"] {
        let with = |value: &str| format!("{key} = {value}");
        for value in ["0.3", "\"1/3\"", "\"0.3\"", "7", "\" 2 \"", "\"5m\"", "\".5\"", "\"3e-2\""] {
            control(true, &[&with(value)]);
        }
        for value in ["0", "-1", "\"0\"", "\"0/3\"", "\"1/0\"", "\"-1\"", "\"\"", "\"x\"", "true", "[1]"] {
            control(false, &[&with(value)]);
        }
    }
    control(true, &["damping = 0", "damping = 0.9", "damping = \"0.9\"", "smoothing = 0.5", "protected = \"1/2\""]);
    control(false, &["damping = 1", "damping = -0.1", "damping = \"1\"", "smoothing = 1", "protected = \"1.5\""]);
    control(true, &["dead_band = 0", "dead_band = \"0\"", "idle = 0", "idle = 3", "idle = \"1/4\""]);
    control(false, &["dead_band = -1", "idle = -0.1", "idle = \"-1\""]);
    control(true, &["least = 1", "least = 0.01", "least = \"1/10\"", "least = \"1\"", "most = 1", "most = \"10\""]);
    control(false, &["least = 5", "least = 0", "least = \"0\"", "least = \"5\"", "most = 0.5", "most = \"0.5\""]);
    control(false, &["law = \"linear\"\ngain = 1", "law = \"linear\"\nmost = 2", "law = \"other\""]);
    control(true, &["law = \"linear\"\nsmoothing = 0.1", "law = \"integral\"\ngain = 1"]);
    let node = |accept, settings: &[&str]| check("node", "", accept, settings);
    node(true, &["cpu = 8", "cpu = \"8\"", "mem = \"32Gi\"", "mem = \"32GiB\"", "disk = \"150M\"", "net = 1e9"]);
    node(
        false,
        &["cpu = \"\"", "cpu = \"x\"", "cpu = 0", "mem = \"32Gb\"", "disk = -1", "net = \"1 G\"", "cpu = true"],
    );
    node(true, &["speed = 1.5", "speed = \"3/2\"", "speed = \"1.5\"", "speed = \"bogomips\"\nreference = \"5e3\""]);
    node(false, &["speed = 0", "speed = \"fast\"", "speed = 2\nreference = 5", "speed = \"benchmark\"\nreference = 0"]);
}

#[test]
fn parameters_of_metrics_have_the_same_limits() {
    let heaviness = |accept, metric: &str, settings: &[&str]| {
        check("heaviness", &format!("metric = \"{metric}\""), accept, settings);
    };
    heaviness(true, "greediness", &["k = 0", "k = 1", "k = \"1/2\"", "k = \"0.5\"", "beta = 1\ngamma = \"1\""]);
    heaviness(false, "greediness", &["k = 2", "k = -1", "k = \"2\"", "k = 1\nbeta = 2", "saturation = 1"]);
    heaviness(false, "greediness", &["beta = 0.5\ngamma = 1", "beta = 2\ngamma = 2", "beta = 2\ngamma = \"2\""]);
    heaviness(true, "bottleneck", &["saturation = 1", "saturation = \"19/20\"", "saturation = \"0.5\""]);
    heaviness(false, "bottleneck", &["saturation = 0", "saturation = 2", "saturation = \"0\"", "k = 1"]);
    heaviness(true, "deviation", &["beta = 1.5", "beta = \"4/3\"", "gamma = 0.5", "gamma = \"2/3\""]);
    heaviness(false, "deviation", &["beta = 1", "gamma = 0", "gamma = 1", "gamma = 2", "k = 1"]);
    for metric in ["asset", "dominant", "drf", "root-penalty"] {
        heaviness(false, metric, &["k = 1", "beta = 2", "gamma = 0.5", "saturation = 1"]);
    }
}

#[test]
fn texts_have_the_same_form() {
    let interval = |text: &str| format!("interval = \"{text}\"");
    for good in ["10s", "0.1s", "1.5h", "2 m", ".5s", "0.05m", "1d", "1w", " 3s "] {
        check("control", "", true, &[&interval(good)]);
    }
    for bad in ["10", "1y", "0.05s", "0s", "", "-1s", "1/2s", "s", "1kms", "1  s"] {
        check("control", "", false, &[&interval(bad)]);
    }
    let addresses = [
        ("127.0.0.1:9750", true),
        ("0.0.0.0:0", true),
        ("[::1]:9751", true),
        ("[fe80::1%3]:65535", true),
        (":9750", false),
        ("n1:9751", false),
        ("1.2.3.4", false),
        ("1.2.3.256:1", false),
        ("1.2.3.4:65536", false),
        ("::1:9751", false),
        ("", false),
    ];
    for (address, accept) in addresses {
        check("metrics", "", accept, &[&format!("listen = \"{address}\"")]);
        // A schema cannot tell which addresses need the other key.
        check("peers", "key = \"k\"\nadvertise = \"127.0.0.1:1\"", accept, &[&format!("listen = \"{address}\"")]);
        let needs = "key = \"k\"\nlisten = \"127.0.0.1:1\"";
        check("peers", needs, accept, &[&format!("seeds = [\"{address}\"]")]);
        // Nor that no node is reached at the address that stands for all.
        if !address.starts_with("0.0.0.0") {
            check("peers", needs, accept, &[&format!("advertise = \"{address}\"")]);
        }
    }
    let peers = |accept, settings: &[&str]| check("peers", "key = \"k\"\nlisten = \"127.0.0.1:1\"", accept, settings);
    peers(true, &["fresh = 3", "fresh = \"3\"", "fresh = 3.0", "lost = \"20\"", "largest = { cpu = \"8\" }"]);
    peers(false, &["fresh = 1.5", "fresh = 0", "fresh = \"0\"", "lost = 2000000", "largest = { cpu = 0 }"]);
    check("node", "", true, &["name = \"n1\"", "name = \"Knoten 1\"", "under = \"/lab/x.slice/\"", "under = \"\""]);
    check("node", "", false, &["name = \"\"", "name = \"a\\u0007\"", "under = \"../x\"", "under = \"lab/./x\""]);
    check("network", "", true, &["device = \"eth0\"", "device = \"br-0123456789ab\""]);
    check(
        "network",
        "",
        false,
        &["device = \"a b\"", "device = \"\"", "device = \"a/b\"", "device = \"br-0123456789abc\""],
    );
}

#[test]
fn each_source_has_its_own_keys() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    std::fs::write(&table, "machine.slice/a.scope ann\n").unwrap();
    let file = format!("file = {table:?}");
    let pattern = "pattern = 'lab/(?<owner>.*)'";
    let valid: [(&str, &[&str]); 8] = [
        ("user-slices", &["", "least_uid = 1000", "least_uid = \"1000\"", "least_uid = 0", "memory = \"1Gi\""]),
        ("slurm", &["", "processors = 2", "unit = true"]),
        ("libvirt", &["", "owner = \"nova\"", "within = [\"machine.slice\"]", "folder = \"/run/libvirt\""]),
        ("containers", &["", "label = \"user\"", "rootless = true"]),
        ("docker", &["", "docker = \"/run/docker.sock\""]),
        ("podman", &["", "podman = \"podman\""]),
        ("pattern", &[pattern, "pattern = 'lab/.*'\nowner = \"ann\""]),
        ("table", &[&file]),
    ];
    let guests = |from: &str, settings: &str| format!("[[guests]]\nfrom = \"{from}\"\n{settings}\n");
    for (from, all) in &valid {
        all.iter().for_each(|settings| assert_both(&guests(from, settings), true));
    }
    let own = [
        ("user-slices", "least_uid = 1000"),
        ("libvirt", "within = [\"machine.slice\"]"),
        ("libvirt", "folder = \"/run/libvirt\""),
        ("containers", "label = \"user\""),
        ("containers", "rootless = true"),
        ("containers", "docker = \"docker\""),
        ("pattern", pattern),
        ("table", &file),
    ];
    for (owner, setting) in own {
        for (from, all) in &valid {
            let is_alias = owner == "containers" && ["docker", "podman"].contains(from);
            if owner != *from && !is_alias {
                assert_both(&guests(from, &format!("{}\n{setting}", all[0])), false);
            }
        }
    }
    let invalid = [
        ("pattern", ""),
        ("pattern", "pattern = 'lab/.*'"),
        ("pattern", "pattern = 'lab/.*'\nowner = \"\""),
        ("table", ""),
        ("user-slices", "least_uid = -1"),
        ("user-slices", "least_uid = 1.5"),
        ("user-slices", "least_uid = \"1.5\""),
        ("user-slices", "memory = 0"),
        ("user-slices", "processors = \"x\""),
        ("libvirt", "within = [\"../x\"]"),
        ("containers", "label = \"\""),
        ("lxd", ""),
    ];
    invalid.iter().for_each(|(from, settings)| assert_both(&guests(from, settings), false));
    assert_both("guests = []\n", false);
    assert_both("[[guests]]\nleast_uid = 1000\n", false);
}

#[test]
fn drop_in_files_are_valid_by_the_schema() {
    // None of these would be a configuration alone.
    for text in [
        "",
        "[control]\ngain = 0.2\n",
        "[peers]\nfresh = 5\n",
        "[network]\nreplace = true\n",
        "[node]\nreference = 5000\n",
        "[node]\nspeed = \"benchmark\"\n",
    ] {
        assert!(is_accepted_by_schema(text), "{text}");
    }
    assert!(!is_accepted_by_schema("[control]\ngian = 0.2\n"));
}

#[test]
fn the_configurations_of_packages_and_examples_are_valid_by_the_schema() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["packaging/etc/agent.toml", "docs/examples/agent.toml"] {
        assert!(is_accepted_by_schema(&std::fs::read_to_string(root.join(file)).unwrap()), "{file}");
    }
}
