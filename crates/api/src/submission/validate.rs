//! Validation of submissions, which may come from a client of another build or from any other program.
//!
//! The client has checked the workflow where it read the study file. This module checks that every reference of the
//! submission has a target, so that planning cannot fail on a dangling one.

use super::{Companion, InvalidSubmission, MAX_OVERHEAD_SECONDS, Submission, VERSION};
use pleach_workflow::{
    Annotations, InputOrigin, Method, Phase, ReferenceSource, RegionDecl, Registry, Stage, StainFit,
    StoppingRule, StudyTile, TaskInput,
};
use std::collections::HashSet;
use std::path::Path;

impl Submission {
    /// Returns whether annotations and weights fit the references.
    fn has_sound_annotations(&self, masks: usize) -> bool {
        let study = &self.study;
        // All these numbers only appear in a report, except the tile, which is an index.
        let sound = |found: &Annotations| {
            found.tile < masks && !found.exceed(study.annotations_outside) && found.outside <= found.objects
        };
        // The pixels that count are those of regions in files of annotations.
        let counts = study.workflow.inputs.iter().any(RegionDecl::is_counted);
        study.tile_weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
            && (masks > 0 || !counts)
            && (0.0..=1.0).contains(&study.annotations_outside)
            && study.annotations.iter().all(sound)
            && study.annotation_rules.mpp.is_none_or(|mpp| mpp.get() > 0.0)
    }

    pub(super) fn check(&self, registry: &Registry) -> Result<(), InvalidSubmission> {
        // First: fields of another version may have another meaning.
        if self.version != VERSION {
            return Err(InvalidSubmission::Form { found: self.version });
        }
        if self.build != env!("CARGO_PKG_VERSION") {
            return Err(InvalidSubmission::Build { found: self.build.clone() });
        }
        if let Some(found) = self.budget.filter(|budget| !(budget.is_finite() && *budget >= 0.0)) {
            return Err(InvalidSubmission::Budget { found });
        }
        let is_valid = |seconds: &f64| (0.0..=MAX_OVERHEAD_SECONDS).contains(seconds);
        if let Some(found) = self.plan.overhead_seconds.filter(|seconds| !is_valid(seconds)) {
            return Err(InvalidSubmission::Overhead { found });
        }
        let (study, workflow) = (&self.study, &self.study.workflow);
        if !self.has_sound_parts() {
            return Err(InvalidSubmission::Parts);
        }
        let count = |what, found, expected| {
            if found == expected { Ok(()) } else { Err(InvalidSubmission::Count { what, found, expected }) }
        };
        let masks = match &study.reference {
            ReferenceSource::Masks(masks) => masks.len(),
            ReferenceSource::Defaults => 0,
        };
        count("tiles", study.tiles.len(), self.pixels.len())?;
        count("files", self.inputs.len(), study.tiles.len() + masks)?;
        if masks > 0 {
            count("references", masks, study.tiles.len())?;
        }
        count("tiles", study.tiles.len().min(1), 1)?;
        let fits = study.normalization.iter().flat_map(|of| &of.fits).map(StainFit::is_sound);
        let fits: Vec<bool> = fits.collect();
        let sound = |(tile, pixels): (&StudyTile, &u64)| {
            tile.slide.as_ref().is_none_or(|part| part.is_sound() && part.pixels() == *pixels)
                && tile
                    .block
                    .as_ref()
                    .is_none_or(|block| tile.slide.is_none() && block.is_sound() && block.pixels() == *pixels)
                && tile.fit.is_none_or(|fit| fits.get(fit) == Some(&true))
        };
        if !study.tiles.iter().zip(&self.pixels).all(sound) {
            return Err(InvalidSubmission::Slide);
        }
        let (weights, is_weighed) = (&study.tile_weights, !study.weights.are_equal());
        count("weights", weights.len(), if is_weighed { study.tiles.len() } else { 0 })?;
        if !self.has_sound_annotations(masks) {
            return Err(InvalidSubmission::Annotations);
        }
        self.check_companions()?;
        self.check_code()?;
        for row in &self.evaluations {
            count("values of a parameter set", row.len(), workflow.parameters.len())?;
        }
        let stages = &workflow.stages;
        for (number, stage) in stages.iter().enumerate() {
            self.check_stage(number, stage, registry)?;
        }
        let output =
            |stage: usize, output: usize| stages.get(stage).is_some_and(|s| output < s.outputs.len());
        let response = &workflow.response;
        let reference = workflow.reference.as_ref();
        let is_there = output(response.stage, response.output)
            && reference.is_none_or(|reference| output(reference.stage, reference.output))
            && study.metrics().all(|metric| metric < response.metrics.len());
        if is_there { Ok(()) } else { Err(InvalidSubmission::Response) }
    }

