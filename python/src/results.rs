//! Results of runs as tables.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use evenhand_workload::store::read_task_results;
use pyo3::prelude::*;

use crate::table::Table;
use crate::workloads::{known, store_error};

/// Reads the tasks of a run from the file that a study wrote; every row gets the run's id.
#[pyfunction]
pub(crate) fn read_tasks(py: Python<'_>, path: PathBuf, run: &str) -> PyResult<Table> {
    let results = py.detach(|| read_task_results(&path)).map_err(|error| store_error(py, &error))?;
    py.detach(|| {
        let t = results.columns();
        let rows = t.row.len();
        let whole =
            |value: &dyn Fn(usize) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..rows).map(value))) };
        let nullable = |value: &dyn Fn(usize) -> Option<i64>| -> ArrayRef {
            Arc::new(Int64Array::from_iter((0..rows).map(value)))
        };
        let text = |value: &dyn Fn(usize) -> &'static str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..rows).map(value)))
        };
        let wait = |i: usize| Some(known(t.start[i])? - t.submit[i].nanos() as i64);
        Table::new(vec![
            ("run".into(), Arc::new(StringArray::from_iter_values((0..rows).map(|_| run)))),
            ("row".into(), whole(&|i| t.row[i].into())),
            ("user".into(), Arc::new(StringArray::from_iter_values(t.user.iter().map(|user| &t.users[user.index()])))),
            ("submit_ns".into(), whole(&|i| t.submit[i].nanos() as i64)),
            ("start_ns".into(), nullable(&|i| known(t.start[i]))),
            ("duration_ns".into(), whole(&|i| t.duration[i].nanos() as i64)),
            ("wait_ns".into(), nullable(&wait)),
            ("state".into(), text(&|i| t.state[i].name())),
        ])
    })
}
