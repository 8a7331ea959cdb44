//! Commands of the client against a running server, and without one.

use super::memory::{RESULTS, content};
use super::site::Site;
use pleach_api::schema::StudyState;
use pleach_api::submission::fixture::submission;
use pleach_api::submission::{InputFile, Submission};
use pleach_client::ClientOptions;
use pleach_client::download::{DownloadError, OutProblem};
use pleach_client::submit::submit;
use pleach_client::{Client, ClientError, InterruptibleWait, StudyEndError, SubmitError, download, follow};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

fn input(folder: &Path, name: &str, content: &[u8]) -> InputFile {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    InputFile { path, digest: blake3::hash(content).into(), bytes: content.len() as u64 }
}

fn study(site: &Site) -> Submission {
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let folder = site.place.path();
    submission("nuclei", vec![input(folder, "a.png", &large), input(folder, "b.png", b"b")])
}

/// Error that may be a refusal: the manager refuses a request, or cannot be reached.
trait MayRefuse: std::error::Error {
    fn is_refusal(&self) -> bool;
}

impl MayRefuse for ClientError {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Untrusted(_) | Self::Unavailable { .. })
    }
}

impl MayRefuse for SubmitError {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::ForeignFile { .. } | Self::StillMissing { .. })
    }
}

impl MayRefuse for DownloadError {
    fn is_refusal(&self) -> bool {
        match self {
            Self::Client(cause) => cause.is_refusal(),
            error => matches!(error, Self::ForeignName { .. }),
        }
    }
}

impl MayRefuse for StudyEndError {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Canceled { .. })
    }
}

