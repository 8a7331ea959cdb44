//! Failure counts in the box of failures: units left out of the indices, and failed evaluations per
//! parameter.

use crate::page::format_number::{count, counted};
use crate::page::html::{Html, Table, html, p};
use pleach_results::analysis::{Failures, Unit};

/// Returns the number of units left out of the indices and a table of the failures of each parameter.
pub(crate) fn counts(failures: &Failures) -> Html {
    let Failures { evaluations, unit, dropped, all, parameters } = failures;
    let (whole, one, many) = match unit {
        Unit::Trajectory => ("its entire trajectory", "trajectory", "trajectories"),
        Unit::BaseSample => ("the entire row block of its base sample", "base sample", "base samples"),
        Unit::Curve => ("the entire search curve of a parameter", "curve", "curves"),
        Unit::Evaluation => ("only itself", "evaluation", "evaluations"),
    };
    let text = p(format!(
        "{} no response over the tiles. Each excludes {whole}: {} of {} excluded from the indices, for {}.",
        counted(*evaluations, "evaluation has", "evaluations have"),
        count(*dropped),
        counted(*all, &format!("{one} is"), &format!("{many} are")),
        if *unit == Unit::Curve { "that parameter" } else { "every parameter" },
    ));
    if parameters.is_empty() {
        return text;
    }
    let caption = match unit {
        Unit::Curve => "Failed evaluations by the parameter of their search curve.",
        _ => {
            "Failed evaluations by the only parameter that was changed; others failed after changes of \
             several parameters."
        }
    };
    let mut table = Table::new("numbers", caption, ["parameter", "failed evaluations"].map(Html::from));
    for parameter in parameters {
        table.row([Html::from(&parameter.name), count(parameter.failed).into()]);
    }
    html![text, table.finish()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_results::analysis::ParameterFailures;

    #[test]
    fn excluded_evaluations_are_listed_by_parameter() {
        let parameters = [("<a>", 2), ("b", 0)];
        let parameters = parameters.map(|(name, failed)| ParameterFailures { name: name.to_owned(), failed });
        let mut failures = Failures {
            evaluations: 3,
            unit: Unit::Trajectory,
            dropped: 1,
            all: 10,
            parameters: parameters.to_vec(),
        };
        let text = counts(&failures).into_string();
        let said = "3 evaluations have no response over the tiles. Each excludes its entire trajectory: 1 \
                    of 10 trajectories are excluded";
        assert!(text.contains(said) && text.contains("&lt;a&gt;"), "{text}");
        assert_eq!(text.matches("<tr>").count(), 3);
        (failures.unit, failures.parameters) = (Unit::Evaluation, Vec::new());
        assert!(!counts(&failures).into_string().contains("<table"));
    }
}
