//! Section on the tasks saved by reuse, per stage and reuse level.

use crate::Report;
use crate::charts::svg::Drawing;
use crate::page::format_number::{count, counted, percent};
use crate::page::html::{Html, Table, html, p, strong};
use pleach_planner::PlanRecord;
use pleach_workflow::Stage;

/// Tasks of one stage: requested without reuse, saved at each level, and left to execute.
struct Tasks {
    requested: usize,
    stage: usize,
    tree: usize,
    dataflow: usize,
    remaining: usize,
}

/// Returns the tasks of each stage. Without merging, none are saved.
fn tasks(plan: &PlanRecord, stages: &[Stage]) -> Vec<Tasks> {
    let stages = plan.summary.per_stage.iter().zip(stages);
    let tasks = stages.map(|(figures, stage)| {
        let requested = figures.instances_without_reuse * stage.tasks.len();
        let merged = if is_merged(plan) { figures.tasks_after_stage_merging } else { requested };
        Tasks {
            requested,
            stage: requested.saturating_sub(merged),
            tree: merged.saturating_sub(figures.tasks_with_tree_reuse),
            dataflow: figures.tasks_with_tree_reuse.saturating_sub(figures.tasks),
            remaining: figures.tasks,
        }
    });
    tasks.collect()
}

fn is_merged(plan: &PlanRecord) -> bool {
    plan.strategy != "none"
}

/// Returns the section.
pub(crate) fn section(report: &Report<'_>) -> Html {
    let plan = report.plan;
    let tasks = tasks(plan, &report.study.workflow.stages);
    let most = tasks.iter().map(|tasks| tasks.requested).max().unwrap_or(0).max(1) as f64;
    let header = [
        "stage",
        "runs",
        "distinct",
        "tasks without reuse",
        "after stage merging",
        "to execute",
        "reuse, by count",
        "reuse, by cost",
        "buckets",
        "HRV",
        "",
    ];
    let caption = html![
        "Plan. Distinct: stage instances that differ in a parameter or an input. Reuse: saved share of the \
         tasks that remain after stage merging (by cost: estimated time). HRV: standard deviation of the estimated \
         times of the buckets, divided by their mean. Bars: ",
        Html::of_class("span", "key left", "■"),
        " executed, ",
        Html::of_class("span", "key tree", "▬"),
        " saved by shared first tasks, ",
        Html::of_class("span", "key dataflow", "▭"),
        " by shared tasks with the same inputs, ",
        Html::of_class("span", "key stage", "□"),
        " saved by stage merging.",
    ];
    let mut table = Table::new("numbers", caption, header);
    for (figures, tasks) in plan.summary.per_stage.iter().zip(&tasks) {
        let fraction = |fraction: f64| if is_merged(plan) { percent(fraction) } else { "–".to_owned() };
        table.row([
            Html::from(&figures.stage),
            count(figures.instances_without_reuse).into(),
            count(figures.instances).into(),
            count(tasks.requested).into(),
            count(tasks.requested - tasks.stage).into(),
            count(tasks.remaining).into(),
            fraction(figures.reuse_fraction).into(),
            fraction(figures.cost_reuse_fraction).into(),
            count(figures.buckets).into(),
            format!("{:.3}", figures.bucket_cost_hrv).into(),
            bar(tasks, most),
        ]);
    }
    html![p(sentence(report, &tasks)), table.finish()]
}