    fn has_sound_parts(&self) -> bool {
        let study = &self.study;
        let is_analyzed = |metric: usize| study.metrics().any(|known| known == metric);
        let sound_until = |method: &Method, until: Option<StoppingRule>| {
            until.is_none_or(|until| {
                is_analyzed(until.metric)
                    && !self.is_table
                    && method.extensible().is_ok()
                    && until.max_evaluations > 0
            })
        };
        let sound_phase = |(number, phase): (usize, &Phase)| {
            let is_last = number + 1 == study.phases.len();
            let leads_on = match (&phase.method, phase.survivors) {
                (Method::Table { .. }, _) => false,
                (Method::Moat { .. }, Some(survivors)) => !is_last && is_analyzed(survivors.metric),
                (_, survivors) => is_last && survivors.is_none(),
            };
            leads_on && sound_until(&phase.method, phase.until)
        };
        if let Some(first) = study.phases.first() {
            let is_first = (&study.method, study.until) == (&first.method, first.until);
            if study.phases.len() < 2 || self.is_table || !is_first {
                return false;
            }
        }
        let first_is_some = study.until.is_none() || !self.evaluations.is_empty();
        study.phase.is_none()
            && first_is_some
            && sound_until(&study.method, study.until)
            && study.phases.iter().enumerate().all(sound_phase)
    }

    fn check_stage(
        &self,
        number: usize,
        stage: &Stage,
        registry: &Registry,
    ) -> Result<(), InvalidSubmission> {
        let workflow = &self.study.workflow;
        let dangling = |what| Err(InvalidSubmission::Dangling { what, stage: stage.name.clone() });
        let earlier = |origin: &InputOrigin| match *origin {
            InputOrigin::Input(input) => input < workflow.inputs.len(),
            InputOrigin::Stage { stage, output } => {
                // An earlier stage exists, and only reading from earlier ones excludes cycles.
                stage < number && output < workflow.stages[stage].outputs.len()
            }
            InputOrigin::Reference => true,
        };
        if stage.tasks.is_empty() || !stage.inputs.iter().all(|input| earlier(&input.origin)) {
            return dangling("an input");
        }
        if stage.parameters.iter().any(|parameter| *parameter >= workflow.parameters.len()) {
            return dangling("a parameter");
        }
        for (level, task) in stage.tasks.iter().enumerate() {
            let Some(operation) = registry.get(&task.operation, task.version) else {
                return Err(InvalidSubmission::Operation {
                    name: task.operation.clone(),
                    version: task.version,
                });
            };
            let read = |read: &TaskInput| match *read {
                TaskInput::StageInput(input) => input < stage.inputs.len(),
                // Only earlier tasks, so that a stage has no cycle.
                TaskInput::Task { task, output } => task < level && output < stage.tasks[task].writes.len(),
            };
            let (inputs, reads) = (operation.inputs().len(), task.reads.len());
            let sound_guard = match &task.guard {
                None => reads == inputs,
                Some(guard) => reads >= inputs && guard.is_sound(inputs, reads, task.writes.len()),
            };
            let is_sound = task.reads.iter().all(read)
                && sound_guard
                && task.writes.len() == operation.outputs().len()
                && task.arguments.len() == operation.arguments().len()
                && task.arguments.iter().all(|argument| *argument < stage.parameters.len());
            if !is_sound || !stage.fits_guard(task) {
                return dangling("a task");
            }
        }
        let output = |output: &pleach_workflow::StageOutput| {
            stage.tasks.get(output.task).is_some_and(|task| output.output < task.writes.len())
        };
        if stage.outputs.iter().all(output) { Ok(()) } else { dangling("an output") }
    }

    /// Checks that every companion belongs to an input file and has a path beside it.
    fn check_companions(&self) -> Result<(), InvalidSubmission> {
        let inputs: HashSet<&str> = self.inputs.iter().map(|input| &*input.path).collect();
        for (path, companions) in &self.companions {
            if !inputs.contains(&**path) {
                return Err(InvalidSubmission::Slide);
            }
            check_names(path, companions)?;
        }
        Ok(())
    }
}

