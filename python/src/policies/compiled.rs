//! Keys by a function in machine code, which is called without Python: the C interface of `include/evenhand_policy.h`.
//!
//! The only module with unsafe code. What it relies on is written at each place; what nobody can check, that an address is
//! that of a function with this signature, is what the author of a policy promises by making one.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::Method;
use super::state::State;
use crate::errors::input_error;

/// `evenhand_key_function` of `include/evenhand_policy.h`: now, users, resources, user, shares, demand, weight, submitted,
/// position, requested, keys, data.
type KeyFunction = unsafe extern "C" fn(
    f64,
    i64,
    i64,
    *const i64,
    *const f64,
    *const f64,
    *const f64,
    *const f64,
    *const i64,
    *const f64,
    *mut f64,
    *mut c_void,
) -> i32;

/// The name of capsules with such a function; another signature would have another name.
const CAPSULE: &CStr = c"evenhand_key_v1";

/// A function in machine code that computes the keys of a policy.
///
/// function: its address, or a capsule of that name. data: the address of what it gets as its last argument. owners: what
/// keeps both alive.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct CompiledKeys {
    function: KeyFunction,
    /// An address; what is there is the function's alone.
    data: usize,
    pub(super) method: Method,
    owners: Py<PyAny>,
}

#[pymethods]
impl CompiledKeys {
    #[new]
    fn new(
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        method: &str,
        data: usize,
        owners: Py<PyAny>,
    ) -> PyResult<CompiledKeys> {
        let method = match method {
            "key" => Method::Key,
            "user_key" => Method::UserKey,
            other => return Err(input_error(py, format!("method: found {other:?}, expected key or user_key"))),
        };
        let address = match function.cast::<PyCapsule>() {
            Ok(capsule) => {
                let pointer = capsule.pointer_checked(Some(CAPSULE)).map_err(|_| {
                    let expected = CAPSULE.to_string_lossy();
                    input_error(py, format!("function: found a capsule of another name, expected {expected:?}"))
                })?;
                pointer.as_ptr().expose_provenance()
            }
            Err(_) => function.extract::<usize>()?,
        };
        if address == 0 || is_executable(address) == Some(false) {
            return Err(input_error(py, format!("function: found {address:#x}, where no machine code is")));
        }
        // SAFETY: not null, and executable memory where that can be known. That the code is a function of this signature is
        // the promise of whoever made the policy, as with every foreign function interface; `owners` keeps it loaded.
        let function =
            unsafe { std::mem::transmute::<*const c_void, KeyFunction>(ptr::with_exposed_provenance(address)) };
        Ok(CompiledKeys { function, data, method, owners })
    }
}

impl CompiledKeys {
    /// Returns one that calls the same function with the same data.
    pub(super) fn share(&self, py: Python<'_>) -> CompiledKeys {
        CompiledKeys { owners: self.owners.clone_ref(py), ..*self }
    }

    /// Calls the function for the rows of a state; `keys` has their keys afterwards. Python need not be attached.
    pub(super) fn call(&self, state: &mut State, keys: &mut GuardedKeys) -> PyResult<()> {
        let (now, width) = (state.now().secs_f64(), state.width());
        let rows = state.rows_mut();
        let users = rows.users.len();
        let out = keys.clear(users);
        debug_assert_eq!((rows.shares.len(), rows.demand.len()), (users * width, users * width));
        // SAFETY: the pointers are to arrays of as many elements as the signature says, which live and are borrowed
        // mutably, hence by nobody else, until the function returns; every pattern of bits is a number of these types. The
        // function is one of this signature (see `new`), and `self.owners` keeps its code and its data.
        let status = unsafe {
            (self.function)(
                now,
                users as i64,
                width as i64,
                rows.users.as_mut_ptr(),
                rows.shares.as_mut_ptr(),
                rows.demand.as_mut_ptr(),
                rows.weight.as_mut_ptr(),
                rows.submitted.as_mut_ptr(),
                rows.position.as_mut_ptr(),
                rows.requested.as_mut_ptr(),
                out.as_mut_ptr(),
                ptr::with_exposed_provenance_mut(self.data),
            )
        };
        if status != 0 {
            return Err(PyValueError::new_err(format!("the function returned status {status}, expected 0")));
        }
        if !keys.is_intact() {
            return Err(PyValueError::new_err(format!("the function wrote beyond its {users} keys")));
        }
        Ok(())
    }
}

/// Keys that a function writes, among elements that it must leave alone.
#[derive(Default)]
pub(super) struct GuardedKeys(Vec<f64>);

/// Elements before and after the keys.
const GUARDS: usize = 4;

/// Their bits: of a number that is none, as no computation returns it.
const GUARD: u64 = 0x7ff9_5a5a_c3c3_9696;

impl GuardedKeys {
    /// Sets so many keys to NaN, so that one which is not written is found, and returns them.
    fn clear(&mut self, users: usize) -> &mut [f64] {
        self.0.clear();
        self.0.resize(GUARDS, f64::from_bits(GUARD));
        self.0.resize(GUARDS + users, f64::NAN);
        self.0.resize(GUARDS + users + GUARDS, f64::from_bits(GUARD));
        &mut self.0[GUARDS..GUARDS + users]
    }

    /// Returns the keys.
    pub(super) fn keys(&self) -> &[f64] {
        &self.0[GUARDS..self.0.len() - GUARDS]
    }

    fn is_intact(&self) -> bool {
        let (before, after) = (&self.0[..GUARDS], &self.0[self.0.len() - GUARDS..]);
        before.iter().chain(after).all(|guard| guard.to_bits() == GUARD)
    }
}

/// Returns whether an address is in memory that may be executed, by the kernel's list of this process's mappings; `None`
/// where there is no such list.
fn is_executable(address: usize) -> Option<bool> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let hexadecimal = |text: &str| usize::from_str_radix(text, 16).ok();
    Some(maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let range = fields.next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(start, end)| Some(hexadecimal(start)?..hexadecimal(end)?));
        range.is_some_and(|range| range.contains(&address)) && fields.next().is_some_and(|flags| flags.contains('x'))
    }))
}
