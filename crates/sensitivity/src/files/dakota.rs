//! Reads Dakota's input files: method, sampler and parameters.
//!
//! Supported are MOAT (`psuade_moat`), designs of experiments (`dace`), uncertainty sampling (`sampling`),
//! quasi-Monte Carlo (`fsu_quasi_mc`), grids (`multidim_parameter_study`), and variance-based decomposition on
//! `dace` and `sampling`, as described in the reference manual of Dakota 6. Blocks on simulations and responses are
//! skipped, because they do not affect the sample. An unknown keyword that would change the sample is an error.

mod entries;
mod fields;
mod method;
mod variables;

use crate::files::import::Imported;
use entries::Block;
use pleach_workflow::text::quoted;
use thiserror::Error;

/// Error of a Dakota input. Lines count from 1. The caller names the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DakotaError {
    /// A text without a closing quote on its line.
    #[error("line {line}: a quoted text has no closing quote on its line")]
    NotClosed {
        /// Its line.
        line: usize,
    },
    /// Text before the first block.
    #[error("line {line}: \"{}\" is not a block of a Dakota input; allowed are {}", quoted(word, 80), entries::BLOCKS.join(", "))]
    NoBlock {
        /// Its line.
        line: usize,
        /// The text found.
        word: String,
    },
    /// A number or text without a preceding keyword.
    #[error("line {line}: \"{}\" does not follow a keyword", quoted(word, 80))]
    NoKeyword {
        /// Its line.
        line: usize,
        /// The text found.
        word: String,
    },
    /// An invalid repetition.
    #[error(
        "line {line}: \"{}\" is not a repeated number; a form such as 3*0.5 is allowed",
        quoted(word, 80)
    )]
    BadRepeat {
        /// Its line.
        line: usize,
        /// The text found.
        word: String,
    },
    /// More numbers and texts than allowed.
    #[error("line {line}: more than {most} numbers and texts; at most {most} are allowed")]
    TooLong {
        /// The line that exceeds the maximum.
        line: usize,
        /// Maximum number.
        most: usize,
    },
    /// A required block is missing.
    #[error("block \"{block}\": missing; one is needed")]
    MissingBlock {
        /// The block.
        block: &'static str,
    },
    /// A block that occurs twice.
    #[error("line {line}: a second block \"{block}\"; one is allowed")]
    SecondBlock {
        /// Line of the second.
        line: usize,
        /// The block.
        block: &'static str,
    },
    /// An unknown keyword.
    #[error("line {line}: \"{}\" is not allowed in {of}; allowed are {known}", quoted(keyword, 80))]
    UnknownKeyword {
        /// Its line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// Keyword or block that contains it.
        of: String,
        /// Allowed keywords.
        known: String,
    },
    /// A repeated keyword that may occur only once.
    #[error("line {line}: \"{}\" occurs a second time in {of}", quoted(keyword, 80))]
    Twice {
        /// Its second line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// Keyword or block that contains it.
        of: String,
    },
    /// A required keyword is missing.
    #[error("line {line}: {of}: \"{keyword}\" is missing")]
    MissingKeyword {
        /// Line of the keyword or block that requires it.
        line: usize,
        /// The keyword.
        keyword: &'static str,
        /// Keyword or block that requires it.
        of: String,
    },
    /// An invalid or unsuitable number.
    #[error("line {line}: {keyword}: \"{}\" is not {expected}", quoted(text, 80))]
    BadNumber {
        /// Its line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// The text found.
        text: String,
        /// The expected number.
        expected: &'static str,
    },
    /// Too many or too few numbers or texts.
    #[error("line {line}: {keyword} has {found} values; {expected} are needed")]
    WrongCount {
        /// Line of the keyword.
        line: usize,
        /// The keyword.
        keyword: String,
        /// Values found.
        found: usize,
        /// Values needed.
        expected: usize,
    },
    /// Bounds in the wrong order.
    #[error("line {line}: variable {name}: its lower bound {low} is above its upper bound {high}")]
    Reversed {
        /// Line of the variables.
        line: usize,
        /// The variable.
        name: String,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Numbers that form no valid distribution or set.
    #[error("line {line}: variable {name}: {problem}")]
    BadRange {
        /// Line of the variables.
        line: usize,
        /// The variable.
        name: String,
        /// The invalid domain.
        problem: pleach_workflow::DomainError,
    },
    /// An empty or duplicate variable name.
    #[error("line {line}: two variables are named \"{}\"; names must be unique", quoted(name, 80))]
    BadName {
        /// Line of the variables.
        line: usize,
        /// The name.
        name: String,
    },
    /// No variables.
    #[error("line {line}: the block \"variables\" is empty; at least one variable is needed")]
    NoVariables {
        /// Line of the block.
        line: usize,
    },
}

