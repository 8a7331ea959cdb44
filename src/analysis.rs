//! From finished instances to responses, and from responses to indices (hop 9 of a study).
//!
//! Which runs have a response, which tiles say nothing, what an evaluation comes to over its tiles. The indices
//! themselves are `pleach-sensitivity`'s; nothing is written or shown here.

mod correlations;

pub(crate) use correlations::{Association, Associations};

use crate::exit::{Outcome, Stop};
use crate::output::tables::{self, RunFailure, RunResponse};
use crate::study::Prepared;
use crate::weave::Woven;
use pleach_actors::manager;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{self, MoatError, MoatIndices, RESAMPLES};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::Structure;
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_workflow::{Aggregate, Method};

/// The responses of all runs, by evaluation, then tile.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) runs: Vec<RunResponse>,
    tiles: usize,
}

/// What the responses say about the parameters.
#[derive(Debug)]
pub(crate) enum Analysis {
    /// The indices of the study's method.
    Indices(Indices),
    /// Correlations with each parameter.
    Correlations(Associations),
    /// The parameter sets have no structure, no trajectory has all its responses, or nothing computes indices of the
    /// method: why there are no indices.
    None {
        /// "moat", "vbd", "correlation" or "table".
        method: &'static str,
        /// The response.
        response: String,
        /// Why.
        note: String,
    },
}

impl Collected {
    pub(crate) fn new(prepared: &Prepared, woven: &Woven, outcome: &manager::Outcome) -> Self {
        let (study, workflow) = (&prepared.study, &prepared.study.workflow);
        let mut runs = Vec::new();
        for evaluation in 1..=prepared.design.evaluations.len() {
            for tile in 0..study.tiles.len() {
                let instance = woven.instance(evaluation, tile, workflow.response.stage);
                let table = outcome.results.get(&instance).and_then(|tables| tables.first());
                let values: Option<Vec<f64>> = table.and_then(|table| {
                    workflow.response.metrics.iter().map(|(name, _)| table.get(name)).collect()
                });
                let result = values.ok_or_else(|| failure(prepared, woven, outcome, instance));
                runs.push(RunResponse { evaluation, tile, result });
            }
        }
        Self { runs, tiles: study.tiles.len() }
    }

    /// Runs without a response.
    pub(crate) fn failed(&self) -> usize {
        self.runs.iter().filter(|run| run.result.is_err()).count()
    }

    /// Tiles on which no run has a response. They say nothing about parameters, so they are left out instead of
    /// taking every evaluation with them.
    fn dead_tiles(&self) -> Vec<usize> {
        let dead =
            |tile: &usize| self.runs.iter().filter(|run| run.tile == *tile).all(|run| run.result.is_err());
        (0..self.tiles).filter(dead).collect()
    }

    pub(crate) fn tiles_left_out(&self, prepared: &Prepared) -> Vec<String> {
        self.dead_tiles().into_iter().map(|tile| prepared.study.tiles[tile].name.clone()).collect()
    }

    /// One response an evaluation: over the tiles, or none where one of them failed.
    pub(crate) fn responses(&self, metric: usize, over_tiles: Aggregate) -> Vec<Option<f64>> {
        let dead = self.dead_tiles();
        let live = (self.tiles - dead.len()) as f64;
        let evaluations = self.runs.chunks(self.tiles.max(1));
        let response = |runs: &[RunResponse]| {
            let live_runs = runs.iter().filter(|run| !dead.contains(&run.tile));
            let values: Option<Vec<f64>> =
                live_runs.map(|run| run.result.as_ref().ok().map(|values| values[metric])).collect();
            let sum: f64 = values.filter(|values| !values.is_empty())?.iter().sum();
            Some(match over_tiles {
                Aggregate::Mean => sum / live,
                Aggregate::Sum => sum,
            })
        };
        evaluations.map(response).collect()
    }

