//! Rendered objects are valid by their schemas, refer to each other correctly, and have minimal rights.

use crate::chart::{Container, Tools, containers, strings};
use crate::{VALUES, file};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// All objects of every values file, with the file's name.
fn rendered(tools: &Tools) -> Vec<(&'static str, Vec<Value>)> {
    let render = |values| (values, tools.render(&["--values", &file(values)]).expect("objects"));
    VALUES.into_iter().map(render).collect()
}

pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// Result of `validate.py` for a YAML text: the number of objects by kind, or its errors.
fn validate(tools: &Tools, text: &str) -> Result<Value, String> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a file written");
    let path = file.path().to_str().expect("UTF-8");
    let kinds = tools.call("python", &["tests/chart/validate.py", path])?;
    Ok(serde_json::from_str(&kinds).expect("JSON"))
}

fn template(tools: &Tools, values: &str) -> String {
    let args = ["template", "rel", "helm/pleach", "--namespace", "studies", "--values", &file(values)];
    tools.call("helm", &args).expect("objects")
}

#[test]
fn every_object_is_valid() {
    let Some(tools) = Tools::of("every_object_is_valid") else { return };
    let of_others = [
        ("Certificate", vec!["spot-burst"]),
        ("Ingress", vec!["openshift"]),
        ("Issuer", vec!["spot-burst"]),
        ("PodMonitor", vec!["openshift", "spot-burst"]),
        ("PrometheusRule", vec!["openshift"]),
        ("ScaledObject", vec!["spot-burst"]),
        ("ServiceMonitor", vec!["openshift", "spot-burst"]),
    ];
    for values in VALUES {
        let kinds =
            validate(&tools, &template(&tools, values)).unwrap_or_else(|why| panic!("{values}: {why}"));
        for kind in
            ["StatefulSet", "Deployment", "Service", "ServiceAccount", "Role", "Job", "CronJob", "Pod"]
        {
            assert!(kinds[kind].is_u64(), "{values} has no {kind}: {kinds}");
        }
        // Objects of optional kinds are rendered only where the values request them.
        for (kind, asked_for) in &of_others {
            assert_eq!(kinds[kind].is_u64(), asked_for.contains(&values), "{values}, {kind}: {kinds}");
        }
    }
}

/// Options that no values file has together are valid together as well.
#[test]
fn combined_options_are_valid() {
    let Some(tools) = Tools::of("combined_options_are_valid") else { return };
    let monitoring = "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,\
                      monitoring.dashboards.enabled=true,monitoring.prometheusAddress=http://prometheus:9090";
    let mut text = String::new();
    let mut files = VALUES.iter().cycle();
    for authority in ["job", "cert-manager", "secret"] {
        for kind in ["none", "manager", "hpa", "keda"] {
            let values = file(files.next().expect("a file"));
            let authority = format!("authority.source={authority},authority.secret=own");
            let scaling = format!("workerDefaults.autoscaling.kind={kind},manager.podDeletionCost=true");
            let clients = "manager.ingress.enabled=true,manager.expose.type=NodePort";
            let set = [monitoring, &authority, &scaling, clients].join(",");
            let args = ["template", "rel", "helm/pleach", "--namespace", "studies", "--values", &values];
            text += &tools.call("helm", &[&args[..], &["--set", &set]].concat()).expect("objects");
        }
    }
    let kinds = validate(&tools, &text).unwrap_or_else(|why| panic!("{why}"));
    for kind in ["HorizontalPodAutoscaler", "ScaledObject", "Certificate", "PrometheusRule", "Ingress"] {
        assert!(kinds[kind].as_u64() >= Some(3), "{kind}: {kinds}");
    }
}

