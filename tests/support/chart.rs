//! The chart in `helm/pleach` as helm renders it, and the commands of its containers.
//!
//! `scripts/install-helm` installs helm and a YAML reader. Without them, tests report that they are skipped.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Programs of `scripts/install-helm`.
pub(crate) struct Tools(PathBuf);

/// One container of a rendered object or of a Compose service.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// Object of the container, for messages.
    pub(crate) of: String,
    /// Command with arguments and expanded variables.
    pub(crate) command: Vec<String>,
    /// Environment. Values known only to a cluster are replaced by plausible ones.
    pub(crate) environment: BTreeMap<String, String>,
    /// The container's definition.
    pub(crate) value: Value,
    /// The definition of its pod.
    pub(crate) pod: Value,
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Tools {
    /// Returns `None` and prints a line if the programs cannot be installed.
    pub(crate) fn of(test: &str) -> Option<Self> {
        static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let install = || {
            let install = Command::new(root().join("scripts/install-helm")).stdin(Stdio::null()).output();
            let output = install.map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() { Ok(PathBuf::from(folder)) } else { Err(said) }
        };
        match FOLDER.get_or_init(install) {
            Ok(folder) => Some(Self(folder.clone())),
            Err(why) => {
                super::skipped(test, &format!("helm cannot be installed: {why}"));
                None
            }
        }
    }

    /// Runs one of the programs in the repository's root. Returns its output, or its error messages.
    pub(crate) fn call(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let output = Command::new(self.0.join(program))
            .current_dir(root())
            .env("HELM_CACHE_HOME", self.0.join("cache"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(args)
            .output()
            .expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        if output.status.success() {
            return Ok(text(output.stdout));
        }
        Err(format!("{}{}", text(output.stdout), text(output.stderr)))
    }

    /// The objects of a release named `rel` in the namespace `studies`.
    pub(crate) fn render(&self, args: &[&str]) -> Result<Vec<Value>, String> {
        let template = ["template", "rel", "helm/pleach", "--namespace", "studies"];
        self.call("helm", &[&template, args].concat()).map(|text| self.read(&text))
    }

    /// The objects of a YAML text.
    pub(crate) fn read(&self, text: &str) -> Vec<Value> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("a file written");
        let script = "import json, sys, yaml\n\
                      print(json.dumps([one for one in yaml.safe_load_all(open(sys.argv[1])) if one]))";
        let json = self.call("python", &["-c", script, file.path().to_str().expect("UTF-8")]);
        serde_json::from_str(&json.expect("YAML")).expect("JSON")
    }
}

/// All containers of all objects, init containers included.
pub(crate) fn containers(objects: &[Value]) -> Vec<Container> {
    objects.iter().flat_map(of_object).collect()
}

fn of_object(object: &Value) -> Vec<Container> {
    let spec = &object["spec"];
    let pod = match object["kind"].as_str().expect("a kind") {
        "Pod" => spec,
        "CronJob" => &spec["jobTemplate"]["spec"]["template"]["spec"],
        _ => &spec["template"]["spec"],
    };
    let name = object["metadata"]["name"].as_str().expect("a name");
    // The form of a replica set's pod names.
    let pod_name = format!("{name}-5d8f9c7b6d-x2x9z");
    let list = |field: &str| pod[field].as_array().cloned().unwrap_or_default();
    let all = list("initContainers").into_iter().chain(list("containers"));
    all.map(|value| {
        let mut environment = BTreeMap::new();
        for variable in value["env"].as_array().into_iter().flatten() {
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            let known = match field {
                Some("metadata.name") => pod_name.as_str(),
                Some("metadata.namespace") => "studies",
                _ => variable["value"].as_str().unwrap_or("secret"),
            };
            environment.insert(variable["name"].as_str().expect("a name").to_owned(), known.to_owned());
        }
        let filled_in = |word: String| {
            environment.iter().fold(word, |word, (name, value)| word.replace(&format!("$({name})"), value))
        };
        let command = strings(&value["command"]).into_iter().chain(strings(&value["args"]));
        Container {
            of: format!("{} {name}, {}", object["kind"], value["name"]),
            command: command.map(filled_in).collect(),
            environment: environment.clone(),
            value: value.clone(),
            pod: pod.clone(),
        }
    })
    .collect()
}

/// The texts of a list, or no text if the value is no list.
pub(crate) fn strings(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.map(|text| text.as_str().expect("a text").to_owned()).collect()
}
