//! Replan of running buckets when workers join or leave or instances are added. Moves as few unstarted
//! instances as possible.
//!
//! - No change: no instance moves.
//! - Fewer buckets: the cheapest are dissolved, and their branches go to the cheapest remaining ones.
//! - Instances added: each goes where most of its tasks are, as long as that keeps the makespan.
//! - More buckets: branches of the most expensive buckets move into the new ones (`SingleBalance`), while that
//!   lowers the makespan. No branch moves between old buckets or moves twice.
//! - Other costs: branches of the most expensive buckets move into the cheapest ones, while that lowers the makespan.
//!
//! Only unstarted work counts: a bucket costs as much as its unstarted instances alone, because the outputs of
//! started ones may be gone. Finished or running instances never move. The scheduler decides when instances run.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::num::NonZeroUsize;

use super::bucket::{BalancedBucket, NodeShare};
use super::search::{SingleBalance, max_tries};
use crate::buckets::{Buckets, PartitionError};
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{Member, MergeProblem};
use crate::strategy::trtma::TrtmaOptions;
use crate::strategy::trtma::forest::{Forest, ForestIndex, RankedForest};

/// Previous plan.
#[derive(Debug, Clone, Copy)]
pub struct PreviousPlan<'a> {
    /// Its buckets. They contain the first instances of the problem. Later instances are new.
    pub buckets: &'a Buckets,
    /// Its limit on the number of buckets.
    pub max_buckets: NonZeroUsize,
    /// Whether it was made with other task costs than the problem has now.
    pub has_other_costs: bool,
}

/// Buckets after a replan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replanned {
    /// Bucket of each instance. Numbers below the previous plan's bucket count mean its buckets. Some of these may
    /// be empty now.
    pub bucket_of: Vec<u32>,
    /// Instances that changed their bucket, ascending.
    pub moved: Vec<Member>,
}

impl Replanned {
    /// Returns the buckets with instances, in the order of their numbers.
    pub fn buckets(&self) -> Buckets {
        let mut members: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
        for (member, bucket) in (0..).map(Member).zip(&self.bucket_of) {
            members.entry(*bucket).or_default().push(member);
        }
        let mut buckets = Buckets::default();
        members.into_values().for_each(|members| buckets.push(members));
        buckets
    }
}

/// Rebuilds the buckets. `is_started` marks the started instances of the previous plan, which stay. Afterwards at
/// most `max_buckets` buckets have unstarted instances. Inputs stay separate, unless they outnumber the
/// buckets, or the previous plan mixed them.
///
/// # Errors
/// If the previous buckets do not hold the first instances of the problem, each once.
pub fn replan(
    problem: &MergeProblem,
    tree: &ReuseTree,
    previous: PreviousPlan<'_>,
    is_started: impl Fn(Member) -> bool,
    max_buckets: NonZeroUsize,
) -> Result<Replanned, PartitionError> {
    let before = bucket_of(problem, previous.buckets)?;
    let (forest, places) = Forest::build(problem, tree);
    let waits = |member: &Member| before.get(member.0 as usize).is_some() && !is_started(*member);
    let waiting: Vec<Vec<Member>> =
        previous.buckets.iter().map(|members| members.iter().copied().filter(waits).collect()).collect();
    let mut plan = Plan::new(&forest, &places, &waiting, max_buckets);
    // Terminates: if inputs outnumber the buckets, all buckets are one class, so one class has several
    // buckets.
    while plan.active.len() > max_buckets.get() {
        plan.give_one_up();
    }
    plan.add((before.len() as u32..problem.len() as u32).map(Member));
    if max_buckets > previous.max_buckets {
        plan.fill_new_buckets();
    }
    if previous.has_other_costs {
        plan.even_out();
    }

    let mut after = before.clone();
    after.resize(problem.len(), 0);
    for (bucket, state) in (0..).zip(&plan.buckets) {
        for member in state.members(&forest) {
            after[member.0 as usize] = bucket;
        }
    }
    let moved =
        (0..).map(Member).zip(before.iter().zip(&after)).filter(|(_, (before, after))| before != after);
    let moved = moved.map(|(member, _)| member).collect();
    Ok(Replanned { bucket_of: after, moved })
}

/// Returns the bucket of each instance, if the buckets contain the first instances of the problem exactly
/// once.
fn bucket_of(problem: &MergeProblem, buckets: &Buckets) -> Result<Vec<u32>, PartitionError> {
    let instances = buckets.iter().map(<[Member]>::len).sum();
    let mut found = vec![0; instances];
    for member in buckets.iter().flatten() {
        let unknown = PartitionError::Unknown { member: member.0, instances: instances.min(problem.len()) };
        if member.0 as usize >= problem.len() {
            return Err(unknown);
        }
        *found.get_mut(member.0 as usize).ok_or(unknown)? += 1;
    }
    match found.iter().position(|buckets| *buckets != 1) {
        Some(member) => Err(PartitionError::Occurrences { member, buckets: found[member] }),
        None => Ok(buckets.bucket_of()),
    }
}