/// A pool has one party that scales it: the manager with a role for its deployment, or an autoscaler.
#[test]
fn one_party_scales_a_pool() {
    let Some(tools) = Tools::of("one_party_scales_a_pool") else { return };
    for kind in ["none", "manager", "hpa", "keda"] {
        let pools = format!(
            r#"workerPools=[{{"name":"a","autoscaling":{{"kind":"{kind}"}}}},{{"name":"b","autoscaling":{{"kind":"hpa"}}}}]"#
        );
        let address = "monitoring.prometheusAddress=http://prometheus:9090";
        let objects = tools.render(&["--set-json", &pools, "--set", address]).expect("objects");
        let targets = |kind: &str| -> Vec<String> {
            let all = of_kind(&objects, kind).into_iter();
            all.filter_map(|object| object["spec"]["scaleTargetRef"]["name"].as_str())
                .map(str::to_owned)
                .collect()
        };
        let scalers: Vec<String> = [targets("HorizontalPodAutoscaler"), targets("ScaledObject")].concat();
        let scaled_by_other = scalers.iter().filter(|target| *target == "rel-pleach-a").count();
        assert_eq!(scaled_by_other, usize::from(["hpa", "keda"].contains(&kind)), "{kind}");
        let roles =
            of_kind(&objects, "Role").into_iter().flat_map(|role| role["rules"].as_array().expect("rules"));
        let scales: Vec<&Value> =
            roles.filter(|rule| strings(&rule["resources"]) == ["deployments/scale"]).collect();
        let map = of_kind(&objects, "ConfigMap").into_iter().find(|map| name(map).ends_with("-pools"));
        let file = map.and_then(|map| map["data"]["pools.toml"].as_str()).expect("pools");
        let is_scaled = kind == "manager";
        assert_eq!(file.matches("driver = \"kubernetes\"").count(), usize::from(is_scaled), "{file}");
        assert_eq!(file.contains("deployment = \"rel-pleach-a\""), is_scaled, "{file}");
        let expected = json!({
            "apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["rel-pleach-a"],
            "verbs": ["get", "update"],
        });
        assert_eq!(scales, if is_scaled { vec![&expected] } else { Vec::new() }, "{kind}");
        // The manager's pod has the account, the option and the way to the API only for such a pool.
        let all = containers(&objects);
        let manager = all.iter().find(|is| is.value["name"] == "manager").expect("a manager");
        assert_eq!(manager.pod["automountServiceAccountToken"], is_scaled, "{kind}");
        assert_eq!(manager.command.contains(&"--pod-deletion-cost".to_owned()), is_scaled, "{kind}");
        let policy =
            of_kind(&objects, "NetworkPolicy").into_iter().find(|is| name(is) == "rel-pleach-manager");
        let egress = policy.and_then(|policy| policy["spec"]["egress"].as_array()).expect("a list");
        assert_eq!(!egress.is_empty(), is_scaled, "{kind}");
        // Helm does not set the number of a scaled pool: an upgrade keeps it.
        let deployment = of_kind(&objects, "Deployment").into_iter().find(|is| name(is) == "rel-pleach-a");
        assert_eq!(deployment.expect("a pool")["spec"]["replicas"].is_u64(), kind == "none", "{kind}");
    }
}

/// The validator reports errors in an invalid text.
#[test]
fn invalid_object_is_detected() {
    let Some(tools) = Tools::of("invalid_object_is_detected") else { return };
    let mut text = template(&tools, "spot-burst");
    let mistakes = [
        ("minReadySeconds: 5", "minReadySecond: 5", "'minReadySecond' was unexpected"),
        (
            "terminationGracePeriodSeconds: 15",
            "terminationGracePeriodSeconds: 15s",
            "'15s' is not of type 'integer'",
        ),
        ("maxReplicaCount: 64", "maxReplicaCounts: 64", "'maxReplicaCounts' was unexpected"),
        ("serverName: manager.pleach", "servername: manager.pleach", "'servername' was unexpected"),
        ("secretName: rel-pleach-ca-key", "secret: rel-pleach-ca-key", "'secretName' is a required property"),
        ("isCA: true", "isCA: maybe", "'maybe' is not of type 'boolean'"),
    ];
    for (right, wrong, _) in mistakes {
        assert!(text.contains(right), "{right}");
        text = text.replace(right, wrong);
    }
    let said = validate(&tools, &text).expect_err("it is wrong");
    for (_, wrong, what) in mistakes {
        assert!(said.contains(what), "{wrong}: {said}");
    }
    for version in ["1.27", "1.32", "1.37"] {
        assert!(said.contains(&format!("Kubernetes {version}: ")), "{version}: {said}");
    }
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, a: c}\n";
    let said = validate(&tools, twice).expect_err("a key is there twice");
    assert!(said.contains("a is there twice"), "{said}");
}

