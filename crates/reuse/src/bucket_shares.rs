//! Divides a limit of buckets among the inputs of a problem.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Instances of one input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputLoad {
    /// Sum of their costs. Not negative.
    pub(crate) cost: f64,
    /// Their number.
    pub(crate) instances: usize,
}

/// Returns how many of `max_buckets` buckets each input gets, at least one. Each further bucket goes to the
/// input with the most expensive buckets on average. No input gets more buckets than instances. `None` if
/// there are fewer buckets than inputs.
pub(crate) fn bucket_shares(inputs: &[InputLoad], max_buckets: usize) -> Option<Vec<usize>> {
    let mut left = max_buckets.checked_sub(inputs.len())?;
    let mut shares = vec![1; inputs.len()];
    // Costs are not negative, so their bits have the order of the numbers. The sum turns -0 into 0.
    let entry = |input: usize, share: usize| {
        let mean = (inputs[input].cost + 0.0) / share as f64;
        (mean.to_bits(), Reverse(share), Reverse(input))
    };
    let mut dearest: BinaryHeap<_> = (0..inputs.len()).map(|input| entry(input, 1)).collect();
    while left > 0
        && let Some((_, Reverse(share), Reverse(input))) = dearest.pop()
    {
        // An input with one bucket per instance leaves the heap: a further bucket would be empty.
        if share < inputs[input].instances {
            shares[input] += 1;
            left -= 1;
            dearest.push(entry(input, share + 1));
        }
    }
    Some(shares)
}
