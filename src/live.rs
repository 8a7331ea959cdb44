//! Lines at the end of a terminal that are redrawn in place: progress bars and tables that are watched.
//!
//! Each line is cut to the width of the terminal, so that none wraps. Where the terminal has become narrower since, it
//! has wrapped the lines itself: the rows that they take by then are counted and cleared, and nothing is left of them.

use rustix::termios::tcgetwinsize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// 10 frames a second: as many as can be read, and nothing to a slow connection.
const FRAME_EVERY: Duration = Duration::from_millis(100);

/// Size of a terminal that does not know its own.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    columns: usize,
    rows: usize,
}

/// The stream that a live area is drawn on.
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
        // Nothing can be done about a terminal that is gone.
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
    drawn: Drawn,
    last: Option<Instant>,
}

impl LiveArea {
    /// An area at the cursor; `None` where the stream is no terminal, or one that cannot move its cursor.
    pub(crate) fn new(stream: Stream) -> Option<Self> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let term = variable("TERM");
        if !stream.is_terminal() || term.is_empty() || term == "dumb" {
            return None;
        }
        // These cut lines where the others wrap them anew: xterm (which sets the variable), rxvt, screen and the console.
        let cuts = !variable("XTERM_VERSION").is_empty()
            || ["rxvt", "linux"].iter().any(|name| term.starts_with(name))
            || (term.starts_with("screen") && variable("TMUX").is_empty());
        Some(Self { stream, reflows: !cuts, drawn: Drawn::default(), last: None })
    }

    /// Shows lines that `lines` makes for a width, unless others were shown just now.
    pub(crate) fn show(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < FRAME_EVERY) {
            return;
        }
        self.last = Some(now);
        self.draw(lines);
    }

    /// Shows lines for the last time, and leaves them above the cursor.
    pub(crate) fn leave(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        self.draw(lines);
        if !self.drawn.widths.is_empty() {
            self.stream.write("\r\n");
        }
        self.drawn = Drawn::default();
    }

    /// Removes what is shown.
    pub(crate) fn clear(&mut self) {
        self.draw(|_| Vec::new());
        self.last = None;
    }

    fn draw(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        let size = self.stream.size();
        // The last column stays empty: a full line would leave the cursor in a state of its own.
        let lines = lines(size.columns.saturating_sub(1));
        let frame = self.drawn.replace(size, self.reflows, &lines);
        self.stream.write(&frame);
    }
}

/// The lines on the screen, of which the last has the cursor at its end.
#[derive(Debug, Default)]
struct Drawn {
    /// Letters of each line.
    widths: Vec<usize>,
}

impl Drawn {
    /// The text that puts `lines` in place of those drawn before.
    fn replace(&mut self, size: Size, reflows: bool, lines: &[String]) -> String {
        let mut frame = String::new();
        if !self.widths.is_empty() {
            let rows_of = |width: &usize| if reflows { width.div_ceil(size.columns).max(1) } else { 1 };
            let above = self.widths.iter().map(rows_of).sum::<usize>() - 1;
            frame.push('\r');
            if above > 0 {
                // Writing to a string does not fail.
                let _ = write!(frame, "\x1b[{above}A");
            }
            frame.push_str("\x1b[J");
        }
        // What does not fit on the screen would scroll, and could not be cleared.
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

/// The first letters of a line.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

/// A bar of `width` letters, filled by `share` of 1.
pub(crate) fn bar(width: usize, share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64) as usize;
    let head = usize::from(filled > 0 && filled < width);
    format!("{}{}{}", "=".repeat(filled - head), ">".repeat(head), " ".repeat(width - filled))
}

/// Letters of a bar in a line of `width`: a quarter of it.
pub(crate) fn bar_width(width: usize) -> usize {
    (width / 4).clamp(6, 26)
}

/// A part of a line, of more importance the lower its rank.
pub(crate) type Ranked = (u8, String);

/// As many parts as fit into `width`, the least important left out first, joined in their order.
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
