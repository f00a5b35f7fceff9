//! `evenhand allocate`

mod record;
mod tables;

use evenhand_mechanisms::problem_files::{Arithmetic, ProblemFile};
use evenhand_mechanisms::{Mechanism, Problem};
use evenhand_model::Rational;

use self::record::AllocationRecord;
use crate::args::AllocateArgs;
use crate::console::{Console, json};
use crate::division::{Computed, TOLERANCE, beyond, in_floats, mechanisms, options, read_problem, refusal};
use crate::failure::Failure;

pub(crate) fn run(args: &AllocateArgs, console: &Console) -> Result<(), Failure> {
    let mechanisms = mechanisms(&args.mechanism)?;
    let arithmetic = if args.exact { Arithmetic::Exact } else { Arithmetic::Float };
    let (file, problem) = read_problem(&args.problem, arithmetic)?;
    let records = match arithmetic {
        Arithmetic::Exact => all(&mechanisms, args, &file, &problem, &Rational::ZERO)?,
        Arithmetic::Float => all(&mechanisms, args, &file, &in_floats(&problem)?, &TOLERANCE)?,
    };
    let text = if console.is_json() { json(&records)? } else { tables::render(&file, &mechanisms, &records) };
    console.result(&text)
}

fn all<N: Computed>(
    mechanisms: &[&dyn Mechanism],
    args: &AllocateArgs,
    file: &ProblemFile,
    problem: &Problem<N>,
    tolerance: &N,
) -> Result<Vec<AllocationRecord>, Failure> {
    let each = mechanisms.iter().map(|mechanism| {
        let given = N::divide(*mechanism, problem, &options(&args.options)).map_err(|e| refusal(&e))?;
        if given.tasks.iter().any(|x| !x.to_f64().is_finite() && !N::EXACT) {
            return Err(beyond("the answer"));
        }
        Ok(AllocationRecord::new(mechanism.name(), file, problem, &given, tolerance))
    });
    each.collect()
}
