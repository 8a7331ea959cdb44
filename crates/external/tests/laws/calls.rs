//! Arguments of functions: numbers, choices, constants, seeds, and the result of a setup.

use crate::python::{Package, entry};
use pleach_regions::DataRegion;
use pleach_workflow::{Real, Value};

fn real(number: f64) -> Value {
    Value::Real(Real::try_from(number).unwrap())
}

fn number(regions: &[DataRegion]) -> f64 {
    match regions {
        [DataRegion::Scalar(number)] => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_arrive_with_their_types_and_bits() {
    let arguments = r#"arguments = [
        { name = "whole", type = "integer", low = -9007199254740992, high = 9007199254740992 },
        { name = "real", type = "real", low = -1e308, high = 1e308 },
        { name = "level", type = "integer", values = [1, 3] },
        { name = "model", choices = { 1 = "cpsam", -2 = "größe" } },
    ]
    constants = { flag = true, text = "a", list = [1, 2.5], nested = { x = 1 } }"#;
    let manifest = entry("typed", arguments)
        + &entry("real", "arguments = [{ name = \"x\", type = \"real\", low = -1e308, high = 1e308 }]");
    let module = r#"
def typed(whole, real, level, model, flag, text, list, nested):
    assert type(whole) is int and type(real) is float and type(level) is int, (whole, real, level)
    assert flag is True and text == "a" and list == [1, 2.5] and nested == {"x": 1}
    assert type(list[0]) is int
    return {"cpsam": 1000, "größe": 2000}[model] + whole + level
def real(x):
    assert type(x) is float, type(x)
    return x
"#;
    let Some(package) = Package::new("arguments_arrive_with_their_types_and_bits", &manifest, module) else {
        return;
    };
    let run = |whole, level, model| {
        let arguments = [Value::Integer(whole), real(3.0), Value::Integer(level), Value::Integer(model)];
        package
            .run("typed", &[], &arguments)
            .map(|regions| number(&regions))
            .map_err(|error| error.to_string())
    };
    assert_eq!(run(50, 3, 1), Ok(1053.0));
    assert_eq!(run(-50, 1, -2), Ok(1951.0));
    assert_eq!(run(0, 2, 1).unwrap_err(), "level = 2; one of 1 3 is allowed");
    for x in
        [0.1, 0.0, 1.0, 1e300, f64::from_bits(1), f64::EPSILON, 1e16, 123_456_789_012_345_680.0, 2.0 / 3.0]
    {
        let found = number(&package.run("real", &[], &[real(x)]).unwrap());
        assert_eq!(found.to_bits(), x.to_bits(), "{x:?}");
    }
}

#[test]
fn seeds_follow_the_arguments() {
    let lines =
        "determinism = \"seeded\"\narguments = [{ name = \"x\", type = \"real\", low = 0, high = 1 }]";
    let manifest = entry("seeded", lines) + &entry("other", &format!("function = \"m:seeded\"\n{lines}"));
    let module = "import numpy as np\ndef seeded(x, seed):\n    np.random.seed(seed)\n    return seed\n";
    let Some(package) = Package::new("seeds_follow_the_arguments", &manifest, module) else { return };
    let seed = |function: &str, x| number(&package.run(function, &[], &[real(x)]).unwrap());
    assert_eq!(seed("seeded", 0.5), seed("seeded", 0.5));
    assert_ne!(seed("seeded", 0.5), seed("seeded", 0.25));
    assert_ne!(seed("seeded", 0.5), seed("other", 0.5));
}

#[test]
fn setup_is_called_once_a_process() {
    let setup = "setup = \"m:load\"\n";
    let manifest = entry("first", setup) + &entry("second", setup) + &entry("plain", "");
    let module = r#"
def load():
    mark("setups")
    return {"weight": 7}
def first(model):
    model["weight"] += 1
    return model["weight"]
def second(model):
    return model["weight"]
def plain():
    return os.getpid()
"#;
    let Some(package) = Package::new("setup_is_called_once_a_process", &manifest, module) else { return };
    assert_eq!(package.number("first"), Ok(8.0));
    assert_eq!(package.number("second"), Ok(8.0), "operations of a setup share processes");
    assert_eq!(package.marks("setups").len(), 1);
    let plain = package.number("plain").unwrap() as u32;
    assert_ne!(package.marks("setups"), [plain]);
    package.pool.clear();
    assert_eq!(package.number("first"), Ok(8.0));
    assert_eq!(package.marks("setups").len(), 2);
}
