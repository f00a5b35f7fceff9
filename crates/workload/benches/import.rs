//! How fast traces are imported: median of five runs on one thread, of generated traces.
//!
//! Run with `cargo bench -p evenhand-workload --bench import`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::time::Instant;

use evenhand_workload::{Format, ImportOptions, Source, import};

fn main() {
    let google = google_shard(400_000);
    let megabytes = google.len() as f64 / 1e6;
    for (name, data) in
        [("plain", google.clone().into_bytes()), ("gz", gzip(google.as_bytes())), ("zst", zstd(&google))]
    {
        let (seconds, rows) = measure(Format::Google2011, "shard.csv", data);
        let (rate, million_rows) = (megabytes / seconds, rows as f64 / seconds / 1e6);
        println!("google2011 {name:5}: {rate:6.0} MB/s of CSV, {million_rows:5.2} million rows/s");
    }
    let swf = swf_log(400_000);
    for (name, data) in [("plain", swf.clone().into_bytes()), ("gz", gzip(swf.as_bytes()))] {
        let (seconds, rows) = measure(Format::Swf, "log.swf", data);
        println!("swf        {name:5}: {:5.2} million rows/s", rows as f64 / seconds / 1e6);
    }
}

/// The median seconds of five imports, and the rows read.
fn measure(format: Format, name: &str, data: Vec<u8>) -> (f64, u64) {
    let options = ImportOptions { format, threads: NonZeroUsize::new(1), ..ImportOptions::default() };
    let sources = [Source::Bytes { name: name.to_string(), data }];
    let mut rows = 0;
    let mut seconds: Vec<f64> = (0..5)
        .map(|_| {
            let begin = Instant::now();
            rows = import(&sources, &options).unwrap().summary.rows_read;
            begin.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (seconds[2], rows)
}

/// A few random bits for each draw, the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        // Knuth's linear congruential generator; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Rows like Google's: jobs of some tasks, each submitted, scheduled and ended.
fn google_shard(rows: usize) -> String {
    let mut draw = Draws(1);
    let mut text = String::new();
    let (mut time, mut job) = (600_000_000u64, 6_250_000_000u64);
    let mut n = 0;
    while n < rows {
        job += 1 + draw.below(1000);
        let (user, tasks) = (draw.below(600), 1 + draw.below(40));
        let (cpu, mem, disk) = (draw.below(400), draw.below(9999), draw.below(9999));
        for event in [0, 1, 4] {
            for task in 0..tasks {
                time += 1 + draw.below(90_000);
                let machine = if event == 0 { String::new() } else { (draw.below(1 << 31) * 2).to_string() };
                writeln!(
                    text,
                    "{time},,{job},{task},{machine},{event},{user:06}/AbCdEfGhIjKlMnOpQrStUvWxYz0123456789a=,2,0,0.{cpu:04}5,0.{mem:05},0.000{disk:04},0"
                )
                .unwrap();
                n += 1;
            }
        }
    }
    text
}

fn swf_log(jobs: u64) -> String {
    let mut draw = Draws(2);
    let mut text = String::from("; Version: 2.2\n; MaxProcs: 4096\n");
    let mut submit = 0;
    for job in 1..=jobs {
        submit += draw.below(120);
        let (wait, run, processors) = (draw.below(90_000), draw.below(86_400), 1 + draw.below(512));
        let (user, group, queue) = (draw.below(600), draw.below(60), draw.below(8));
        writeln!(
            text,
            "{job:6} {submit:9} {wait:6} {run:6} {processors:4} -1 -1 {processors:4} 86400 {} 1 {user:3} {group:3} -1 {queue} -1 -1 -1",
            1024 * (1 + draw.below(64))
        )
        .unwrap();
    }
    text
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}
