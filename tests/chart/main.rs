//! `helm/pleach` and `deploy/` through the real tools: helm renders and lints, every object is held against the schemas of
//! Kubernetes and of the projects whose kinds it uses, wrong values are refused in words, and what the chart's hook does is
//! done. Whether the binary knows the commands is in `src/cli/tests.rs`, what becomes of studies in `tests/cluster/rollout.rs`.

#[path = "../support/chart.rs"]
mod chart;
mod deploy;
mod hook;
mod monitoring;
mod objects;
#[path = "../support/pleach.rs"]
mod pleach;
mod pods;
mod values;

use chart::Tools;

/// The values that the chart is rendered with, in its `ci` folder.
const VALUES: [&str; 5] = ["default", "minimal", "spot-burst", "lustre", "openshift"];

fn file(values: &str) -> String {
    format!("helm/pleach/ci/{values}-values.yaml")
}

#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
pub(crate) fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

#[test]
fn helm_finds_nothing_to_complain_of() {
    let Some(tools) = Tools::of("helm_finds_nothing_to_complain_of") else { return };
    for values in VALUES {
        let linted = tools.call("helm", &["lint", "--strict", "helm/pleach", "--values", &file(values)]);
        assert!(linted.as_ref().is_ok_and(|text| text.contains("0 chart(s) failed")), "{values}: {linted:?}");
    }
}

/// Rendered as users get it: packaged, without what is only the repository's.
#[test]
fn a_package_renders_the_same() {
    let Some(tools) = Tools::of("a_package_renders_the_same") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("UTF-8");
    tools.call("helm", &["package", "helm/pleach", "--destination", place]).expect("a package");
    let package = format!("{place}/pleach-{}.tgz", env!("CARGO_PKG_VERSION"));
    for values in VALUES {
        let template =
            |chart: &str| tools.call("helm", &["template", "rel", chart, "--values", &file(values)]);
        assert_eq!(template(&package), template("helm/pleach"), "{values}");
    }
    let listed = std::process::Command::new("tar").args(["tzf", &package]).output().expect("tar starts");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    assert!(listed.contains("pleach/values.schema.json") && !listed.contains("/ci/"), "{listed}");
}
