//! Whether a submission is what a client of this build makes of a study: a client may be another one.
//!
//! The workflow was checked where it was read. Here it is only looked at whether what it refers to is there, so that
//! nothing that follows can stumble.

use super::{Companion, Submission, VERSION};
use crate::application;
use pleach_workflow::{Origin, Read, Reference, Stage, Tile};
use std::collections::HashSet;
use std::path::Path;
use thiserror::Error;

/// What is wrong with a submission.
#[derive(Debug, Error)]
pub(crate) enum Unsound {
    #[error("submitted by pleach {found}; pleach {here} is needed", here = env!("CARGO_PKG_VERSION"))]
    Build { found: String },
    #[error("form {found} of submissions; {VERSION} is understood")]
    Form { found: u32 },
    #[error("{found} {what}; {wanted} are needed")]
    Count { what: &'static str, found: usize, wanted: usize },
    #[error("{what} of stage {stage} refers to something that is not there")]
    Dangling { what: &'static str, stage: String },
    #[error("operation {name} {version} is not known here")]
    Operation { name: String, version: u32 },
    #[error("a tile of a slide is none that a slide can have")]
    Slide,
    #[error("{path}: a slide in several files has one at {found:?}, which is no name beside it")]
    Companion { path: String, found: String },
    #[error("budget {found}; 0 or more is allowed")]
    Budget { found: f64 },
    #[error("its parameter sets depend on results, which a manager does not run")]
    Parts,
    #[error("the response, or the reference, is of a stage that is not there")]
    Response,
}

impl Submission {
    pub(super) fn check(&self) -> Result<(), Unsound> {
        if self.version != VERSION {
            return Err(Unsound::Form { found: self.version });
        }
        if self.build != env!("CARGO_PKG_VERSION") {
            return Err(Unsound::Build { found: self.build.clone() });
        }
        if let Some(found) = self.budget.filter(|budget| !(budget.is_finite() && *budget >= 0.0)) {
            return Err(Unsound::Budget { found });
        }
        let (study, workflow) = (&self.study, &self.study.workflow);
        if !study.phases.is_empty() || study.until.is_some() {
            return Err(Unsound::Parts);
        }
        let count = |what, found, wanted| {
            if found == wanted { Ok(()) } else { Err(Unsound::Count { what, found, wanted }) }
        };
        let masks = match &study.reference {
            Reference::Masks(masks) => masks.len(),
            Reference::Defaults => 0,
        };
        count("tiles", study.tiles.len(), self.pixels.len())?;
        count("files", self.inputs.len(), study.tiles.len() + masks)?;
        if masks > 0 {
            count("references", masks, study.tiles.len())?;
        }
        count("tiles", study.tiles.len().min(1), 1)?;
        let sound = |(tile, pixels): (&Tile, &u64)| {
            tile.slide.as_ref().is_none_or(|part| part.is_sound() && part.pixels() == *pixels)
        };
        if !study.tiles.iter().zip(&self.pixels).all(sound) || (masks > 0 && study.slides.is_some()) {
            return Err(Unsound::Slide);
        }
        self.check_companions()?;
        for row in &self.evaluations {
            count("values of a parameter set", row.len(), workflow.parameters.len())?;
        }
        let stages = &workflow.stages;
        for (number, stage) in stages.iter().enumerate() {
            self.check_stage(number, stage)?;
        }
        let output =
            |stage: usize, output: usize| stages.get(stage).is_some_and(|s| output < s.outputs.len());
        let response = &workflow.response;
        let reference = workflow.reference.as_ref();
        let is_there = output(response.stage, response.output)
            && reference.is_none_or(|reference| output(reference.stage, reference.output))
            && study.metrics().all(|metric| metric < response.metrics.len());
        if is_there { Ok(()) } else { Err(Unsound::Response) }
    }

    fn check_stage(&self, number: usize, stage: &Stage) -> Result<(), Unsound> {
        let workflow = &self.study.workflow;
        let dangling = |what| Err(Unsound::Dangling { what, stage: stage.name.clone() });
        let registry = application::registry();
        let earlier = |origin: &Origin| match *origin {
            Origin::Input(input) => input < workflow.inputs.len(),
            Origin::Stage { stage, output } => {
                stage < number && output < workflow.stages[stage].outputs.len()
            }
            Origin::Reference => true,
        };
        if stage.tasks.is_empty() || !stage.inputs.iter().all(|input| earlier(&input.origin)) {
            return dangling("an input");
        }
        if stage.parameters.iter().any(|parameter| *parameter >= workflow.parameters.len()) {
            return dangling("a parameter");
        }
        for (level, task) in stage.tasks.iter().enumerate() {
            let Some(operation) = registry.get(&task.operation, task.version) else {
                return Err(Unsound::Operation { name: task.operation.clone(), version: task.version });
            };
            let read = |read: &Read| match *read {
                Read::StageInput(input) => input < stage.inputs.len(),
                Read::Task { task, output } => task < level && output < stage.tasks[task].writes.len(),
            };
            let is_sound = task.reads.iter().all(read)
                && task.reads.len() == operation.inputs().len()
                && task.writes.len() == operation.outputs().len()
                && task.arguments.len() == operation.arguments().len()
                && task.arguments.iter().all(|argument| *argument < stage.parameters.len());
            if !is_sound {
                return dangling("a task");
            }
        }
        let output = |output: &pleach_workflow::StageOutput| {
            stage.tasks.get(output.task).is_some_and(|task| output.output < task.writes.len())
        };
        if stage.outputs.iter().all(output) { Ok(()) } else { dangling("an output") }
    }

    /// Whether all companions are of files that the study reads, and lie beside them.
    fn check_companions(&self) -> Result<(), Unsound> {
        let inputs: HashSet<&str> = self.inputs.iter().map(|input| &*input.path).collect();
        for (path, companions) in &self.companions {
            if !inputs.contains(&**path) {
                return Err(Unsound::Slide);
            }
            check_names(path, companions)?;
        }
        Ok(())
    }
}

/// Whether all companions lie in the folder of their slide, or in one of its own there, each where no other does: links of these
/// names are made.
fn check_names(path: &str, companions: &[Companion]) -> Result<(), Unsound> {
    let named = Path::new(path);
    let stem = named.file_stem().and_then(|stem| stem.to_str());
    let mut known: HashSet<&str> = named.file_name().and_then(|name| name.to_str()).into_iter().collect();
    for Companion { name, .. } in companions {
        let (folder, file) =
            name.rsplit_once('/').map_or((None, &**name), |(folder, file)| (Some(folder), file));
        let is_plain = !matches!(file, "" | "." | "..") && !file.contains(['\\', '\0']);
        if !is_plain || folder.is_some_and(|folder| Some(folder) != stem) || !known.insert(name) {
            return Err(Unsound::Companion { path: path.to_owned(), found: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_lie_beside_their_slide() {
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
            assert!(matches!(&error, Unsound::Companion { found, .. } if found == name), "{name}");
        }
        assert!(check(&["a/1", "a/1"]).is_err());
    }
}
