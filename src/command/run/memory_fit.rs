//! A plan that fits the memory.

use super::part::Runner;
use crate::command::plan_options::fit::{Fitted, Room, fit};
use crate::command::plan_options::{BucketLimits, PlanOptions};
use crate::exit::{CommandError, CommandResult};
use crate::memory_limit;
use crate::output::print_line;
use crate::output::record::PlanRecord;
use crate::planning::{MemoryFloor, PlanBuilder, PlannedStudy, WorkerMemory};
use crate::rounds::PlannedRound;
use crate::size::human;
use crate::study::PreparedStudy;
use std::time::Instant;

impl Runner<'_> {
    /// A plan, if the study can be executed within the memory at all. What is shared beyond a tree is held for longer: where
    /// that would be too much, buckets are smaller, or a tree it is.
    pub(super) fn fitting_plan(&self, prepared: &PreparedStudy) -> CommandResult<PlannedRound> {
        let start = Instant::now();
        let (way, limits, woven) = self.fitting(prepared, true)?;
        let plan = PlanRecord {
            strategy: way.strategy_name(),
            reuse: way.reuse_name(),
            figures: woven.figures.clone(),
            planning_seconds: Some(start.elapsed().as_secs_f64()),
            workers: self.workers.get(),
            max_bucket_size: way.max_bucket_size(limits),
            max_buckets: way.max_buckets(limits),
            least_bytes: None,
        };
        Ok(PlannedRound { woven, plan })
    }

    /// Whether there is such a plan, without a word on how.
    pub(super) fn can_be_planned(&self, prepared: &PreparedStudy) -> CommandResult {
        self.fitting(prepared, false).map(|_| ())
    }

    fn fitting(
        &self,
        prepared: &PreparedStudy,
        tells: bool,
    ) -> CommandResult<(PlanOptions, BucketLimits, PlannedStudy)> {
        let args = self.args;
        let loom =
            PlanBuilder::set_up(prepared.material(), self.way.merging()).map_err(CommandError::input)?;
        let memory = WorkerMemory { memory_bytes: self.memory_bytes, below_bytes: self.below_bytes };
        let room = Room {
            buckets: args.way.buckets,
            slots: self.workers,
            workers: &[memory],
            // A cache is of use to values only.
            may_be_tree: args.cache.cache.is_none(),
        };
        let Fitted { way, limits, draft, first_needs } =
            fit(&loom, self.way, room).map_err(CommandError::input)?;
        if !memory.fits(draft.needs()) {
            return Err(self.too_little(prepared, draft.least(&loom, self.below_bytes)));
        }
        if way != self.way && tells && !args.quiet && !args.json {
            print_line(&format!(
                "--memory {}: tasks are shared as in trees (--reuse tree), since --reuse {} takes {} MB",
                human(self.memory_bytes),
                self.way.reuse_name().unwrap_or_default(),
                first_needs.with_spill(self.below_bytes).div_ceil(1_000_000),
            ));
        }
        let woven = draft.weave(loom, self.workers.get()).map_err(CommandError::input)?;
        Ok((way, limits, woven))
    }

    fn too_little(&self, prepared: &PreparedStudy, least: MemoryFloor) -> CommandError {
        let MemoryFloor { bytes, stage, tile } = least;
        // Rounded up, so that what is named is enough.
        let megabytes = bytes.div_ceil(1_000_000);
        let budget = human(self.memory_bytes);
        let given = match self.args.memory {
            Some(_) => format!("--memory {budget}"),
            None => format!("--memory {budget} (60 % of {})", memory_limit::limit()),
        };
        CommandError::Input(format!(
            "{given}: the {} of {} needs {megabytes} MB at once; {megabytes}MB or more is allowed",
            prepared.study.workflow.stages[stage].name,
            prepared.study.tiles[tile].path.display(),
        ))
    }
}
