//! Downsamples long lines to the points that are visible.

/// Returns the points of a line that are visible when it is drawn `columns` pixels wide.
///
/// Of each pixel column these are the first, last, lowest and highest point (M4: Jugel, Jerzak, Hackenbroich & Markl,
/// "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014); one point without a value is kept for
/// each gap in the line. `points` must be sorted by their first component. A line with at most four points per column
/// is returned unchanged. Takes linear time.
pub fn downsample_line(points: &[(f64, Option<f64>)], columns: usize) -> Vec<(f64, Option<f64>)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let span = last.0 - first.0;
    if points.len() <= 4 * columns || span.is_nan() || span <= 0.0 {
        return points.to_vec();
    }
    let column = |x: f64| ((x - first.0) / span * columns as f64) as usize;
    let mut kept = Vec::new();
    // Each run holds points with values in one column, or points without values.
    for run in points.chunk_by(|a, b| a.1.is_some() == b.1.is_some() && (a.1.is_none() || column(a.0) == column(b.0))) {
        if run[0].1.is_none() {
            kept.push(run[0]);
            continue;
        }
        let value = |k: &usize| run[*k].1.unwrap_or(0.0);
        let lowest = (0..run.len()).min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
        let highest = (0..run.len()).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
        let mut places = [0, lowest, highest, run.len() - 1];
        places.sort_unstable();
        let mut before = None;
        for place in places {
            if before.replace(place) != Some(place) {
                kept.push(run[place]);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_downsampled_line_keeps_its_ends_peaks_and_gaps() {
        let mut points: Vec<(f64, Option<f64>)> = (0..10_000).map(|k| (f64::from(k), Some(f64::from(k % 7)))).collect();
        points[1234].1 = Some(100.0);
        points[5678].1 = Some(-100.0);
        (7000..7100).for_each(|k| points[k].1 = None);
        let thin = downsample_line(&points, 100);
        assert!(thin.len() <= 4 * 102 + 1, "{}", thin.len());
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for point in [points[0], points[1234], points[5678], points[9999], points[7000], points[6999], points[7100]] {
            assert!(thin.contains(&point), "{point:?}");
        }
        assert_eq!(downsample_line(&points[..300], 100), points[..300]);
        assert_eq!(downsample_line(&[], 100), []);
    }
}
