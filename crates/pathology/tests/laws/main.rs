//! Laws: fast code against an independent, slow definition of its result, on small random images. Covers every kernel,
//! the whole chain of the seven tasks, level sets, stain normalization, and outlines of objects.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

mod chain;
mod images;
mod kernels;
mod levelset;
mod normalization;
mod outlines;
mod slow;
mod slow_levelset;
mod tasks;
