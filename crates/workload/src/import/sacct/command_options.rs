//! The options of a command that submitted a job, as sacct prints it (SubmitLine).

/// Returns the value of an option with these two names if a word of a command begins it: `--array 0-9`, `--array=0-9`, `-a 0-9` and
/// `-a0-9`, without quotation marks. A value that is a word of its own is taken from the words that follow. An option without a short
/// name has an empty one.
pub(super) fn value<'l>(
    word: &'l str,
    following: &mut impl Iterator<Item = &'l str>,
    (long, short): (&str, &str),
) -> Option<&'l str> {
    let value = match word == long || word == short {
        true => following.next(),
        false => {
            let of_short = || word.strip_prefix(short).filter(|_| !short.is_empty());
            word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')).or_else(of_short)
        }
    };
    value.map(|text| text.trim_matches(['"', '\'']))
}
