#![no_main]

use evenhand_workload::import::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| evenhand_fuzz::check(Format::Csv, data));
