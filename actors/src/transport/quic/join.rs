//! Certificates for tokens: the request of a worker without a certificate, and the service that answers it.
//!
//! The worker creates its key and sends a signing request. The key never travels. The worker verifies the manager by the
//! fingerprint in the token before it sends anything. The service decides the identity: a worker with the requested name.

use super::server::{connection_lost, first_frame};
use super::{NetworkError, QuicRuntime, client, endpoint, tls};
use crate::transport::certs::secret_files::make_folder;
use crate::transport::certs::{
    Authority, CertsError, Credentials, NODE_FILE, USED_TOKENS_FILE, Validity,
    signing_request::SigningRequest,
};
use crate::transport::clock::Clock;
use crate::transport::codec;
use crate::transport::frames;
use crate::transport::identity::{NodeIdentity, NodeName, Role};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use crate::transport::token::used::UsedTokens;
use crate::transport::token::{Token, TokenError};
use parking_lot::Mutex;
use quinn::Connection;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::BufReader;
use tokio::time::timeout;

/// Validity of the certificate of a worker that joined with a token, 30 days. It exceeds the duration of studies, and is
/// short enough for rented machines that are never cleaned up.
pub const JOINED_DAYS: u32 = 30;

#[derive(Serialize, Deserialize)]
struct Request {
    token: String,
    name: NodeName,
    /// PKCS #10, as DER.
    request: ByteBuf,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    chain_pem: String,
}

/// Issues certificates for tokens.
#[derive(Debug)]
pub struct JoinService {
    authority: Authority,
    used: Mutex<UsedTokens>,
}

/// Reason for a refused certificate.
#[derive(Debug, Error)]
pub enum JoinServiceError {
    /// The token is not valid.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The signing request or a file of the authority is unusable.
    #[error(transparent)]
    Certs(#[from] CertsError),
}

impl JoinService {
    /// Opens the service of the authority in a folder. Locks the folder's list of used tokens.
    ///
    /// # Errors
    /// Returns [`CertsError`].
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let authority = Authority::open(folder)?;
        let used = Mutex::new(UsedTokens::open(&folder.join(USED_TOKENS_FILE))?);
        Ok(Self { authority, used })
    }

    /// Returns the certificates for a worker with an unverified token and signing request. The use of the token is on disk
    /// before the return.
    ///
    /// # Errors
    /// Returns [`JoinServiceError`].
    pub fn sign(
        &self,
        token: &str,
        name: &NodeName,
        request: &[u8],
        now: Duration,
    ) -> Result<String, JoinServiceError> {
        let good = self.authority.token_key().check(&token.parse::<Token>()?, now)?;
        let identity = NodeIdentity { name: name.clone(), role: Role::Worker };
        // Signs first, so that an invalid request does not use up the token.
        let issued = self.authority.sign(request, &identity, Validity::days(JOINED_DAYS, now)?)?;
        if good.is_once {
            // Holds the lock until the use is on disk: two requests must not use the same token.
            let mut used = self.used.lock();
            if !used.use_once(good.id)? {
                return Err(TokenError::Used.into());
            }
        }
        Ok(issued.chain_pem)
    }
}

