//! Identity of a node by its certificate: a name and a role.
//!
//! The certificate contains both as DNS names that are never resolved: `NAME.ROLE.pleach` for the node and `ROLE.pleach` for
//! any node of its role. TLS therefore ensures that a node connected to as a manager has a manager's certificate. This
//! module does not verify certificates.

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Suffix of all node names.
const DOMAIN: &str = "pleach";

/// Role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Schedules work.
    Manager,
    /// Executes work.
    Worker,
    /// Submits studies and queries their state.
    Client,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Manager, Self::Worker, Self::Client];

    /// Returns the role as written in certificates.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Worker => "worker",
            Self::Client => "client",
        }
    }

    /// Returns the DNS name shared by all certificates of this role.
    #[must_use]
    pub fn dns_name(self) -> String {
        format!("{self}.{DOMAIN}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reason for an invalid node name or role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// The text is not a valid node name.
    #[error("1 to 63 lower-case letters, digits and hyphens are allowed, without a hyphen at either end")]
    Name,
    /// The text is not a role.
    #[error("manager, worker and client are allowed")]
    Role,
    /// A certificate has no node identity.
    #[error("the certificate does not name a node of a cluster (NAME.ROLE.pleach)")]
    Certificate,
}

impl FromStr for Role {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(IdentityError::Role)
    }
}

/// Name of a node: a DNS label in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

impl NodeName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let edges = !text.starts_with('-') && !text.ends_with('-');
        let is_name = (1..=63).contains(&text.len()) && edges && text.bytes().all(allowed);
        if is_name { Ok(Self(text.to_owned())) } else { Err(IdentityError::Name) }
    }
}

impl TryFrom<String> for NodeName {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a node, as in its certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdentity {
    /// The node's name.
    pub name: NodeName,
    /// Role of the node.
    pub role: Role,
}

impl NodeIdentity {
    /// Returns the DNS names of the node's certificate.
    #[must_use]
    pub fn dns_names(&self) -> [String; 2] {
        [format!("{}.{}", self.name, self.role.dns_name()), self.role.dns_name()]
    }

    /// Reads the identity in a certificate without verifying the certificate.
    ///
    /// # Errors
    /// Returns [`IdentityError::Certificate`].
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|_| IdentityError::Certificate)?;
        parsed.valid_dns_names().find_map(Self::of_dns_name).ok_or(IdentityError::Certificate)
    }

    fn of_dns_name(name: &str) -> Option<Self> {
        // The second DNS name of a certificate, ROLE.pleach, has one label less and therefore no identity.
        let mut labels = name.split('.');
        let (name, role, domain) = (labels.next()?, labels.next()?, labels.next()?);
        if domain != DOMAIN || labels.next().is_some() {
            return None;
        }
        Some(Self { name: name.parse().ok()?, role: role.parse().ok()? })
    }
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_node_names_are_refused() {
        for text in ["", "-a", "a-", "A", "a.b", "a b", "ä", &"a".repeat(64), "a\0"] {
            assert_eq!(text.parse::<NodeName>(), Err(IdentityError::Name), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn names_round_trip(name in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", role in 0..3usize) {
            let identity = NodeIdentity { name: name.parse().unwrap(), role: Role::ALL[role] };
            let [full, any] = identity.dns_names();
            prop_assert_eq!(NodeIdentity::of_dns_name(&full), Some(identity));
            prop_assert_eq!(NodeIdentity::of_dns_name(&any), None);
        }

        #[test]
        fn parsing_noise_does_not_panic(text in ".{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = NodeIdentity::of_dns_name(&text);
            prop_assert!(NodeIdentity::of_certificate(&CertificateDer::from(bytes)).is_err());
        }
    }
}
