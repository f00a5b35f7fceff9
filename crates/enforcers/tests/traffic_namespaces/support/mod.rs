//! Network namespaces, control groups and senders for tests, which are removed when dropped.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::Hierarchies;
use evenhand_enforcers::traffic::{Settings, probe};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Returns a unique name, short enough for all objects.
fn unique() -> String {
    format!("eh{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Returns the reason why these tests cannot run here, if there is one.
pub fn unable() -> Option<String> {
    if !run_quietly(Command::new("ip").arg("-V")) || !run_quietly(Command::new("tc").arg("-V")) {
        return Some("no ip and tc".into());
    }
    let settings = Settings { device: "lo".into(), link: Some(1_000_000), force: true };
    let missing = probe(&settings, &Hierarchies::detect().unwrap());
    missing.into_iter().find(|check| check.passed != Some(true)).map(|check| check.message)
}

fn run_quietly(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command and returns its output.
pub fn run(line: &str) -> String {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A network namespace; removed when dropped.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    pub fn new() -> Namespace {
        let name = unique();
        run(&format!("ip netns add {name}"));
        let namespace = Namespace { name };
        namespace.run("ip link set lo up");
        namespace
    }

    /// Runs a command in it. Not by `ip netns exec`, which mounts another /sys, where nft finds no control groups.
    pub fn run(&self, line: &str) -> String {
        run(&format!("nsenter --net=/run/netns/{} {line}", self.name))
    }

    /// Calls a function on a thread in the namespace.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inner = scope.spawn(|| {
                enter(&self.name);
                act()
            });
            inner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run_quietly(Command::new("ip").args(["netns", "del", &self.name]));
    }
}

/// Moves this thread into a namespace.
fn enter(name: &str) {
    let file = File::open(format!("/run/netns/{name}")).unwrap();
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}

/// Creates two namespaces with a cable from `near`'s device e0 (10.99.0.1) to `far`'s e0 (10.99.0.2).
pub fn cable() -> (Namespace, Namespace) {
    let (near, far) = (Namespace::new(), Namespace::new());
    run(&format!("ip link add e0 netns {} type veth peer name e0 netns {}", near.name, far.name));
    for (namespace, end) in [(&near, 1), (&far, 2)] {
        namespace.run(&format!("ip addr add 10.99.0.{end}/24 dev e0"));
        namespace.run("ip link set e0 up");
    }
    (near, far)
}

/// A group of cgroup v2 without controllers, and its children.
pub struct Groups {
    pub root: PathBuf,
    /// The path below the mount point.
    pub name: String,
}

impl Groups {
    pub fn new(children: &[&str]) -> Groups {
        let name = unique();
        let root = Hierarchies::detect().unwrap().unified.unwrap().join(&name);
        fs::create_dir(&root).unwrap();
        let groups = Groups { root, name };
        for child in children {
            fs::create_dir(groups.root.join(child)).unwrap();
        }
        groups
    }

    pub fn path(&self, child: &str) -> String {
        format!("{}/{child}", self.name)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let inner = fs::read_dir(&self.root).into_iter().flatten().flatten().map(|entry| entry.path());
        for group in inner.filter(|path| path.is_dir()).chain([self.root.clone()]) {
            // The senders were killed just before, and leave the group a little later.
            for _ in 0..100 {
                match fs::remove_dir(&group) {
                    Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(Duration::from_millis(10)),
                    _ => break,
                }
            }
        }
    }
}

/// A process of this test program that runs one ignored test with these environment variables.
pub struct Process(pub Child);

impl Process {
    pub fn start(name: &str, variables: &[(&str, &str)]) -> Process {
        // With real-time priority, because on a busy machine a late sender loses its turn.
        let mut command = Command::new("nice");
        command.args(["-n", "-40"]).arg(std::env::current_exe().unwrap()).args([
            "--exact",
            "--ignored",
            "--nocapture",
            name,
        ]);
        command.envs(variables.iter().copied());
        Process(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a process that sends as fast as it can from a namespace, optionally in a control group.
pub fn sender(from: &Namespace, group: Option<&Path>, to: SocketAddr) -> Process {
    let group = group.map(|path| path.to_str().unwrap()).unwrap_or("");
    Process::start("process_that_sends", &[("NAMESPACE", &from.name), ("GROUP", group), ("TO", &to.to_string())])
}

/// The main function of a [`sender`] process.
pub fn send() {
    let variable = |name| std::env::var(name).unwrap_or_default();
    // Without the variables, when all ignored tests are run by hand, there is nothing to do.
    if variable("NAMESPACE").is_empty() {
        return;
    }
    if !variable("GROUP").is_empty() {
        fs::write(Path::new(&variable("GROUP")).join("cgroup.procs"), "0").unwrap();
    }
    enter(&variable("NAMESPACE"));
    let mut stream = TcpStream::connect(variable("TO").parse::<SocketAddr>().unwrap()).unwrap();
    let buffer = vec![0_u8; 64 * 1024];
    while stream.write_all(&buffer).is_ok() {}
}

/// Raises the priority of this thread.
fn hurry() {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let number = thread.file_name().unwrap().to_str().unwrap().to_owned();
    run_quietly(Command::new("renice").args(["-n", "-20", "-p", &number]));
}

/// Counts the bytes that arrive at an address.
pub struct Receiver {
    pub address: SocketAddr,
    bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Receiver {
    pub fn new(at: &Namespace, ip: &str) -> Receiver {
        let ip = ip.parse().unwrap();
        let listener = at.within(|| TcpListener::bind(SocketAddr::new(ip, 0)).unwrap());
        let address = listener.local_addr().unwrap();
        let (bytes, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&bytes), Arc::clone(&ended));
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            hurry();
            let mut buffer = vec![0; 1 << 18];
            while !end.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                while !end.load(Ordering::Relaxed) {
                    match stream.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(n) => drop(count.fetch_add(n as u64, Ordering::Relaxed)),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(_) => break,
                    }
                }
            }
        });
        Receiver { address, bytes, ended }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Measures for this time how many bytes per second each receives.
pub fn speeds<const N: usize>(receivers: [&Receiver; N], span: Duration) -> [f64; N] {
    let (begun, before) = (Instant::now(), receivers.map(|r| r.bytes.load(Ordering::Relaxed)));
    thread::sleep(span);
    let (took, after) = (begun.elapsed(), receivers.map(|r| r.bytes.load(Ordering::Relaxed)));
    std::array::from_fn(|i| (after[i] - before[i]) as f64 / took.as_secs_f64())
}
