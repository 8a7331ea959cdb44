//! Errors of the methods that compute indices: responses or settings that do not fit the method.
//!
//! A constant response is not an error. [`Indices::no_variation`](crate::methods::indices::Indices::no_variation)
//! reports it.

use thiserror::Error;

/// Cause of a failed analysis. Evaluations count from 1.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// Responses and evaluations do not pair up.
    #[error(
        "{responses} values of response {response} for {evaluations} evaluations; one per evaluation is \
         needed, empty for a failed one"
    )]
    ResponseCount {
        /// Name of the response.
        response: String,
        /// Values given.
        responses: usize,
        /// Rows of the design.
        evaluations: usize,
    },
    /// A response is NaN or infinite.
    #[error(
        "response {response} of evaluation {evaluation} is {value}, which is not a finite number; leave the response of a failed evaluation empty"
    )]
    NotFinite {
        /// Name of the response.
        response: String,
        /// Number of the evaluation.
        evaluation: usize,
        /// The value.
        value: f64,
    },
    /// Responses so far apart that their difference exceeds an f64.
    #[error(
        "values of response {response} exceed the range of floating-point numbers; smaller values are \
             needed"
    )]
    Overflow {
        /// Name of the response.
        response: String,
    },
    /// Failed evaluations leave too few complete units for the method.
    #[error(
        "{used} {unit} of response {response} are complete ({dropped} are not); {method} needs at least {needed}"
    )]
    TooFew {
        /// Name of the response.
        response: String,
        /// The method.
        method: &'static str,
        /// Counted unit: evaluations, evaluations of complete curves, or base samples.
        unit: &'static str,
        /// Complete units.
        used: usize,
        /// Dropped units.
        dropped: usize,
        /// Minimum number of units for the method.
        needed: usize,
    },
    /// A parameter has a single value in all evaluations that have a response.
    #[error(
        "parameter {name} has one value in the {evaluations} evaluations with a response {response}; at \
         least two are needed"
    )]
    OneValue {
        /// The parameter.
        name: String,
        /// Name of the response.
        response: String,
        /// Evaluations used.
        evaluations: usize,
    },
    /// A parameter is a linear combination of earlier ones, so the method cannot separate their effects.
    #[error(
        "parameter {name} is a linear combination of the parameters before it in the evaluations with a \
         response {response}; {method} cannot separate their effects"
    )]
    Dependent {
        /// The parameter.
        name: String,
        /// Name of the response.
        response: String,
        /// The method.
        method: &'static str,
    },
    /// A setting is outside the range that the method accepts.
    #[error("{setting} = {given} does not suit {method}; allowed are {allowed}")]
    Setting {
        /// The method.
        method: &'static str,
        /// Name of the setting.
        setting: &'static str,
        /// Given value.
        given: usize,
        /// Allowed values, in words.
        allowed: String,
    },
}
