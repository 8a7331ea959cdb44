//! Input files that workers request by content digest.

use super::ManagerActor;
use crate::exchange::{self, SendFileError};
use actix::prelude::*;
use pleach_dispatch::WorkerId;
use pleach_dispatch::message::ToWorker;
use pleach_regions::Digest;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tracing::warn;

/// Reports that a file requested by a worker is corrupt.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct FileDamaged {
    worker: WorkerId,
    digest: [u8; 32],
}

impl Handler<FileDamaged> for ManagerActor {
    type Result = ();

    fn handle(&mut self, FileDamaged { worker, digest }: FileDamaged, _: &mut Self::Context) {
        self.no_file(worker, digest);
    }
}

impl ManagerActor {
    /// Sends a file by its content digest, outside the frames. The manager verifies it first. It sends no byte of a
    /// corrupt file, and answers that the file is missing after it has ended the studies that read it.
    pub(super) fn send_file(&mut self, worker: WorkerId, digest: [u8; 32], ctx: &Context<Self>) {
        let Some(service) = &self.service else { return };
        let found = (service.find_file)(&digest);
        let (network, check) = (service.network.clone(), Arc::clone(&service.check_file));
        let actor = ctx.address();
        let name = self.name_of(worker);
        let Some(connection) = self.connections.of_worker(worker) else { return };
        match (found, connection.newcomer.regions.clone()) {
            (Some(path), Some(regions)) => {
                network.spawn(async move {
                    let checked = async |again: bool| {
                        let (check, path) = (Arc::clone(&check), path.clone());
                        let checked = spawn_blocking(move || check(&digest, &path, again)).await;
                        // A panicked check proves nothing. The transfer compares content and digest as well.
                        checked.unwrap_or(true)
                    };
                    if checked(false).await {
                        let (key, digest) = (exchange::file_key(&Digest(digest)), Digest(digest));
                        let Err(error) = exchange::send_file(&regions, key, digest, &path).await else {
                            return;
                        };
                        warn!(worker = name, "failed to send an input file to worker {name}: {error}");
                        // The check may have relied on known file metadata, which silent corruption on the medium does
                        // not change.
                        let is_damaged = match error {
                            SendFileError::File { .. } => true,
                            SendFileError::Changed { .. } => !checked(true).await,
                            // The worker asks again over its next link.
                            SendFileError::NotSent(_) => false,
                        };
                        if !is_damaged {
                            return;
                        }
                    }
                    actor.do_send(FileDamaged { worker, digest });
                });
            }
            _ => self.no_file(worker, digest),
        }
    }

    /// Answers a worker that the file is missing.
    fn no_file(&mut self, worker: WorkerId, digest: [u8; 32]) {
        self.send(worker, &ToWorker::FileMissing { digest });
    }
}