/// Unstarted work by bucket.
struct Plan<'a> {
    ranked: RankedForest<'a>,
    places: &'a ForestIndex,
    max_buckets: usize,
    /// Whether all buckets are one class. Otherwise the buckets of each input are a class.
    mixed: bool,
    buckets: Vec<BalancedBucket>,
    classes: Vec<u32>,
    /// Buckets with unstarted work, cheapest first.
    active: BTreeSet<(u64, usize)>,
    active_of_class: BTreeMap<u32, BTreeSet<(u64, usize)>>,
    tried: u64,
}

impl<'a> Plan<'a> {
    fn new(
        forest: &'a Forest,
        places: &'a ForestIndex,
        waiting: &[Vec<Member>],
        max_buckets: NonZeroUsize,
    ) -> Self {
        let input = |member: &Member| places.input_of[member.0 as usize];
        let several =
            |members: &Vec<Member>| members.windows(2).any(|pair| input(&pair[0]) != input(&pair[1]));
        let mixed = places.of_input.len() > max_buckets.get() || waiting.iter().any(several);
        let mut plan = Self {
            ranked: RankedForest { forest, ranks: None },
            places,
            max_buckets: max_buckets.get(),
            mixed,
            buckets: Vec::new(),
            classes: Vec::new(),
            active: BTreeSet::new(),
            active_of_class: BTreeMap::new(),
            tried: 0,
        };
        for members in waiting {
            let mut heads: Vec<u32> =
                members.iter().map(|member| places.of_member[member.0 as usize]).collect();
            heads.sort_unstable();
            let class = members.first().map_or(0, |member| plan.class(*member));
            plan.open(BalancedBucket::of_branches(forest, &heads), class);
        }
        plan
    }

    fn class(&self, member: Member) -> u32 {
        if self.mixed { 0 } else { self.places.input_of[member.0 as usize] }
    }

    fn open(&mut self, bucket: BalancedBucket, class: u32) -> usize {
        self.buckets.push(bucket);
        self.classes.push(class);
        let number = self.buckets.len() - 1;
        self.activate(number);
        number
    }

    fn activate(&mut self, bucket: usize) {
        if self.buckets[bucket].leaves > 0 {
            let entry = (self.buckets[bucket].cost, bucket);
            self.active.insert(entry);
            self.active_of_class.entry(self.classes[bucket]).or_default().insert(entry);
        }
    }

    fn deactivate(&mut self, bucket: usize) {
        let entry = (self.buckets[bucket].cost, bucket);
        self.active.remove(&entry);
        if let Some(of_class) = self.active_of_class.get_mut(&self.classes[bucket]) {
            of_class.remove(&entry);
        }
    }

    fn cheapest_of(&self, class: u32) -> Option<usize> {
        Some(self.active_of_class.get(&class)?.first()?.1)
    }

    fn move_branch(&mut self, from: usize, to: usize, top: u32) {
        self.deactivate(from);
        let branch = self.buckets[from].take(self.ranked, top);
        self.activate(from);
        self.put(to, &branch);
    }

    fn put(&mut self, bucket: usize, branch: &[(u32, NodeShare)]) {
        self.deactivate(bucket);
        self.buckets[bucket].add_branch(self.ranked, branch);
        self.activate(bucket);
    }

    /// Dissolves the cheapest bucket that is not the last of its class.
    fn give_one_up(&mut self) {
        let of_class =
            |bucket: usize| self.active_of_class.get(&self.classes[bucket]).map_or(0, BTreeSet::len);
        let mut cheapest = self.active.iter().map(|(_, bucket)| *bucket);
        let Some(given_up) = cheapest.find(|bucket| of_class(*bucket) > 1) else { return };
        let class = self.classes[given_up];
        let pieces = self.pieces(given_up, of_class(given_up) - 1);
        for piece in pieces {
            // The dissolved bucket stays in its class until it is empty.
            let of_class = self.active_of_class.get(&class).into_iter().flatten().map(|(_, bucket)| *bucket);
            let Some(to) = of_class.into_iter().find(|bucket| *bucket != given_up) else { return };
            let top = self.buckets[given_up].top(self.ranked.forest, piece);
            self.move_branch(given_up, to, top);
        }
    }

