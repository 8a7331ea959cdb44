//! TRTMA compared with a reference implementation without trees: buckets are sets of instances, a node is a
//! prefix of keys, and every cost is recomputed.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use pleach_reuse::{
    Member, MergeProblem, MoveSearch, PartnerRule, Pruning, ReuseSummary, ReuseTree, Strategy, TaskCosts,
    TrtmaOptions, trtma,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Instances by their keys, on one input, with whole costs per level and key.
#[derive(Debug, Clone)]
struct Study {
    keys: Vec<Vec<u32>>,
    unit_costs: Vec<u32>,
}

type Set = BTreeSet<usize>;

impl Study {
    fn problem(&self, inputs: Vec<u32>) -> MergeProblem {
        let cost = |keys: &Vec<u32>| {
            keys.iter().zip(&self.unit_costs).map(|(key, unit)| f64::from(unit * key)).collect::<Vec<_>>()
        };
        let costs = self.keys.iter().flat_map(cost).collect();
        MergeProblem::new(self.unit_costs.len(), inputs, self.keys.concat(), TaskCosts::PerTask(costs))
            .unwrap()
    }

    fn cost(&self, bucket: &Set) -> u32 {
        let mut tasks = BTreeMap::new();
        for member in bucket {
            for level in 0..self.unit_costs.len() {
                tasks.insert(
                    &self.keys[*member][..=level],
                    self.unit_costs[level] * self.keys[*member][level],
                );
            }
        }
        tasks.values().sum()
    }

    /// Groups the members of a set by their node of a level, in the order of the drawing: by first instance.
    /// The level after the last is the instance itself.
    fn nodes(&self, of: &Set, level: usize) -> Vec<Set> {
        let name =
            |member: &usize| (self.keys[*member][..level.min(self.unit_costs.len())].to_vec(), *member);
        let mut nodes: Vec<(Vec<u32>, Set)> = Vec::new();
        for (name, member) in of.iter().map(name) {
            match nodes.iter_mut().find(|(known, _)| *known == name && level <= self.unit_costs.len()) {
                Some((_, members)) => _ = members.insert(member),
                None => nodes.push((name, Set::from([member]))),
            }
        }
        nodes.into_iter().map(|(_, members)| members).collect()
    }

    /// Returns all nodes below a level, depth-first or bottom-up, by their members. A chain is represented by
    /// its topmost node.
    fn walk(&self, of: &Set, search: MoveSearch) -> Vec<Set> {
        let mut order = Vec::new();
        self.walk_level(of, 1, search, &mut order);
        let mut once: Vec<Set> = Vec::new();
        match search {
            MoveSearch::MakespanInside => order.into_iter().for_each(|node| {
                if !once.contains(&node) {
                    once.push(node);
                }
            }),
            MoveSearch::BestImbalanceFirst => order.into_iter().rev().for_each(|node| {
                if !once.contains(&node) {
                    once.insert(0, node);
                }
            }),
        }
        once
    }

    fn walk_level(&self, of: &Set, level: usize, search: MoveSearch, order: &mut Vec<Set>) {
        if level > self.unit_costs.len() + 1 {
            return;
        }
        // Uses the order of all instances, not of those in this bucket, because the drawing does not change.
        let everyone: Set = (0..self.keys.len()).collect();
        let here = self.drawing(&everyone, level).into_iter().map(|node| &node & of);
        let here: Vec<Set> = here.filter(|node| !node.is_empty()).collect();
        for node in &here {
            if search == MoveSearch::MakespanInside {
                order.push(node.clone());
            }
            self.walk_level(node, level + 1, search, order);
        }
        if search == MoveSearch::BestImbalanceFirst {
            order.extend(here);
        }
    }

    /// Returns the nodes of a level from left to right.
    fn drawing(&self, of: &Set, level: usize) -> Vec<Set> {
        if level == 0 {
            return vec![of.clone()];
        }
        self.drawing(of, level - 1).iter().flat_map(|above| self.nodes(above, level)).collect()
    }

    fn full_merge(&self, max_buckets: usize) -> Vec<Set> {
        let everyone: Set = (0..self.keys.len()).collect();
        let levels = (1..=self.unit_costs.len()).map(|level| self.drawing(&everyone, level));
        let instances = self.drawing(&everyone, self.unit_costs.len() + 1);
        levels.into_iter().find(|nodes| nodes.len() >= max_buckets).unwrap_or(instances)
    }