/// Parses a Dakota input. Accepts a byte-order mark and CRLF. If all lists of variables agree on a number that
/// differs from the declared one, the number of the lists is used, with a note: one of the authors' own files is
/// such a case.
///
/// # Errors
/// [`DakotaError`], with line, keyword, value and the allowed values.
pub fn parse(text: &str) -> Result<Imported, DakotaError> {
    let blocks = entries::read(text)?;
    let (parameters, notes) = variables::read(the_block(&blocks, "variables")?)?;
    Ok(Imported { notes, ..method::read(the_block(&blocks, "method")?, parameters)? })
}

fn the_block<'a>(blocks: &'a [Block], name: &'static str) -> Result<&'a Block, DakotaError> {
    let mut found = blocks.iter().filter(|block| block.name == name);
    let block = found.next().ok_or(DakotaError::MissingBlock { block: name })?;
    match found.next() {
        Some(second) => Err(DakotaError::SecondBlock { line: second.line, block: name }),
        None => Ok(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::import::{ImportedMethod, ImportedRange, ImportedSampler};
    use pleach_workflow::Distribution;

    const VARIABLES: &str = "\nvariables\n continuous_design = 2\n lower_bounds 0 0\n upper_bounds 1 2\n";

    fn of_method(method: &str) -> Result<Imported, DakotaError> {
        parse(&format!("method\n{method}{VARIABLES}"))
    }

    fn of_variables(variables: &str) -> Result<Imported, DakotaError> {
        parse(&format!("method\nsampling samples = 5\nvariables\n{variables}\n"))
    }

    /// Asserts that parsing fails with this message.
    #[track_caller]
    fn refused(result: Result<Imported, DakotaError>, said: &str) {
        assert_eq!(result.unwrap_err().to_string(), said);
    }

    #[test]
    fn dakota_methods_give_sampler_and_sample_size() {
        use ImportedMethod::{Moat, Sampling, Vbd};
        use ImportedSampler::{Halton, Hammersley, LatinHypercube, MonteCarlo, Morris};
        for (method, expected) in [
            ("psuade_moat samples = 9 partitions = 3", (Moat { partitions: Some(3) }, Morris)),
            ("psuade_moat samples = 9", (Moat { partitions: None }, Morris)),
            ("dace lhs samples = 9 main_effects", (Sampling, LatinHypercube)),
            ("DACE random, samples 9, variance_based_decomp", (Vbd, MonteCarlo)),
            ("sampling samples = 9 sample_type random response_levels = 1 2 3", (Sampling, MonteCarlo)),
            ("sampling samples = 9 variance_based_decomp output silent", (Vbd, LatinHypercube)),
            ("id_method = 'A' fsu_quasi_mc halton samples = 9", (Sampling, Halton)),
            ("fsu_quasi_mc hammersley samples = 9", (Sampling, Hammersley)),
        ] {
            let found = of_method(method).unwrap_or_else(|error| panic!("{method}: {error}"));
            assert_eq!((found.method, found.sampler), (Some(expected.0), Some(expected.1)), "{method}");
            assert_eq!((found.samples, found.seed), (Some(9), None), "{method}");
        }
        let grid = of_method("multidim_parameter_study partitions = 3 0").unwrap();
        let parameters = grid.parameters().unwrap();
        assert_eq!(grid.parameters[0].partitions, Some(3));
        assert!(parameters[0].domain.varies() && !parameters[1].domain.varies());
    }

    #[test]
    fn variables_of_all_kinds() {
        let found = of_variables(
            "uniform_uncertain 1 lower_bounds 0 upper_bounds 1 descriptors 'u'\n\
             loguniform_uncertain 1 lower_bounds 1 upper_bounds 10\n\
             normal_uncertain 1 means 5 std_deviations 2\n\
             normal_uncertain 1 means 5 std_deviations 2 lower_bounds 0 upper_bounds 9 descriptors 't'\n\
             triangular_uncertain 1 modes 2 lower_bounds 1 upper_bounds 4\n\
             discrete_design_range 1 lower_bounds 4 upper_bounds 8 initial_point 5\n\
             discrete_design_set integer 2 elements_per_variable 2 1 elements 4 8 7 real 1 set_values 0.5 1.5",
        )
        .unwrap();
        let of = ImportedRange::Distributed;
        let expected = [
            ("u", ImportedRange::Reals { low: 0.0, high: 1.0 }),
            ("luuv_1", of(Distribution::LogUniform { low: 1.0, high: 10.0 })),
            ("nuv_1", of(Distribution::Normal { mean: 5.0, deviation: 2.0 })),
            ("t", of(Distribution::TruncatedNormal { mean: 5.0, deviation: 2.0, low: 0.0, high: 9.0 })),
            ("tuv_1", of(Distribution::Triangular { low: 1.0, mode: 2.0, high: 4.0 })),
            ("ddriv_1", ImportedRange::Integers { low: 4, high: 8 }),
            ("ddsiv_1", ImportedRange::Set { integers: true, values: vec![4.0, 8.0] }),
            ("ddsiv_2", ImportedRange::Set { integers: true, values: vec![7.0] }),
            ("ddsrv_1", ImportedRange::Set { integers: false, values: vec![0.5, 1.5] }),
        ];
        let ranges: Vec<_> = found
            .parameters
            .iter()
            .map(|parameter| (parameter.name.as_str(), parameter.range.clone()))
            .collect();
        assert_eq!(ranges, expected);
        assert_eq!(found.parameters().unwrap()[5].default.as_f64(), 5.0);
        let repeated =
            of_variables("continuous_design 3 lower_bounds 3*0.5 upper_bounds 2*1 2 # no names").unwrap();
        assert_eq!(repeated.parameters[1].range, ImportedRange::Reals { low: 0.5, high: 1.0 });
        assert_eq!(repeated.parameters[2].name, "cdv_3");
    }

    #[test]
    fn invalid_methods_are_refused_with_the_cause() {
        refused(parse(""), "block \"variables\": missing; one is needed");
        refused(parse(&VARIABLES[1..]), "block \"method\": missing; one is needed");
        refused(
            parse(&format!("method\nsampling samples 5\n{VARIABLES}method\n")),
            "line 8: a second block \"method\"; one is allowed",
        );
        refused(
            of_method("optpp_q_newton"),
            "line 2: \"optpp_q_newton\" is not allowed in the block \"method\"; allowed are psuade_moat, \
             dace, sampling, nond_sampling, fsu_quasi_mc, multidim_parameter_study",
        );
        refused(of_method("psuade_moat"), "line 2: method psuade_moat: \"samples\" is missing");
        refused(of_method("psuade_moat samples = 0"), "line 2: samples: \"0\" is not 1 or more");
        refused(
            of_method("psuade_moat\nsamples = -5"),
            "line 3: samples: \"-5\" is not a whole number of 0 or more",
        );
        refused(of_method("psuade_moat samples = 1 2"), "line 2: samples has 2 values; 1 are needed");
        refused(
            of_method("psuade_moat samples 1 samples 2"),
            "line 2: \"samples\" occurs a second time in method psuade_moat",
        );
        refused(of_method("dace samples = 5"), "line 2: method dace: \"random\" is missing");
        refused(
            of_method("dace random lhs samples = 5"),
            "line 2: \"lhs\" is not allowed in method dace, beside \"random\"; allowed are one of them",
        );
        refused(
            of_method("multidim_parameter_study partitions = 1"),
            "line 2: partitions has 1 values; 2 are needed",
        );
        let said = of_method("dace box_behnken samples = 5").unwrap_err().to_string();
        assert!(said.starts_with(
            "line 2: \"box_behnken\" is not allowed in method dace; allowed are dace, random, lhs"
        ));
        refused(parse("method 'x'"), "line 1: \"x\" does not follow a keyword");
        refused(
            of_method("sampling samples = 5 id_method = 'open"),
            "line 2: a quoted text has no closing quote on its line",
        );
        refused(
            of_method("sampling samples = 0*5"),
            "line 2: \"0*5\" is not a repeated number; a form such as 3*0.5 is allowed",
        );
        refused(
            of_method("sampling samples = 99999*5 response_levels 99999*1"),
            "line 2: more than 100000 numbers and texts; at most 100000 are allowed",
        );
    }

    #[test]
    fn invalid_variables_are_refused_with_the_cause() {
        let two = "continuous_design = 2\nlower_bounds 0 0\nupper_bounds";
        refused(
            of_variables(""),
            "line 3: the block \"variables\" is empty; at least one variable is \
                                   needed",
        );
        refused(of_variables(&format!("{two} 1")), "line 6: upper_bounds has 1 values; 2 are needed");
        refused(
            of_variables(&format!("{two} -1 1")),
            "line 4: variable cdv_1: its lower bound 0 is above its upper bound -1",
        );
        for (number, shown) in [("nan", "nan"), ("inf", "inf"), ("1e999", "1e999"), ("1.5.2", "1.5.2")] {
            refused(
                of_variables(&format!("{two} 1 {number}")),
                &format!("line 6: upper_bounds: \"{shown}\" is not a finite number"),
            );
        }
        // A comma separates values: `1,5` is two bounds, and one and a half is written `1.5`.
        assert_eq!(of_variables(&format!("{two} 1,5")).unwrap().parameters[1].range.bounds(), (0.0, 5.0));
        refused(
            of_variables(&format!("{two} 1 1 descriptors 'a' 'a'")),
            "line 3: two variables are named \"a\"; names must be unique",
        );
        refused(
            of_variables(&format!("{two} 1 1 descriptors 1 2")),
            "line 6: descriptors: \"1\" is not a text in quotes",
        );
        refused(
            of_variables("weibull_uncertain = 1"),
            "line 4: \"weibull_uncertain\" is not allowed in the block \"variables\"; allowed are \
             continuous_design, uniform_uncertain, loguniform_uncertain, normal_uncertain, \
             triangular_uncertain, discrete_design_range, discrete_design_set",
        );
        refused(of_variables("continuous_design = 0"), "line 4: continuous_design: \"0\" is not 1 to 100000");
        refused(
            of_variables("normal_uncertain 1 means 5 std_deviations 0"),
            "line 4: variable nuv_1: deviation 0 is not above 0",
        );
        refused(
            of_variables("normal_uncertain 1 means 5 std_deviations 1 lower_bounds 0"),
            "line 4: normal_uncertain: \"upper_bounds\" is missing",
        );
        refused(
            of_variables("discrete_design_range 1 lower_bounds 0.5 upper_bounds 2"),
            "line 4: lower_bounds: \"0.5\" is not a whole number",
        );
        refused(
            of_variables("discrete_design_set integer 1 elements 4 4"),
            "line 4: variable ddsiv_1: value 4 is listed twice",
        );
        refused(
            of_variables("discrete_design_set integer 2 elements_per_variable 2 2 elements 4 8 4"),
            "line 4: elements has 3 values; 4 are needed",
        );
    }
}