    /// Splits a bucket into at least `at_least` branches, or all of its instances if fewer. Returns them most
    /// expensive first.
    fn pieces(&self, bucket: usize, at_least: usize) -> Vec<u32> {
        let (forest, bucket) = (self.ranked.forest, &self.buckets[bucket]);
        let mut branches = BinaryHeap::new();
        let mut pieces = Vec::new();
        let mut from = 0;
        while let Some((root, part)) = bucket.parts.range(from..).next() {
            branches.push((part.cost, std::cmp::Reverse(*root)));
            from = forest.end(*root);
        }
        while pieces.len() + branches.len() < at_least
            && let Some((cost, std::cmp::Reverse(node))) = branches.pop()
        {
            let children = bucket.children(forest, node);
            if children.is_empty() {
                pieces.push((cost, node));
            }
            branches.extend(
                children.into_iter().map(|child| (bucket.parts[&child].cost, std::cmp::Reverse(child))),
            );
        }
        pieces.extend(branches.into_iter().map(|(cost, std::cmp::Reverse(node))| (cost, node)));
        pieces.sort_unstable_by_key(|(cost, node)| (std::cmp::Reverse(*cost), *node));
        pieces.into_iter().map(|(_, node)| node).collect()
    }

    /// Assigns a bucket to each new instance.
    fn add(&mut self, members: impl ExactSizeIterator<Item = Member>) {
        if members.len() == 0 {
            return;
        }
        let forest = self.ranked.forest;
        // Maps each node to one bucket that has it. Input nodes are excluded: every bucket of an input has
        // its node.
        let mut having: HashMap<u32, usize> = HashMap::new();
        for (_, bucket) in &self.active {
            for node in self.buckets[*bucket].parts.keys().filter(|node| forest.parent(**node).is_some()) {
                having.entry(*node).or_insert(*bucket);
            }
        }
        for member in members {
            let leaf = self.places.of_member[member.0 as usize];
            let class = self.class(member);
            let alone = BalancedBucket::of_branches(forest, &[leaf]);
            let makespan = self.active.last().map_or(0, |(cost, _)| *cost);
            let with = |bucket: usize| {
                let bucket = &self.buckets[bucket];
                bucket.cost + bucket.added(forest, &alone, leaf)
            };
            // Skips a bucket that was dissolved in the meantime.
            let closest = forest.ancestors(leaf).find_map(|node| having.get(&node).copied());
            let closest = closest.filter(|bucket| self.buckets[*bucket].leaves > 0);
            let some = || [closest, self.cheapest_of(class)].into_iter().flatten();
            let bucket = match some().find(|bucket| with(*bucket) <= makespan) {
                Some(bucket) => bucket,
                None if self.active.len() < self.max_buckets => self.open(BalancedBucket::default(), class),
                None => match some().min_by_key(|bucket| with(*bucket)) {
                    Some(bucket) => bucket,
                    None => {
                        self.give_one_up();
                        self.open(BalancedBucket::default(), class)
                    }
                },
            };
            let cost = alone.parts[&leaf].cost;
            self.put(bucket, &[(leaf, NodeShare { leaves: 1, children: 0, cost })]);
            for node in forest.ancestors(leaf).filter(|node| forest.parent(*node).is_some()) {
                having.entry(node).or_insert(bucket);
            }
        }
    }

    /// Moves branches from the most expensive buckets to new ones, as long as that lowers the makespan.
    fn fill_new_buckets(&mut self) {
        // The loop ends once a new bucket is the most expensive: a move out of it would move a branch twice.
        let old = self.buckets.len();
        while let Some((_, big)) = self.active.last().copied().filter(|(_, bucket)| *bucket < old) {
            let class = self.classes[big];
            let small = if self.active.len() < self.max_buckets {
                self.open(BalancedBucket::default(), class)
            } else {
                let of_class = self.active_of_class.get(&class).into_iter().flatten();
                let Some((_, small)) = of_class.copied().find(|(_, bucket)| *bucket >= old) else { return };
                small
            };
            if !self.balance(big, small) {
                return;
            }
        }
    }

    /// Moves branches from the most expensive buckets to the cheapest ones of their class, as long as that lowers the
    /// makespan.
    fn even_out(&mut self) {
        // Ends: each move lowers the cost of a most expensive bucket, and raises no other to it.
        while let Some((_, big)) = self.active.last().copied() {
            let small = self.cheapest_of(self.classes[big]).filter(|small| *small != big);
            if !small.is_some_and(|small| self.balance(big, small)) {
                return;
            }
        }
    }

    /// Moves a branch between two buckets. Returns `false` if no move lowers the makespan.
    fn balance(&mut self, big: usize, small: usize) -> bool {
        let most_tried = max_tries(self.tried, self.ranked.forest.len() as u64);
        let Ok([dear, cheap]) = self.buckets.get_disjoint_mut([big, small]) else { return false };
        // The default search returns only moves that lower the makespan.
        let (found, tried) =
            SingleBalance::search(self.ranked, TrtmaOptions::default(), dear, cheap, most_tried);
        self.tried += tried;
        let Some(found) = found else { return false };
        self.move_branch(big, small, found.top);
        true
    }
}
