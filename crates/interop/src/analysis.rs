//! Analysis of the responses of an external model by the requested method.

use crate::error::{DesignFormError, DesignFormProblem, ExternalAnalysisError};
use crate::method::{ExternalMethod, MethodRequest};
use crate::responses::ResponseColumn;
use crate::samples::SampleTable;
use pleach_results::analysis::{Analysis, IndexTable, of_points};
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::convergence::{self, PrefixIndices, halves};
use pleach_sensitivity::fast::Curves;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{self, RESAMPLES};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::saltelli_blocks::RowBlocks;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_sensitivity::vbd::Estimator;
use pleach_sensitivity::{design_detection, fast, vbd};
use pleach_workflow::Value;

/// Design of a sample: how its rows are related.
#[derive(Debug)]
pub enum DesignForm {
    /// Trajectories of Morris screening. Consecutive rows of one differ in one parameter or group.
    Trajectories(Trajectories),
    /// Row blocks of Saltelli's design, one per base sample, for variance-based decomposition.
    Blocks(RowBlocks),
    /// Search curves of eFAST, one per varying parameter.
    Curves(Curves),
    /// Unrelated rows, as one column per varying parameter, for given-data methods.
    Columns(Columns),
}

/// Threshold for the default number of resamples. It is [`RESAMPLES`] up to this number of evaluations.
/// Beyond, it decreases in inverse proportion, down to [`MIN_RESAMPLES`].
const MANY: usize = 1_000_000;
const MIN_RESAMPLES: usize = 100;

/// Returns the default number of resamples. It decreases with the number of evaluations because each resample
/// is a pass over all of them.
pub fn usual_resamples(evaluations: usize) -> u32 {
    let fewer = (RESAMPLES as u64 * MANY as u64 / evaluations.max(1) as u64) as usize;
    fewer.clamp(MIN_RESAMPLES, RESAMPLES) as u32
}

impl DesignForm {
    /// Detects the design that the method needs.
    ///
    /// # Errors
    /// [`DesignFormError`] with the first row that does not fit the design.
    pub fn of(samples: &SampleTable, wanted: &MethodRequest<'_>) -> Result<Self, DesignFormError> {
        // Designs are recovered from consecutive rows: a missing row would shift all rows behind it.
        if !matches!(wanted.method, ExternalMethod::Columns(_)) {
            samples.check_complete()?;
        }
        let found: Result<Self, DesignFormProblem> = match wanted.method {
            ExternalMethod::Moat { levels, .. } => {
                // `SampleTable::read` has checked the values against their types, so the fallback is unused.
                let value = |row: usize, column: usize| {
                    let value_type = samples.parameters[column].value_type;
                    Value::from_f64(samples.columns[column][row], value_type).unwrap_or(Value::Integer(0))
                };
                let (parameters, groups) = (&samples.parameters, &samples.groups);
                let found = Trajectories::recover_rows(parameters, groups, samples.rows, value, Some(levels));
                found.map(Self::Trajectories).map_err(Into::into)
            }
            ExternalMethod::Vbd { second_order, .. } => {
                design_detection::row_blocks(samples.sets(), &samples.groups, second_order)
                    .map(Self::Blocks)
                    .map_err(Into::into)
            }
            ExternalMethod::Fast { harmonics } => {
                let curves = design_detection::curves(samples.sets(), harmonics as usize);
                curves.map(Self::Curves).map_err(Into::into)
            }
            ExternalMethod::Columns(_) => {
                let varying = samples.parameters.iter().zip(&samples.columns);
                let varying = varying.filter(|(parameter, _)| parameter.domain.varies());
                let (names, columns) =
                    varying.map(|(parameter, column)| (parameter.name.clone(), column.clone())).unzip();
                Columns::new(names, columns).map(Self::Columns).map_err(Into::into)
            }
        };
        found.map_err(|problem| DesignFormError::Mismatch { file: samples.file.clone(), problem })
    }

