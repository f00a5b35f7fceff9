//! Stored workloads with damage: an error that names the file, or a workload, but never a panic.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use evenhand_model::random::Stream;
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use evenhand_workload::store;

const MUTATIONS: u64 = 500;

/// Damages a file as disks, networks and hostile hands do.
fn mutate(bytes: &mut Vec<u8>, random: &mut Stream) {
    let at = |random: &mut Stream, bytes: &[u8]| random.below(bytes.len() as u64) as usize;
    match random.below(6) {
        // Single bytes, mostly in the metadata at the end, which has most ways to be wrong.
        0 | 1 => {
            for _ in 0..=random.below(4) {
                let tail = bytes.len().min(2000) as u64;
                let place = bytes.len() - 1 - random.below(tail) as usize;
                bytes[place] = random.bits() as u8;
            }
        }
        2 => {
            let place = at(random, bytes);
            bytes[place] ^= 1 << random.below(8);
        }
        3 => bytes.truncate(at(random, bytes)),
        4 => {
            let (from, length) = (at(random, bytes), 1 + random.below(64) as usize);
            let end = (from + length).min(bytes.len());
            bytes[from..end].fill(if random.below(2) == 0 { 0 } else { 0xff });
        }
        _ => {
            let (from, to) = (at(random, bytes), at(random, bytes));
            let piece: Vec<u8> = bytes[from..bytes.len().min(from + 32)].to_vec();
            bytes.splice(to..to, piece);
        }
    }
}

#[test]
fn damaged_files_are_errors_and_not_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.parquet");
    let options = GenerateOptions { model: TraceModel::MetaCentrum, tasks: 300, users: 7, days: 1.0, seed: 1 };
    store::write(&path, &generate(&options).unwrap()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut random = Stream::new(500, "mutations", 0);
    let mut refused = 0;
    for number in 0..MUTATIONS {
        let mut bytes = whole.clone();
        mutate(&mut bytes, &mut random);
        std::fs::write(&path, &bytes).unwrap();
        if let Err(error) = read(&path) {
            refused += 1;
            assert!(error.contains("w.parquet"), "mutation {number}: {error}");
        }
        // Only the end of the file is read for it.
        let _ = store::rows(&path);
    }
    assert!(refused > MUTATIONS / 2, "only {refused} of {MUTATIONS} were found: the mutations do too little");
}

fn read(path: &Path) -> Result<(), String> {
    store::read(path).map(drop).map_err(|e| e.to_string())
}
