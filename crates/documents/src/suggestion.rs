//! Suggestions for misspelt names.

/// Returns the candidate that is most similar to `name`, if one is similar enough.
///
/// ```
/// assert_eq!(evenhand_documents::nearest("wieght", ["name", "weight"]), Some("weight"));
/// assert_eq!(evenhand_documents::nearest("dfr", ["asset", "drf"]), Some("drf"));
/// assert_eq!(evenhand_documents::nearest("colour", ["name", "weight"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The threshold of clap.
    const SIMILAR: f64 = 0.8;
    // A comparison takes time proportional to the product of the lengths.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let similarity = |c: &str| match strsim::damerau_levenshtein(name, c) {
        // One edit in a short name (`dfr`), to which Jaro-Winkler gives a low similarity.
        0 | 1 if name.len() > 2 => 1.0,
        _ => strsim::jaro_winkler(name, c),
    };
    let candidates = candidates.into_iter().filter(|c| c.len() <= LONGEST).map(|c| (similarity(c), c));
    let best = candidates.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// Returns `; did you mean "weight"?` for the nearest candidate, or an empty text.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
