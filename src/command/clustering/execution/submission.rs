//! Executes one clustering as a study of one evaluation on a tile that no stage reads.

use crate::command::client::progress_bars::TransferBar;
use crate::command::clustering::executed::ExecutionRecord;
use crate::exit::{CommandError, CommandResult};
use pleach_api::submission::{PlanChoice, Submission, SubmissionOptions};
use pleach_client::submit::submit;
use pleach_client::{Client, follow, plain};
use pleach_dispatch::plan::{GrantOrder, ReuseScope};
use pleach_emulation::EmulatedWorkflow;
use pleach_planner::StrategyName;
use pleach_study::{PreparedStudy, builtin};
use pleach_workflow::{Registry, Study, Value};
use std::fs;
use tempfile::TempDir;

/// Study file. Its workflow is replaced.
const STUDY: &str = "[study]\nname = \"emulated-tasks\"\nworkflow = \"noop\"\n[input]\ntiles = [\"tile.png\"]\n[method]\n\
                     kind = \"moat\"\ntrajectories = 1\nlevels = 2\n[response]\nmetric = \"n\"\n[parameters.n]\nrange = [0, 1]\n";

/// A tile of one pixel: a study has one or more.
const TILE: &[u8] = include_bytes!("tile.png");

/// Submits studies of emulated tasks to a manager.
pub(super) struct Submitter<'a> {
    client: &'a Client,
    registry: &'a Registry,
    study: Study,
    /// Has the study file and its tile.
    folder: TempDir,
}

impl<'a> Submitter<'a> {
    pub(super) fn new(client: &'a Client, registry: &'a Registry) -> CommandResult<Self> {
        let folder = super::local_cluster::scratch()?;
        let failed = |error: std::io::Error| {
            CommandError::writing(format_args!("{}: failed to write", folder.path().display()), &error)
        };
        let file = folder.path().join("study.toml");
        fs::write(&file, STUDY).map_err(failed)?;
        fs::write(folder.path().join("tile.png"), TILE).map_err(failed)?;
        let builtin = |name: &str| builtin::workflow(name, registry);
        let study =
            Study::load(&file, registry, builtin, &builtin::BUILT_IN).map_err(CommandError::defect)?;
        Ok(Self { client, registry, study, folder })
    }

    /// Executes a workflow of emulated tasks to its end. The manager then forgets the study.
    pub(super) fn execute(&self, emulated: EmulatedWorkflow) -> CommandResult<ExecutionRecord> {
        let EmulatedWorkflow { workflow, mean_region_bytes, .. } = emulated;
        let values: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
        let study = Study { workflow, ..self.study.clone() };
        let file = self.folder.path().join("study.toml");
        let mut prepared = PreparedStudy::applied(&file, &study, &values, self.registry)?;
        // Memory of regions is predicted from the pixels of a tile.
        prepared.tiles.iter_mut().for_each(|tile| tile.pixels = mean_region_bytes);
        let plan = PlanChoice {
            strategy: StrategyName::Stage,
            reuse: ReuseScope::Tree,
            max_bucket_size: None,
            max_buckets: None,
            overhead_seconds: None,
            order: GrantOrder::Release,
        };
        let (preview, code) = (Vec::new(), Vec::new());
        let options = SubmissionOptions { plan, deadline: None, budget: None, preview, code };
        let submission = Submission::new(&prepared, true, options)?;
        let id = submit(self.client, &submission, || TransferBar::new("sending files", true))?;
        let study_id = plain(&id);
        let continues = format!("study {study_id} continues; pleach cancel {study_id} ends it");
        self.client.waiting().set_message(continues);
        let ended = follow::to_its_end(self.client, &id, |_| {})?;
        follow::verdict(&ended)?;
        let record = ExecutionRecord::read(&self.client.result_bytes(&id, "run.json")?)?;
        self.client.forget(&id)?;
        self.client.waiting().set_message("no execution is under way".to_owned());
        Ok(record)
    }
}
