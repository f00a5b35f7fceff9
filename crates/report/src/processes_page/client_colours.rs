//! Assigns a colour to each client.

/// Names of colours, which Zeldes & Feitelson (2013) give to clients, with the series of that colour.
const NAMED_SERIES: [(&str, usize); 7] =
    [("blue", 1), ("red", 2), ("green", 3), ("purple", 4), ("orange", 5), ("yellow", 7), ("black", 0)];
/// The series in the order in which unnamed clients take them.
const SERIES_ORDER: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 0];

/// Returns the series of each client. A client named after a colour has that colour, so that no figure labels
/// something "red" in blue; the others take the remaining series in order, and then start again from the first.
pub(super) fn series(names: &[String]) -> Vec<usize> {
    let mut free = SERIES_ORDER.to_vec();
    let mut series: Vec<Option<usize>> = Vec::new();
    for name in names {
        let named =
            NAMED_SERIES.iter().find(|(colour, _)| name.eq_ignore_ascii_case(colour)).map(|(_, series)| *series);
        free.retain(|s| Some(*s) != named);
        series.push(named);
    }
    let mut left = free.iter().copied().chain(SERIES_ORDER.into_iter().cycle());
    series.into_iter().map(|named| named.or_else(|| left.next()).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_named_after_a_colour_has_that_colour() {
        let of = |names: &[&str]| series(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["red", "blue", "green"]), [2, 1, 3]);
        assert_eq!(of(&["a", "Red", "b", "c"]), [1, 2, 3, 4]);
        let ten: Vec<String> = (0..10).map(|k| k.to_string()).collect();
        assert_eq!(series(&ten), [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]);
    }
}
