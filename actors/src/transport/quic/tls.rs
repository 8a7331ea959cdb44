//! TLS 1.3 for connections: certificates that each side presents, and their verification.
//!
//! Certificates are verified against the cluster's authority and the injected clock. Sessions are never resumed, because a
//! resumed session would not verify a certificate that has expired meanwhile.

use super::NetworkError;
use crate::transport::certs::Credentials;
use crate::transport::clock::Clock;
use crate::transport::token::{Fingerprint, fingerprint};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;

/// Application protocol (ALPN) of nodes with certificates. It does not contain the protocol's version, so that nodes of
/// different versions can connect and report the mismatch.
pub(super) const NODES: &[u8] = b"pleach";

/// Application protocol of workers with only a token.
pub(super) const JOINING: &[u8] = b"pleach-join";

#[derive(Debug)]
pub(in crate::transport) struct Time(pub(in crate::transport) Arc<dyn Clock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.now()))
    }
}

pub(in crate::transport) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

pub(in crate::transport) fn unusable(error: impl ToString) -> NetworkError {
    NetworkError::Certificate(error.to_string())
}

pub(in crate::transport) fn roots(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    Ok(Arc::new(roots))
}

/// Configures a server for peers with or without a certificate. A presented certificate must be valid. Sessions are never
/// resumed.
pub(in crate::transport) fn lenient(
    credentials: &Credentials,
    clock: &Arc<dyn Clock>,
) -> Result<ServerConfig, NetworkError> {
    let roots = roots(credentials.authority()).map_err(unusable)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let verifier = verifier.allow_unauthenticated().build().map_err(unusable)?;
    let builder = ServerConfig::builder_with_details(provider(), Arc::new(Time(Arc::clone(clock))));
    let builder =
        builder.with_protocol_versions(&[&TLS13]).map_err(unusable)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(credentials.chain(), credentials.key()).map_err(unusable)?;
    // Without tickets, no client can resume a session past the expiry of its certificate.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Configures a server. Peers without a certificate pass TLS, so that they can get the reason for a refusal, or present a
/// token to a join service.
pub(super) fn server(
    credentials: &Credentials,
    clock: &Arc<dyn Clock>,
    is_desk: bool,
) -> Result<Arc<QuicServerConfig>, NetworkError> {
    let mut config = lenient(credentials, clock)?;
    config.alpn_protocols = vec![NODES.to_vec()];
    if is_desk {
        config.alpn_protocols.push(JOINING.to_vec());
    }
    QuicServerConfig::try_from(config).map(Arc::new).map_err(unusable)
}

/// Configures a client with a certificate.
pub(super) fn client(
    credentials: &Credentials,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<QuicClientConfig>, NetworkError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(
        roots(credentials.authority()).map_err(unusable)?,
        provider(),
    );
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(Time(Arc::clone(clock))));
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(unusable)?;
    let builder = builder.with_webpki_verifier(verifier.build().map_err(unusable)?);
    let config = builder.with_client_auth_cert(credentials.chain(), credentials.key()).map_err(unusable)?;
    finish(config, NODES)
}

/// Configures a client with a token, which knows only the fingerprint of the manager's authority.
pub(super) fn joining(
    authority: Fingerprint,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<QuicClientConfig>, NetworkError> {
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(Time(Arc::clone(clock))));
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(unusable)?;
    let verifier = Arc::new(Fingerprinted { authority, provider: provider() });
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    finish(config, JOINING)
}

fn finish(mut config: ClientConfig, speaks: &[u8]) -> Result<Arc<QuicClientConfig>, NetworkError> {
    config.alpn_protocols = vec![speaks.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    QuicClientConfig::try_from(config).map(Arc::new).map_err(unusable)
}

/// Verifies a server by the fingerprint of its authority. The server presents the authority with its own certificate.
#[derive(Debug)]
struct Fingerprinted {
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Fingerprinted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The worker knows only the fingerprint, so the authority's certificate must be in the chain.
        let known = intermediates.iter().find(|certificate| fingerprint(certificate) == self.authority);
        let Some(authority) = known else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let roots = roots(&authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&self.provider));
        let verifier = verifier.build().map_err(|error| Error::General(error.to_string()))?;
        // Without intermediates, because the authority signs managers directly. `name` is that of the manager role.
        verifier.verify_server_cert(end_entity, &[], name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
