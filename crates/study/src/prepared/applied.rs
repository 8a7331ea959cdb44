//! Study of one parameter set on other images, for an execution by workers.

use super::digests::{digest_of, digests};
use super::{PreparedStudy, design_of_rows, evaluations_of, inspect};
use crate::error::PrepareError;
use crate::single_run::{self, ReplayError};
use pleach_dispatch::cost_model::CostModel;
use pleach_workflow::{Domain, Method, Registry, Study, Value};
use std::cell::OnceCell;
use std::path::Path;
use thiserror::Error;

/// A study cannot be applied by workers.
#[derive(Debug, Error)]
pub enum AppliedStudyError {
    /// The study cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A stage reads regions of other tiles.
    #[error(transparent)]
    OtherTiles(ReplayError),
}

impl PreparedStudy {
    /// Prepares one evaluation of an [applied study](crate::applied). The values become the defaults, and no parameter varies. A
    /// workflow that compares with a reference compares the evaluation with itself, so each task runs once a tile. `file` is the
    /// study file, for messages.
    ///
    /// # Errors
    /// [`AppliedStudyError`] if no tile is readable, if an operation refuses a value, or if a stage reads other tiles.
    pub fn applied(
        file: &Path,
        study: &Study,
        values: &[Value],
        registry: &Registry,
    ) -> Result<Self, AppliedStudyError> {
        single_run::check_bounds(&study.workflow).map_err(AppliedStudyError::OtherTiles)?;
        let mut study = study.clone();
        for (parameter, value) in study.workflow.parameters.iter_mut().zip(values) {
            parameter.default = *value;
            parameter.domain = Domain::Fixed { value: *value };
        }
        (study.phases, study.phase, study.until) = (Vec::new(), None, None);
        study.method = Method::Table { file: file.to_owned() };
        let design = design_of_rows(&study, &study.method, vec![values.to_vec()]);
        let evaluations = evaluations_of(&study, &design, registry);
        let looked = inspect::look_at_tiles(file, &study, None)?;
        let digests = digests(&study, &design, &evaluations);
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let prepared = Self {
            study,
            registry: registry.clone(),
            design,
            evaluations,
            parameter_sets: file.to_owned(),
            tiles: looked.tiles,
            units: None,
            unreadable: looked.unreadable,
            costs: CostModel::default(),
            file_digests: OnceCell::new(),
            digests,
            digest,
        };
        prepared.check_runnable()?;
        Ok(prepared)
    }

    /// Sets the digests of the image files, which [`PreparedStudy::file_digests`] would compute. Has no effect after its first call.
    pub fn set_file_digests(&self, digests: Vec<Option<[u8; 32]>>) {
        let _ = self.file_digests.set(digests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{applied, builtin};
    use pleach_pathology::{image_io, tissue};
    use pleach_workflow::AppliedImages;

    const STUDY: &str = "[study]\nname = \"s\"\nworkflow = \"nuclei\"\n[input]\ntiles = [\"gone/*.png\"]\nreference = \"gone\"\n\
                         [response]\nmetric = \"dice\"\n[parameters.G1]\nrange = [60, 100]\n[parameters.G2]\nrange = [4, 40]\n\
                         [[phase]]\nkind = \"moat\"\ntrajectories = 2\nlevels = 4\nsurvivors = { most_influential = 1 }\n\
                         [[phase]]\nkind = \"vbd\"\nsamples = 4\n";

    #[test]
    fn chosen_values_are_the_only_evaluation() {
        let place = tempfile::tempdir().unwrap();
        let (file, tile) = (place.path().join("study.toml"), place.path().join("t.png"));
        std::fs::write(&file, STUDY).unwrap();
        image_io::write_bgr(&tile, &tissue::generate(3, 0, 64).unwrap().image).unwrap();
        let registry = builtin::registry();
        let of = |path: &Path| AppliedImages::Tiles(vec![path.to_owned()]);
        let study = applied::load(&file, &of(&tile), &registry).unwrap().study;
        assert!(!study.phases.is_empty());
        let mut values: Vec<Value> = study.workflow.parameters.iter().map(|p| p.default).collect();
        applied::set_values(&mut values, &["G1=61".to_owned()], &study.workflow, &registry).unwrap();
        let prepared = PreparedStudy::applied(&file, &study, &values, &registry).unwrap();
        // Evaluation 0 is the reference, and evaluation 1 has the same tasks.
        assert_eq!(*prepared.evaluations, [values.clone(), values.clone()]);
        assert!(prepared.reference_run() && prepared.study.phases.is_empty());
        assert!(prepared.study.workflow.parameters.iter().all(|parameter| !parameter.domain.varies()));
        let missing = applied::load(&file, &of(&place.path().join("none.png")), &registry);
        // The pattern of a missing file matches nothing.
        assert!(missing.is_err());
        std::fs::write(&tile, "no image").unwrap();
        let error = PreparedStudy::applied(&file, &study, &values, &registry).unwrap_err().to_string();
        assert!(error.contains("t.png"), "{error}");
    }
}
