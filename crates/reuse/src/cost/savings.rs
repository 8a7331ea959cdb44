//! Savings of a plan: the cost of its buckets, and reuse as a fraction of the work after stage-level merging.
//!
//! Costs refer to the reuse tree of a single bucket, from level 1 (the virtual root costs nothing). For time and
//! memory see [`JobGraph`](crate::JobGraph) and [`peak_bytes`](crate::peak_bytes).

use serde::Serialize;

use crate::buckets::Buckets;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{Member, MergeProblem};

/// Execution cost of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BucketCost {
    /// Number of tasks: nodes of the bucket's own reuse tree.
    pub tasks: usize,
    /// Sum of their costs, in the unit of the problem's costs.
    pub cost: f64,
}

/// Returns the cost of each bucket, in order. Takes O(kn) in total.
///
/// `counted` selects instances. The cost of a bucket is that of its selected members, 0 without any.
pub fn bucket_costs(
    tree: &ReuseTree,
    buckets: &Buckets,
    counted: impl Fn(Member) -> bool,
) -> Vec<BucketCost> {
    // A bucket's tree is the part of the whole tree above its members. Marking the last bucket that visited a
    // node suffices: a member's path up ends at the first node that its bucket has already visited.
    let mut last_bucket = vec![usize::MAX; tree.len()];
    let mut cost_of = |(bucket, members): (usize, &[Member])| {
        let mut total = BucketCost::default();
        for member in members.iter().filter(|member| counted(**member)) {
            for node in tree.upwards(*member) {
                if std::mem::replace(&mut last_bucket[node.0 as usize], bucket) == bucket {
                    break;
                }
                total.tasks += 1;
                total.cost += tree.cost(node);
            }
        }
        total
    };
    buckets.iter().enumerate().map(&mut cost_of).collect()
}

