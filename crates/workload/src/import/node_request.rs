//! Nodes as TORQUE and MetaCentrum's logs request them: `2:ppn=8:x86_64:cl_zewura+1:ppn=4#excl`.

use evenhand_model::{Nano, Requirements};

use super::parse_number::{NANO, decimal, leading_digits};

/// A request of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeRequest {
    /// Equal nodes: how many, and the processors of each in billionths.
    pub(super) parts: Vec<(u32, Nano)>,
    /// What every node must be, in the notation of [`Requirements`]; empty if that is nothing.
    pub(super) requires: String,
}

impl NodeRequest {
    /// Parses a request; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<NodeRequest> {
        let mut words = text.split('#');
        let nodes = words.next()?;
        let is_exclusive = words.any(|word| matches!(word, "excl" | "exclhost"));
        let mut request = NodeRequest::default();
        let mut common: Option<Vec<&str>> = None;
        for part in nodes.split('+') {
            let mut fields = part.split(':').peekable();
            let (count, digits) = leading_digits(fields.peek()?.as_bytes());
            let mut nodes = 1;
            if digits > 0 {
                let number = fields.next()?;
                nodes = u32::try_from(count).ok().filter(|n| *n > 0 && number.len() == digits)?;
            }
            let mut processors = NANO;
            let mut required: Vec<&str> = Vec::new();
            for field in fields {
                match field.split_once('=') {
                    Some(("ppn" | "ncpus", number)) => processors = decimal(number.as_bytes())?.nano,
                    Some(("host" | "vnode", name)) => required.push(name),
                    // Amounts are in other fields of a job.
                    Some(_) => {}
                    None if is_property(field) => required.push(field),
                    None => return None,
                }
            }
            request.parts.push((nodes, processors));
            common = Some(match common {
                None => required,
                Some(common) => common.into_iter().filter(|word| required.contains(word)).collect(),
            });
        }
        let mut required: Vec<&str> = Vec::new();
        for word in common.unwrap_or_default() {
            if !required.contains(&word) {
                required.push(word);
            }
        }
        required.extend(is_exclusive.then_some(Requirements::WHOLE_MACHINES));
        // Equal nodes are counted; of others the chunks are listed.
        let are_equal = request.parts.iter().all(|(_, each)| *each == request.parts[0].1);
        required.extend((!are_equal).then_some(Requirements::SEPARATE_MACHINES));
        request.requires = required.join(",");
        Some(request)
    }

    /// How many nodes are requested.
    pub(super) fn nodes(&self) -> Option<u32> {
        self.parts.iter().try_fold(0u32, |sum, (nodes, _)| sum.checked_add(*nodes))
    }

    /// The chunks of a job whose nodes differ, in the notation of [`Chunk`](evenhand_model::Chunk), if together they have
    /// the processors of the job; `memory` is what a node with so many processors has of it, in billionths.
    pub(super) fn chunks(&self, processors: Nano, memory: impl Fn(Nano) -> Nano) -> Option<String> {
        let (_, first) = self.parts.first()?;
        if self.parts.iter().all(|(_, each)| each == first) {
            return None;
        }
        let total = self.parts.iter().try_fold(0u128, |sum, (nodes, each)| {
            each.checked_mul(u128::from(*nodes)).and_then(|all| sum.checked_add(all))
        })?;
        if total != processors || self.parts.iter().any(|(_, each)| *each == 0) {
            return None;
        }
        let text = |(nodes, each): &(u32, Nano)| match memory(*each) {
            0 => format!("{nodes}:cpu={}", Decimal(*each)),
            memory => format!("{nodes}:cpu={}:mem={}", Decimal(*each), Decimal(memory)),
        };
        Some(self.parts.iter().map(text).collect::<Vec<_>>().join("+"))
    }
}

/// Whether a word can be a property that a node must have, the name of a node, or after `^` one that it must not have.
pub(super) fn is_property(word: &str) -> bool {
    let name = word.strip_prefix('^').unwrap_or(word);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part)
}

/// Returns `part` of `whole` of an amount, rounded down; 0 if it is beyond all that can be computed.
pub(super) fn share(amount: Nano, part: Nano, whole: Nano) -> Nano {
    amount.checked_mul(part).map_or(0, |product| product / whole.max(1))
}

/// Billionths as a decimal number.
pub(super) struct Decimal(pub(super) Nano);

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0 / NANO, self.0 % NANO);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// Writes the machines of MetaCentrum's column 19, one entry a processor (`{1241,1241,1240}`), as a list of hosts.
pub(super) fn machines(text: &str) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut hosts: Vec<&str> = inner.split(',').map(str::trim).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let is_name =
        |host: &&str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    (!hosts.is_empty() && hosts.iter().all(is_name)).then(|| hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read_as_torque_means_them() {
        let parse = |text: &str| {
            let found = NodeRequest::parse(text)?;
            Some((found.parts.iter().map(|(n, p)| (*n, *p / NANO)).collect::<Vec<_>>(), found.requires))
        };
        assert_eq!(parse("1:ppn=64:x86_64:cl_zewura#excl"), Some((vec![(1, 64)], "x86_64,cl_zewura,#excl".into())));
        assert_eq!(parse("1:ppn=4+2:ppn=8"), Some((vec![(1, 4), (2, 8)], "#scatter".into())));
        assert_eq!(parse("2:ppn=1:brno:nfs4+1:nfs4"), Some((vec![(2, 1), (1, 1)], "nfs4".into())));
        assert_eq!(parse("host7:ppn=2:brno"), Some((vec![(1, 2)], "host7,brno".into())));
        assert_eq!(parse("1:ppn=1:^zewura12.cz:mem=3gb"), Some((vec![(1, 1)], "^zewura12.cz".into())));
        assert_eq!(parse("1:ppn=1:a:a"), Some((vec![(1, 1)], "a".into())));
        assert_eq!(parse("2:infiniband"), Some((vec![(2, 1)], "infiniband".into())));
        for bad in ["", "?", "1:^", "0:ppn=2", "1:ppn=x", "1::ppn=2", "2x:ppn=1", "1:ppn=2+"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn chunks_are_written_only_where_nodes_differ_and_make_up_the_job() {
        let of =
            |text: &str, processors: u128| NodeRequest::parse(text).unwrap().chunks(processors * NANO, |each| each * 2);
        assert_eq!(of("1:ppn=4+2:ppn=8", 20).unwrap(), "1:cpu=4:mem=8+2:cpu=8:mem=16");
        assert_eq!(of("1:ppn=4+2:ppn=8", 21), None);
        assert_eq!(of("2:ppn=8+1:ppn=8", 24), None);
        let half = NodeRequest::parse("1:ppn=0.5+1:ppn=2").unwrap();
        assert_eq!(half.chunks(5 * NANO / 2, |_| 0).unwrap(), "1:cpu=0.5+1:cpu=2");
    }

    #[test]
    fn machines_are_named_once() {
        assert_eq!(machines("{1241,1240,1241}").unwrap(), "1240,1241");
        assert_eq!([machines("{}"), machines("1241"), machines("{a b}")], [None, None, None]);
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[0-9a-z:=+#^,.{}]{0,30}") {
            let _ = (NodeRequest::parse(&text).map(|r| (r.nodes(), r.chunks(NANO, |n| n))), machines(&text));
        }
    }
}
