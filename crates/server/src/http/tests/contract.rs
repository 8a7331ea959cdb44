//! Contract of `openapi.json`: the test requests every path, method and status and compares each answer with the
//! document.

use super::memory::{self, RESULTS};
use super::schema::{check, resolved};
use super::site::{Reply, Site};
use crate::http::routes::entries;
use pleach_api::schema::StudyState;
use pleach_api::submission::InputFile;
use pleach_api::submission::fixture;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// Statuses that other tests cause, with their places.
const ELSEWHERE: [(u16, &str); 2] =
    [(408, "limits.rs: nothing comes"), (507, "input_store/tests.rs: a full disk")];

type Promise = (String, String, u16);

/// Sends requests and compares the answers with the document.
struct Contract {
    site: Site,
    document: Value,
    kept: BTreeSet<Promise>,
}

impl Contract {
    fn new() -> Self {
        let site = Site::new();
        let document = site.ask_as("ca", "GET", "/api/v1/openapi.json", &[], b"").json();
        Self { site, document, kept: BTreeSet::new() }
    }

    /// Sends a request for `path`, which matches `template`.
    fn ask(
        &mut self,
        method: &str,
        template: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
        status: u16,
    ) -> Reply {
        let reply = self.site.ask(method, path, headers, body);
        self.compare(method, template, &reply, status);
        reply
    }

    fn get(&mut self, template: &str, path: &str, status: u16) -> Reply {
        self.ask("GET", template, path, &[], b"", status)
    }

    fn compare(&mut self, method: &str, template: &str, reply: &Reply, status: u16) {
        let at = format!("{method} {template}");
        assert_eq!(reply.status, status, "{at}: {reply:?}");
        let method = method.to_lowercase();
        let operation = &self.document["paths"][template][&method];
        let declared = &operation["responses"][status.to_string()];
        assert!(declared.is_object(), "{at}: {status} is not in the document");
        let declared = resolved(&self.document, declared);
        let media_type = reply.header("Content-Type").unwrap().split(';').next().unwrap();
        let content = &declared["content"][media_type];
        assert!(content.is_object(), "{at}, {status}: {media_type} is not in the document");
        if let Some(schema) = content.get("schema").filter(|_| media_type.ends_with("json")) {
            check(&self.document, schema, &reply.json(), &at).unwrap();
        }
        if media_type == "application/problem+json" {
            let problem = reply.json();
            assert_eq!(problem["status"], status, "{at}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(!detail.is_empty() && !detail.contains('\n'), "{at}: {detail:?}");
        }
        for name in declared["headers"].as_object().into_iter().flatten().map(|(name, _)| name) {
            assert!(reply.header(name).is_some(), "{at}, {status}: lacks {name}");
        }
        self.kept.insert((template.to_owned(), method, status));
    }
}

/// Returns every path, method and status of the document.
fn promises(document: &Value) -> BTreeSet<Promise> {
    let methods = ["get", "put", "post", "delete", "head", "options", "patch", "trace"];
    let mut promises = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if methods.contains(&method.as_str()) {
                for status in operation["responses"].as_object().unwrap().keys() {
                    promises.insert((path.clone(), method.clone(), status.parse().unwrap()));
                }
            }
        }
    }
    promises
}

const STUDIES: &str = "/api/v1/studies";
const STUDY: &str = "/api/v1/studies/{id}";
const LIST: &str = "/api/v1/studies/{id}/results";
const EXPLANATION: &str = "/api/v1/studies/{id}/explanation";
const OBJECTS: &str = "/api/v1/studies/{id}/objects";
const FORGET: &str = "/api/v1/studies/{id}/forget";
const RESULT: &str = "/api/v1/studies/{id}/results/{name}";
const INPUT: &str = "/api/v1/inputs/{digest}";
const WORKERS: &str = "/api/v1/workers";
const SCALING: &str = "/api/v1/scaling";
const DRAIN: &str = "/api/v1/workers/{name}/drain";
const JSON: &str = "Content-Type: application/json";

