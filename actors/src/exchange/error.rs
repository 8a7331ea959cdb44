//! Why a region could not be fetched, holder by holder.

use crate::transport::refusal::Refusal;
use pleach_regions::RegionKey;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Why a holder did not give a region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HolderError {
    /// It could not be connected to, or the connection ended.
    #[error("{0}")]
    Refused(Refusal),
    /// It does not have it, or not any more.
    #[error("it does not have it")]
    Lacking,
    /// It has too much to do, or this worker is connected to too many others.
    #[error("too much is under way between the two")]
    Busy,
    /// What it sent is not the region that it said.
    #[error("what it sent is damaged: {0}")]
    Damaged(String),
    /// Nothing has been heard of it for so long.
    #[error("nothing came for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It could not send it.
    #[error("it could not send it: {0}")]
    NotSent(String),
    /// The exchange here has ended.
    #[error("the exchange has ended")]
    Ended,
}

/// A holder that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedHolder {
    /// Where it is.
    pub holder: SocketAddr,
    /// What came of it.
    pub failure: HolderError,
}

/// None of the holders gave a region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to fetch data region {key}: {}", Reasons(.tried))]
pub struct FetchError {
    /// Its key.
    pub key: RegionKey,
    /// All holders that were tried, in that order; none, where none was known.
    pub tried: Vec<FailedHolder>,
}

struct Reasons<'a>(&'a [FailedHolder]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nobody is known to hold it");
        }
        for (number, FailedHolder { holder, failure }) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{holder}: {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_holder_and_its_reason_are_said() {
        let holder = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let tried = vec![
            FailedHolder { holder: holder(1), failure: HolderError::Lacking },
            FailedHolder { holder: holder(2), failure: HolderError::Silent(Duration::from_millis(1500)) },
        ];
        let error = FetchError { key: RegionKey([0xab; 16]), tried };
        assert_eq!(
            error.to_string(),
            format!(
                "failed to fetch data region {}: 127.0.0.1:1: it does not have it; 127.0.0.1:2: nothing came for 1.5 s",
                "ab".repeat(16)
            )
        );
        let nobody = FetchError { tried: vec![], ..error };
        assert!(nobody.to_string().ends_with(": nobody is known to hold it"));
    }
}
