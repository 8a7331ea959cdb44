//! Studies of models that pleach does not execute: samples are drawn into a file, and what somebody's own program has made
//! of them is analysed.
//!
//! [`problem`] reads which parameters there are, [`way`] what is to be done with them, [`draw`] writes the samples;
//! [`samples`] and [`responses`] read back, [`doubts`] judges the sample, [`verdict`] analyses. Files of tables are `pleach-tables`'s, designs and indices
//! `pleach-sensitivity`'s. Nothing is executed, and no image is known here.

pub(crate) mod doubts;
pub(crate) mod draw;
pub(crate) mod problem;
pub(crate) mod responses;
pub(crate) mod samples;
pub(crate) mod verdict;
pub(crate) mod way;
