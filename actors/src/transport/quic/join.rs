//! Certificates for tokens: the request of a worker without a certificate, and the service that answers it.
//!
//! The worker creates its key and sends a signing request; the key never travels. It verifies the manager by the fingerprint in
//! the token before it sends anything. The service sets name and role: a worker with the requested name.

use super::server::{first_frame, lost};
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
use quinn::Connection;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::io::BufReader;
use tokio::time::timeout;

/// The certificate of a worker that joined with a token is valid for this long: longer than studies take, and short
/// enough to forget about machines that were rented.
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
    /// The token is not good.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The request is not, or files of the authority are not.
    #[error(transparent)]
    Certs(#[from] CertsError),
}

impl JoinService {
    /// The desk of the authority in a folder. It has the folder's list of used tokens for itself.
    ///
    /// # Errors
    /// [`CertsError`].
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let authority = Authority::open(folder)?;
        let used = Mutex::new(UsedTokens::open(&folder.join(USED_TOKENS_FILE))?);
        Ok(Self { authority, used })
    }

    /// Returns the certificates for a worker with an unverified token and signing request. The use of the token is on disk before
    /// the return.
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
        // A request that cannot be signed does not use the token up.
        let issued = self.authority.sign(request, &identity, Validity::days(JOINED_DAYS, now)?)?;
        if good.is_once {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
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
    let frame = first_frame(&mut BufReader::new(recv), connection).await?;
    let Request { token, name, request } = codec::decode(&frame)
        .map_err(|error| Refusal::new(Cause::Language, format!("not a request to join: {error}")))?;
    let (desk, now) = (Arc::clone(desk), clock.now());
    // To write down that a token is used takes a disk's time.
    let signed = tokio::task::spawn_blocking(move || desk.sign(&token, &name, &request, now)).await;
    let chain_pem = match signed {
        Ok(Ok(chain_pem)) => chain_pem,
        Ok(Err(JoinServiceError::Token(error))) => return Err(Refusal::new(Cause::Token, error)),
        Ok(Err(JoinServiceError::Certs(error @ CertsError::Request(_)))) => {
            return Err(Refusal::new(Cause::Language, error));
        }
        // Defects of the authority's files concern the operator, not the peer.
        Ok(Err(JoinServiceError::Certs(_))) | Err(_) => {
            return Err(Refusal::new(Cause::Busy, "the authority cannot give certificates at this time"));
        }
    };
    let mut bytes = Vec::new();
    let answer = codec::encode(&Answer { chain_pem });
    frames::append(&answer.map_err(|error| Refusal::new(Cause::Lost, error))?, &mut bytes);
    send.write_all(&bytes).await.map_err(|error| lost(connection, &error))?;
    if send.finish().is_ok() {
        // It may end the connection as soon as it has what it wants.
        let _ = send.stopped().await;
    }
    Refusal::new(Cause::Ended, "all has been said").close(connection);
    Ok(())
}

/// Reason for a token without a certificate.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The token is none.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The manager refused or did not answer.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// Keys and certificates cannot be made or kept.
    #[error(transparent)]
    Certs(#[from] CertsError),
    /// Nothing can be sent.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Gets a worker of this name a certificate for a token, and keeps it in a folder that has none.
///
/// # Errors
/// [`JoinError`].
pub async fn join(
    network: &QuicRuntime,
    address: SocketAddr,
    token: &str,
    name: NodeName,
    folder: &Path,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Credentials, JoinError> {
    // A token that can be used once is not to be used in vain.
    let node = folder.join(NODE_FILE);
    if node.symlink_metadata().is_ok() {
        return Err(CertsError::Exists(node).into());
    }
    make_folder(folder)?;
    let authority = *token.parse::<Token>()?.authority();
    let applicant = SigningRequest::new()?;
    let request = Request { token: token.to_owned(), name, request: ByteBuf::from(applicant.request()) };
    let endpoint = {
        let _runtime = network.handle().enter();
        endpoint(client::any_address(address), None, settings)?
    };
    let (crypto, settings) = (tls::joining(authority, clock)?, settings.clone());
    let within = settings.handshake;
    let asking = network.handle().spawn(timeout(within, async move {
        let connection = client::open(&endpoint, crypto, address, Role::Manager, &settings).await?;
        let answer = ask(&connection, &request).await;
        Refusal::new(Cause::Ended, "all has been said").close(&connection);
        endpoint.wait_idle().await;
        answer
    }));
    let chain_pem = match asking.await {
        Ok(Ok(answer)) => answer?,
        Ok(Err(_)) => {
            let text = format!("nobody answered at {address} within {} s", within.as_secs_f64());
            return Err(Refusal::new(Cause::Unreachable, text).into());
        }
        Err(_) => return Err(Refusal::new(Cause::Lost, "the network has ended").into()),
    };
    Ok(applicant.keep(&chain_pem, folder)?)
}

async fn ask(connection: &Connection, request: &Request) -> Result<String, Refusal> {
    let (mut send, recv) = connection.open_bi().await.map_err(|error| Refusal::of_connection(&error))?;
    let mut bytes = Vec::new();
    frames::append(&codec::encode(request).map_err(|error| Refusal::new(Cause::Lost, error))?, &mut bytes);
    send.write_all(&bytes).await.map_err(|error| lost(connection, &error))?;
    let frame = first_frame(&mut BufReader::new(recv), connection).await?;
    let answer = codec::decode::<Answer>(&frame);
    answer.map(|answer| answer.chain_pem).map_err(|error| Refusal::new(Cause::Language, error))
}
