//! Reads the block `method`: the method, its sampler, and their settings.

use super::DakotaError;
use super::entries::{Block, Entry};
use super::fields::Fields;
use crate::files::import::{Imported, ImportedMethod, ImportedParameter, ImportedSampler};

/// Supported methods.
const METHODS: [&str; 6] =
    ["psuade_moat", "dace", "sampling", "nond_sampling", "fsu_quasi_mc", "multidim_parameter_study"];

/// Keywords of any method that do not change the sample. Option words count as keywords here, as in `output
/// silent`.
const HARMLESS: [&str; 11] = [
    "id_method",
    "model_pointer",
    "output",
    "silent",
    "quiet",
    "normal",
    "verbose",
    "debug",
    "final_solutions",
    "main_effects",
    "quality_metrics",
];

/// Keywords of sampling that do not change the sample. Those that select the random number generator have no
/// effect, because pleach uses its own.
const STATISTICS: [&str; 14] = [
    "rng",
    "mt19937",
    "rnum2",
    "fixed_seed",
    "response_levels",
    "probability_levels",
    "reliability_levels",
    "gen_reliability_levels",
    "num_response_levels",
    "num_probability_levels",
    "distribution",
    "cumulative",
    "complementary",
    "samples_on_emulator",
];

pub(super) fn read(block: &Block, parameters: Vec<ImportedParameter>) -> Result<Imported, DakotaError> {
    let is_method = |entry: &&Entry| METHODS.contains(&entry.keyword.as_str());
    let Some(named) = block.entries.iter().find(is_method) else {
        let (line, of) = (block.line, "the block \"method\"".to_owned());
        return match block.entries.iter().find(|entry| !HARMLESS.contains(&entry.keyword.as_str())) {
            Some(Entry { line, keyword, .. }) => {
                let (line, keyword, known) = (*line, keyword.clone(), METHODS.join(", "));
                Err(DakotaError::UnknownKeyword { line, keyword, of, known })
            }
            None => Err(DakotaError::MissingKeyword { line, keyword: "psuade_moat", of }),
        };
    };
    let kind = named.keyword.as_str();
    let own: &[&str] = match kind {
        "psuade_moat" => &["samples", "partitions", "seed"],
        "dace" => &["random", "lhs", "samples", "seed", "symbols", "variance_based_decomp"],
        "sampling" | "nond_sampling" => {
            &["sample_type", "random", "lhs", "samples", "seed", "variance_based_decomp"]
        }
        "fsu_quasi_mc" => &["halton", "hammersley", "samples"],
        _ => &["partitions"],
    };
    let mut known: Vec<&str> = vec![kind];
    known.extend(own);
    known.extend(HARMLESS);
    if !matches!(kind, "psuade_moat" | "multidim_parameter_study") {
        known.extend(STATISTICS);
    }
    let fields = Fields::new(named.line, format!("method {kind}"), &block.entries, &known)?;
    let whole = |keyword: &str| fields.find(keyword).map(Entry::integer).transpose();

    let decomposed = fields.find("variance_based_decomp").is_some();
    let sampling = if decomposed { ImportedMethod::Vbd } else { ImportedMethod::Sampling };
    let (method, sampler) = match kind {
        "psuade_moat" => (ImportedMethod::Moat { partitions: whole("partitions")? }, ImportedSampler::Morris),
        "dace" => (sampling, one_of(&fields, ["random", "lhs"])?),
        // Dakota's default of sampling is the Latin hypercube.
        "sampling" | "nond_sampling" if fields.find("random").is_none() => {
            (sampling, ImportedSampler::LatinHypercube)
        }
        "sampling" | "nond_sampling" => (sampling, one_of(&fields, ["random", "lhs"])?),
        "fsu_quasi_mc" => (sampling, one_of(&fields, ["halton", "hammersley"])?),
        _ => (ImportedMethod::Grid, ImportedSampler::Factorial),
    };
    let mut parameters = parameters;
    if method == ImportedMethod::Grid {
        let partitions = fields.needed("partitions")?.integers(parameters.len())?;
        for (parameter, partitions) in parameters.iter_mut().zip(partitions) {
            parameter.partitions = Some(partitions);
        }
    }
    let samples = match method {
        ImportedMethod::Grid => None,
        _ => Some(positive(fields.needed("samples")?)?),
    };
    let seed = whole("seed")?;
    Ok(Imported {
        method: Some(method),
        sampler: Some(sampler),
        seed,
        samples,
        parameters,
        notes: Vec::new(),
    })
}

/// Returns the named sampler. It is an error if none or both of the names occur.
fn one_of(fields: &Fields<'_>, names: [&'static str; 2]) -> Result<ImportedSampler, DakotaError> {
    let [first, second] = names.map(|name| fields.find(name));
    let (found, other) = match (first, second) {
        (Some(found), None) | (None, Some(found)) => (found, None),
        (Some(found), Some(other)) => (found, Some(other)),
        (None, None) => {
            let of = fields.of.clone();
            return Err(DakotaError::MissingKeyword { line: fields.line, keyword: names[0], of });
        }
    };
    if let Some(Entry { line, keyword, .. }) = other {
        let of = format!("{}, beside \"{}\"", fields.of, found.keyword);
        let known = "one of them".to_owned();
        return Err(DakotaError::UnknownKeyword { line: *line, keyword: keyword.clone(), of, known });
    }
    Ok(match found.keyword.as_str() {
        "random" => ImportedSampler::MonteCarlo,
        "lhs" => ImportedSampler::LatinHypercube,
        "halton" => ImportedSampler::Halton,
        _ => ImportedSampler::Hammersley,
    })
}

fn positive(entry: &Entry) -> Result<u64, DakotaError> {
    match entry.integer()? {
        0 => {
            let (keyword, text) = (entry.keyword.clone(), "0".to_owned());
            Err(DakotaError::BadNumber { line: entry.line, keyword, text, expected: "1 or more" })
        }
        number => Ok(number),
    }
}
