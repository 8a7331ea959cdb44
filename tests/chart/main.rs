//! `helm/pleach` and `deploy/` through the real tools.
//!
//! Helm renders and lints the chart. Every object is checked against the schemas of Kubernetes and of the projects whose
//! kinds it uses. Invalid values are refused with a reason, and the hook's script runs. `src/cli/tests.rs` checks the
//! commands against the binary, and `tests/cluster/rollout.rs` the studies during a rollout.

mod accept;
#[path = "../support/chart.rs"]
mod chart;
mod deploy;
mod hook;
mod monitoring;
mod objects;
#[path = "../support/pleach.rs"]
mod pleach;
mod pods;
mod security;
mod upgrade;
mod values;

use chart::Tools;

/// Values files in the chart's `ci` folder that the tests render.
const VALUES: [&str; 7] =
    ["default", "minimal", "spot-burst", "manager-scaled", "lustre", "openshift", "accelerators"];

fn file(values: &str) -> String {
    format!("helm/pleach/ci/{values}-values.yaml")
}

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
pub(crate) fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

#[test]
fn helm_lint_reports_no_problem() {
    let Some(tools) = Tools::of("helm_lint_reports_no_problem") else { return };
    for values in VALUES {
        let linted = tools.call("helm", &["lint", "--strict", "helm/pleach", "--values", &file(values)]);
        assert!(linted.as_ref().is_ok_and(|text| text.contains("0 chart(s) failed")), "{values}: {linted:?}");
    }
}

/// The packaged chart renders the same objects without files that only the repository has.
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
