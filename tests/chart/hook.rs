//! The certificate hook: its script runs with the real binary against an API that grants the rights of its role.

#[path = "../support/api.rs"]
mod api;

use crate::chart::{Container, Tools, containers};
use crate::file;
use crate::pleach::pleach;
use api::Api;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the container of the hook. Asserts that the renewal job runs the same command.
fn script(objects: &[Value]) -> Container {
    let all = containers(objects);
    let mut those = all.into_iter().filter(|container| container.value["name"] == "certificates");
    let (first, second) = (those.next().expect("a job"), those.next().expect("a job for later"));
    assert_eq!(first.command, second.command);
    first
}

/// Files of a folder, by name.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).expect("UTF-8");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    entries.map(|entry| read(entry.expect("an entry"))).collect()
}

#[test]
fn hook_creates_authority_once_and_tokens_each_time() {
    let Some(tools) = Tools::of("hook_creates_authority_once_and_tokens_each_time") else { return };
    let objects = tools.render(&["--values", &file("default")]).expect("objects");
    let script = script(&objects);
    let place = tempfile::tempdir().expect("a folder");
    let api = Api::of(&objects, place.path());
    let [authority, ca, join, client] =
        ["authority", "ca", "join", "client"].map(|name| api.secret(&format!("rel-pleach-{name}")));
    let output = api.run(&script, &authority);
    assert!(output.status.success(), "{output:?}");
    let made = content(&authority);
    assert_eq!(made.keys().collect::<Vec<_>>(), ["ca-key.pem", "ca.pem", "token-key"]);
    assert_eq!(content(&ca), BTreeMap::from([("ca.pem".to_owned(), made["ca.pem"].clone())]));
    let (first_token, first_client) = (content(&join), content(&client));
    assert_eq!(first_client.keys().collect::<Vec<_>>(), ["ca.pem", "node-key.pem", "node.pem"]);

    // An upgrade of the release.
    let output = api.run(&script, &authority);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(content(&authority), made);
    let (token, of_client) = (content(&join), content(&client));
    assert!(token["token"] != first_token["token"] && of_client["node.pem"] != first_client["node.pem"]);

    // The hook does not see the existing secret of the authority yet.
    let output = api.run(&script, &place.path().join("nothing"));
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(!output.status.success() && said.contains("already exists"), "{said}");
    assert_eq!((content(&authority), content(&join), content(&client)), (made, token, of_client));
}

/// cert-manager stores an authority under other names and with other attributes. pleach adds only the token key.
#[test]
fn an_authority_of_cert_manager_is_used() {
    let Some(tools) = Tools::of("an_authority_of_cert_manager_is_used") else { return };
    let objects = tools.render(&["--values", &file("spot-burst")]).expect("objects");
    let script = script(&objects);
    let place = tempfile::tempdir().expect("a folder");
    let api = Api::of(&objects, place.path());
    let mounted = place.path().join("mounted");
    fs::create_dir(&mounted).expect("a folder");
    let (key, certificate) = (mounted.join("ca-key.pem"), mounted.join("ca.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "3650",
        ])
        .args([
            "-subj",
            "/CN=pleach cluster studies rel",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("openssl starts");
    assert!(made.status.success(), "{made:?}");
    let output = api.run(&script, &mounted);
    assert!(output.status.success(), "{output:?}");
    let of_ours = content(&api.secret("rel-pleach-authority"));
    assert_eq!(of_ours.keys().collect::<Vec<_>>(), ["token-key"], "no key of cert-manager's is copied");
    // Both secrets in one folder, as the manager mounts them.
    fs::write(mounted.join("token-key"), &of_ours["token-key"]).expect("a file");
    let output = api.run(&script, &mounted);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(content(&api.secret("rel-pleach-authority")), of_ours);
    let folder = mounted.to_str().expect("UTF-8");
    pleach(place.path(), &["certs", "issue", "--dir", folder, "--name", "manager", "--role", "manager"])
        .done();
    for node in [api.secret("rel-pleach-client").join("node.pem"), mounted.join("manager/node.pem")] {
        let verified =
            Command::new("openssl").arg("verify").arg("-CAfile").arg(&certificate).arg(&node).output();
        assert!(verified.as_ref().is_ok_and(|output| output.status.success()), "{verified:?}");
    }
}

/// Without the right to write a secret, the hook creates nothing and the job fails with the reason.
#[test]
fn hook_without_its_rights_fails_with_the_reason() {
    let Some(tools) = Tools::of("hook_without_its_rights_fails_with_the_reason") else { return };
    let mut objects = tools.render(&["--values", &file("default")]).expect("objects");
    for object in objects.iter_mut().filter(|object| object["kind"] == "Role") {
        object["rules"][1]["resourceNames"] = serde_json::json!(["rel-pleach-ca"]);
    }
    let place = tempfile::tempdir().expect("a folder");
    let api = Api::of(&objects, place.path());
    let output = api.run(&script(&objects), &api.secret("rel-pleach-authority"));
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        !output.status.success() && said.contains("secrets \\\"rel-pleach-join\\\" is forbidden"),
        "{said}"
    );
}
