//! The catalog of all metrics.
//!
//! Names follow Prometheus' conventions: base units, and `_total` for counters. Names of process metrics are those of
//! Prometheus' client libraries. A label either has few values, or its series end with the object that it names: a study
//! (by number), or a worker (by name) when it leaves. The only label from users is the name of a study, in one metric.
//! Operations are those linked into a worker.

use crate::family::{
    Counter, Family, Gauge, Histogram, HistogramBuckets, Kind, ProcessRole, SeriesLifetime, Unit,
};

/// Declares metrics and lists them.
macro_rules! catalog {
    (@buckets) => { HistogramBuckets::None };
    (@buckets $buckets:ident) => { HistogramBuckets::$buckets };
    ($(
        $kind:ident $id:ident = $name:literal $([$($label:literal),+])?, $unit:ident $role:ident $life:ident $($buckets:ident)?:
        $help:literal;
    )*) => {
        $(
            #[doc = $help]
            pub static $id: $kind<{ <[&str]>::len(&[$($($label),+)?]) }> = $kind(Family {
                name: $name,
                kind: Kind::$kind,
                unit: Unit::$unit,
                labels: &[$($($label),+)?],
                role: ProcessRole::$role,
                life: SeriesLifetime::$life,
                buckets: catalog!(@buckets $($buckets)?),
                help: $help,
            });
        )*

        /// All metrics, in the order of the reference.
        pub static ALL: &[&Family] = &[$(&$id.0),*];
    };
}

