//! Laws: everything fast against an independent, slow statement of what it computes, on small random images: every
//! kernel, the whole chain of the seven tasks, normalization.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

mod chain;
mod images;
mod kernels;
mod normalization;
mod slow;
mod tasks;
