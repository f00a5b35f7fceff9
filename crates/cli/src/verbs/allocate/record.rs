//! JSON record of `allocate`.

use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_mechanisms::{Allocation, Number, PROPERTIES, Problem};
use serde::Serialize;

use crate::output::named_values::NamedValues;
use crate::output::output_number::{OutputNumber, ToOutputNumber};

/// Result of one mechanism.
#[derive(Debug, Serialize)]
pub(crate) struct AllocationRecord {
    pub(crate) mechanism: &'static str,
    pub(crate) level: Option<OutputNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) levels: Option<NamedValues<Option<OutputNumber>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<NamedValues<OutputNumber>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duality_gap: Option<f64>,
    pub(crate) users: Vec<UserRecord>,
    pub(crate) resources: Vec<ResourceRecord>,
    pub(crate) properties: NamedValues<bool>,
}

/// Allocation of one user.
#[derive(Debug, Serialize)]
pub(crate) struct UserRecord {
    pub(crate) name: String,
    pub(crate) tasks: OutputNumber,
    pub(crate) allocation: NamedValues<OutputNumber>,
    pub(crate) dominant_resource: String,
    pub(crate) dominant_share: OutputNumber,
    pub(crate) satisfied: bool,
}

/// Use of one resource.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceRecord {
    pub(crate) name: String,
    pub(crate) capacity: OutputNumber,
    pub(crate) used: OutputNumber,
    pub(crate) bottleneck: bool,
}

impl AllocationRecord {
    pub(crate) fn new<N: Number>(
        mechanism: &'static str,
        file: &ProblemFile,
        problem: &Problem<N>,
        allocation: &Allocation<N>,
        tolerance: &N,
    ) -> AllocationRecord {
        let names = &file.resources;
        let almost_one = N::one() - tolerance;
        let users = allocation.tasks.iter().enumerate().map(|(user, tasks)| {
            let entry = &file.users[user];
            let dominant = problem.dominant_resource(user);
            UserRecord {
                name: entry.name.clone(),
                tasks: tasks.output_number(),
                allocation: NamedValues::new(
                    names,
                    entry.demand.iter().map(|d| (tasks.clone() * N::from_exact(d)).output_number()),
                ),
                dominant_resource: names[dominant].clone(),
                dominant_share: (tasks.clone() * problem.dominant_demand(user)).output_number(),
                satisfied: problem.limit(user).is_some_and(|limit| *tasks >= limit.clone() * &almost_one),
            }
        });
        let loads = problem.loads(&allocation.tasks);
        let resources = loads.iter().zip(&file.capacity).zip(names).map(|((load, capacity), name)| ResourceRecord {
            name: name.clone(),
            capacity: N::from_exact(capacity).output_number(),
            used: (load.clone() * N::from_exact(capacity)).output_number(),
            bottleneck: !capacity.is_zero() && *load >= almost_one,
        });
        let level = |l: &Option<N>| l.as_ref().map(N::output_number);
        let holds = PROPERTIES.iter().map(|property| {
            let findings = N::findings(*property, problem, &allocation.tasks, tolerance);
            (property.name().to_string(), findings.is_empty())
        });
        AllocationRecord {
            mechanism,
            level: level(&allocation.level),
            levels: (!allocation.levels.is_empty())
                .then(|| NamedValues::new(names, allocation.levels.iter().map(level))),
            prices: (!allocation.prices.is_empty())
                .then(|| NamedValues::new(names, allocation.prices.iter().map(N::output_number))),
            duality_gap: allocation.duality_gap,
            users: users.collect(),
            resources: resources.collect(),
            properties: NamedValues(holds.collect()),
        }
    }
}