#[test]
fn every_documented_response_matches_its_schema() {
    let mut contract = Contract::new();
    let content = b"a tile's content";
    let digest = blake3::hash(content).into();
    let file = InputFile { path: "/tiles/1.png".to_owned(), digest, bytes: 16 };
    let submission = serde_json::to_vec(&fixture::submission("nuclei", vec![file])).unwrap();

    // A study from its submission to its results.
    let submitted = contract.ask("POST", STUDIES, STUDIES, &[JSON], &submission, 201);
    assert_eq!(submitted.json(), json!({ "id": "s1", "missing": [digest.to_string()] }));
    assert_eq!(submitted.header("Location"), Some("/api/v1/studies/s1"));
    assert_eq!(contract.get(STUDY, "/api/v1/studies/s1", 200).json()["state"], "waiting");
    let input = format!("/api/v1/inputs/{digest}");
    contract.ask("PUT", INPUT, &input, &[], b"another content.", 422);
    assert!(!contract.site.inputs.has(digest));
    let stored = contract.ask("PUT", INPUT, &input, &[], content, 201);
    assert_eq!(stored.json(), json!({ "digest": digest.to_string(), "bytes": 16 }));
    assert_eq!(std::fs::read(contract.site.inputs.path(digest)).unwrap(), content);
    contract.ask("PUT", INPUT, &input, &[], content, 200);
    let again = contract.ask("POST", STUDIES, STUDIES, &[JSON], &submission, 201);
    assert_eq!(again.json(), json!({ "id": "s2", "missing": [] }));
    contract.get(LIST, "/api/v1/studies/s1/results", 409);
    contract.get(RESULT, "/api/v1/studies/s1/results/run.json", 409);
    contract.site.memory.set("s1", StudyState::Complete, None);
    let names = contract.get(LIST, "/api/v1/studies/s1/results", 200);
    assert_eq!(names.json(), json!({ "results": RESULTS }));
    for name in RESULTS {
        for written in [name.to_owned(), name.replace('/', "%2F")] {
            let path = format!("/api/v1/studies/s1/results/{written}");
            assert_eq!(contract.get(RESULT, &path, 200).body, memory::content("s1", name));
        }
    }
    let explained = contract.get(EXPLANATION, "/api/v1/studies/s1/explanation?evaluation=12&tile=a%20b", 200);
    assert_eq!(explained.json()["runs"][0]["tile"], "a b");
    assert_eq!(contract.get(EXPLANATION, "/api/v1/studies/s1/explanation", 200).json()["tasks_executed"], 5);
    contract.get(EXPLANATION, "/api/v1/studies/s1/explanation?evaluation=13", 422);
    for query in ["evaluation=-1", "tile=a", "evaluation=1&run=2", "evaluation=1&evaluation=2"] {
        let refused = contract.get(EXPLANATION, &format!("/api/v1/studies/s1/explanation?{query}"), 400);
        assert!(refused.detail().contains("evaluation=N"), "{refused:?}");
    }
    let near = "/api/v1/studies/s1/objects?stage=a&output=b&evaluation=1&nearest=1,2";
    let found = contract.get(OBJECTS, &format!("{near}&tile=a%20b&count=2&unit=um"), 200).json();
    assert_eq!((&found["objects"][0]["tile"], &found["missing"]), (&json!("a b"), &json!(["b"])));
    contract.get(OBJECTS, &near.replace("=1&", "=13&"), 422);
    for (query, cause) in [
        ("&run=1", "nearest=X,Y"),
        ("&box=1,2,3,4", "exactly one"),
        ("&unit=mm", "px and um are allowed"),
        ("&count=-1", "count=K"),
    ] {
        let refused = contract.get(OBJECTS, &format!("{near}{query}"), 400);
        assert!(refused.detail().contains(cause), "{refused:?}");
    }
    contract.ask("DELETE", STUDY, "/api/v1/studies/s1", &[], b"", 409);
    let canceled = contract.ask("DELETE", STUDY, "/api/v1/studies/s2", &[], b"", 200);
    assert_eq!(canceled.json()["state"], "canceled");
    assert_eq!(contract.get(STUDIES, STUDIES, 200).json()["studies"].as_array().unwrap().len(), 2);

    contract.get(EXPLANATION, "/api/v1/studies/s2/explanation", 409);
    contract.get(OBJECTS, &near.replace("s1", "s2"), 409);
    let third = contract.ask("POST", STUDIES, STUDIES, &[JSON], &submission, 201).json();
    assert_eq!(third["id"], "s3");
    contract.ask("POST", FORGET, "/api/v1/studies/s3/forget", &[], b"", 409);
    contract.site.memory.set("s3", StudyState::Failed, None);
    let forgotten = contract.ask("POST", FORGET, "/api/v1/studies/s3/forget", &[], b"", 200);
    assert_eq!(forgotten.json(), json!({ "id": "s3", "bytes": 12 }));
    contract.ask("POST", FORGET, "/api/v1/studies/s3/forget", &[], b"", 404);

    // Workers, probes and metrics.
    assert_eq!(
        contract.get(WORKERS, WORKERS, 200).json()["workers"][1]["missing_operations"],
        json!(["segment"])
    );
    assert_eq!(contract.get(SCALING, SCALING, 200).json()["workers_desired"], 5);
    let drained = contract.ask("POST", DRAIN, "/api/v1/workers/w1/drain", &[], b"", 200);
    assert_eq!(drained.json()["state"], "draining");
    contract.site.memory.lose("w2");
    contract.ask("POST", DRAIN, "/api/v1/workers/w2/drain", &[], b"", 409);
    for path in ["/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"] {
        contract.get(path, path, 200);
    }
    let metrics = contract.get("/metrics", "/metrics", 200);
    assert_eq!(metrics.header("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(metrics.body, b"# TYPE pleach_studies gauge\npleach_studies 2\n");

    // Refused requests.
    contract.ask("POST", STUDIES, STUDIES, &[JSON], b"{\"version\": 1, \"name\": 7}", 400);
    contract.ask("POST", STUDIES, STUDIES, &["Content-Type: text/plain"], &submission, 415);
    contract.ask("POST", STUDIES, STUDIES, &[JSON, "Content-Length: 300000000"], b"", 413);
    let large = serde_json::to_vec(&fixture::submission("too large", Vec::new())).unwrap();
    let refused = contract.ask("POST", STUDIES, STUDIES, &[JSON], &large, 422);
    assert!(refused.detail().ends_with("no worker has more than 500 MB"));
    contract.ask("PUT", INPUT, "/api/v1/inputs/0123", &[], content, 400);
    contract.ask("PUT", INPUT, &input, &["Content-Length: 5000000000"], b"", 413);
    contract.get(STUDY, "/api/v1/studies/s9", 404);
    contract.ask("DELETE", STUDY, "/api/v1/studies/s9", &[], b"", 404);
    contract.get(LIST, "/api/v1/studies/s9/results", 404);
    contract.get(EXPLANATION, "/api/v1/studies/s9/explanation", 404);
    contract.get(OBJECTS, &near.replace("s1", "s9"), 404);
    contract.get(RESULT, "/api/v1/studies/s1/results/none.json", 404);
    contract.ask("POST", DRAIN, "/api/v1/workers/w9/drain", &[], b"", 404);

    // All routes without credentials, then with a manager that is down, then with one that has an internal error.
    let every = |contract: &mut Contract, status: u16| {
        let asked = [
            ("GET", STUDIES, STUDIES),
            ("POST", STUDIES, STUDIES),
            ("GET", STUDY, "/api/v1/studies/s1"),
            ("DELETE", STUDY, "/api/v1/studies/s1"),
            ("POST", FORGET, "/api/v1/studies/s1/forget"),
            ("GET", EXPLANATION, "/api/v1/studies/s1/explanation"),
            ("GET", OBJECTS, near),
            ("GET", LIST, "/api/v1/studies/s1/results"),
            ("GET", RESULT, "/api/v1/studies/s1/results/run.json"),
            ("PUT", INPUT, input.as_str()),
            ("GET", WORKERS, WORKERS),
            ("GET", SCALING, SCALING),
            ("POST", DRAIN, "/api/v1/workers/w1/drain"),
        ];
        for (method, template, path) in asked {
            let body: &[u8] = if method == "POST" { &submission } else { content };
            if status != 401 {
                contract.ask(method, template, path, &[JSON], body, status);
            } else {
                let reply = contract.site.ask_as("ca", method, path, &[JSON], body);
                contract.compare(method, template, &reply, 401);
            }
        }
    };
    every(&mut contract, 401);
    contract.site.memory.kept().is_down = true;
    every(&mut contract, 503);
    contract.get("/readyz", "/readyz", 503);
    contract.get("/metrics", "/metrics", 503);
    contract.site.memory.kept().is_down = false;
    contract.site.memory.kept().is_broken = true;
    every(&mut contract, 500);
    contract.get("/readyz", "/readyz", 500);
    contract.get("/metrics", "/metrics", 500);
    contract.get("/healthz", "/healthz", 200);

    let left: Vec<Promise> = promises(&contract.document)
        .difference(&contract.kept)
        .filter(|(_, _, status)| ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != status))
        .cloned()
        .collect();
    assert!(left.is_empty(), "never asked for: {left:?}");
}

/// The server and the document have the same paths and methods, and the same routes are open to clients without
/// credentials.
#[test]
fn no_route_is_missing_from_the_document() {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let served: BTreeSet<(String, String, bool)> = entries()
        .into_iter()
        .map(|entry| {
            let path = entry.path.replace(":.+}", "}");
            (path, entry.method.as_str().to_lowercase(), entry.is_open)
        })
        .collect();
    let described: BTreeSet<(String, String, bool)> = promises(&document)
        .into_iter()
        .map(|(path, method, _)| {
            let is_open = document["paths"][&path][&method]["security"] == json!([]);
            (path, method, is_open)
        })
        .collect();
    assert_eq!(served, described);
    for (path, operations) in document["paths"].as_object().unwrap() {
        let parameters = operations["parameters"].as_array().into_iter().flatten();
        let named: BTreeSet<&str> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let used: BTreeSet<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
        assert_eq!(named, used, "{path}");
    }
}

#[test]
fn unknown_paths_and_methods_return_404_and_405() {
    let site = Site::new();
    for path in
        ["/", "/api", "/api/v2/studies", "/api/v1/studies/", "/api/v1/studies/%ff", "/%2e%2e/etc/passwd"]
    {
        let reply = site.ask("GET", path, &[], b"");
        assert_eq!(
            (reply.status, reply.header("Content-Type")),
            (404, Some("application/problem+json")),
            "{path}"
        );
        assert!(!reply.detail().is_empty());
    }
    let reply = site.ask("PATCH", "/api/v1/studies", &[], b"");
    assert_eq!((reply.status, reply.header("Allow")), (405, Some("GET, HEAD, POST")));
    assert_eq!(reply.detail(), "method PATCH is not allowed; allowed are GET, HEAD, POST");
}

#[test]
fn head_requests_return_the_head_of_get() {
    let site = Site::new();
    let mut connection = site.connect("ca");
    connection
        .write_all(b"HEAD /healthz HTTP/1.1\r\nHost: manager.pleach\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

/// No name leads out of a study's results, whether or not the manager lists it.
#[test]
fn path_traversal_is_refused() {
    let site = Site::new();
    let submission = serde_json::to_vec(&fixture::submission("nuclei", Vec::new())).unwrap();
    site.ask("POST", STUDIES, &[JSON], &submission);
    site.memory.set("s1", StudyState::Complete, None);
    std::fs::write(site.place.path().join("results/secret"), "secret").unwrap();
    for name in [
        "../secret",
        "..%2Fsecret",
        "%2e%2e/secret",
        "%2e%2e%2fsecret",
        "previews/../../secret",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "..%5csecret",
        "run.json%00",
    ] {
        let listed = name.replace("%2F", "/").replace("%2f", "/").replace("%2e", ".");
        for odd in [None, Some(listed)] {
            site.memory.kept().odd_result = odd;
            let reply = site.ask("GET", &format!("/api/v1/studies/s1/results/{name}"), &[], b"");
            assert_eq!(reply.status, 404, "{name}: {reply:?}");
        }
    }
    for digest in ["../token", "..%2Ftoken", &"A".repeat(64), &"0".repeat(65)] {
        let reply = site.ask("PUT", &format!("/api/v1/inputs/{digest}"), &[], b"content");
        assert!(matches!(reply.status, 400 | 404), "{digest}: {reply:?}");
    }
    assert_eq!(std::fs::read_dir(site.certs("inputs")).unwrap().count(), 0);
}
