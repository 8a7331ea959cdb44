//! Authority of a cluster: a key and a certificate in a folder. It signs the certificates of nodes.

use super::secret_files::{make_folder, read, write_new};
use super::{CA_FILE, CA_KEY_FILE, CertsError, NODE_FILE, NODE_KEY_FILE, TOKEN_KEY_FILE};
use crate::transport::identity::NodeIdentity;
use crate::transport::token::{self, TokenKey};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;

/// Maximum validity of a certificate, 10 years. An authority's own certificate is valid for as long.
pub const MAX_DAYS: u32 = 3650;

const DAY: Duration = Duration::from_secs(86_400);

/// Certificates are valid from 1 day before their creation, because clocks of a cluster differ. A node whose clock is 1 day
/// late still gets in.
const BACKDATED: Duration = DAY;

/// Validity of a certificate: from 1 day before `now` until `days` days after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    now: Duration,
    days: u32,
}

impl Validity {
    /// Creates a validity of `days` days from `now`, a time since 1970.
    ///
    /// # Errors
    /// Returns [`CertsError::Days`] unless `days` is 1 to [`MAX_DAYS`].
    pub fn days(days: u32, now: Duration) -> Result<Self, CertsError> {
        if (1..=MAX_DAYS).contains(&days) { Ok(Self { now, days }) } else { Err(CertsError::Days { days }) }
    }

    /// Returns the end of the validity, since 1970.
    #[must_use]
    pub fn end(self) -> Duration {
        self.now + DAY * self.days
    }
}

/// Certificate issued to a node.
#[derive(Clone, Debug)]
pub struct IssuedCertificate {
    /// The node's certificate.
    pub certificate: CertificateDer<'static>,
    /// The node's certificate, followed by the authority's.
    pub chain_pem: String,
}

/// Authority of a cluster, which signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    token_key: TokenKey,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates an authority in a folder that has none, valid for [`MAX_DAYS`] from `now`.
    ///
    /// # Errors
    /// Returns [`CertsError`]. Existing files are not changed.
    pub fn init(folder: &Path, now: Duration) -> Result<Self, CertsError> {
        make_folder(folder)?;
        for name in [CA_FILE, CA_KEY_FILE, TOKEN_KEY_FILE] {
            let path = folder.join(name);
            if path.symlink_metadata().is_ok() {
                return Err(CertsError::Exists(path));
            }
        }
        let key = KeyPair::generate()?;
        let mut params = params(&[], Validity { now, days: MAX_DAYS });
        // Each authority has its own name, so that a foreign certificate is recognized as foreign and not as forged.
        let fingerprint = token::fingerprint(key.public_key_raw());
        let name = format!("pleach cluster {}", token::hex(&fingerprint[..4]));
        params.distinguished_name.push(DnType::CommonName, name);
        // No intermediates: only the authority itself signs certificates of nodes.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?;
        write_new(&folder.join(CA_KEY_FILE), key.serialize_pem().as_bytes())?;
        write_new(&folder.join(TOKEN_KEY_FILE), TokenKey::generate()?.to_text().as_bytes())?;
        // The certificate is written last. A folder with a certificate is therefore complete.
        write_new(&folder.join(CA_FILE), certificate.pem().as_bytes())?;
        Self::open(folder)
    }

    /// Loads the authority of a folder.
    ///
    /// # Errors
    /// Returns [`CertsError::File`] and [`CertsError::Content`].
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let pem = text(&folder.join(CA_FILE))?;
        let wrong = |name: &str, what: &str| CertsError::Content {
            path: folder.join(name),
            what: format!("not the {what} of an authority; a file written by `pleach certs init` is allowed"),
        };
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| wrong(CA_FILE, "certificate"))?
            .into_owned();
        let key =
            KeyPair::from_pem(&text(&folder.join(CA_KEY_FILE))?).map_err(|_| wrong(CA_KEY_FILE, "key"))?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|_| wrong(CA_FILE, "certificate"))?;
        let token_key = TokenKey::from_text(&text(&folder.join(TOKEN_KEY_FILE))?)
            .ok_or_else(|| wrong(TOKEN_KEY_FILE, "token key"))?;
        Ok(Self { issuer, certificate, pem, token_key })
    }

    /// Returns the authority's certificate.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the key that seals tokens.
    #[must_use]
    pub fn token_key(&self) -> &TokenKey {
        &self.token_key
    }

    /// Creates a key and a certificate for a node, and writes both to a folder.
    ///
    /// # Errors
    /// Returns [`CertsError`]. Existing files are not changed.
    pub fn issue(
        &self,
        identity: &NodeIdentity,
        validity: Validity,
        folder: &Path,
    ) -> Result<IssuedCertificate, CertsError> {
        let paths: [PathBuf; 2] = [NODE_FILE, NODE_KEY_FILE].map(|name| folder.join(name));
        if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
            return Err(CertsError::Exists(path.clone()));
        }
        let key = KeyPair::generate()?;
        let issued = self.chain(&node_params(identity, validity).signed_by(&key, &self.issuer)?);
        make_folder(folder)?;
        let [node, node_key] = paths;
        // The certificate is written last, so that a folder with a certificate has its key.
        write_new(&node_key, key.serialize_pem().as_bytes())?;
        write_new(&node, issued.chain_pem.as_bytes())?;
        Ok(issued)
    }

    /// Signs the key of a request. The caller decides identity and validity. Nothing else of the request is used.
    ///
    /// # Errors
    /// Returns [`CertsError::Request`] and [`CertsError::Make`].
    pub fn sign(
        &self,
        request: &[u8],
        identity: &NodeIdentity,
        validity: Validity,
    ) -> Result<IssuedCertificate, CertsError> {
        let mut request =
            CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(request))
                .map_err(CertsError::Request)?;
        // Replaces all names and usages of the request, which an applicant chooses freely.
        request.params = node_params(identity, validity);
        Ok(self.chain(&request.signed_by(&self.issuer)?))
    }

    fn chain(&self, certificate: &rcgen::Certificate) -> IssuedCertificate {
        let chain_pem = format!("{}{}", certificate.pem(), self.pem);
        IssuedCertificate { certificate: certificate.der().clone(), chain_pem }
    }
}

