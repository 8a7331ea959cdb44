//! Statistics of counts: how often each byte, or each level, occurs.

mod entropy;
mod histogram;
mod moments;

pub(super) use entropy::Entropy;
pub(super) use histogram::{ByteStatistics, Histogram};
pub(super) use moments::PowerSums;
