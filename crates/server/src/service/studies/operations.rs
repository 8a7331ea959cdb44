//! External operations of a submission, compared with those of the workers.

use pleach_actors::manager::{ManagerView, WorkerState};
use pleach_api::submission::Submission;
use pleach_dispatch::message::ExternalOperation;
use pleach_external::Identity;
use std::collections::BTreeMap;

/// Returns how the workers' operations differ from those of a submission. `None` if a worker may run each of them: it has the
/// operation, it loads code of clients, or no worker has the operation in another version, so that one may join with it.
pub(super) fn differences(submission: &Submission, view: &ManagerView) -> Option<String> {
    let active = || view.workers.iter().filter(|worker| worker.state == WorkerState::Active);
    let sends_code = |name: &str| {
        submission
            .code_packages()
            .iter()
            .any(|code| code.operations.iter().any(|operation| operation.name == name))
    };
    let mut differing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for wanted in submission.external_operations() {
        let others = || {
            let all =
                active().flat_map(|worker| worker.code.operations.iter().map(move |has| (&worker.name, has)));
            all.filter(|(_, has)| (has.plain_name(), has.version) == (wanted.plain_name(), wanted.version))
        };
        let is_there = others().any(|(_, has)| has.name == wanted.name);
        let is_loaded = sends_code(&wanted.name) && active().any(|worker| worker.code.accepts_code);
        if is_there || is_loaded {
            continue;
        }
        for (worker, has) in others() {
            let text = format!("{} instead of {} ({})", has.name, wanted.name, changes(&wanted, has));
            differing.entry(text).or_default().push(worker.clone());
        }
    }
    let texts = differing.into_iter().map(|(text, workers)| {
        let them = if workers.len() == 1 { "worker" } else { "workers" };
        let verb = if workers.len() == 1 { "has" } else { "have" };
        format!("{them} {} {verb} {text}", workers.join(", "))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Words the changes from the client's operation to the worker's.
fn changes(client: &ExternalOperation, worker: &ExternalOperation) -> String {
    let identity = |operation: &ExternalOperation| operation.components.iter().cloned().collect::<Identity>();
    let changes = identity(worker).differences(&identity(client));
    if client.components.is_empty() { "pinned".to_owned() } else { changes.join(", ") }
}
