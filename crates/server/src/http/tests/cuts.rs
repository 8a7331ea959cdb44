//! Connections that are cut during the upload or download of a file.

use super::memory::{RESULTS, content};
use super::site::Site;
use pleach_api::schema::StudyState;
use pleach_api::submission::InputFile;
use pleach_api::submission::fixture::submission;
use pleach_client::ClientOptions;
use pleach_client::download::DownloadError;
use pleach_client::submit::submit;
use pleach_client::{Client, InterruptibleWait, download};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Proxy that forwards bytes and cuts a number of connections after [`CUT_AFTER`] bytes in one direction.
struct Wire {
    address: SocketAddr,
    cuts_left: Arc<AtomicUsize>,
}

/// Bytes before a connection is cut, more than any request without a file.
const CUT_AFTER: usize = 300_000;

impl Wire {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts_left = Arc::new(AtomicUsize::new(0));
        let cuts = Arc::clone(&cuts_left);
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cuts = Arc::clone(&cuts);
                    std::thread::spawn(move || pass(from, to, &cuts));
                }
            }
        });
        Self { address, cuts_left }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cuts: &AtomicUsize) {
    let mut piece = [0; 16 << 10];
    let mut passed = 0;
    while let Ok(read @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
        passed += read;
        let take = |left: usize| left.checked_sub(1);
        if passed > CUT_AFTER && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            break;
        }
    }
    for end in [&from, &to] {
        // The thread of the other direction may have closed it.
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn client(site: &Site, wire: &Wire, patience: u64) -> Client {
    let manager = wire.address.to_string().parse().unwrap();
    let args = ClientOptions { manager, timeout: Duration::from_secs(patience), ..site.args() };
    Client::new(&args, None, InterruptibleWait::until_killed().unwrap()).unwrap()
}

#[test]
fn truncated_upload_is_repeated() {
    let site = Site::new();
    let wire = Wire::to(site.address);
    let large: Vec<u8> = (0..2_000_000_u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect();
    let path = site.place.path().join("large.png");
    std::fs::write(&path, &large).unwrap();
    let digest = blake3::hash(&large).into();
    let file = InputFile { path: path.to_str().unwrap().to_owned(), digest, bytes: large.len() as u64 };
    wire.cuts_left.store(2, Ordering::SeqCst);
    let client = client(&site, &wire, 60);
    let id = submit(&client, &submission("nuclei", vec![file]), || ()).unwrap();
    assert_eq!(wire.cuts_left.load(Ordering::SeqCst), 0, "it was cut");
    assert_eq!(std::fs::read(site.inputs.path(digest)).unwrap(), large);
    assert_eq!(client.studies().unwrap().len(), 1);
    assert_eq!(client.study(&id).unwrap().state, StudyState::Running);
}

#[test]
fn truncated_download_is_repeated() {
    let site = Site::new();
    let wire = Wire::to(site.address);
    let client = client(&site, &wire, 60);
    let id = submit(&client, &submission("nuclei", Vec::new()), || ()).unwrap();
    site.memory.set(&id, StudyState::Complete, None);
    let out = site.place.path().join("out");
    wire.cuts_left.store(2, Ordering::SeqCst);
    assert_eq!(download::results(&client, &id, &out, &()).unwrap(), RESULTS.len());
    assert_eq!(wire.cuts_left.load(Ordering::SeqCst), 0, "it was cut");
    for name in RESULTS {
        assert_eq!(std::fs::read(out.join(name)).unwrap(), content(&id, name), "{name}");
    }
    // The client gives up a transfer that is cut every time, and leaves no partial file.
    wire.cuts_left.store(usize::MAX, Ordering::SeqCst);
    let again = site.place.path().join("again");
    let told = download::results(&client, &id, &again, &());
    assert!(
        matches!(&told, Err(DownloadError::Incomplete { name, study, .. }) if name == "responses.csv" && study == "s1"),
        "{told:?}"
    );
    assert!(!again.join("responses.csv").exists() && !again.join("responses.csv.part").exists());
}
