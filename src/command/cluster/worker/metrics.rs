//! Samples the metrics of a worker for each scrape: slots, memory, tiers and links.
//!
//! Events are counted where they happen. This module samples only states. The catalog has names and meanings.

use actix::prelude::*;
use pleach_actors::directory::DirectoryMetrics;
use pleach_actors::exchange::Exchange;
use pleach_actors::spill::SpillStore;
use pleach_actors::transport::LinkStats;
use pleach_actors::worker::{GetWorkerMetrics, WorkerActor, WorkerMetrics};
use pleach_cache::Cache;
use pleach_regions::RamTier;
use pleach_server::service::metrics::{number, sample_link};
use pleach_storage::LevelStats;
use pleach_telemetry::catalog as of;
use std::sync::Arc;

/// Sources of a worker's sampled metrics.
pub(super) struct WorkerSampler {
    pub(super) worker: Addr<WorkerActor>,
    pub(super) ram: Arc<RamTier>,
    pub(super) spill: Option<Arc<SpillStore>>,
    pub(super) exchange: Exchange,
    pub(super) cache: Option<Arc<Cache>>,
}

impl WorkerSampler {
    /// Queries the worker actor. `None` if it has left.
    pub(super) async fn query(&self) -> Option<WorkerMetrics> {
        self.worker.send(GetWorkerMetrics).await.ok()
    }

    /// Sets the sampled metrics.
    pub(super) fn record(&self, figures: &WorkerMetrics) {
        let flag = |is: bool| f64::from(u8::from(is));
        of::MANAGER_CONNECTED.with([]).set(flag(figures.is_connected));
        of::DRAINING.with([]).set(flag(figures.is_draining));
        of::TASK_SLOTS.with([]).set(number(figures.slots.0 as u64));
        of::TASKS_RUNNING.with([]).set(number(figures.slots.1 as u64));
        for (state, buckets, instances) in [
            ("waiting", figures.buckets.0, figures.instances.0),
            ("running", figures.buckets.1, figures.instances.1),
        ] {
            of::WORKER_BUCKETS.with([state]).set(number(buckets as u64));
            of::WORKER_INSTANCES.with([state]).set(number(instances as u64));
        }
        of::MEMORY_LIMIT.with([]).set(number(figures.limit_bytes));
        of::MEMORY_NEEDED.with([]).set(number(figures.needed_bytes));
        of::MEMORY_PEAK.with([]).set(number(figures.peak_bytes));
        sample_accelerators(figures);
        self.sample_tiers(figures);
        self.sample_links(figures.link);
        sample_directory(&figures.directory);
        if let Some(cache) = &self.cache {
            let counts = cache.counters();
            of::CACHE_LOOKUPS.with(["found"]).absolute(counts.hits);
            of::CACHE_LOOKUPS.with(["missing"]).absolute(counts.misses);
            of::CACHE_STORED.with([]).absolute(counts.stored);
            of::CACHE_QUOTA_EVICTED.with([]).absolute(counts.quota_evicted_bytes);
        }
    }

    fn sample_tiers(&self, figures: &WorkerMetrics) {
        let passed = self.spill.as_ref().map(|below| below.passed()).unwrap_or_default();
        of::TIER_HELD.with(["ram"]).set(number(self.ram.held_bytes()));
        of::TIER_CAPACITY.with(["ram"]).set(number(figures.limit_bytes));
        of::TIER_REGIONS.with(["ram"]).set(number(self.ram.len() as u64));
        of::TIER_AVAILABLE.with(["ram"]).set(1.0);
        of::TIER_HITS.with(["ram"]).absolute(figures.ram.hits);
        of::TIER_MISSES.with(["ram"]).absolute(figures.ram.misses);
        of::TIER_SPILLS.with(["ram"]).absolute(passed.demoted);
        of::TIER_EVICTIONS.with(["ram"]).absolute(passed.dropped);
        for (name, bytes) in [
            ("dropped", passed.dropped_bytes),
            ("demoted", passed.demoted_bytes),
            ("promoted", passed.promoted_bytes),
            ("shared", passed.shared_bytes),
        ] {
            of::MOVED_BYTES.with([name]).absolute(bytes);
        }
        for level in self.spill.as_ref().map(|below| below.counts()).unwrap_or_default() {
            let LevelStats { ref name, held_bytes, capacity_bytes, regions, .. } = level;
            let tier = name.as_str();
            of::TIER_HELD.with([tier]).set(number(held_bytes));
            of::TIER_CAPACITY.with([tier]).set(number(capacity_bytes));
            of::TIER_REGIONS.with([tier]).set(number(regions));
            of::TIER_AVAILABLE.with([tier]).set(f64::from(u8::from(level.is_available)));
            of::TIER_HITS.with([tier]).absolute(level.hits);
            of::TIER_MISSES.with([tier]).absolute(level.misses);
            of::TIER_STORED.with([tier]).absolute(level.inserted);
            of::TIER_SPILLS.with([tier]).absolute(level.spilled);
            of::TIER_EVICTIONS.with([tier]).absolute(level.evicted);
            of::TIER_PREFETCHES.with([tier]).absolute(level.prefetched);
            of::TIER_LOST.with([tier]).absolute(level.lost);
            of::TIER_ERRORS.with([tier]).absolute(level.errors);
        }
    }

