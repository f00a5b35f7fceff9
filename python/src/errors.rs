//! Exceptions of the package, which Python code defines.

use pyo3::prelude::*;

/// Returns `evenhand.InputError`: the input is invalid.
pub(crate) fn input_error(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    exception(py, "InputError", message)
}

/// Returns `evenhand.EnvironmentFailure`: a file cannot be read or written, or another failure that is not the input's.
pub(crate) fn environment_error(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    exception(py, "EnvironmentFailure", message)
}

/// Returns `evenhand.PolicyError` for an exception of a policy, which is its cause.
pub(crate) fn policy_error(py: Python<'_>, policy: &str, cause: PyErr) -> PyErr {
    let error = exception(py, "PolicyError", format!("the policy {policy}: {cause}"));
    error.set_cause(py, Some(cause));
    error
}

fn exception(py: Python<'_>, name: &str, message: impl std::fmt::Display) -> PyErr {
    let made = py
        .import("evenhand._errors")
        .and_then(|m| m.getattr(name))
        .and_then(|class| class.call1((message.to_string(),)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
