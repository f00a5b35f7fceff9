//! The data of the page's script, in a compact encoding that the script decodes without a library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use super::{ProcessRun, client_colours};

/// The data that the page's script reads.
#[derive(Serialize)]
struct Data<'a> {
    clients: &'a [String],
    /// The colour number of each client.
    series: Vec<usize>,
    resources: &'a [String],
    /// The unit of all other times, in nanoseconds.
    unit_ns: u64,
    horizon: u64,
    rows: Vec<Row>,
    /// Resource, beginning, end.
    bottlenecks: Vec<[u64; 3]>,
    /// Time, client (if any), label.
    marks: Vec<(u64, Option<usize>, &'a str)>,
}

/// One row of a resource's lane: uses without overlap, in order of time.
#[derive(Serialize)]
struct Row {
    resource: usize,
    count: usize,
    /// Three numbers per use: the client, the time since the end of the previous use, and the length. Numbers are
    /// LEB128 (seven bits per byte, lowest first, the eighth bit set in all but the last byte), the bytes base64.
    uses: String,
}

/// Returns the data as JSON without `<`, so that it cannot end the `script` element that contains it. The run must be
/// valid.
pub(super) fn to_json(run: &ProcessRun) -> Result<String, serde_json::Error> {
    // The greatest common divisor of all times as the unit keeps the numbers short: without randomness all times
    // are multiples of the quantum.
    let times = run.uses.iter().flat_map(|u| [u.from_ns, u.until_ns]);
    let others = run.bottlenecks.iter().flat_map(|b| [b.from_ns, b.until_ns]);
    let all = times.chain(others).chain(run.marks.iter().map(|m| m.at_ns)).chain([run.horizon_ns]);
    let unit_ns = all.fold(0, greatest_common_divisor).max(1);
    let mut rows = Vec::new();
    for resource in 0..run.resources.len() {
        let mut own = run.rows(resource);
        if own.is_empty() {
            own.push(Vec::new());
        }
        for row in own {
            let mut bytes = Vec::new();
            let mut end = 0;
            for u in &row {
                for number in [u.client as u64, (u.from - end) / unit_ns, (u.until - u.from) / unit_ns] {
                    push_number(&mut bytes, number);
                }
                end = u.until;
            }
            rows.push(Row { resource, count: row.len(), uses: BASE64.encode(&bytes) });
        }
    }
    let mut bottlenecks: Vec<[u64; 3]> =
        run.bottlenecks.iter().map(|b| [b.resource as u64, b.from_ns / unit_ns, b.until_ns / unit_ns]).collect();
    bottlenecks.sort_unstable();
    let mut marks: Vec<_> = run.marks.iter().map(|m| (m.at_ns / unit_ns, m.client, m.label.as_str())).collect();
    marks.sort_unstable();
    let horizon = run.horizon_ns / unit_ns;
    let data = Data {
        clients: &run.clients,
        series: client_colours::series(&run.clients),
        resources: &run.resources,
        unit_ns,
        horizon,
        rows,
        bottlenecks,
        marks,
    };
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::small_run;
    use super::*;

    #[test]
    fn times_are_multiples_of_their_greatest_common_divisor_and_no_name_ends_the_script_element() {
        let json = to_json(&small_run()).unwrap();
        assert!(!json.contains('<'), "{json}");
        let data: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&data["unit_ns"], &data["horizon"]), (&100_000_000.into(), &20.into()));
        assert_eq!(data["clients"][0], "</script><b>red");
        // Client, gap, length: (0, 0, 5), (1, 0, 1), (0, 0, 4).
        assert_eq!(data["rows"][0]["uses"], BASE64.encode([0, 0, 5, 1, 0, 1, 0, 0, 4]));
        assert_eq!(data["rows"][0]["count"], 3);
        assert_eq!(data["rows"][1]["uses"], BASE64.encode([1, 6, 14]));
    }

    proptest! {
        #[test]
        fn encoded_numbers_decode_to_themselves(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|n| push_number(&mut bytes, *n));
            let (mut read, mut number, mut shift) = (Vec::new(), 0u64, 0);
            for byte in bytes {
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    read.push(number);
                    (number, shift) = (0, 0);
                }
            }
            prop_assert_eq!(read, numbers);
        }
    }
}
