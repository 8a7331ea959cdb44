//! TLS 1.3 for HTTP: a manager presents its node's certificate, and clients may present theirs.
//!
//! Clients verify a manager by the name of its role ([`Role::dns_name`]), not by its host name: the cluster's authority
//! certifies managers, independent of their host. The HTTP layer authorizes clients.

use super::certs::secret_files::read;
use super::certs::{CA_FILE, CertsError, Credentials, NODE_FILE};
use super::clock::Clock;
use super::identity::Role;
use super::quic::NetworkError;
use super::quic::tls::{self, Time, provider, roots, unusable};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// Trusted authority of a client, and the certificate it presents.
#[derive(Debug)]
pub struct Trust {
    authority: CertificateDer<'static>,
    credentials: Option<Credentials>,
}

impl Trust {
    /// Loads a folder: credentials of a node, as written by `pleach certs issue`, or only the authority's certificate
    /// (`ca.pem`) for a client with a token.
    ///
    /// # Errors
    /// Returns [`CertsError`].
    pub fn load(folder: &Path) -> Result<Self, CertsError> {
        if folder.join(NODE_FILE).symlink_metadata().is_ok() {
            let credentials = Credentials::load(folder)?;
            return Ok(Self { authority: credentials.authority().clone(), credentials: Some(credentials) });
        }
        let path = folder.join(CA_FILE);
        let authority = CertificateDer::from_pem_slice(&read(&path)?).map_err(|_| CertsError::Content {
            path,
            what: "not the certificate of an authority; a file written by `pleach certs init` is allowed"
                .to_owned(),
        })?;
        Ok(Self { authority, credentials: None })
    }

    /// Returns whether the client has a certificate.
    #[must_use]
    pub fn is_certified(&self) -> bool {
        self.credentials.is_some()
    }
}

/// Configures a manager's server. Clients without a certificate pass TLS, because they may have a token. Sessions are never
/// resumed, as between nodes.
///
/// # Errors
/// Returns [`NetworkError::Certificate`].
pub fn server(credentials: &Credentials, clock: &Arc<dyn Clock>) -> Result<ServerConfig, NetworkError> {
    tls::lenient(credentials, clock)
}

/// Configures a client. Also returns the name to look for in the manager's certificate.
///
/// # Errors
/// Returns [`NetworkError::Certificate`].
pub fn client(
    trust: &Trust,
    clock: &Arc<dyn Clock>,
) -> Result<(ClientConfig, ServerName<'static>), NetworkError> {
    let roots = roots(&trust.authority).map_err(unusable)?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots, provider()).build().map_err(unusable)?;
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(Time(Arc::clone(clock))));
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(unusable)?.with_webpki_verifier(verifier);
    let mut config = match &trust.credentials {
        Some(shown) => builder.with_client_auth_cert(shown.chain(), shown.key()).map_err(unusable)?,
        None => builder.with_no_client_auth(),
    };
    // A resumed session would skip the verification of a certificate that has expired meanwhile.
    config.resumption = Resumption::disabled();
    let name = ServerName::try_from(Role::Manager.dns_name()).map_err(unusable)?;
    Ok((config, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::certs::{Authority, Validity};
    use crate::transport::clock::SystemClock;
    use crate::transport::identity::NodeIdentity;
    use std::fs;

    #[test]
    fn trust_is_loaded_from_authority_or_node_folder() {
        let place = tempfile::tempdir().unwrap();
        let (ca, node) = (place.path().join("ca"), place.path().join("c1"));
        let authority = Authority::init(&ca, SystemClock.now()).unwrap();
        let identity = NodeIdentity { name: "c1".parse().unwrap(), role: Role::Client };
        authority.issue(&identity, Validity::days(1, SystemClock.now()).unwrap(), &node).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        for (folder, is_certified) in [(&ca, false), (&node, true)] {
            let trust = Trust::load(folder).unwrap();
            assert_eq!(&trust.authority, authority.certificate());
            assert_eq!(trust.is_certified(), is_certified);
            let (config, name) = client(&trust, &clock).unwrap();
            assert_eq!(config.client_auth_cert_resolver.has_certs(), is_certified);
            assert_eq!(name.to_str(), "manager.pleach");
        }
        // Incomplete credentials are an error, unlike those of a client with a token.
        fs::remove_file(node.join("node-key.pem")).unwrap();
        assert!(matches!(Trust::load(&node), Err(CertsError::File { .. })));
        fs::write(ca.join(CA_FILE), "nothing").unwrap();
        assert!(matches!(Trust::load(&ca), Err(CertsError::Content { .. })));
    }
}