/// Checks that every companion has a path in the folder of its slide or in the folder of the slide's name there, and
/// that no two paths are equal. The manager and workers create links of these names.
fn check_names(path: &str, companions: &[Companion]) -> Result<(), InvalidSubmission> {
    let named = Path::new(path);
    let stem = named.file_stem().and_then(|stem| stem.to_str());
    let mut known: HashSet<&str> = named.file_name().and_then(|name| name.to_str()).into_iter().collect();
    for Companion { name, .. } in companions {
        let (folder, file) =
            name.rsplit_once('/').map_or((None, &**name), |(folder, file)| (Some(folder), file));
        let is_plain = !matches!(file, "" | "." | "..") && !file.contains(['\\', '\0']);
        if !is_plain || folder.is_some_and(|folder| Some(folder) != stem) || !known.insert(name) {
            return Err(InvalidSubmission::Companion { path: path.to_owned(), found: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submission::fixture::submission;
    use pleach_study::builtin;
    use pleach_workflow::{SurvivorRule, Survivors};
    use std::path::PathBuf;

    const UNTIL: StoppingRule = StoppingRule { ci_width: 0.1, max_evaluations: 100, metric: 0 };

    /// Change that makes a submission differ from every study file.
    type Edit = fn(&mut Submission);

    fn screening() -> Method {
        Method::Moat { trajectories: 1, levels: 2, base: None, candidates: None }
    }

    /// Returns a study with a screening and a decomposition that may both grow.
    fn in_phases() -> Submission {
        let mut made = submission("phases", Vec::new());
        let rule = SurvivorRule::MostInfluential(2);
        let second = Method::Vbd { samples: 2, second_order: false, base: Default::default() };
        made.study.phases = vec![
            Phase { method: screening(), until: Some(UNTIL), survivors: Some(Survivors { rule, metric: 0 }) },
            Phase { method: second, until: Some(UNTIL), survivors: None },
        ];
        made.study.until = Some(UNTIL);
        made.evaluations = vec![Vec::new()];
        made
    }

    #[test]
    fn rounds_that_no_study_file_defines_are_refused() {
        assert!(in_phases().has_sound_parts());
        let file = || Method::Table { file: PathBuf::from("secret.csv") };
        let elsewhere = StoppingRule { metric: 9, ..UNTIL };
        let wrong: [(&str, Edit); 9] = [
            ("one phase", |made| made.study.phases.truncate(1)),
            ("no rule", |made| made.study.phases[0].survivors = None),
            ("a rule at the end", |made| made.study.phases[1].survivors = made.study.phases[0].survivors),
            ("no screening", |made| made.study.phases[0].method = made.study.phases[1].method.clone()),
            ("another first one", |made| made.study.until = None),
            ("a phase of a phase", |made| made.study.phase = Some(1)),
            ("a table", |made| made.is_table = true),
            ("nothing to begin with", |made| made.evaluations.clear()),
            ("no evaluations", |made| {
                made.study.phases[1].until = Some(StoppingRule { max_evaluations: 0, ..UNTIL });
            }),
        ];
        for (what, edit) in wrong {
            let mut made = in_phases();
            edit(&mut made);
            assert!(!made.has_sound_parts(), "{what}");
        }
        let mut made = in_phases();
        made.study.phases[1].until = Some(elsewhere);
        assert!(!made.has_sound_parts(), "a response that is not analyzed");
        // The manager would read a file of its own that the client has named.
        let mut made = in_phases();
        made.study.phases[1].method = file();
        assert!(!made.has_sound_parts(), "a file");
        let mut made = submission("grown", Vec::new());
        (made.study.until, made.study.method) = (Some(UNTIL), file());
        assert!(!made.has_sound_parts(), "a file that grows");
    }

    #[test]
    fn guard_of_missing_reads_is_refused() {
        let guarded = |reads: &[TaskInput], value: usize, passes: &[Option<usize>]| {
            let mut made = submission("guarded", Vec::new());
            let mut stage = made.study.workflow.stages[0].clone();
            let mut number = stage.inputs[0].clone();
            number.region.element = serde_json::from_str("\"scalar\"").unwrap();
            stage.inputs.push(number);
            let task = &mut stage.tasks[0];
            let operands = task.reads.len();
            task.reads.extend(reads);
            let limit = pleach_workflow::Real::try_from(1.0).unwrap();
            let comparison = pleach_workflow::Comparison::Below(limit);
            let (value, expected, passes) = (operands + value, true, passes.to_vec());
            let condition = pleach_workflow::Condition { value, comparison, expected, passes };
            task.guard = Some(pleach_workflow::Guard { operands, conditions: vec![condition] });
            made.study.workflow.stages[0] = stage.clone();
            made.check_stage(0, &stage, &builtin::registry()).is_ok()
        };
        let (tile, number) = (TaskInput::StageInput(0), TaskInput::StageInput(1));
        assert!(guarded(&[number], 0, &[None]));
        assert!(guarded(&[number, tile], 0, &[Some(2)]));
        assert!(!guarded(&[number], 1, &[None]), "a value beyond the reads");
        assert!(!guarded(&[number], 0, &[]), "an output without an entry");
        assert!(!guarded(&[number], 0, &[Some(99)]), "a region beyond the reads");
        assert!(!guarded(&[tile], 0, &[None]), "a value that is no number");
        assert!(!guarded(&[number], 0, &[Some(1)]), "a region of another type");
    }

    #[test]
    fn companion_outside_the_folder_of_its_slide_is_refused() {
        let check = |names: &[&str]| {
            let companion = |name: &&str| Companion {
                name: (*name).to_owned(),
                digest: blake3::hash(name.as_bytes()).into(),
                bytes: 1,
            };
            check_names("/slides/a.mrxs", &names.iter().map(companion).collect::<Vec<_>>())
        };
        assert!(check(&["a/Index.dat", "a/Slidedat.ini", "map.opt"]).is_ok());
        for name in ["", "..", "/etc/passwd", "../b", "a/..", "a/b/c", "b/c", "a\\..", "a.mrxs", "a/", "/a/x"]
        {
            let error = check(&["a/Index.dat", name]).unwrap_err();
            assert!(matches!(&error, InvalidSubmission::Companion { found, .. } if found == name), "{name}");
        }
        assert!(check(&["a/1", "a/1"]).is_err());
    }
}
