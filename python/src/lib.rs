//! The native module of the Python package `evenhand`: commands of the program in Python's process, and tables.
//!
//! What users see is in `package/evenhand`, in Python; it builds command lines and reads results, so that a study is the
//! same from both. This module has what Python cannot do: run a command without the interpreter's lock, stop it at
//! Ctrl-C, and pass tables through Arrow's C data interface.

mod commands;
mod environment;
mod errors;
mod live;
mod policies;
mod results;
mod table;
mod workloads;

use pyo3::prelude::*;

/// Commands and tables of evenhand.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A panic becomes an exception with its text; the default hook would also print it.
    std::panic::set_hook(Box::new(|_| {}));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<environment::Episode>()?;
    module.add_class::<environment::Replay>()?;
    module.add_class::<live::PolicyHandle>()?;
    module.add_class::<policies::CompiledKeys>()?;
    module.add_class::<policies::View>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(commands::run, module)?)?;
    module.add_function(wrap_pyfunction!(environment::step_all, module)?)?;
    module.add_function(wrap_pyfunction!(workloads::read_workload, module)?)?;
    module.add_function(wrap_pyfunction!(workloads::store_table, module)?)?;
    module.add_function(wrap_pyfunction!(results::read_tasks, module)?)?;
    Ok(())
}
