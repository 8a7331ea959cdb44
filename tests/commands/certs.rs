//! `pleach certs` creates an authority, certificates and tokens, as files and as JSON, and refuses invalid requests.

use crate::pleach;
use crate::pleach::pleach;
use pleach_actors::transport::certs::{Authority, Credentials};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::token::Token;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn call(folder: &Path, args: &str) -> pleach::Answer {
    pleach(folder, &args.split(' ').collect::<Vec<_>>())
}

fn json(folder: &Path, args: &str) -> Value {
    serde_json::from_str(&call(folder, args).done()).expect("one JSON document")
}

#[test]
fn authority_issues_certificates_and_tokens() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let made = json(folder, "certs init --dir ca --json");
    assert_eq!(made["fingerprint"].as_str().map(str::len), Some(64));
    let issued = json(folder, "certs issue --dir ca --name w1 --role worker --days 30 --out w1 --json");
    assert_eq!((&issued["role"], &issued["key"]), (&"worker".into(), &"w1/node-key.pem".into()));
    let now = SystemClock.now().as_secs();
    let days = (issued["ends"].as_u64().expect("a time") - now) as f64 / 86_400.0;
    assert!((29.9..=30.0).contains(&days), "{days} days");
    let credentials = Credentials::load(&folder.join("w1")).expect("credentials");
    assert_eq!(credentials.identity().to_string(), "worker w1");
    call(folder, "certs issue --dir ca --name m1 --role manager").done();
    for file in ["ca/ca-key.pem", "ca/token-key", "ca/ca.pem", "w1/node-key.pem", "ca/m1/node-key.pem"] {
        let mode = fs::metadata(folder.join(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let authority = Authority::open(&folder.join("ca")).expect("the authority");
    let text = call(folder, "certs token --dir ca --ttl 2h --single-use").done();
    let token: Token = text.parse().expect("a token");
    assert!(authority.token_key().check(&token, SystemClock.now()).expect("good").is_once);
    assert!(token.ends().abs_diff(now + 7200) < 120);
    let many = json(folder, "certs token --dir ca --json");
    assert_eq!(many["once"], false);
}

#[test]
fn invalid_certs_commands_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    call(folder, "certs init --dir ca").done();
    call(folder, "certs issue --dir ca --name w1 --role worker").done();
    fs::create_dir(folder.join("other")).expect("a folder");
    let name = "1 to 63 lower-case letters, digits and hyphens are allowed, without a hyphen at either end";
    let span = "a whole number and a unit are allowed, as in 90s, 30m, 1h or 7d";
    let never = "already exists; certificates and keys are never overwritten";
    for (args, expected) in [
        ("init --dir ca", format!("ca/ca.pem: {never}")),
        ("issue --dir ca --name w1 --role worker", format!("ca/w1/node.pem: {never}")),
        (
            "issue --dir no --name w1 --role worker",
            "no/ca.pem: No such file or directory (os error 2)".into(),
        ),
        (
            "issue --dir other --name w --role worker",
            "other/ca.pem: No such file or directory (os error 2)".into(),
        ),
        ("issue --dir ca --name W1 --role worker", format!("invalid value 'W1' for '--name <NAME>': {name}")),
        (
            "issue --dir ca --name w2 --role boss",
            "invalid value 'boss' for '--role <ROLE>': manager, worker and client are allowed".into(),
        ),
        ("issue --dir ca --name w2 --role worker --days 0", "--days 0: 1 to 3650 days are allowed".into()),
        (
            "issue --dir ca --name w2 --role worker --days 3651",
            "--days 3651: 1 to 3650 days are allowed".into(),
        ),
        ("token --dir ca --ttl 1", format!("invalid value '1' for '--ttl <TIME>': {span}")),
        ("token --dir ca --ttl 1.5h", format!("invalid value '1.5h' for '--ttl <TIME>': {span}")),
        ("token --dir ca --ttl 0s", "--ttl: token lifetime of 0 s; 1 s to 30 days are allowed".into()),
        ("token --dir ca --ttl 31d", "--ttl: token lifetime of 2678400 s; 1 s to 30 days are allowed".into()),
        (
            "token --dir ca --ttl 99999999999999999999d",
            format!("invalid value '99999999999999999999d' for '--ttl <TIME>': {span}"),
        ),
    ] {
        let answer = call(folder, &format!("certs {args}"));
        assert_eq!(answer.code, 2, "{args}: {answer:?}");
        assert_eq!(answer.stderr, format!("error: {expected}\n"), "{args}");
    }
    assert!(!folder.join("ca/w2").exists(), "nothing is left behind");
}
