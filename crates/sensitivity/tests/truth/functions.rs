//! Functions with Sobol' indices in closed form, and designs to evaluate them on.

use pleach_sensitivity::saltelli_blocks::RowBlocks;
use pleach_sensitivity::sampling::Design;
use pleach_sensitivity::sampling::saltelli::{Saltelli, sample};
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use std::f64::consts::PI;

/// A function and its exact indices.
pub(crate) struct Function {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) evaluate: fn(&[f64]) -> f64,
    pub(crate) first: Vec<f64>,
    pub(crate) total: Vec<f64>,
    /// Second-order indices of the pairs (0, 1), (0, 2) … (1, 2) ….
    pub(crate) second: Vec<f64>,
}

/// Returns real parameters x1, x2, … of one range.
pub(crate) fn reals(count: usize, low: f64, high: f64) -> Vec<Parameter> {
    let parameter = |place| Parameter {
        name: format!("x{place}"),
        value_type: ValueType::Real,
        default: Value::from_f64(low, ValueType::Real).expect("finite"),
        domain: Domain::Continuous { low, high },
    };
    (1..=count).map(parameter).collect()
}

/// Function of Ishigami and Homma (1990) with a = 7 and b = 0.1. Only x1 and x3 interact.
pub(crate) fn ishigami() -> Function {
    let (a, b) = (7.0_f64, 0.1_f64);
    let one = (1.0 + b * PI.powi(4) / 5.0).powi(2) / 2.0;
    let two = a * a / 8.0;
    let both = 8.0 * b * b * PI.powi(8) / 225.0;
    let variance = one + two + both;
    Function {
        parameters: reals(3, -PI, PI),
        evaluate: |x| x[0].sin() + 7.0 * x[1].sin().powi(2) + 0.1 * x[2].powi(4) * x[0].sin(),
        first: [one, two, 0.0].map(|part| part / variance).to_vec(),
        total: [one + both, two, both].map(|part| part / variance).to_vec(),
        second: vec![0.0, both / variance, 0.0],
    }
}

const G: [f64; 8] = [0.0, 1.0, 4.5, 9.0, 99.0, 99.0, 99.0, 99.0];

/// Sobol's G function. It is a product, so the share of a set of parameters is the product of their shares.
pub(crate) fn sobol_g() -> Function {
    let parts: Vec<f64> = G.iter().map(|a| 1.0 / (3.0 * (1.0 + a).powi(2))).collect();
    let all: f64 = parts.iter().map(|part| 1.0 + part).product();
    let variance = all - 1.0;
    let pairs = (0..8).flat_map(|one| (one + 1..8).map(move |other| (one, other)));
    Function {
        parameters: reals(8, 0.0, 1.0),
        evaluate: |x| x.iter().zip(G).map(|(x, a)| ((4.0 * x - 2.0).abs() + a) / (1.0 + a)).product(),
        first: parts.iter().map(|part| part / variance).collect(),
        total: parts.iter().map(|part| part * all / (1.0 + part) / variance).collect(),
        second: pairs.map(|(one, other)| parts[one] * parts[other] / variance).collect(),
    }
}

impl Function {
    /// Returns the responses of a design's rows.
    pub(crate) fn responses(&self, design: &Design) -> Vec<Option<f64>> {
        let numbers = |row: &Vec<Value>| row.iter().map(|value| value.as_f64()).collect::<Vec<f64>>();
        design.evaluations.iter().map(|row| Some((self.evaluate)(&numbers(row)))).collect()
    }

    /// Returns a Saltelli design and its responses.
    pub(crate) fn study(&self, saltelli: &Saltelli) -> (RowBlocks, Vec<Option<f64>>) {
        let design = sample(&self.parameters, saltelli).expect("a design");
        let responses = self.responses(&design);
        (design.row_blocks().expect("row blocks").clone(), responses)
    }
}
