//! `evenhand allocate`

mod record;
mod tables;

use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_mechanisms::{Arithmetic, Computation, Mechanism, MechanismOptions, Number, Problem};
use evenhand_model::Rational;

use self::record::AllocationRecord;
use crate::arguments::AllocateArgs;
use crate::failure::Failure;
use crate::inputs::problems::{
    TOLERANCE, convert, mechanism_failure, mechanism_options, mechanisms_named, out_of_range, read_problem,
};
use crate::output::console::{Console, to_json};

pub(crate) fn run(args: &AllocateArgs, console: &Console) -> Result<(), Failure> {
    let mechanisms = mechanisms_named(&args.mechanism)?;
    let options = mechanism_options(&args.options, &mechanisms, console);
    let arithmetic = if args.exact { Arithmetic::Exact } else { Arithmetic::Float };
    let (file, problem) = read_problem(&args.problem, arithmetic)?;
    let division = Division { mechanisms: &mechanisms, options: &options, file: &file, problem: &problem };
    let records = arithmetic.run(division)?;
    let text = if console.is_json() { to_json(&records)? } else { tables::render(&file, &mechanisms, &records) };
    console.result(&text)
}

/// Division of one problem by several mechanisms.
struct Division<'a> {
    mechanisms: &'a [&'a dyn Mechanism],
    options: &'a MechanismOptions,
    file: &'a ProblemFile,
    problem: &'a Problem<Rational>,
}

impl Computation for Division<'_> {
    type Output = Result<Vec<AllocationRecord>, Failure>;

    fn run<N: Number>(self) -> Self::Output {
        let problem = convert::<N>(self.problem)?;
        let tolerance = if N::EXACT { N::zero() } else { N::from_f64(TOLERANCE) };
        let each = self.mechanisms.iter().map(|mechanism| {
            let allocation = N::divide(*mechanism, &problem, self.options).map_err(|e| mechanism_failure(&e))?;
            if !N::EXACT && allocation.tasks.iter().any(|x| !x.to_f64().is_finite()) {
                return Err(out_of_range("the result"));
            }
            Ok(AllocationRecord::new(mechanism.name(), self.file, &problem, &allocation, &tolerance))
        });
        each.collect()
    }
}