/// kubectl reads a rendered release as one set of objects, without duplicates or omissions. Its other checks need a cluster.
#[test]
fn kubectl_reads_every_object_once() {
    let Some(tools) = Tools::of("kubectl_reads_every_object_once") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kustomization.yaml"), "resources: [release.yaml]\n").expect("a file");
    let build = |text: &str| {
        std::fs::write(folder.path().join("release.yaml"), text).expect("a file written");
        tools.call("kubectl", &["kustomize", folder.path().to_str().expect("UTF-8")])
    };
    for values in VALUES {
        let text = template(&tools, values);
        let sorted = |mut objects: Vec<Value>| {
            objects.sort_by_key(|object| format!("{} {}", object["kind"], name(object)));
            objects
        };
        let built = build(&text).unwrap_or_else(|why| panic!("{values}: {why}"));
        assert_eq!(sorted(tools.read(&built)), sorted(tools.read(&text)), "{values}");
    }
    let twice = template(&tools, "default");
    let twice = format!("{twice}\n---\n{twice}");
    let refused = build(&twice).expect_err("every object is there twice");
    assert!(refused.contains("already registered id"), "{refused}");
}

#[test]
fn no_container_may_do_more_than_it_needs() {
    let Some(tools) = Tools::of("no_container_may_do_more_than_it_needs") else { return };
    for (values, objects) in rendered(&tools) {
        let all = containers(&objects);
        assert!(all.len() >= 6, "{values}");
        for Container { of, value, pod, .. } in all {
            let security = json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            });
            assert_eq!(value["securityContext"], security, "{values}, {of}");
            let of_pod = &pod["securityContext"];
            assert_eq!(of_pod["runAsNonRoot"], true, "{values}, {of}");
            // A cluster that assigns user IDs refuses pods with an ID of their own.
            let ids = ["runAsUser", "runAsGroup", "fsGroup"].map(|field| of_pod[field].as_u64());
            let id = (values != "openshift").then_some(10001);
            assert_eq!(ids, [id; 3], "{values}, {of}");
            assert_eq!(of_pod["seccompProfile"], json!({"type": "RuntimeDefault"}), "{values}, {of}");
            for side in ["requests", "limits"] {
                let has = &value["resources"][side];
                assert!(has["cpu"] != Value::Null && has["memory"] != Value::Null, "{values}, {of}: {side}");
            }
            // Only pods with a role of their own mount the service account token.
            let certificates =
                pod["serviceAccountName"].as_str().is_some_and(|is| is.ends_with("-certificates"));
            let manager = of.contains("manager") && ["spot-burst", "manager-scaled"].contains(&values);
            assert_eq!(pod["automountServiceAccountToken"], json!(certificates || manager), "{values}, {of}");
            // Every mounted volume is defined.
            let named = |list: &Value| -> BTreeSet<String> {
                let all = list.as_array().into_iter().flatten();
                all.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
            };
            let (mounted, there) = (named(&value["volumeMounts"]), named(&pod["volumes"]));
            let claimed = BTreeSet::from(["state".to_owned()]);
            let missing: Vec<_> =
                mounted.difference(&there).filter(|name| !claimed.contains(*name)).collect();
            assert!(missing.is_empty(), "{values}, {of}: {missing:?}");
        }
    }
}