fn sentence(report: &Report<'_>, tasks: &[Tasks]) -> Html {
    let (plan, run) = (report.plan, report.run);
    let sum = |of: fn(&Tasks) -> usize| tasks.iter().map(of).sum::<usize>();
    let (asked, left) = (sum(|tasks| tasks.requested), sum(|tasks| tasks.remaining));
    let saved = asked.saturating_sub(left);
    let mut text =
        html![format!("{} make {}. ", counted(run.runs, "run", "runs"), counted(asked, "task", "tasks"))];
    let levels = [
        (sum(|tasks| tasks.stage), "because equal stage instances run once"),
        (sum(|tasks| tasks.tree), "because stage instances in a bucket share their first tasks"),
        (
            sum(|tasks| tasks.dataflow),
            "because tasks with the same inputs run once, regardless of the tasks \
                                       before them",
        ),
    ];
    let levels = levels.into_iter().filter(|(tasks, _)| *tasks > 0);
    let levels: Vec<String> = levels.map(|(tasks, why)| format!("{} {why}", count(tasks))).collect();
    text.push(if saved == 0 {
        format!("Nothing is reused (strategy {}). ", plan.strategy)
    } else {
        format!(
            "Reuse (strategy {}{}) saves {} of them, {}: {}. ",
            plan.strategy,
            bucket_size(plan),
            count(saved),
            percent(saved as f64 / asked as f64),
            levels.join(", "),
        )
    });
    text.push(match plan.summary.reference_tasks {
        0 => format!("{} remain. ", count(left)),
        reference => {
            format!("{} remain, and {} for the run at default parameters. ", count(left), count(reference))
        }
    });
    // Levels known only after execution.
    let later = [
        ("value", "had the same input content as another task"),
        ("cache", "were in the task cache"),
        ("earlier", "were computed in an earlier round of the study"),
    ];
    for (level, words) in later {
        if let Some(tasks) = run.tasks_reused.get(level).filter(|tasks| **tasks > 0) {
            text.push(format!("Of those, {} {words}. ", count(*tasks)));
        }
    }
    if run.tasks_skipped > 0 {
        text.push(format!("Of those, {} were skipped by loops and choices. ", count(run.tasks_skipped)));
    }
    text.push(strong(format!("{} executed", counted(run.tasks_executed as usize, "task was", "tasks were"))));
    text.push(if run.failed > 0 { "; tasks after a failure of their run were not. " } else { ". " });
    text.push("Reuse never changes a result: a task is shared only where operation, parameters and inputs are equal.");
    text
}

fn bucket_size(plan: &PlanRecord) -> String {
    let size = plan.max_bucket_size.map(|size| format!(", at most {size} stage instances per bucket"));
    let buckets = plan.max_buckets.map(|buckets| format!(", at most {buckets} buckets per stage"));
    size.or(buckets).unwrap_or_default()
}

/// Draws one bar of the tasks executed and of those saved by the reuse tree, the dataflow graph and stage
/// merging.
fn bar(tasks: &Tasks, most: f64) -> Html {
    const WIDTH_PX: f64 = 120.0;
    let title =
        format!("{} executed, {}, {} and {} saved", tasks.remaining, tasks.tree, tasks.dataflow, tasks.stage);
    let mut drawing = Drawing::new(WIDTH_PX, 12.0, &title);
    let mut from = 0.0;
    // The parts also differ in height and outline, since colors alone do not suffice.
    let parts = [
        ("left", tasks.remaining, 11.0),
        ("tree", tasks.tree, 5.0),
        ("dataflow", tasks.dataflow, 6.0),
        ("stage", tasks.stage, 10.0),
    ];
    for (class, part, height) in parts {
        let length = part as f64 / most * WIDTH_PX;
        if part > 0 {
            drawing.rect(class, [from, 6.0 - height / 2.0, length, height]);
        }
        from += length;
    }
    drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn tasks_of_all_reuse_kinds_add_up() {
        let fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        for tasks in tasks(&fixture.plan, &fixture.study.workflow.stages) {
            assert_eq!(tasks.remaining + tasks.dataflow + tasks.tree + tasks.stage, tasks.requested);
        }
        let text = section(&fixture.report()).into_string();
        for expected in [
            "320 runs make 2880 tasks.",
            "saves 1058 of them, 36.7 %: 318 because equal stage instances run once, 740 because",
            "1822 remain, and 16 for the run at default parameters",
            "<strong>1838 tasks were executed</strong>.",
            "HRV: standard deviation of the estimated times of the buckets, divided by their mean.",
            &format!("<td>{:.3}</td>", fixture.plan.summary.per_stage[1].bucket_cost_hrv),
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }

    #[test]
    fn dataflow_savings_are_listed_apart_from_tree_savings() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        for stage in &mut fixture.plan.summary.per_stage {
            stage.tasks -= usize::from(stage.tasks > 100) * 100;
        }
        fixture.run.tasks_reused.insert("value", 12);
        let text = section(&fixture.report()).into_string();
        for expected in [
            "740 because stage instances in a bucket share",
            "because tasks with the same inputs run once, regardless of the tasks before them",
            "Of those, 12 had the same input content as another task.",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }

    #[test]
    fn without_reuse_nothing_is_claimed_to_be_saved() {
        let mut fixture = fixture::moat(&[("a", 1.0, 0.1)]);
        fixture.without_reuse();
        let text = section(&fixture.report()).into_string();
        assert!(text.contains("Nothing is reused (strategy none)."), "{text}");
        assert!(text.contains("<td>–</td>"), "{text}");
    }
}
