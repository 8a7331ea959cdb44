//! Laws of elementary effects and their statistics, and an independent slow computation.

use crate::spaces::{space, varying, width};
use pleach_sensitivity::convergence;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{
    CONFIDENCE_Z, MoatError, MoatIndices, MoatParameter, elementary_effects, failures, indices,
};
use pleach_sensitivity::responses::Response;
use pleach_sensitivity::sampling::Design;
use pleach_sensitivity::sampling::morris::{Morris, sample};
use pleach_sensitivity::trajectory::Trajectories;
use pleach_sensitivity::warnings::Warning;
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use proptest::collection::vec;
use proptest::prelude::*;

fn design(parameters: &[Parameter], trajectories: u32, seed: u64) -> Design {
    sample(parameters, &Morris { trajectories, levels: 20, seed }).expect("something varies")
}

fn analyze(design: &Design, responses: &[Option<f64>]) -> MoatIndices {
    let trajectories = design.trajectories().expect("a Morris design");
    indices(trajectories, "dice", responses, 7).expect("a trajectory is left")
}

/// Returns the responses of `function` for every row.
fn respond(design: &Design, function: impl Fn(&[Value]) -> f64) -> Vec<Option<f64>> {
    design.evaluations.iter().map(|row| Some(function(row))).collect()
}

fn close(left: f64, right: f64, scale: f64) -> bool {
    (left - right).abs() <= 1e-9 * scale.max(1.0)
}

/// A space, a design over it, and noise as responses, some of them `None`.
fn noisy() -> impl Strategy<Value = (Vec<Parameter>, Design, Vec<Option<f64>>)> {
    (space(), 2u32..9, any::<u64>()).prop_flat_map(|(parameters, trajectories, seed)| {
        let design = design(&parameters, trajectories, seed);
        let response = prop_oneof![19 => (-1e3..1e3f64).prop_map(Some), 1 => Just(None)];
        let responses = vec(response, design.evaluations.len());
        (Just(parameters), Just(design), responses)
    })
}

/// Computes the statistics by definition: from bare rows, one parameter at a time, without shared code.
fn slowly(
    parameter: usize,
    parameters: &[Parameter],
    design: &Design,
    responses: &[Option<f64>],
) -> Option<(f64, f64, f64, f64)> {
    let length = varying(parameters).len() + 1;
    let mut effects = Vec::new();
    let mut kept = Vec::new();
    for start in (0..design.evaluations.len()).step_by(length) {
        if (start..start + length).any(|row| responses[row].is_none()) {
            continue;
        }
        kept.extend((start..start + length).filter_map(|row| responses[row]));
        for row in start + 1..start + length {
            let step =
                design.evaluations[row][parameter].as_f64() - design.evaluations[row - 1][parameter].as_f64();
            if step != 0.0 {
                effects.push((responses[row]? - responses[row - 1]?) * width(&parameters[parameter]) / step);
            }
        }
    }
    if effects.is_empty() {
        return None;
    }
    let count = effects.len() as f64;
    let mu = effects.iter().sum::<f64>() / count;
    let mu_star = effects.iter().map(|effect| effect.abs()).sum::<f64>() / count;
    // E[x²] − E[x]² would cancel. A sum over pairs does not: Σᵢⱼ (xᵢ − xⱼ)² = 2 n² var.
    let pairs: f64 = effects.iter().flat_map(|a| effects.iter().map(move |b| (a - b).powi(2))).sum();
    let sigma = (pairs / (2.0 * count * (count - 1.0))).sqrt();
    kept.sort_by(f64::total_cmp);
    Some((mu, mu_star, sigma, mu / (kept[kept.len() - 1] - kept[0])))
}

