//! Determines the resources of this machine.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::PerResource;
use thiserror::Error;

use crate::configuration::{NodeSection, Speed};
use crate::trusted_files::{TrustError, create_private_folder, open_private, open_state_file};

/// Why the resources of this machine cannot be determined.
#[derive(Debug, Error)]
pub enum SupplyError {
    /// A file cannot be read or written, or has another form than expected.
    #[error("{path}: {why}")]
    File {
        /// The path.
        path: String,
        /// The problem.
        why: String,
    },
    /// Another user could change what is kept of a benchmark.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Returns the node's supply in processors, bytes and bytes per second: as configured, or else as the kernel reports
/// processors and memory below `root`. The bandwidth of a disk or link that is not configured is unknown, which is 0.
///
/// # Errors
/// Returns an error if a file of the kernel cannot be read.
pub fn node_supply(section: &NodeSection, root: &Path) -> Result<PerResource<f64>, SupplyError> {
    let mut supply = section.supply.map(|s| s.unwrap_or(0.0));
    if section.supply.cpu.is_none() {
        supply.cpu = processors(&read(&root.join("sys/devices/system/cpu/online"))?).into();
    }
    if section.supply.memory.is_none() {
        let path = root.join("proc/meminfo");
        let text = read(&path)?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
        let kib: Option<f64> = line.and_then(|kib| kib.trim().parse().ok());
        supply.memory = 1024.0 * kib.ok_or_else(|| file_error(&path, "no MemTotal in it"))?;
    }
    Ok(supply)
}

/// Returns the factor that converts CPU seconds of this node to those of the reference node. The result of a benchmark is
/// stored in the directory `state`, so that it is the same after a restart.
///
/// # Errors
/// Returns an error if a file of the kernel cannot be read, or if the result cannot be stored where only root and this user may
/// change it.
pub fn processor_speed(speed: Speed, root: &Path, state: &Path) -> Result<f64, SupplyError> {
    match speed {
        Speed::Given(factor) => Ok(factor),
        Speed::BogoMips { reference } => {
            let path = root.join("proc/cpuinfo");
            bogomips(&read(&path)?).map(|mips| mips / reference).ok_or_else(|| file_error(&path, "no bogomips in it"))
        }
        Speed::Benchmark { reference } => {
            let path = state.join("benchmark");
            let kept = open_state_file(&path).ok().and_then(|file| io::read_to_string(file).ok());
            let kept = kept.and_then(|text| text.trim().parse::<f64>().ok());
            let result = match kept.filter(|result| *result > 0.0 && result.is_finite()) {
                Some(result) => result,
                None => {
                    let result = benchmark(Duration::from_millis(500));
                    create_private_folder(state).map_err(|e| file_error(state, e.to_string()))?;
                    let mut file = open_private(&path)?;
                    file.set_len(0)
                        .and_then(|()| file.write_all(format!("{result}\n").as_bytes()))
                        .map_err(|e| file_error(&path, e.to_string()))?;
                    result
                }
            };
            Ok(result / reference)
        }
    }
}

/// Measures the speed of a processor: millions of rounds per second of a fixed mixture of integer work, the best of at least
/// five tries within about this time. Only ratios between machines are meaningful, and only for such work.
pub fn benchmark(time: Duration) -> f64 {
    const ROUNDS: u64 = 2_000_000;
    let (begun, mut best) = (Instant::now(), 0.0_f64);
    let mut tries = 0;
    while tries < 5 || begun.elapsed() < time {
        let try_begun = Instant::now();
        let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
        for round in 0..ROUNDS {
            // Multiplications, shifts and a chain of dependencies, as in hashing.
            x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(17) ^ round;
        }
        std::hint::black_box(x);
        best = best.max(ROUNDS as f64 / try_begun.elapsed().as_secs_f64() / 1e6);
        tries += 1;
    }
    best
}

/// Counts the processors in a list: `0-3,8,10-11` has 7.
fn processors(list: &str) -> u32 {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let count = |range: &str| match range.split_once('-') {
        Some((first, last)) => Some(number(last)?.checked_sub(number(first)?)?.saturating_add(1)),
        None => number(range).map(|_| 1),
    };
    list.split(',').filter_map(count).fold(0_u32, u32::saturating_add).max(1)
}

/// Returns the BogoMIPS of a processor, averaged over all processors.
fn bogomips(cpuinfo: &str) -> Option<f64> {
    let of = |line: &str| -> Option<f64> {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case("bogomips").then(|| value.trim().parse().ok()).flatten()
    };
    let all: Vec<f64> = cpuinfo.lines().filter_map(of).filter(|mips| *mips > 0.0).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn read(path: &Path) -> Result<String, SupplyError> {
    fs::read_to_string(path).map_err(|e: io::Error| file_error(path, e.to_string()))
}

fn file_error(path: &Path, why: impl Into<String>) -> SupplyError {
    SupplyError::File { path: path.display().to_string(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in all {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn unconfigured_supplies_are_read_from_the_kernel() {
        let root = files(&[
            ("sys/devices/system/cpu/online", "0-3,8,10-11\n"),
            ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16384 kB\n"),
        ]);
        let mut section = NodeSection::default();
        let supply = |root| node_supply(&section, root);
        let memory = 16384.0 * 1024.0;
        assert_eq!(supply(root.path()).unwrap(), PerResource { cpu: 7.0, memory, ..PerResource::default() });
        section.supply = PerResource { cpu: Some(2.0), memory: Some(5.0), disk: Some(1e8), network: None };
        let expected = PerResource { cpu: 2.0, memory: 5.0, disk: 1e8, network: 0.0 };
        assert_eq!(node_supply(&section, Path::new("/nowhere")).unwrap(), expected);
        section.supply.memory = None;
        let message = node_supply(&section, Path::new("/nowhere")).unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/proc/meminfo: "), "{message}");
    }

    #[test]
    fn the_speed_is_configured_or_measured() {
        let root = files(&[("proc/cpuinfo", "processor: 0\nbogomips\t: 5000.00\n\nprocessor: 1\nBogoMIPS: 7000.0\n")]);
        let state = tempfile::tempdir().unwrap();
        let of = |speed| processor_speed(speed, root.path(), state.path()).unwrap();
        assert_eq!(of(Speed::Given(1.5)), 1.5);
        assert_eq!(of(Speed::BogoMips { reference: 3000.0 }), 2.0);
        let first = of(Speed::Benchmark { reference: 100.0 });
        assert!(first > 0.0);
        assert_eq!(of(Speed::Benchmark { reference: 100.0 }), first);
        assert_eq!(of(Speed::Benchmark { reference: 50.0 }), 2.0 * first);
    }
}
