//! A plan that fits the memory.

use super::part::Runner;
use crate::command::way::{BucketLimits, Way};
use crate::exit::{Outcome, Stop};
use crate::machine;
use crate::output::print_line;
use crate::output::record::Plan;
use crate::parts::Planned;
use crate::size::human;
use crate::study::Prepared;
use crate::weave::{self, Least, Loom, Woven};
use std::time::Instant;

/// How a study is planned, and for what.
struct Found {
    way: Way,
    limits: BucketLimits,
    woven: Woven,
}

impl Runner<'_> {
    /// A plan, if the study can be executed within the memory at all. What is shared beyond a tree is held for longer: where
    /// that would be too much, a tree it is.
    pub(super) fn fitting_plan(&self, prepared: &Prepared) -> Outcome<Planned> {
        let start = Instant::now();
        let Found { way, limits, woven } = self.fitting(prepared, true)?;
        let plan = Plan {
            strategy: way.strategy_name(),
            reuse: way.reuse_name(),
            figures: woven.figures.clone(),
            planning_seconds: Some(start.elapsed().as_secs_f64()),
            workers: self.workers.get(),
            max_bucket_size: way.max_bucket_size(limits),
            max_buckets: way.max_buckets(limits),
        };
        Ok(Planned { woven, plan })
    }

    /// Whether there is such a plan, without a word on how.
    pub(super) fn can_be_planned(&self, prepared: &Prepared) -> Outcome {
        self.fitting(prepared, false).map(|_| ())
    }

    fn fitting(&self, prepared: &Prepared, tells: bool) -> Outcome<Found> {
        let (args, way, workers, memory_bytes) = (self.args, self.way, self.workers, self.memory_bytes);
        let plan = |way: Way| {
            let loom = Loom::set_up(prepared.material(), way.merging()).map_err(Stop::input)?;
            let limits =
                BucketLimits::choose(args.way.buckets, &loom, workers, memory_bytes).map_err(Stop::input)?;
            let mut woven = weave::weave(loom, way.level(limits), workers.get()).map_err(Stop::input)?;
            let least = weave::rehearse(&mut woven, &prepared.registry, self.below_bytes);
            Ok::<_, Stop>((Found { way, limits, woven }, least.map_err(Stop::defect)?))
        };
        let (found, least) = plan(way)?;
        if least.bytes <= memory_bytes {
            return Ok(found);
        }
        // A cache is of use to values only.
        let Some(tree) = way.as_tree().filter(|_| args.cache.cache.is_none()) else {
            return Err(self.too_little(prepared, least));
        };
        let (found, of_tree) = plan(tree)?;
        if of_tree.bytes > memory_bytes {
            return Err(self.too_little(prepared, of_tree));
        }
        if tells && !args.quiet && !args.json {
            print_line(&format!(
                "--memory {}: tasks are shared as in trees (--reuse tree), since --reuse {} takes {} MB",
                human(memory_bytes),
                way.reuse_name().unwrap_or_default(),
                least.bytes.div_ceil(1_000_000),
            ));
        }
        Ok(found)
    }

    fn too_little(&self, prepared: &Prepared, least: Least) -> Stop {
        let Least { bytes, stage, tile } = least;
        // Rounded up, so that what is named is enough.
        let megabytes = bytes.div_ceil(1_000_000);
        let budget = human(self.memory_bytes);
        let given = match self.args.memory {
            Some(_) => format!("--memory {budget}"),
            None => format!("--memory {budget} (60 % of {})", machine::limit()),
        };
        Stop::Input(format!(
            "{given}: the {} of {} needs {megabytes} MB at once; {megabytes}MB or more is allowed",
            prepared.study.workflow.stages[stage].name,
            prepared.study.tiles[tile].path.display(),
        ))
    }
}
