//! Generic resources (GRES) of nodes and jobs: `gpu:a100:4(S:0-3),nsight:no_consume:1`.

use super::number;

/// A generic resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gres {
    /// The name: `gpu`, `mps`, `shard`, …
    pub name: String,
    /// The type, such as `a100`, if it has one.
    pub kind: Option<String>,
    /// The number; 1 by default.
    pub count: u64,
}

/// Parses a list of generic resources of a node (`gpu:a100:4(S:0-3)`) or of a job (`gres:gpu:2`, `gres/gpu:l4:1`,
/// `PER_NODE:gpu:l4:1`).
/// Returns `None` if it is malformed. Resources with `no_consume` are left out.
///
/// ```
/// use evenhand_workload::slurm_notation::parse_gres;
/// let gpus = |text| parse_gres(text).unwrap().iter().filter(|g| g.name == "gpu").map(|g| g.count).sum::<u64>();
/// assert_eq!((gpus("gpu:a100:4(S:0-3,5),gpu:2,vis:no_consume:1"), gpus("gres:gpu:2"), gpus("(null)")), (6, 2, 0));
/// ```
pub fn parse_gres(text: &str) -> Option<Vec<Gres>> {
    let mut list = Vec::new();
    if ["", "(null)", "N/A", "none"].contains(&text) {
        return Some(list);
    }
    for part in parts(text)? {
        // ReqGRES of sacct has PER_NODE:, PER_JOB: and the like in releases around 20.02.
        let part = part.strip_prefix("PER_").and_then(|rest| Some(rest.split_once(':')?.1)).unwrap_or(part);
        let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
        let words: Vec<&str> = part.split([':', '=']).collect();
        let (name, words) = words.split_first()?;
        if name.is_empty() {
            return None;
        }
        if words.contains(&"no_consume") {
            continue;
        }
        let (kind, count) = match words {
            [] => (None, 1),
            [last] => number(last).map_or((Some(*last), 1), |count| (None, count)),
            [kind, count] => (Some(*kind), number(count)?),
            _ => return None,
        };
        list.push(Gres { name: name.to_string(), kind: kind.map(String::from), count });
    }
    Some(list)
}

/// Splits a list at commas outside parentheses, and drops what is in parentheses.
fn parts(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut begin, mut end, mut depth) = (0, None, 0u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                depth += 1;
                end = end.or(Some(at));
            }
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(&text[begin..end.take().unwrap_or(at)]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..end.unwrap_or(text.len())]);
    (depth == 0).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gres(name: &str, kind: Option<&str>, count: u64) -> Gres {
        Gres { name: name.into(), kind: kind.map(String::from), count }
    }

    #[test]
    fn lists_of_nodes_and_of_jobs() {
        assert_eq!(parse_gres("gpu:a100:4(S:0-3),pfs:x:no_consume:1").unwrap(), [gres("gpu", Some("a100"), 4)]);
        assert_eq!(parse_gres("gpu").unwrap(), [gres("gpu", None, 1)]);
        assert_eq!(parse_gres("gres/gpu:l4").unwrap(), [gres("gpu", Some("l4"), 1)]);
        assert_eq!(
            parse_gres("gres/gpu=2,gres:craynetwork:4K").unwrap(),
            [gres("gpu", None, 2), gres("craynetwork", None, 4096)]
        );
        assert_eq!(parse_gres("PER_NODE:gpu:l4:2").unwrap(), [gres("gpu", Some("l4"), 2)]);
        for bad in ["gpu:a:b:c", "gpu(", "gpu)", ",", "gpu:a100:x", ":2"] {
            assert_eq!(parse_gres(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_list_reads_back(list in prop::collection::vec(("[a-z]{1,5}", prop::option::of("[a-z][a-z0-9]{0,4}"), 0u64..100), 1..4)) {
            let list: Vec<Gres> = list.iter().map(|(name, kind, count)| gres(name, kind.as_deref(), *count)).collect();
            let one = |g: &Gres| format!("{}{}:{}(S:0,2)", g.name, g.kind.as_ref().map_or(String::new(), |k| format!(":{k}")), g.count);
            let text = list.iter().map(one).collect::<Vec<_>>().join(",");
            let consumed = |g: &&Gres| g.kind.as_deref() != Some("no_consume");
            prop_assert_eq!(parse_gres(&text), Some(list.iter().filter(consumed).cloned().collect()));
        }

        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,20}|[a-z0-9:(),=]{0,20}") {
            let _ = parse_gres(&text);
        }
    }
}
