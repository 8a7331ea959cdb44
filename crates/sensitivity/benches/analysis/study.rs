//! A study to analyze: Sobol's G function of any number of parameters, and the call of one method on it.
//!
//! Sampling and evaluation run once in advance. Repeated calls run only the analysis.

use pleach_sensitivity::bootstrap::Bootstrap;
use pleach_sensitivity::columns::Columns;
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::{Design, fast as curves, morris, saltelli};
use pleach_sensitivity::vbd::Estimator;
use pleach_sensitivity::{correlation, delta, fast, moat, pawn, rbd_fast, regression, vbd};
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};
use std::error::Error;
use std::hint::black_box;

/// Names of the methods that [`analysis`] accepts.
pub(crate) const METHODS: [&str; 13] = [
    "moat",
    "pearson",
    "spearman",
    "pcc",
    "prcc",
    "src",
    "srrc",
    "vbd",
    "vbd-second",
    "pawn",
    "delta",
    "efast",
    "rbd-fast",
];

/// Number of resamples, SALib's default for most methods. MOAT has its own number.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 100, seed: 1 };

/// Returns the analysis by `method` of a study. `size` counts trajectories, base samples, evaluations, or
/// evaluations per curve.
///
/// # Errors
/// An unknown method, or a size that it does not accept.
pub(crate) fn analysis(method: &str, size: u32, width: usize) -> Result<Box<dyn FnMut()>, Box<dyn Error>> {
    let parameters = parameters(width)?;
    let samples = size;
    let (seed, base) = (1, BasePoints::Sobol);
    match method {
        "moat" => {
            let design =
                morris::sample(&parameters, &morris::Morris { trajectories: size, levels: 4, seed })?;
            let y = responses(&design);
            let trajectories = design.trajectories().ok_or("no trajectories")?.clone();
            Ok(Box::new(move || drop(black_box(moat::indices(&trajectories, "y", &y, 1)))))
        }
        "vbd" | "vbd-second" => {
            let second_order = method == "vbd-second";
            let design =
                saltelli::sample(&parameters, &saltelli::Saltelli { samples, second_order, base, seed })?;
            let y = responses(&design);
            let blocks = design.row_blocks().ok_or("no row blocks")?.clone();
            Ok(Box::new(move || {
                let response = [Response { name: "y", values: &y }];
                drop(black_box(vbd::indices(&blocks, &response, Estimator::Saltelli, BOOTSTRAP)));
            }))
        }
        "efast" => {
            let settings = curves::Fast { samples, harmonics: 4, seed };
            let (design, curves) = curves::sample(&parameters, &settings)?;
            let y = responses(&design);
            Ok(Box::new(move || {
                let response = [Response { name: "y", values: &y }];
                drop(black_box(fast::indices(&curves, &response, BOOTSTRAP)));
            }))
        }
        _ => {
            // Uses the points A of a design of random points.
            let base = BasePoints::MonteCarlo;
            let mut design = saltelli::sample(
                &parameters,
                &saltelli::Saltelli { samples, second_order: false, base, seed },
            )?;
            design.evaluations = design.evaluations.into_iter().step_by(width + 2).collect();
            of_columns(method, &parameters, &design)
        }
    }
}

fn of_columns(
    method: &str,
    parameters: &[Parameter],
    design: &Design,
) -> Result<Box<dyn FnMut()>, Box<dyn Error>> {
    let columns = Columns::of(parameters, &design.evaluations)?;
    let y = responses(design);
    type Method = fn(&Columns, &[Response<'_>]);
    let method: Method = match method {
        "pearson" => |columns, y| drop(black_box(correlation::pearson(columns, y, BOOTSTRAP))),
        "spearman" => |columns, y| drop(black_box(correlation::spearman(columns, y, BOOTSTRAP))),
        "pcc" => |columns, y| drop(black_box(correlation::pcc(columns, y, BOOTSTRAP))),
        "prcc" => |columns, y| drop(black_box(correlation::prcc(columns, y, BOOTSTRAP))),
        "src" => |columns, y| drop(black_box(regression::src(columns, y, BOOTSTRAP))),
        "srrc" => |columns, y| drop(black_box(regression::srrc(columns, y, BOOTSTRAP))),
        // SALib's PAWN has no intervals.
        "pawn" => |columns, y| {
            let none = Bootstrap { resamples: 0, seed: 0 };
            drop(black_box(pawn::indices(columns, y, pawn::SLICES, None, none)));
        },
        "delta" => |columns, y| drop(black_box(delta::indices(columns, y, BOOTSTRAP))),
        "rbd-fast" => |columns, y| {
            drop(black_box(rbd_fast::indices(columns, y, rbd_fast::HARMONICS, BOOTSTRAP)));
        },
        _ => return Err(format!("there is no method {method}; there are {}", METHODS.join(", ")).into()),
    };
    Ok(Box::new(move || method(&columns, &[Response { name: "y", values: &y }])))
}

fn parameters(width: usize) -> Result<Vec<Parameter>, Box<dyn Error>> {
    let default = Value::from_f64(0.5, ValueType::Real).ok_or("no number")?;
    let parameter = |place| Parameter {
        name: format!("x{place}"),
        value_type: ValueType::Real,
        default,
        domain: Domain::Continuous { low: 0.0, high: 1.0 },
    };
    Ok((1..=width).map(parameter).collect())
}

/// Returns responses of Sobol's G function with a = 0, 1, 4.5, 9, 99 ….
fn responses(design: &Design) -> Vec<Option<f64>> {
    let of_row = |row: &Vec<Value>| {
        let coefficients = [0.0, 1.0, 4.5, 9.0].into_iter().chain(std::iter::repeat(99.0));
        row.iter().zip(coefficients).map(|(x, a)| ((4.0 * x.as_f64() - 2.0).abs() + a) / (1.0 + a)).product()
    };
    design.evaluations.iter().map(|row| Some(of_row(row))).collect()
}
