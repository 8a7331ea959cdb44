//! Laws of the bucket tier, against a real server: `s3s-fs`, or moto's `moto_server`, whichever is installed.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

mod bucket;
#[path = "../../../storage/tests/laws/recorder.rs"]
mod recorder;
#[expect(dead_code, reason = "folders are opened in the other crate that reads this file")]
#[path = "../../../storage/tests/laws/regions.rs"]
mod regions;
mod server;
mod serving;
