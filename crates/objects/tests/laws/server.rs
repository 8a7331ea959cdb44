//! S3 server for the time of a test. The tier reads credentials only from the environment, so each test runs in a child
//! process with an environment of its own.

use crate::serving::{BUCKET, CREDENTIALS, ask_moto, serve};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Environment variable with the address of the server. Set only in a child.
const ENDPOINT: &str = "PLEACH_OBJECTS_TEST_ENDPOINT";

/// Environment variable with the folder of the server's objects. Unset if the server has none.
const FOLDER: &str = "PLEACH_OBJECTS_TEST_FOLDER";

/// The server, as a child sees it.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    /// Folder of the objects, if the server stores them as files (`s3s-fs`).
    pub(crate) folder: Option<PathBuf>,
}

impl Server {
    fn address(&self) -> &str {
        self.endpoint.strip_prefix("http://").unwrap()
    }

    /// Returns the content of an object, without using the tier.
    pub(crate) fn read(&self, object: &str) -> Vec<u8> {
        match &self.folder {
            Some(folder) => fs::read(folder.join(BUCKET).join(object)).unwrap(),
            None => ask_moto(self.address(), "GET", object, &[]),
        }
    }

    /// Replaces the content of an object, without using the tier.
    pub(crate) fn write(&self, object: &str, content: &[u8]) {
        match &self.folder {
            Some(folder) => fs::write(folder.join(BUCKET).join(object), content).unwrap(),
            None => drop(ask_moto(self.address(), "PUT", object, content)),
        }
    }
}

/// Returns the server in a child. The parent starts a server and the child, asserts that the child succeeds, and returns
/// `None`. If no server is installed, prints that the test is skipped and returns `None`.
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
