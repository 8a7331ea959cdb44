//! Draws lines at the end of a terminal and redraws them in place: progress bars and watched tables.
//!
//! Each line is cut to the terminal's width, so none wraps. When the terminal becomes narrower, it wraps the lines
//! itself. The next frame counts the rows that they take by then and clears all of them.

use rustix::termios::tcgetwinsize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// 10 frames per second: as many as a user can read, and little traffic on a slow connection.
const FRAME_EVERY: Duration = Duration::from_millis(100);

/// Size of a terminal that does not report its own.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    columns: usize,
    rows: usize,
}

/// Output stream of a live area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn size(self) -> Size {
        let found = match self {
            Self::Stdout => tcgetwinsize(std::io::stdout().as_fd()),
            Self::Stderr => tcgetwinsize(std::io::stderr().as_fd()),
        };
        let known = found.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or(DEFAULT_SIZE, |size| Size { columns: size.ws_col.into(), rows: size.ws_row.into() })
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => std::io::stdout().is_terminal(),
            Self::Stderr => std::io::stderr().is_terminal(),
        }
    }

    fn write(self, text: &str) {
        // A closed terminal cannot be reported.
        let _ = match self {
            Self::Stdout => {
                let mut stream = std::io::stdout().lock();
                stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
            }
            Self::Stderr => std::io::stderr().lock().write_all(text.as_bytes()),
        };
    }
}

/// Lines that are redrawn in place.
#[derive(Debug)]
pub(crate) struct LiveArea {
    stream: Stream,
    reflows: bool,
    drawn: DrawnLines,
    last: Option<Instant>,
}

impl LiveArea {
    /// Creates an area at the cursor. `None` if the stream is not a terminal, or one that cannot move its cursor.
    pub(crate) fn new(stream: Stream) -> Option<Self> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let term = variable("TERM");
        if !stream.is_terminal() || term.is_empty() || term == "dumb" {
            return None;
        }
        // xterm (which sets the variable), rxvt, screen and the Linux console cut lines on a resize. Other terminals
        // rewrap them.
        let cuts = !variable("XTERM_VERSION").is_empty()
            || ["rxvt", "linux"].iter().any(|name| term.starts_with(name))
            || (term.starts_with("screen") && variable("TMUX").is_empty());
        Some(Self { stream, reflows: !cuts, drawn: DrawnLines::default(), last: None })
    }

    /// Shows the lines that `lines` returns for a width. Does nothing within 100 ms of the last frame.
    pub(crate) fn show(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < FRAME_EVERY) {
            return;
        }
        self.last = Some(now);
        self.draw(lines);
    }

    /// Shows final lines and leaves them above the cursor.
    pub(crate) fn leave(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        self.draw(lines);
        if !self.drawn.widths.is_empty() {
            self.stream.write("\r\n");
        }
        self.drawn = DrawnLines::default();
    }

    /// Removes the lines.
    pub(crate) fn clear(&mut self) {
        self.draw(|_| Vec::new());
        self.last = None;
    }

    fn draw(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        let size = self.stream.size();
        // Keep the last column empty: terminals differ in the cursor position after a full line.
        let lines = lines(size.columns.saturating_sub(1));
        let frame = self.drawn.replace(size, self.reflows, &lines);
        self.stream.write(&frame);
    }
}

/// Lines on the screen. The cursor is at the end of the last one.
#[derive(Debug, Default)]
struct DrawnLines {
    /// Width of each line in characters.
    widths: Vec<usize>,
}

impl DrawnLines {
    /// Returns the text that replaces the drawn lines by `lines`.
    fn replace(&mut self, size: Size, reflows: bool, lines: &[String]) -> String {
        let mut frame = String::new();
        if !self.widths.is_empty() {
            let rows_of = |width: &usize| if reflows { width.div_ceil(size.columns).max(1) } else { 1 };
            // The cursor is in the last row, so it moves up one row less than the lines take.
            let above = self.widths.iter().map(rows_of).sum::<usize>() - 1;
            frame.push('\r');
            if above > 0 {
                // Writing to a string cannot fail.
                let _ = write!(frame, "\x1b[{above}A");
            }
            frame.push_str("\x1b[J");
        }
        // Lines beyond the screen would scroll out, and could not be cleared.
        let shown: Vec<String> = lines
            .iter()
            .take(size.rows.saturating_sub(1).max(1))
            .map(|line| cut(line, size.columns - 1))
            .collect();
        frame.push_str(&shown.join("\r\n"));
        self.widths = shown.iter().map(|line| line.chars().count()).collect();
        frame
    }
}

/// Cuts a line to `width` characters. The last one becomes `…`.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

/// Returns a bar of `width` characters, filled by `share`, 0–1.
pub(crate) fn bar(width: usize, share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64) as usize;
    let head = usize::from(filled > 0 && filled < width);
    format!("{}{}{}", "=".repeat(filled - head), ">".repeat(head), " ".repeat(width - filled))
}

/// Returns the width of a bar in a line: a quarter of it, 6–26 characters.
pub(crate) fn bar_width(width: usize) -> usize {
    (width / 4).clamp(6, 26)
}

/// Part of a line with its rank. Rank 0 is the most important.
pub(crate) type Ranked = (u8, String);

/// Joins the parts that fit into `width`, in their order. Omits the least important first.
pub(crate) fn fitting(parts: &[Ranked], width: usize) -> String {
    let mut most = parts.iter().map(|(rank, _)| *rank).max().unwrap_or(0);
    loop {
        let kept: Vec<&str> =
            parts.iter().filter(|(rank, _)| *rank <= most).map(|(_, text)| text.as_str()).collect();
        let line = kept.join(", ");
        if most == 0 || line.chars().count() <= width {
            return cut(&line, width);
        }
        most -= 1;
    }
}

#[cfg(test)]
mod tests;
