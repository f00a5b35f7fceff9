//! What `allocate` prints as JSON.

use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_mechanisms::{Allocation, Number, PROPERTIES, Problem};
use serde::Serialize;

use crate::figure::{Figure, Named, Shown};

/// One mechanism's answer.
#[derive(Debug, Serialize)]
pub(crate) struct AllocationRecord {
    pub(crate) mechanism: &'static str,
    pub(crate) level: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) levels: Option<Named<Option<Figure>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<Named<Figure>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duality_gap: Option<f64>,
    pub(crate) users: Vec<UserRecord>,
    pub(crate) resources: Vec<ResourceRecord>,
    pub(crate) properties: Named<bool>,
}

/// What one user gets.
#[derive(Debug, Serialize)]
pub(crate) struct UserRecord {
    pub(crate) name: String,
    pub(crate) tasks: Figure,
    pub(crate) allocation: Named<Figure>,
    pub(crate) dominant_resource: String,
    pub(crate) dominant_share: Figure,
    pub(crate) satisfied: bool,
}

/// What is left of one resource.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceRecord {
    pub(crate) name: String,
    pub(crate) capacity: Figure,
    pub(crate) used: Figure,
    pub(crate) bottleneck: bool,
}

impl AllocationRecord {
    pub(crate) fn new<N: Number>(
        mechanism: &'static str,
        file: &ProblemFile,
        problem: &Problem<N>,
        given: &Allocation<N>,
        tolerance: &N,
    ) -> AllocationRecord {
        let names = &file.resources;
        let least = N::one() - tolerance;
        let users = given.tasks.iter().enumerate().map(|(user, tasks)| {
            let entry = &file.users[user];
            let dominant = problem.dominant_resource(user);
            UserRecord {
                name: entry.name.clone(),
                tasks: tasks.figure(),
                allocation: Named::new(names, entry.demand.iter().map(|d| (tasks.clone() * N::from_exact(d)).figure())),
                dominant_resource: names[dominant].clone(),
                dominant_share: (tasks.clone() * problem.dominant_demand(user)).figure(),
                satisfied: problem.limit(user).is_some_and(|most| *tasks >= most.clone() * &least),
            }
        });
        let loads = problem.loads(&given.tasks);
        let resources = loads.iter().zip(&file.capacity).zip(names).map(|((load, capacity), name)| ResourceRecord {
            name: name.clone(),
            capacity: N::from_exact(capacity).figure(),
            used: (load.clone() * N::from_exact(capacity)).figure(),
            bottleneck: !capacity.is_zero() && *load >= least,
        });
        let level = |l: &Option<N>| l.as_ref().map(N::figure);
        let holds = PROPERTIES.iter().map(|property| {
            let findings = N::findings(*property, problem, &given.tasks, tolerance);
            (property.name().to_string(), findings.is_empty())
        });
        AllocationRecord {
            mechanism,
            level: level(&given.level),
            levels: (!given.levels.is_empty()).then(|| Named::new(names, given.levels.iter().map(level))),
            prices: (!given.prices.is_empty()).then(|| Named::new(names, given.prices.iter().map(N::figure))),
            duality_gap: given.duality_gap,
            users: users.collect(),
            resources: resources.collect(),
            properties: Named(holds.collect()),
        }
    }
}
