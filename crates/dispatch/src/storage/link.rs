//! Measured links to other workers: predicted seconds of a transfer, from past transfers.

use pleach_reuse::TransferCost;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Weight of earlier transfers when the next one is measured.
const DECAY: f64 = 0.95;

/// Transfers before a link counts as measured.
const MIN_TRANSFERS: u32 = 4;

/// A region of more than this many times the bytes of the largest measured one has no expected time: the line would be drawn
/// too far, and small regions tell the latency only.
const MAX_RATIO: u64 = 4;

/// Maximum of links. Addresses of workers that left are among them, so all are forgotten then.
const MAX_LINKS: usize = 4096;

/// Latency and bandwidth of a link: a line through the measured transfers by least squares, recent ones first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkModel {
    transfers: u32,
    /// Bytes of the largest region.
    largest: u64,
    /// Decayed sums: weights, bytes, seconds, squared bytes, bytes times seconds.
    weight: f64,
    bytes: f64,
    seconds: f64,
    bytes_bytes: f64,
    bytes_seconds: f64,
}

impl LinkModel {
    /// Records a transfer.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub fn observe(&mut self, bytes: u64, time: Duration) {
        self.largest = self.largest.max(bytes);
        let (bytes, seconds) = (bytes as f64, time.as_secs_f64());
        self.transfers = self.transfers.saturating_add(1);
        let sums = [
            (&mut self.weight, 1.0),
            (&mut self.bytes, bytes),
            (&mut self.seconds, seconds),
            (&mut self.bytes_bytes, bytes * bytes),
            (&mut self.bytes_seconds, bytes * seconds),
        ];
        for (sum, term) in sums {
            *sum = *sum * DECAY + term;
        }
    }

    /// Returns latency and bandwidth, once enough transfers are measured.
    #[must_use]
    pub fn cost(&self) -> Option<TransferCost> {
        if self.transfers < MIN_TRANSFERS {
            return None;
        }
        let variance = self.weight * self.bytes_bytes - self.bytes * self.bytes;
        let slope = (self.weight * self.bytes_seconds - self.bytes * self.seconds) / variance;
        // Transfers of about one size do not tell latency from bandwidth.
        let is_spread = variance > 1e-3 * self.weight * self.bytes_bytes;
        let latency = (self.seconds - slope * self.bytes) / self.weight;
        Some(if is_spread && slope > 0.0 && latency >= 0.0 {
            TransferCost { bytes_per_second: slope.recip(), latency_seconds: latency }
        } else if is_spread && slope <= 0.0 {
            TransferCost { bytes_per_second: f64::INFINITY, latency_seconds: self.seconds / self.weight }
        } else {
            // An empty region would give a rate of zero.
            let bytes = self.bytes.max(self.weight);
            TransferCost { bytes_per_second: bytes / self.seconds, latency_seconds: 0.0 }
        })
    }
}

/// Links of a worker, by the address of the other.
#[derive(Clone, Debug, Default)]
pub struct Links {
    by_worker: HashMap<SocketAddr, LinkModel>,
    all: LinkModel,
}

impl Links {
    /// Records a transfer from another worker.
    pub fn observe(&mut self, from: SocketAddr, bytes: u64, time: Duration) {
        if self.by_worker.len() >= MAX_LINKS && !self.by_worker.contains_key(&from) {
            self.by_worker.clear();
        }
        self.by_worker.entry(from).or_default().observe(bytes, time);
        self.all.observe(bytes, time);
    }

    /// Returns latency and bandwidth over all links. `None` before enough transfers are measured.
    #[must_use]
    pub fn mean(&self) -> Option<TransferCost> {
        self.all.cost()
    }

    /// Returns the expected seconds to receive a region from one of these workers: the mean of their links. A link that is not
    /// measured counts as the mean of all links. Returns `None` before any link is measured, and for a region much larger than
    /// all before.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean of few links")]
    pub fn transfer_seconds(&self, holders: &[SocketAddr], bytes: u64) -> Option<f64> {
        let all = self.all.cost().filter(|_| bytes <= self.all.largest.saturating_mul(MAX_RATIO))?;
        let link = |holder| self.by_worker.get(holder).and_then(LinkModel::cost).unwrap_or(all);
        match holders {
            [] => Some(all.seconds(bytes)),
            _ => Some(
                holders.iter().map(|holder| link(holder).seconds(bytes)).sum::<f64>() / holders.len() as f64,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(transfers: &[(u64, f64)]) -> LinkModel {
        let mut model = LinkModel::default();
        transfers
            .iter()
            .for_each(|(bytes, seconds)| model.observe(*bytes, Duration::from_secs_f64(*seconds)));
        model
    }

    proptest! {
        /// A link without noise is found exactly, whatever the sizes.
        #[test]
        fn latency_and_bandwidth_are_found(
            sizes in prop::collection::vec(1_000_u64..50_000_000, 4..40),
            latency_ms in 0_u32..200,
            megabytes in 1_u32..1000,
        ) {
            let link = TransferCost {
                bytes_per_second: f64::from(megabytes) * 1e6,
                latency_seconds: f64::from(latency_ms) / 1e3,
            };
            let transfers: Vec<(u64, f64)> = sizes.iter().map(|bytes| (*bytes, link.seconds(*bytes))).collect();
            let found = model(&transfers).cost().expect("measured");
            for bytes in sizes {
                let (found, real) = (found.seconds(bytes), link.seconds(bytes));
                prop_assert!((found - real).abs() < real * 0.1 + 1e-3, "{} and {}", found, real);
            }
        }

        /// Whatever was measured, a transfer takes a time.
        #[test]
        fn seconds_are_finite(
            transfers in prop::collection::vec((0_u64..1_000_000, 1e-6_f64..10.0), 4..20),
            bytes in 0_u64..1_000_000_000,
        ) {
            let seconds = model(&transfers).cost().expect("measured").seconds(bytes);
            prop_assert!(seconds.is_finite() && seconds >= 0.0, "{}", seconds);
        }
    }

    #[test]
    fn few_transfers_are_no_measure() {
        assert_eq!(model(&[(1, 1.0), (2, 1.0), (3, 1.0)]).cost(), None);
    }

    #[test]
    fn small_regions_do_not_measure_large_ones() {
        let near = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut links = Links::default();
        (0..20).for_each(|_| links.observe(near, 2000, Duration::from_millis(1)));
        assert!(links.transfer_seconds(&[near], 8000).is_some());
        assert_eq!(links.transfer_seconds(&[near], 8001), None);
        links.observe(near, 1 << 24, Duration::from_millis(14));
        assert!(links.transfer_seconds(&[near], 1 << 24).unwrap() < 0.05);
    }

    #[test]
    fn unmeasured_link_counts_as_the_mean() {
        let (near, far) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
        let mut links = Links::default();
        assert_eq!(links.transfer_seconds(&[near], 1000), None);
        (0..20).for_each(|_| links.observe(near, 1000, Duration::from_millis(1)));
        let seconds = |holders: &[SocketAddr]| links.transfer_seconds(holders, 1000).unwrap();
        assert!((seconds(&[near]) - 0.001).abs() < 1e-9);
        assert!((seconds(&[far]) - 0.001).abs() < 1e-9);
        let mut links = links.clone();
        (0..20).for_each(|_| links.observe(far, 1000, Duration::from_millis(101)));
        let seconds = |holders: &[SocketAddr]| links.transfer_seconds(holders, 1000).unwrap();
        assert!((seconds(&[far]) - 0.101).abs() < 1e-6);
        assert!((seconds(&[near, far]) - 0.051).abs() < 1e-6);
    }
}
