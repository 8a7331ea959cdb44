//! Parameters and method of a study file whose parameters are settings of a program.
//!
//! The program declares names, types and allowed values. The file has the sections `[method]`, `[parameters.NAME]` and
//! optionally `[study]`, and no other: neither images nor a workflow.

use super::{MethodSpec, ParameterSpace, labels, own_parameter, value_type};
use crate::operation::Accepts;
use crate::study::StudyError;
use crate::study::domain::given_values;
use crate::study::wording::{SECTION, needed_section};
use crate::toml_fields::{Document, Section};
use crate::value::Value;
use std::path::Path;

/// A setting of a program that a study file may vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramParameter {
    /// Name of its section in the file.
    pub name: &'static str,
    /// Type and allowed values.
    pub accepts: Accepts,
    /// Value outside the study. `None` takes the middle of the domain as the default.
    pub default: Option<Value>,
}

impl ParameterSpace {
    /// Reads a study file whose parameters are settings of a program.
    ///
    /// # Errors
    /// Returns the first [`StudyError`]: other sections, a missing method or number of samples, parameters that the program
    /// does not have, and values that it does not accept. Of a distribution, the finite bounds are checked.
    pub fn of_program(file: &Path, known: &[ProgramParameter]) -> Result<Self, StudyError> {
        let document = Document::read(file)?;
        let root = document.root();
        root.allow(&["study", "method", "parameters"])?;
        let study = root.section("study", SECTION)?;
        if let Some(study) = &study {
            study.allow(&["name", "seed"])?;
        }
        let seed = study.map_or(Ok(None), |study| study.integer("seed", 0, u64::MAX))?.unwrap_or(0);
        let method = method(&root)?;
        let section = needed_section(&root, "parameters")?;
        let names: Vec<&str> = known.iter().map(|known| known.name).collect();
        section.allow(&names)?;
        let (mut parameters, mut groups) = (Vec::new(), Vec::new());
        for name in section.keys() {
            let Some(known) = known.iter().find(|known| known.name == name) else { continue };
            let section = needed_section(&section, name)?;
            let own = known.accepts.value_type();
            if let Some(given) = value_type(&section)?.filter(|given| *given != own) {
                return section.not_allowed("type", &format!("\"{given}\""), &format!("\"{own}\""));
            }
            let (parameter, group) = own_parameter(&root, &section, name, own, known.default)?;
            for (key, values) in given_values(&section, &parameter) {
                if let Some(value) = values.iter().find(|value| !known.accepts.contains(**value)) {
                    return section.not_allowed(key, &value.to_string(), &known.accepts.to_string());
                }
            }
            groups.push(group);
            parameters.push(parameter);
        }
        if parameters.is_empty() {
            return root
                .missing("parameters", &format!("a section [parameters.NAME] of {}", names.join(", ")));
        }
        let groups = labels(groups, &parameters);
        Ok(Self { seed, parameters, groups, method, metrics: Vec::new() })
    }
}

/// Reads the method. Its kind and its number of samples have no defaults and no options on the command line.
fn method(root: &Section<'_>) -> Result<MethodSpec, StudyError> {
    let section = needed_section(root, "method")?;
    let method = MethodSpec::read(&section)?;
    for key in ["until", "file"] {
        if section.has(key) {
            return section.not_allowed(key, "this key", "a sample of fixed size, which the method draws");
        }
    }
    let Some(kind) = &method.kind else {
        return section.missing("kind", "the name of a method, such as \"moat\" or \"vbd\",");
    };
    let is_grid = method.sampler.as_ref().is_some_and(|sampler| sampler.ends_with("factorial"));
    if kind != "moat" && !is_grid && method.samples.is_none() {
        return section.missing("samples", "a number of samples");
    }
    Ok(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Domain;
    use crate::value::ValueType;

    const KNOWN: [ProgramParameter; 2] = [
        ProgramParameter { name: "queue", accepts: Accepts::Reals { low: 0.0, high: 1e9 }, default: None },
        ProgramParameter {
            name: "workers",
            accepts: Accepts::Integers { low: 1, high: 100 },
            default: Some(Value::Integer(20)),
        },
    ];

    fn read(text: &str) -> Result<ParameterSpace, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("study.toml");
        std::fs::write(&file, text).unwrap();
        ParameterSpace::of_program(&file, &KNOWN)
            .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    const METHOD: &str = "[method]\nkind = \"moat\"\n";

    #[test]
    fn types_are_those_of_the_program() {
        let text = format!(
            "[study]\nname = \"x\"\nseed = 7\n{METHOD}[parameters.workers]\nrange = [2, 4]\n[parameters.queue]\nrange = [0, 10]\n"
        );
        let space = read(&text).unwrap();
        assert_eq!((space.seed, space.method.kind.as_deref()), (7, Some("moat")));
        let [workers, queue] = &space.parameters[..] else { panic!("{:?}", space.parameters) };
        assert_eq!((workers.name.as_str(), workers.value_type), ("workers", ValueType::Integer));
        assert_eq!(workers.domain.bounds(), (2.0, 4.0));
        assert!(matches!(&workers.domain, Domain::Levels { values } if values.len() == 3));
        assert_eq!(queue.value_type, ValueType::Real);
        assert_eq!(queue.default.as_f64(), 5.0, "the middle of the domain");
        assert_eq!(workers.default, Value::Integer(20), "the value of the program");
    }

    #[test]
    fn what_the_program_does_not_know_is_refused() {
        let error = |text: &str| read(text).unwrap_err();
        let of = |parameter: &str| error(&format!("{METHOD}{parameter}"));
        assert_eq!(
            of("[parameters.queu]\nrange = [0, 1]"),
            "study.toml: parameters.queu: unknown; known are queue, workers"
        );
        assert_eq!(
            of("[parameters.workers]\nrange = [0, 4]"),
            "study.toml: parameters.workers.range: 0 is not allowed; allowed: an integer from 1 to 100"
        );
        assert_eq!(
            of("[parameters.queue]\nvalues = [5, -1]"),
            "study.toml: parameters.queue.values: -1 is not allowed; allowed: a number from 0 to 1000000000"
        );
        assert_eq!(
            of("[parameters.workers]\ntype = \"real\"\nrange = [1, 4]"),
            "study.toml: parameters.workers.type: \"real\" is not allowed; allowed: \"integer\""
        );
        let distribution = of("[parameters.workers]\ndistribution = \"log-uniform\"\nrange = [1, 4]");
        assert!(distribution.starts_with("study.toml: parameters.workers.distribution: "), "{distribution}");
        assert_eq!(
            of("[parameters.queue]\nrange = [0, 1]\n[input]\ntiles = [\"*.png\"]"),
            "study.toml: input: unknown; known are study, method, parameters"
        );
        assert_eq!(
            error(&format!("[study]\nworkflow = \"nuclei\"\n{METHOD}[parameters.queue]\nfixed = 1")),
            "study.toml: study.workflow: unknown; known are name, seed"
        );
        assert_eq!(
            error("[method]\nkind = \"vbd\"\n[parameters.queue]\nrange = [0, 1]"),
            "study.toml: method.samples: missing; a number of samples is needed"
        );
        let until = "[method]\nkind = \"vbd\"\nsamples = 8\nuntil = { ci_width = 0.1 }\n[parameters.queue]\nrange = [0, 1]";
        assert!(error(until).starts_with("study.toml: method.until: "), "{}", error(until));
        assert!(of("").starts_with("study.toml: parameters: missing; "), "{}", of(""));
    }
}
