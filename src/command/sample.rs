//! `pleach sample`: parameter sets for a model that somebody executes elsewhere.

use crate::cli::SampleArgs;
use crate::exit::Outcome;
use crate::output::print_line;
use crate::outside::draw;
use crate::outside::problem::Problem;
use crate::outside::way::Wanted;

/// Runs the command.
pub(super) fn execute(args: &SampleArgs) -> Outcome {
    let problem = Problem::load(&args.problem)?;
    let wanted = Wanted::of(&problem, args.recipe())?;
    let seed = args.seed.unwrap_or(problem.seed);
    let rows = draw::draw(&problem, &wanted, seed, &args.out)?;
    let varying = problem.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    print_line(&format!(
        "{}: {rows} evaluations of {varying} varying parameters for method {}, seed {seed}",
        args.out.display(),
        wanted.kind()
    ));
    Ok(())
}
