//! Times an analysis: `analysis METHOD SIZE PARAMETERS REPETITIONS` prints the median of its seconds.
//!
//! `benches/salib.py` compares it with SALib. SIZE counts trajectories, base samples, evaluations, or
//! evaluations per curve, depending on the method. The first call is not timed, because it starts threads.

#[path = "../benches/analysis/study.rs"]
mod study;

use std::error::Error;
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [method, size, width, repetitions] = &arguments[..] else {
        let methods = study::METHODS.join(", ");
        return Err(format!("usage: analysis METHOD SIZE PARAMETERS REPETITIONS; methods: {methods}").into());
    };
    let mut analysis = study::analysis(method, size.parse()?, width.parse()?)?;
    analysis();
    let mut seconds = Vec::new();
    for _ in 0..repetitions.parse::<usize>()?.max(1) {
        let start = Instant::now();
        analysis();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    writeln!(std::io::stdout(), "{}", seconds[seconds.len() / 2])?;
    Ok(())
}
