//! The commands of the guide's chapter on external models (once a section of the README) run unchanged.

use crate::Outside;
use crate::results::text;
use std::path::Path;

#[test]
fn commands_of_the_chapter_run() {
    let chapter = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/own-model.md"));
    let lines = || chapter.lines().map(str::trim_start);
    let problem = lines().find(|line| line.starts_with('{')).expect("a problem");
    let commands: Vec<&str> = lines().filter_map(|line| line.strip_prefix("pleach ")).collect();
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
