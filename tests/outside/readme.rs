//! The commands of the README's section on models of one's own, as they stand there.

use crate::Outside;
use crate::results::text;
use std::path::Path;

#[test]
fn the_commands_of_the_readme_run() {
    let readme = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let (_, section) = readme.split_once("\n## With a model of your own\n").expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let problem = section.lines().find(|line| line.starts_with('{')).expect("a problem");
    let commands: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("pleach ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    let outside = Outside::ishigami();
    outside.write("problem.json", problem);
    for command in commands {
        outside.done(command);
        if command.ends_with("samples.csv") {
            outside.respond("samples.csv", "responses.csv");
        }
    }
    assert!(
        outside.path("indices/indices.csv").is_file() && outside.path("plots/second-order.png").is_file()
    );
    assert!(outside.path("screening.parquet").is_file());
}
