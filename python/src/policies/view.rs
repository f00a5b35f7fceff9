//! What a policy in Python sees at a decision.

use std::sync::{Arc, Mutex, PoisonError};

use evenhand_model::{Time, UserId};
use evenhand_policies::{Holdings, Job, LogPlace, PolicyContext, RelativeWeights};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;

/// Users' standings as the policy's notifications leave them.
pub(crate) struct State {
    holdings: Holdings,
    /// Weights over the mean weight.
    weights: Vec<f64>,
    first: Vec<Option<First>>,
    /// The users of the view.
    selected: Vec<UserId>,
    /// Whose key may have changed since the last decision; each once.
    changed: Vec<UserId>,
    is_changed: Vec<bool>,
    now: Time,
}

/// A user's first pending task.
struct First {
    place: LogPlace,
    requested_s: f64,
    shares: Vec<f64>,
}

impl State {
    /// Returns the state of users who neither hold nor wait.
    pub(crate) fn new(context: &PolicyContext<'_>) -> State {
        let users = context.weights.len();
        let relative = RelativeWeights::new(context.weights);
        State {
            holdings: Holdings::new(context.capacity, users),
            weights: (0..users).map(|user| 1.0 / relative.inverse(UserId(user as u32))).collect(),
            first: (0..users).map(|_| None).collect(),
            selected: Vec::new(),
            changed: Vec::new(),
            is_changed: vec![false; users],
            now: Time::ZERO,
        }
    }

    /// Returns the users of the view.
    pub(crate) fn selected(&self) -> &[UserId] {
        &self.selected
    }

    /// Makes the view one of all waiting users.
    pub(crate) fn select_waiting(&mut self, now: Time) {
        self.now = now;
        self.selected.clear();
        let waiting = self.first.iter().enumerate().filter(|(_, first)| first.is_some());
        self.selected.extend(waiting.map(|(user, _)| UserId(user as u32)));
    }

    /// Makes the view one of the waiting users who changed since the last decision.
    pub(crate) fn select_changed(&mut self, now: Time) {
        self.now = now;
        self.selected.clear();
        let State { first, selected, changed, is_changed, .. } = self;
        for user in changed.drain(..) {
            is_changed[user.index()] = false;
            if first[user.index()].is_some() {
                selected.push(user);
            }
        }
    }

    pub(crate) fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.first[user.index()] = first.map(|job| First {
            place: job.place,
            requested_s: job.requested.secs_f64(),
            shares: job.demand.iter().enumerate().map(|(r, d)| self.holdings.share(r, d.0)).collect(),
        });
        self.change(user);
    }

    pub(crate) fn started(&mut self, job: &Job<'_>) {
        self.holdings.add(job.user, job.demand);
        self.change(job.user);
    }

    pub(crate) fn finished(&mut self, job: &Job<'_>) {
        self.holdings.remove(job.user, job.demand);
        self.change(job.user);
    }

    fn change(&mut self, user: UserId) {
        if !std::mem::replace(&mut self.is_changed[user.index()], true) {
            self.changed.push(user);
        }
    }

    pub(crate) fn is_waiting(&self, user: UserId) -> bool {
        self.first.get(user.index()).is_some_and(Option::is_some)
    }

    /// Returns the place in the log of the user's first pending task, by which ties are broken.
    pub(crate) fn place(&self, user: UserId) -> LogPlace {
        self.first[user.index()].as_ref().map_or(LogPlace::default(), |first| first.place)
    }

    pub(crate) fn shares(&self, user: UserId) -> Vec<f64> {
        self.holdings.shares(user)
    }

    pub(crate) fn waiting_in_words(&self) -> String {
        let some: Vec<String> = self.selected.iter().take(10).map(|user| user.0.to_string()).collect();
        let more = if self.selected.len() > 10 { ", …" } else { "" };
        format!("{}{more}", some.join(", "))
    }

    fn column(&self, value: impl Fn(&First) -> f64) -> Vec<f64> {
        self.selected.iter().map(|user| self.first[user.index()].as_ref().map_or(0.0, &value)).collect()
    }
}

/// What a policy sees at a decision: arrays with one row for each waiting user.
///
/// A policy with `user_key` sees the waiting users whose standing changed since the last decision.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct View {
    state: Arc<Mutex<State>>,
    resources: Vec<String>,
    width: usize,
}

impl View {
    pub(crate) fn new(state: Arc<Mutex<State>>, context: &PolicyContext<'_>) -> View {
        let resources = context.resources.iter().map(|resource| resource.name.clone()).collect();
        View { state, resources, width: context.capacity.width() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn matrix<'py>(&self, py: Python<'py>, rows: usize, values: Vec<f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let array = Array2::from_shape_vec((rows, self.width), values);
        let array = array.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(array.into_pyarray(py))
    }
}

#[pymethods]
impl View {
    /// The time of the decision, in seconds of the workload.
    #[getter]
    fn now(&self) -> f64 {
        self.state().now.secs_f64()
    }

    /// The names of the resources, in the order of the columns.
    #[getter]
    fn resources(&self) -> Vec<String> {
        self.resources.clone()
    }

    /// The numbers of the users, in the workload's order of users.
    #[getter]
    fn users<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.state().selected.iter().map(|user| i64::from(user.0)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// What each user holds of each resource, over the capacity.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let state = self.state();
        let mut values = Vec::with_capacity(state.selected.len() * self.width);
        for user in &state.selected {
            let row = state.holdings.row(*user).iter().enumerate();
            values.extend(row.map(|(r, held)| state.holdings.share(r, *held)));
        }
        self.matrix(py, state.selected.len(), values)
    }

    /// What each user's first pending task demands of each resource, over the capacity.
    #[getter]
    fn demand<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let state = self.state();
        let mut values = Vec::with_capacity(state.selected.len() * self.width);
        for user in &state.selected {
            match &state.first[user.index()] {
                Some(first) => values.extend_from_slice(&first.shares),
                None => values.resize(values.len() + self.width, 0.0),
            }
        }
        self.matrix(py, state.selected.len(), values)
    }

    /// Each user's weight over the mean weight.
    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let state = self.state();
        state.selected.iter().map(|user| state.weights[user.index()]).collect::<Vec<_>>().into_pyarray(py)
    }

    /// When each user's first pending task was submitted, in seconds.
    #[getter]
    fn submitted<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.state().column(|first| first.place.submitted.secs_f64()).into_pyarray(py)
    }

    /// The position of each user's first pending task among the tasks that were submitted at the same time: ties go to the
    /// earlier submission, then to the lower position.
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let state = self.state();
        let places = state.selected.iter().map(|user| state.place(*user).position as i64);
        places.collect::<Vec<_>>().into_pyarray(py)
    }

    /// The wall time that each user's first pending task requested, in seconds; 0 where it is not known.
    #[getter]
    fn requested<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.state().column(|first| first.requested_s).into_pyarray(py)
    }

    fn __len__(&self) -> usize {
        self.state().selected.len()
    }
}
