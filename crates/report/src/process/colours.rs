//! Which client has which colour.

/// Names of colours, as paper 000 names its clients, and the series that looks like it. The others follow in
/// the order of the palette.
const NAMED: [(&str, usize); 7] =
    [("blue", 1), ("red", 2), ("green", 3), ("purple", 4), ("orange", 5), ("yellow", 7), ("black", 0)];
/// The palette in the order in which clients take it.
const ORDER: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 0];

/// The series of each client: a client that is named like a colour has that colour, so that no figure says
/// "red" in blue; the others take what is left, in order, and begin anew when nothing is.
pub(super) fn series(names: &[String]) -> Vec<usize> {
    let mut free = ORDER.to_vec();
    let mut series: Vec<Option<usize>> = Vec::new();
    for name in names {
        let named = NAMED.iter().find(|(colour, _)| name.eq_ignore_ascii_case(colour)).map(|(_, series)| *series);
        free.retain(|s| Some(*s) != named);
        series.push(named);
    }
    let mut left = free.iter().copied().chain(ORDER.into_iter().cycle());
    series.into_iter().map(|named| named.or_else(|| left.next()).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_named_like_a_colour_has_it() {
        let of = |names: &[&str]| series(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["red", "blue", "green"]), [2, 1, 3]);
        assert_eq!(of(&["a", "Red", "b", "c"]), [1, 2, 3, 4]);
        let ten: Vec<String> = (0..10).map(|k| k.to_string()).collect();
        assert_eq!(series(&ten), [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]);
    }
}