    fn sample_links(&self, manager: Option<LinkStats>) {
        let counts = self.exchange.counts();
        for (direction, all, shared, bytes) in [
            ("in", counts.fetched, counts.fetched_shared, counts.fetched_bytes),
            ("out", counts.sent, counts.sent_shared, counts.sent_bytes),
        ] {
            of::TRANSFERS.with([direction, "shared-memory"]).absolute(shared);
            of::TRANSFERS.with([direction, "network"]).absolute(all.saturating_sub(shared));
            of::TRANSFER_BYTES.with([direction]).absolute(bytes);
        }
        of::DIRECTORY_RECOMPUTED.with([]).absolute(counts.recomputed);
        let neighbors = self.exchange.peers();
        of::QUIC_CONNECTIONS.with([]).set(number(neighbors as u64 + u64::from(manager.is_some())));
        if let Some(manager) = manager {
            sample_link("manager", &manager);
        }
        sample_link("workers", &self.exchange.link_figures());
    }
}

fn sample_accelerators(WorkerMetrics { slots, accelerators, .. }: &WorkerMetrics) {
    let (cores, device) = accelerators.running;
    let open = accelerators.slots - accelerators.closed;
    for (kind, state, slots) in [
        ("core", "idle", slots.0.saturating_sub(cores)),
        ("core", "running", cores),
        ("core", "closed", 0),
        ("accelerator", "idle", open.saturating_sub(device)),
        ("accelerator", "running", device),
        ("accelerator", "closed", accelerators.closed),
    ] {
        of::DEVICE_SLOTS.with([kind, state]).set(number(slots as u64));
    }
    for (name, used_bytes, limit_bytes) in &accelerators.devices {
        of::DEVICE_MEMORY.with([name]).set(number(*used_bytes));
        of::DEVICE_MEMORY_LIMIT.with([name]).set(number(*limit_bytes));
    }
    let (uploaded, used) = accelerators.prefetched_bytes;
    of::DEVICE_PREFETCHED.with([]).absolute(uploaded);
    of::DEVICE_PREFETCH_USED.with([]).absolute(used);
    for (operation, gain) in &accelerators.gains {
        of::DEVICE_GAIN.with([operation]).set(*gain);
    }
}

fn sample_directory(directory: &DirectoryMetrics) {
    let stats = directory.stats;
    for (answer, count) in
        [("found", stats.found), ("claimed", stats.claimed), ("unanswered", stats.unanswered)]
    {
        of::DIRECTORY_LOOKUPS.with([answer]).absolute(count);
    }
    of::DIRECTORY_WAITS.with([]).absolute(stats.waited);
    of::DIRECTORY_EXPIRED.with([]).absolute(stats.expired);
    of::DIRECTORY_REJECTED.with([]).absolute(stats.rejected);
    for (cause, count) in [
        ("claim", stats.unclaimed),
        ("content", stats.differing),
        ("identity", stats.misnamed),
        ("sender", stats.impersonated),
    ] {
        of::DIRECTORY_REFUSED.with([cause]).absolute(count);
    }
    of::DIRECTORY_ENTRIES.with([]).set(number(directory.entries as u64));
    of::DIRECTORY_MEMBERS.with([]).set(number(directory.members as u64));
}