proptest! {
    #[test]
    fn indices_equal_a_slow_computation((parameters, design, responses) in noisy()) {
        let result = indices(design.trajectories().unwrap(), "dice", &responses, 7);
        let varying = varying(&parameters);
        let Ok(found) = result else {
            prop_assert_eq!(slowly(varying[0], &parameters, &design, &responses), None);
            let nothing_left = matches!(result, Err(MoatError::NoTrajectoryLeft { .. }));
            prop_assert!(nothing_left);
            return Ok(());
        };
        let names: Vec<&String> = varying.iter().map(|&column| &parameters[column].name).collect();
        prop_assert_eq!(found.parameters.iter().map(|entry| &entry.name).collect::<Vec<_>>(), names);
        let broken = responses.chunks(varying.len() + 1).filter(|block| block.contains(&None)).count();
        prop_assert_eq!(found.trajectories_dropped, broken);
        prop_assert_eq!(found.trajectories_used + broken, responses.len() / (varying.len() + 1));
        for (entry, &column) in found.parameters.iter().zip(&varying) {
            let (mu, mu_star, sigma, effect) = slowly(column, &parameters, &design, &responses).unwrap();
            prop_assert!(close(entry.mu, mu, mu_star), "{} {}", entry.mu, mu);
            prop_assert!(close(entry.mu_star, mu_star, mu_star));
            prop_assert!(close(entry.effect, effect, effect.abs()));
            match entry.sigma {
                Some(found) => prop_assert!(close(found, sigma, mu_star), "{} {}", found, sigma),
                None => prop_assert!(sigma.is_nan() && found.trajectories_used == 1),
            }
        }
    }

    #[test]
    fn a_linear_response_has_its_slopes_and_no_spread(
        parameters in space(), slopes in vec(-10.0..10.0f64, 6), seed: u64,
    ) {
        let design = design(&parameters, 5, seed);
        let linear = |row: &[Value]| row.iter().zip(&slopes).map(|(x, a)| a * x.as_f64()).sum::<f64>();
        let found = analyze(&design, &respond(&design, linear));
        let scale = parameters.iter().map(|p| p.domain.bounds().1.abs() + width(p)).sum::<f64>() * 10.0;
        for (entry, column) in found.parameters.iter().zip(varying(&parameters)) {
            let slope = slopes[column] * width(&parameters[column]);
            prop_assert!(close(entry.mu, slope, scale), "{} {}", entry.mu, slope);
            prop_assert!(close(entry.mu_star, slope.abs(), scale));
            for spread in [entry.sigma, entry.mu_conf, entry.mu_star_conf, entry.sigma_conf] {
                prop_assert!(close(spread.unwrap(), 0.0, scale), "{:?}", entry);
            }
        }
    }

    #[test]
    fn in_a_sum_each_parameter_keeps_its_own_effects(parameters in space(), seed: u64) {
        let design = design(&parameters, 4, seed);
        let trajectories = design.trajectories().unwrap();
        let term = |x: &Value| (x.as_f64() / 10.0).sin() * 3.0;
        let whole = respond(&design, |row| row.iter().map(term).sum());
        let whole = elementary_effects(trajectories, &whole).unwrap();
        for (place, column) in varying(&parameters).into_iter().enumerate() {
            let alone = elementary_effects(trajectories, &respond(&design, |row| term(&row[column]))).unwrap();
            for (whole, alone) in whole.effects.iter().zip(&alone.effects) {
                prop_assert!(close(whole[place], alone[place], 1e3));
            }
        }
    }

    #[test]
    fn a_constant_response_has_no_effect(parameters in space(), seed: u64, constant in -1e6..1e6f64) {
        let design = design(&parameters, 3, seed);
        for entry in analyze(&design, &respond(&design, |_| constant)).parameters {
            let zero = Some(0.0);
            let expected = MoatParameter {
                name: entry.name.clone(), mu: 0.0, mu_star: 0.0, sigma: zero,
                mu_conf: zero, mu_star_conf: zero, sigma_conf: zero, effect: 0.0,
            };
            prop_assert_eq!(entry, expected);
        }
    }

    #[test]
    fn dropping_a_trajectory_is_as_if_it_had_never_been(
        (parameters, design, _) in noisy(), failed: prop::sample::Index, noise in vec(-9.0..9.0f64, 56),
    ) {
        let length = varying(&parameters).len() + 1;
        let mut responses: Vec<_> = design.evaluations.iter().zip(&noise).map(|(_, y)| Some(*y)).collect();
        let failed = failed.index(responses.len());
        responses[failed] = None;
        let with_failure = analyze(&design, &responses);
        prop_assert_eq!(with_failure.trajectories_dropped, 1);

        let start = failed / length * length;
        let (mut rows, mut left) = (design.evaluations.clone(), responses);
        rows.drain(start..start + length);
        left.drain(start..start + length);
        let trajectories = Trajectories::recover(&parameters, &rows, Some(20)).unwrap();
        let without = indices(&trajectories, "dice", &left, 7).unwrap();
        prop_assert_eq!(without.trajectories_dropped, 0);
        prop_assert_eq!(without.parameters, with_failure.parameters);
    }

    #[test]
    fn an_affine_change_of_the_response_scales_the_effects(
        (_, design, _) in noisy(), factor in prop_oneof![-50.0..-0.1f64, 0.1..50.0f64], noise in vec(-9.0..9.0f64, 56),
    ) {
        let responses: Vec<_> = design.evaluations.iter().zip(&noise).map(|(_, y)| Some(*y)).collect();
        let changed: Vec<_> = responses.iter().map(|y| y.map(|y| factor * y + 3.0)).collect();
        for (before, after) in analyze(&design, &responses).parameters.iter().zip(analyze(&design, &changed).parameters) {
            prop_assert!(close(after.mu, factor * before.mu, 1e4));
            prop_assert!(close(after.mu_star, factor.abs() * before.mu_star, 1e4));
            prop_assert!(close(after.effect, factor.signum() * before.effect, 1e2));
            let (before, after) = (before.mu_star_conf.unwrap(), after.mu_star_conf.unwrap());
            prop_assert!(close(after, factor.abs() * before, 1e4));
        }
    }

    #[test]
    fn serialized_indices_are_finite((_, design, responses) in noisy()) {
        if let Ok(found) = indices(design.trajectories().unwrap(), "dice", &responses, 7) {
            let one = found.trajectories_used == 1;
            let json = serde_json::to_string(&Indices::Moat(found)).unwrap();
            // serde_json writes NaN and infinities as null, like absent numbers.
            prop_assert_eq!(json.contains("null"), one, "{}", json);
            let Indices::Moat(back) = serde_json::from_str(&json).unwrap() else { return Ok(()) };
            prop_assert_eq!(back.parameters.iter().all(|parameter| parameter.sigma.is_none()), one);
        }
    }
}

