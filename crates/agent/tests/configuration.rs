//! Reading configurations, and the errors of invalid ones.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use evenhand_agent::{Configuration, ConfigurationSources, Law, NodeSection, Quotas, Speed};
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::{Hierarchies, PerResource, ProtectedCgroups, Resource};
use proptest::prelude::*;

const GUESTS: &str = "[[guests]]\nfrom = \"pattern\"\npattern = 'lab/(?<owner>.*)'\n";

fn read(text: &str) -> Result<Configuration, String> {
    let document = Document::parse("agent.toml", text, Some(Format::Toml)).map_err(|e| e.to_string())?;
    Configuration::read(&document, &Hierarchies::default(), ProtectedCgroups::from_text("")).map_err(|e| e.to_string())
}

#[test]
fn missing_keys_have_their_defaults() {
    let it = read(GUESTS).unwrap();
    assert_eq!(it.node, NodeSection::default());
    assert_eq!((it.heaviness.name, &*it.heaviness.resources), ("deviation", &Resource::ALL[..]));
    assert_eq!((it.control.interval, it.control.controls.len()), (Duration::from_secs(10), 4));
    assert!(matches!(it.control.law, Law::Integral(_)));
    assert!(it.peers.is_none() && it.network.is_none() && it.quotas.is_none() && it.metrics.is_none());
}

#[test]
fn all_keys_are_read() {
    let text = format!(
        "{GUESTS}
        [node]
        name = \"n1\"
        cpu = 8
        mem = \"32Gi\"
        disk = \"150Mi\"
        net = \"125M\"
        speed = \"bogomips\"
        reference = 5000
        state = \"/var/lib/x\"
        socket = \"/run/x.sock\"
        under = \"/lab/\"
        [heaviness]
        metric = \"greediness\"
        k = \"1/2\"
        endowment = \"capped\"
        resources = [\"disk\", \"cpu\"]
        [control]
        interval = \"2.5s\"
        gain = 0.1
        damping = 0.5
        dead_band = 0
        slew = 1
        least = 0.1
        most = 10
        controls = [\"net\"]
        protected = 0.25
        smoothing = 0.5
        [quotas]
        file = \"quotas.toml\"
        [network]
        device = \"eth0\"
        replace = true
        [peers]
        listen = \"192.0.2.1:9751\"
        advertise = \"192.0.2.2:9751\"
        seeds = [\"192.0.2.3:9751\"]
        key = \"/etc/evenhand/key\"
        exchange = \"ring\"
        fresh = 2
        lost = 5
        largest = {{ cpu = 128 }}
        [metrics]
        listen = \"127.0.0.1:9750\"
        "
    );
    let it = read(&text).unwrap();
    assert_eq!(
        it.node.supply,
        PerResource { cpu: Some(8.0), memory: Some(34_359_738_368.0), disk: Some(157_286_400.0), network: Some(125e6) }
    );
    assert_eq!((it.node.speed, &*it.node.under), (Speed::BogoMips { reference: 5000.0 }, "lab"));
    assert_eq!(it.heaviness.resources, [Resource::Cpu, Resource::Disk]);
    assert_eq!((it.control.interval, it.control.protected), (Duration::from_millis(2500), 0.25));
    let Law::Integral(settings) = it.control.law else { panic!("{:?}", it.control.law) };
    assert_eq!((settings.gain, settings.damping, settings.min_weight, settings.max_weight), (0.1, 0.5, 0.1, 10.0));
    let peers = it.peers.unwrap();
    assert!(peers.ring && (peers.fresh, peers.lost) == (2, 5) && peers.seeds.len() == 1);
    assert_eq!(peers.largest, PerResource { cpu: Some(128.0), ..PerResource::default() });
    assert!(it.network.unwrap().replace);
}

/// A secret is a file or a credential that systemd loads.
#[test]
fn a_credential_is_a_file_in_the_folder_of_the_unit() {
    let peers = |key: &str| read(&format!("{GUESTS}[peers]\nlisten = \"192.0.2.1:9751\"\nkey = \"{key}\"\n"));
    let key = |text| peers(text).unwrap().peers.unwrap().key;
    assert_eq!(key("/etc/evenhand/key"), PathBuf::from("/etc/evenhand/key"));
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY").unwrap_or("/run/credentials/evenhand-agent.service".into());
    assert_eq!(key("credential:peers.key"), PathBuf::from(folder).join("peers.key"));
    for invalid in ["credential:", "credential:../shadow", "credential:.."] {
        assert!(peers(invalid).unwrap_err().contains("expected the name of a credential"), "{invalid}");
    }
}

/// The example of the documentation is valid.
#[test]
fn the_examples_of_the_documentation_are_valid() {
    let it = read(include_str!("../../../docs/examples/agent.toml")).unwrap();
    assert_eq!(it.control.interval, Duration::from_secs(10));
    assert!(it.peers.is_some_and(|peers| peers.seeds.len() == 2) && it.network.is_some());
    let docs = include_str!("../../../docs/src/reference/agent.md");
    let blocks = docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.for_each(|block| assert!(read(block).is_ok(), "{block}"));
}

/// The documentation states the defaults.
#[test]
fn defaults_are_as_documented() {
    let Law::Integral(settings) = read(GUESTS).unwrap().control.law else { panic!() };
    let docs = include_str!("../../../docs/src/reference/agent.md");
    let defaults = [settings.gain, settings.damping, settings.dead_band].map(|n| n.to_string()).join(", ");
    assert!(docs.contains(&format!(
        "| {defaults}, {:.2}, {:.2}, {}, {} |",
        settings.slew, settings.idle_margin, settings.min_weight, settings.max_weight
    )));
}

/// What a configuration names and this machine does not have is located at its key.
#[test]
fn a_group_or_a_file_that_is_not_there_is_located() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lab")).unwrap();
    let hierarchies = Hierarchies { unified: Some(folder.path().to_owned()), ..Hierarchies::default() };
    let read = |text: &str| {
        let document = Document::parse("agent.toml", &format!("{text}\n{GUESTS}"), Some(Format::Toml)).unwrap();
        Configuration::read(&document, &hierarchies, ProtectedCgroups::from_text("")).unwrap()
    };
    assert!(read("[node]\nunder = \"lab\"").missing_under.is_none());
    let error = read("[node]\nunder = \"lob\"").missing_under.unwrap().to_string();
    assert!(error.starts_with("agent.toml:2:9: under: found \"lob\", expected a control group that exists"), "{error}");
    let error = read("[quotas]\nfile = \"/nowhere/q\"").missing_quotas.unwrap().to_string();
    assert!(error.starts_with("agent.toml:2:8: file: /nowhere/q: No such file"), "{error}");
}

/// Neither is a pipe waited for, nor a device read without end.
#[test]
fn files_of_the_configuration_are_regular_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, GUESTS).unwrap();
    std::fs::create_dir(folder.path().join("agent.toml.d")).unwrap();
    let pipe = folder.path().join("agent.toml.d/10-pipe.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let errors = [
        ConfigurationSources::read(&file, []).unwrap_err(),
        Quotas::open(&pipe).unwrap_err(),
        Quotas::open(Path::new("/dev/zero")).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.to_string().contains("expected a regular file")), "{errors:?}");
}

