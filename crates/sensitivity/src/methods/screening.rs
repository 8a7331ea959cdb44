//! Selects the parameters that survive a screening: those with large μ*, by a rule.
//!
//! Source: Campolongo, Cariboni and Saltelli, "An effective screening design for sensitivity analysis of large
//! models", Environmental Modelling & Software 22 (2007): factors are ranked by μ*, and those at the end of the
//! ranking fixed, as papers 000 and 001 do before a decomposition. The caller fixes the remaining parameters.

use crate::methods::moat::{MoatIndices, MoatParameter};
use pleach_workflow::SurvivorRule;
use thiserror::Error;

/// Cause of a screening without a surviving parameter.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ScreeningError {
    /// The response is the same along every trajectory.
    #[error("{response} did not change with any parameter: influential parameters cannot be determined")]
    NoVariation {
        /// The response.
        response: String,
    },
    /// Every μ* is below the threshold.
    #[error(
        "no parameter has a mu* of {threshold} or more for {response}; the largest is {largest}, of {name}"
    )]
    AllBelow {
        /// The response.
        response: String,
        /// Requested threshold.
        threshold: f64,
        /// The largest μ*.
        largest: f64,
        /// The parameter.
        name: String,
    },
}

/// Returns the parameters that a rule keeps, at least one, in the order of the parameters. On ties the first is
/// kept first.
///
/// # Errors
/// [`ScreeningError`] if no parameter is left, or the indices do not allow a decision.
pub fn survivors(rule: SurvivorRule, indices: &MoatIndices) -> Result<Vec<String>, ScreeningError> {
    let mut ranked: Vec<(usize, &MoatParameter)> = indices.parameters.iter().enumerate().collect();
    // A stable sort: of equal μ* the parameter that comes first in the study survives.
    ranked.sort_by(|(_, a), (_, b)| b.mu_star.total_cmp(&a.mu_star));
    let response = || indices.response.clone();
    let Some((_, first)) = ranked.first().filter(|(_, first)| first.mu_star > 0.0) else {
        return Err(ScreeningError::NoVariation { response: response() });
    };
    let count = match rule {
        SurvivorRule::Threshold(threshold) => {
            ranked.iter().take_while(|(_, parameter)| parameter.mu_star >= threshold).count()
        }
        SurvivorRule::MostInfluential(count) => count,
        SurvivorRule::CumulativeShare(share) => fewest_with(share, &ranked),
    };
    if let (0, SurvivorRule::Threshold(threshold)) = (count, rule) {
        let (largest, name) = (first.mu_star, first.name.clone());
        return Err(ScreeningError::AllBelow { response: response(), threshold, largest, name });
    }
    let mut kept: Vec<(usize, &MoatParameter)> = ranked.into_iter().take(count).collect();
    // Survivors keep the order of the study, independent of their ranking.
    kept.sort_by_key(|(place, _)| *place);
    Ok(kept.into_iter().map(|(_, parameter)| parameter.name.clone()).collect())
}

/// Returns how many of the first parameters reach this share of the sum. Parameters without effect add nothing and
/// are never needed.
fn fewest_with(share: f64, ranked: &[(usize, &MoatParameter)]) -> usize {
    let sums = ranked.iter().scan(0.0, |sum, (_, parameter)| {
        *sum += parameter.mu_star;
        Some(*sum)
    });
    // Summed in the same order: the last sum is exactly the whole.
    let sums: Vec<f64> = sums.collect();
    let whole = sums.last().copied().unwrap_or(0.0);
    sums.iter().position(|sum| *sum >= share * whole).map_or(sums.len(), |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn indices(mu_stars: &[f64]) -> MoatIndices {
        let parameters = mu_stars.iter().enumerate().map(|(place, &mu_star)| MoatParameter {
            name: format!("p{place}"),
            mu: 0.0,
            mu_star,
            sigma: None,
            mu_conf: None,
            mu_star_conf: None,
            sigma_conf: None,
            effect: 0.0,
        });
        MoatIndices {
            response: "dice".to_owned(),
            trajectories_used: 1,
            trajectories_dropped: 0,
            parameters: parameters.collect(),
        }
    }

    #[test]
    fn each_survivor_rule_selects_its_parameters() {
        let of = indices(&[0.1, 0.4, 0.0, 0.3, 0.2]);
        let kept = |rule| survivors(rule, &of).unwrap();
        assert_eq!(kept(SurvivorRule::MostInfluential(2)), ["p1", "p3"]);
        assert_eq!(kept(SurvivorRule::MostInfluential(5)), ["p0", "p1", "p2", "p3", "p4"]);
        assert_eq!(kept(SurvivorRule::Threshold(0.2)), ["p1", "p3", "p4"]);
        assert_eq!(kept(SurvivorRule::CumulativeShare(0.4)), ["p1"]);
        assert_eq!(kept(SurvivorRule::CumulativeShare(0.8)), ["p1", "p3", "p4"]);
        assert_eq!(kept(SurvivorRule::CumulativeShare(1.0)), ["p0", "p1", "p3", "p4"]);
        // On ties the first parameter survives.
        assert_eq!(survivors(SurvivorRule::MostInfluential(1), &indices(&[0.5, 0.5])).unwrap(), ["p0"]);
    }

    #[test]
    fn screening_without_survivors_is_an_error() {
        let error = |rule, of: &[f64]| survivors(rule, &indices(of)).unwrap_err().to_string();
        assert_eq!(
            error(SurvivorRule::Threshold(0.5), &[0.1, 0.4]),
            "no parameter has a mu* of 0.5 or more for dice; the largest is 0.4, of p1"
        );
        for rule in [SurvivorRule::Threshold(0.5), SurvivorRule::MostInfluential(1)] {
            assert_eq!(
                error(rule, &[0.0, 0.0]),
                "dice did not change with any parameter: influential parameters cannot be determined"
            );
        }
        assert!(survivors(SurvivorRule::MostInfluential(1), &indices(&[])).is_err());
    }

    proptest! {
        /// Kept parameters matter at least as much as dropped ones, and no smaller set reaches the share.
        #[test]
        fn the_largest_are_kept(mu_stars in prop::collection::vec(0.0..10.0_f64, 1..20), share in 0.01..=1.0_f64) {
            let of = indices(&mu_stars);
            let Ok(kept) = survivors(SurvivorRule::CumulativeShare(share), &of) else { return Ok(()) };
            let value = |name: &String| mu_stars[name[1..].parse::<usize>().unwrap()];
            let least = kept.iter().map(value).fold(f64::INFINITY, f64::min);
            let sum: f64 = kept.iter().map(value).sum();
            let whole: f64 = mu_stars.iter().sum();
            for parameter in of.parameters.iter().filter(|parameter| !kept.contains(&parameter.name)) {
                prop_assert!(parameter.mu_star <= least);
            }
            prop_assert!(sum >= share * whole * (1.0 - 1e-12));
            prop_assert!(kept.len() == 1 || sum - least < share * whole * (1.0 + 1e-12));
        }
    }
}