/// Returns the parameters common to certificates of nodes and authorities.
fn params(dns_names: &[String], validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::new(dns_names).unwrap_or_default();
    let time = |since_1970: Duration| OffsetDateTime::UNIX_EPOCH + since_1970;
    params.not_before = time(validity.now.saturating_sub(BACKDATED));
    params.not_after = time(validity.end());
    params.distinguished_name = DistinguishedName::new();
    params
}

/// Returns the parameters of a node's certificate. It is valid for servers and clients, because workers connect to each
/// other.
fn node_params(identity: &NodeIdentity, validity: Validity) -> CertificateParams {
    let mut params = params(&identity.dns_names(), validity);
    params.distinguished_name.push(DnType::OrganizationalUnitName, identity.role.as_str());
    params.distinguished_name.push(DnType::CommonName, identity.name.as_str());
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params
}

fn text(path: &Path) -> Result<String, CertsError> {
    String::from_utf8(read(path)?)
        .map_err(|_| CertsError::Content { path: path.to_owned(), what: "not UTF-8 text".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::certs::Credentials;
    use crate::transport::identity::Role;
    use std::fs;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn identity(name: &str) -> NodeIdentity {
        NodeIdentity { name: name.parse().unwrap(), role: Role::Worker }
    }

    #[test]
    fn issued_credentials_load_with_identity_and_expiry() {
        let place = tempfile::tempdir().unwrap();
        let authority = Authority::init(place.path(), NOW).unwrap();
        let node = place.path().join("w1");
        let validity = Validity::days(30, NOW).unwrap();
        let issued = authority.issue(&identity("w1"), validity, &node).unwrap();
        assert_eq!(NodeIdentity::of_certificate(&issued.certificate), Ok(identity("w1")));
        let credentials = Credentials::load(&node).unwrap();
        assert_eq!(credentials.identity(), &identity("w1"));
        assert_eq!([0, 29, 31].map(|days| credentials.is_expired(NOW + DAY * days)), [false, false, true]);
        assert_eq!(credentials.expiry(), [30, MAX_DAYS].map(|days| Some(NOW + DAY * days)));
        let key = fs::read(node.join(NODE_KEY_FILE)).unwrap();
        assert!(matches!(authority.issue(&identity("w1"), validity, &node), Err(CertsError::Exists(_))));
        assert_eq!(fs::read(node.join(NODE_KEY_FILE)).unwrap(), key);
    }

    #[test]
    fn an_authority_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let first = Authority::init(place.path(), NOW).unwrap();
        assert!(matches!(Authority::init(place.path(), NOW), Err(CertsError::Exists(_))));
        assert_eq!(Authority::open(place.path()).unwrap().certificate(), first.certificate());
    }

    #[test]
    fn signing_ignores_all_of_a_request_but_its_key() {
        let place = tempfile::tempdir().unwrap();
        let authority = Authority::init(place.path(), NOW).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut wanted = params(&["m.manager.pleach".to_owned()], Validity { now: NOW, days: 9999 });
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let request = wanted.serialize_request(&key).unwrap();
        let validity = Validity::days(1, NOW).unwrap();
        let issued = authority.sign(request.der(), &identity("w2"), validity).unwrap();
        assert_eq!(NodeIdentity::of_certificate(&issued.certificate), Ok(identity("w2")));
        let mut forged = request.der().to_vec();
        *forged.last_mut().unwrap() ^= 1;
        for request in [&forged[..], b"noise", b""] {
            let refused = authority.sign(request, &identity("w2"), validity);
            assert!(matches!(refused, Err(CertsError::Request(_))));
        }
    }

    #[test]
    fn corrupt_authority_file_is_named() {
        let place = tempfile::tempdir().unwrap();
        Authority::init(place.path(), NOW).unwrap();
        for name in [CA_FILE, CA_KEY_FILE, TOKEN_KEY_FILE] {
            let path = place.path().join(name);
            let whole = fs::read(&path).unwrap();
            fs::write(&path, "nothing").unwrap();
            let error = Authority::open(place.path()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            fs::write(&path, whole).unwrap();
        }
    }

    #[test]
    fn days_have_a_limit() {
        for days in [0, MAX_DAYS + 1, u32::MAX] {
            assert!(Validity::days(days, NOW).is_err());
        }
    }
}
