//! Resolves `--preview TASK`: the requested task outputs and the names of their image files.
//!
//! Task names are checked before the study runs. `gallery` writes the files.

use pleach_pathology::image_io;
use pleach_study::single_run::TaskOutput;
use pleach_workflow::Workflow;
use std::collections::BTreeSet;
use thiserror::Error;

/// A name of `--preview` is not allowed.
#[derive(Debug, Error)]
pub enum PreviewNameError {
    /// No task has the name.
    #[error("--preview {name}: not a task of workflow {workflow}; its tasks are {tasks}")]
    NoTask {
        /// The name.
        name: String,
        /// Name of the workflow.
        workflow: String,
        /// Names of its tasks, separated by commas.
        tasks: String,
    },
    /// The task writes no image.
    #[error(
        "--preview {name}: the task writes {writes}, not an image; tasks that write images are allowed: \
             {tasks}"
    )]
    NoImage {
        /// The name.
        name: String,
        /// Regions that the task writes, with their element types.
        writes: String,
        /// Names of the tasks that write images, separated by commas.
        tasks: String,
    },
}

/// Task outputs to write as images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Previews {
    pub(crate) outputs: Vec<TaskOutput>,
}

impl Previews {
    /// Finds the image outputs of the tasks called `names` in all stages.
    ///
    /// # Errors
    /// [`PreviewNameError`] if no task has the name, or the task writes no image.
    pub fn find(names: &[String], workflow: &Workflow) -> Result<Self, PreviewNameError> {
        let tasks: Vec<(usize, usize)> =
            workflow.stages.iter().enumerate().fold(Vec::new(), |mut all, (s, stage)| {
                all.extend((0..stage.tasks.len()).map(|task| (s, task)));
                all
            });
        let task = |(s, t): (usize, usize)| &workflow.stages[s].tasks[t];
        let is_image = |place: &TaskOutput| {
            image_io::is_image(task((place.stage, place.task)).writes[place.output].element)
        };
        let images = |(stage, t): (usize, usize)| {
            let outputs =
                (0..task((stage, t)).writes.len()).map(move |output| TaskOutput { stage, task: t, output });
            outputs.filter(is_image).collect::<Vec<_>>()
        };
        let listed = |places: &[(usize, usize)]| {
            let mut names: Vec<&str> = Vec::new();
            for &place in places {
                let name = task(place).name.as_str();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names.join(", ")
        };
        let mut outputs: Vec<TaskOutput> = Vec::new();
        for name in names {
            let named: Vec<_> = tasks.iter().copied().filter(|&place| task(place).name == *name).collect();
            let Some(&first) = named.first() else {
                return Err(PreviewNameError::NoTask {
                    name: name.clone(),
                    workflow: workflow.name.clone(),
                    tasks: listed(&tasks),
                });
            };
            let found: Vec<TaskOutput> = named.iter().flat_map(|&place| images(place)).collect();
            if found.is_empty() {
                let drawing: Vec<_> =
                    tasks.iter().copied().filter(|&place| !images(place).is_empty()).collect();
                let writes =
                    task(first).writes.iter().map(|region| format!("{} ({})", region.region, region.element));
                return Err(PreviewNameError::NoImage {
                    name: name.clone(),
                    writes: writes.collect::<Vec<_>>().join(", "),
                    tasks: listed(&drawing),
                });
            }
            for place in found {
                if !outputs.contains(&place) {
                    outputs.push(place);
                }
            }
        }
        Ok(Self { outputs })
    }

    /// Returns the file name of each output, for an evaluation on a tile.
    pub(crate) fn files(&self, evaluation: usize, tile: &str, workflow: &Workflow) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let names = self.outputs.iter().map(|place| {
            let stage = &workflow.stages[place.stage];
            let task = &stage.tasks[place.task];
            let parts = [tile, &stage.name, &task.name, &task.writes[place.output].region].map(plain);
            let name = format!("{evaluation}-{}", parts.join("-"));
            // Numbers names that differ only in replaced or removed characters.
            let numbered = (2..).map(|number| format!("{name}-{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
            format!("{}.png", free.unwrap_or(name))
        });
        names.collect()
    }
}

/// Replaces characters that some file systems reject, and truncates the name: 5 parts and an extension must
/// fit in 255 bytes.
fn plain(name: &str) -> String {
    const MOST: usize = 48;
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    name.chars().take(MOST).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_study::builtin;

    fn asked(names: &[&str]) -> Result<Previews, String> {
        let workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap().measuring(0);
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Previews::find(&names, &workflow).map_err(|error| error.to_string())
    }

    #[test]
    fn previews_list_each_image_once() {
        let place = |stage, task, output| TaskOutput { stage, task, output };
        let found = asked(&["t3", "normalize", "t3"]).unwrap();
        assert_eq!(found.outputs, [place(1, 2, 0), place(1, 2, 1), place(0, 0, 0)]);
        assert_eq!(asked(&[]).unwrap(), Previews::default());
    }

    #[test]
    fn unknown_preview_error_lists_the_tasks() {
        let tasks = "normalize, t1, t2, t3, t4, t5, t6, t7";
        assert_eq!(
            asked(&["t3", "T7"]).unwrap_err(),
            format!("--preview T7: not a task of workflow nuclei; its tasks are {tasks}, compare")
        );
        assert_eq!(
            asked(&["compare"]).unwrap_err(),
            format!(
                "--preview compare: the task writes metrics (table), not an image; tasks that write images \
                 are allowed: {tasks}"
            )
        );
    }

    #[test]
    fn preview_file_names_are_valid() {
        let mut workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap();
        workflow.stages[1].tasks[2].writes[0].region = "a/b".to_owned();
        workflow.stages[1].tasks[2].writes[1].region = "a:b".to_owned();
        let previews = Previews::find(&["t3".to_owned()], &workflow).unwrap();
        let names = previews.files(7, "../more/tissue 01", &workflow);
        assert_eq!(names[0], "7-.._more_tissue_01-segmentation-t3-a_b.png");
        assert_eq!(names[1], "7-.._more_tissue_01-segmentation-t3-a_b-2.png");
        let long = previews.files(7, &"é".repeat(500), &workflow);
        assert!(long.iter().all(|name| name.len() < 255));
    }
}
