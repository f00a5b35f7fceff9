//! Parses the kernel's counter files: bytes in, numbers out, without allocation and without panics.
//!
//! Each function returns `None` if the text does not have the expected form. Sums that overflow saturate.

/// Parses an unsigned decimal number that fills the whole text.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|d| *d < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|line| !line.is_empty())
}

/// Parses a file that holds one number: `cpuacct.usage`, `memory.current`, `memory.usage_in_bytes`.
pub(crate) fn single(text: &[u8]) -> Option<u64> {
    number(text.strip_suffix(b"\n").unwrap_or(text))
}

/// Returns the CPU time in nanoseconds from `cpu.stat` of cgroup v2, which counts microseconds.
pub(crate) fn cpu_stat(text: &[u8]) -> Option<u64> {
    let usage = lines(text).find_map(|line| line.strip_prefix(b"usage_usec "))?;
    Some(number(usage)?.saturating_mul(1000))
}

/// Returns the bytes read and written according to `io.stat`, summed over disks. The file is empty if the group never
/// used a disk; a disk that it has not used recently may appear with its number alone.
pub(crate) fn io_stat(text: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    for line in lines(text) {
        for field in line.split(|b| *b == b' ') {
            let bytes = field.strip_prefix(b"rbytes=").or_else(|| field.strip_prefix(b"wbytes="));
            if let Some(bytes) = bytes {
                sum = sum.saturating_add(number(bytes)?);
            }
        }
    }
    Some(sum)
}

/// Returns the bytes from `blkio.throttle.io_service_bytes`, `blkio.bfq.io_service_bytes` or their recursive
/// variants: the total over disks, which is the last line.
pub(crate) fn service_bytes(text: &[u8]) -> Option<u64> {
    lines(text).find_map(|line| line.strip_prefix(b"Total ")).and_then(number)
}

/// Returns the totals in microseconds of `some` and `full` in a `.pressure` file. Before Linux 5.13 the CPU file has
/// no `full`.
pub(crate) fn pressure(text: &[u8]) -> Option<(u64, Option<u64>)> {
    let total = |kind: &[u8]| {
        let line = lines(text).find_map(|line| line.strip_prefix(kind))?;
        line.split(|b| *b == b' ').find_map(|field| field.strip_prefix(b"total=")).and_then(number)
    };
    Some((total(b"some ")?, total(b"full ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_as_kernels_print_them_are_parsed() {
        assert_eq!(single(b"123456789\n"), Some(123_456_789));
        assert_eq!(cpu_stat(b"usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"), Some(1_500_000));
        assert_eq!(io_stat(b""), Some(0));
        let disks = b"254:0 rbytes=4096 wbytes=100 rios=1 wios=1 dbytes=7 dios=0\n8:0 \n7:0 rbytes=1 wbytes=2 rios=1\n";
        assert_eq!(io_stat(disks), Some(4199));
        assert_eq!(service_bytes(b"Total 0\n"), Some(0));
        let disks = b"7:0 Read 8388608\n7:0 Write 0\n7:0 Total 8388608\n8:0 Read 1\n8:0 Total 1\nTotal 8388609\n";
        assert_eq!(service_bytes(disks), Some(8_388_609));
        let text = b"some avg10=0.42 avg60=0.61 avg300=0.83 total=17505740503\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!(pressure(text), Some((17_505_740_503, Some(12))));
        assert_eq!(pressure(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"), Some((5, None)));
    }

    #[test]
    fn malformed_files_are_rejected() {
        for text in [&b""[..], b"\n", b"-1\n", b"1 2\n", b"18446744073709551616\n", b"max\n", b" 1"] {
            assert_eq!(single(text), None, "{text:?}");
        }
        assert_eq!(single(b"18446744073709551615\n"), Some(u64::MAX));
        assert_eq!(cpu_stat(b"usage_usec 18446744073709551615\n"), Some(u64::MAX));
        assert_eq!(cpu_stat(b"user_usec 1\n"), None);
        assert_eq!(io_stat(b"8:0 rbytes=x\n"), None);
        assert_eq!(io_stat(b"8:0 rbytes=18446744073709551615 wbytes=1\n"), Some(u64::MAX));
        assert_eq!(service_bytes(b"7:0 Total 3\n"), None);
        assert_eq!(pressure(b"full avg10=0.00 total=3\n"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (single(&text), cpu_stat(&text), io_stat(&text), service_bytes(&text), pressure(&text));
        }

        /// Builds the text from fragments of real files, so that parsing gets past the first check.
        #[test]
        fn shuffled_fragments_do_not_panic(pieces in prop::collection::vec(0_usize..10, 0..30)) {
            let all = ["usage_usec ", "Total ", "rbytes=", "wbytes=", "some ", "full ", "total=", "\n", " ", "99999999999"];
            let text: String = pieces.into_iter().map(|i| all[i]).collect();
            let text = text.as_bytes();
            let _ = (single(text), cpu_stat(text), io_stat(text), service_bytes(text), pressure(text));
        }

        #[test]
        fn printed_numbers_are_parsed_back(value in any::<u64>(), others in prop::collection::vec(0_u64..1 << 50, 0..20)) {
            prop_assert_eq!(single(value.to_string().as_bytes()), Some(value));
            let text: String = others.iter().map(|o| format!("8:0 rbytes={o} wbytes={o} rios=3\n")).collect();
            prop_assert_eq!(io_stat(text.as_bytes()), Some(2 * others.iter().sum::<u64>()));
        }
    }
}
