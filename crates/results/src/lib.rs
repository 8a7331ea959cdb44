//! Results of a study: responses and indices ([`analysis`]), and the files of its result folder.
//!
//! [`folder`] owns a result folder, [`journal`] logs responses before they are acknowledged, and [`cache_walk`] finds
//! responses that follow from the task cache. The crate draws nothing and prints nothing; `pleach-report` draws.

pub mod analysis;
pub mod cache_walk;
pub mod checksum;
pub mod chosen;
pub mod folder;
pub mod journal;
pub mod measured_run;
pub mod provenance;
pub mod record;
pub mod survivors;
pub mod tables;
pub mod template;
