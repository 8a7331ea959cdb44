//! Client commands of a cluster, and the visible state of its studies.

use super::Cluster;
use crate::pleach::{Answer, answer};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

impl Cluster<'_> {
    /// Runs a command that connects to the manager.
    pub(crate) fn ask(&self, args: &[&str]) -> Answer {
        let url = format!("https://{}", self.http);
        let certs = self.path("ca/me").display().to_string();
        let mut all = args.to_vec();
        all.extend(["--manager", &url, "--certs", &certs, "--timeout", "60s"]);
        let mut command = self.place("client").command(assert_cmd::cargo::cargo_bin!("pleach"));
        answer(command.current_dir(self.study.folder()).args(all))
    }

    /// Submits the study once all workers have joined. Returns its id.
    pub(crate) fn submit(&self, options: &[&str]) -> String {
        self.wait_for_workers();
        self.submit_at_once(options)
    }

    /// Submits the study, whether workers have joined or not. Returns its id.
    pub(crate) fn submit_at_once(&self, options: &[&str]) -> String {
        let args: Vec<&str> = ["submit", "study.toml"].iter().chain(options).copied().collect();
        self.ask(&args).done().trim().to_owned()
    }

    /// Submits the study once all workers have joined, from a file system that only the client sees, as from another machine.
    /// Returns `None` if the system denies mounts.
    pub(crate) fn submit_from_elsewhere(&self) -> Option<String> {
        self.wait_for_workers();
        let place = self.path("elsewhere");
        fs::create_dir_all(&place).expect("a folder");
        let script =
            r#"mount -t tmpfs tmpfs "$0" || exit 99; cp -r tiles study.toml "$0"; : >mounted; exec "$@""#;
        let (place, study) = (place.display().to_string(), place.join("study.toml").display().to_string());
        let url = format!("https://{}", self.http);
        let certs = self.path("ca/me").display().to_string();
        let output = self
            .place("client")
            .command("unshare")
            .current_dir(self.study.folder())
            .args(["--mount", "--map-root-user", "sh", "-c", script, &place])
            .arg(assert_cmd::cargo::cargo_bin!("pleach"))
            .args(["submit", &study, "--manager", &url, "--certs", &certs])
            .output()
            .expect("unshare starts");
        // The marker file shows that the mount succeeded, so the exit code is not that of `unshare` or `mount`.
        if !self.study.path("mounted").exists() {
            return None;
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned())
    }

    pub(crate) fn submit_and_wait(&self, options: &[&str]) -> String {
        self.completed(&self.submit(options))
    }

    pub(crate) fn status(&self) -> Value {
        let answer = self.ask(&["status", "--json"]);
        serde_json::from_str(&answer.stdout).unwrap_or(Value::Null)
    }

    pub(crate) fn study_of(&self, id: &str) -> Value {
        let status = self.status();
        let studies = status["studies"].as_array().cloned().unwrap_or_default();
        studies.into_iter().find(|study| study["id"] == id).unwrap_or(Value::Null)
    }

    pub(crate) fn state_of(&self, id: &str) -> String {
        let state = self.study_of(id)["state"].as_str().unwrap_or("unknown").to_owned();
        assert_ne!(state, "failed", "{}\n{}", self.study_of(id), self.log("manager"));
        state
    }

    /// The journal, which holds a study's responses while it runs.
    pub(crate) fn journal(&self, id: &str) -> PathBuf {
        self.state.join(format!("studies/{id}/results/journal"))
    }

    /// Whether a study has ended for good.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.state.join(format!("studies/{id}/ended.json")).exists()
    }

    /// Bytes of responses on disk: the journal without its first line, which identifies the study.
    pub(crate) fn journal_bytes(&self, id: &str) -> u64 {
        let journal = fs::read(self.journal(id)).unwrap_or_default();
        journal.iter().position(|byte| *byte == b'\n').map_or(0, |end| (journal.len() - end - 1) as u64)
    }

    /// Waits until the journal holds `bytes` of responses or the study has ended.
    pub(crate) fn wait_for_responses(&self, id: &str, bytes: u64) {
        self.wait_until(|cluster| cluster.has_ended(id) || cluster.journal_bytes(id) >= bytes);
    }

    pub(crate) fn responses(&self, id: &str) -> String {
        let out = self.path(&format!("out-{id}"));
        self.ask(&["results", id, "--out", &out.display().to_string()]);
        fs::read_to_string(out.join("responses.csv")).expect("responses")
    }
}
