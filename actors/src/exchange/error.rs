//! Failed fetches, holder by holder.

use crate::transport::refusal::Refusal;
use pleach_regions::RegionKey;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Reason for a holder that did not send a region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HolderError {
    /// The connection failed or ended.
    #[error("{0}")]
    Refused(Refusal),
    /// The holder does not have the region, or not any more.
    #[error("region not found")]
    Missing,
    /// The holder is overloaded, or this worker is connected to too many others.
    #[error("too many transfers in progress")]
    Busy,
    /// The holder has many receivers, and names one that has the region.
    #[error("redirected to {0}")]
    Redirected(SocketAddr),
    /// The sent data does not match the announced region.
    #[error("received corrupt data: {0}")]
    Corrupt(String),
    /// The holder was silent for this duration.
    #[error("no data for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The holder failed to send the region.
    #[error("failed to send: {0}")]
    NotSent(String),
    /// The exchange of this worker has ended.
    #[error("the exchange has ended")]
    Ended,
}

/// A tried holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedHolder {
    /// Address of the holder.
    pub holder: SocketAddr,
    /// Failure of the holder.
    pub failure: HolderError,
}

/// No holder sent the region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to fetch data region {key}: {}", Reasons(.tried))]
pub struct FetchError {
    /// Key of the region.
    pub key: RegionKey,
    /// Tried holders in order. Empty if no holder was known.
    pub tried: Vec<FailedHolder>,
}

struct Reasons<'a>(&'a [FailedHolder]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no known holder");
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
    fn fetch_error_lists_each_holder_with_its_reason() {
        let holder = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let tried = vec![
            FailedHolder { holder: holder(1), failure: HolderError::Missing },
            FailedHolder { holder: holder(2), failure: HolderError::Silent(Duration::from_millis(1500)) },
        ];
        let error = FetchError { key: RegionKey([0xab; 16]), tried };
        assert_eq!(
            error.to_string(),
            format!(
                "failed to fetch data region {}: 127.0.0.1:1: region not found; 127.0.0.1:2: no data for \
                 1.5 s",
                "ab".repeat(16)
            )
        );
        let untried = FetchError { tried: vec![], ..error };
        assert!(untried.to_string().ends_with(": no known holder"));
    }
}
