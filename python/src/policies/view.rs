//! What a policy in Python sees at a decision.

use std::sync::{Arc, Mutex, MutexGuard};

use evenhand_policies::PolicyContext;
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::lock;
use super::state::State;

/// What a policy sees at a decision: arrays with one row for each waiting user.
///
/// A policy with `user_key` sees the waiting users whose standing changed since the last decision.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct View {
    state: Arc<Mutex<State>>,
    resources: Vec<String>,
}

impl View {
    pub(crate) fn new(state: Arc<Mutex<State>>, context: &PolicyContext<'_>) -> View {
        let resources = context.resources.iter().map(|resource| resource.name.clone()).collect();
        View { state, resources }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Returns a copy of a matrix that is stored row by row.
fn matrix<'py>(py: Python<'py>, width: usize, values: &[f64]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let rows = values.len().checked_div(width).unwrap_or(0);
    let array = ArrayView2::from_shape((rows, width), values);
    Ok(array.map_err(|error| PyValueError::new_err(error.to_string()))?.to_pyarray(py))
}

#[pymethods]
impl View {
    /// The time of the decision, in seconds of the workload.
    #[getter]
    fn now(&self) -> f64 {
        self.state().now().secs_f64()
    }

    /// The names of the resources, in the order of the columns.
    #[getter]
    fn resources(&self) -> Vec<String> {
        self.resources.clone()
    }

    /// The numbers of the users, in the workload's order of users.
    #[getter]
    fn users<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.state().rows().users.to_pyarray(py)
    }

    /// What each user holds of each resource, over the capacity.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let state = self.state();
        matrix(py, state.width(), &state.rows().shares)
    }

    /// What each user's first pending task demands of each resource, over the capacity.
    #[getter]
    fn demand<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let state = self.state();
        matrix(py, state.width(), &state.rows().demand)
    }

    /// Each user's weight over the mean weight.
    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.state().rows().weight.to_pyarray(py)
    }

    /// When each user's first pending task was submitted, in seconds.
    #[getter]
    fn submitted<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.state().rows().submitted.to_pyarray(py)
    }

    /// The position of each user's first pending task among the tasks that were submitted at the same time: ties go to the
    /// earlier submission, then to the lower position.
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.state().rows().position.to_pyarray(py)
    }

    /// The wall time that each user's first pending task requested, in seconds; 0 where it is not known.
    #[getter]
    fn requested<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.state().rows().requested.to_pyarray(py)
    }

    fn __len__(&self) -> usize {
        self.state().rows().users.len()
    }
}
