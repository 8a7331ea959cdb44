//! A server for as long as a test takes. Credentials come from the environment alone, so that a test runs in a process of
//! its own: it starts itself as its child.

use crate::serving::{BUCKET, CREDENTIALS, ask_moto, serve};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Names the address of the server, where this process is a child.
const ENDPOINT: &str = "PLEACH_OBJECTS_TEST_ENDPOINT";

/// Names the folder that the server keeps objects in, where it has one.
const FOLDER: &str = "PLEACH_OBJECTS_TEST_FOLDER";

/// What a child has to do with.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    /// Where objects are files, as of `s3s-fs`.
    pub(crate) folder: Option<PathBuf>,
}

impl Server {
    fn address(&self) -> &str {
        self.endpoint.strip_prefix("http://").unwrap()
    }

    /// What an object of the bucket holds, read past the tier.
    pub(crate) fn read(&self, object: &str) -> Vec<u8> {
        match &self.folder {
            Some(folder) => fs::read(folder.join(BUCKET).join(object)).unwrap(),
            None => ask_moto(self.address(), "GET", object, &[]),
        }
    }

    /// Puts other content into an object, past the tier.
    pub(crate) fn write(&self, object: &str, content: &[u8]) {
        match &self.folder {
            Some(folder) => fs::write(folder.join(BUCKET).join(object), content).unwrap(),
            None => drop(ask_moto(self.address(), "PUT", object, content)),
        }
    }
}

/// In a child, the server; elsewhere starts one and the child, and returns none after the child has ended well. Says so
/// where no server is installed.
pub(crate) fn server(test: &str) -> Option<Server> {
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        return Some(Server { endpoint, folder: std::env::var_os(FOLDER).map(PathBuf::from) });
    }
    let place = tempfile::tempdir().unwrap();
    let serving = serve(test, place.path())?;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ENDPOINT, &serving.endpoint).envs(CREDENTIALS);
    if let Some(folder) = &serving.folder {
        child.env(FOLDER, folder);
    }
    let ended = child.output().unwrap();
    drop(serving);
    let said = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&said));
    None
}
