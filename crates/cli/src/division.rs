//! What `allocate` and `audit` have in common: problems and mechanisms in either arithmetic.

use std::path::Path;

use evenhand_documents::Document;
use evenhand_mechanisms::problem_files::{Arithmetic, ProblemFile};
use evenhand_mechanisms::{
    Allocation, Finding, MECHANISMS, Mechanism, MechanismError, Options, Problem, Property, mechanism_named,
};
use evenhand_model::Rational;

use crate::args::MechanismArgs;
use crate::failure::Failure;
use crate::figure::Shown;

/// How far apart computed shares may be and count as equal.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// Numbers that the verbs compute with: which of the two forms of a mechanism or property is meant.
pub(crate) trait Computed: Shown {
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<Self>,
        options: &Options,
    ) -> Result<Allocation<Self>, MechanismError>;

    fn findings(
        property: &dyn Property,
        problem: &Problem<Self>,
        tasks: &[Self],
        tolerance: &Self,
    ) -> Vec<Finding<Self>>;
}

impl Computed for f64 {
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<f64>,
        options: &Options,
    ) -> Result<Allocation<f64>, MechanismError> {
        mechanism.divide(problem, options)
    }

    fn findings(property: &dyn Property, problem: &Problem<f64>, tasks: &[f64], tolerance: &f64) -> Vec<Finding<f64>> {
        property.findings(problem, tasks, *tolerance)
    }
}

impl Computed for Rational {
    fn divide(
        mechanism: &dyn Mechanism,
        problem: &Problem<Rational>,
        options: &Options,
    ) -> Result<Allocation<Rational>, MechanismError> {
        mechanism.divide_exact(problem, options)
    }

    fn findings(
        property: &dyn Property,
        problem: &Problem<Rational>,
        tasks: &[Rational],
        tolerance: &Rational,
    ) -> Vec<Finding<Rational>> {
        property.findings_exact(problem, tasks, tolerance)
    }
}

/// The problem of a file, as written and in shares of capacity.
pub(crate) fn read_problem(path: &Path, arithmetic: Arithmetic) -> Result<(ProblemFile, Problem<Rational>), Failure> {
    let document = Document::read(path).map_err(Failure::document)?;
    let file = ProblemFile::read(&document, arithmetic).map_err(Failure::document)?;
    let problem = file.problem().map_err(|e| Failure::Input(format!("{}: {e}", document.source().name())))?;
    Ok((file, problem))
}

/// The problem in 64-bit numbers.
pub(crate) fn in_floats(problem: &Problem<Rational>) -> Result<Problem<f64>, Failure> {
    problem.to_f64().ok_or_else(|| beyond("the problem"))
}

/// That 64-bit numbers do not hold something.
pub(crate) fn beyond(what: &str) -> Failure {
    Failure::Input(format!("{what} has quantities beyond the range of 64-bit numbers; compute with --exact"))
}

/// The mechanisms of these names, each once.
pub(crate) fn mechanisms(names: &[String]) -> Result<Vec<&'static dyn Mechanism>, Failure> {
    let mut found: Vec<&'static dyn Mechanism> = Vec::new();
    for name in names {
        let mechanism = mechanism_named(name)
            .ok_or_else(|| Failure::unknown("--mechanism", name, MECHANISMS.iter().map(|m| m.name())))?;
        if found.iter().any(|m| m.name() == name) {
            return Err(Failure::Input(format!("--mechanism: {name} is named twice, expected each once")));
        }
        found.push(mechanism);
    }
    Ok(found)
}

pub(crate) fn options(args: &MechanismArgs) -> Options {
    Options { sharing_incentive: args.sharing_incentive }
}

/// A mechanism that gives nothing: mostly the problem is not for it. Where it should have arrived at an
/// answer and did not, nothing is wrong with the input.
pub(crate) fn refusal(error: &MechanismError) -> Failure {
    Failure::new(error, matches!(error, MechanismError::NotCertified { .. }))
}
