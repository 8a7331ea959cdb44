//! A server that speaks S3, for as long as a test takes. Credentials come from the environment alone, so that a test runs
//! in a process of its own: it starts itself as its child.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the address of the server, where this process is a child.
const ENDPOINT: &str = "PLEACH_OBJECTS_TEST_ENDPOINT";

/// Names the folder that the server keeps objects in, where it has one.
const FOLDER: &str = "PLEACH_OBJECTS_TEST_FOLDER";

pub(crate) const BUCKET: &str = "studies";

/// What a child has to do with.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    /// Where objects are files, as of `s3s-fs`.
    pub(crate) folder: Option<PathBuf>,
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Ends the server with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In a child, the server; elsewhere starts one and the child, and returns none after the child has ended well. Says so
/// where no server is installed.
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
pub(crate) fn server(test: &str) -> Option<Server> {
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        return Some(Server { endpoint, folder: std::env::var_os(FOLDER).map(PathBuf::from) });
    }
    let place = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let folder = place.path().join("objects");
    let (mut command, keeps_files) = match (installed("s3s-fs"), installed("moto_server")) {
        (Some(program), _) => {
            // A bucket is a folder.
            fs::create_dir_all(folder.join(BUCKET)).unwrap();
            let mut command = Command::new(program);
            command.args(["--host", "127.0.0.1", "--port", &port, "--access-key", "test"]);
            command.args(["--secret-key", "test"]).arg(&folder);
            (command, true)
        }
        (None, Some(program)) => {
            let mut command = Command::new(program);
            command.args(["-H", "127.0.0.1", "-p", &port]);
            (command, false)
        }
        (None, None) => {
            println!("SKIPPED {test}: no server that speaks S3 is installed (s3s-fs or moto_server)");
            return None;
        }
    };
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(quiet.spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < deadline, "the server does not come up");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    if !keeps_files {
        create_bucket(&port);
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ENDPOINT, format!("http://127.0.0.1:{port}"));
    child.envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, "test")));
    if keeps_files {
        child.env(FOLDER, folder);
    }
    let ended = child.output().unwrap();
    drop(running);
    let said = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&said));
    None
}

/// Asks moto, which believes everybody, for the bucket.
fn create_bucket(port: &str) {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let request = format!(
        "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
         SignedHeaders=host, Signature=0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
