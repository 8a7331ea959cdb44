//! `pleach tissue --slide`: generates one synthetic slide.

use crate::cli::TissueArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::print_line;
use pleach_pathology::image_io::PyramidFormat;
use pleach_pathology::tissue::slide::{Parallel, SlideTissue, write_slide};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// All cores of the machine.
struct AllCores;

impl Parallel for AllCores {
    fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(count);
        if threads <= 1 {
            return (0..count).map(of).collect();
        }
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            break;
                        }
                        let result = of(number);
                        // A thread that panicked ends the scope, so a poisoned lock has no reader.
                        results
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .push((number, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// Writes a slide of `size_px`.
pub(super) fn execute(args: &TissueArgs, size_px: [u32; 2]) -> CommandResult {
    let slide = SlideTissue::new(args.seed, size_px);
    let format = if args.lossless { PyramidFormat::Deflate } else { PyramidFormat::Jpeg(args.quality) };
    let paths = (args.out.as_path(), args.annotations.as_deref());
    let summary = write_slide(&slide, paths, format, &AllCores, |_| {}).map_err(CommandError::tile)?;
    let nuclei = match &args.annotations {
        Some(path) => format!(", {} nuclei in {}", summary.nuclei, path.display()),
        None => String::new(),
    };
    print_line(&format!(
        "a slide of {} x {} px, {:.1} megapixels with tissue, {:.1} MB in {}{nuclei}",
        size_px[0],
        size_px[1],
        summary.rendered_px as f64 / 1e6,
        summary.bytes as f64 / 1e6,
        args.out.display()
    ));
    Ok(())
}
