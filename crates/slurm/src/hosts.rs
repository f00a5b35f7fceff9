//! Lists of machines as Slurm shortens them: `n[01-03,7],g1`.

/// More machines than any site has: what stands for more is no list.
const MOST: u64 = 1 << 20;

/// The names, in the order of the list; `None` if it is none.
///
/// ```
/// use evenhand_slurm::hosts;
/// assert_eq!(hosts("n[08-10,12],g1").unwrap(), ["n08", "n09", "n10", "n12", "g1"]);
/// assert_eq!(hosts("n[1-"), None);
/// ```
pub fn hosts(text: &str) -> Option<Vec<String>> {
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

/// `rack[1-2]n[1-3]c`: every pair, the last range fastest.
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
            if to < from || to - from >= MOST {
                return None;
            }
            numbers.extend((from..=to).map(|n| format!("{n:0width$}")));
        }
        if (heads.len() as u64).saturating_mul(numbers.len() as u64) > MOST {
            return None;
        }
        heads = heads.iter().flat_map(|h| numbers.iter().map(move |n| format!("{h}{before}{n}"))).collect();
        rest = after;
    }
    if rest.contains(']') || text.is_empty() || names.len() as u64 > MOST {
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
    fn lists_are_expanded_and_what_is_none_is_refused() {
        assert_eq!(hosts("login").unwrap(), ["login"]);
        assert_eq!(hosts("r[1-2]n[1,3]x").unwrap(), ["r1n1x", "r1n3x", "r2n1x", "r2n3x"]);
        assert_eq!(hosts("").unwrap(), Vec::<String>::new());
        for bad in ["n]", "n[1", "n[a-b]", "n[3-1]", "n[0-99999999]", "a,,b", "n[1-1000]m[1-1000]k[1-1000]"] {
            assert_eq!(hosts(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[a-z0-9\\[\\],-]{0,24}") {
            let _ = hosts(&text);
        }
    }
}
