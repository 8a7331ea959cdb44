//! `pleach demo`: a study of the built-in application, on generated tissue or on tiles of the user.

use super::execute as make_tissue;
use crate::cli::{self, Command, DemoArgs, TissueArgs};
use crate::command;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_workflow::Registry;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

/// Generated tiles, and their side in pixels: enough for a study of some seconds.
const TILES: NonZeroU32 = NonZeroU32::new(2).expect("more than 0");
const SIZE_PX: u32 = 512;

/// The study, without its tiles.
const STUDY: &str = include_str!("demo.toml");

/// Runs the command.
pub(in crate::command) fn execute(args: &DemoArgs, registry: &Registry) -> CommandResult {
    let writing =
        |error: std::io::Error| CommandError::writing(format_args!("--out {}", args.out.display()), &error);
    let own: Vec<String> = args.tiles.iter().map(|tile| absolute(tile)).collect::<CommandResult<_>>()?;
    fs::create_dir_all(&args.out).map_err(writing)?;
    let study = args.out.join("study.toml");
    let tiles = if own.is_empty() {
        let out = args.out.join("tiles");
        let (slide, annotations) = (None, None);
        let (size, count, seed, lossless, quality) = (SIZE_PX, TILES, 1, false, 0);
        make_tissue(&TissueArgs {
            out,
            slide,
            volume: None,
            annotations,
            lossless,
            quality,
            size,
            count,
            seed,
        })?;
        vec!["tiles/*.png".to_owned()]
    } else {
        own
    };
    let tiles: Vec<toml::Value> = tiles.into_iter().map(toml::Value::String).collect();
    fs::write(&study, STUDY.replace("TILES", &toml::Value::Array(tiles).to_string())).map_err(writing)?;
    let results = args.out.join("results");
    let run = cli::parsed([
        "pleach".as_ref(),
        "run".as_ref(),
        study.as_os_str(),
        "--out".as_ref(),
        results.as_os_str(),
    ]);
    let Some(Command::Run(run)) = run else {
        return Err(CommandError::defect("the arguments of the demo are not those of pleach run"));
    };
    command::run::execute(&run, registry)?;
    print_line(&format!("\nThe report: {}", results.join("report.html").display()));
    Ok(())
}

/// Returns the path of a tile for a study file in another folder.
fn absolute(tile: &Path) -> CommandResult<String> {
    let path =
        tile.canonicalize().map_err(|error| CommandError::Input(format!("{}: {error}", tile.display())))?;
    let path = path.into_os_string().into_string();
    path.map_err(|_| CommandError::Input(format!("{}: a path in UTF-8 is allowed", tile.display())))
}
