//! Computes responses from finished stage instances, and indices from responses (hop 9 of a study).
//!
//! Determines which runs have a response, excludes tiles without any, and aggregates each evaluation over its
//! tiles. `pleach-sensitivity` computes the indices. This module writes no files and prints nothing.

pub mod best;
mod both_empty;
mod correlations;
pub mod extremes;
mod failures;
mod index_table;
mod points;
mod regressions;
mod run;
pub(crate) mod tables;

pub use both_empty::BothEmptyRuns;
pub use correlations::{CorrelationTable, ParameterCorrelation};
pub use failures::{Failures, ParameterFailures, Unit};
pub use index_table::IndexTable;
pub use points::{GivenDataAnalysis, of_points};
pub use regressions::Regressions;
pub use run::{RunFailure, RunResponse};

use pleach_dispatch::study::StudyOutcome;
use pleach_planner::PlannedStudy;
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::error::AnalysisError;
use pleach_sensitivity::fast;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{self, MoatError, MoatIndices, RESAMPLES};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::Structure;
use pleach_sensitivity::vbd::{self, Estimator};
use pleach_study::{Defect, PreparedStudy, units};
use pleach_workflow::{Aggregate, BothEmpty, GivenDataMethod, Method};

/// Responses of all runs, sorted by evaluation, then by tile.
#[derive(Debug)]
pub struct CollectedResponses {
    /// Responses of evaluations 1, 2, … on all tiles, failed runs included.
    pub runs: Vec<RunResponse>,
    /// Responses of evaluation 0, the defaults. Empty if the defaults are not run.
    pub defaults: Vec<RunResponse>,
    tiles: usize,
    /// Weights of tiles in means. Empty if all are equal.
    weights: Vec<f64>,
    /// Tiles whose responses are those of an earlier tile of their specimen. They count once.
    repeated: Vec<bool>,
    /// Excludes runs whose mask and reference are both empty from means over tiles.
    leaves_out_both_empty: bool,
}

/// Analysis of one response.
#[derive(Debug)]
pub enum Analysis {
    /// Indices of the study's method.
    Indices(Indices),
    /// Correlations of the response with each parameter.
    Correlations(CorrelationTable),
    /// Standardized regression.
    Regression(Regressions),
    /// No indices: the parameter sets have no structure, the complete evaluations are too few, or the sample
    /// does not suit the method.
    None {
        /// Name of the method in study files.
        method: &'static str,
        /// Name of the response.
        response: String,
        /// Reason.
        note: String,
    },
}

impl CollectedResponses {
    /// Collects the responses of an executed study. A run without a finite value of each metric counts as failed.
    pub fn new(prepared: &PreparedStudy, planned: &PlannedStudy, outcome: &StudyOutcome) -> Self {
        let (study, workflow) = (&prepared.study, &prepared.study.workflow);
        let run = |evaluation: usize, tile: usize| {
            let instance = planned.instance(evaluation, tile, workflow.response.stage);
            let tables = outcome.results.get(instance);
            let table = tables.as_ref().and_then(|tables| tables.first());
            let values: Option<Vec<f64>> = table.and_then(|table| {
                let value = |name: &str| table.get(name).filter(|value| value.is_finite());
                workflow.response.metrics.iter().map(|(name, _)| value(name)).collect()
            });
            let both_empty = table.map(|table| both_empty::of_table(table, workflow)).unwrap_or_default();
            let result = values.ok_or_else(|| failure(prepared, planned, outcome, instance));
            RunResponse { evaluation, tile, result, both_empty }
        };
        let tiles = study.tiles.len();
        let of = |evaluation: usize| (0..tiles).map(move |tile| run(evaluation, tile));
        let defaults = if prepared.defaults_run() { of(0).collect() } else { Vec::new() };
        let runs = (1..=prepared.design.evaluations.len()).flat_map(of).collect();
        let leaves_out_both_empty = study.both_empty == BothEmpty::LeaveOut;
        let (weights, repeated) = (study.tile_weights.clone(), units::repeated_responses(study));
        Self { runs, defaults, tiles, weights, repeated, leaves_out_both_empty }
    }

    /// Returns the number of runs without a response.
    pub fn failed(&self) -> usize {
        self.runs.iter().filter(|run| run.result.is_err()).count()
    }

