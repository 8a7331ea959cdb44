//! Minimum numbers of evaluations for given-data methods to rank the parameters of known functions right.
//! They justify the warnings of small samples.

use crate::functions::{Function, ishigami};
use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_sensitivity::warnings::Warning;
use pleach_sensitivity::{delta, pawn, rbd_fast};

/// Returns a method's index of each parameter.
type Method = fn(&Columns, &Response<'_>) -> Vec<f64>;

fn of_delta(columns: &Columns, response: &Response<'_>) -> Vec<f64> {
    let bootstrap = Bootstrap { resamples: 40, seed: 1 };
    let found =
        delta::indices(columns, std::slice::from_ref(response), bootstrap).expect("indices").remove(0);
    found.parameters.iter().filter_map(|parameter| parameter.delta.value).collect()
}

fn of_pawn(columns: &Columns, response: &Response<'_>) -> Vec<f64> {
    let none = Bootstrap { resamples: 0, seed: 1 };
    let found = pawn::indices(columns, std::slice::from_ref(response), pawn::SLICES, None, none);
    let found = found.expect("indices").remove(0);
    found.parameters.iter().filter_map(|parameter| parameter.median.value).collect()
}

fn of_rbd_fast(columns: &Columns, response: &Response<'_>) -> Vec<f64> {
    let none = Bootstrap { resamples: 0, seed: 1 };
    let found = rbd_fast::indices(columns, std::slice::from_ref(response), rbd_fast::HARMONICS, none);
    let found = found.expect("indices").remove(0);
    found.parameters.iter().filter_map(|parameter| parameter.coefficient.value).collect()
}

/// Returns the number of seeds, out of `seeds`, whose samples rank the first parameters as in `truth`.
fn right(function: &Function, method: Method, samples: u32, truth: &[usize], seeds: u64) -> u64 {
    let sampler = Sampler::named("lhs", samples, 2).expect("a sampler");
    let is_right = |seed: &u64| {
        let design = sampler.sample(&function.parameters, samples, *seed).expect("a design");
        let values = function.responses(&design);
        let columns = Columns::of(&function.parameters, &design.evaluations).expect("columns");
        let found = method(&columns, &Response { name: "y", values: &values });
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|&a, &b| found[b].total_cmp(&found[a]));
        order.starts_with(truth)
    };
    (0..seeds).filter(is_right).count() as u64
}

/// Returns the number of evaluations that the warning of a small sample advises.
fn advised(indices: &Indices) -> u32 {
    let advised = indices.warnings().into_iter().find_map(|warning| match warning {
        Warning::SmallSample { advised, .. } => Some(advised as u32),
        _ => None,
    });
    advised.expect("a warning")
}

#[test]
fn advised_samples_rank_parameters_right_and_small_ones_are_warned_of() {
    let function = ishigami();
    let design = Sampler::named("lhs", 200, 2).expect("a sampler").sample(&function.parameters, 200, 1);
    let design = design.expect("a design");
    let values = function.responses(&design);
    let columns = Columns::of(&function.parameters, &design.evaluations).expect("columns");
    let response = [Response { name: "y", values: &values }];
    let none = Bootstrap { resamples: 0, seed: 1 };
    let delta = delta::indices(&columns, &response, none).expect("indices").remove(0);
    let pawn = pawn::indices(&columns, &response, pawn::SLICES, None, none).expect("indices").remove(0);
    let rbd_fast =
        rbd_fast::indices(&columns, &response, rbd_fast::HARMONICS, none).expect("indices").remove(0);
    let methods: [(&str, Method, Indices); 3] = [
        ("delta", of_delta, Indices::Delta(delta)),
        ("pawn", of_pawn, Indices::Pawn(pawn)),
        ("rbd-fast", of_rbd_fast, Indices::RbdFast(rbd_fast)),
    ];
    for (name, method, indices) in methods {
        let samples = advised(&indices);
        let found = right(&function, method, samples, &[1, 0, 2], 20);
        println!("{name}: of 20 samples of {samples}, {found} rank Ishigami's parameters right");
        assert!(found >= 19, "{name}: {found} of 20 samples of {samples}");
    }
    // The default of study files gets this warning.
    let found = right(&function, of_delta, 200, &[1, 0, 2], 20);
    assert!(found < 10, "{found} of 20 samples of 200 evaluations");
}
