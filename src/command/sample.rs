//! `pleach sample`: draws parameter sets for an external model.

use crate::cli::SampleArgs;
use crate::exit::CommandResult;
use crate::terminal::print_line;
use pleach_interop::method::MethodRequest;
use pleach_interop::problem::Problem;
use pleach_interop::sampling;
use pleach_workflow::Registry;

/// Runs the command.
pub(super) fn execute(args: &SampleArgs, registry: &Registry) -> CommandResult {
    let problem = Problem::load(&args.problem, registry)?;
    let wanted = MethodRequest::of(&problem, args.recipe())?;
    let seed = args.seed.unwrap_or(problem.seed);
    let rows = sampling::draw(&problem, &wanted, seed, &args.out)?;
    let varying = problem.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
    print_line(&format!(
        "{}: {rows} evaluations of {varying} varying parameters for method {}, seed {seed}",
        args.out.display(),
        wanted.kind()
    ));
    Ok(())
}
