//! The figure of an allocation over time.

use evenhand_timeline::{Scenario, Timeline};

use evenhand_documents::{Cell, Csv};

use crate::chart::{Axis, Caption, Figure, Layer, Scale, StackedAreaChart, Unit};

/// Which share of each user [`draw_timeline`] stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackedShare {
    /// The share of one resource, given by its index.
    Resource(usize),
    /// The dominant share: the largest of the user's shares over all resources.
    Dominant,
}

/// Number of users with a layer and colour each, if not all users fit; one more layer holds the others.
const MAX_SINGLE_LAYERS: usize = 7;

/// Draws the shares that users hold over time as stacked areas, and returns the same numbers as CSV.
///
/// Shares are fractions of the capacity, times are in seconds. `users` holds one name per user of `scenario`.
/// `caption.name` is the name of both files. An unbounded last interval extends the figure by a tenth of the time
/// before it.
pub fn draw_timeline(
    scenario: &Scenario,
    timeline: &Timeline<f64>,
    users: &[String],
    share: StackedShare,
    caption: Caption,
) -> (Figure, String) {
    let count = scenario.users().len();
    let select = |shares: Vec<f64>| match share {
        StackedShare::Resource(r) => shares.get(r).copied().unwrap_or(0.0),
        StackedShare::Dominant => shares.into_iter().fold(0.0, f64::max),
    };
    let begin = timeline.intervals.first().map_or(0.0, |i| i.from);
    let last = timeline.intervals.last().map_or(1.0, |i| i.until.unwrap_or(i.from));
    let further = if last > begin { last + (last - begin) / 10.0 } else { last + 1.0 };
    let is_open = timeline.intervals.last().is_some_and(|i| i.until.is_none());
    let mut at = Vec::new();
    let mut values = vec![Vec::new(); count];
    for interval in &timeline.intervals {
        at.extend([interval.from, interval.until.unwrap_or(further)]);
        for (user, values) in values.iter_mut().enumerate() {
            values.push(select(interval.held(scenario, user)));
            values.push(select(interval.held_at_end(scenario, user)));
        }
    }
    let mut columns = vec!["time_s"];
    columns.extend(users.iter().map(String::as_str));
    let mut csv = Csv::new(&columns);
    for (i, time) in at.iter().enumerate() {
        let mut row = vec![Cell::Number(Some(*time))];
        row.extend(values.iter().map(|values| Cell::Number(Some(values[i]))));
        csv.row(&row);
    }
    let (names, stacked) = merge_small_layers(&at, users, values);
    let sums = (0..at.len()).map(|i| stacked.iter().map(|values| values[i]).sum::<f64>());
    let highest = sums.fold(1.0, f64::max);
    let end = if is_open { further } else { last };
    let layers = names.into_iter().zip(&stacked).enumerate();
    let chart = StackedAreaChart {
        caption,
        x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(begin, end, Unit::Seconds) },
        y: Axis {
            title: match share {
                StackedShare::Resource(_) => "share of capacity".into(),
                StackedShare::Dominant => "dominant shares".into(),
            },
            unit: Unit::Percent,
            scale: if highest <= 1.0 + 1e-9 {
                Scale::fixed(0.0, 1.0, Unit::Percent)
            } else {
                Scale::linear([highest], true, Unit::Percent)
            },
        },
        at: &at,
        layers: layers.map(|(i, (label, values))| Layer { label, series: i + 1, values }).collect(),
    };
    (chart.draw(), csv.finish())
}

/// Merges layers if there are more users than colours: the users with the largest integrals over time (ties: the
/// lower index) keep a layer, in their order; the last layer holds all others.
fn merge_small_layers(at: &[f64], users: &[String], values: Vec<Vec<f64>>) -> (Vec<String>, Vec<Vec<f64>>) {
    if values.len() <= MAX_SINGLE_LAYERS + 1 {
        return (users.to_vec(), values);
    }
    let integral = |values: &Vec<f64>| -> f64 {
        at.windows(2).zip(values.windows(2)).map(|(t, v)| (t[1] - t[0]) * (v[0] + v[1])).sum()
    };
    let mut order: Vec<(f64, usize)> = values.iter().map(integral).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut own: Vec<usize> = order[..MAX_SINGLE_LAYERS].iter().map(|(_, user)| *user).collect();
    own.sort_unstable();
    let mut others = vec![0.0; at.len()];
    for (_, user) in &order[MAX_SINGLE_LAYERS..] {
        others.iter_mut().zip(&values[*user]).for_each(|(sum, value)| *sum += value);
    }
    let mut names: Vec<String> = own.iter().map(|user| users[*user].clone()).collect();
    names.push(format!("{} others", values.len() - MAX_SINGLE_LAYERS));
    let mut layers: Vec<Vec<f64>> = own.into_iter().map(|user| values[user].clone()).collect();
    layers.push(others);
    (names, layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_with_the_largest_shares_keep_a_layer_each() {
        let at = [0.0, 1.0];
        let names: Vec<String> = (0..10).map(|i| format!("u{i}")).collect();
        let values: Vec<Vec<f64>> = (0..10).map(|i| vec![f64::from((i * 7) % 10); 2]).collect();
        let (layers, stacked) = merge_small_layers(&at, &names, values);
        assert_eq!(layers, ["u1", "u2", "u4", "u5", "u7", "u8", "u9", "3 others"]);
        assert_eq!(stacked[7], [3.0, 3.0]);
    }
}
