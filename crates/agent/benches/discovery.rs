//! The cost of a snapshot without changes, in nanoseconds per workload, compared with only listing the directories.
//!
//! `cargo bench -p evenhand-agent --bench discovery [-- WORKLOADS]`
//!
//! As root, on plain directories in memory (`/dev/shm`); or with `groups` as second argument on real control groups,
//! below one that is created for this and removed afterwards (without Slurm, for whose jobs processes would have to
//! be moved).

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops at what is wrong")]

use std::fs;
use std::hint::black_box;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use evenhand_agent::discovery::Discovery;
use evenhand_documents::{Document, Format};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};

const RUNS: usize = 41;

/// A directory; removed with its content when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a group directory by directory, because its files belong to the kernel.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove(&entry.path());
        } else {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Returns the resident memory of this process in bytes.
fn held() -> f64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    4096.0 * text.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
}

/// Returns the shortest time in nanoseconds, because other load only adds to it.
fn best(mut look: impl FnMut()) -> f64 {
    look();
    let times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            look();
            start.elapsed().as_secs_f64() * 1e9
        })
        .collect();
    times.into_iter().fold(f64::INFINITY, f64::min)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let count: usize = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(5000);
    let real = arguments.get(1).is_some_and(|a| a == "groups");
    let above = match real {
        true => Hierarchies::detect().unwrap().main().unwrap().to_path_buf(),
        false => PathBuf::from("/dev/shm"),
    };
    let folder = Folder(above.join(format!("evenhand-look-{}", std::process::id())));
    let root = folder.0.clone();
    fs::create_dir(&root).unwrap();
    let hierarchies = Hierarchies { unified: Some(root.clone()), ..Hierarchies::default() };
    let state = tempfile::tempdir().unwrap();
    let group = |path: String| fs::create_dir_all(root.join(path)).unwrap();
    let domain = include_str!("../tests/data/web-1.a.xml");
    fs::create_dir(state.path().join("qemu")).unwrap();
    let mut rows = String::new();
    for n in 0..count {
        group(format!("user.slice/user-{}.slice", 3_000_000_000_u64 + n as u64));
        group(format!("machine.slice/machine-qemu\\x2d{n}\\x2dweb\\x2d{n}.scope"));
        group(format!("slurm/uid_3000000000/job_{n}"));
        group(format!("tenants.slice/alice-{n}.service"));
        let named = domain.replace("id='1'>\n    <name>web-1.a", &format!("id='{n}'>\n    <name>web-{n}"));
        fs::write(state.path().join(format!("qemu/web-{n}.xml")), named).unwrap();
        rows.push_str(&format!("tenants.slice/alice-{n}.service alice {n} 2 4Gi\n"));
    }
    fs::write(state.path().join("rows"), rows).unwrap();
    // A job is examined again until a process of a user runs in it.
    let mut process = Command::new("sleep").arg("600").uid(65534).spawn().unwrap();
    for n in (0..count).filter(|_| !real) {
        let file = root.join(format!("slurm/uid_3000000000/job_{n}/cgroup.procs"));
        fs::write(file, process.id().to_string()).unwrap();
    }
    // Waits until the files count as unchanged.
    std::thread::sleep(std::time::Duration::from_millis(2500));

    let tables = [
        ("user-slices", "user.slice", String::new()),
        ("libvirt", "machine.slice", format!("folder = {:?}", state.path())),
        ("slurm", "slurm/uid_3000000000", String::new()),
        ("pattern", "tenants.slice", r"pattern = 'tenants\.slice/(?<owner>[a-z]+)-(?<name>.*)\.service'".to_owned()),
        ("table", "tenants.slice", format!("file = {:?}", state.path().join("rows"))),
    ];
    println!("{count} workloads, nanoseconds per workload, best of {RUNS}: {}", above.display());
    println!("source        first scan   unchanged     listing   bytes held");
    for (name, parent, more) in tables.into_iter().filter(|(name, ..)| !real || *name != "slurm") {
        let text = format!("[[guests]]\nfrom = {name:?}\n{more}\n");
        let document = Document::parse("bench", &text, Some(Format::Toml)).unwrap();
        let list = document.root().unwrap().required("guests", "").unwrap();
        let tables = list.list().unwrap().map(|node| node.table().unwrap());
        let mut discovery = Discovery::read(tables, &hierarchies, ProtectedCgroups::default()).unwrap();
        let before = held();
        let start = Instant::now();
        let found = discovery.refresh().workloads.len();
        let first = start.elapsed().as_secs_f64() * 1e9;
        assert_eq!(found, count, "{name}: {:?}", discovery.snapshot().warnings);
        let unchanged = best(|| assert_eq!(black_box(discovery.refresh().workloads.len()), count));
        let bytes = held() - before;
        let listing = best(|| drop(black_box(hierarchies.children(parent).unwrap())));
        let of = |total: f64| total / count as f64;
        println!("{name:12} {:11.0} {:11.0} {:11.0} {:12.0}", of(first), of(unchanged), of(listing), of(bytes));
    }
    process.kill().unwrap();
    process.wait().unwrap();
}
