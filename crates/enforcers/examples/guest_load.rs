//! Runs in the guest VMs of `tests/agent`: loads on a processor and a disk, and a sampler of the resource use of each
//! control group of cgroup v2.
//!
//! ```text
//! guest_load burn                              one processor, forever
//! guest_load read DEVICE THREADS [MS]          reads of 128 KiB that bypass the page cache, each with MS of CPU time
//! guest_load sample FOLDER SECONDS             a CSV row per second and group below FOLDER, for SECONDS
//! ```
//!
//! The sampler shares no code with the agent, because it checks the effect of the agent.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{Write, stdout};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// `O_DIRECT` of x86-64, which the guest VMs have.
const DIRECT: i32 = 0o40000;
const BLOCK: usize = 128 * 1024;
const ALIGNED: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["burn"] => loop {
            work(1 << 20);
        },
        ["read", device, threads] => read(device, threads.parse()?, 0),
        ["read", device, threads, ms] => read(device, threads.parse()?, ms.parse()?),
        ["sample", folder, seconds] => sample(Path::new(folder), seconds.parse()?),
        _ => Err("usage: guest_load burn | read DEVICE THREADS [MS] | sample FOLDER SECONDS".into()),
    }
}

/// Computes something that the compiler cannot remove.
fn work(rounds: u64) {
    let mut state = 1u64;
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Returns the CPU time of this thread in nanoseconds up to the last tick, in the guest VM's own time, so that the speed of
/// emulation does not matter.
fn had() -> std::io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ').next().and_then(|n| n.parse().ok()).ok_or_else(|| std::io::Error::other(text))
}

/// Reads the device repeatedly, with a part of its own for each thread.
fn read(device: &str, threads: u64, ms: u64) -> Result<(), Box<dyn Error>> {
    let file = OpenOptions::new().read(true).custom_flags(DIRECT).open(device)?;
    let sectors: u64 =
        fs::read_to_string(format!("/sys/class/block/{}/size", device.trim_start_matches("/dev/")))?.trim().parse()?;
    let part = sectors * 512 / threads.max(1) / BLOCK as u64 * BLOCK as u64;
    let one = |file: File, first: u64| -> std::io::Result<()> {
        let mut buffer = vec![0u8; BLOCK + ALIGNED];
        let aligned = buffer.as_ptr().align_offset(ALIGNED);
        let block = &mut buffer[aligned..aligned + BLOCK];
        let mut due = if ms == 0 { 0 } else { had()? };
        loop {
            for at in (first..first + part).step_by(BLOCK) {
                file.read_exact_at(block, at)?;
                // Not relative to now: if a tick was late for one read, the next one waits less.
                due += 1_000_000 * ms;
                while ms > 0 && had()? < due {
                    work(10_000);
                }
            }
        }
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|t| file.try_clone().map(|file| scope.spawn(move || one(file, t * part))))
            .collect::<Result<_, _>>()?;
        for one in all {
            one.join().map_err(|_| "a thread ended")??;
        }
        Ok(())
    })
}

/// The cumulative resource use of a group.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu_us: u64,
    disk: u64,
}

fn used(group: &Path) -> Used {
    let text = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    let after = |text: &str, key: &str| text.strip_prefix(key).and_then(|n| n.trim().parse::<u64>().ok());
    let cpu_us = text("cpu.stat").lines().find_map(|line| after(line, "usage_usec")).unwrap_or(0);
    let io = text("io.stat");
    let words = io.split_whitespace();
    let disk = words.filter_map(|word| after(word, "rbytes=").or_else(|| after(word, "wbytes="))).sum();
    Used { cpu_us, disk }
}

/// Returns the number in a file like `100` or `default 100`; empty if the file does not exist.
fn weight(group: &Path, file: &str) -> String {
    let text = fs::read_to_string(group.join(file)).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("default").trim().to_string()
}

fn sample(folder: &Path, seconds: u64) -> Result<(), Box<dyn Error>> {
    let mut out = stdout();
    writeln!(out, "time_s,group,owner,cpu_cores,disk_bytes_per_s,cpu_weight,io_weight")?;
    let begun = Instant::now();
    let mut before: BTreeMap<String, (Instant, Used)> = BTreeMap::new();
    for second in 0..=seconds {
        thread::sleep((begun + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
        let mut groups: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        groups.retain(|entry| entry.path().is_dir());
        groups.sort_by_key(|entry| entry.file_name());
        for entry in groups {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let (now, then) = ((Instant::now(), used(&path)), before.get(&name).copied());
            before.insert(name.clone(), now);
            let Some(then) = then else { continue };
            let took = now.0.duration_since(then.0).as_secs_f64();
            let cores = now.1.cpu_us.saturating_sub(then.1.cpu_us) as f64 / 1e6 / took;
            let disk = now.1.disk.saturating_sub(then.1.disk) as f64 / took;
            let owner = name.split('.').next().unwrap_or_default();
            let time = begun.elapsed().as_secs_f64();
            let (cpu, io) = (weight(&path, "cpu.weight"), weight(&path, "io.bfq.weight"));
            writeln!(out, "{time:.2},{name},{owner},{cores:.4},{disk:.0},{cpu},{io}")?;
        }
        out.flush()?;
    }
    Ok(())
}
