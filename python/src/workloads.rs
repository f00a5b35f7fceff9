//! Workloads as tables, and tables as workloads.

mod from_table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use evenhand_model::{Detail, NO_TIME, Resource, Workload};
use evenhand_workload::store::{self, StoreError};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use self::from_table::workload_of;
use crate::errors::{environment_error, input_error};
use crate::table::Table;

/// Returns the exception for an error in storing or reading.
pub(crate) fn store_error(py: Python<'_>, error: &StoreError) -> PyErr {
    match error {
        StoreError::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound => environment_error(py, error),
        _ => input_error(py, error),
    }
}

/// Returns a time, unless it is unknown.
pub(crate) fn known(nanos: u64) -> Option<i64> {
    Some(nanos).filter(|&ns| ns != NO_TIME).map(|ns| ns as i64)
}

/// Runs `work` on threads of its own: a process that was forked has lost those of its parent.
pub(crate) fn on_threads<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(|error| environment_error(py, error))?;
    Ok(py.detach(|| pool.install(work)))
}

/// Reads a stored workload as a table of its tasks: the columns of the store, amounts as floats.
#[pyfunction]
pub(crate) fn read_workload(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let workload = on_threads(py, || store::read(&path))?.map_err(|error| store_error(py, &error))?;
    py.detach(|| table_of(&workload))
}

/// Stores a table of tasks, given by Arrow's C data interface, as a workload. `units` has the units of resources.
#[pyfunction]
pub(crate) fn store_table(
    py: Python<'_>,
    table: AnyRecordBatch,
    path: PathBuf,
    units: Vec<(String, String)>,
) -> PyResult<()> {
    let reader = table.into_reader()?;
    // Reading a stream may call Python again, so the lock is held.
    let workload = workload_of(reader, &units).map_err(|error| input_error(py, error))?;
    let path: &Path = &path;
    on_threads(py, || store::write(path, &workload))?.map_err(|error| store_error(py, &error))
}

fn table_of(w: &Workload) -> PyResult<Table> {
    let c = w.columns();
    let rows = 0..w.len();
    let times = |times: &Vec<u64>| -> ArrayRef { Arc::new(Int64Array::from_iter(times.iter().map(|&ns| known(ns)))) };
    let mut columns: Vec<(String, ArrayRef)> = vec![(
        "submit_ns".into(),
        Arc::new(Int64Array::from_iter_values(c.submit.iter().map(|time| time.nanos() as i64))),
    )];
    if let Some(start) = &c.start {
        columns.push(("start_ns".into(), times(start)));
    }
    let duration = c.duration.iter().map(|span| span.nanos() as i64);
    columns.push(("duration_ns".into(), Arc::new(Int64Array::from_iter_values(duration))));
    if let Some(requested) = &c.requested {
        columns.push(("requested_ns".into(), times(requested)));
    }
    let users = c.user.iter().map(|user| &w.users()[user.index()]);
    columns.push(("user".into(), Arc::new(StringArray::from_iter_values(users))));
    if c.account.is_some() {
        columns.push(("account".into(), Arc::new(StringArray::from_iter(rows.clone().map(|row| w.account(row))))));
    }
    if c.queue.is_some() {
        columns.push(("queue".into(), Arc::new(StringArray::from_iter(rows.clone().map(|row| w.queue(row))))));
    }
    if c.count.is_some() {
        let counts = rows.clone().map(|row| i64::from(w.count(row)));
        columns.push(("count".into(), Arc::new(Int64Array::from_iter_values(counts))));
    }
    if c.nodes.is_some() {
        let nodes = rows.clone().map(|row| w.nodes(row).map(i64::from));
        columns.push(("nodes".into(), Arc::new(Int64Array::from_iter(nodes))));
    }
    if let Some(eligible) = &c.eligible {
        columns.push(("eligible_ns".into(), times(eligible)));
    }
    for detail in Detail::ALL {
        if c.details[detail].is_some() {
            let texts = rows.clone().map(|row| w.detail(detail, row));
            columns.push((detail.name().into(), Arc::new(StringArray::from_iter(texts))));
        }
    }
    for (r, resource) in w.resources().iter().enumerate() {
        let amounts = rows.clone().map(|row| resource.value(w.amounts(row)[r]));
        columns.push((resource.name.clone(), Arc::new(Float64Array::from_iter_values(amounts))));
    }
    if c.requested_demand.is_some() {
        for (r, (resource, decimals)) in w.resources().iter().zip(w.requested_decimals()).enumerate() {
            // The requested amounts may have other decimals than those that tasks hold.
            let in_them = Resource { decimals: *decimals, ..resource.clone() };
            let amounts = rows.clone().map(|row| Some(in_them.value(w.requested_amounts(row)?[r])));
            columns.push((format!("{}_requested", resource.name), Arc::new(Float64Array::from_iter(amounts))));
        }
    }
    Table::new(columns)
}