/// Each invalid configuration, and a part of its error.
#[test]
fn errors_have_a_position() {
    let cases = [
        ("", "agent.toml:1:1: the document: found no guests, expected a table [[guests]]"),
        ("guests = []", "expected at least one [[guests]]: only the groups that it names are changed"),
        ("[[guests]]\nfrom = \"user-slice\"", "agent.toml:2:8: from: found \"user-slice\", expected one of"),
        ("[nodes]", "agent.toml:1:2: unknown field \"nodes\""),
        ("[node]\ncpu = 0", "agent.toml:2:7: cpu: found \"0\", expected a number greater than 0"),
        ("[node]\ncpus = 4", "agent.toml:2:1"),
        ("[node]\nspeed = \"bogomips\"", "the BogoMIPS of the reference node"),
        ("[node]\nspeed = 2\nreference = 3", "only needed with speed"),
        ("[node]\nunder = \"a/../b\"", "without . and .."),
        ("[node]\nname = \"\"", "expected a name"),
        ("[heaviness]\nmetric = \"deviaton\"", "did you mean \"deviation\"?"),
        ("[heaviness]\nbeta = 1", "beta"),
        ("[heaviness]\nresources = []", "expected at least one resource"),
        ("[heaviness]\nresources = [\"cpu\", \"cpu\"]", "found cpu a second time, expected once"),
        ("[control]\ninterval = \"10\"", "agent.toml:2:12: interval: found"),
        ("[control]\ninterval = \"0.05s\"", "expected at least 0.1 s"),
        ("[control]\ngain = 0", "gain: found 0, expected a finite number above 0"),
        ("[control]\nlaw = \"linear\"\ngain = 0.1", "law = \"linear\" has no such setting"),
        ("[control]\nprotected = 1", "expected a number of at least 0 and less than 1"),
        ("[peers]\nlisten = \"x\"\nkey = \"k\"", "expected an address and a port"),
        ("[peers]\nlisten = \"192.0.2.1:1\"", "the file with the key"),
        ("[peers]\nlisten = \"192.0.2.1:1\"\nkey = \"k\"\nlost = 3", "found lost = 3 and fresh = 3"),
        (
            "[peers]\nlisten = \"0.0.0.0:9751\"\nkey = \"k\"",
            "agent.toml:2:10: listen: found \"0.0.0.0:9751\", which stands",
        ),
        ("[peers]\nlisten = \"192.0.2.1:1\"\nadvertise = \"[::]:1\"\nkey = \"k\"", "agent.toml:3:13: advertise: found"),
        (
            "[node]\nsocket = \"\"",
            "agent.toml:2:10: socket: found \"\", expected the path of a socket, of 1 to 107 bytes",
        ),
        (
            "[node]\nsocket = \"/a123456789a123456789a123456789a123456789a123456789a123456789a123456789a123456789a123456789a123456789abcdefghijk\"",
            "agent.toml:2:10: socket: found",
        ),
        ("[node]\nstate = \"\"", "agent.toml:2:9: state: found \"\", expected the path of a folder"),
        ("[network]\ndevice = \"a b\"", "expected the name of a network device"),
        ("[metrics]\nport = 1", "agent.toml:2:1"),
    ];
    let mut wrong = Vec::new();
    for (lines, expected) in cases {
        let text =
            if lines.contains("guests") || lines.is_empty() { lines.to_owned() } else { format!("{lines}\n{GUESTS}") };
        let error = read(&text).unwrap_err();
        if !error.contains(expected) {
            wrong.push(format!("{lines}\n{error}\nexpected: {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest! {
    #[test]
    fn arbitrary_values_do_not_panic(section in "(node|heaviness|control|peers|network|quotas|metrics|guests)", key in "[a-z_]{1,10}", value in "\\PC{0,12}") {
        let _ = read(&format!("[{section}]\n{key} = {value}\n{GUESTS}"));
        let _ = read(&format!("[{section}]\n{key} = '{value}'\n{GUESTS}"));
    }
}