    fn fold_merge(&self, buckets: Vec<Set>, max_buckets: usize) -> Vec<Set> {
        let mut buckets: Vec<(usize, Set)> = buckets.into_iter().enumerate().collect();
        while buckets.len() > max_buckets {
            buckets.sort_by_key(|(position, bucket)| (Reverse(self.cost(bucket)), Reverse(*position)));
            let folds = (buckets.len() - max_buckets).min(max_buckets);
            for fold in 0..folds {
                let (_, bucket) = buckets[max_buckets + fold].clone();
                buckets[max_buckets - 1 - fold].1.extend(bucket);
            }
            buckets.drain(max_buckets..max_buckets + folds);
        }
        buckets.sort_unstable_by_key(|(position, _)| *position);
        buckets.into_iter().map(|(_, bucket)| bucket).collect()
    }

    fn balance(&self, buckets: Vec<Set>, search: MoveSearch, small_bucket: PartnerRule) -> Vec<Set> {
        // The authors' multiset: by cost, on ties in order of insertion.
        let mut order: Vec<(Set, usize)> = buckets.into_iter().enumerate().map(|(i, b)| (b, i)).collect();
        let mut next = order.len();
        loop {
            order.sort_by_key(|(bucket, position)| (Reverse(self.cost(bucket)), *position));
            let big = order[0].0.clone();
            let smalls: Vec<usize> = match small_bucket {
                PartnerRule::Last => vec![order.len() - 1],
                PartnerRule::MostReuse => {
                    let least = self.cost(&order[order.len() - 1].0);
                    let cheapest = (1..order.len()).filter(|at| self.cost(&order[*at].0) == least);
                    let reuse = |at: &usize| self.cost(&big) + least - self.cost(&(&big | &order[*at].0));
                    cheapest.max_by_key(reuse).into_iter().collect()
                }
                PartnerRule::Exhaustive => (1..order.len()).rev().collect(),
            };
            let mut best: Option<((u32, u32), usize, Set)> = None;
            for at in smalls.into_iter().filter(|at| *at > 0) {
                if let Some((worth, branch)) = self.single_balance(&big, &order[at].0, search)
                    && best.as_ref().is_none_or(|(least, ..)| worth < *least)
                {
                    best = Some((worth, at, branch));
                }
            }
            match best {
                Some(((makespan, _), at, branch)) if makespan < self.cost(&big) => {
                    order[0] = (&big - &branch, next);
                    order[at] = (&order[at].0 | &branch, next + 1);
                    next += 2;
                }
                _ => return order.into_iter().map(|(bucket, _)| bucket).collect(),
            }
        }
    }

    /// Returns the first branch with the least imbalance, and the resulting makespan and imbalance.
    fn single_balance(&self, big: &Set, small: &Set, search: MoveSearch) -> Option<((u32, u32), Set)> {
        let mut least = self.cost(big).abs_diff(self.cost(small));
        let mut best = None;
        for branch in self.walk(big, search) {
            let (new_big, new_small) = (self.cost(&(big - &branch)), self.cost(&(small | &branch)));
            let (imbalance, makespan) = (new_big.abs_diff(new_small), new_big.max(new_small));
            if imbalance < least && (search == MoveSearch::BestImbalanceFirst || makespan < self.cost(big)) {
                least = imbalance;
                best = Some(((makespan, imbalance), branch));
            }
        }
        best
    }
}

fn study() -> impl Generator<Value = Study> {
    (1_usize..5).prop_flat_map(|levels| {
        // Tasks with key 0 cost nothing.
        (vec(vec(0_u32..3, levels), 1..14), vec(1_u32..5, levels))
            .prop_map(|(keys, unit_costs)| Study { keys, unit_costs })
    })
}