/// Roles create secrets and update three of them, and read none. They patch pods where the values request it. They grant
/// nothing else, and nothing outside the namespace.
#[test]
fn roles_grant_minimal_rights() {
    let Some(tools) = Tools::of("roles_grant_minimal_rights") else { return };
    for (values, objects) in rendered(&tools) {
        assert!(
            of_kind(&objects, "ClusterRole").is_empty() && of_kind(&objects, "ClusterRoleBinding").is_empty()
        );
        let mut rules: Vec<String> = Vec::new();
        for role in of_kind(&objects, "Role") {
            for rule in role["rules"].as_array().expect("rules") {
                let of = |field: &str| strings(&rule[field]).join(" ");
                rules.push(format!(
                    "{}: {} {} {}",
                    name(role),
                    of("verbs"),
                    of("resources"),
                    of("resourceNames")
                ));
            }
        }
        let mut expected = vec![
            "rel-pleach-certificates: create secrets ".to_owned(),
            "rel-pleach-certificates: patch secrets rel-pleach-ca rel-pleach-join rel-pleach-client"
                .to_owned(),
        ];
        if values == "spot-burst" || values == "manager-scaled" {
            expected.push("rel-pleach-manager: patch pods ".to_owned());
        }
        if values == "manager-scaled" {
            let scales = "rel-pleach-manager: get update deployments/scale rel-pleach-spot rel-pleach-large";
            expected.insert(2, scales.to_owned());
            expected.insert(3, "rel-pleach-manager: list watch pods ".to_owned());
        }
        rules.sort();
        assert_eq!(rules, expected, "{values}");
        let accounts = of_kind(&objects, "ServiceAccount").len();
        assert_eq!(accounts, 3, "{values}: one for each role");
    }
}

/// A manager sets pod deletion costs only if the values request it and a pool can shrink. The option, the role and the
/// egress rule are rendered together or not at all.
#[test]
fn pod_deletion_costs_need_the_option_and_a_scaled_pool() {
    let Some(tools) = Tools::of("pod_deletion_costs_need_the_option_and_a_scaled_pool") else { return };
    let asked = "manager.podDeletionCost=true";
    let scaled = r#"workerPools=[{"name":"a","autoscaling":{"kind":"hpa"}},{"name":"b"}]"#;
    for (options, tells) in [
        (vec![], false),
        (vec!["--set", asked], false),
        (vec!["--set-json", scaled], false),
        (vec!["--set", asked, "--set-json", scaled], true),
    ] {
        let objects = tools.render(&options).expect("objects");
        let all = containers(&objects);
        let manager = all.iter().find(|is| is.value["name"] == "manager").expect("a manager");
        let has = |option: &str| manager.command.iter().any(|word| word.starts_with(option));
        assert_eq!(has("--pod-deletion-cost"), tells, "{options:?}");
        assert!(!tells || has("--pools="), "{options:?}");
        assert_eq!(manager.pod["automountServiceAccountToken"], tells, "{options:?}");
        let roles = of_kind(&objects, "Role").into_iter().filter(|role| name(role) == "rel-pleach-manager");
        let rules: Vec<&Value> = roles.map(|role| &role["rules"]).collect();
        let expected = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]);
        assert_eq!(rules, if tells { vec![&expected] } else { Vec::new() }, "{options:?}");
        let account = manager.pod["serviceAccountName"].as_str().expect("an account");
        for binding in
            of_kind(&objects, "RoleBinding").into_iter().filter(|is| name(is) == "rel-pleach-manager")
        {
            let subjects = json!([{"kind": "ServiceAccount", "name": account, "namespace": "studies"}]);
            assert_eq!(
                (&binding["subjects"], &binding["roleRef"]["name"]),
                (&subjects, &json!("rel-pleach-manager"))
            );
        }
        let policies = of_kind(&objects, "NetworkPolicy");
        let policy = policies.into_iter().find(|is| name(is) == "rel-pleach-manager").expect("a policy");
        let egress = policy["spec"]["egress"].as_array().expect("a list");
        assert_eq!(!egress.is_empty(), tells, "{options:?}: {egress:?}");
        // The name of a worker is the name of its pod, in every pool.
        for worker in all.iter().filter(|is| is.value["name"] == "worker") {
            let named = worker.value["args"].as_array().expect("arguments");
            assert!(named.contains(&json!("--name=$(POD_NAME)")), "{}", worker.of);
            let of_pod =
                json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
            assert!(worker.value["env"].as_array().is_some_and(|all| all.contains(&of_pod)), "{}", worker.of);
        }
    }
}

