//! Why a method gives no indices: what it was handed does not fit. Nothing is decided here.
//!
//! That a response does not vary is no error: indices are absent then, and say why.

use thiserror::Error;

/// Why there are no indices. Evaluations are numbered from 1.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// Responses and evaluations do not pair up.
    #[error(
        "{responses} values of response {response} for {evaluations} evaluations; one each is needed, empty where an evaluation failed"
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
    #[error("values of response {response} lie too far apart for numbers; they must be smaller")]
    Overflow {
        /// Name of the response.
        response: String,
    },
    /// Too little is left after failures.
    #[error(
        "{used} {unit} of response {response} are complete ({dropped} are not); {method} needs at least {needed}"
    )]
    TooFew {
        /// Name of the response.
        response: String,
        /// The method.
        method: &'static str,
        /// What is counted: evaluations, or base samples.
        unit: &'static str,
        /// How many are complete.
        used: usize,
        /// How many were dropped.
        dropped: usize,
        /// How many the method needs.
        needed: usize,
    },
    /// A parameter has one value in all evaluations that have a response.
    #[error(
        "parameter {name} has one value in the {evaluations} evaluations that have a response {response}; two are needed to see an effect"
    )]
    OneValue {
        /// The parameter.
        name: String,
        /// Name of the response.
        response: String,
        /// Evaluations used.
        evaluations: usize,
    },
    /// A parameter follows from others, so that their effects cannot be told apart.
    #[error(
        "parameter {name} is a linear combination of the parameters before it in the evaluations that have a response {response}; \
         {method} cannot tell their effects apart"
    )]
    Dependent {
        /// The parameter.
        name: String,
        /// Name of the response.
        response: String,
        /// The method.
        method: &'static str,
    },
    /// A setting that the method cannot work with.
    #[error("{setting} = {given} does not suit {method}; allowed are {allowed}")]
    Setting {
        /// The method.
        method: &'static str,
        /// Name of the setting.
        setting: &'static str,
        /// What was given.
        given: usize,
        /// What is allowed, in words.
        allowed: String,
    },
}
