//! An example study file.

/// The example of `design.md`, reduced to the lines that `edits` may change.
pub(crate) const EXAMPLE: &str = r#"[study]
name = "nuclei-moat"
workflow = "nuclei"
seed = 500
[input]
tiles = ["tiles/*.png"]
normalize = true
reference = "defaults"
[method]
sampler = "morris"
kind = "moat"
trajectories = 10
levels = 20
[response]
metric = "dice"
[parameters.G1]
range = [5, 80]
step = 5
[parameters.FillHoles]
values = [4, 8]
"#;
