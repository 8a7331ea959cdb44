//! Studies of several phases or rounds: prepares the study of each. `pleach-execution` decides when a phase ends and
//! which parameters survive.

use super::{PLACES, PreparedStudy, design, digest_of, digests, evaluations_of, room};
use crate::{Defect, PrepareError};
use pleach_dispatch::cost_model::CostModel;
use pleach_workflow::Study;

impl PreparedStudy {
    /// Returns one phase (from 0) of the study. Only the survivors vary, if they are known.
    ///
    /// # Errors
    /// [`PrepareError`] if its parameter sets cannot be drawn.
    pub fn of_phase(&self, number: usize, survivors: Option<&[String]>) -> Result<Self, PrepareError> {
        let study = self.study.for_phase(number, survivors);
        let phase = self.redrawn(study.ok_or_else(|| Defect::new("a phase that is none"))?)?;
        let (first, until) = (phase.design.evaluations.len(), phase.study.until);
        if let Some(until) = until.filter(|until| until.max_evaluations < first) {
            return Err(PrepareError::MaxEvaluations {
                file: self.parameter_sets.clone(),
                phase: number + 1,
                given: until.max_evaluations,
                first,
            });
        }
        Ok(phase)
    }

    /// Returns the study with a sample `times` as large, which begins with the present sample. It keeps the
    /// digests and the learned costs, because it is the same study.
    ///
    /// # Errors
    /// [`PrepareError`] if its parameter sets cannot be drawn.
    pub fn grown(&self, times: usize) -> Result<Self, PrepareError> {
        let study = Study { method: self.study.method.grown(times), ..self.study.clone() };
        let grown = self.redrawn(study)?;
        debug_assert!(grown.design.evaluations.starts_with(&self.design.evaluations));
        let (digests, digest) = (self.digests.clone(), self.digest.clone());
        Ok(Self { digests, digest, costs: self.costs.clone(), ..grown })
    }

    /// Prepares another study of the same files.
    fn redrawn(&self, study: Study) -> Result<Self, PrepareError> {
        room::check(&self.parameter_sets, &study, None)?;
        let design = design(&self.parameter_sets, &study, None)?;
        let evaluations = evaluations_of(&study, &design, &self.registry);
        let mut digests = digests(&study, &design, &evaluations);
        // Keep the digest of the file paths as submitted: the files may have other paths where they are read.
        let is_place = |(part, _): &&(&'static str, String)| *part == PLACES;
        if let Some((own, known)) =
            digests.iter_mut().find(|(part, _)| *part == PLACES).zip(self.digests.iter().find(is_place))
        {
            own.1.clone_from(&known.1);
        }
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let redrawn = Self {
            study,
            registry: self.registry.clone(),
            design,
            evaluations,
            parameter_sets: self.parameter_sets.clone(),
            tiles: self.tiles.clone(),
            units: self.units.clone(),
            unreadable: self.unreadable.clone(),
            costs: CostModel::default(),
            file_digests: self.file_digests.clone(),
            digests,
            digest,
        };
        redrawn.check_runnable()?;
        Ok(redrawn)
    }
}
