//! Operations on the columns of rows that are still being collected.

use super::{Columns, NO_ID};

/// Pushes onto an optional column, which is created with its first value.
pub(super) fn push_optional<T: Copy>(column: &mut Option<Vec<T>>, rows_before: usize, value: Option<T>, none: T) {
    match (column.as_mut(), value) {
        (Some(c), v) => c.push(v.unwrap_or(none)),
        (None, Some(v)) => {
            let mut c = vec![none; rows_before];
            c.push(v);
            *column = Some(c);
        }
        (None, None) => {}
    }
}

/// Appends to an optional column; rows without a value get `none`.
pub(super) fn append_optional<T: Copy>(
    column: &mut Option<Vec<T>>,
    other: Option<Vec<T>>,
    rows_before: usize,
    rows_added: usize,
    none: T,
) {
    if column.is_none() && other.is_none() {
        return;
    }
    let c = column.get_or_insert_with(|| vec![none; rows_before]);
    match other {
        Some(o) => c.extend(o),
        None => c.extend(std::iter::repeat_n(none, rows_added)),
    }
}

/// Sorts all columns by submission. Equal submission times keep the order of the source.
pub(super) fn sort_by_submission(c: &mut Columns) {
    let mut order: Vec<u32> = (0..c.submit.len() as u32).collect();
    order.sort_by_key(|&i| c.submit[i as usize]);
    fn gather<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
        *column = order.iter().map(|&i| column[i as usize]).collect();
    }
    gather(&mut c.submit, &order);
    gather(&mut c.duration, &order);
    gather(&mut c.user, &order);
    gather(&mut c.demand, &order);
    c.requested_demand.iter_mut().for_each(|column| gather(column, &order));
    for column in [&mut c.start, &mut c.requested, &mut c.eligible].into_iter().flatten() {
        gather(column, &order);
    }
    for column in [&mut c.account, &mut c.queue, &mut c.count, &mut c.nodes].into_iter().flatten() {
        gather(column, &order);
    }
    c.details.iter_mut().filter_map(|(_, column)| column.as_mut()).for_each(|column| gather(column, &order));
}

/// Renumbers ids by first appearance and returns the old ids in their new order.
pub(super) fn renumber<'a>(ids: usize, column: impl Iterator<Item = &'a mut u32>) -> Vec<u32> {
    let mut new_id = vec![NO_ID; ids];
    let mut order = Vec::new();
    for id in column.filter(|id| **id != NO_ID) {
        let new = &mut new_id[*id as usize];
        if *new == NO_ID {
            *new = order.len() as u32;
            order.push(*id);
        }
        *id = *new;
    }
    order
}
