//! Laws of the S3 tier, tested against an installed server: `s3s-fs`, or `moto_server` of moto.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

mod bucket;
#[path = "../../../storage/tests/laws/recorder.rs"]
mod recorder;
#[expect(dead_code, reason = "folders are opened in the other crate that reads this file")]
#[path = "../../../storage/tests/laws/regions.rs"]
mod regions;
mod server;
mod serving;
