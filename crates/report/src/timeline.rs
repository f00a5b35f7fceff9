//! The figure of a division over time.

use evenhand_timeline::{Scenario, Timeline};

use crate::chart::{Axis, Caption, Figure, Layer, Scale, StackChart, Unit};
use evenhand_documents::{Cell, Csv};

/// Of what a user's part is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The share of one resource, by number.
    Resource(usize),
    /// The share of the resource of which the user has the largest.
    Dominant,
}

/// Users with a colour of their own; the others are one layer.
const OWN_LAYER: usize = 7;

/// Draws what each user holds over time as stacked areas, and gives the same as a table. `caption.name`
/// is that of both files. The last interval, if it does not end, is drawn for a tenth of what came before.
pub fn draw_timeline(
    scenario: &Scenario,
    timeline: &Timeline<f64>,
    users: &[String],
    held: Held,
    caption: Caption,
) -> (Figure, String) {
    let count = scenario.users().len();
    let of = |shares: Vec<f64>| match held {
        Held::Resource(r) => shares.get(r).copied().unwrap_or(0.0),
        Held::Dominant => shares.into_iter().fold(0.0, f64::max),
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
            values.push(of(interval.held(scenario, user)));
            values.push(of(interval.held_at_end(scenario, user)));
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
    let (names, stacked) = gather(&at, users, values);
    let sums = (0..at.len()).map(|i| stacked.iter().map(|values| values[i]).sum::<f64>());
    let highest = sums.fold(1.0, f64::max);
    let end = if is_open { further } else { last };
    let layers = names.into_iter().zip(&stacked).enumerate();
    let chart = StackChart {
        caption,
        x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(begin, end, Unit::Seconds) },
        y: Axis {
            title: match held {
                Held::Resource(_) => "share of capacity".into(),
                Held::Dominant => "dominant shares".into(),
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

/// If there are more users than colours: those who hold most over time (ties: the smaller number) in
/// their order, then all others together.
fn gather(at: &[f64], users: &[String], values: Vec<Vec<f64>>) -> (Vec<String>, Vec<Vec<f64>>) {
    if values.len() <= OWN_LAYER + 1 {
        return (users.to_vec(), values);
    }
    let integral = |values: &Vec<f64>| -> f64 {
        at.windows(2).zip(values.windows(2)).map(|(t, v)| (t[1] - t[0]) * (v[0] + v[1])).sum()
    };
    let mut order: Vec<(f64, usize)> = values.iter().map(integral).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut own: Vec<usize> = order[..OWN_LAYER].iter().map(|(_, user)| *user).collect();
    own.sort_unstable();
    let mut others = vec![0.0; at.len()];
    for (_, user) in &order[OWN_LAYER..] {
        others.iter_mut().zip(&values[*user]).for_each(|(sum, value)| *sum += value);
    }
    let mut names: Vec<String> = own.iter().map(|user| users[*user].clone()).collect();
    names.push(format!("{} others", values.len() - OWN_LAYER));
    let mut layers: Vec<Vec<f64>> = own.into_iter().map(|user| values[user].clone()).collect();
    layers.push(others);
    (names, layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_most_have_a_layer_each() {
        let at = [0.0, 1.0];
        let names: Vec<String> = (0..10).map(|i| format!("u{i}")).collect();
        let values: Vec<Vec<f64>> = (0..10).map(|i| vec![f64::from((i * 7) % 10); 2]).collect();
        let (layers, stacked) = gather(&at, &names, values);
        assert_eq!(layers, ["u1", "u2", "u4", "u5", "u7", "u8", "u9", "3 others"]);
        assert_eq!(stacked[7], [3.0, 3.0]);
    }
}
