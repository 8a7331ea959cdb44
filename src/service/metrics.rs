//! What is measured, in Prometheus' text format.

use crate::api::view::Study;
use pleach_actors::manager::{ManagerView, WorkerState};
use std::fmt::Write;

/// The state of the manager, its studies and its workers, as metrics.
pub(crate) fn text(view: &ManagerView, studies: &[Study]) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, kind: &str, value: f64| {
        // A string takes whatever is written to it.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    };
    let in_state = |state: WorkerState| view.workers.iter().filter(|worker| worker.state == state).count();
    gauge("pleach_workers_active", "Workers that take work.", "gauge", in_state(WorkerState::Active) as f64);
    gauge(
        "pleach_workers_draining",
        "Workers that are to leave.",
        "gauge",
        in_state(WorkerState::Draining) as f64,
    );
    let slots: u32 = view.workers.iter().map(|worker| worker.slots).sum();
    gauge("pleach_slots", "Tasks that workers can run at once.", "gauge", f64::from(slots));
    let leases: usize = view.workers.iter().map(|worker| worker.leases).sum();
    gauge("pleach_buckets_leased", "Buckets at workers.", "gauge", leases as f64);
    gauge("pleach_replans_total", "Times that buckets were cut anew.", "counter", view.replans as f64);
    let moved = view.replanned_instances as f64;
    gauge("pleach_replanned_instances_total", "Instances in buckets that were cut anew.", "counter", moved);
    let running: Vec<&Study> = studies.iter().filter(|study| !study.state.is_over()).collect();
    gauge("pleach_studies_open", "Studies that have not ended.", "gauge", running.len() as f64);
    let tasks: u64 = studies.iter().map(|study| study.tasks_executed).sum();
    gauge(
        "pleach_tasks_executed_total",
        "Tasks executed for the studies there are.",
        "counter",
        tasks as f64,
    );
    let left: u64 = running.iter().map(|study| study.tasks_left).sum();
    gauge("pleach_tasks_left", "Tasks that open studies will do if none fails.", "gauge", left as f64);
    text
}
