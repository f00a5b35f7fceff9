//! Policies of Python's process: a class whose `key`, `user_key` or `next` decides, or a function in machine code.

mod compiled;
mod state;
mod turns;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenhand::Host;
use evenhand_model::{Time, UserId};
use evenhand_policies::kinetic::WinnerTree;
use evenhand_policies::{Job, Policy, PolicyContext, PolicyError, Registration, Standing};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

pub(crate) use self::compiled::CompiledKeys;
use self::compiled::GuardedKeys;
use self::state::{Seen, State};
use self::turns::Turn;
pub(crate) use self::turns::Turns;
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
        lock(&self.first).get_or_insert((policy.to_string(), error));
        self.host.interrupt();
    }

    /// Takes the first exception, with the policy's name.
    pub(crate) fn take(&self) -> Option<(String, PyErr)> {
        lock(&self.first).take()
    }
}

/// A class of Python; it is released when the command ends, although its registration stays.
#[derive(Clone)]
pub(crate) struct Factory(Arc<Mutex<Option<Py<PyAny>>>>);

impl Factory {
    /// Releases the class.
    pub(crate) fn release(&self) {
        lock(&self.0).take();
    }
}

/// Registers a policy: `make` is called without arguments for every run and returns the object that decides, which takes
/// about `relative_cost` times as long for a decision as a policy of the program.
pub(crate) fn registration(
    name: String,
    summary: &str,
    make: Py<PyAny>,
    relative_cost: u32,
    failures: Failures,
    turns: Arc<Turns>,
) -> (Registration, Factory) {
    let factory = Factory(Arc::new(Mutex::new(Some(make))));
    let (its_name, held) = (name.clone(), factory.clone());
    let build = move |context: &PolicyContext<'_>| {
        let made = Python::attach(|py| {
            let make = lock(&held.0).as_ref().map(|make| make.clone_ref(py));
            let make = make.ok_or_else(|| PyValueError::new_err("its command has ended"))?;
            HostPolicy::new(py, &its_name, make.call0(py)?, context, failures.clone(), Turn::new(turns.clone()))
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
    (Registration::shared(&name, summary, build).costing(relative_cost), factory)
}

/// Which method decides.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// `key(view)`: keys of all waiting users, at every decision.
    Key,
    /// `user_key(view)`: keys of the users of the view, when they changed.
    UserKey,
    /// `next(view)`: the user.
    Next,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Key => "key",
            Method::UserKey => "user_key",
            Method::Next => "next",
        }
    }

    fn seen(self) -> Seen {
        match self {
            Method::UserKey => Seen::Changed,
            Method::Key | Method::Next => Seen::Waiting,
        }
    }
}

/// What decides.
enum Code {
    /// A method of an object, and the view that it gets.
    Python { method: Py<PyAny>, view: Py<View>, turn: Turn },
    /// A function in machine code, and what it writes.
    Compiled { function: CompiledKeys, written: GuardedKeys },
}

/// A policy whose decisions an object of Python or a function in machine code takes.
struct HostPolicy {
    name: String,
    code: Code,
    method: Method,
    state: Arc<Mutex<State>>,
    failures: Failures,
    failed: bool,
    /// Of the last call.
    answer: Vec<f64>,
    /// Keys and order of [`Method::UserKey`].
    keys: Vec<f64>,
    order: WinnerTree,
}

