//! Signing request (CSR) of a node that has a key and no certificate yet.

use super::credentials::certificates;
use super::secret_files::{make_folder, write_new};
use super::{CertsError, Credentials, NODE_FILE, NODE_KEY_FILE};
use crate::transport::identity::NodeIdentity;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;

/// Key of a node, with a signing request.
pub(crate) struct SigningRequest {
    key: KeyPair,
    request: Vec<u8>,
}

impl SigningRequest {
    /// Creates a new key and its signing request.
    pub(crate) fn new() -> Result<Self, CertsError> {
        let key = KeyPair::generate()?;
        let request = CertificateParams::default().serialize_request(&key)?.der().to_vec();
        Ok(Self { key, request })
    }

    /// Returns the request, as DER.
    pub(crate) fn request(&self) -> &[u8] {
        &self.request
    }

    /// Writes the key and the received certificates to a folder. Returns them as credentials.
    pub(crate) fn write_credentials(self, chain_pem: &str, folder: &Path) -> Result<Credentials, CertsError> {
        let path = folder.join(NODE_FILE);
        let chain = certificates(chain_pem.as_bytes());
        // Checked before anything is written, because files of credentials are never overwritten.
        let [certificate, _] = &chain[..] else {
            let what = "the response of the manager is not a certificate".to_owned();
            return Err(CertsError::Content { path, what });
        };
        let identity = NodeIdentity::of_certificate(certificate)
            .map_err(|source| CertsError::Identity { path: path.clone(), source })?;
        make_folder(folder)?;
        // The certificate is written last, so that a folder with a certificate has its key.
        write_new(&folder.join(NODE_KEY_FILE), self.key.serialize_pem().as_bytes())?;
        write_new(&path, chain_pem.as_bytes())?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        Ok(Credentials { identity, chain, key })
    }
}