/// Returns the message of a refusal.
fn refused<T: std::fmt::Debug>(outcome: Result<T, impl MayRefuse>) -> String {
    match outcome {
        Err(error) if error.is_refusal() => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn client(args: &ClientOptions) -> Client {
    Client::new(args, None, InterruptibleWait::until_killed().unwrap()).unwrap()
}

#[test]
fn study_is_submitted_followed_and_downloaded() {
    let site = Site::new();
    let client = site.client();
    let study = study(&site);
    let id = submit(&client, &study, || ()).unwrap();
    for file in &study.inputs {
        assert_eq!(fs::read(site.inputs.path(file.digest)).unwrap(), fs::read(&file.path).unwrap());
    }
    assert_eq!(client.study(&id).unwrap().state, StudyState::Running);
    assert_eq!(site.memory.kept().submissions, 2, "once before the files and once after");
    // A second submission of the same study is another study, and its files are already stored.
    assert_ne!(submit(&client, &study, || ()).unwrap(), id);
    assert_eq!(site.memory.kept().submissions, 3);

    let out = site.place.path().join("out");
    let early = refused(download::results(&client, &id, &out, &()));
    assert_eq!(early, format!("https://{}: study s1 is running", site.address));
    site.memory.kept().completes_after = Some(3);
    let ended = follow::to_its_end(&client, &id, |_| {}).unwrap();
    assert_eq!((ended.state, ended.evaluations_done), (StudyState::Complete, 12));
    assert!(follow::verdict(&ended).is_ok());
    assert_eq!(download::results(&client, &id, &out, &()).unwrap(), RESULTS.len());
    for name in RESULTS {
        assert_eq!(fs::read(out.join(name)).unwrap(), content(&id, name), "{name}");
    }
    let files = |folder: &Path| fs::read_dir(folder).unwrap().count();
    assert_eq!((files(&out), files(&out.join("previews"))), (4, 1), "nothing else is left behind");
    // A second download of the same results changes nothing. Results of another study are not mixed with them.
    assert_eq!(download::results(&client, &id, &out, &()).unwrap(), RESULTS.len());
    client.study("s2").unwrap();
    site.memory.set("s2", StudyState::Complete, None);
    let mixed = download::results(&client, "s2", &out, &());
    assert!(mixed.as_ref().is_err_and(|error| error.to_string().contains("of another study")), "{mixed:?}");
    assert!(
        matches!(&mixed, Err(DownloadError::Out(error)) if matches!(&error.problem, OutProblem::OtherStudy { .. })),
        "{mixed:?}"
    );
}

#[test]
fn command_result_follows_the_state_of_the_study() {
    let site = Site::new();
    let client = site.client();
    let id = submit(&client, &submission("nuclei", Vec::new()), || ()).unwrap();
    let verdict = |state, message| {
        site.memory.set(&id, state, message);
        follow::verdict(&follow::to_its_end(&client, &id, |_| {}).unwrap())
    };
    assert_eq!(refused(verdict(StudyState::Canceled, None)), "study s1 was canceled");
    let told = refused(verdict(StudyState::Failed, Some("no worker\nhas \u{1b}[31msegment")));
    assert_eq!(told, "study s1 failed: no worker has  [31msegment");
    site.memory.set(&id, StudyState::Running, None);
    site.memory.kept().completes_after = Some(1);
    site.memory.kept().fails = 2;
    let some = follow::verdict(&follow::to_its_end(&client, &id, |_| {}).unwrap());
    assert!(matches!(&some, Err(StudyEndError::FailedRuns { study, runs: 2 }) if study == "s1"), "{some:?}");
    assert_eq!(follow::watch(&client, Some(&id), |_, _| {}).unwrap().len(), 1);
    assert!(
        follow::watch(&client, None, |_, _| {}).unwrap().is_empty(),
        "what had ended before is not watched"
    );
}

#[test]
fn refusal_is_shown_in_the_managers_words() {
    let site = Site::new();
    let client = site.client();
    match submit(&client, &submission("too large", Vec::new()), || ()) {
        Err(SubmitError::Client(ClientError::Rejected { detail })) => {
            assert!(detail.starts_with("--memory: the segmentation needs"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
    let at = format!("https://{}: ", site.address);
    assert_eq!(refused(client.study("../x y")), format!("{at}../x y: there is no such study"));
    assert_eq!(refused(client.cancel("s9")), format!("{at}s9: there is no such study"));
    assert_eq!(refused(client.drain("w9")), format!("{at}w9: there is no such worker"));
    assert_eq!(client.drain("w1").unwrap().name, "w1");
    assert_eq!(client.workers().unwrap().len(), 2);
    let worker = ClientOptions { certs: site.certs("w1"), ..site.args() };
    let told = refused(self::client(&worker).studies());
    assert!(
        told.ends_with(
            "no credentials; a token (Authorization: Bearer TOKEN) or a client certificate is \
                        required"
        ),
        "{told}"
    );
}

#[test]
fn client_uses_token_or_certificate() {
    let site = Site::new();
    let waiting = || InterruptibleWait::until_killed().unwrap();
    let ca = ClientOptions { certs: site.certs("ca"), ..site.args() };
    assert!(Client::new(&ca, Some(site.token.as_str()), waiting()).unwrap().studies().is_ok());
    let of_file = ClientOptions { token_file: Some(site.certs("token")), ..ca.clone() };
    assert!(client(&of_file).studies().is_ok());
    let wrong = Client::new(&ca, Some(&"0".repeat(64)), waiting()).unwrap();
    assert!(refused(wrong.studies()).ends_with("the token does not match the token of this manager"));
    let input = |args: &ClientOptions, token| match Client::new(args, token, waiting()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("a client"),
    };
    assert!(input(&ca, None).ends_with("one is required without --token-file and PLEACH_TOKEN"));
    assert!(input(&ca, Some("short")).starts_with("PLEACH_TOKEN: "));
    let missing = ClientOptions { token_file: Some(site.certs("none")), ..ca.clone() };
    assert!(input(&missing, None).starts_with("--token-file: "));
    let nowhere = ClientOptions { certs: site.certs("none"), ..ca };
    assert!(input(&nowhere, None).starts_with("--certs: "));
    // The client rejects a manager of another cluster at the first attempt.
    let other = Site::new();
    let args = ClientOptions { certs: other.certs("c1"), timeout: Duration::from_secs(600), ..site.args() };
    let told = refused(client(&args).studies());
    assert!(told.starts_with("cannot reach the manager at") && told.contains("certificate"), "{told}");
}

#[test]
fn unreachable_manager_is_retried_until_the_timeout() {
    let mut site = Site::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let args = ClientOptions { manager: nobody.to_string().parse().unwrap(), ..site.args() };
    let told = refused(client(&args).studies());
    let expected = format!("cannot reach the manager at https://{nobody}: ");
    assert!(told.starts_with(&expected) && told.ends_with("; gave up after 0 s"), "{told}");
    let start = Instant::now();
    let brief = ClientOptions { timeout: Duration::from_secs(1), ..args };
    assert!(refused(client(&brief).studies()).ends_with("; gave up after 1 s"));
    assert!(start.elapsed() >= Duration::from_secs(1));

    // The client waits for a manager that is not ready, and for one that is started again.
    let patient = client(&ClientOptions { timeout: Duration::from_secs(60), ..site.args() });
    site.memory.kept().refusals = 2;
    assert!(patient.studies().unwrap().is_empty());
    assert_eq!(site.memory.kept().looks, 3);
    drop(site.server.take());
    let again = std::thread::spawn(move || {
        // The first attempts find no listener.
        let deadline = Instant::now() + Duration::from_millis(300);
        while Instant::now() < deadline {
            std::thread::yield_now();
        }
        site.start();
        site
    });
    assert!(patient.studies().unwrap().is_empty());
    let site = again.join().unwrap();
    site.memory.kept().is_down = true;
    let told = refused(site.client().studies());
    assert_eq!(told, format!("https://{}: the journal is being read; gave up after 0 s", site.address));
}

/// A study whose answer is lost is submitted again under the same key and remains one study.
#[test]
fn a_study_is_submitted_once() {
    let site = Site::new();
    let client = client(&ClientOptions { timeout: Duration::from_secs(60), ..site.args() });
    site.memory.kept().lost_answers = 2;
    let id = submit(&client, &study(&site), || ()).unwrap();
    assert_eq!(
        site.memory.kept().submissions,
        4,
        "three times until an answer came, and once after the files"
    );
    assert_eq!(client.studies().unwrap().len(), 1);
    assert_eq!(client.studies().unwrap()[0].id, id);
}

#[test]
fn files_that_change_and_files_of_others_are_not_sent() {
    let site = Site::new();
    let client = site.client();
    let mut changed = study(&site);
    fs::write(&changed.inputs[0].path, vec![0; 3_000_000]).unwrap();
    let told = |submission: &Submission| match submit(&client, submission, || ()) {
        Err(error @ (SubmitError::Changed { .. } | SubmitError::Unreadable { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let path = changed.inputs[0].path.clone();
    assert_eq!(told(&changed), format!("{path}: changed since its submission"));
    changed.inputs[0].bytes += 1;
    assert_eq!(told(&changed), format!("{path}: changed since its submission"));
    fs::remove_file(&path).unwrap();
    assert!(told(&changed).starts_with(&format!("{path}: No such file")));
    assert_eq!(fs::read_dir(site.certs("inputs")).unwrap().count(), 0);
    // The client sends no file that the study does not read, even if the manager asks for it.
    let secret = input(site.place.path(), "secret", b"secret");
    site.memory.kept().odd_input = Some(secret.digest);
    let told = refused(submit(&client, &submission("nuclei", Vec::new()), || ()));
    assert!(told.ends_with("which is not an input file of this study"), "{told}");
    assert!(!site.inputs.has(secret.digest));
    // A file that the manager reports as missing after every upload is not sent forever.
    let lost = submission("nuclei", vec![secret.clone()]);
    let told = refused(submit(&client, &lost, || ()));
    assert!(told.ends_with("1 files are still missing after their upload"), "{told}");
}

/// A manager that names results outside the folder makes the client write nothing there.
#[test]
fn results_stay_in_their_folder() {
    let site = Site::new();
    let client = site.client();
    let id = submit(&client, &submission("nuclei", Vec::new()), || ()).unwrap();
    site.memory.set(&id, StudyState::Complete, None);
    let out = site.place.path().join("a/out");
    for name in ["../evil", "/tmp/evil", "previews/../../evil", ".bashrc"] {
        site.memory.kept().odd_result = Some(name.to_owned());
        let told = refused(download::results(&client, &id, &out, &()));
        assert!(told.ends_with("a path outside the result folder"), "{told}");
    }
    assert!(!out.exists());
    // A listed result that does not exist: the client downloads nothing, leaves nothing beside the folder, and keeps
    // an earlier download.
    let files = |folder: &Path| fs::read_dir(folder).unwrap().count();
    for before in [0, 1] {
        site.memory.kept().odd_result = Some("zz.json".to_owned());
        let told = refused(download::results(&client, &id, &out, &()));
        assert!(told.contains("zz.json"), "{told}");
        assert_eq!((out.exists(), files(out.parent().unwrap())), (before == 1, before));
        site.memory.kept().odd_result = None;
        assert_eq!(download::results(&client, &id, &out, &()).unwrap(), RESULTS.len());
        assert_eq!(files(&out), 4);
    }
}

#[test]
fn an_interruption_leaves_the_study_alone() {
    let site = Site::new();
    let (interrupt, interrupted) = tokio::sync::oneshot::channel();
    let client = site.client();
    client.waiting().listen_to(interrupted);
    let id = submit(&client, &submission("nuclei", Vec::new()), || ()).unwrap();
    client.waiting().set_message(format!("study {id} goes on"));
    interrupt.send(()).unwrap();
    let stopped = follow::to_its_end(&client, &id, |_| {});
    assert!(
        matches!(&stopped, Err(ClientError::Interrupted(error)) if error.study_state == "study s1 goes on"),
        "{stopped:?}"
    );
    assert_eq!(site.client().study(&id).unwrap().state, StudyState::Running);
}
