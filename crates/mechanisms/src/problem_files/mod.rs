//! Files that describe problems, allocations and scenarios.
//!
//! People write capacities and demands in their own units and refer to users and resources by name; mechanisms take
//! shares of capacity and indices. This module converts exactly from one to the other, and reports invalid files with
//! line and column. TOML and JSON of the same shape are equivalent.
//!
//! ```
//! use evenhand_documents::Document;
//! use evenhand_mechanisms::Arithmetic;
//! use evenhand_mechanisms::problem_files::ProblemFile;
//! let text = "
//!     [capacity]
//!     cpu = 9
//!     mem = \"18Gi\"
//!     [[user]]
//!     name = \"A\"
//!     demand = { cpu = 1, mem = \"4Gi\" }
//! ";
//! let file = ProblemFile::read(&Document::parse("p.toml", text, None)?, Arithmetic::Exact)?;
//! assert_eq!(file.resources, ["cpu", "mem"]);
//! assert_eq!(file.problem()?.demand(0)[1].to_string(), "2/9");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod read_accounts;
mod read_allocation;
mod read_problem;
mod read_scenario;
mod read_shared_sections;

pub use read_accounts::AccountEntry;
pub use read_allocation::AllocationFile;
pub use read_problem::{ProblemFile, UserEntry};
pub use read_scenario::{Phase, ScenarioFile, ScenarioUser};