    /// Returns the tiles without a response in any run. They carry no information about parameters. Excluding
    /// them keeps evaluations complete.
    fn dead_tiles(&self) -> Vec<usize> {
        let dead =
            |tile: &usize| self.runs.iter().filter(|run| run.tile == *tile).all(|run| run.result.is_err());
        (0..self.tiles).filter(dead).collect()
    }

    /// Returns the names of the tiles without a response in any run. Responses and indices exclude them.
    pub fn excluded_tiles(&self, prepared: &PreparedStudy) -> Vec<String> {
        self.dead_tiles().into_iter().map(|tile| prepared.study.tiles[tile].name.clone()).collect()
    }

    /// Returns one response per evaluation, aggregated over tiles. `None` if any of its runs failed on a tile
    /// that counts.
    pub fn responses(&self, metric: usize, over_tiles: Aggregate) -> Vec<Option<f64>> {
        let dead = self.dead_tiles();
        // `chunks` panics at 0. Without tiles there are no runs.
        let evaluations = self.runs.chunks(self.tiles.max(1));
        evaluations.map(|runs| self.over_tiles(runs, &dead, metric, over_tiles)).collect()
    }

    /// Returns the response at the defaults, aggregated over the same tiles. `None` if the defaults are not
    /// run or failed on one of them.
    pub fn default(&self, metric: usize, over_tiles: Aggregate) -> Option<f64> {
        self.over_tiles(&self.defaults, &self.dead_tiles(), metric, over_tiles)
    }

    /// Aggregates the responses of one evaluation's runs over the tiles that are not `dead`.
    fn over_tiles(
        &self,
        runs: &[RunResponse],
        dead: &[usize],
        metric: usize,
        over_tiles: Aggregate,
    ) -> Option<f64> {
        let live = || runs.iter().filter(|run| !dead.contains(&run.tile) && !self.repeated[run.tile]);
        // Values and weights.
        let value = |run: &RunResponse| {
            let weight = self.weights.get(run.tile).copied().unwrap_or(1.0);
            run.result.as_ref().ok().map(|values| (values[metric], weight))
        };
        let mut values: Vec<(f64, f64)> = live().map(value).collect::<Option<_>>()?;
        if self.leaves_out_both_empty && over_tiles == Aggregate::Mean {
            let counting: Vec<(f64, f64)> = values
                .iter()
                .zip(live())
                .filter(|(_, run)| !run.is_both_empty(metric))
                .map(|(v, _)| *v)
                .collect();
            // If both are empty on all tiles, all of them count: the evaluation keeps a response.
            if !counting.is_empty() {
                values = counting;
            }
        }
        aggregate(&values, over_tiles)
    }

    /// Returns the failed evaluations and their effect on the indices. `None` without failures. Checks the
    /// study's metric only: a run has either values of all metrics or no value.
    pub fn failures(&self, prepared: &PreparedStudy) -> Option<Failures> {
        let study = &prepared.study;
        let (_, over_tiles) = study.workflow.response.metrics[study.metric];
        Failures::of(&prepared.design.structure, &self.responses(study.metric, over_tiles))
    }

    /// Analyzes each response of the study.
    pub fn analyze(&self, prepared: &PreparedStudy) -> Result<Vec<Analysis>, Defect> {
        prepared.study.metrics().map(|metric| self.analyze_one(prepared, metric)).collect()
    }

    /// Returns the width of the widest 95 % confidence interval of the indices of a response: of μ*, of
    /// first-order and total indices, or of correlations. `None` if one of them has no interval.
    pub fn widest(&self, prepared: &PreparedStudy, metric: usize) -> Result<Option<f64>, Defect> {
        Ok(self.analyze_one(prepared, metric)?.widest())
    }

