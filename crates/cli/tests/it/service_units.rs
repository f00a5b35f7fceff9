//! The systemd units of the packages, and what the services report to systemd.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use evenhand_agent::EXIT_LIMIT as AGENT_EXIT_LIMIT;
use evenhand_serve::EXIT_LIMIT as SERVE_EXIT_LIMIT;
use evenhand_slurm::queue_driver::EXIT_LIMIT as SLURM_EXIT_LIMIT;

use crate::test_folder::{ProgramOutput, TestFolder};

/// The value of a setting of a unit in seconds.
fn seconds(unit: &str, setting: &str) -> Duration {
    Duration::from_secs(value(unit, setting).parse().unwrap())
}

fn value(unit: &str, setting: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(unit);
    let text = std::fs::read_to_string(path).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(setting)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{unit} has no {setting}")).to_owned()
}

#[test]
fn a_service_has_more_time_to_end_than_it_may_take() {
    assert!(seconds("evenhand-agent.service", "TimeoutStopSec") >= 2 * AGENT_EXIT_LIMIT);
    assert!(seconds("evenhand-serve.service", "TimeoutStopSec") >= 2 * SERVE_EXIT_LIMIT);
    assert!(seconds("evenhand-slurm.service", "TimeoutStopSec") >= 2 * SLURM_EXIT_LIMIT);
}

#[test]
fn a_service_that_works_is_never_silent_for_as_long_as_the_watchdog_waits() {
    // With the default intervals of the configuration, of `slurm run` and of `serve`.
    let (agent, slurm, serve) = (Duration::from_secs(10), Duration::from_secs(10), Duration::from_secs(15));
    assert!(seconds("evenhand-agent.service", "WatchdogSec") >= evenhand_agent::longest_silence(agent));
    assert!(seconds("evenhand-slurm.service", "WatchdogSec") >= evenhand_slurm::queue_driver::longest_silence(slurm));
    assert!(seconds("evenhand-serve.service", "WatchdogSec") >= evenhand_serve::longest_silence(serve));
    for unit in ["evenhand-agent.service", "evenhand-slurm.service", "evenhand-serve.service"] {
        assert_eq!(value(unit, "Type"), "notify");
        // A watchdog that ends a service helps if the service is started again.
        assert_eq!(value(unit, "Restart"), "on-failure");
    }
    // One command of an update, or of a read, may take its whole limit before the first report, and so may the configuration.
    let start = [
        ("evenhand-slurm.service", evenhand_slurm::queue_driver::COMMAND_LIMIT),
        ("evenhand-serve.service", evenhand_serve::COMMAND_LIMIT),
    ];
    for (unit, command) in start {
        assert!(seconds(unit, "TimeoutStartSec") >= 3 * command, "{unit}");
    }
}

/// Slurm's commands, with which the driver works: none waits, none runs.
const SLURM: &str = r#"#!/bin/sh
case "${0##*/} $*" in
"scontrol show config"*) printf 'ClusterName = lab\nPriorityType = priority/multifactor\n' ;;
*scontrol*partition*) printf 'PartitionName=main Default=YES Nodes=n1 State=UP TotalCPUs=8 TotalNodes=1\n' ;;
*scontrol*node*) printf 'NodeName=n1 CPUTot=8 RealMemory=1000 State=IDLE Partitions=main\n' ;;
sprio*) printf 'JOBID|SITE|PRIORITY|AGE|NICE\n' ;;
*) echo "${0##*/}: Unable to contact slurm controller (connect failure)" >&2; exit 1 ;;
esac
"#;

