//! Expected time to read the inputs of a bucket, by the tier of the copy that a worker would read.
//!
//! A region in the worker's memory costs nothing. A spilled one costs a read from its tier. A region of another worker costs the
//! transfer over the link, after a read from the tier that it is in there, or a read of the shared tier where that has a copy and
//! is faster. Workers measure both. Until then, the stated rates count, without latencies. Tiers of other workers count as fast as
//! the reader's own of the kind.

use super::TransferCost;
use crate::WorkerId;
use pleach_workflow::TierKind;

/// 500 MB/s: sequential reads of a solid-state disk on SATA III, whose link limits it to 550 MB/s.
const SSD_BYTES_PER_SECOND: f64 = 5e8;

/// 150 MB/s: sequential reads of a disk with 7,200 revolutions a minute, averaged over its tracks.
const HDD_BYTES_PER_SECOND: f64 = 1.5e8;

/// 250 MB/s: one client that reads a file of one stripe, whose server has a few rotating disks.
const LUSTRE_BYTES_PER_SECOND: f64 = 2.5e8;

/// 90 MB/s for one request, by the guide to the performance of Amazon S3 (85 to 90 MB/s).
const S3_BYTES_PER_SECOND: f64 = 9e7;

/// 1 Gbit/s: the slowest usual network of a cluster. An unmeasured link is then slower than a worker's own disks.
const LINK_BYTES_PER_SECOND: f64 = 1.25e8;

/// Rates at which one worker reads regions, measured or stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadRates {
    link: TransferCost,
    /// Costs of reads, in the order of [`TierKind::ALL`].
    tiers: [TransferCost; TierKind::ALL.len()],
    /// Kind of the tier that all workers share.
    shared: TierKind,
}

impl Default for ReadRates {
    /// Returns the stated rates.
    fn default() -> Self {
        let rate = |bytes_per_second| TransferCost { bytes_per_second, latency_seconds: 0.0 };
        let tiers =
            [SSD_BYTES_PER_SECOND, HDD_BYTES_PER_SECOND, LUSTRE_BYTES_PER_SECOND, S3_BYTES_PER_SECOND];
        Self { link: rate(LINK_BYTES_PER_SECOND), tiers: tiers.map(rate), shared: TierKind::Lustre }
    }
}

impl ReadRates {
    /// Sets the measured cost of transfers from other workers.
    pub fn set_link(&mut self, cost: TransferCost) {
        self.link = cost;
    }

    /// Sets the measured cost of reads from a tier. Ignores costs that no tier has.
    pub fn set_tier(&mut self, kind: TierKind, cost: TransferCost) {
        // The rate of a tier whose time does not depend on the bytes is infinite. Without latency as well, it would be memory.
        let is_time = cost.latency_seconds.is_finite() && cost.latency_seconds >= 0.0;
        if is_time && cost.bytes_per_second > 0.0 && cost != TransferCost::FREE {
            self.tiers[kind as usize] = cost;
            if matches!(kind, TierKind::Lustre | TierKind::S3) {
                self.shared = kind;
            }
        }
    }

    /// Returns the seconds to read a region of `bytes`.
    fn seconds(&self, source: ReadSource, bytes: u64) -> f64 {
        let tier = |kind: TierKind| self.tiers[kind as usize].seconds(bytes);
        match source {
            ReadSource::Local(None) => 0.0,
            ReadSource::Local(Some(kind)) => tier(kind),
            ReadSource::Remote { worker, shared } => {
                let read = |copy: RemoteCopy| copy.tier.map_or(0.0, tier) + self.link.seconds(bytes);
                let from_worker = worker.map_or(f64::INFINITY, read);
                if shared { from_worker.min(tier(self.shared)) } else { from_worker }
            }
        }
    }
}

/// Copy of a region on another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteCopy {
    /// Kind of the spill tier that it is in. `None` for memory.
    pub tier: Option<TierKind>,
}

/// Copy of a region that a worker would read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadSource {
    /// Its own, in memory or in a spill tier of this kind.
    Local(Option<TierKind>),
    /// That of another worker, that in a shared tier, or the faster of both.
    Remote {
        /// The fastest copy of other workers.
        worker: Option<RemoteCopy>,
        /// Whether a shared tier has a copy.
        shared: bool,
    },
}

/// Place of a copy, from the fastest to the slowest as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPlace {
    /// The reader's memory.
    Memory,
    /// A disk of the reader.
    Disk,
    /// A tier that all workers share.
    Shared,
    /// Another worker.
    Worker,
}

impl CopyPlace {
    /// All places.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Disk, Self::Shared, Self::Worker];