fn options() -> impl Generator<Value = TrtmaOptions> {
    let search = prop_oneof![Just(MoveSearch::MakespanInside), Just(MoveSearch::BestImbalanceFirst)];
    let small_bucket =
        prop_oneof![Just(PartnerRule::Last), Just(PartnerRule::MostReuse), Just(PartnerRule::Exhaustive)];
    let pruning = prop_oneof![Just(Pruning::None), Just(Pruning::Siblings), Just(Pruning::All)];
    (search, small_bucket, pruning, any::<bool>()).prop_map(|(search, small_bucket, pruning, skip_chains)| {
        TrtmaOptions { search, small_bucket, pruning, skip_chains }
    })
}

fn sets(problem: &MergeProblem, max_buckets: usize, options: TrtmaOptions) -> BTreeSet<Set> {
    let limit = NonZeroUsize::new(max_buckets).unwrap();
    let (buckets, _) = trtma(problem, &ReuseTree::build(problem), limit, options);
    buckets.iter().map(|members| members.iter().map(|member| member.0 as usize).collect()).collect()
}

proptest! {
    #[test]
    fn without_pruning_it_is_the_papers_algorithm(study in study(), max_buckets in 1_usize..7, options in options()) {
        let options = TrtmaOptions { pruning: Pruning::None, ..options };
        let folded = study.fold_merge(study.full_merge(max_buckets), max_buckets);
        let expected = study.balance(folded, options.search, options.small_bucket);
        let problem = study.problem(vec![0; study.keys.len()]);
        prop_assert_eq!(sets(&problem, max_buckets, options), expected.into_iter().collect());
    }

    #[test]
    fn balancing_never_raises_the_makespan(study in study(), max_buckets in 1_usize..7, options in options()) {
        let folded = study.fold_merge(study.full_merge(max_buckets), max_buckets);
        let dearest = |buckets: &mut dyn Iterator<Item = &Set>| buckets.map(|bucket| study.cost(bucket)).max();
        let problem = study.problem(vec![0; study.keys.len()]);
        let found = sets(&problem, max_buckets, options);
        prop_assert!(dearest(&mut found.iter()) <= dearest(&mut folded.iter()));
        prop_assert_eq!(found.len(), folded.len());
    }

    #[test]
    fn limits_hold_and_inputs_stay_apart_while_they_can(
        study in study(),
        inputs in vec(0_u32..4, 14),
        max_buckets in 1_usize..9,
        options in options(),
    ) {
        let inputs = inputs[..study.keys.len()].to_vec();
        let problem = study.problem(inputs.clone());
        let tree = ReuseTree::build(&problem);
        let limit = NonZeroUsize::new(max_buckets).unwrap();
        let (buckets, report) = trtma(&problem, &tree, limit, options);
        prop_assert_eq!(buckets.check_partition(&problem), Ok(()));
        prop_assert!(buckets.len() <= max_buckets);
        prop_assert_eq!(report.fold_merge_buckets, buckets.len());
        let different = inputs.iter().collect::<BTreeSet<_>>().len();
        let mixed = |members: &&[Member]| {
            members.iter().map(|member| problem.inputs(*member)).collect::<BTreeSet<_>>().len() > 1
        };
        prop_assert_eq!(buckets.iter().filter(mixed).count(), report.mixed_buckets);
        prop_assert_eq!(report.mixed_buckets > 0, different > max_buckets);
        let strategy = Strategy::Trtma { max_buckets: limit, options };
        prop_assert_eq!(&strategy.solve(&problem, &tree).unwrap(), &buckets);
        let figures = ReuseSummary::new(&problem, &tree, &buckets, |_| true);
        prop_assert!(figures.cost <= figures.cost_after_stage_merging);
    }

    /// Sums in whole numbers do not depend on the unit of costs.
    #[test]
    fn the_unit_of_costs_changes_nothing(study in study(), exponent in -900_i32..900, max_buckets in 1_usize..7) {
        let of = |unit: f64| {
            let costs = study.unit_costs.iter().map(|cost| f64::from(*cost) * unit).collect();
            let inputs = vec![0; study.keys.len()];
            MergeProblem::new(study.unit_costs.len(), inputs, study.keys.concat(), TaskCosts::PerLevel(costs)).unwrap()
        };
        let found = |unit| sets(&of(unit), max_buckets, TrtmaOptions::default());
        prop_assert_eq!(found(2_f64.powi(exponent)), found(1.0));
        prop_assert!(found(0.0).len() <= max_buckets);
    }
}
