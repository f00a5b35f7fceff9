//! Policies written in Python: a class whose `key`, `user_key` or `next` decides.

mod view;

use std::sync::{Arc, Mutex, PoisonError};

use evenhand::Host;
use evenhand_model::{Time, UserId};
use evenhand_policies::kinetic::WinnerTree;
use evenhand_policies::{Job, Policy, PolicyContext, PolicyError, Registration, Standing};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use self::view::State;
pub(crate) use self::view::View;

/// Two keys closer than this (relative to the larger) are a tie: a key is a few roundings of the same quotient.
const NEAR: f64 = 32.0 * f64::EPSILON;

/// The first exception of the policies of a command; it stops the command.
#[derive(Clone)]
pub(crate) struct Failures {
    host: Host,
    first: Arc<Mutex<Option<(String, PyErr)>>>,
}

impl Failures {
    /// Returns the failures of a command that `host` runs.
    pub(crate) fn new(host: &Host) -> Failures {
        Failures { host: host.clone(), first: Arc::default() }
    }

    fn record(&self, policy: &str, error: PyErr) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((policy.to_string(), error));
        self.host.interrupt();
    }

    /// Takes the first exception, with the policy's name.
    pub(crate) fn take(&self) -> Option<(String, PyErr)> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A class of Python; it is released when the command ends, although its registration stays.
#[derive(Clone)]
pub(crate) struct Factory(Arc<Mutex<Option<Py<PyAny>>>>);

impl Factory {
    /// Releases the class.
    pub(crate) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Registers a policy: `make` is called without arguments for every run and returns the object that decides.
pub(crate) fn registration(
    name: String,
    summary: &str,
    make: Py<PyAny>,
    failures: Failures,
) -> (Registration, Factory) {
    let factory = Factory(Arc::new(Mutex::new(Some(make))));
    let (its_name, held) = (name.clone(), factory.clone());
    let build = move |context: &PolicyContext<'_>| {
        let made = Python::attach(|py| {
            let make = held.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|make| make.clone_ref(py));
            let make = make.ok_or_else(|| PyValueError::new_err("its command has ended"))?;
            PythonPolicy::new(py, &its_name, make.call0(py)?, context, failures.clone())
        });
        match made {
            Ok(policy) => Ok(Box::new(policy) as Box<dyn Policy>),
            Err(error) => {
                let reason = error.to_string();
                failures.record(&its_name, error);
                Err(PolicyError::Refused { policy: "written in Python", reason })
            }
        }
    };
    (Registration::shared(&name, summary, build), factory)
}

/// Which method of the object decides.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// `key(view)`: keys of all waiting users, at every decision.
    Key,
    /// `user_key(view)`: keys of the users of the view, when they changed.
    UserKey,
    /// `next(view)`: the user.
    Next,
}

/// A policy whose decisions an object of Python takes.
struct PythonPolicy {
    name: String,
    decide: Py<PyAny>,
    method: Method,
    view: Py<View>,
    state: Arc<Mutex<State>>,
    failures: Failures,
    failed: bool,
    /// Keys and order of [`Method::UserKey`].
    keys: Vec<f64>,
    order: WinnerTree,
}

