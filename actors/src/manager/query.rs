//! Spatial queries over regions on workers: one worker is asked, answers for itself and its peers, and is replaced if it leaves.

use super::ManagerActor;
use super::connection::Connection;
use crate::transport::codec;
use actix::prelude::*;
use pleach_dispatch::WorkerId;
use pleach_dispatch::message::{ObjectsFound, RegionAnswer, RegionQueries, ToWorker};
use pleach_regions::{RegionKey, SpatialQuery};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;

/// 30 s for all answers of a call: reading a region from a slow tier takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Queries regions that workers hold.
#[derive(Debug, Message)]
#[rtype(result = "QueriedRegions")]
pub struct QueryRegions(pub Vec<(RegionKey, SpatialQuery)>);

/// Ends the retention of a study's regions on all workers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DropRegions(pub u32);

/// Answers to queries over regions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueriedRegions {
    /// Answers by place in the request. A region without one is on no connected worker.
    pub answers: BTreeMap<u32, RegionAnswer>,
    /// Bytes of messages between manager and workers, and between workers.
    pub moved_bytes: u64,
}

/// Calls that wait for answers.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    begun: u64,
    calls: BTreeMap<u64, PendingCall>,
}

#[derive(Debug)]
struct PendingCall {
    /// Regions without an answer, by place in the request.
    open: BTreeMap<u32, (RegionKey, SpatialQuery)>,
    found: QueriedRegions,
    /// The worker that answers. `None` if none is connected.
    asked: Option<WorkerId>,
    /// Workers that were asked.
    tried: BTreeSet<WorkerId>,
    done: oneshot::Sender<QueriedRegions>,
}

impl Handler<QueryRegions> for ManagerActor {
    type Result = ResponseFuture<QueriedRegions>;

    fn handle(&mut self, QueryRegions(regions): QueryRegions, ctx: &mut Self::Context) -> Self::Result {
        let (done, answered) = oneshot::channel();
        let calls = &mut self.calls;
        calls.begun += 1;
        let call = calls.begun;
        let (found, tried) = (QueriedRegions::default(), BTreeSet::new());
        let open = (0..).zip(regions).collect();
        calls.calls.insert(call, PendingCall { open, found, asked: None, tried, done });
        self.ask(call);
        ctx.run_later(PATIENCE, move |actor, _| actor.end_call(call));
        Box::pin(async move { answered.await.unwrap_or_default() })
    }
}

impl Handler<DropRegions> for ManagerActor {
    type Result = ();

    fn handle(&mut self, DropRegions(study): DropRegions, _: &mut Self::Context) {
        self.broadcast(&ToWorker::DropRegions { study });
    }
}

impl ManagerActor {
    /// Asks a worker for the open regions of a call. Ends the call without open regions, or if all workers were asked.
    fn ask(&mut self, call: u64) {
        let Some(pending) = self.calls.calls.get_mut(&call) else { return };
        let workers = || {
            let joined = self.connections.joined();
            joined.filter_map(|(_, connection)| Some((connection.worker()?, connection)))
        };
        let asked = workers().find(|(worker, _)| !pending.tried.contains(worker) && !pending.open.is_empty());
        let Some((asked, connection)) = asked else { return self.end_call(call) };
        pending.tried.insert(asked);
        pending.asked = Some(asked);
        let others = workers().filter(|(worker, _)| *worker != asked);
        let peers: Vec<SocketAddr> =
            others.filter_map(|(_, other): (_, &Connection)| other.exchange).collect();
        let open = pending.open.iter();
        let regions = open.map(|(number, (key, query))| (*number, *key, query.clone())).collect();
        // A closed link reports its own end, which asks another worker. The number of regions bounds the frame.
        if let Ok(frame) = codec::encode(&ToWorker::FindObjects(RegionQueries { call, regions, peers })) {
            pending.found.moved_bytes += frame.len() as u64;
            let _ = connection.link.send(frame);
        }
    }

    /// Handles an answer of `bytes`. Ignores one to a call that has ended or that another worker answers.
    pub(super) fn receive_found(&mut self, worker: WorkerId, found: ObjectsFound, bytes: usize) {
        let ObjectsFound { call, number, answer } = found;
        let pending = self.calls.calls.get_mut(&call).filter(|pending| pending.asked == Some(worker));
        let Some(pending) = pending else { return };
        if pending.open.remove(&number).is_none() {
            return;
        }
        pending.found.moved_bytes += bytes as u64 + answer.as_ref().map_or(0, |answer| answer.moved_bytes);
        pending.found.answers.extend(answer.map(|answer| (number, answer)));
        if pending.open.is_empty() {
            self.end_call(call);
        }
    }

    /// Asks other workers for the open regions of calls that a lost worker was to answer.
    pub(super) fn ask_again(&mut self, lost: WorkerId) {
        let of_it = self.calls.calls.iter().filter(|(_, pending)| pending.asked == Some(lost));
        let of_it: Vec<u64> = of_it.map(|(call, _)| *call).collect();
        of_it.into_iter().for_each(|call| self.ask(call));
    }

    fn end_call(&mut self, call: u64) {
        if let Some(pending) = self.calls.calls.remove(&call) {
            // The client may have gone.
            let _ = pending.done.send(pending.found);
        }
    }
}