    /// Returns its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Shared => "shared",
            Self::Worker => "worker",
        }
    }
}

impl ReadSource {
    /// Returns the place. A region that another worker and a shared tier have counts as that worker's.
    #[must_use]
    pub fn place(self) -> CopyPlace {
        match self {
            Self::Local(None) => CopyPlace::Memory,
            Self::Local(Some(TierKind::Ssd | TierKind::Hdd)) => CopyPlace::Disk,
            Self::Local(Some(TierKind::Lustre | TierKind::S3)) | Self::Remote { worker: None, .. } => {
                CopyPlace::Shared
            }
            Self::Remote { worker: Some(_), .. } => CopyPlace::Worker,
        }
    }
}

/// Worker that would read the inputs of a bucket.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The worker.
    pub worker: WorkerId,
    /// Its rates.
    pub rates: &'a ReadRates,
}

/// Expected cost of reading regions. Costs are compared by their time, and those of one time by the bytes from other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadCost {
    /// An integer, so that costs have a total order.
    nanoseconds: u64,
    remote_bytes: u64,
}

impl ReadCost {
    /// Nothing to read.
    pub const NONE: Self = Self { nanoseconds: 0, remote_bytes: 0 };
    /// More than any other cost.
    pub const MAX: Self = Self { nanoseconds: u64::MAX, remote_bytes: u64::MAX };

    /// Adds a region.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is positive")]
    pub fn add(&mut self, source: ReadSource, bytes: u64, rates: &ReadRates) {
        let nanoseconds = (rates.seconds(source, bytes) * 1e9) as u64;
        self.nanoseconds = self.nanoseconds.saturating_add(nanoseconds);
        if matches!(source, ReadSource::Remote { .. }) {
            self.remote_bytes = self.remote_bytes.saturating_add(bytes);
        }
    }

    /// Returns whether no region comes from another node.
    #[must_use]
    pub fn is_local(self) -> bool {
        self.remote_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Option<RemoteCopy> = Some(RemoteCopy { tier: None });

    fn cost(source: ReadSource, rates: &ReadRates) -> ReadCost {
        let mut cost = ReadCost::default();
        cost.add(source, 1_000_000, rates);
        cost
    }

    #[test]
    fn slower_copies_cost_more() {
        let rates = ReadRates::default();
        let own = |kind| ReadSource::Local(Some(kind));
        let of = |tier: Option<TierKind>| Some(RemoteCopy { tier });
        let remote = |worker, shared| ReadSource::Remote { worker, shared };
        let sources = [
            ReadSource::Local(None),
            own(TierKind::Ssd),
            own(TierKind::Lustre),
            remote(of(None), true),
            own(TierKind::Hdd),
            remote(of(None), false),
            remote(of(Some(TierKind::Ssd)), false),
            own(TierKind::S3),
            remote(of(Some(TierKind::Hdd)), false),
        ];
        assert!(sources.is_sorted_by_key(|source| cost(*source, &rates)));
        assert_eq!(cost(ReadSource::Local(None), &rates), ReadCost::NONE);
        assert_eq!(cost(own(TierKind::Ssd), &rates).nanoseconds, 2_000_000);
    }

    #[test]
    fn measured_rates_replace_the_stated_ones() {
        let mut rates = ReadRates::default();
        let (ssd, remote) =
            (ReadSource::Local(Some(TierKind::Ssd)), ReadSource::Remote { worker: MEMORY, shared: false });
        assert!(cost(ssd, &rates) < cost(remote, &rates));
        rates.set_link(TransferCost { bytes_per_second: 3e9, latency_seconds: 1e-4 });
        assert!(cost(remote, &rates) < cost(ssd, &rates));
        // Transfers that take no time still cost their bytes.
        rates.set_link(TransferCost::FREE);
        assert!(cost(remote, &rates) > cost(ReadSource::Local(None), &rates));
        let read = |bytes_per_second, latency_seconds| TransferCost { bytes_per_second, latency_seconds };
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            rates.set_tier(TierKind::Ssd, read(wrong, 0.0));
        }
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            rates.set_tier(TierKind::Ssd, read(1e9, wrong));
        }
        assert_eq!(cost(ssd, &rates).nanoseconds, 2_000_000);
        rates.set_tier(TierKind::Ssd, read(f64::INFINITY, 0.01));
        assert_eq!(cost(ssd, &rates).nanoseconds, 10_000_000);
        rates.set_tier(TierKind::S3, read(1e9, 0.0));
        let shared = ReadSource::Remote { worker: None, shared: true };
        assert_eq!(cost(shared, &rates).nanoseconds, 1_000_000);
    }
}