#[test]
fn services_budgets_and_policies_select_the_pods_that_they_are_for() {
    let Some(tools) = Tools::of("services_budgets_and_policies_select_the_pods_that_they_are_for") else {
        return;
    };
    for (values, objects) in rendered(&tools) {
        let labels: Vec<(&str, &Value)> = objects
            .iter()
            .filter_map(|object| match object["kind"].as_str()? {
                "Deployment" | "StatefulSet" | "Job" => {
                    Some((name(object), &object["spec"]["template"]["metadata"]["labels"]))
                }
                _ => None,
            })
            .collect();
        let selected = |selector: &Value| -> Vec<&str> {
            let selector = selector.as_object().expect("labels");
            let fits = |labels: &Value| selector.iter().all(|(key, value)| labels[key] == *value);
            labels.iter().filter(|(_, labels)| fits(labels)).map(|(name, _)| *name).collect()
        };
        for service in of_kind(&objects, "Service") {
            assert_eq!(selected(&service["spec"]["selector"]), ["rel-pleach-manager"], "{values}");
        }
        for budget in of_kind(&objects, "PodDisruptionBudget") {
            assert_eq!(selected(&budget["spec"]["selector"]["matchLabels"]), [name(budget)], "{values}");
        }
        let pools = of_kind(&objects, "Deployment").len();
        for policy in of_kind(&objects, "NetworkPolicy") {
            let count = if name(policy).ends_with("-worker") { pools } else { 1 };
            assert_eq!(selected(&policy["spec"]["podSelector"]["matchLabels"]).len(), count, "{values}");
        }
        // Workers reach the manager by the service's name and port.
        let service = of_kind(&objects, "Service")[0];
        let port = &service["spec"]["ports"][0];
        assert_eq!((&port["protocol"], &port["port"]), (&json!("UDP"), &json!(7117)), "QUIC");
        let reached = format!("--manager={}:{}", name(service), port["port"]);
        let workers =
            containers(&objects).into_iter().filter(|is| is.command.get(1).is_some_and(|is| is == "worker"));
        let workers: Vec<Container> = workers.collect();
        assert_eq!(workers.len(), pools);
        assert!(workers.iter().all(|worker| worker.command.contains(&reached)), "{values}: {reached}");
    }
}

/// Probes use existing paths of the manager, and none that depends on other services.
#[test]
fn probes_use_existing_endpoints() {
    let Some(tools) = Tools::of("probes_use_existing_endpoints") else { return };
    let openapi = include_str!("../../crates/server/src/http/openapi.json");
    let openapi: Value = serde_json::from_str(openapi).expect("JSON");
    for (values, objects) in rendered(&tools) {
        let all = containers(&objects);
        let manager = all.iter().find(|is| is.value["name"] == "manager").expect("a manager");
        for (probe, path) in
            [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
        {
            let get = &manager.value[probe]["httpGet"];
            assert_eq!((&get["path"], &get["scheme"]), (&json!(path), &json!("HTTPS")), "{values}, {probe}");
            assert!(openapi["paths"][path].is_object(), "{path}");
        }
        let worker = all.iter().find(|is| is.value["name"] == "worker").expect("a worker");
        for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            let get = &worker.value[probe]["httpGet"];
            assert_eq!(*get, json!({"path": path, "port": "metrics"}), "{values}, {probe}");
        }
        let port =
            worker.value["ports"].as_array().expect("ports").iter().find(|port| port["name"] == "metrics");
        let option = format!("--metrics=0.0.0.0:{}", port.expect("a port")["containerPort"]);
        assert!(worker.command.contains(&option), "{values}: {option}");
    }
}
