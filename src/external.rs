//! Studies of models that pleach does not execute: samples are drawn into a file, and what somebody's own program has made
//! of them is analyzed.
//!
//! [`problem`] reads which parameters there are, [`method`] what is to be done with them, [`sampling`] writes the samples;
//! [`samples`] and [`responses`] read back, [`doubts`] judges the sample, [`analysis`] analyses. Files of tables are `pleach-tables`'s, designs and indices
//! `pleach-sensitivity`'s. Nothing is executed, and no image is known here.

pub(crate) mod analysis;
pub(crate) mod doubts;
pub(crate) mod method;
pub(crate) mod problem;
pub(crate) mod responses;
pub(crate) mod samples;
pub(crate) mod sampling;
