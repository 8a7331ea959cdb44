//! Pod Security: every pod fulfills the level "restricted" of Kubernetes, by the rules of its standard.
//!
//! The rules are those of "Pod Security Standards" (Kubernetes 1.37), with the names of its tables. Restricted includes all
//! rules of baseline.

use crate::chart::{Tools, containers};
use crate::{VALUES, file};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Rule of the standard: its name, and whether a pod fulfills it.
type Rule = (&'static str, fn(&Pod<'_>) -> bool);

/// A pod and all of its containers.
struct Pod<'a> {
    spec: &'a Value,
    containers: Vec<&'a Value>,
}

const BASELINE: [Rule; 12] = [
    ("HostProcess", |pod| {
        pod.contexts().all(|context| context["windowsOptions"]["hostProcess"] != json!(true))
    }),
    ("Host Namespaces", |pod| {
        ["hostNetwork", "hostPID", "hostIPC"].iter().all(|field| is_off(&pod.spec[field]))
    }),
    ("Privileged Containers", |pod| pod.securities().all(|context| is_off(&context["privileged"]))),
    ("Capabilities", |pod| {
        const ALLOWED: [&str; 13] = [
            "AUDIT_WRITE",
            "CHOWN",
            "DAC_OVERRIDE",
            "FOWNER",
            "FSETID",
            "KILL",
            "MKNOD",
            "NET_BIND_SERVICE",
            "SETFCAP",
            "SETGID",
            "SETPCAP",
            "SETUID",
            "SYS_CHROOT",
        ];
        pod.added().all(|name| ALLOWED.contains(&name))
    }),
    ("HostPath Volumes", |pod| pod.volumes().all(|volume| volume["hostPath"] == Value::Null)),
    ("Host Ports", |pod| {
        let ports = pod.containers.iter().flat_map(|container| list(&container["ports"]));
        ports.into_iter().all(|port| port["hostPort"].as_u64().unwrap_or(0) == 0)
    }),
    ("Host Probes / Lifecycle Hooks", |pod| {
        let handlers = pod.containers.iter().flat_map(|container| {
            let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| &container[name]);
            let hooks = ["postStart", "preStop"].map(|name| &container["lifecycle"][name]);
            probes.into_iter().chain(hooks)
        });
        let mut hosts =
            handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|kind| &handler[kind]["host"]));
        hosts.all(|host| host.as_str().unwrap_or_default().is_empty())
    }),
    ("AppArmor", |pod| {
        pod.contexts().all(|context| match context["appArmorProfile"]["type"].as_str() {
            None => true,
            Some(kind) => ["RuntimeDefault", "Localhost"].contains(&kind),
        })
    }),
    ("SELinux", |pod| {
        const TYPES: [&str; 5] =
            ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
        pod.contexts().all(|context| {
            let of = &context["seLinuxOptions"];
            let text = |field: &str| of[field].as_str().unwrap_or_default().to_owned();
            TYPES.contains(&&*text("type")) && text("user").is_empty() && text("role").is_empty()
        })
    }),
    ("/proc Mount Type", |pod| {
        pod.securities()
            .all(|context| ["", "Default"].contains(&context["procMount"].as_str().unwrap_or_default()))
    }),
    ("Seccomp", |pod| pod.contexts().all(|context| context["seccompProfile"]["type"] != json!("Unconfined"))),
    ("Sysctls", |pod| {
        const ALLOWED: [&str; 12] = [
            "kernel.shm_rmid_forced",
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.ping_group_range",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
        ];
        let mut sysctls = list(&pod.spec["securityContext"]["sysctls"]).into_iter();
        sysctls.all(|sysctl| sysctl["name"].as_str().is_some_and(|name| ALLOWED.contains(&name)))
    }),
];

const RESTRICTED: [Rule; 6] = [
    ("Volume Types", |pod| {
        const ALLOWED: [&str; 8] = [
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "persistentVolumeClaim",
            "projected",
            "secret",
        ];
        pod.volumes().all(|volume| {
            let mut kinds = volume.as_object().expect("a volume").keys().filter(|key| *key != "name");
            kinds.all(|kind| ALLOWED.contains(&&**kind))
        })
    }),
    ("Privilege Escalation", |pod| {
        pod.securities().all(|context| context["allowPrivilegeEscalation"] == json!(false))
    }),
    ("Running as Non-root", |pod| pod.each(|context| context["runAsNonRoot"] == json!(true))),
    ("Running as Non-root user", |pod| pod.contexts().all(|context| context["runAsUser"] != json!(0))),
    ("Seccomp", |pod| {
        pod.each(|context| {
            ["RuntimeDefault", "Localhost"]
                .contains(&context["seccompProfile"]["type"].as_str().unwrap_or_default())
        })
    }),
    ("Capabilities", |pod| {
        let drops = |context: &Value| list(&context["capabilities"]["drop"]).contains(&&json!("ALL"));
        pod.securities().all(drops) && pod.added().all(|name| name == "NET_BIND_SERVICE")
    }),
];

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

fn is_off(value: &Value) -> bool {
    *value == Value::Null || *value == json!(false)
}

impl<'a> Pod<'a> {
    fn of(spec: &'a Value) -> Self {
        let kinds = ["initContainers", "containers", "ephemeralContainers"];
        Self { spec, containers: kinds.iter().flat_map(|kind| list(&spec[kind])).collect() }
    }