    fn analyze_one(&self, prepared: &PreparedStudy, metric: usize) -> Result<Analysis, Defect> {
        let study = &prepared.study;
        let (name, over_tiles) = &study.workflow.response.metrics[metric];
        let none = |method, note: String| Analysis::None { method, response: name.clone(), note };
        let trajectories = match &prepared.design.structure {
            Structure::Trajectories(trajectories) => trajectories,
            Structure::Saltelli(blocks) => {
                let values = self.responses(metric, *over_tiles);
                let responses = [Response { name, values: &values }];
                let bootstrap = bootstrap(study.seed);
                return match vbd::indices(blocks, &responses, Estimator::default(), bootstrap) {
                    Ok(found) => only(found).map(|indices| Analysis::Indices(Indices::Vbd(indices))),
                    Err(error @ AnalysisError::TooFew { .. }) => Ok(none("vbd", error.to_string())),
                    Err(error) => Err(Defect::new(error)),
                };
            }
            Structure::Curves(curves) => {
                let values = self.responses(metric, *over_tiles);
                let responses = [Response { name, values: &values }];
                return match fast::indices(curves, &responses, bootstrap(study.seed)) {
                    Ok(found) => only(found).map(|indices| Analysis::Indices(Indices::Efast(indices))),
                    Err(error @ AnalysisError::TooFew { .. }) => Ok(none("fast", error.to_string())),
                    Err(error) => Err(Defect::new(error)),
                };
            }
            _ if matches!(study.method, Method::Correlation { .. }) => {
                return self.correlations(prepared, metric);
            }
            _ => {
                return Ok(none(
                    "table",
                    "parameter sets from a table that holds no Morris trajectories".to_owned(),
                ));
            }
        };
        let responses = self.responses(metric, *over_tiles);
        match moat::indices(trajectories, name, &responses, study.seed) {
            Ok(indices) => Ok(Analysis::Indices(Indices::Moat(indices))),
            Err(error @ MoatError::NoTrajectoryLeft { .. }) => Ok(none("moat", error.to_string())),
            Err(error) => Err(Defect::new(error)),
        }
    }

    fn correlations(&self, prepared: &PreparedStudy, metric: usize) -> Result<Analysis, Defect> {
        let (study, evaluations) = (&prepared.study, &prepared.design.evaluations);
        let (name, over_tiles) = &study.workflow.response.metrics[metric];
        let columns = Columns::of(&study.workflow.parameters, evaluations).map_err(Defect::new)?;
        let values = self.responses(metric, *over_tiles);
        let bootstrap = bootstrap(study.seed);
        let of =
            if let Method::Correlation { of, .. } = study.method { of } else { GivenDataMethod::default() };
        match of_points(&columns, of.into(), &[Response { name, values: &values }], bootstrap) {
            Ok(found) => only(found),
            // Expected errors of a sample: too small, constant, or with parameters that depend on each other.
            Err(
                error @ (AnalysisError::TooFew { .. }
                | AnalysisError::OneValue { .. }
                | AnalysisError::Dependent { .. }
                | AnalysisError::Setting { .. }),
            ) => {
                let (response, note) = (name.clone(), error.to_string());
                Ok(Analysis::None { method: of.name(), response, note })
            }
            Err(error) => Err(Defect::new(error)),
        }
    }
}

/// Aggregates values with weights over tiles. Weights apply to means. If all of them are 0, they are equal. `None` without
/// values.
pub fn aggregate(values: &[(f64, f64)], over_tiles: Aggregate) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let plain: f64 = values.iter().map(|(value, _)| value).sum();
    let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
    Some(match over_tiles {
        Aggregate::Sum => plain,
        Aggregate::Mean if weights == 0.0 => plain / values.len() as f64,
        Aggregate::Mean => values.iter().map(|(value, weight)| value * weight).sum::<f64>() / weights,
    })
}

/// Returns the result of an analysis of a single response.
fn only<T>(found: Vec<T>) -> Result<T, Defect> {
    found.into_iter().next().ok_or_else(|| Defect::new("a response without indices"))
}

/// Returns the bootstrap settings of a study's confidence intervals.
pub fn bootstrap(seed: u64) -> Bootstrap {
    Bootstrap { resamples: RESAMPLES as u32, seed }
}