impl PythonPolicy {
    fn new(
        py: Python<'_>,
        name: &str,
        object: Py<PyAny>,
        context: &PolicyContext<'_>,
        failures: Failures,
    ) -> PyResult<PythonPolicy> {
        let object = object.bind(py);
        let methods = [("next", Method::Next), ("key", Method::Key), ("user_key", Method::UserKey)];
        let found: Vec<_> = methods.into_iter().filter(|(name, _)| object.hasattr(*name).unwrap_or(false)).collect();
        let [(method_name, method)] = found[..] else {
            let error = format!("found {} of the methods key, user_key and next, expected one of them", found.len());
            return Err(PyTypeError::new_err(error));
        };
        let users = context.weights.len();
        let state = Arc::new(Mutex::new(State::new(context)));
        let view = Py::new(py, View::new(state.clone(), context))?;
        if object.hasattr("prepare")? {
            object.call_method1("prepare", (view.clone_ref(py),))?;
        }
        Ok(PythonPolicy {
            name: name.to_string(),
            decide: object.getattr(method_name)?.unbind(),
            method,
            view,
            state,
            failures,
            failed: false,
            keys: vec![0.0; users],
            order: WinnerTree::new(users),
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&mut self, now: Time) -> PyResult<Option<UserId>> {
        let is_any = {
            let mut state = self.state();
            match self.method {
                Method::UserKey => state.select_changed(now),
                _ => state.select_waiting(now),
            }
            !state.selected().is_empty()
        };
        match self.method {
            Method::Next if is_any => Python::attach(|py| self.next_user(py)),
            Method::Key if is_any => Python::attach(|py| self.lowest_key(py)),
            Method::UserKey => {
                if is_any {
                    Python::attach(|py| self.update_keys(py))?;
                }
                Ok(self.order.winner().map(UserId))
            }
            _ => Ok(None),
        }
    }

    fn next_user(&self, py: Python<'_>) -> PyResult<Option<UserId>> {
        let answer = self.decide.bind(py).call1((&self.view,))?;
        let user = match answer.extract::<i64>() {
            Ok(user) => user,
            Err(_) => {
                let error = format!("next returned {}, expected the number of a waiting user", answer.repr()?);
                return Err(PyTypeError::new_err(error));
            }
        };
        let user = u32::try_from(user).ok().map(UserId).filter(|user| self.state().is_waiting(*user));
        user.map(Some).ok_or_else(|| {
            let waiting = self.state().waiting_in_words();
            PyValueError::new_err(format!("next returned user {answer}, who does not wait, expected one of {waiting}"))
        })
    }

    fn lowest_key(&self, py: Python<'_>) -> PyResult<Option<UserId>> {
        let keys = self.call_for_keys(py, "key")?;
        let keys = keys.as_array();
        let state = self.state();
        let lowest = keys.iter().copied().fold(f64::INFINITY, f64::min);
        let tied = state.selected().iter().zip(keys).filter(|(_, key)| is_tie(**key, lowest)).map(|(user, _)| *user);
        Ok(tied.min_by_key(|user| (state.place(*user), *user)))
    }

    fn update_keys(&mut self, py: Python<'_>) -> PyResult<()> {
        let keys = self.call_for_keys(py, "user_key")?;
        let keys: Vec<f64> = keys.as_array().iter().copied().collect();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (user, key) in state.selected().iter().zip(keys) {
            self.keys[user.index()] = key;
            let keys = &self.keys;
            self.order.touch(user.0, true, |a, b| {
                let (x, y) = (keys[a as usize], keys[b as usize]);
                if !is_tie(x, y) {
                    return x < y;
                }
                let (a, b) = (UserId(a), UserId(b));
                (state.place(a), a) < (state.place(b), b)
            });
        }
        Ok(())
    }

    /// Calls the method and checks the keys: one number a user.
    fn call_for_keys<'py>(&self, py: Python<'py>, method: &str) -> PyResult<PyReadonlyArray1<'py, f64>> {
        let answer = self.decide.bind(py).call1((&self.view,))?;
        let keys = match answer.cast::<PyArray1<f64>>() {
            Ok(array) => array.clone(),
            // Lists, and arrays of other numbers.
            Err(_) => {
                let numpy = py.import("numpy")?;
                let array = numpy.call_method1("asarray", (&answer, "float64"))?;
                array.cast_into::<PyArray1<f64>>().map_err(|_| {
                    PyTypeError::new_err(format!("{method} returned an array of another shape, expected one dimension"))
                })?
            }
        };
        let keys = keys.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let state = self.state();
        let (found, users) = (keys.as_array().len(), state.selected());
        if found != users.len() {
            let error =
                format!("{method} returned {found} keys, expected {}, one for each user of the view", users.len());
            return Err(PyValueError::new_err(error));
        }
        if let Some(at) = keys.as_array().iter().position(|key| key.is_nan()) {
            let error = format!("{method} returned NaN for user {}, expected a number", users[at].0);
            return Err(PyValueError::new_err(error));
        }
        drop(state);
        Ok(keys)
    }
}

fn is_tie(x: f64, y: f64) -> bool {
    // Also of infinities, whose difference is no number.
    x == y || (x - y).abs() <= NEAR * x.abs().max(y.abs())
}

impl Policy for PythonPolicy {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.state().set_first_pending(user, first);
        if first.is_none() && self.method == Method::UserKey {
            let keys = &self.keys;
            // Removing compares others, whose keys are as they were.
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.order.touch(user.0, false, |a, b| {
                let (x, y) = (keys[a as usize], keys[b as usize]);
                if !is_tie(x, y) {
                    return x < y;
                }
                (state.place(UserId(a)), a) < (state.place(UserId(b)), b)
            });
        }
    }

    fn started(&mut self, _now: Time, job: &Job<'_>) {
        self.state().started(job);
    }

    fn finished(&mut self, _now: Time, job: &Job<'_>) {
        self.state().finished(job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        if self.failed {
            return None;
        }
        self.decide(now).unwrap_or_else(|error| {
            self.failed = true;
            self.failures.record(&self.name, error);
            None
        })
    }

    fn depends_on_job_details(&self) -> bool {
        // What a task requested.
        true
    }

    fn standing(&mut self, _now: Time, user: UserId) -> Standing {
        Standing { shares: self.state().shares(user), commitments: Vec::new(), key: self.keys[user.index()] }
    }
}
