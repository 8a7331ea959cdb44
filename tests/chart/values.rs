//! Invalid values are refused by name, and the chart's README lists all values with their defaults.

use crate::chart::{Tools, root};
use crate::file;
use serde_json::Value;

/// Values for helm, and the expected error.
const REFUSED: [(&str, &str); 45] = [
    (
        r#"workerPools=[{"name":"a","cpus":4}]"#,
        "at '/workerPools/0': additional properties 'cpus' not allowed",
    ),
    (r#"manager={"replicas":2}"#, "at '/manager': additional properties 'replicas' not allowed"),
    (r#"workers=[]"#, "at '': additional properties 'workers' not allowed"),
    (r#"workerPools=[]"#, "at '/workerPools': minItems: got 0, want 1"),
    (r#"workerPools=[{"replicas":1}]"#, "at '/workerPools/0': missing property 'name'"),
    (r#"workerPools=[{"name":"Base_1"}]"#, "at '/workerPools/0/name': 'Base_1' does not match pattern"),
    (r#"workerPools=[{"name":"a","cpu":0.5}]"#, "at '/workerPools/0/cpu': got number, want integer"),
    (r#"workerPools=[{"name":"a","cpu":0}]"#, "at '/workerPools/0/cpu': minimum: got 0, want 1"),
    (
        r#"workerPools=[{"name":"a","memory":"16GB"}]"#,
        "at '/workerPools/0/memory': '16GB' does not match pattern",
    ),
    (r#"workerPools=[{"name":"a","replicas":-1}]"#, "at '/workerPools/0/replicas': minimum: got -1, want 0"),
    (
        r#"workerPools=[{"name":"a","drainSeconds":"30s"}]"#,
        "at '/workerPools/0/drainSeconds': got string, want integer",
    ),
    (
        r#"workerPools=[{"name":"a","ssd":{"kind":"disk"}}]"#,
        "value must be one of 'emptyDir', 'claim', 'none'",
    ),
    (
        r#"workerPools=[{"name":"a","options":["window=2"]}]"#,
        "at '/workerPools/0/options/0': 'window=2' does not match",
    ),
    (
        r#"workerPools=[{"name":"a","tolerations":[{"effect":"NoShedule"}]}]"#,
        "value must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
    ),
    (
        r#"workerPools=[{"name":"a"},{"name":"a"}]"#,
        "workerPools: two pools are named \"a\"; names must be unique",
    ),
    (
        r#"workerPools=[{"name":"manager"}]"#,
        "workerPools: a pool is named \"manager\", a reserved name; any other name is allowed",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"min":8,"max":4}}]"#,
        "workerPools, a: autoscaling.min is 8; at most autoscaling.max, 4, is allowed",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"kind":"hpa","min":0}}]"#,
        "workerPools, a: autoscaling.min is 0; hpa allows 1 or more, manager and keda 0 or more",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"kind":"keda"}}]"#,
        "monitoring.prometheusAddress: empty; pool a with autoscaling.kind keda requires the address of Prometheus",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"kind":"manager","query":"x"}}]"#,
        "workerPools, a: autoscaling.query is set, and autoscaling.kind is manager; one party scales a pool, and only keda has a query",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"kind":["manager","hpa"]}}]"#,
        "at '/workerPools/0/autoscaling/kind': value must be one of 'none', 'manager', 'hpa', 'keda'",
    ),
    (
        r#"workerPools=[{"name":"a","autoscaling":{"kind":"manager","idleSeconds":-1}}]"#,
        "at '/workerPools/0/autoscaling/idleSeconds': minimum: got -1, want 0",
    ),
    (
        r#"workerPools=[{"name":"a","maxSurge":0}]"#,
        "workerPools, a: maxSurge and maxUnavailable are both 0; one of them must be above 0",
    ),
    (
        r#"workerPools=[{"name":"a","accelerators":{"count":-1}}]"#,
        "at '/workerPools/0/accelerators/count': minimum: got -1, want 0",
    ),
    (
        r#"workerDefaults={"accelerators":{"count":"1"}}"#,
        "at '/workerDefaults/accelerators/count': got string, want integer",
    ),
    (
        r#"workerPools=[{"name":"a","accelerators":{"count":1,"resource":"gpu"}}]"#,
        "at '/workerPools/0/accelerators/resource': 'gpu' does not match pattern",
    ),
    (
        r#"workerPools=[{"name":"a","accelerators":{"memory":"16Gi"}}]"#,
        "at '/workerPools/0/accelerators/memory': '16Gi' does not match pattern",
    ),
    (
        r#"workerPools=[{"name":"a","runtimeClassName":"NVIDIA"}]"#,
        "at '/workerPools/0/runtimeClassName': 'NVIDIA' does not match pattern",
    ),
    (r#"lustre={"enabled":true}"#, "lustre: claim and hostPath are both empty; one of them is required"),
    (
        r#"lustre={"enabled":true,"claim":"a","hostPath":"/b"}"#,
        "lustre: claim and hostPath are both set; only one of them is allowed",
    ),
    (
        r#"inputs=[{"name":"a","path":"/a"}]"#,
        "inputs, a: claim and hostPath are both empty; one of them is required",
    ),
    (
        r#"objectStore={"enabled":true}"#,
        "objectStore.bucket: empty; objectStore.enabled requires the name of a bucket",
    ),
    (
        r#"authority={"source":"secret"}"#,
        "authority.secret: empty; authority.source \"secret\" requires the name of a secret",
    ),
    (r#"authority={"joinToken":{"days":31}}"#, "at '/authority/joinToken/days': maximum: got 31, want 30"),
    (r#"image={"digest":"sha256:12"}"#, "at '/image/digest': 'sha256:12' does not match pattern"),
    (r#"podSecurityContext={"runAsUser":"nobody"}"#, "at '/podSecurityContext/runAsUser': got string"),
    (r#"securityContext={"user":1}"#, "at '/securityContext': additional properties 'user' not allowed"),
    (r#"manager={"extraEnv":[{"name":"A"}]}"#, "at '/manager/extraEnv/0': 'oneOf' failed"),
    (
        r#"manager={"extraEnv":[{"name":"A B","value":""}]}"#,
        "at '/manager/extraEnv/0/name': 'A B' does not match",
    ),
    (
        r#"manager={"extraEnv":[{"name":"A","value":""},{"name":"A","value":"b"}]}"#,
        "manager: extraEnv sets A, which is already set; any other name is allowed",
    ),
    (
        r#"workerPools=[{"name":"a","extraEnv":[{"name":"POD_NAME","value":"x"}]}]"#,
        "workerPools, a: extraEnv sets POD_NAME, which is already set",
    ),
    (
        r#"workerPools=[{"name":"a","podLabels":{"pleach-pool":"b"}}]"#,
        "workerPools, a: podLabels has pleach-pool, a selector label of the chart",
    ),
    (
        r#"workerPools=[{"name":"a","extraVolumes":[{"name":"tmp","emptyDir":{}}]}]"#,
        "workerPools, a: extraVolumes has tmp, which already exists",
    ),
    (
        r#"workerPools=[{"name":"a","topologySpreadConstraints":[{"maxSkew":0}]}]"#,
        "at '/workerPools/0/topologySpreadConstraints/0'",
    ),
    (
        r#"manager={"ingress":{"host":"a"}}"#,
        "at '/manager/ingress': additional properties 'host' not allowed",
    ),
];

#[test]
fn invalid_values_are_refused_by_name() {
    let Some(tools) = Tools::of("invalid_values_are_refused_by_name") else { return };
    for (values, expected) in REFUSED {
        let refused = tools.render(&["--set-json", values]).expect_err(values);
        assert!(refused.contains(expected), "{values}: {refused}");
    }
}

/// `global` values of a parent chart and values of upgrades are valid by the schema.
#[test]
fn valid_values_are_accepted() {
    let Some(tools) = Tools::of("valid_values_are_accepted") else { return };
    for values in [
        r#"global={"anything":1}"#,
        r#"fullnameOverride="cluster""#,
        r#"workerPools=[{"name":"a","maxSurge":"25%"}]"#,
    ] {
        tools.render(&["--set-json", values]).expect(values);
    }
    // A release name may contain dots, but a worker name may not.
    let args = ["template", "a.b", "helm/pleach", "--values", &file("minimal")];
    let text = tools.call("helm", &args).expect("objects");
    assert!(text.contains("name: a-b-pleach-small\n"), "{text}");
}

/// Every path of a value, as in `manager.storage.size`, without the paths inside lists.
fn paths(value: &Value, above: &str) -> Vec<String> {
    match value.as_object().filter(|fields| !fields.is_empty() && !above.ends_with("abels")) {
        None => vec![above.to_owned()],
        Some(fields) => {
            let below =
                |name: &String| if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            fields.iter().flat_map(|(name, value)| paths(value, &below(name))).collect()
        }
    }
}

#[test]
fn the_readme_lists_every_value_with_its_default() {
    let Some(tools) = Tools::of("the_readme_lists_every_value_with_its_default") else { return };
    let values = std::fs::read_to_string(root().join("helm/pleach/values.yaml")).expect("values");
    let values = tools.read(&values).remove(0);
    let readme = std::fs::read_to_string(root().join("helm/pleach/README.md")).expect("a README");
    let rows: Vec<(&str, &str)> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | `"))
        .map(|(name, rest)| (name, rest.split_once('`').expect("a default").0))
        .collect();
    let listed: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let mut there = paths(&values, "");
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    there.sort_unstable();
    assert_eq!(sorted, there);
    for (name, default) in rows {
        let value = name.split('.').fold(&values, |value, field| &value[field]);
        let shown: Value =
            serde_json::from_str(default).unwrap_or_else(|error| panic!("{name}: {default}: {error}"));
        assert_eq!(shown, *value, "{name}");
    }
}
