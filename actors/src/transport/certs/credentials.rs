//! Credentials of a node: its certificate and key, and its cluster's authority.

use super::secret_files::read;
use super::{CertsError, NODE_FILE, NODE_KEY_FILE};
use crate::transport::identity::NodeIdentity;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// Reason why peers of the same cluster refuse credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CredentialsDefect {
    /// The key does not belong to the certificate.
    #[error("the key does not belong to the certificate")]
    Key,
    /// The authority in the chain has not issued the certificate.
    #[error("the authority in the same file has not issued the certificate")]
    Foreign,
    /// The certificate has expired.
    #[error("the certificate has expired")]
    Expired,
    /// The validity of the certificate begins later.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// The certificate of the authority has expired.
    #[error("the authority's certificate has expired")]
    ExpiredAuthority,
}

/// Credentials of a node, not verified.
pub struct Credentials {
    pub(super) identity: NodeIdentity,
    /// The node's certificate, then the authority's.
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Loads a folder that `pleach certs issue` or a join with a token has written. The peer verifies the credentials when
    /// it gets them.
    ///
    /// # Errors
    /// Returns [`CertsError`].
    pub fn load(folder: &Path) -> Result<Self, CertsError> {
        let (path, key_path) = (folder.join(NODE_FILE), folder.join(NODE_KEY_FILE));
        let chain = certificates(&read(&path)?);
        // Exactly two: `authority` reads the second, and joining workers find it in the chain.
        let [certificate, _] = &chain[..] else {
            let what = "not the certificates of a node and its authority; a file written by `pleach certs \
                        issue` is allowed";
            return Err(CertsError::Content { path, what: what.to_owned() });
        };
        let identity = NodeIdentity::of_certificate(certificate)
            .map_err(|source| CertsError::Identity { path, source })?;
        let Ok(key) = PrivateKeyDer::from_pem_slice(&read(&key_path)?) else {
            let what = "not the key of a node; a file written by `pleach certs issue` is allowed".to_owned();
            return Err(CertsError::Content { path: key_path, what });
        };
        Ok(Self { identity, chain, key })
    }

    /// Returns the identity in the certificate.
    #[must_use]
    pub fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    /// Returns whether the certificate has expired at `now`, a time since 1970. Returns `false` if it is invalid for another
    /// reason.
    #[must_use]
    pub fn is_expired(&self, now: Duration) -> bool {
        let [certificate, authority] = &self.chain[..] else { return false };
        let provider = rustls::crypto::ring::default_provider();
        let verified = webpki::EndEntityCert::try_from(certificate).and_then(|node| {
            let anchor = webpki::anchor_from_trusted_cert(authority)?;
            node.verify_for_usage(
                provider.signature_verification_algorithms.all,
                &[anchor],
                &[],
                UnixTime::since_unix_epoch(now),
                webpki::KeyUsage::client_auth(),
                None,
                None,
            )?;
            Ok(())
        });
        matches!(verified, Err(webpki::Error::CertExpired { .. }))
    }

    /// Verifies the credentials at `now`, a time since 1970, as a peer with the same authority would, and compares the key with
    /// the certificate.
    ///
    /// # Errors
    /// Returns the first [`CredentialsDefect`].
    pub fn verify(&self, now: Duration) -> Result<(), CredentialsDefect> {
        let [certificate, authority] = &self.chain[..] else { return Err(CredentialsDefect::Foreign) };
        let provider = rustls::crypto::ring::default_provider();
        let key = provider.key_provider.load_private_key(self.key.clone_key());
        let key = key.map_err(|_| CredentialsDefect::Key)?;
        let owned = CertifiedKey::new(self.chain(), key).keys_match();
        owned.map_err(|_| CredentialsDefect::Key)?;
        let verified = webpki::EndEntityCert::try_from(certificate).and_then(|node| {
            let anchor = webpki::anchor_from_trusted_cert(authority)?;
            let algorithms = provider.signature_verification_algorithms.all;
            let (now, usage) = (UnixTime::since_unix_epoch(now), webpki::KeyUsage::client_auth());
            node.verify_for_usage(algorithms, &[anchor], &[], now, usage, None, None).map(|_| ())
        });
        match verified {
            Ok(()) => {}
            Err(webpki::Error::CertExpired { .. }) => return Err(CredentialsDefect::Expired),
            Err(webpki::Error::CertNotValidYet { .. }) => return Err(CredentialsDefect::NotYetValid),
            Err(_) => return Err(CredentialsDefect::Foreign),
        }
        // A trust anchor is its name and its key: webpki does not look at its validity.
        match self.expiry()[1] {
            Some(end) if end < now => Err(CredentialsDefect::ExpiredAuthority),
            _ => Ok(()),
        }
    }

    /// Returns the ends of validity of the node's certificate and of the authority's, since 1970. `None` for one that cannot
    /// be parsed.
    #[must_use]
    pub fn expiry(&self) -> [Option<Duration>; 2] {
        let expiry = |number: usize| {
            let (_, parsed) = x509_parser::parse_x509_certificate(self.chain.get(number)?).ok()?;
            u64::try_from(parsed.validity().not_after.timestamp()).ok().map(Duration::from_secs)
        };
        [expiry(0), expiry(1)]
    }

    /// The node's certificate, then the authority's.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// Returns the certificate of the trusted authority.
    pub(crate) fn authority(&self) -> &CertificateDer<'static> {
        &self.chain[1]
    }
}

/// Parses PEM certificates. Returns none if any of them is invalid.
pub(super) fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().unwrap_or_default()
}