/// Writes Slurm's commands into a folder, those of [`SLURM`] but for `squeue`. Returns the PATH with them.
fn slurm_in(folder: &TestFolder, squeue: &str) -> String {
    for program in ["scontrol", "squeue", "sprio", "sacct", "sacctmgr", "sshare"] {
        let path = folder.path(program);
        std::fs::write(&path, if program == "squeue" { squeue } else { SLURM }).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    format!("{}:/usr/bin:/bin", folder.path("").display())
}

/// Returns the socket of a service manager that listens in a folder.
fn service_manager(folder: &TestFolder) -> (PathBuf, UnixDatagram) {
    let socket = folder.path("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    (socket, manager)
}

#[test]
fn the_driver_reports_each_update_and_its_end() {
    let folder = TestFolder::new();
    let (socket, manager) = service_manager(&folder);
    let mut driver = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["slurm", "run", "--looks", "2", "--interval", "1s", "--state"])
        .arg(folder.path("state.redb"))
        .env("PATH", slurm_in(&folder, SLURM))
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "1000000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reports = Vec::new();
    while reports.last().is_none_or(|last| last != "STOPPING=1\n") {
        let mut buffer = [0; 256];
        let read = manager.recv(&mut buffer).unwrap();
        reports.push(String::from_utf8(buffer[..read].to_vec()).unwrap());
    }
    assert!(driver.wait().unwrap().success());
    // A second is less than two commands may take, so that it asks for more.
    assert_eq!(reports[0], "READY=1\nWATCHDOG_USEC=122000000\nWATCHDOG=1\n");
    assert!(reports.iter().filter(|report| *report == "WATCHDOG=1\n").count() >= 2, "{reports:?}");
}

/// A queue that cannot be read; each question is a line of the file `asked`.
const SQUEUE: &str = "#!/bin/sh\ncd \"${0%/*}\"\necho >> asked\n\
    echo 'squeue: error: Unknown host' >&2\nexit 1\n";

#[test]
fn a_site_that_does_not_answer_is_logged_once() {
    let folder = TestFolder::new();
    let log = folder.path("log");
    let mut server = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["serve", "--listen", "127.0.0.1:0", "--interval", "1s"])
        .env("PATH", slurm_in(&folder, SQUEUE))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let asked = || std::fs::read_to_string(folder.path("asked")).map_or(0, |asked| asked.lines().count());
    let begun = std::time::Instant::now();
    while asked() < 3 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(asked() >= 3, "{log}");
    assert_eq!(log.matches("Slurm does not answer: ").count(), 1, "{log}");
    assert!(log.contains("Unknown host"), "{log}");
}

#[test]
fn an_agent_that_cannot_answer_announces_no_updates() {
    let folder = TestFolder::with("file", "");
    let socket = folder.path("file/agent.sock");
    folder.write("agent.toml", format!("[[guests]]\nfrom = \"user-slices\"\n[node]\nsocket = {socket:?}\n"));
    let output = folder.run(&["agent", "run", "--config", "agent.toml", "--updates", "1"]);
    assert_eq!(output.status, 3, "{output:?}");
    assert!(!output.stderr.contains("would set weights"), "{}", output.stderr);
}

/// Sends a signal by its name.
fn send(signal: &str, to: &Child) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &to.id().to_string()]).status().unwrap().success());
}

/// Sends what means nothing to a service, and then SIGHUP, which ends it in an orderly way.
fn ends_only_by_a_signal_that_means_it(mut service: Child) {
    for signal in ["USR1", "USR2", "XFSZ"] {
        send(signal, &service);
        std::thread::sleep(Duration::from_millis(100));
        let ended = service.try_wait().unwrap();
        assert!(ended.is_none(), "SIG{signal}: {ended:?}");
    }
    send("HUP", &service);
    assert!(service.wait().unwrap().success());
}

/// Starts the program with Slurm's commands of [`SLURM`], and waits until it is ready.
fn ready_beside_slurm(folder: &TestFolder, args: &[&str]) -> (Child, UnixDatagram) {
    let (socket, manager) = service_manager(folder);
    let mut command = folder.command(args);
    command.env("PATH", slurm_in(folder, SLURM)).env("NOTIFY_SOCKET", &socket);
    let service = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut buffer = [0; 256];
    let read = manager.recv(&mut buffer).unwrap();
    assert!(buffer[..read].starts_with(b"READY=1"));
    (service, manager)
}

#[test]
fn signals_without_a_meaning_end_neither_the_driver_nor_the_pages() {
    let folder = TestFolder::new();
    let (driver, _manager) =
        ready_beside_slurm(&folder, &["slurm", "run", "--interval", "1s", "--state", "state.redb"]);
    ends_only_by_a_signal_that_means_it(driver);
    let folder = TestFolder::new();
    let (pages, _manager) = ready_beside_slurm(&folder, &["serve", "--socket", "socket", "--interval", "1s"]);
    assert!(folder.path("socket").exists());
    ends_only_by_a_signal_that_means_it(pages);
    assert!(!folder.path("socket").exists(), "the socket goes with the server");
}

#[test]
fn signals_without_a_meaning_do_not_end_the_agent() {
    let folder = TestFolder::new();
    let (socket, state) = (folder.path("agent.sock"), folder.path("state"));
    let node = format!("[[guests]]\nfrom = \"user-slices\"\n[node]\nsocket = {socket:?}\nstate = {state:?}\n");
    folder.write("agent.toml", node);
    let run = ["agent", "run", "--config", "agent.toml"];
    let once = ProgramOutput::of(folder.command(&[&run[..], &["--updates", "1"]].concat()).output().unwrap());
    if once.status != 0 {
        eprintln!("skipped: {once:?}");
        return;
    }
    let agent = folder.command(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while folder.run(&["agent", "status", "--socket", "agent.sock"]).status != 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the agent does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    ends_only_by_a_signal_that_means_it(agent);
    assert!(!socket.exists());
}
