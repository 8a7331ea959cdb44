//! Address of a manager: scheme and authority of its URL.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use ureq::http::Uri;

/// `https://HOST` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerUrl(String);

/// Error for a text that is no address of a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("https://HOST:PORT, the --http address of a manager, is allowed")]
pub struct InvalidManagerUrl;

impl FromStr for ManagerUrl {
    type Err = InvalidManagerUrl;

    fn from_str(text: &str) -> Result<Self, InvalidManagerUrl> {
        let uri: Uri = text.parse().map_err(|_| InvalidManagerUrl)?;
        // The parser accepts `HOST:PORT` as a URI that has only an authority.
        if !matches!(uri.scheme_str(), Some("https") | None) || !matches!(uri.path(), "" | "/") {
            return Err(InvalidManagerUrl);
        }
        let authority = uri.authority().filter(|_| uri.query().is_none()).ok_or(InvalidManagerUrl)?;
        let is_address = !authority.host().is_empty() && !authority.as_str().contains('@');
        // An invalid port is dropped silently. The address is then not the one that the user meant.
        let has_port = authority.port_u16().is_some_and(|port| port > 0);
        let names_port = authority.as_str().len() > authority.host().len();
        if !is_address || names_port != has_port {
            return Err(InvalidManagerUrl);
        }
        Ok(Self(format!("https://{authority}")))
    }
}

impl fmt::Display for ManagerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manager_addresses_are_parsed() {
        for (text, url) in [
            ("https://m1:7101", "https://m1:7101"),
            ("https://m1:7101/", "https://m1:7101"),
            ("m1:7101", "https://m1:7101"),
            ("https://m1.example", "https://m1.example"),
            ("127.0.0.1:1", "https://127.0.0.1:1"),
            ("https://[::1]:7101", "https://[::1]:7101"),
        ] {
            assert_eq!(text.parse::<ManagerUrl>().map(|url| url.0).as_deref(), Ok(url), "{text}");
        }
        for text in [
            "",
            "http://m1:7101",
            "https://",
            "https://m1:0",
            "https://m1:99999",
            "https://m1:",
            "https://m1:7101/api",
            "https://m1:7101?a=b",
            "https://user@m1:7101",
            "/m1",
            "m 1:7",
        ] {
            assert!(text.parse::<ManagerUrl>().is_err(), "{text}");
        }
    }
}
