//! Page of a study in phases: survivors and cost of each phase, then the sections of each phase.

use crate::page::contents::Sections;
use crate::page::format_number::{count, duration, names};
use crate::page::html::{Html, Table, html, p, strong};
use crate::sections::heading;
use crate::sections::sample_plots::SampleResponses;
use crate::{Report, WrittenResults};
use crate::{add_sections, head, listed, methods, page, provenance};
use pleach_planner::PlanRecord;
use pleach_results::analysis::CollectedResponses;
use pleach_results::record::RunRecord;
use pleach_results::survivors::PhaseSurvivors;
use pleach_study::PreparedStudy;

/// Executed phase.
#[derive(Clone, Copy)]
pub struct Phase<'a> {
    /// Folder of the phase within that of the study.
    pub folder: &'a str,
    /// Study of the phase alone: its method, its parameter sets and the parameters that vary in it.
    pub prepared: &'a PreparedStudy,
    /// Executed plan. For a growing sample, that of the last round.
    pub plan: &'a PlanRecord,
    /// Results in the phase's folder.
    pub written: &'a WrittenResults,
    /// Responses of all runs of the phase, failed runs included.
    pub collected: &'a CollectedResponses,
    /// Survivors. `None` for the last phase.
    pub screened: Option<&'a PhaseSurvivors>,
}

impl<'a> Phase<'a> {
    /// Returns the input of this phase's section of the report. `None` without an analysis.
    pub(crate) fn report(&self) -> Option<Report<'a>> {
        let (analysis, further) = self.written.analyses.split_first()?;
        Some(Report {
            study: &self.prepared.study,
            plan: self.plan,
            run: &self.written.run,
            analysis,
            further,
            runs: &self.collected.runs,
            failures: self.written.failures.as_ref(),
            best: &self.written.best,
            gallery: &self.written.gallery,
            sampled: Some(SampleResponses { design: &self.prepared.design, collected: self.collected }),
        })
    }
}

/// Returns the page.
pub fn html(run: &RunRecord, phases: &[Phase<'_>]) -> String {
    let mut body = Html::default();
    let reports: Vec<_> = phases.iter().filter_map(|phase| Some((phase, phase.report()?))).collect();
    if let Some((_, first)) = reports.first() {
        body.push(heading::title(first));
    }
    let mut sections = Sections::default();
    sections.add("Phases", html![screenings(phases), table(run)]);
    for (place, (phase, report)) in reports.iter().enumerate() {
        let title = format!("Phase {}: {}", place + 1, title(report.study.method.kind()));
        let numbers =
            p(html!["The numbers of this phase are in ", Html::element("code", &[], phase.folder), "."]);
        sections.part(&title, html![numbers, heading::section(report)]);
        // Only the last phase has pictures: all phases have the same tiles and tasks.
        add_sections(&mut sections, report, place + 1 == reports.len());
    }
    let (contents, sections) = sections.finish();
    body.push(html![contents, sections]);
    let mut foot = p(provenance(run));
    foot.push(p(html![
        "Other files: ",
        listed(&["plan.json", "run.json"]),
        ", and a folder for each phase."
    ]));
    reports.iter().for_each(|(_, report)| foot.push(methods(report.analysis)));
    body.push(Html::element("footer", &[], foot));
    page(head(&run.study), body)
}

/// Returns the purpose of a phase's method.
fn title(kind: &str) -> &'static str {
    match kind {
        "moat" => "screening",
        "vbd" | "fast" => "decomposition of the variance",
        _ => "correlations",
    }
}

fn screenings(phases: &[Phase<'_>]) -> Html {
    phases.iter().filter_map(|phase| phase.screened).map(survivors).collect()
}

fn survivors(screened: &PhaseSurvivors) -> Html {
    let PhaseSurvivors { phase, response, rule, survivors, fixed } = screened;
    let all = |of: &[String]| names(of.iter().map(String::as_str), of.len().max(1));
    let mut text = html![
        format!("Survivors of phase {phase}, by "),
        Html::element("code", &[], rule),
        format!(" of {response}: "),
        strong(all(survivors)),
        ". ",
    ];
    if fixed.is_empty() {
        text.push("No parameter is fixed afterwards.");
    } else {
        text.push(html!["Fixed at their defaults afterwards: ", all(fixed), "."]);
    }
    p(text)
}

fn table(run: &RunRecord) -> Html {
    let header = [
        "phase",
        "method",
        "parameters",
        "evaluations",
        "runs",
        "failed",
        "tasks executed",
        "tasks reused",
        "of earlier phases",
        "time",
    ];
    let caption = "Work of each phase. Reused: tasks that were not executed, for any reason; of earlier \
                   phases: tasks whose results an earlier phase computed in the same process.";
    let mut table = Table::new("numbers", caption, header.map(Html::from));
    for phase in &run.phases {
        let earlier = phase.tasks_reused.get("earlier").copied().unwrap_or(0);
        table.row([
            Html::from(phase.phase.to_string()),
            phase.method.into(),
            count(phase.parameters.len()).into(),
            count(phase.evaluations).into(),
            count(phase.runs).into(),
            count(phase.failed).into(),
            count(phase.tasks_executed as usize).into(),
            count(phase.tasks_reused.values().sum::<u64>() as usize).into(),
            count(earlier as usize).into(),
            duration(phase.wall_seconds).into(),
        ]);
    }
    table.finish()
}
