//! Commands of the processes of a cluster, and of those who operate it.

pub(super) mod certs;
pub(super) mod doctor;
pub(super) mod manager;
pub(super) mod storage;
pub(super) mod worker;
