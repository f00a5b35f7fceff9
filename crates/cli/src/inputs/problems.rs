//! Problem files and mechanisms, for `allocate`, `audit` and `timeline`.

use std::path::Path;

use evenhand_documents::Document;
use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_mechanisms::{
    Arithmetic, MECHANISMS, Mechanism, MechanismError, MechanismOptions, Number, Problem, mechanism_named,
};
use evenhand_model::Rational;

use crate::arguments::MechanismArgs;
use crate::failure::Failure;
use crate::output::console::Console;

/// Largest difference at which two shares computed in 64 bits count as equal.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// Reads a problem file; returns it as written and in shares of capacity.
pub(crate) fn read_problem(path: &Path, arithmetic: Arithmetic) -> Result<(ProblemFile, Problem<Rational>), Failure> {
    let document = Document::read(path).map_err(Failure::document)?;
    let file = ProblemFile::read(&document, arithmetic).map_err(Failure::document)?;
    let problem = file.problem().map_err(|e| Failure::Input(format!("{}: {e}", document.source().name())))?;
    Ok((file, problem))
}

/// Converts a problem to the arithmetic of `N`.
pub(crate) fn convert<N: Number>(problem: &Problem<Rational>) -> Result<Problem<N>, Failure> {
    problem.convert().ok_or_else(|| out_of_range("the problem"))
}

/// Returns the failure for quantities that 64-bit numbers cannot represent.
pub(crate) fn out_of_range(what: &str) -> Failure {
    Failure::Input(format!("{what} has quantities beyond the range of 64-bit numbers; compute with --exact"))
}

/// Returns the mechanisms of these names, each of which may occur once.
pub(crate) fn mechanisms_named(names: &[String]) -> Result<Vec<&'static dyn Mechanism>, Failure> {
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

/// The mechanism that can go without the sharing incentive.
const WITH_INCENTIVE: &str = "baa";

/// Converts the options of mechanisms, and prints a note on those that change nothing under these mechanisms.
pub(crate) fn mechanism_options(
    args: &MechanismArgs,
    mechanisms: &[&dyn Mechanism],
    console: &Console,
) -> MechanismOptions {
    let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.name()).collect();
    if args.sharing_incentive.is_some() && !names.contains(&WITH_INCENTIVE) {
        console.note(&format!(
            "--sharing-incentive changes nothing: it is for the mechanism {WITH_INCENTIVE}, and --mechanism is {}.",
            names.join(",")
        ));
    }
    MechanismOptions { sharing_incentive: args.sharing_incentive }
}

/// Classifies a mechanism's error. Most mean that the mechanism does not support the problem; a result that could not be
/// certified is not the input's fault.
pub(crate) fn mechanism_failure(error: &MechanismError) -> Failure {
    Failure::new(error, matches!(error, MechanismError::NotCertified { .. }))
}
