//! Runs compared with a recount of all queued buckets after each random step.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Buckets of 1 to 3 positions on 2 stages and 3 tiles, one after the other.
fn all_buckets(sizes: &[u32]) -> Vec<(Rank, Span)> {
    let mut start = 0;
    let mut buckets = Vec::new();
    for (number, size) in (0u32..).zip(sizes) {
        let third = sizes.len() as u32 / 6 + 1;
        let (stage, tile) = ((number / (3 * third)) as usize, number / third % 3);
        let span = Span { stage, tile, start, end: start + size - 1 };
        buckets.push(((Reverse(stage), start, BucketId(number)), span));
        start += size;
    }
    buckets
}

/// All state without indexes.
#[derive(Default)]
struct Model {
    queued: BTreeMap<Rank, Span>,
    /// Last bucket of each worker and stage, the latest grant last.
    last: Vec<(WorkerId, Span)>,
    homes: BTreeMap<u32, WorkerId>,
}

impl Model {
    /// Returns the runs of a stage: buckets, and the claim to the run.
    fn runs(&self, stage: usize) -> Vec<(Vec<(Rank, Span)>, Class)> {
        let of_stage = self.queued.iter().filter(|(_, span)| span.stage == stage);
        let queued: Vec<(Rank, Span)> = of_stage.map(|(rank, span)| (*rank, *span)).collect();
        let joined = |a: &(Rank, Span), b: &(Rank, Span)| a.1.tile == b.1.tile && a.1.end + 1 == b.1.start;
        let class = |first: Span| {
            let ends =
                |span: &Span| (span.stage, span.tile, span.end + 1) == (stage, first.tile, first.start);
            match (self.last.iter().any(|(_, span)| ends(span)), self.homes.get(&first.tile)) {
                (true, _) => Class::Taken,
                (false, Some(home)) => Class::Home(*home),
                (false, None) => Class::Free,
            }
        };
        queued.chunk_by(joined).map(|run| (run.to_vec(), class(run[0].1))).collect()
    }

    fn next(&self, worker: WorkerId, stage: usize, idle: usize) -> Option<BucketId> {
        let last = self.last.iter().find(|(of, span)| *of == worker && span.stage == stage);
        let is_next = |span: &Span| {
            last.is_some_and(|(_, last)| {
                (last.stage, last.tile, last.end + 1) == (stage, span.tile, span.start)
            })
        };
        if let Some((rank, _)) = self.queued.iter().find(|(_, span)| is_next(span)) {
            return Some(rank.2);
        }
        let runs = self.runs(stage);
        let length = |run: &[(Rank, Span)]| run[run.len() - 1].1.end - run[0].1.start + 1;
        let longest = |class: Class| {
            let of_class = runs.iter().filter(|(_, of)| *of == class);
            of_class.min_by_key(|(run, _)| (Reverse(length(run)), run[0].0)).map(|(run, _)| run[0].0.2)
        };
        let share = |run: &[(Rank, Span)], class| length(run) / if class == Class::Taken { 2 } else { 1 };
        let stolen = || {
            let (run, class) =
                runs.iter().min_by_key(|(run, class)| (Reverse(share(run, *class)), run[0].0))?;
            let part = run[0].1.start + length(run) * idle as u32 / (idle as u32 + 1);
            let found = run.iter().rposition(|(_, span)| span.start <= part).unwrap_or(0);
            let found = if *class == Class::Taken { found.max(1).min(run.len() - 1) } else { 0 };
            Some(run[found].0.2)
        };
        longest(Class::Home(worker)).or_else(|| longest(Class::Free)).or_else(stolen)
    }
}

proptest! {
    #[test]
    fn next_bucket_equals_a_search_of_all_runs(
        sizes in vec(1_u32..4, 6..40),
        steps in vec((0_u32..10, 0_usize..40, 0_u32..4, 1_usize..5), 1..120),
    ) {
        let all = all_buckets(&sizes);
        let (mut runs, mut model) = (ReadyRuns::default(), Model::default());
        for (rank, span) in &all {
            runs.insert(*rank, *span);
            model.queued.insert(*rank, *span);
        }
        for (step, bucket, worker, idle) in steps {
            let (rank, span) = all[bucket % all.len()];
            let worker = WorkerId(worker);
            match step {
                0..=5 => {
                    // A grant of the next bucket.
                    let stage = usize::from(step % 2 == 1);
                    let next = runs.next(worker, stage, idle).map(|(bucket, _)| bucket);
                    prop_assert_eq!(next, model.next(worker, stage, idle));
                    let Some((rank, span)) = next.map(|next| all[next.index()]) else { continue };
                    runs.remove(rank);
                    model.queued.remove(&rank);
                    runs.begin(worker, span);
                    model.last.retain(|(of, last)| (*of, last.stage) != (worker, stage));
                    model.last.push((worker, span));
                    model.homes.entry(span.tile).or_insert(worker);
                }
                6..=7 => {
                    if model.queued.insert(rank, span).is_none() {
                        runs.insert(rank, span);
                    }
                }
                8 => {
                    prop_assert_eq!(runs.remove(rank), model.queued.remove(&rank));
                }
                _ => {
                    runs.remove_worker(worker);
                    model.last.retain(|(of, _)| *of != worker);
                    model.homes.retain(|_, home| *home != worker);
                }
            }
            prop_assert_eq!(runs.check(), Ok(()));
        }
    }
}