impl HostPolicy {
    fn new(
        py: Python<'_>,
        name: &str,
        object: Py<PyAny>,
        context: &PolicyContext<'_>,
        failures: Failures,
        turn: Turn,
    ) -> PyResult<HostPolicy> {
        let object = object.bind(py);
        let compiled = object.cast::<CompiledKeys>().ok().map(|compiled| compiled.get().share(py));
        let method = match &compiled {
            Some(function) => function.method,
            None => method_of(object)?,
        };
        let state = Arc::new(Mutex::new(State::new(context, method.seen())));
        let code = match compiled {
            Some(function) => Code::Compiled { function, written: GuardedKeys::default() },
            None => {
                let view = Py::new(py, View::new(state.clone(), context))?;
                if object.hasattr("prepare")? {
                    object.call_method1("prepare", (view.clone_ref(py),))?;
                }
                Code::Python { method: object.getattr(method.name())?.unbind(), view, turn }
            }
        };
        let users = context.weights.len();
        Ok(HostPolicy {
            name: name.to_string(),
            code,
            method,
            state,
            failures,
            failed: false,
            answer: Vec::new(),
            keys: vec![0.0; users],
            order: WinnerTree::new(users),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn decide(&mut self, now: Time) -> PyResult<Option<UserId>> {
        let is_any = {
            let mut state = self.state();
            state.select(now);
            !state.rows().users.is_empty()
        };
        match self.method {
            Method::Next if is_any => self.next_user().map(Some),
            Method::Key if is_any => {
                self.call_for_keys()?;
                Ok(self.lowest_key())
            }
            Method::UserKey => {
                if is_any {
                    self.call_for_keys()?;
                    self.update_keys();
                }
                Ok(self.order.winner().map(UserId))
            }
            _ => Ok(None),
        }
    }

    fn next_user(&mut self) -> PyResult<UserId> {
        let Code::Python { method, view, turn } = &mut self.code else {
            return Err(PyTypeError::new_err("a function in machine code returns keys"));
        };
        turn.call(|| Python::attach(|py| user_of(method.bind(py), view, &self.state)))
    }

    /// Sets `self.answer` to keys, one number for each row.
    fn call_for_keys(&mut self) -> PyResult<()> {
        let name = self.method.name();
        match &mut self.code {
            Code::Python { method, view, turn } => {
                turn.call(|| Python::attach(|py| keys_of(method.bind(py), view, name, &mut self.answer)))?;
            }
            Code::Compiled { function, written } => {
                function.call(&mut lock(&self.state), written)?;
                self.answer.clear();
                self.answer.extend_from_slice(written.keys());
            }
        }
        let state = lock(&self.state);
        let (found, users) = (self.answer.len(), &state.rows().users);
        if found != users.len() {
            let expected = users.len();
            let error = format!("{name} returned {found} keys, expected {expected}, one for each user of the view");
            return Err(PyValueError::new_err(error));
        }
        if let Some(at) = self.answer.iter().position(|key| key.is_nan()) {
            let error = format!("{name} returned NaN for user {}, expected a number", users[at]);
            return Err(PyValueError::new_err(error));
        }
        Ok(())
    }

    fn lowest_key(&self) -> Option<UserId> {
        let state = self.state();
        let lowest = self.answer.iter().copied().fold(f64::INFINITY, f64::min);
        let rows = state.rows().users.iter().zip(&self.answer);
        let tied = rows.filter(|(_, key)| is_tie(**key, lowest)).map(|(user, _)| UserId(*user as u32));
        tied.min_by(|a, b| state.compare_ties(*a, *b))
    }

    fn update_keys(&mut self) {
        let state = lock(&self.state);
        for (user, key) in state.rows().users.iter().zip(&self.answer) {
            let user = *user as usize;
            self.keys[user] = *key;
            let keys = &self.keys;
            self.order.touch(user as u32, true, |a, b| is_before(keys, &state, UserId(a), UserId(b)));
        }
    }
}

/// Returns which method of an object decides.
fn method_of(object: &Bound<'_, PyAny>) -> PyResult<Method> {
    let methods = [Method::Next, Method::Key, Method::UserKey];
    let found: Vec<_> = methods.into_iter().filter(|m| object.hasattr(m.name()).unwrap_or(false)).collect();
    let [method] = found[..] else {
        let error = format!("found {} of the methods key, user_key and next, expected one of them", found.len());
        return Err(PyTypeError::new_err(error));
    };
    Ok(method)
}

/// Calls a method for the next user.
fn user_of(method: &Bound<'_, PyAny>, view: &Py<View>, state: &Mutex<State>) -> PyResult<UserId> {
    let answer = method.call1((view,))?;
    let user = match answer.extract::<i64>() {
        Ok(user) => user,
        Err(_) => {
            let error = format!("next returned {}, expected the number of a waiting user", answer.repr()?);
            return Err(PyTypeError::new_err(error));
        }
    };
    let user = u32::try_from(user).ok().map(UserId).filter(|user| lock(state).is_waiting(*user));
    user.ok_or_else(|| {
        let waiting = lock(state).users_in_words();
        PyValueError::new_err(format!("next returned user {answer}, who does not wait, expected one of {waiting}"))
    })
}

/// Calls a method for keys, which are copied to `keys`.
fn keys_of(method: &Bound<'_, PyAny>, view: &Py<View>, name: &str, keys: &mut Vec<f64>) -> PyResult<()> {
    let answer = method.call1((view,))?;
    let array = match answer.cast_into::<PyArray1<f64>>() {
        Ok(array) => array,
        // Lists, and arrays of other numbers.
        Err(other) => {
            let numpy = method.py().import("numpy")?;
            let array = numpy.call_method1("asarray", (other.into_inner(), "float64"))?;
            array.cast_into::<PyArray1<f64>>().map_err(|_| {
                PyTypeError::new_err(format!("{name} returned an array of another shape, expected one dimension"))
            })?
        }
    };
    let array = array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    keys.clear();
    keys.extend(array.as_array());
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_tie(x: f64, y: f64) -> bool {
    // Also of infinities, whose difference is no number.
    x == y || (x - y).abs() <= NEAR * x.abs().max(y.abs())
}

/// Returns whether a user goes before another one: by key, then by the tie rule.
fn is_before(keys: &[f64], state: &State, a: UserId, b: UserId) -> bool {
    let (x, y) = (keys[a.index()], keys[b.index()]);
    if is_tie(x, y) { state.compare_ties(a, b).is_lt() } else { x < y }
}

impl Policy for HostPolicy {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.state().set_first_pending(user, first);
        if first.is_none() && self.method == Method::UserKey {
            // Removing compares others, whose keys are as they were.
            let (keys, state) = (&self.keys, lock(&self.state));
            self.order.touch(user.0, false, |a, b| is_before(keys, &state, UserId(a), UserId(b)));
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
