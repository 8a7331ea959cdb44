//! Test server for the cluster API that the chart's hook uses (`tests/chart/api.py`), and the hook's script.

use crate::chart::{Container, root, strings};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The server process, which ends with this value. Secrets are subfolders of its folder.
pub(crate) struct Api {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Api {
    /// Starts the server with the rights of the release's roles.
    pub(crate) fn of(objects: &[Value], folder: &Path) -> Self {
        let roles = objects.iter().filter(|object| object["kind"] == "Role");
        let rules = roles.flat_map(|role| role["rules"].as_array().expect("rules"));
        let patches = rules.filter(|rule| strings(&rule["verbs"]).contains(&"patch".to_owned()));
        let patched: Vec<String> = patches.flat_map(|rule| strings(&rule["resourceNames"])).collect();
        let secrets = folder.join("secrets");
        std::fs::create_dir_all(&secrets).expect("a folder");
        let mut child = Command::new("python3")
            .arg(root().join("tests/chart/api.py"))
            .arg(&secrets)
            .args(["studies", "account-token"])
            .args(patched)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut address = String::new();
        let said = child.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut address).expect("a line");
        Self { child, address: address.trim().to_owned(), folder: folder.to_owned() }
    }

    /// The folder of a secret.
    pub(crate) fn secret(&self, name: &str) -> PathBuf {
        self.folder.join("secrets").join(name)
    }

    /// Runs the script of a container as the cluster would, with the authority's files mounted from a folder.
    pub(crate) fn run(&self, container: &Container, authority: &Path) -> Output {
        let work = self.folder.join("work");
        std::fs::create_dir_all(&work).expect("a folder");
        let pleach = assert_cmd::cargo::cargo_bin!("pleach").parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").expect("a path");
        let (program, args) = container.command.split_first().expect("a command");
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(&container.environment)
            .env("PATH", format!("{}:{path}", pleach.display()))
            .env("AUTHORITY", authority)
            .env("WORK", work);
        self.grant(&mut command).output().expect("a shell starts")
    }

    /// Sets the address and the credentials of the API for a script.
    pub(crate) fn grant<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let account = self.folder.join("account");
        std::fs::create_dir_all(&account).expect("a folder");
        std::fs::write(account.join("token"), "account-token").expect("a file");
        std::fs::write(account.join("ca.crt"), "").expect("a file");
        command.env("ACCOUNT", account).env("API", &self.address)
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
