//! Bars of block characters that show shares.

/// Draws a share as a bar, padded with blanks to `width` characters, the length for a share of 1. A share above 1 is
/// cut off and marked.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    // A share slightly above 1 is a rounding error.
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

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_the_share() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53125, 4), "██▏ ");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(1.0 + 1e-12, 4), "████");
        assert_eq!(bar(1.5, 4), "███▶");
        assert_eq!(bar(-1.0, 2), "  ");
    }
}
