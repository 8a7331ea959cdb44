//! Replanning: rebuilds unstarted buckets after a change of the number of slots, 3 for each slot as in the papers
//! (001 §4.2.4), moving as few instances as possible.

use super::Cluster;
use crate::audit::Violation;
use crate::event::Event;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::{InstanceId, PlanId};
use pleach_reuse::{Buckets, Member, PreviousPlan, ReuseTree, replan};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// Limit for replanning: with more instances all slots have work anyway, and planning would take seconds.
const MAX_INSTANCES: usize = 100_000;

impl Cluster {
    pub(super) fn replan(&mut self, study: PlanId) -> Result<(), Violation> {
        self.to_replan.remove(&study);
        let slots = self.observed.manager().slots() as usize;
        let (Some(limit), Some(before)) =
            (NonZeroUsize::new(3 * slots), NonZeroUsize::new(self.cut_for[study.index()]))
        else {
            return Ok(());
        };
        let Some(state) = self.observed.manager().study(study).filter(|_| self.is_up && limit != before)
        else {
            return Ok(());
        };
        let workload = &self.workloads[study.index()];
        let second = |open: &&BTreeSet<InstanceId>| open.iter().all(|id| workload.is_second(*id));
        let old: Vec<Vec<InstanceId>> = state
            .unstarted()
            .map(|(_, open)| open)
            .filter(second)
            .map(|open| open.iter().copied().collect())
            .collect();
        let instances: Vec<InstanceId> = old.iter().flatten().copied().collect();
        if instances.is_empty() || instances.len() > MAX_INSTANCES {
            return Ok(());
        }
        let Ok(problem) = workload.problem(&instances) else { return Ok(()) };
        let mut buckets = Buckets::default();
        let mut next = 0;
        for members in &old {
            let end = next + members.len() as u32;
            buckets.push((next..end).map(Member));
            next = end;
        }
        let previous = PreviousPlan { buckets: &buckets, max_buckets: before };
        let tree = ReuseTree::build(&problem);
        let Ok(planned) = replan(&problem, &tree, previous, |_| false, limit) else { return Ok(()) };
        self.cut_for[study.index()] = limit.get();
        self.figures.replans += 1;
        self.figures.instances_moved += planned.moved.len() as u64;
        // Only buckets that have lost or gained instances are replaced.
        let bucket_before: Vec<u32> =
            (0u32..).zip(&old).flat_map(|(number, members)| members.iter().map(move |_| number)).collect();
        let touched: BTreeSet<u32> = planned
            .moved
            .iter()
            .flat_map(|member| [bucket_before[member.0 as usize], planned.bucket_of[member.0 as usize]])
            .collect();
        let mut new: BTreeMap<u32, Vec<InstanceId>> = BTreeMap::new();
        for (instance, bucket) in instances.iter().zip(&planned.bucket_of) {
            if touched.contains(bucket) {
                new.entry(*bucket).or_default().push(*instance);
            }
        }
        let pixels = workload.pixels();
        let buckets: Vec<BucketPlan> =
            new.into_values().map(|instances| BucketPlan { instances, pixels }).collect();
        if buckets.is_empty() {
            return Ok(());
        }
        self.apply(Event::Replanned { study, buckets })
    }
}