catalog! {
    Gauge BUILD_INFO = "pleach_build_info" ["version", "role"], Count Both Recorded:
        "Constant 1, labeled with the version and the role of the process.";
    Gauge CERTIFICATE_EXPIRY = "pleach_certificate_expiry_timestamp_seconds" ["certificate"], Seconds Both Recorded:
        "End of a certificate's validity in seconds since 1970, for the certificates of the process (node) and of its \
         cluster (authority).";
    Counter PROCESS_CPU = "process_cpu_seconds_total", Seconds Both Process:
        "User and system CPU time of the process.";
    Gauge PROCESS_RESIDENT = "process_resident_memory_bytes", Bytes Both Process:
        "Resident memory of the process.";
    Gauge PROCESS_OPEN_FDS = "process_open_fds", Count Both Process:
        "Open file descriptors of the process.";
    Gauge PROCESS_MAX_FDS = "process_max_fds", Count Both Process:
        "Limit of open file descriptors, absent without a limit.";
    Gauge PROCESS_START = "process_start_time_seconds", Seconds Both Process:
        "Start of the process in seconds since 1970.";

    Counter HTTP_REQUESTS = "pleach_http_requests_total" ["method", "route", "status"], Count Manager Recorded:
        "Answered API requests, by path pattern and response status.";
    Histogram HTTP_SECONDS = "pleach_http_request_duration_seconds" ["method", "route"], Seconds Manager Recorded Short:
        "Time from the request head to the response head.";
    Gauge HTTP_IN_FLIGHT = "pleach_http_requests_in_flight", Count Manager Recorded:
        "API requests in progress.";

    Gauge STUDIES = "pleach_studies" ["state"], Count Manager Sampled:
        "Studies of the manager, by state: waiting for input files, queued, running, complete, canceled or failed.";
    Gauge STUDY_INFO = "pleach_study_info" ["study", "name"], Count Manager Sampled:
        "Constant 1 for each open study, labeled with its number and its name.";
    Gauge STUDY_AGE = "pleach_study_age_seconds" ["study"], Seconds Manager Sampled:
        "Time since this manager process started the study.";
    Gauge STUDY_EVALUATIONS = "pleach_study_evaluations" ["study"], Count Manager Sampled:
        "Evaluations of the study.";
    Gauge STUDY_EVALUATIONS_DONE = "pleach_study_evaluations_done" ["study"], Count Manager Sampled:
        "Evaluations with every run either failed or on disk.";
    Gauge STUDY_RUNS_FAILED = "pleach_study_runs_failed" ["study"], Count Manager Sampled:
        "Failed runs (one evaluation on one tile).";
    Gauge STUDY_TASKS_LEFT = "pleach_study_tasks_remaining" ["study"], Count Manager Sampled:
        "Tasks to execute if none fails and none is reused.";
    Counter STUDY_TASKS_EXECUTED = "pleach_study_tasks_executed_total" ["study"], Count Manager Sampled:
        "Tasks of the study that workers executed.";
    Counter STUDY_TASKS_REUSED = "pleach_study_tasks_reused_total" ["study", "level"], Count Manager Sampled:
        "Tasks that reuse saved in the study's current round, by level: stage and tree, final after planning, and dataflow, \
         value, cache and earlier_round, which grow during execution.";
    Gauge STUDY_DEADLINE = "pleach_study_deadline_timestamp_seconds" ["study"], Seconds Manager Sampled:
        "Deadline of the study in seconds since 1970, absent for studies without a deadline.";
    Gauge STUDY_DEADLINE_MARGIN = "pleach_study_deadline_margin_seconds" ["study"], Seconds Manager Sampled:
        "Time between the predicted end of a running study and its deadline, on the active workers with equal shares for \
         all running studies: negative if the study will be late, -Inf without workers.";
    Gauge PREDICTED_SECONDS_LEFT = "pleach_study_remaining_seconds" ["study"], Seconds Manager Sampled:
        "Predicted remaining time if the study gets all slots, from the measured time of its instances: absent until an \
         instance of every open stage has finished.";
    Gauge PREDICTED_COST = "pleach_predicted_cost", Money Manager Sampled:
        "Predicted cost of the desired workers until all studies are complete, in the currency of the pool prices, absent \
         without pools.";
    Gauge STUDY_COST = "pleach_study_cost" ["study"], Money Manager Sampled:
        "Cost of the study's workers and egress so far, in the currency of the pool prices, absent without pools.";
    Gauge STUDIES_COST = "pleach_studies_cost" ["pool", "part"], Money Manager Sampled:
        "Cost of all studies since the manager started, by part: workers, from their request, or egress.";
    Gauge INSTANCES = "pleach_instances" ["study", "state"], Count Manager Sampled:
        "Stage instances of the study, by state: waiting for other instances, ready, leased (running or not, see \
         pleach_worker_instances), finished or failed.";
    Gauge BUCKETS = "pleach_buckets" ["study", "state"], Count Manager Sampled:
        "Buckets of the study, by state: ready for a worker, or leased, counted once per lease.";

    Counter TASKS_EXECUTED = "pleach_tasks_executed_total", Count Manager Recorded:
        "Tasks of all studies that workers executed.";
    Counter TASKS_REUSED = "pleach_tasks_reused_total" ["level"], Count Manager Recorded:
        "Tasks of all studies that workers skipped because their outputs existed, by level: dataflow, value, cache or \
         earlier_round.";
    Counter INSTANCES_FINISHED = "pleach_instances_finished_total", Count Manager Recorded:
        "Stage instances that workers finished.";
    Counter INSTANCES_FAILED = "pleach_instances_failed_total", Count Manager Recorded:
        "Stage instances that failed, including those that depend on a failed instance.";
    Counter INSTANCES_REOPENED = "pleach_instances_reopened_total", Count Manager Recorded:
        "Finished stage instances to execute again, because their stored outputs are lost and an open instance reads them.";
    Histogram BUCKET_WAIT = "pleach_bucket_wait_seconds", Seconds Manager Recorded Wait:
        "Time from a bucket being ready to its lease, with a resolution of 0.1 s.";
    Counter GRANTED_INPUT_BYTES = "pleach_granted_input_bytes_total" ["place"], Bytes Manager Recorded:
        "Bytes of the stored inputs of leased buckets, by the place of the copy that the worker reads: its memory, its disk, \
         a shared tier, or another worker.";
    Histogram BUCKET_OVERHEAD = "pleach_bucket_overhead_seconds", Seconds Manager Recorded Wait:
        "Time of a bucket on its slot before its first task, from the lease to the first report, without transfers of inputs.";
    Counter REPLANS = "pleach_replans_total" ["cause"], Count Manager Recorded:
        "Replans of studies, by cause: workers (they join or leave) or costs (measured costs need other buckets).";
    Counter REPLANNED_INSTANCES = "pleach_replanned_instances_total", Count Manager Recorded:
        "Stage instances in buckets that a replan rebuilt.";
    Histogram JOURNAL_COMMIT = "pleach_journal_commit_seconds", Seconds Manager Recorded Short:
        "Time to write a group of responses to a study's journal and fsync it.";
    Counter JOURNAL_RECORDS = "pleach_journal_records_total", Count Manager Recorded:
        "Responses written to disk.";
    Gauge STATE_DISK_FREE = "pleach_state_disk_free_bytes", Bytes Manager Sampled:
        "Free bytes of the file system that holds the state directory (--state).";
    Gauge STATE_DISK_SIZE = "pleach_state_disk_size_bytes", Bytes Manager Sampled:
        "Size of the file system that holds the state directory.";

    Gauge WORKERS = "pleach_workers" ["state"], Count Manager Sampled:
        "Connected workers, by state: active or draining.";
    Gauge WORKERS_WANTED = "pleach_workers_desired" ["pool"], Count Manager Sampled:
        "Desired workers of a pool for the open studies, within their deadlines and budgets, absent without pools.";
    Counter POD_DELETION_COSTS = "pleach_pod_deletion_costs_total" ["outcome"], Count Manager Recorded:
        "Updates of a worker pod's deletion cost (--pod-deletion-cost), by outcome: set, gone (the pod does not exist), \
         refused by the cluster, or failed without a response or with a server error.";
    Counter WORKER_STARTS = "pleach_worker_starts_total" ["outcome"], Count Manager Recorded:
        "Workers that the manager requested from the drivers of its pools, by outcome: started, refused, or unknown (no answer, \
         or no handle).";
    Gauge SLOTS = "pleach_slots", Count Manager Sampled:
        "Tasks that the active workers can run at once.";
    Counter WORKER_JOINS = "pleach_worker_joins_total", Count Manager Recorded:
        "Workers that joined, including reconnections.";
    Counter WORKER_LEAVES = "pleach_worker_leaves_total" ["reason"], Count Manager Recorded:
        "Workers that left, by reason: drained, or lost (connection timeout).";
    Counter DUPLICATE_WORKERS = "pleach_manager_duplicate_workers_total", Count Manager Recorded:
        "Join attempts refused because another process is connected under the certificate's name.";
    Gauge WORKER_SLOTS = "pleach_worker_slots" ["worker"], Count Manager Sampled:
        "Tasks that the worker can run at once.";
    Gauge WORKER_LEASES = "pleach_worker_leased_buckets" ["worker"], Count Manager Sampled:
        "Buckets leased to the worker.";
    Gauge WORKER_STORED = "pleach_worker_stored_bytes" ["worker"], Bytes Manager Sampled:
        "Bytes of data regions in the worker's memory, as last reported.";

    Gauge MANAGER_CONNECTED = "pleach_manager_connected", Count Worker Sampled:
        "1 while the worker is connected to its manager, otherwise 0.";
    Gauge DRAINING = "pleach_worker_draining", Count Worker Sampled:
        "1 while the worker drains, otherwise 0.";
    Gauge TASK_SLOTS = "pleach_worker_task_slots", Count Worker Sampled:
        "Tasks that the worker can run at once.";
    Gauge TASKS_RUNNING = "pleach_worker_tasks_running", Count Worker Sampled:
        "Tasks in a slot.";
    Gauge WORKER_BUCKETS = "pleach_worker_buckets" ["state"], Count Worker Sampled:
        "Buckets of the worker, by state: waiting, or running if a task has started.";
    Gauge WORKER_INSTANCES = "pleach_worker_instances" ["state"], Count Worker Sampled:
        "Stage instances of waiting and running buckets whose results the manager has not acknowledged.";
    Histogram TASK_SECONDS = "pleach_task_duration_seconds" ["operation", "device"], Seconds Worker Recorded Task:
        "Execution time of a task, by operation and device: cpu (a core), or accelerator (transfers included).";
    Gauge DEVICE_SLOTS = "pleach_device_slots" ["kind", "state"], Count Worker Sampled:
        "Slots of the worker, by kind (core or accelerator) and state: idle, running, or closed after errors of its device.";
    Gauge DEVICE_GAIN = "pleach_device_gain" ["operation"], Count Worker Sampled:
        "Seconds on a core per second on an accelerator, declared by the operation until enough runs are measured.";
    Gauge DEVICE_MEMORY = "pleach_device_memory_bytes" ["device"], Bytes Worker Sampled:
        "Bytes of buffers on the accelerator.";
    Gauge DEVICE_MEMORY_LIMIT = "pleach_device_memory_limit_bytes" ["device"], Bytes Worker Sampled:
        "Limit of buffers on the accelerator (--device-memory).";
    Counter DEVICE_PREFETCHED = "pleach_device_prefetched_bytes_total", Bytes Worker Sampled:
        "Bytes uploaded to accelerators ahead of their tasks, while another task ran there.";
    Counter DEVICE_PREFETCH_USED = "pleach_device_prefetched_used_bytes_total", Bytes Worker Sampled:
        "Prefetched bytes that a task has used on the accelerator.";
    Counter DEVICE_ERRORS = "pleach_device_errors_total" ["cause"], Count Worker Recorded:
        "Tasks that ran again on a core after an error of an accelerator, by cause: lost, memory, compile, timeout, result \
         (bits differ from those of a core) or other.";

    Gauge MEMORY_LIMIT = "pleach_memory_limit_bytes", Bytes Worker Sampled:
        "Memory limit for data regions and running tasks (--memory).";
    Gauge MEMORY_NEEDED = "pleach_memory_reserved_bytes", Bytes Worker Sampled:
        "Memory held by regions and reserved for started tasks, at most the limit.";
    Gauge MEMORY_PEAK = "pleach_memory_peak_bytes", Bytes Worker Sampled:
        "Peak of held and reserved memory, including unreferenced results.";
    Counter MEMORY_PRESSURE_ACTIONS = "pleach_memory_pressure_actions_total" ["action"], Count Worker Recorded:
        "Actions that free memory, cheapest first: evict_result (evicts an unreferenced result), spill (drops regions or \
         moves them to a slower tier), drop_replica (drops a second copy), sync_manager (no task can start, so the worker \
         waits for the manager's messages).";
    Gauge TIER_HELD = "pleach_tier_held_bytes" ["tier"], Bytes Worker Sampled:
        "Bytes of data regions in the tier.";
    Gauge TIER_CAPACITY = "pleach_tier_capacity_bytes" ["tier"], Bytes Worker Sampled:
        "Capacity of the tier.";
    Gauge TIER_REGIONS = "pleach_tier_regions" ["tier"], Count Worker Sampled:
        "Data regions in the tier.";
    Gauge TIER_AVAILABLE = "pleach_tier_available" ["tier"], Count Worker Sampled:
        "1 while the tier answers, 0 while a shared tier is left out after calls that hung or failed.";
    Counter TIER_HITS = "pleach_tier_hits_total" ["tier"], Count Worker Sampled:
        "Region lookups that found the region in the tier.";
    Counter TIER_MISSES = "pleach_tier_misses_total" ["tier"], Count Worker Sampled:
        "Region lookups that did not find the region in the tier.";
    Counter CACHE_LOOKUPS = "pleach_task_cache_lookups_total" ["answer"], Count Worker Sampled:
        "Lookups of traces and regions in the task cache (--cache), by answer: found or missing.";
    Counter CACHE_STORED = "pleach_task_cache_inserts_total", Count Worker Sampled:
        "Traces and regions that this worker stored in the task cache.";
    Counter CACHE_QUOTA_EVICTED = "pleach_task_cache_quota_evicted_bytes_total", Bytes Worker Sampled:
        "Bytes of a user's results that new ones of the same user replaced in the task cache (--cache-quota).";
    Counter TIER_STORED = "pleach_tier_inserts_total" ["tier"], Count Worker Sampled:
        "Data regions stored in the tier.";
    Counter TIER_SPILLS = "pleach_tier_spills_total" ["tier"], Count Worker Sampled:
        "Data regions evicted from the tier with a copy in a slower tier.";
    Counter TIER_EVICTIONS = "pleach_tier_evictions_total" ["tier"], Count Worker Sampled:
        "Data regions evicted from the tier without a copy in a slower tier, because they can be created again.";
    Counter TIER_PREFETCHES = "pleach_tier_prefetches_total" ["tier"], Count Worker Sampled:
        "Data regions prefetched into the tier.";
    Counter TIER_LOST = "pleach_tier_lost_total" ["tier"], Count Worker Sampled:
        "Data regions found corrupt or missing in the tier.";
    Counter TIER_ERRORS = "pleach_tier_errors_total" ["tier"], Count Worker Sampled:
        "Failed operations of the tier, except for lack of space.";
    Counter MOVED_BYTES = "pleach_region_moved_bytes_total" ["action"], Bytes Worker Sampled:
        "Bytes of data regions, by action: dropped from memory, demoted to a spill tier, promoted to memory, or shared \
         with other workers through a tier.";
    Counter TRANSFERS = "pleach_transfers_total" ["direction", "path"], Count Worker Sampled:
        "Data regions transferred from other workers (in) or to them (out), by path: network, or shared-memory between \
         processes of one machine.";
    Counter TRANSFER_BYTES = "pleach_transfer_bytes_total" ["direction"], Bytes Worker Sampled:
        "Bytes of transferred data regions, as held in memory.";
    Counter DIRECTORY_LOOKUPS = "pleach_directory_lookups_total" ["answer"], Count Worker Sampled:
        "Look-ups of tasks in the result directory, by answer: found (another worker has run the task), claimed (this \
         worker runs it), unanswered (this worker runs it without a claim).";
    Counter DIRECTORY_WAITS = "pleach_directory_waits_total", Count Worker Sampled:
        "Look-ups that waited for another worker that was running the task.";
    Counter DIRECTORY_EXPIRED = "pleach_directory_expired_claims_total", Count Worker Sampled:
        "Claims in this worker's shard that ended with their lease: the claimer hung or was unreachable.";
    Counter DIRECTORY_REJECTED = "pleach_directory_rejected_results_total", Count Worker Sampled:
        "Results of other workers that could not be fetched as announced.";
    Counter DIRECTORY_REFUSED = "pleach_directory_refused_announcements_total" ["cause"], Count Worker Sampled:
        "Announced results that this worker's shard refused, by cause: claim (the announcer had no claim of the task), \
         content (the result differs from the known one), identity (an output under the identity of another task's), \
         sender (a message in the name of another worker).";
    Counter DIRECTORY_RECOMPUTED = "pleach_directory_recomputed_tasks_total", Count Worker Sampled:
        "Tasks run again although another worker has their outputs, because the transfer takes longer.";
    Gauge DIRECTORY_ENTRIES = "pleach_directory_entries", Count Worker Sampled:
        "Tasks with a result or a claim in this worker's shard of the result directory.";
    Gauge DIRECTORY_MEMBERS = "pleach_directory_members", Count Worker Sampled:
        "Workers in the result directory, as this worker knows them.";

    Gauge QUIC_CONNECTIONS = "pleach_quic_connections", Count Both Sampled:
        "Connections to workers, and of a worker to its manager.";
    Gauge QUIC_RTT = "pleach_quic_rtt_seconds" ["peer"], Seconds Both Sampled:
        "Estimated round-trip time to a peer: on the manager to each worker by name, on a worker to the manager and to \
         workers, the slowest of its peers.";
    Counter QUIC_SENT = "pleach_quic_sent_packets_total" ["peer"], Count Both Sampled:
        "Packets sent to the peer.";
    Counter QUIC_LOST = "pleach_quic_lost_packets_total" ["peer"], Count Both Sampled:
        "Packets to the peer that were lost.";
    Counter QUIC_BYTES = "pleach_quic_bytes_total" ["peer", "direction"], Bytes Both Sampled:
        "Bytes of packets to the peer (out) and from it (in), protocol overhead included.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn is_name(name: &str) -> bool {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
    }

    #[test]
    fn names_follow_the_conventions() {
        let mut seen = BTreeSet::new();
        for family in ALL {
            let Family { name, kind, unit, labels, .. } = **family;
            assert!(seen.insert(name), "{name} is there twice");
            assert!(is_name(name), "{name}");
            let is_of_process = name.starts_with("process_");
            assert!(is_of_process || name.starts_with("pleach_"), "{name}");
            assert_eq!(is_of_process, family.life == SeriesLifetime::Process, "{name}");
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
            let base = name.trim_end_matches("_total");
            // Names of predictions carry no unit.
            if !name.starts_with("pleach_predicted_") {
                assert_eq!(base.ends_with("_seconds"), unit == Unit::Seconds, "{name}");
                assert_eq!(base.ends_with("_bytes"), unit == Unit::Bytes, "{name}");
            }
            for suffix in ["_count", "_sum", "_bucket"] {
                assert!(!name.ends_with(suffix), "{name}: {suffix} is a histogram's");
            }
            let different: BTreeSet<_> = labels.iter().collect();
            assert_eq!(different.len(), labels.len(), "{name}");
            assert!(labels.iter().all(|label| is_name(label) && *label != "le"), "{name}");
        }
    }

    #[test]
    fn metric_help_is_one_sentence_on_one_line() {
        for family in ALL {
            assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{}", family.name);
        }
    }

    #[test]
    fn histograms_have_ascending_buckets() {
        for family in ALL {
            let bounds = family.buckets.bounds();
            assert_eq!(bounds.is_empty(), family.kind != Kind::Histogram, "{}", family.name);
            assert!(bounds.is_sorted_by(|a, b| a < b), "{}", family.name);
        }
    }

    #[test]
    fn series_of_studies_and_workers_end_with_them() {
        for family in ALL {
            if family.labels.iter().any(|label| ["study", "worker", "peer"].contains(label)) {
                assert_ne!(family.life, SeriesLifetime::Recorded, "{}", family.name);
            }
        }
    }
}
