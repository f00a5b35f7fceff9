//! Features that jobs require of nodes (`--constraint` of sbatch(1)).

/// More alternatives than these are left out.
const MOST_WORDS: usize = 64;

/// What is required: of each list one.
type Wanted = Vec<Vec<String>>;

/// Returns features as [`Requirements`](evenhand_model::Requirements): `a&b` requires both of each node, `a|b` one of them;
/// without parentheses they are read from left to right. `None` for what these cannot express: counts of nodes (`a*2`), and
/// alternatives of which all nodes have the same (`[a|b]`).
///
/// ```
/// use evenhand_workload::slurm_notation::parse_constraints;
/// assert_eq!(parse_constraints("ib&(intel|amd)").as_deref(), Some("ib,intel|amd"));
/// ```
pub fn parse_constraints(constraints: &str) -> Option<String> {
    if ["", "(null)", "None"].contains(&constraints) {
        return Some(String::new());
    }
    let mut rest = constraints;
    let wanted = expression(&mut rest, 0).filter(|_| rest.is_empty())?;
    Some(wanted.iter().map(|words| words.join("|")).collect::<Vec<_>>().join(","))
}

fn expression(rest: &mut &str, depth: usize) -> Option<Wanted> {
    let mut all = term(rest, depth)?;
    while let Some(after) = rest.strip_prefix(['&', '|']) {
        let is_both = rest.starts_with('&');
        *rest = after;
        let other = term(rest, depth)?;
        match is_both {
            true => all.extend(other),
            // One of each pair.
            false => all = all.iter().flat_map(|a| other.iter().map(move |b| either(a, b))).collect(),
        }
        if all.iter().map(Vec::len).sum::<usize>() > MOST_WORDS {
            return None;
        }
    }
    Some(all)
}

fn term(rest: &mut &str, depth: usize) -> Option<Wanted> {
    if let Some(after) = rest.strip_prefix('(').filter(|_| depth < MOST_WORDS) {
        *rest = after;
        let inner = expression(rest, depth + 1)?;
        *rest = rest.strip_prefix(')')?;
        return Some(inner);
    }
    let end = rest.find(['&', '|', ')']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    let is_name = !word.is_empty() && !word.contains(['[', ']', '(', '*', ',', '^', '#']);
    is_name.then(|| vec![vec![word.to_string()]])
}

fn either(a: &[String], b: &[String]) -> Vec<String> {
    let mut words = a.to_vec();
    words.extend(b.iter().filter(|word| !a.contains(word)).cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_joined_by_and_and_or_are_requirements() {
        let of = |text: &str| parse_constraints(text).unwrap_or_else(|| "left out".into());
        assert_eq!((of(""), of("(null)"), of("a")), (String::new(), String::new(), "a".into()));
        assert_eq!((of("a&b"), of("a|b|a")), ("a,b".into(), "a|b".into()));
        assert_eq!((of("a&(b|c)"), of("(a&b)|c"), of("a&b|c")), ("a,b|c".into(), "a|c,b|c".into(), "a|c,b|c".into()));
        assert_eq!(of("(a|b)&((c))"), "a|b,c");
        for text in ["[a|b]", "a*2&b", "[a*2&b*3]", "a&", "(a", "a)", "a b,c", "&", "()", "^a", "#excl"] {
            assert_eq!(of(text), "left out", "{text}");
        }
        let pairs: Vec<String> = (0..20).map(|i| format!("(a{i}&b{i})")).collect();
        assert_eq!(of(&pairs.join("|")), "left out");
        assert_eq!(of(&"(".repeat(100_000)), "left out");
    }
}
