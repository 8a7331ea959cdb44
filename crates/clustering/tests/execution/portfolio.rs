//! Dynamic portfolio: a choice for each level.

use super::support::{five, hc, hrb, workers, workflow};
use pleach_clustering::choose::{EstimateSpread, NamedMethod, dynamic_portfolio, estimates};
use pleach_clustering::simulate::{Platform, simulate};
use pleach_clustering::{Clustering, ClusteringError, Workflow};

fn seconds(workflow: &Workflow) -> Vec<f64> {
    workflow.tasks().iter().map(|task| task.seconds).collect()
}

/// Levels of 4 long and 12 short tasks. Each task depends on all tasks of the level above by way of one joining task.
fn mixed(levels: u32) -> Workflow {
    let (mut tasks, mut edges) = (Vec::new(), Vec::new());
    for level in 0..levels {
        let first = 17 * level;
        for number in 0..16 {
            tasks.push(if number < 4 { ("long", 100.0) } else { ("short", 1.0) });
            edges.push((first + number, first + 16));
            if level > 0 {
                edges.push((first - 1, first + number));
            }
        }
        tasks.push(("join", 1.0));
    }
    workflow(&tasks, &edges)
}

fn groups(workflow: &Workflow) -> Clustering {
    hc(workflow, 4, 0)
}

fn balanced(workflow: &Workflow) -> Clustering {
    hrb(workflow, 4)
}

const METHODS: [NamedMethod<'static>; 2] = [("hc", &groups), ("hrb", &balanced)];

#[test]
fn measured_kinds_correct_later_choices() {
    let workflow = mixed(3);
    let platform = Platform::default().with_workers(workers(4));
    // Before the execution all tasks seem equal, so the static choice joins the long ones.
    let equal = vec![10.0; workflow.tasks().len()];
    let portfolio = dynamic_portfolio(&workflow, &equal, &METHODS, &platform, 0).unwrap().unwrap();
    assert_eq!((portfolio.fixed.method.as_str(), portfolio.best.method.as_str()), ("hc", "hrb"));
    let wide: Vec<&str> = portfolio.levels.iter().step_by(2).map(|level| level.method.as_str()).collect();
    assert_eq!(wide, ["hc", "hrb", "hrb"]);
    assert!(portfolio.regret_to_fixed() < -0.1, "{}", portfolio.regret_to_fixed());
    // The first level is lost: 4 long tasks in one job.
    assert!(portfolio.regret_to_best() > 0.0);
    assert!((portfolio.makespan - (portfolio.best.makespan + 297.0)).abs() < 1e-6, "{portfolio:?}");
}

#[test]
fn exact_estimates_predict_the_makespan() {
    let workflow = mixed(2);
    let platform = Platform::default().with_workers(workers(4));
    let portfolio = dynamic_portfolio(&workflow, &seconds(&workflow), &METHODS, &platform, 0);
    let portfolio = portfolio.unwrap().unwrap();
    assert_eq!(portfolio.levels.last().unwrap().predicted, portfolio.makespan);
    assert_eq!(portfolio.makespan, simulate(&workflow, &portfolio.clustering, &platform, 0).makespan);
    assert_eq!((portfolio.regret_to_fixed(), portfolio.regret_to_best()), (0.0, 0.0));
    assert_eq!(portfolio.clustering, hrb(&workflow, 4));
}

#[test]
fn one_method_leaves_no_choice() {
    let Some(workflows) = five("one_method_leaves_no_choice") else { return };
    let spread = EstimateSpread { kind: 0.5, task: 0.2 };
    let estimated = estimates(&workflows[1], spread, 4);
    let method = |workflow: &Workflow| hc(workflow, 20, 0);
    let methods: [NamedMethod<'_>; 1] = [("hc", &method)];
    let portfolio = dynamic_portfolio(&workflows[1], &estimated, &methods, &Platform::default(), 0);
    let portfolio = portfolio.unwrap().unwrap();
    assert_eq!((portfolio.regret_to_fixed(), portfolio.regret_to_best()), (0.0, 0.0));
    assert_eq!(portfolio.clustering, method(&workflows[1]));
}

#[test]
fn regret_on_real_traces_is_small() {
    let Some(workflows) = five("regret_on_real_traces_is_small") else { return };
    let single: &dyn Fn(&Workflow) -> Clustering = &Clustering::single;
    let groups: &dyn Fn(&Workflow) -> Clustering = &|workflow| hc(workflow, 20, 0);
    let balanced: &dyn Fn(&Workflow) -> Clustering = &|workflow| hrb(workflow, 20);
    let methods = [("none", single), ("hc", groups), ("hrb", balanced)];
    for workflow in workflows {
        let estimated = estimates(&workflow, EstimateSpread { kind: 0.5, task: 0.3 }, 1);
        let portfolio = dynamic_portfolio(&workflow, &estimated, &methods, &Platform::default(), 0);
        let portfolio = portfolio.unwrap().unwrap();
        println!(
            "{}: static {} {:.0} s, dynamic {:.0} s (regret {:+.3}), best {} {:.0} s (regret {:+.3})",
            workflow.name(),
            portfolio.fixed.method,
            portfolio.fixed.makespan,
            portfolio.makespan,
            portfolio.regret_to_fixed(),
            portfolio.best.method,
            portfolio.best.makespan,
            portfolio.regret_to_best(),
        );
        assert_eq!(portfolio.levels.len(), workflow.levels().len());
        assert!(portfolio.regret_to_fixed() < 0.1, "{}", workflow.name());
    }
}

#[test]
fn estimates_have_the_spread_that_they_are_drawn_with() {
    let tasks: Vec<_> = (0..4000).map(|task| (if task % 2 == 0 { "a" } else { "b" }, 100.0)).collect();
    let workflow = workflow(&tasks, &[]);
    assert_eq!(estimates(&workflow, EstimateSpread { kind: 0.0, task: 0.0 }, 1), vec![100.0; 4000]);
    let by_task = estimates(&workflow, EstimateSpread { kind: 0.0, task: 0.3 }, 1);
    let mean = by_task.iter().sum::<f64>() / 4000.0;
    let variance = by_task.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3999.0;
    assert!((mean - 100.0).abs() < 2.0 && (variance.sqrt() - 30.0).abs() < 2.0, "{mean} {variance}");
    let by_kind = estimates(&workflow, EstimateSpread { kind: 0.5, task: 0.0 }, 1);
    assert!(by_kind[0] != by_kind[1] && by_kind[0] == by_kind[2] && by_kind[1] == by_kind[3]);
}

#[test]
fn impossible_portfolios_are_refused() {
    let workflow = mixed(2);
    let platform = Platform::default();
    let of = |estimated: &[f64], methods: &[NamedMethod<'_>]| {
        dynamic_portfolio(&workflow, estimated, methods, &platform, 0)
    };
    assert_eq!(of(&seconds(&workflow), &[]), Ok(None));
    let wrong = of(&vec![f64::NAN; workflow.tasks().len()], &METHODS).unwrap_err();
    assert!(matches!(wrong, ClusteringError::Workflow(_)));
}