fn one_parameter() -> Vec<Parameter> {
    let domain = Domain::Continuous { low: 0.0, high: 4.0 };
    let default = Value::from_f64(0.0, ValueType::Real).expect("finite");
    vec![Parameter { name: "G1".into(), value_type: ValueType::Real, default, domain }]
}

#[test]
fn the_names_in_json_are_those_of_the_design() {
    // With two levels the step is the whole range, and nothing is rounded.
    let design = sample(&one_parameter(), &Morris { trajectories: 1, levels: 2, seed: 1 }).unwrap();
    let found = analyze(&design, &respond(&design, |row| 2.0 * row[0].as_f64()));
    let json = serde_json::to_value(Indices::Moat(found)).unwrap();
    let expected = serde_json::json!({
        "method": "moat", "response": "dice", "trajectories_used": 1, "trajectories_dropped": 0,
        "parameters": [{
            "name": "G1", "mu": 8.0, "mu_star": 8.0, "sigma": null,
            "mu_conf": null, "mu_star_conf": null, "sigma_conf": null, "effect": 1.0,
        }],
    });
    assert_eq!(json, expected);
}

/// With one effect of 1 among 20, resampled means are binomial with deviation √(p(1−p)/n), independent of its
/// position.
#[test]
fn every_trajectory_counts_in_the_intervals() {
    let design = sample(&one_parameter(), &Morris { trajectories: 20, levels: 2, seed: 1 }).unwrap();
    let exact = CONFIDENCE_Z * (0.05 * 0.95 / 20.0f64).sqrt();
    for place in [0, 9, 19] {
        let mut responses = vec![Some(0.0); 40];
        responses[2 * place] = Some(1.0);
        let found = analyze(&design, &responses).parameters.remove(0);
        for half_width in [found.mu_conf.unwrap(), found.mu_star_conf.unwrap()] {
            assert!((half_width / exact - 1.0).abs() < 0.1, "{half_width} {exact}");
        }
        assert!(found.sigma_conf.unwrap() > 0.0);
    }
}

