//! User settings of pods: environment, labels, volumes, topology spread, security contexts, and ingress.

use crate::chart::{Container, Tools, containers};
use crate::file;
use crate::objects::{name, of_kind};
use serde_json::{Value, json};

/// The container of this name.
fn of_name(objects: &[Value], name: &str) -> Container {
    let found = containers(objects).into_iter().find(|container| container.value["name"] == name);
    found.unwrap_or_else(|| panic!("no container {name}"))
}

fn labels<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    &of_kind(objects, kind)[0]["spec"]["template"]["metadata"]["labels"]
}

#[test]
fn environment_labels_and_volumes_reach_pods() {
    let Some(tools) = Tools::of("environment_labels_and_volumes_reach_pods") else { return };
    let plain = tools.render(&[]).expect("objects");
    assert!(of_name(&plain, "manager").value["env"].is_null());
    let objects = tools.render(&["--values", &file("openshift")]).expect("objects");
    let (manager, worker) = (of_name(&objects, "manager"), of_name(&objects, "worker"));
    assert_eq!(manager.environment["PLEACH_LOG"], "debug");
    assert_eq!(worker.environment["PLEACH_LOG"], "pleach=info,pleach_actors=debug");
    // Variables of the chart keep their values, and `valueFrom` entries are rendered as given.
    let variables = worker.value["env"].as_array().expect("a list");
    assert_eq!(variables[0]["name"], "POD_NAME");
    let node = json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}});
    assert!(variables.contains(&node), "{variables:?}");
    let has = |list: &Value, item: Value| list.as_array().is_some_and(|all| all.contains(&item));
    let mount = json!({"name": "site", "mountPath": "/etc/site", "readOnly": true});
    let volume = json!({"name": "site", "configMap": {"name": "site-certificates"}});
    assert!(has(&worker.value["volumeMounts"], mount.clone()) && has(&worker.pod["volumes"], volume));
    assert!(!has(&manager.value["volumeMounts"], mount));
    for kind in ["Deployment", "StatefulSet"] {
        assert_eq!(labels(&objects, kind)["team"], "pathology", "{kind}");
        assert!(labels(&plain, kind)["team"].is_null(), "{kind}");
        // No selector depends on a label that may change.
        let selector = &of_kind(&objects, kind)[0]["spec"]["selector"]["matchLabels"];
        assert!(selector["team"].is_null() && selector["app.kubernetes.io/name"] == "pleach", "{selector}");
    }
    // A pool's own list replaces the list for all pools, as other values do. The manager has volumes of its own.
    let pools = r#"workerPools=[{"name":"a","extraEnv":[{"name":"A","value":"1"}]}]"#;
    let of_manager = r#"manager={"extraVolumes":[{"name":"x","emptyDir":{}}],"extraVolumeMounts":[{"name":"x","mountPath":"/x"}]}"#;
    let args = ["--values", &file("openshift"), "--set-json", pools, "--set-json", of_manager];
    let objects = tools.render(&args).expect("objects");
    let environment = of_name(&objects, "worker").environment;
    assert_eq!(environment.keys().collect::<Vec<_>>(), ["A", "POD_NAME"]);
    let manager = of_name(&objects, "manager");
    assert!(has(&manager.value["volumeMounts"], json!({"name": "x", "mountPath": "/x"})));
    assert!(has(&manager.pod["volumes"], json!({"name": "x", "emptyDir": {}})));
}

