#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| evenhand_fuzz::check_exchange(data));
