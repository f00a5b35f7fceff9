//! Fields of text formats, written into a line buffer.

/// A CSV field, quoted only if it must be (RFC 4180).
pub(crate) fn push_csv(line: &mut Vec<u8>, field: &str) {
    if !field.contains([',', '"', '\n', '\r']) {
        line.extend_from_slice(field.as_bytes());
        return;
    }
    line.push(b'"');
    for (i, part) in field.split('"').enumerate() {
        if i > 0 {
            line.extend_from_slice(b"\"\"");
        }
        line.extend_from_slice(part.as_bytes());
    }
    line.push(b'"');
}

/// An integer.
pub(crate) fn push_integer(line: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// Nanoseconds as seconds with nine decimals, exactly.
pub(crate) fn push_seconds(line: &mut Vec<u8>, ns: u64) {
    push_integer(line, ns / 1_000_000_000);
    line.push(b'.');
    let mut part = ns % 1_000_000_000;
    let mut digits = [b'0'; 9];
    for d in digits.iter_mut().rev() {
        *d = b'0' + (part % 10) as u8;
        part /= 10;
    }
    line.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl Fn(&mut Vec<u8>)) -> String {
        let mut line = Vec::new();
        push(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn fields_are_quoted_only_when_they_must_be() {
        for (field, expected) in
            [("alice", "alice"), ("a b", "a b"), ("a,b", "\"a,b\""), ("say \"hi\"", "\"say \"\"hi\"\"\""), ("", "")]
        {
            assert_eq!(text(|l| push_csv(l, field)), expected);
        }
    }

    #[test]
    fn seconds_are_exact() {
        for (ns, expected) in [
            (0, "0.000000000"),
            (1, "0.000000001"),
            (1_500_000_000, "1.500000000"),
            (1_356_996_147_000_000_001, "1356996147.000000001"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(text(|l| push_seconds(l, ns)), expected);
        }
    }
}