fn failure(
    prepared: &PreparedStudy,
    planned: &PlannedStudy,
    outcome: &StudyOutcome,
    instance: pleach_dispatch::InstanceId,
) -> RunFailure {
    let tables = outcome.results.get(instance);
    let table = tables.as_ref().and_then(|tables| tables.first());
    let declared = prepared.study.workflow.response.metrics.iter().map(|(name, _)| name.as_str());
    let value = |name: &str| table.and_then(|table| table.get(name));
    let missing: Vec<&str> = declared.clone().filter(|name| value(name).is_none()).collect();
    let no_number = declared.filter_map(|name| Some((name, value(name).filter(|value| !value.is_finite())?)));
    match outcome.failures.get(&instance) {
        Some(failure) => RunFailure {
            stage: prepared.study.workflow.stages[planned.stage(failure.origin)].name.clone(),
            at: failure.cause.at.clone(),
            cause: failure.cause.cause.clone(),
        },
        None => RunFailure {
            stage: prepared.study.workflow.stages[planned.stage(instance)].name.clone(),
            at: "response".to_owned(),
            cause: match no_number.into_iter().next() {
                Some((name, value)) if missing.is_empty() => {
                    format!("its table says {name} = {value}, which is no finite number")
                }
                _ => {
                    let missing = missing.join(", ");
                    format!("its table has no {missing}, which the workflow declares as a metric")
                }
            },
        },
    }
}

impl Analysis {
    /// Returns the indices of Morris' method. `None` for other methods, and if there are no indices.
    pub fn moat(&self) -> Option<&MoatIndices> {
        match self {
            Self::Indices(Indices::Moat(indices)) => Some(indices),
            _ => None,
        }
    }

    /// Returns the width of the widest interval, as [`CollectedResponses::widest`].
    fn widest(&self) -> Option<f64> {
        let listed = IndexTable::of(self)?;
        let counts = |column: &&str| match self.moat() {
            Some(_) => *column == "mu_star_conf",
            None => column.ends_with("_conf"),
        };
        let columns: Vec<usize> =
            (0..listed.columns.len()).filter(|column| counts(&listed.columns[*column].as_str())).collect();
        let halves =
            listed.rows.iter().flat_map(|(_, numbers)| columns.iter().map(|column| numbers[*column]));
        let halves: Vec<f64> = halves.collect::<Option<_>>()?;
        halves.into_iter().reduce(f64::max).map(|half| 2.0 * half)
    }

    /// Returns the reason for missing indices. `None` if there are indices.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::None { note, .. } => Some(note),
            _ => None,
        }
    }

    fn csv(&self) -> Result<Vec<u8>, Defect> {
        IndexTable::of(self).map_or_else(|| Ok(b"parameter\n".to_vec()), |listed| listed.csv())
    }

    /// Returns the JSON document of one response.
    pub fn json(&self) -> Result<serde_json::Value, Defect> {
        Ok(match self {
            Self::Indices(indices) => {
                let mut document = serde_json::json!(indices);
                document["no_variation"] = indices.no_variation().into();
                document
            }
            Self::Correlations(found) => found.json()?,
            Self::Regression(found) => {
                let mut document = serde_json::to_value(found).map_err(Defect::new)?;
                document["method"] = "regression".into();
                document
            }
            Self::None { method, response, note } => {
                serde_json::json!({ "method": method, "response": response, "parameters": [], "note": note })
            }
        })
    }
}

/// Returns `indices.csv`. The tables of several responses follow each other.
pub fn csv(analyses: &[Analysis]) -> Result<Vec<u8>, Defect> {
    if let [only] = analyses {
        return only.csv();
    }
    let tables: Result<Vec<_>, Defect> =
        analyses.iter().map(|one| Ok((one.response(), one.csv()?))).collect();
    tables::by_response(&tables?)
}

/// Returns the document of `indices.json`: that of the first response, with those of the others as
/// `additional_responses`.
pub fn json(analyses: &[Analysis]) -> Result<serde_json::Value, Defect> {
    let mut documents = analyses.iter().map(Analysis::json).collect::<Result<Vec<_>, Defect>>()?.into_iter();
    let mut first = documents.next().unwrap_or_default();
    let others: Vec<serde_json::Value> = documents.collect();
    if !others.is_empty() {
        first["additional_responses"] = others.into();
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_and_sums_are_not() {
        let values = [(1.0, 3.0), (0.0, 1.0), (0.5, 0.0)];
        assert_eq!(aggregate(&values, Aggregate::Mean), Some(0.75));
        assert_eq!(aggregate(&values, Aggregate::Sum), Some(1.5));
        // Without any weight, all tiles count.
        assert_eq!(aggregate(&[(1.0, 0.0), (0.0, 0.0)], Aggregate::Mean), Some(0.5));
        assert_eq!(aggregate(&[], Aggregate::Mean), None);
    }
}
