//! Starts an S3 server: an installed `s3s-fs` or `moto_server`, or the moto that `scripts/install-moto` installs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) const BUCKET: &str = "studies";

/// Credentials in the environment of a client, which the server accepts.
pub(crate) const CREDENTIALS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// A server with one bucket. Dropping this value kills it.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) endpoint: String,
    /// Folder of the objects, if the server stores them as files (`s3s-fs`).
    pub(crate) folder: Option<PathBuf>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns the server that `scripts/install-moto` installs, or the reason why it cannot.
fn install() -> Result<PathBuf, String> {
    static MOTO: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let script = || {
        // The crate's folder or the root of the repository, since two packages have this file.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script =
            here.ancestors().map(|folder| folder.join("scripts/install-moto")).find(|file| file.is_file());
        let script = script.ok_or("scripts/install-moto is missing")?;
        let output = Command::new(script).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        match output.status.success() {
            true => Ok(folder.join("moto_server")),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        }
    };
    MOTO.get_or_init(script).clone()
}

/// Starts a server with a bucket. If no server is installed, prints that the test is skipped and returns `None`.
#[expect(clippy::print_stdout, reason = "a skipped test is loud")]
pub(crate) fn serve(test: &str, place: &Path) -> Option<Serving> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let folder = place.join("objects");
    let moto = || installed("moto_server").map_or_else(install, Ok);
    let (mut command, keeps_files) = match (installed("s3s-fs"), moto) {
        (Some(program), _) => {
            // `s3s-fs` serves each folder as a bucket.
            fs::create_dir_all(folder.join(BUCKET)).unwrap();
            let mut command = Command::new(program);
            command.args(["--host", "127.0.0.1", "--port", &port, "--access-key", "test"]);
            command.args(["--secret-key", "test"]).arg(&folder);
            (command, true)
        }
        (None, moto) => match moto() {
            Ok(program) => {
                let mut command = Command::new(program);
                command.args(["-H", "127.0.0.1", "-p", &port]);
                (command, false)
            }
            Err(why) => {
                println!("SKIPPED {test}: no server that speaks S3 can be installed: {why}");
                return None;
            }
        },
    };
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = quiet.spawn().unwrap();
    let endpoint = format!("http://127.0.0.1:{port}");
    let serving = Serving { child, endpoint, folder: keeps_files.then_some(folder) };
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < deadline, "the server does not come up");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    if !keeps_files {
        ask_moto(&format!("127.0.0.1:{port}"), "PUT", "", &[]);
    }
    Some(serving)
}

/// Sends a request for an object, or for the bucket if the name is empty, to moto, which checks no signature. Returns the
/// body of the response.
pub(crate) fn ask_moto(address: &str, method: &str, object: &str, content: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = content.len();
    let request = format!(
        "{method} /{BUCKET}/{object} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
         SignedHeaders=host, Signature=0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(content).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    answer.split_off(head + 4)
}
