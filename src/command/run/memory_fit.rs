//! Plans a study within the memory of the process.

use super::part::Runner;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_planner::memory_limit;
use pleach_planner::memory_size::human;
use pleach_planner::{Plan, PlanRequest, PlanningInput, WorkerMemory};
use pleach_study::PreparedStudy;

impl Runner<'_> {
    /// Plans a study within the memory of this process. Prints a notice if the plan has a smaller reuse scope.
    pub(super) fn fitting_plan(&self, prepared: &PreparedStudy) -> CommandResult<Plan> {
        let plan = self.fitting(prepared)?;
        let (options, args) = (self.options, self.args);
        if plan.options != options && !args.quiet && !args.json {
            print_line(&format!(
                "--memory {}: using --reuse tree, because --reuse {} needs {} MB",
                human(self.memory_bytes),
                options.reuse_name().unwrap_or_default(),
                plan.requested_needs.with_spill(self.spill_bytes).div_ceil(1_000_000),
            ));
        }
        Ok(plan)
    }

    /// Checks that such a plan exists.
    pub(super) fn can_be_planned(&self, prepared: &PreparedStudy) -> CommandResult {
        self.fitting(prepared).map(|_| ())
    }

    fn fitting(&self, prepared: &PreparedStudy) -> CommandResult<Plan> {
        let workers = &[WorkerMemory { memory_bytes: self.memory_bytes, spill_bytes: self.spill_bytes }];
        let request = PlanRequest {
            options: self.options,
            buckets: self.args.plan.buckets.limits(),
            slots: self.workers,
            workers,
            // Only the value scope finds results in a cache.
            tree_fallback: self.args.cache.cache.is_none(),
        };
        let bucket_overhead_seconds = self.args.plan.buckets.overhead.seconds(&prepared.costs);
        let accelerators = self.accelerators.len();
        let input = PlanningInput { bucket_overhead_seconds, accelerators, ..prepared.planning_input() };
        let plan = pleach_planner::plan(input, &request).map_err(CommandError::input)?;
        if !plan.fits_any(workers) {
            return Err(self.too_little(prepared, &plan));
        }
        Ok(plan)
    }

    fn too_little(&self, prepared: &PreparedStudy, plan: &Plan) -> CommandError {
        let bytes = plan.study.plan.needs.with_spill(self.spill_bytes);
        // Rounded up, so that the amount in the message suffices.
        let megabytes = bytes.div_ceil(1_000_000);
        let budget = human(self.memory_bytes);
        let given = match self.args.memory {
            Some(_) => format!("--memory {budget}"),
            None => format!("--memory {budget} (60 % of {})", memory_limit::limit()),
        };
        CommandError::Input(format!(
            "{given}: the {} of {} needs {megabytes} MB at once; {megabytes}MB or more is allowed",
            prepared.study.workflow.stages[plan.peak.stage].name,
            prepared.study.tiles[plan.peak.tile].path.display(),
        ))
    }
}
