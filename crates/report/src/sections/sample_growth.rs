//! Section on the growth of a sample until its indices converged or it reached its limit.

use crate::page::format_number::{Rounding, count, counted};
use crate::page::html::{Html, Table, html, p, strong};
use pleach_results::record::Convergence;

/// Returns the section.
pub(crate) fn section(convergence: &Convergence) -> Html {
    let Convergence { response, ci_width, max_evaluations, converged, rounds } = convergence;
    let widths = rounds.iter().filter_map(|round| round.max_ci_width).chain([*ci_width]);
    let rounding = Rounding::of(widths.fold(0.0, f64::max));
    let evaluations = rounds.last().map_or(0, |round| round.evaluations);
    let verdict = match converged {
        true => html![
            strong("The sample has converged. "),
            format!("It needed {}.", counted(evaluations, "evaluation", "evaluations")),
        ],
        false => html![
            strong("The sample has not converged. "),
            format!("It grew to the maximum of {}.", counted(*max_evaluations, "evaluation", "evaluations")),
        ],
    };
    let caption = format!(
        "Maximum width of the 95 % intervals of the indices of {response} after each round; the sample \
         converges at {} or less. Each sample contains the previous one.",
        rounding.show(*ci_width)
    );
    let mut table = Table::new("numbers", caption, ["evaluations", "widest interval"].map(Html::from));
    for round in rounds {
        table.row([Html::from(count(round.evaluations)), rounding.option(round.max_ci_width).into()]);
    }
    html![p(verdict), table.finish()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_results::record::RoundRecord;

    #[test]
    fn table_has_a_row_per_round_and_the_outcome() {
        let rounds = [(16, None), (32, Some(0.4)), (48, Some(0.125))];
        let rounds = rounds.map(|(evaluations, widest)| RoundRecord { evaluations, max_ci_width: widest });
        let of = |converged| Convergence {
            response: "<dice>".to_owned(),
            ci_width: 0.2,
            max_evaluations: 60,
            converged,
            rounds: rounds.to_vec(),
        };
        let text = section(&of(true)).into_string();
        assert!(text.contains("It needed 48 evaluations") && text.contains("&lt;dice&gt;"), "{text}");
        assert_eq!(text.matches("<tr>").count(), 4, "{text}");
        let text = section(&of(false)).into_string();
        assert!(text.contains("It grew to the maximum of 60 evaluations"), "{text}");
    }
}
