//! Names that were meant.

/// The candidate most like `name`, if one is like it at all.
///
/// ```
/// assert_eq!(evenhand_documents::nearest("wieght", ["name", "weight"]), Some("weight"));
/// assert_eq!(evenhand_documents::nearest("dfr", ["asset", "drf"]), Some("drf"));
/// assert_eq!(evenhand_documents::nearest("colour", ["name", "weight"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // As in clap, whose suggestions people know.
    const LIKE: f64 = 0.8;
    // Comparing takes the product of the lengths.
    const LONG: usize = 100;
    if name.len() > LONG {
        return None;
    }
    let like = |c: &str| match strsim::damerau_levenshtein(name, c) {
        // One slip in a short name, which the other measure thinks large: `dfr`.
        0 | 1 if name.len() > 2 => 1.0,
        _ => strsim::jaro_winkler(name, c),
    };
    let likeness = candidates.into_iter().filter(|c| c.len() <= LONG).map(|c| (like(c), c));
    let best = likeness.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    (best.0 >= LIKE).then_some(best.1)
}

/// `; did you mean "weight"?`, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