    /// The security contexts of all containers.
    fn securities(&self) -> impl Iterator<Item = &'a Value> {
        self.containers.iter().map(|container| &container["securityContext"]).collect::<Vec<_>>().into_iter()
    }

    /// The security contexts of the pod and of all containers.
    fn contexts(&self) -> impl Iterator<Item = &'a Value> {
        std::iter::once(&self.spec["securityContext"]).chain(self.securities())
    }

    /// Whether a condition holds for each container, by its own context or by that of the pod if its own omits the field.
    fn each(&self, holds: impl Fn(&Value) -> bool) -> bool {
        let pod = &self.spec["securityContext"];
        self.securities().all(|own| {
            let mut merged = pod.as_object().cloned().unwrap_or_default();
            merged.extend(own.as_object().cloned().unwrap_or_default());
            holds(&Value::Object(merged))
        })
    }

    fn added(&self) -> impl Iterator<Item = &'a str> {
        let added = self.securities().flat_map(|context| list(&context["capabilities"]["add"]));
        added.map(|name| name.as_str().expect("a capability"))
    }

    fn volumes(&self) -> impl Iterator<Item = &'a Value> {
        list(&self.spec["volumes"]).into_iter()
    }
}

/// Names of the rules that a pod breaks.
fn broken(spec: &Value) -> Vec<&'static str> {
    let pod = Pod::of(spec);
    let rules = BASELINE.iter().chain(&RESTRICTED).filter(|(_, is_fulfilled)| !is_fulfilled(&pod));
    rules.map(|(name, _)| *name).collect()
}

#[test]
fn every_pod_is_restricted() {
    let Some(tools) = Tools::of("every_pod_is_restricted") else { return };
    for values in VALUES {
        let objects = tools.render(&["--values", &file(values)]).expect("objects");
        let all = containers(&objects);
        let of: BTreeSet<&str> = all.iter().map(|container| container.of.as_str()).collect();
        assert!(of.len() >= 5, "{of:?}");
        for container in &all {
            // These values mount folders of the nodes, which no level but "privileged" allows.
            let has_folders = container.pod["volumes"].to_string().contains("\"hostPath\"");
            let expected: Vec<&str> =
                if has_folders { vec!["HostPath Volumes", "Volume Types"] } else { Vec::new() };
            assert!(!has_folders || values == "lustre", "{values}, {}", container.of);
            assert_eq!(broken(&container.pod), expected, "{values}, {}", container.of);
        }
    }
}

/// Each rule finds a pod that breaks it, and no other rule does.
#[test]
fn pods_that_break_a_rule_are_detected() {
    let Some(tools) = Tools::of("pods_that_break_a_rule_are_detected") else { return };
    let objects = tools.render(&["--values", &file("minimal")]).expect("objects");
    let all = containers(&objects);
    let worker = all.iter().find(|container| container.value["name"] == "worker").expect("a worker");
    let changed = |path: &str, value: Value| {
        let mut pod = worker.pod.clone();
        let (parent, name) = path.rsplit_once('/').expect("a path");
        let parent = pod.pointer_mut(parent).expect("a parent");
        match parent.as_array_mut() {
            Some(list) => list.push(value),
            None => parent[name] = value,
        }
        broken(&pod)
    };
    let container = "/containers/0/securityContext";
    let of = |field: &str| format!("{container}/{field}");
    for (path, value, expected) in [
        (of("windowsOptions"), json!({"hostProcess": true}), vec!["HostProcess"]),
        ("/hostPID".to_owned(), json!(true), vec!["Host Namespaces"]),
        (of("privileged"), json!(true), vec!["Privileged Containers"]),
        (
            of("capabilities"),
            json!({"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
            vec!["Capabilities", "Capabilities"],
        ),
        (of("capabilities"), json!({"drop": ["ALL"], "add": ["CHOWN"]}), vec!["Capabilities"]),
        (of("capabilities"), json!({"drop": ["CHOWN"]}), vec!["Capabilities"]),
        (
            "/volumes/-".to_owned(),
            json!({"name": "a", "hostPath": {"path": "/"}}),
            vec!["HostPath Volumes", "Volume Types"],
        ),
        ("/volumes/-".to_owned(), json!({"name": "a", "nfs": {"path": "/"}}), vec!["Volume Types"]),
        ("/containers/0/ports/-".to_owned(), json!({"hostPort": 80}), vec!["Host Ports"]),
        (
            "/containers/0/livenessProbe/httpGet/host".to_owned(),
            json!("10.0.0.1"),
            vec!["Host Probes / Lifecycle Hooks"],
        ),
        (of("appArmorProfile"), json!({"type": "Unconfined"}), vec!["AppArmor"]),
        (of("seLinuxOptions"), json!({"type": "spc_t"}), vec!["SELinux"]),
        (of("seLinuxOptions"), json!({"role": "system_r"}), vec!["SELinux"]),
        (of("procMount"), json!("Unmasked"), vec!["/proc Mount Type"]),
        (of("seccompProfile"), json!({"type": "Unconfined"}), vec!["Seccomp", "Seccomp"]),
        ("/securityContext/seccompProfile".to_owned(), Value::Null, vec!["Seccomp"]),
        ("/securityContext/sysctls".to_owned(), json!([{"name": "kernel.msgmax"}]), vec!["Sysctls"]),
        (of("allowPrivilegeEscalation"), Value::Null, vec!["Privilege Escalation"]),
        ("/securityContext/runAsNonRoot".to_owned(), Value::Null, vec!["Running as Non-root"]),
        (of("runAsNonRoot"), json!(false), vec!["Running as Non-root"]),
        (of("runAsUser"), json!(0), vec!["Running as Non-root user"]),
    ] {
        assert_eq!(changed(&path, value.clone()), expected, "{path}: {value}");
    }
    assert_eq!(broken(&worker.pod), Vec::<&str>::new());
}