#[test]
fn failures_are_of_the_parameter_that_stepped_into_them() {
    let parameters = crate::spaces::reals(2);
    let design = design(&parameters, 2, 1);
    let trajectories = design.trajectories().unwrap();
    let mut responses = vec![Some(1.0); 6];
    (responses[2], responses[3]) = (None, None);
    let mut expected = vec![0, 0];
    expected[trajectories.complete()[0].steps[1].parameter] = 1;
    assert_eq!(failures(trajectories, &responses), expected);
}

/// Each step analyzes a number of complete trajectories from the beginning of the study.
#[test]
fn convergence_is_over_trajectories() {
    let parameters = crate::spaces::reals(3);
    let design = design(&parameters, 12, 1);
    let trajectories = design.trajectories().unwrap();
    let mut responses = respond(&design, |row| row.iter().map(|x| x.as_f64().powi(3)).product());
    responses[1] = None;
    let response = Response { name: "dice", values: &responses };
    let steps = convergence::moat(trajectories, response, 7, &convergence::halves(12, 4)).unwrap();
    // The first trajectory has a failed evaluation, so a step of it alone is missing.
    assert_eq!(steps.iter().map(|step| step.evaluations).collect::<Vec<_>>(), [12, 24, 48]);
    assert_eq!(steps[2].indices, Indices::Moat(analyze(&design, &responses)));
    let fewer = self::design(&parameters, 6, 1);
    assert_eq!(steps[1].indices, Indices::Moat(analyze(&fewer, &responses[..24])));
    let warnings = steps[0].indices.warnings();
    let unit = "trajectories".to_owned();
    assert_eq!(warnings[0], Warning::SmallSample { unit, used: 2, advised: 5 });
}

/// μ* is a mean of absolute values: exactly 0 for a parameter without effect, otherwise above 0. One warning
/// lists all parameters without effect.
#[test]
fn parameters_without_effect_are_one_warning() {
    let names: Vec<String> = (1..=9).map(|number| format!("p{number}")).collect();
    let entry = |(place, name): (usize, &String)| MoatParameter {
        name: name.clone(),
        mu: 0.0,
        mu_star: if place < 7 { 0.0 } else { 0.5 * place as f64 },
        sigma: Some(0.0),
        mu_conf: Some(0.0),
        mu_star_conf: Some(if place < 7 { 0.0 } else { 3.9 }),
        sigma_conf: Some(0.0),
        effect: 0.0,
    };
    let design = design(&one_parameter(), 6, 1);
    let mut found = analyze(&design, &[Some(1.0), Some(2.0)].repeat(6));
    found.parameters = names.iter().enumerate().map(entry).collect();
    let said: Vec<String> = Indices::Moat(found).warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "mu_star is below the half-width of its interval for 1 of 9 parameters: p8",
        "mu_star is 0 for p1, p2, p3, p4, p5, p6 and 1 more: no evaluation shows an effect",
    ];
    assert_eq!(said, expected);
}

#[test]
fn responses_that_do_not_fit_are_refused() {
    let design = design(&one_parameter(), 2, 1);
    let error = |responses: &[Option<f64>]| {
        indices(design.trajectories().unwrap(), "dice", responses, 1).unwrap_err().to_string()
    };
    assert!(error(&[Some(1.0)]).starts_with("1 responses for 4 evaluations"));
    let nan = error(&[Some(1.0), Some(2.0), Some(f64::NAN), None]);
    assert!(nan.starts_with("response NaN of evaluation 3 is not a finite number"), "{nan}");
    assert!(error(&[Some(1.0), Some(f64::INFINITY), None, None]).contains("inf of evaluation 2"));
    assert!(error(&[None, Some(1.0), None, Some(1.0)]).starts_with("all 2 trajectories lack responses"));
    assert!(error(&[Some(1e308), Some(-1e308), None, None]).contains("G1 exceed"));
    assert!(error(&[Some(1e308), Some(1e308), Some(-1e308), Some(-1e308)]).contains("exceed"));
}