/// A constraint without a selector counts the pods of its own pool.
#[test]
fn workers_spread_by_pool_unless_a_selector_is_given() {
    let Some(tools) = Tools::of("workers_spread_by_pool_unless_a_selector_is_given") else { return };
    let spread = r#"{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}"#;
    let chosen = spread.replace('}', r#","labelSelector":{"matchLabels":{"team":"x"}}}"#);
    let pools = format!(
        r#"workerPools=[{{"name":"a","topologySpreadConstraints":[{spread}]}},{{"name":"b","topologySpreadConstraints":[{chosen}]}},{{"name":"c"}}]"#
    );
    let objects = tools.render(&["--set-json", &pools]).expect("objects");
    let constraints = |pool: &str| {
        let deployments = of_kind(&objects, "Deployment");
        let found = deployments.into_iter().find(|object| name(object) == format!("rel-pleach-{pool}"));
        found.expect("a pool")["spec"]["template"]["spec"]["topologySpreadConstraints"].clone()
    };
    let deployment = of_kind(&objects, "Deployment")[0];
    assert_eq!(name(deployment), "rel-pleach-a");
    assert_eq!(constraints("a")[0]["labelSelector"], deployment["spec"]["selector"]);
    assert_eq!(constraints("a")[0]["maxSkew"], 1);
    assert_eq!(constraints("b")[0]["labelSelector"], json!({"matchLabels": {"team": "x"}}));
    assert!(constraints("c").is_null());
}

/// A pool with accelerators requests them, tolerates their taint beside its own tolerations, and starts workers with the option.
/// Other pools have none of this.
#[test]
fn accelerators_reach_the_pods_of_their_pool() {
    let Some(tools) = Tools::of("accelerators_reach_the_pods_of_their_pool") else { return };
    let objects = tools.render(&["--values", &file("accelerators")]).expect("objects");
    let deployments = of_kind(&objects, "Deployment");
    let pod = |pool: &str| {
        let found = deployments.iter().find(|object| name(object) == format!("rel-pleach-{pool}"));
        found.expect("a pool")["spec"]["template"]["spec"].clone()
    };
    let tolerated = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
    let team = json!({"key": "team", "operator": "Equal", "value": "imaging", "effect": "NoSchedule"});
    for (pool, resource, count, memory, tolerations, class) in [
        ("base", None, 0, None, Value::Null, Value::Null),
        (
            "nvidia",
            Some("nvidia.com/gpu"),
            2,
            Some("--device-memory=16GiB"),
            json!([team, tolerated("nvidia.com/gpu")]),
            json!("nvidia"),
        ),
        ("amd", Some("amd.com/gpu"), 1, None, json!([tolerated("amd.com/gpu")]), Value::Null),
    ] {
        let pod = pod(pool);
        assert_eq!(pod["tolerations"], tolerations, "{pool}");
        assert_eq!(pod["runtimeClassName"], class, "{pool}");
        let container = &pod["containers"][0];
        let limits = container["resources"]["limits"].as_object().expect("limits");
        assert_eq!(limits.len(), if resource.is_some() { 3 } else { 2 }, "{pool}: {limits:?}");
        assert!(resource.is_none_or(|resource| limits[resource] == count), "{pool}: {limits:?}");
        let args = container["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
        let given: Vec<&str> = args
            .filter(|word| word.starts_with("--accelerators") || word.starts_with("--device-memory"))
            .collect();
        let option = format!("--accelerators={count}");
        let expected: Vec<&str> = resource.map(|_| option.as_str()).into_iter().chain(memory).collect();
        assert_eq!(given, expected, "{pool}");
    }
    let groups = of_name(&objects, "worker").pod["securityContext"]["supplementalGroups"].clone();
    assert_eq!(groups, json!([109]));
}

/// Security contexts of all pods, hooks and tests included, are those of the values. Null fields are omitted.
#[test]
fn security_contexts_are_those_of_the_values() {
    let Some(tools) = Tools::of("security_contexts_are_those_of_the_values") else { return };
    let pods = r#"podSecurityContext={"runAsUser":null,"runAsGroup":0,"fsGroup":4711,"seccompProfile":null}"#;
    let each = r#"securityContext={"runAsNonRoot":true,"readOnlyRootFilesystem":false}"#;
    let objects = tools.render(&["--set-json", pods, "--set-json", each]).expect("objects");
    let all = containers(&objects);
    assert!(all.len() >= 6, "{}", all.len());
    for Container { of, value, pod, .. } in all {
        let expected = json!({
            "runAsNonRoot": true, "runAsGroup": 0, "fsGroup": 4711, "fsGroupChangePolicy": "OnRootMismatch",
        });
        assert_eq!(pod["securityContext"], expected, "{of}");
        let expected = json!({
            "runAsNonRoot": true, "readOnlyRootFilesystem": false, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(value["securityContext"], expected, "{of}");
    }
}

/// Clients expect one TLS name at any address. The ingress controller passes TLS through to the HTTPS port.
#[test]
fn ingress_passes_tls_through_by_the_name_of_managers() {
    let Some(tools) = Tools::of("ingress_passes_tls_through_by_the_name_of_managers") else { return };
    let set = r#"manager={"ingress":{"enabled":true,"className":"nginx","annotations":{"a/b":"c","haproxy.org/ssl-passthrough":"false"}}}"#;
    let objects = tools.render(&["--set-json", set]).expect("objects");
    let ingresses = of_kind(&objects, "Ingress");
    let [ingress] = ingresses[..] else { panic!("{ingresses:?}") };
    let spec = &ingress["spec"];
    assert_eq!(spec["ingressClassName"], "nginx");
    // No component terminates TLS before the manager.
    assert!(spec["tls"].is_null(), "{spec}");
    let rule = &spec["rules"][0];
    assert_eq!(rule["host"], "manager.pleach");
    let backend = &rule["http"]["paths"][0]["backend"]["service"];
    let services = of_kind(&objects, "Service");
    let service = services
        .into_iter()
        .find(|object| object["metadata"]["name"] == backend["name"])
        .expect("its service");
    let ports = service["spec"]["ports"].as_array().expect("ports");
    let port = ports.iter().find(|port| port["name"] == backend["port"]["name"]).expect("its port");
    assert_eq!((&port["port"], &port["protocol"]), (&json!(7118), &json!("TCP")));
    let annotations = &ingress["metadata"]["annotations"];
    assert_eq!(annotations["nginx.ingress.kubernetes.io/ssl-passthrough"], "true");
    assert_eq!(
        (&annotations["a/b"], &annotations["haproxy.org/ssl-passthrough"]),
        (&json!("c"), &json!("false"))
    );
    assert!(of_kind(&tools.render(&[]).expect("objects"), "Ingress").is_empty());
}
