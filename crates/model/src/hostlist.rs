//! Hostlist expressions: `n[01-03,7],g1`.

/// The largest number of hosts in an expression.
const MAX_HOSTS: u64 = 1 << 20;

/// The most digits of a host's number.
const MAX_DIGITS: usize = 20;

/// Expands a hostlist expression to host names, in its order. Returns `None` if it is malformed, or longer than 2^20
/// names.
///
/// ```
/// use evenhand_model::expand_hostlist;
/// assert_eq!(expand_hostlist("n[08-10,12],g1").unwrap(), ["n08", "n09", "n10", "n12", "g1"]);
/// assert_eq!(expand_hostlist("n[1-"), None);
/// ```
pub fn expand_hostlist(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // Up to the next comma outside brackets.
        let mut depth = 0usize;
        let end = rest.find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.checked_sub(1).unwrap_or(usize::MAX >> 1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        let (one, after) = end.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
        expand(one, &mut names)?;
        rest = after;
    }
    Some(names)
}

/// Expands one element such as `rack[1-2]n[1-3]c`: every combination, the last range fastest.
fn expand(text: &str, names: &mut Vec<String>) -> Option<()> {
    let mut heads = vec![String::new()];
    let mut rest = text;
    while let Some((before, bracketed)) = rest.split_once('[') {
        let (ranges, after) = bracketed.split_once(']')?;
        let mut numbers = Vec::new();
        for range in ranges.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let width = from.len();
            let (from, to) = (from.parse::<u64>().ok()?, to.parse::<u64>().ok()?);
            // The number of digits counts too: n[000…1-9] with a million zeros is no name of a host.
            if to < from || width > MAX_DIGITS || (numbers.len() as u64).saturating_add(to - from) >= MAX_HOSTS {
                return None;
            }
            numbers.extend((from..=to).map(|n| format!("{n:0width$}")));
        }
        if (heads.len() as u64).saturating_mul(numbers.len() as u64) > MAX_HOSTS {
            return None;
        }
        heads = heads.iter().flat_map(|h| numbers.iter().map(move |n| format!("{h}{before}{n}"))).collect();
        rest = after;
    }
    if rest.contains(']') || text.is_empty() || names.len() as u64 > MAX_HOSTS {
        return None;
    }
    names.extend(heads.into_iter().map(|h| h + rest));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostlists_are_expanded_and_malformed_ones_are_rejected() {
        assert_eq!(expand_hostlist("login").unwrap(), ["login"]);
        assert_eq!(expand_hostlist("r[1-2]n[1,3]x").unwrap(), ["r1n1x", "r1n3x", "r2n1x", "r2n3x"]);
        assert_eq!(expand_hostlist("").unwrap(), Vec::<String>::new());
        for bad in ["n]", "n[1", "n[a-b]", "n[3-1]", "n[0-99999999]", "a,,b", "n[1-1000]m[1-1000]k[1-1000]"] {
            assert_eq!(expand_hostlist(bad), None, "{bad}");
        }
        // Small texts that would be gigabytes.
        let many_ranges = format!("n[{}]", ["1-1000000"; 1000].join(","));
        let many_digits = format!("n[{}1-{}9]", "0".repeat(30), "0".repeat(30));
        assert_eq!([many_ranges, many_digits].map(|text| expand_hostlist(&text)), [None, None]);
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[a-z0-9\\[\\],-]{0,24}") {
            let _ = expand_hostlist(&text);
        }
    }
}
