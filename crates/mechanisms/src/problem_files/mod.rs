//! Files that say what is to be divided among whom: problems, allocations, scenarios.
//!
//! People write capacities and demands in their own units and call users and resources by name;
//! mechanisms want shares of capacity and numbers. This room goes from one to the other, exactly, and
//! says of everything that is no problem where it stands. TOML and JSON of the same shape are the same.
//!
//! ```
//! use evenhand_documents::Document;
//! use evenhand_mechanisms::problem_files::{Arithmetic, ProblemFile};
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
//!
//! This room divides nothing and judges nothing.
mod read_accounts;
mod read_allocation;
mod read_problem;
mod read_scenario;
mod read_shared_sections;

pub use read_accounts::AccountEntry;
pub use read_allocation::AllocationFile;
pub use read_problem::{ProblemFile, UserEntry};
pub use read_scenario::{Phase, ScenarioFile, ScenarioUser};