    pub(crate) fn analyse(&self, prepared: &Prepared) -> Outcome<Analysis> {
        let study = &prepared.study;
        let (name, over_tiles) = &study.workflow.response.metrics[study.metric];
        let none = |method, note: String| Analysis::None { method, response: name.clone(), note };
        let trajectories = match &prepared.design.structure {
            Structure::Trajectories(trajectories) => trajectories,
            Structure::Saltelli(blocks) => {
                let values = self.responses(study.metric, *over_tiles);
                let responses = [Response { name, values: &values }];
                let bootstrap = Bootstrap { resamples: RESAMPLES as u32, seed: study.seed };
                return match vbd::indices(blocks, &responses, Estimator::default(), bootstrap) {
                    Ok(found) => found
                        .into_iter()
                        .next()
                        .map(|indices| Analysis::Indices(Indices::Vbd(indices)))
                        .ok_or_else(|| Stop::defect("a response without indices")),
                    Err(error @ AnalysisError::TooFew { .. }) => Ok(none("vbd", error.to_string())),
                    Err(error) => Err(Stop::defect(error)),
                };
            }
            _ if matches!(study.method, Method::Correlation { .. }) => {
                return self.correlations(prepared, name, *over_tiles);
            }
            _ => {
                return Ok(none(
                    "table",
                    "parameter sets from a table that holds no Morris trajectories".to_owned(),
                ));
            }
        };
        let responses = self.responses(study.metric, *over_tiles);
        match moat::indices(trajectories, name, &responses, study.seed) {
            Ok(indices) => Ok(Analysis::Indices(Indices::Moat(indices))),
            Err(error @ MoatError::NoTrajectoryLeft { .. }) => Ok(none("moat", error.to_string())),
            Err(error) => Err(Stop::defect(error)),
        }
    }

    fn correlations(&self, prepared: &Prepared, name: &str, over_tiles: Aggregate) -> Outcome<Analysis> {
        let (study, evaluations) = (&prepared.study, &prepared.design.evaluations);
        let columns = match Columns::of(&study.workflow.parameters, evaluations) {
            Ok(columns) => columns,
            Err(error) => return Err(Stop::defect(error)),
        };
        let values = self.responses(study.metric, over_tiles);
        let bootstrap = Bootstrap { resamples: RESAMPLES as u32, seed: study.seed };
        match Associations::of(&columns, Response { name, values: &values }, bootstrap) {
            Ok(found) => Ok(Analysis::Correlations(found)),
            Err(error @ (AnalysisError::TooFew { .. } | AnalysisError::OneValue { .. })) => {
                let (response, note) = (name.to_owned(), error.to_string());
                Ok(Analysis::None { method: "correlation", response, note })
            }
            Err(error) => Err(Stop::defect(error)),
        }
    }
}

fn failure(
    prepared: &Prepared,
    woven: &Woven,
    outcome: &manager::Outcome,
    instance: pleach_dispatch::InstanceId,
) -> RunFailure {
    let table = outcome.results.get(&instance).and_then(|tables| tables.first());
    let declared = prepared.study.workflow.response.metrics.iter().map(|(name, _)| name.as_str());
    let missing: Vec<&str> =
        declared.filter(|name| table.is_none_or(|table| table.get(name).is_none())).collect();
    match outcome.failures.get(&instance) {
        Some(failure) => RunFailure {
            stage: prepared.study.workflow.stages[woven.stage(failure.origin)].name.clone(),
            at: failure.cause.at.clone(),
            cause: failure.cause.cause.clone(),
        },
        None => RunFailure {
            stage: prepared.study.workflow.stages[woven.stage(instance)].name.clone(),
            at: "response".to_owned(),
            cause: format!(
                "its table has no {}, which the workflow declares as a metric",
                missing.join(", ")
            ),
        },
    }
}

impl Analysis {
    pub(crate) fn moat(&self) -> Option<&MoatIndices> {
        match self {
            Self::Indices(Indices::Moat(indices)) => Some(indices),
            _ => None,
        }
    }

    pub(crate) fn csv(&self) -> Outcome<Vec<u8>> {
        match self.moat() {
            Some(indices) => tables::moat(indices),
            None => match self {
                Self::Indices(Indices::Vbd(indices)) => tables::vbd(indices),
                Self::Correlations(found) => found.csv(),
                _ => Ok(b"parameter\n".to_vec()),
            },
        }
    }

    /// The document of `indices.json`.
    pub(crate) fn json(&self) -> Outcome<serde_json::Value> {
        Ok(match self {
            Self::Indices(indices) => serde_json::json!(indices),
            Self::Correlations(found) => found.json()?,
            Self::None { method, response, note } => {
                serde_json::json!({ "method": method, "response": response, "parameters": [], "note": note })
            }
        })
    }
}
