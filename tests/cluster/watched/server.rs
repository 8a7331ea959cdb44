//! Prometheus on a free port with its own folder, its HTTP API, and promtool.

use crate::cluster::{DEADLINE, LOOK_AGAIN};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ureq::tls::TlsConfig;

/// 250 ms between scrapes: a study of a few seconds needs many.
const EVERY: &str = "250ms";

/// Whether both programs are installed.
pub(super) fn has_tools() -> bool {
    let there = |name: &str| {
        let mut version = Command::new(name);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    ["prometheus", "promtool"].into_iter().all(there)
}

/// Runs promtool and returns its output. Asserts that it succeeds.
pub(super) fn promtool(args: &[&str], input: &str, folder: &Path) -> String {
    let mut command = Command::new("promtool");
    command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let text = said(&output.stdout) + &said(&output.stderr);
    assert!(output.status.success(), "promtool {args:?}: {text}");
    text
}

/// Body of the response from a URL, without verification of its certificate.
pub(crate) fn get(url: &str) -> String {
    asked(url).1
}

/// As [`get`], with the status.
pub(crate) fn asked(url: &str) -> (u16, String) {
    answer(url, &[]).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn ask(url: &str, query: &[(&str, &str)]) -> Result<String, ureq::Error> {
    answer(url, query).map(|(_, text)| text)
}

fn answer(url: &str, query: &[(&str, &str)]) -> Result<(u16, String), ureq::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().disable_verification(true);
    let tls = tls.unversioned_rustls_crypto_provider(provider).build();
    let config = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls);
    let agent: ureq::Agent = config.timeout_global(Some(Duration::from_secs(30))).build().into();
    let mut request = agent.get(url);
    for (name, value) in query {
        request = request.query(*name, *value);
    }
    let mut answer = request.call()?;
    Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
}

/// A Prometheus process. Dropping the value ends it.
pub(super) struct Prometheus {
    child: Child,
    folder: tempfile::TempDir,
    address: String,
    begun: SystemTime,
}

impl Drop for Prometheus {
    #[expect(clippy::print_stderr, reason = "a test that fails shows what its processes said")]
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- prometheus\n{}", self.log());
        }
    }
}

impl Prometheus {
    /// Starts Prometheus, which scrapes a manager over HTTPS and workers over HTTP.
    pub(super) fn start(authority: &Path, manager: &str, workers: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = super::project("deploy/prometheus/rules.yml");
        let workers: Vec<String> = workers.iter().map(|worker| format!("'{worker}'")).collect();
        let config = format!(
            "global: {{scrape_interval: {EVERY}, evaluation_interval: {EVERY}}}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n\
             - job_name: pleach-manager\n  scheme: https\n\
             \x20 tls_config: {{ca_file: '{}', server_name: manager.pleach}}\n\
             \x20 static_configs: [{{targets: ['{manager}']}}]\n\
             - job_name: pleach-workers\n  static_configs: [{{targets: [{}]}}]\n",
            rules.display(),
            authority.display(),
            workers.join(", ")
        );
        let path = folder.path().join("prometheus.yml");
        fs::write(&path, config).expect("a file");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .args(["--web.listen-address=127.0.0.1:0", "--storage.tsdb.retention.time=1d"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus starts");
        let begun = SystemTime::now();
        let mut prometheus = Self { child, folder, address: String::new(), begun };
        prometheus.until("it listens", |prometheus| prometheus.listens_at().is_some());
        prometheus.address = prometheus.listens_at().expect("an address");
        prometheus.until("it is ready", |prometheus| {
            prometheus.api("status/runtimeinfo", &[]).is_ok_and(|answer| answer["status"] == "success")
        });
        prometheus
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn listens_at(&self) -> Option<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("msg=\"Listening on\""))?;
        Some(line.split_once("address=")?.1.trim().to_owned())
    }

    fn until(&self, what: &str, happened: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !happened(self) {
            assert!(begun.elapsed() < DEADLINE, "{what}: it does not happen\n{}", self.log());
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    fn api(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let text = ask(&url, query).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    /// Waits until an expression has a value.
    pub(super) fn wait_for(&self, expression: &str) {
        self.until(expression, |prometheus| {
            let answer = prometheus.api("query", &[("query", expression)]);
            answer.is_ok_and(|answer| answer["data"]["result"].as_array().is_some_and(|all| !all.is_empty()))
        });
    }

    /// Labels of each series of an expression since the start.
    pub(super) fn range(&self, expression: &str) -> Result<Vec<Value>, String> {
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64());
        let (start, end) = (seconds(self.begun).to_string(), seconds(SystemTime::now()).to_string());
        let query = [("query", expression), ("start", &start), ("end", &end), ("step", "0.1")];
        let answer = self.api("query_range", &query)?;
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        let series = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        Ok(series.into_iter().map(|series| series["metric"].clone()).collect())
    }

    /// Whether a label of a metric has values.
    pub(super) fn has_label(&self, metric: &str, label: &str) -> bool {
        let answer = self.api(&format!("label/{label}/values"), &[("match[]", metric)]);
        answer.is_ok_and(|answer| answer["data"].as_array().is_some_and(|values| !values.is_empty()))
    }

    /// Asserts that all rules are evaluated without an error.
    pub(super) fn rules_are_healthy(&self) {
        let answer = self.api("rules", &[]).expect("an answer");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        let rules: Vec<&Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).collect();
        assert!(rules.len() >= 20, "{}", rules.len());
        for rule in rules {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
}