/// Answers one request. The worker ends the connection.
pub(super) async fn serve(
    connection: &Connection,
    desk: &Arc<JoinService>,
    clock: &Arc<dyn Clock>,
) -> Result<(), Refusal> {
    let (mut send, recv) = connection.accept_bi().await.map_err(|error| Refusal::of_connection(&error))?;
    // The handshake timeout in `server::enter` bounds this wait.
    let frame = first_frame(&mut BufReader::new(recv), connection).await?;
    let Request { token, name, request } = codec::decode(&frame)
        .map_err(|error| Refusal::new(Cause::Language, format!("invalid join request: {error}")))?;
    let (desk, now) = (Arc::clone(desk), clock.now());
    // Recording the use of a token waits for the disk, so a blocking thread does it.
    let signed = tokio::task::spawn_blocking(move || desk.sign(&token, &name, &request, now)).await;
    let chain_pem = match signed {
        Ok(Ok(chain_pem)) => chain_pem,
        Ok(Err(JoinServiceError::Token(error))) => return Err(Refusal::new(Cause::Token, error)),
        Ok(Err(JoinServiceError::Certs(error @ CertsError::Request(_)))) => {
            return Err(Refusal::new(Cause::Language, error));
        }
        // Invalid files of the authority concern the operator, not the peer.
        Ok(Err(JoinServiceError::Certs(_))) | Err(_) => {
            return Err(Refusal::new(Cause::Busy, "the manager failed to issue a certificate; see its log"));
        }
    };
    let mut bytes = Vec::new();
    let answer = codec::encode(&Answer { chain_pem });
    frames::append(&answer.map_err(|error| Refusal::new(Cause::Lost, error))?, &mut bytes);
    send.write_all(&bytes).await.map_err(|error| connection_lost(connection, &error))?;
    if send.finish().is_ok() {
        // The worker may close the connection once it has its certificate.
        let _ = send.stopped().await;
    }
    Refusal::new(Cause::Ended, "the connection has ended normally").close(connection);
    Ok(())
}

/// Reason for a failed join.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The text is not a token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The manager refused the token or did not respond.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// Keys or certificates cannot be created or written.
    #[error(transparent)]
    Certs(#[from] CertsError),
    /// The network is unusable.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Exchanges a token for the certificate of a worker of this name, and writes it to a folder that has none.
///
/// # Errors
/// Returns [`JoinError`].
pub async fn join(
    network: &QuicRuntime,
    address: SocketAddr,
    token: &str,
    name: NodeName,
    folder: &Path,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Credentials, JoinError> {
    // Checked before the request: the certificate for a single-use token would be lost if its folder already has one.
    let node = folder.join(NODE_FILE);
    if node.symlink_metadata().is_ok() {
        return Err(CertsError::Exists(node).into());
    }
    make_folder(folder)?;
    // A malformed token fails here, before a key is created or a connection opened.
    let authority = *token.parse::<Token>()?.authority();
    let applicant = SigningRequest::new()?;
    let request = Request { token: token.to_owned(), name, request: ByteBuf::from(applicant.request()) };
    let endpoint = {
        let _runtime = network.handle().enter();
        endpoint(client::any_address(address), None, settings)?
    };
    let (crypto, settings) = (tls::joining(authority, clock)?, settings.clone());
    let within = settings.handshake;
    // One timeout for all steps: a peer may accept the connection and then stay silent.
    let asking = network.handle().spawn(timeout(within, async move {
        let connection = client::open(&endpoint, crypto, address, Role::Manager, &settings).await?;
        let answer = ask(&connection, &request).await;
        Refusal::new(Cause::Ended, "the connection has ended normally").close(&connection);
        // The socket must outlive the close message, or the manager would see a silent peer.
        endpoint.wait_idle().await;
        answer
    }));
    let chain_pem = match asking.await {
        Ok(Ok(answer)) => answer?,
        Ok(Err(_)) => {
            let text = format!("no response from {address} within {} s", within.as_secs_f64());
            return Err(Refusal::new(Cause::Unreachable, text).into());
        }
        Err(_) => return Err(Refusal::new(Cause::Lost, "the network runtime has ended").into()),
    };
    Ok(applicant.write_credentials(&chain_pem, folder)?)
}

async fn ask(connection: &Connection, request: &Request) -> Result<String, Refusal> {
    let (mut send, recv) = connection.open_bi().await.map_err(|error| Refusal::of_connection(&error))?;
    let mut bytes = Vec::new();
    frames::append(&codec::encode(request).map_err(|error| Refusal::new(Cause::Lost, error))?, &mut bytes);
    send.write_all(&bytes).await.map_err(|error| connection_lost(connection, &error))?;
    let frame = first_frame(&mut BufReader::new(recv), connection).await?;
    let answer = codec::decode::<Answer>(&frame);
    answer.map(|answer| answer.chain_pem).map_err(|error| Refusal::new(Cause::Language, error))
}
