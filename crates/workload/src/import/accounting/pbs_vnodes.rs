//! What OpenPBS and PBS Professional allocated: `exec_vnode=(n1:ncpus=4:mem=8388608kb)+(n2:ncpus=2+n3:ncpus=2:ngpus=1)`.
//!
//! Each pair of parentheses is a chunk, which may lie on several vnodes (PBS Professional Reference Guide, "exec_vnode").

use super::pbs_select::{ChunkSize, Fault};
use super::size as bytes;
use crate::import::parse_number::decimal;

/// Returns what all vnodes hold for the job together. Resources other than processors, memory and GPUs are left out.
pub(super) fn allocated(text: &str) -> Result<ChunkSize, Fault<'_>> {
    let mut sum = ChunkSize::default();
    let (mut at, mut is_open) = (0, false);
    for part in text.split('+') {
        let fault = (at, part, "vnodes in parentheses, such as (n1:ncpus=4:mem=8gb)+(n2:ncpus=4)");
        let opened = part.strip_prefix('(');
        let closed = opened.unwrap_or(part).strip_suffix(')');
        let vnode = closed.or(opened).unwrap_or(part);
        // A chunk begins where none is open, and only there.
        if opened.is_some() == is_open || vnode.contains(['(', ')']) {
            return Err(fault);
        }
        is_open = closed.is_none();
        let offset = at + usize::from(opened.is_some());
        let held = of_vnode(vnode).map_err(|(place, found, expected)| (offset + place, found, expected))?;
        sum = sum.plus(held).ok_or((at, part, "amounts below 10^18"))?;
        at += part.len() + 1;
    }
    if is_open { Err((0, text, "a closing parenthesis after each chunk")) } else { Ok(sum) }
}

/// What a vnode holds: its name, and `resource=value` after colons.
fn of_vnode(vnode: &str) -> Result<ChunkSize, Fault<'_>> {
    let mut held = ChunkSize::default();
    let mut fields = vnode.split(':');
    let name = fields.next().unwrap_or_default();
    if name.is_empty() || name.contains('=') {
        return Err((0, name, "the name of a vnode"));
    }
    let mut at = name.len() + 1;
    for field in fields {
        let Some((resource, value)) = field.split_once('=').filter(|(resource, _)| !resource.is_empty()) else {
            return Err((at, field, "resource=value, such as ncpus=4 or mem=8gb"));
        };
        let number = |expected| decimal(value.as_bytes()).map(|d| d.nano).ok_or((at, field, expected));
        match resource {
            "ncpus" => held.cpu = number("a number of processors")?,
            "mem" => held.mem = bytes(value.as_bytes()).ok_or((at, field, "a size such as 8gb"))?,
            "ngpus" | "naccelerators" => held.gpu = number("a number of GPUs")?,
            _ => {}
        }
        at += field.len() + 1;
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::parse_number::NANO;

    #[test]
    fn vnodes_are_added_up() {
        for (text, expected) in [
            ("(n1:ncpus=4:mem=8388608kb)", (4, 8 << 30, 0)),
            ("(n1:ncpus=4:mem=1gb:ngpus=2)+(n2:ncpus=2+n3:ncpus=2:mem=1kb:ssd=True)", (8, (1 << 30) + 1024, 2)),
            ("(n1)", (0, 0, 0)),
            ("(cray_12[0]:naccelerators=1:ncpus=8)", (8, 0, 1)),
        ] {
            let found = allocated(text).unwrap();
            assert_eq!((found.cpu / NANO, found.mem / NANO, found.gpu / NANO), expected, "{text}");
        }
    }

    #[test]
    fn the_faulty_part_is_found() {
        for (text, at, found) in [
            ("", 0, ""),
            ("n1:ncpus=4", 0, "n1:ncpus=4"),
            ("(n1:ncpus=4", 0, "(n1:ncpus=4"),
            ("(n1:ncpus=4)+n2:ncpus=4", 13, "n2:ncpus=4"),
            ("(n1:ncpus=4+(n2:ncpus=4)", 12, "(n2:ncpus=4)"),
            ("(n1:ncpus=four)", 4, "ncpus=four"),
            ("(n1:ncpus=1)+(n2:mem=8xb)", 17, "mem=8xb"),
            ("(n1:ncpus)", 4, "ncpus"),
            ("(ncpus=4)", 1, "ncpus=4"),
            ("(n1:ncpus=1)+", 13, ""),
        ] {
            let (place, part, _) = allocated(text).unwrap_err();
            assert_eq!((place, part), (at, found), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "[0-9a-z:=+.()]{0,40}") {
            let _ = allocated(&text);
        }
    }
}