/// Returns the horizontal runtime variance (HRV) of the buckets of a stage: the sample standard deviation of their costs
/// in relation to the mean (paper 002 §4.1). 0 for fewer than two buckets, and without costs.
pub fn bucket_cost_hrv(buckets: &[BucketCost]) -> f64 {
    let count = buckets.len() as f64;
    let mean = buckets.iter().map(|bucket| bucket.cost).sum::<f64>() / count;
    if buckets.len() < 2 || mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = buckets.iter().map(|bucket| (bucket.cost - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt() / mean
}

/// Fraction of work that a plan avoids: 1 − executed / work after stage-level merging. Negative for a plan that
/// executes more than stage-level merging would (level `none`). 0 without any work.
pub fn reuse_fraction(executed: f64, after_stage_merging: f64) -> f64 {
    if after_stage_merging == 0.0 { 0.0 } else { 1.0 - executed / after_stage_merging }
}

/// Reuse summary of the buckets of one stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReuseSummary {
    /// Number of counted stage instances.
    pub instances: usize,
    /// Number of their tasks without sharing, after stage-level merging.
    pub tasks_after_stage_merging: usize,
    /// Tasks executed.
    pub tasks: usize,
    /// Cost of the tasks after stage-level merging.
    pub cost_after_stage_merging: f64,
    /// Cost of the executed tasks.
    pub cost: f64,
    /// Reuse by number of tasks.
    pub reuse_fraction: f64,
    /// Reuse by cost of tasks.
    pub cost_reuse_fraction: f64,
    /// Buckets with a counted instance.
    pub buckets: usize,
    /// Cost of the most expensive of these buckets, 0 without any.
    pub max_bucket_cost: f64,
    /// Cost of the cheapest of these buckets, 0 without any.
    pub min_bucket_cost: f64,
    /// [Horizontal runtime variance](bucket_cost_hrv) of these buckets.
    pub bucket_cost_hrv: f64,
}

impl ReuseSummary {
    /// Summarizes a solution. `counted` excludes instances that serve the reference only
    /// ([`StageInstance::reference_only`](crate::StageInstance)): they are executed but are no part of the study.
    pub fn new(
        problem: &MergeProblem,
        tree: &ReuseTree,
        buckets: &Buckets,
        counted: impl Fn(Member) -> bool,
    ) -> Self {
        let mut costs = bucket_costs(tree, buckets, &counted);
        costs.retain(|bucket| bucket.tasks > 0);
        let tasks = costs.iter().map(|bucket| bucket.tasks).sum();
        let cost = costs.iter().map(|bucket| bucket.cost).sum();
        // Sums in bucket order, so that single-instance buckets give the same number as unmerged instances.
        let members = || buckets.iter().flatten().filter(|member| counted(**member));
        let instances = members().count();
        let tasks_after_stage_merging = instances * problem.levels();
        let cost_after_stage_merging = members().map(|member| problem.member_cost(*member)).sum();
        let bucket_cost = costs.iter().map(|bucket| bucket.cost);
        Self {
            instances,
            tasks_after_stage_merging,
            tasks,
            cost_after_stage_merging,
            cost,
            reuse_fraction: reuse_fraction(tasks as f64, tasks_after_stage_merging as f64),
            cost_reuse_fraction: reuse_fraction(cost, cost_after_stage_merging),
            buckets: costs.len(),
            max_bucket_cost: bucket_cost.clone().fold(0.0, f64::max),
            min_bucket_cost: bucket_cost.reduce(f64::min).unwrap_or(0.0),
            bucket_cost_hrv: bucket_cost_hrv(&costs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    fn figures(costs: TaskCosts, counted: impl Fn(Member) -> bool) -> ReuseSummary {
        // Two instances that share their first task, and one alone. The last bucket is separate from its
        // sibling.
        let keys = vec![1, 1, 1, 2, 2, 1, 1, 3];
        let problem = MergeProblem::new(2, vec![0; 4], keys, costs).unwrap();
        let tree = ReuseTree::build(&problem);
        let mut buckets = Buckets::default();
        buckets.push([Member(0), Member(1), Member(2)]);
        buckets.push([Member(3)]);
        ReuseSummary::new(&problem, &tree, &buckets, counted)
    }

    #[test]
    fn a_bucket_costs_the_nodes_of_its_own_tree() {
        let found = figures(TaskCosts::Count, |_| true);
        assert_eq!((found.tasks, found.tasks_after_stage_merging), (7, 8));
        assert_eq!((found.max_bucket_cost, found.min_bucket_cost), (5.0, 2.0));
        // Sample deviation 3 / √2, mean 3.5.
        assert!(
            (found.bucket_cost_hrv - 3.0 / 2_f64.sqrt() / 3.5).abs() < 1e-15,
            "{}",
            found.bucket_cost_hrv
        );
        assert_eq!(found.reuse_fraction, 0.125);
        // By cost, a shared first task is worth more if it is the expensive one.
        let found = figures(TaskCosts::PerLevel(vec![3.0, 1.0]), |_| true);
        assert_eq!((found.cost, found.cost_after_stage_merging), (13.0, 16.0));
        assert_eq!(found.cost_reuse_fraction, 0.1875);
    }

    #[test]
    fn variance_of_bucket_costs_is_relative_to_their_mean() {
        let of = |costs: &[f64]| {
            let cost = |cost: &f64| BucketCost { tasks: 1, cost: *cost };
            bucket_cost_hrv(&costs.iter().map(cost).collect::<Vec<_>>())
        };
        assert_eq!([of(&[]), of(&[7.0]), of(&[0.0, 0.0]), of(&[3.0, 3.0, 3.0])], [0.0; 4]);
        // Deviations -2, 0 and 2 of a mean of 4. The unit of the costs cancels.
        assert_eq!((of(&[2.0, 4.0, 6.0]), of(&[20.0, 40.0, 60.0])), (0.5, 0.5));
        assert_eq!(of(&[0.0, 5.0]), 2_f64.sqrt());
        // Paper 002 Fig. 5: jobs of 20 s and 60 s, and two of 40 s.
        assert!((of(&[20.0, 60.0]) - 0.5_f64.sqrt()).abs() < 1e-15);
        assert_eq!(of(&[40.0, 40.0]), 0.0);
    }

    #[test]
    fn uncounted_members_are_in_no_total() {
        let found = figures(TaskCosts::Count, |member| member != Member(1) && member != Member(3));
        assert_eq!((found.instances, found.buckets, found.tasks), (2, 1, 4));
        assert_eq!(found.bucket_cost_hrv, 0.0);
        assert_eq!(found.reuse_fraction, 0.0);
    }

    /// Thesis Fig. 4.6 with the costs of Table 4.3: three instances that share six tasks, and two that share
    /// five. Both have nine tasks, but cost as much as 1.18 and 1.48 stages.
    #[test]
    fn figure_4_6_equal_task_counts_are_not_equal_costs() {
        let shared =
            |tasks: u32, instance: u32| (0..7).map(move |task| if task < tasks { 0 } else { instance });
        let keys: Vec<u32> = [(6, 1), (6, 2), (6, 3)].into_iter().flat_map(|(t, i)| shared(t, i)).collect();
        let keys = [keys, [(5, 1), (5, 2)].into_iter().flat_map(|(t, i)| shared(t, i)).collect()].concat();
        let seconds = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];
        let stage: f64 = seconds.iter().sum();
        let costs = TaskCosts::PerLevel(seconds.map(|seconds| seconds / stage).to_vec());
        let problem = MergeProblem::new(7, vec![0, 0, 0, 1, 1], keys, costs).unwrap();
        let tree = ReuseTree::build(&problem);
        let mut buckets = Buckets::default();
        buckets.push([Member(0), Member(1), Member(2)]);
        buckets.push([Member(3), Member(4)]);
        let costs = bucket_costs(&tree, &buckets, |_| true);
        assert_eq!(costs.iter().map(|bucket| bucket.tasks).collect::<Vec<_>>(), [9, 9]);
        assert_eq!([0, 1].map(|bucket: usize| format!("{:.2}", costs[bucket].cost)), ["1.18", "1.49"]);
    }
}
