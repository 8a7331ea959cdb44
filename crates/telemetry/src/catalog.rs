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
        "1; its labels say which version runs, and as what.";
    Gauge CERTIFICATE_EXPIRY = "pleach_certificate_expiry_timestamp_seconds" ["certificate"], Seconds Both Recorded:
        "End of a certificate's validity in seconds since 1970: node, that of this process, and authority, that of its cluster.";
    Counter PROCESS_CPU = "process_cpu_seconds_total", Seconds Both Process:
        "User and system CPU time of the process.";
    Gauge PROCESS_RESIDENT = "process_resident_memory_bytes", Bytes Both Process:
        "Resident memory of the process.";
    Gauge PROCESS_OPEN_FDS = "process_open_fds", Count Both Process:
        "Open file descriptors of the process.";
    Gauge PROCESS_MAX_FDS = "process_max_fds", Count Both Process:
        "Limit of open file descriptors; missing without a limit.";
    Gauge PROCESS_START = "process_start_time_seconds", Seconds Both Process:
        "Start of the process in seconds since 1970.";

    Counter HTTP_REQUESTS = "pleach_http_requests_total" ["method", "route", "status"], Count Manager Recorded:
        "Requests to the API that were answered, by the path's pattern and the status of the answer.";
    Histogram HTTP_SECONDS = "pleach_http_request_duration_seconds" ["method", "route"], Seconds Manager Recorded Short:
        "From a request's head to its answer's head.";
    Gauge HTTP_IN_FLIGHT = "pleach_http_requests_in_flight", Count Manager Recorded:
        "Requests to the API that are being answered.";

    Gauge STUDIES = "pleach_studies" ["state"], Count Manager Sampled:
        "Studies that the manager keeps: waiting for files, queued, running, complete, canceled or failed.";
    Gauge STUDY_INFO = "pleach_study_info" ["study", "name"], Count Manager Sampled:
        "1 for each study that has not ended; its labels say which name belongs to which number.";
    Gauge STUDY_AGE = "pleach_study_age_seconds" ["study"], Seconds Manager Sampled:
        "Since the manager began to execute the study, in this life of it.";
    Gauge STUDY_EVALUATIONS = "pleach_study_evaluations" ["study"], Count Manager Sampled:
        "Evaluations of the study.";
    Gauge STUDY_EVALUATIONS_DONE = "pleach_study_evaluations_done" ["study"], Count Manager Sampled:
        "Evaluations of which every run is known, on disk, or has failed.";
    Gauge STUDY_RUNS_FAILED = "pleach_study_runs_failed" ["study"], Count Manager Sampled:
        "Runs (evaluation and tile) that have failed.";
    Gauge STUDY_TASKS_LEFT = "pleach_study_tasks_remaining" ["study"], Count Manager Sampled:
        "Tasks that remain to be executed if none fails and none is reused.";
    Counter STUDY_TASKS_EXECUTED = "pleach_study_tasks_executed_total" ["study"], Count Manager Sampled:
        "Tasks of the study that workers have executed.";
    Counter STUDY_TASKS_REUSED = "pleach_study_tasks_reused_total" ["study", "level"], Count Manager Sampled:
        "Tasks of the study that did not have to be executed, by the level of reuse: of stage and tree all as soon as it is \
         planned, of dataflow, value, cache and earlier_round as it happens; of the current round.";
    Gauge STUDY_DEADLINE = "pleach_study_deadline_timestamp_seconds" ["study"], Seconds Manager Sampled:
        "Deadline of the study in seconds since 1970; missing for studies without one.";
    Gauge STUDY_DEADLINE_MARGIN = "pleach_study_deadline_margin_seconds" ["study"], Seconds Manager Sampled:
        "Time between the predicted end of a running study and its deadline, on the active workers and with equal turns for all \
         running studies; negative if the study will be late, -Inf without workers.";
    Gauge PREDICTED_SECONDS_LEFT = "pleach_study_remaining_seconds" ["study"], Seconds Manager Sampled:
        "What is left of the study by what its instances have taken so far, on the slots there are, if no other study wants them; \
         not there as long as nothing is known of some stage.";
    Gauge PREDICTED_COST = "pleach_predicted_cost", Money Manager Sampled:
        "What the workers that are wanted will cost from now until all studies are done, in the currency of their prices; there where \
         the manager knows pools.";
    Gauge INSTANCES = "pleach_instances" ["study", "state"], Count Manager Sampled:
        "Stage instances of the study: waiting for others, ready, leased to a worker, finished or failed. Those that run are among \
         the leased ones: pleach_worker_instances.";
    Gauge BUCKETS = "pleach_buckets" ["study", "state"], Count Manager Sampled:
        "Buckets of the study that are ready for a worker, and leases of buckets at workers.";

    Counter TASKS_EXECUTED = "pleach_tasks_executed_total", Count Manager Recorded:
        "Tasks that workers have executed, of all studies.";
    Counter TASKS_REUSED = "pleach_tasks_reused_total" ["level"], Count Manager Recorded:
        "Tasks that workers had not to execute since their outputs were there, of all studies: by dataflow, value, cache or earlier_round.";
    Counter INSTANCES_FINISHED = "pleach_instances_finished_total", Count Manager Recorded:
        "Stage instances that workers have finished.";
    Counter INSTANCES_FAILED = "pleach_instances_failed_total", Count Manager Recorded:
        "Stage instances that have failed, those included that need one that did.";
    Counter INSTANCES_REOPENED = "pleach_instances_reopened_total", Count Manager Recorded:
        "Stage instances that had been finished and are executed again, since what they had stored is lost and somebody reads it.";
    Histogram BUCKET_WAIT = "pleach_bucket_wait_seconds", Seconds Manager Recorded Wait:
        "How long a bucket was ready before a worker got it, to a tenth of a second.";
    Counter REPLANS = "pleach_replans_total", Count Manager Recorded:
        "Times that a study's buckets were cut anew because workers came or went.";
    Counter REPLANNED_INSTANCES = "pleach_replanned_instances_total", Count Manager Recorded:
        "Stage instances in buckets that were cut anew.";
    Histogram JOURNAL_COMMIT = "pleach_journal_commit_seconds", Seconds Manager Recorded Short:
        "What it takes to write a group of responses to a study's journal and to sync it.";
    Counter JOURNAL_RECORDS = "pleach_journal_records_total", Count Manager Recorded:
        "Responses that are on disk.";
    Gauge STATE_DISK_FREE = "pleach_state_disk_free_bytes", Bytes Manager Sampled:
        "Free bytes of the file system that holds the state directory (--state).";
    Gauge STATE_DISK_SIZE = "pleach_state_disk_size_bytes", Bytes Manager Sampled:
        "Size of the file system that holds the state directory.";

    Gauge WORKERS = "pleach_workers" ["state"], Count Manager Sampled:
        "Workers that are connected: active, or draining, which are to leave.";
    Gauge WORKERS_WANTED = "pleach_workers_desired" ["pool"], Count Manager Sampled:
        "Workers of a pool that the open studies want, by their deadlines and budgets; there where the manager knows pools.";
    Counter POD_DELETION_COSTS = "pleach_pod_deletion_costs_total" ["outcome"], Count Manager Recorded:
        "Times that the cluster was told what deleting a worker's pod costs: set, gone (there is no such pod), refused, or failed, \
         without an answer or with an error of the cluster's; there with --pod-deletion-cost.";
    Gauge SLOTS = "pleach_slots", Count Manager Sampled:
        "Tasks that the active workers can run at once.";
    Counter WORKER_JOINS = "pleach_worker_joins_total", Count Manager Recorded:
        "Workers that have joined, those that came back included.";
    Counter WORKER_LEAVES = "pleach_worker_leaves_total" ["reason"], Count Manager Recorded:
        "Workers that have left: drained, or lost (the connection timed out).";
    Counter DUPLICATE_WORKERS = "pleach_manager_duplicate_workers_total", Count Manager Recorded:
        "Attempts to join that were refused: another process is connected under the name of the certificate.";
    Gauge WORKER_SLOTS = "pleach_worker_slots" ["worker"], Count Manager Sampled:
        "Tasks that the worker can run at once.";
    Gauge WORKER_LEASES = "pleach_worker_leased_buckets" ["worker"], Count Manager Sampled:
        "Leases of buckets that the worker has.";
    Gauge WORKER_STORED = "pleach_worker_stored_bytes" ["worker"], Bytes Manager Sampled:
        "Data regions in the worker's memory, as it said last.";

    Gauge MANAGER_CONNECTED = "pleach_manager_connected", Count Worker Sampled:
        "1 as long as the worker has a connection to its manager, otherwise 0.";
    Gauge DRAINING = "pleach_worker_draining", Count Worker Sampled:
        "1 when the worker is to leave, otherwise 0.";
    Gauge TASK_SLOTS = "pleach_worker_task_slots", Count Worker Sampled:
        "Tasks that the worker can run at once.";
    Gauge TASKS_RUNNING = "pleach_worker_tasks_running", Count Worker Sampled:
        "Tasks that have a slot.";
    Gauge WORKER_BUCKETS = "pleach_worker_buckets" ["state"], Count Worker Sampled:
        "Buckets at the worker: waiting, or running, of which a task has begun.";
    Gauge WORKER_INSTANCES = "pleach_worker_instances" ["state"], Count Worker Sampled:
        "Stage instances of those buckets whose results the manager has not on disk yet.";
    Histogram TASK_SECONDS = "pleach_task_duration_seconds" ["operation", "device"], Seconds Worker Recorded Task:
        "What the tasks took that were executed, by operation and by what executed them (cpu).";

    Gauge MEMORY_LIMIT = "pleach_memory_limit_bytes", Bytes Worker Sampled:
        "What data regions and running tasks may take (--memory).";
    Gauge MEMORY_NEEDED = "pleach_memory_reserved_bytes", Bytes Worker Sampled:
        "Memory held by regions and reserved for started tasks. It never exceeds the limit.";
    Gauge MEMORY_PEAK = "pleach_memory_peak_bytes", Bytes Worker Sampled:
        "The most that was ever held and reserved at once, what is kept as long as there is room included.";
    Counter MEMORY_PRESSURE_ACTIONS = "pleach_memory_pressure_actions_total" ["action"], Count Worker Recorded:
        "Actions that free memory, cheapest first: evict_result (an unreferenced result), spill (regions are dropped or moved to a \
         slower tier), drop_replica (a second copy), sync_manager (nothing can run: the worker waits for the manager's messages).";
    Gauge TIER_HELD = "pleach_tier_held_bytes" ["tier"], Bytes Worker Sampled:
        "Bytes of data regions in a tier.";
    Gauge TIER_CAPACITY = "pleach_tier_capacity_bytes" ["tier"], Bytes Worker Sampled:
        "What the tier may hold.";
    Gauge TIER_REGIONS = "pleach_tier_regions" ["tier"], Count Worker Sampled:
        "Data regions in the tier.";
    Counter TIER_HITS = "pleach_tier_hits_total" ["tier"], Count Worker Sampled:
        "Data regions that were asked for and found in the tier.";
    Counter TIER_MISSES = "pleach_tier_misses_total" ["tier"], Count Worker Sampled:
        "Data regions that were asked for and not found in the tier.";
    Counter TIER_STORED = "pleach_tier_inserts_total" ["tier"], Count Worker Sampled:
        "Data regions stored in the tier.";
    Counter TIER_SPILLS = "pleach_tier_spills_total" ["tier"], Count Worker Sampled:
        "Data regions that made room and are in a slower tier now.";
    Counter TIER_EVICTIONS = "pleach_tier_evictions_total" ["tier"], Count Worker Sampled:
        "Data regions that made room and are in no tier below: they can be had again.";
    Counter TIER_PREFETCHES = "pleach_tier_prefetches_total" ["tier"], Count Worker Sampled:
        "Data regions that were brought to the tier before they were asked for.";
    Counter TIER_LOST = "pleach_tier_lost_total" ["tier"], Count Worker Sampled:
        "Data regions that were damaged or gone.";
    Counter TIER_ERRORS = "pleach_tier_errors_total" ["tier"], Count Worker Sampled:
        "Times that the tier could not do what it was asked for, other than for lack of room.";
    Counter MOVED_BYTES = "pleach_region_moved_bytes_total" ["action"], Bytes Worker Sampled:
        "Bytes of data regions that were dropped from memory, demoted below it, promoted into it again, or shared with other \
         workers through a tier.";
    Counter TRANSFERS = "pleach_transfers_total" ["direction", "path"], Count Worker Sampled:
        "Data regions that came in from other workers or went out to them, through the network or through memory that \
         processes of a machine share.";
    Counter TRANSFER_BYTES = "pleach_transfer_bytes_total" ["direction"], Bytes Worker Sampled:
        "Bytes of those regions, as they are held.";

    Gauge QUIC_CONNECTIONS = "pleach_quic_connections", Count Both Sampled:
        "Connections to workers, and of a worker to its manager.";
    Gauge QUIC_RTT = "pleach_quic_rtt_seconds" ["peer"], Seconds Both Sampled:
        "Round trip to a peer, as its connection estimates it. On the manager peers are workers by name; on a worker they are \
         manager, and workers, of which the slowest counts.";
    Counter QUIC_SENT = "pleach_quic_sent_packets_total" ["peer"], Count Both Sampled:
        "Packets sent to the peer.";
    Counter QUIC_LOST = "pleach_quic_lost_packets_total" ["peer"], Count Both Sampled:
        "Packets to the peer that were lost, and sent again where that was of use.";
    Counter QUIC_BYTES = "pleach_quic_bytes_total" ["peer", "direction"], Bytes Both Sampled:
        "Bytes to the peer (out) and from it (in), all that a packet holds included.";
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
