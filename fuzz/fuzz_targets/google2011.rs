#![no_main]

use evenhand_workload::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| evenhand_fuzz::check(Format::Google2011, data));
