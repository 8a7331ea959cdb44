//! Selection of the tasks that get a key, and of the outputs that get a digest.

use crate::shapes::{stage, task};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{DeclaredCosts, KeyPolicy};
use pleach_workflow::{Stage, TaskInput};

/// A gray image of this size has 1.5 MB, whose digest takes 1 ms, and 1.02 ms with the key.
const PIXELS: u64 = 1_500_000;

/// Two tasks in a row, and the second one's output for other stages.
fn chain() -> Stage {
    let first = task("t1", &[], &[TaskInput::StageInput(0)], 1);
    let second = task("t2", &[], &[TaskInput::Task { task: 0, output: 0 }], 1);
    stage(0, 1, vec![first, second], &[(1, 0)])
}

fn policy(sharing: ReuseScope, tasks: [f64; 2], reader: Option<f64>, has_cache: bool) -> Option<KeyPolicy> {
    let costs = DeclaredCosts { tasks: tasks.to_vec(), readers: vec![reader.into_iter().collect()] };
    KeyPolicy::new(sharing, &chain(), &costs, PIXELS, has_cache)
}

#[test]
fn reuse_within_a_bucket_needs_no_key() {
    assert_eq!(policy(ReuseScope::Tree, [1.0, 1.0], Some(1.0), true), None);
}

#[test]
fn task_cheaper_than_its_lookup_gets_a_key_only_with_a_cache() {
    for sharing in [ReuseScope::Dataflow, ReuseScope::Value] {
        for (seconds, has_cache, is_keyed) in
            [(19e-6, false, false), (20e-6, false, false), (21e-6, false, true), (1e-6, true, true)]
        {
            let policy = policy(sharing, [seconds, 1.0], None, has_cache).unwrap();
            assert_eq!(policy.keyed, [is_keyed, true], "{sharing:?}: {seconds} s, cache {has_cache}");
        }
    }
}

#[test]
fn output_gets_a_digest_if_a_reader_costs_more_than_the_digest() {
    let digests = |sharing, second, reader| policy(sharing, [1.0, second], reader, false).unwrap().digests;
    let cases = [
        // Seconds of the second task, seconds of the reader in another stage, digests of both outputs.
        (1.01e-3, None, [false, false]),
        (1.03e-3, None, [true, false]),
        (1.01e-3, Some(1.01e-3), [false, false]),
        (1.01e-3, Some(1.03e-3), [false, true]),
        (1.03e-3, Some(1.03e-3), [true, true]),
    ];
    for (second, reader, [first_digest, second_digest]) in cases {
        let expected = vec![vec![first_digest], vec![second_digest]];
        assert_eq!(digests(ReuseScope::Value, second, reader), expected, "{second} s, reader {reader:?}");
        // Only reuse by value compares contents.
        assert_eq!(digests(ReuseScope::Dataflow, second, reader), vec![vec![false], vec![false]]);
    }
}
