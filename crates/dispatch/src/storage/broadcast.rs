//! Distribution of one region to many receivers: a receiver sends the region on.
//!
//! All readers of a result request it at once, from its only holder. The holder sends it to two of them at a time and has
//! the others wait. A receiver that has the region takes half of those that still wait, and does likewise: the number of
//! holders doubles with each transfer, so `n` receivers take about log2 `n` transfers instead of `n` (binomial broadcast). A
//! redirected receiver that does not get the region asks the holder again.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Transfers of one region at a time. The second one uses the network while the first is acknowledged.
const MAX_SENDS: usize = 2;

/// Receivers to continue with after a transfer.
#[derive(Debug, PartialEq, Eq)]
pub struct Continuation<R> {
    /// The next receiver of this holder.
    pub send: Option<R>,
    /// Receivers that request the region from the one that has just received it.
    pub redirect: Vec<R>,
}

#[derive(Debug)]
struct Sends<R> {
    running: usize,
    waiting: VecDeque<R>,
}

/// Transfers of a holder's regions, by region. An entry exists while a transfer runs.
#[derive(Debug)]
pub struct Broadcasts<K, R> {
    regions: HashMap<K, Sends<R>>,
}

impl<K, R> Default for Broadcasts<K, R> {
    fn default() -> Self {
        Self { regions: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash + Ord, R> Broadcasts<K, R> {
    /// Adds a request. Returns the receiver if the transfer begins now. Call [`end`](Self::end) after it.
    pub fn begin(&mut self, region: K, receiver: R) -> Option<R> {
        let sends = self.regions.entry(region).or_insert(Sends { running: 0, waiting: VecDeque::new() });
        if sends.running < MAX_SENDS {
            sends.running += 1;
            return Some(receiver);
        }
        sends.waiting.push_back(receiver);
        None
    }

    /// Ends a transfer. `is_received` allows redirections to its receiver. The returned next transfer has begun.
    ///
    /// # Panics
    /// If no transfer of the region runs.
    pub fn end(&mut self, region: K, is_received: bool) -> Continuation<R> {
        let sends = self.regions.get_mut(&region).filter(|sends| sends.running > 0);
        assert!(sends.is_some(), "a transfer ends, and none runs");
        let Some(sends) = sends else { return Continuation { send: None, redirect: Vec::new() } };
        let kept = if is_received { sends.waiting.len().div_ceil(2) } else { sends.waiting.len() };
        let redirect = sends.waiting.split_off(kept).into();
        let send = sends.waiting.pop_front();
        if send.is_none() {
            sends.running -= 1;
            if sends.running == 0 {
                self.regions.remove(&region);
            }
        }
        Continuation { send, redirect }
    }

    /// Removes all requests that wait, in the order of regions.
    pub fn take_waiting(&mut self) -> Vec<R> {
        let mut regions: Vec<K> = self.regions.keys().copied().collect();
        // Sorted, because the order of a hash map differs from run to run.
        regions.sort_unstable();
        let mut waiting = Vec::new();
        for region in regions {
            waiting
                .extend(self.regions.get_mut(&region).into_iter().flat_map(|sends| sends.waiting.drain(..)));
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_double_with_each_transfer() {
        // One network interface sends one region at a time.
        let receivers = 62;
        let mut holders: Vec<Broadcasts<u8, usize>> = vec![Broadcasts::default()];
        let mut sends: Vec<VecDeque<usize>> = vec![VecDeque::new()];
        (0..receivers).for_each(|receiver| sends[0].extend(holders[0].begin(0, receiver)));
        let (mut received, mut rounds) = (0, 0);
        while received < receivers {
            rounds += 1;
            for holder in 0..holders.len() {
                let Some(_) = sends[holder].pop_front() else { continue };
                received += 1;
                let Continuation { send, redirect } = holders[holder].end(0, true);
                sends[holder].extend(send);
                let mut new = Broadcasts::default();
                sends.push(redirect.into_iter().filter_map(|receiver| new.begin(0, receiver)).collect());
                holders.push(new);
            }
            assert!(rounds <= 8, "{received} of {receivers} after {rounds} rounds");
        }
    }

    #[test]
    fn failed_transfer_redirects_no_receiver() {
        let mut holder: Broadcasts<u8, u32> = Broadcasts::default();
        assert_eq!((holder.begin(0, 1), holder.begin(0, 2)), (Some(1), Some(2)));
        assert_eq!((holder.begin(0, 3), holder.begin(0, 4)), (None, None));
        // Another region does not wait.
        assert_eq!(holder.begin(1, 5), Some(5));
        assert_eq!(holder.end(0, false), Continuation { send: Some(3), redirect: Vec::new() });
        assert_eq!(holder.end(0, true), Continuation { send: Some(4), redirect: Vec::new() });
        assert_eq!(holder.end(0, true), Continuation { send: None, redirect: Vec::new() });
        assert_eq!(holder.end(0, true), Continuation { send: None, redirect: Vec::new() });
        assert_eq!(holder.end(1, true), Continuation { send: None, redirect: Vec::new() });
        assert!(holder.regions.is_empty());
    }
}
