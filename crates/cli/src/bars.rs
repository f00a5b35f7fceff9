//! Shares as bars of blocks.

/// A bar of `width` characters for a share of 1, filled up with blanks. What is above 1 is cut, with a
/// mark.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    // A hair above 1 is rounding.
    if share > 1.0 + 1e-9 {
        return format!("{}▶", "█".repeat(width.saturating_sub(1)));
    }
    let eighths = (share.max(0.0) * (8 * width) as f64).round() as usize;
    let (full, rest) = ((eighths / 8).min(width), eighths % 8);
    let mut bar = "█".repeat(full);
    if full < width {
        bar.push(EIGHTHS[rest]);
        bar.push_str(&" ".repeat(width - full - 1));
    }
    bar
}

/// `66.7 %`, and no decimals where there are none.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::{bar, percent};

    #[test]
    fn bars_are_as_long_as_the_share() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53125, 4), "██▏ ");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(1.0 + 1e-12, 4), "████");
        assert_eq!(bar(1.5, 4), "███▶");
        assert_eq!(bar(-1.0, 2), "  ");
        assert_eq!((percent(2.0 / 3.0).as_str(), percent(1.0).as_str()), ("66.7 %", "100 %"));
    }
}
