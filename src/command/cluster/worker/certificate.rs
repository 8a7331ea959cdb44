//! Obtains the certificate of a worker that joins with a token, before any other connection and again after it has
//! expired.
//!
//! A worker keeps a valid certificate, whatever happens to its token. `pleach_actors` implements tokens and the join
//! service.

use super::readiness::WorkerReadiness;
use crate::cli::WorkerProcessArgs;
use crate::exit::{CommandError, CommandResult};
use pleach_actors::transport::backoff::Backoff;
use pleach_actors::transport::certs::{Credentials, NODE_FILE, NODE_KEY_FILE};
use pleach_actors::transport::clock::Clock;
use pleach_actors::transport::identity::{IdentityError, NodeName};
use pleach_actors::transport::quic::{QuicRuntime, join};
use pleach_actors::transport::settings::Settings;
use pleach_api::random;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Manager to join, and the means to reach it.
pub(super) struct JoinTarget<'a> {
    pub(super) manager: SocketAddr,
    pub(super) network: &'a QuicRuntime,
    pub(super) settings: &'a Settings,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// Records why the worker has no certificate yet.
    pub(super) readiness: &'a WorkerReadiness,
}

/// Obtains a certificate for the token, unless a valid one exists. Retries while the manager does not answer. Returns
/// `false` if the worker was asked to leave meanwhile.
///
/// # Errors
/// Returns [`CommandError::Input`] if the name is invalid or the expired certificate cannot be removed, and
/// [`CommandError::Refused`] if the manager refuses permanently.
pub(super) async fn obtain(
    args: &WorkerProcessArgs,
    target: &JoinTarget<'_>,
    stop: &mut oneshot::Receiver<()>,
) -> CommandResult<bool> {
    let (Some(token), Some(name)) = (&args.token, &args.name) else { return Ok(true) };
    let name: NodeName = name
        .parse()
        .map_err(|error: IdentityError| CommandError::Input(format!("--name {name}: {error}")))?;
    if args.certs.join(NODE_FILE).is_file() {
        // A valid certificate suffices: the token may have expired or been used since.
        if !is_over(&args.certs, target.clock.now()) {
            return Ok(true);
        }
        info!("the certificate has expired; the worker requests another one with its token");
        remove(&args.certs)?;
    }
    let JoinTarget { manager, network, settings, clock, readiness } = target;
    let mut backoff = Backoff::new(settings.first_wait, settings.longest_wait, random::number()?);
    let mut last = String::new();
    loop {
        // Read the token again for each attempt: the user may have replaced its file.
        let text = fs::read_to_string(token).unwrap_or_else(|_| token.clone());
        let joining = join::join(network, *manager, text.trim(), name.clone(), &args.certs, settings, clock);
        let joined = tokio::select! {
            // A stop ends the attempt too: the manager may not answer for long.
            _ = &mut *stop => return Ok(false),
            joined = joining => joined,
        };
        let refusal = match joined {
            Ok(_) => return Ok(true),
            Err(join::JoinError::Refused(refusal)) if !refusal.cause.is_permanent() => refusal.to_string(),
            Err(error) => {
                return Err(CommandError::Refused(format!("no certificate from {manager}: {error}")));
            }
        };
        readiness.failed(&format!("no certificate: {refusal}"));
        if refusal != last {
            warn!("no certificate from {manager}: {refusal}; trying again");
            last = refusal;
        }
        tokio::select! {
            _ = &mut *stop => return Ok(false),
            () = tokio::time::sleep(backoff.failed()) => {}
        }
    }
}

/// Returns whether the certificate in a folder has expired. An unreadable certificate returns `false`, and its next use
/// reports the error.
fn is_over(certs: &Path, now: Duration) -> bool {
    Credentials::load(certs).is_ok_and(|credentials| credentials.is_expired(now))
}

/// Removes the key and the certificate. A folder with a certificate also has the key.
fn remove(certs: &Path) -> CommandResult {
    for file in [NODE_KEY_FILE, NODE_FILE] {
        let path = certs.join(file);
        fs::remove_file(&path)
            .map_err(|error| CommandError::Input(format!("--certs {}: {error}", path.display())))?;
    }
    Ok(())
}