    /// Returns the number of independent evaluations: 1 per trajectory, 2 per row block, and all rows of
    /// search curves and columns.
    pub fn independent(&self) -> usize {
        match self {
            Self::Trajectories(trajectories) => trajectories.complete().len(),
            Self::Blocks(blocks) => 2 * blocks.samples(),
            Self::Curves(curves) => curves.rows(),
            Self::Columns(columns) => columns.rows(),
        }
    }
}

/// Computes the indices of each response.
///
/// # Errors
/// [`ExternalAnalysisError`] if there are too few responses or the method cannot handle them.
pub fn analyze(
    form: &DesignForm,
    external: ExternalMethod,
    measured: &[ResponseColumn],
    bootstrap: Bootstrap,
) -> Result<Vec<Analysis>, ExternalAnalysisError> {
    let responses: Vec<Response<'_>> =
        measured.iter().map(|of| Response { name: &of.name, values: &of.values }).collect();
    let analyses = match (form, external) {
        (DesignForm::Trajectories(trajectories), _) => {
            let each =
                measured.iter().map(|of| moat::indices(trajectories, &of.name, &of.values, bootstrap.seed));
            let found: Vec<_> = each.collect::<Result<_, _>>()?;
            Analysis::of_each(found, Indices::Moat)
        }
        (DesignForm::Blocks(blocks), _) => {
            let found = vbd::indices(blocks, &responses, estimator(external), bootstrap)?;
            Analysis::of_each(found, Indices::Vbd)
        }
        (DesignForm::Curves(curves), _) => {
            Analysis::of_each(fast::indices(curves, &responses, bootstrap)?, Indices::Efast)
        }
        (DesignForm::Columns(columns), ExternalMethod::Columns(method)) => {
            of_points(columns, method, &responses, bootstrap)?
        }
        (DesignForm::Columns(_), _) => Vec::new(),
    };
    Ok(analyses)
}

/// Returns the requested estimator of variance-based indices, or the default for another method.
fn estimator(external: ExternalMethod) -> Estimator {
    if let ExternalMethod::Vbd { estimator, .. } = external { estimator } else { Estimator::default() }
}

/// Maximum number of nested parts of a sample, each half of the next. The smallest is 1/64 of the sample.
/// Smaller parts give no useful estimate.
const STEPS: u32 = 7;

/// Maximum number of resamples of a part. 200 suffice because its interval is only plotted.
const STEP_RESAMPLES: u32 = 200;

/// Computes the indices of one response for growing parts of the sample, each with its number of evaluations.
/// Omits parts that are too small for the method. Empty for search curves, because a prefix of a search curve
/// is no search curve.
pub fn convergence(
    form: &DesignForm,
    external: ExternalMethod,
    measured: &ResponseColumn,
    bootstrap: Bootstrap,
) -> Vec<(usize, IndexTable)> {
    let bootstrap = Bootstrap { resamples: bootstrap.resamples.min(STEP_RESAMPLES), ..bootstrap };
    let response = Response { name: &measured.name, values: &measured.values };
    let listed = |steps: Vec<PrefixIndices>| {
        let step =
            |step: PrefixIndices| Some((step.evaluations, IndexTable::of(&Analysis::Indices(step.indices))?));
        steps.into_iter().filter_map(step).collect::<Vec<_>>()
    };
    match form {
        DesignForm::Trajectories(trajectories) => {
            let sizes = halves(trajectories.complete().len(), STEPS);
            convergence::moat(trajectories, response, bootstrap.seed, &sizes)
                .map_or_else(|_| Vec::new(), listed)
        }
        DesignForm::Blocks(blocks) => {
            let sizes = halves(blocks.samples(), STEPS);
            convergence::vbd(blocks, response, estimator(external), bootstrap, &sizes)
                .map_or_else(|_| Vec::new(), listed)
        }
        DesignForm::Curves(_) => Vec::new(),
        DesignForm::Columns(columns) => {
            let ExternalMethod::Columns(method) = external else { return Vec::new() };
            let step = |rows: usize| {
                let part = Response { values: &measured.values[..rows], ..response };
                let found = of_points(&columns.prefix(rows), method, &[part], bootstrap).ok()?;
                Some((rows, IndexTable::of(found.first()?)?))
            };
            halves(columns.rows(), STEPS).into_iter().filter_map(step).collect()
        }
    }
}
