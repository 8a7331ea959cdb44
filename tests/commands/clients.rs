//! Client commands without a manager: invalid arguments, and a manager that does not respond.

use crate::pleach::{Answer, pleach};
use crate::study::Study;
use std::net::TcpListener;
use std::path::Path;

/// A study in a folder with an authority and a client certificate, and an address without a listener.
fn place() -> (Study, String) {
    let study = Study::of_tissue(64);
    call(study.folder(), "certs init --dir ca").done();
    call(study.folder(), "certs issue --dir ca --name c1 --role client --out c1").done();
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let nobody = listener.local_addr().expect("an address").to_string();
    (study, nobody)
}

fn call(folder: &Path, args: &str) -> Answer {
    pleach(folder, &args.split(' ').collect::<Vec<_>>())
}

#[test]
fn commands_without_a_manager_exit_4() {
    let (study, nobody) = place();
    let folder = study.folder();
    let to = format!("--manager https://{nobody} --certs c1 --timeout 0s");
    for args in [
        "status",
        "status s1 --json",
        "watch",
        "watch s1",
        "results s1 --out out",
        "cancel s1",
        "drain w1",
        "submit study.toml",
        "submit study.toml --wait --out out --json",
    ] {
        let answer = call(folder, &format!("{args} {to}"));
        let expected = format!("error: cannot reach the manager at https://{nobody}: ");
        assert_eq!((answer.code, answer.stdout.as_str()), (4, ""), "{args}: {answer:?}");
        assert!(answer.stderr.starts_with(&expected), "{args}: {answer:?}");
        assert_eq!(answer.stderr.lines().count(), 1, "{args}: {answer:?}");
    }
    assert!(!study.path("out").exists());
    // With a timeout of 1 s the command reports that it retries.
    let answer = call(folder, &format!("status --manager {nobody} --certs c1 --timeout 1s"));
    let lines: Vec<&str> = answer.stderr.lines().collect();
    assert_eq!((answer.code, lines.len()), (4, 2), "{answer:?}");
    assert!(
        lines[0].ends_with("; retrying for 1 s") && lines[1].ends_with("; gave up after 1 s"),
        "{lines:?}"
    );
}

#[test]
fn invalid_client_arguments_exit_2() {
    let (study, nobody) = place();
    let folder = study.folder();
    let url = "https://HOST:PORT, the --http address of a manager, is allowed";
    let to = format!("--manager {nobody} --certs c1");
    for (args, expected) in [
        (
            format!("status --manager http://{nobody} --certs c1"),
            format!("invalid value 'http://{nobody}' for '--manager <URL>': {url}"),
        ),
        (
            format!("status --manager {nobody} --certs none"),
            "--certs: none/ca.pem: No such file or directory (os error 2)".to_owned(),
        ),
        (
            format!("status --manager {nobody} --certs ca"),
            "--certs ca: no client certificate; one is required without --token-file and PLEACH_TOKEN"
                .to_owned(),
        ),
        (
            format!("status {to} --token-file none"),
            "--token-file: none: No such file or directory (os error 2)".to_owned(),
        ),
        (
            format!("submit none.toml {to}"),
            "none.toml: failed to read: No such file or directory (os error 2)".to_owned(),
        ),
    ] {
        let answer = call(folder, &args);
        assert_eq!(answer.code, 2, "{args}: {answer:?}");
        assert_eq!(answer.stderr, format!("error: {expected}\n"), "{args}");
    }
    for args in ["status", "drain --manager a:1 --certs c1", "results s1 --manager a:1 --certs c1"] {
        assert_eq!(call(folder, args).code, 2, "{args}");
    }
}
