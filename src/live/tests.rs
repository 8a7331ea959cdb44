//! Tests frames on a simulated terminal that rewraps lines on a resize.

use super::*;

/// Terminal that rewraps: written lines, wrapped into rows of its width, with the cursor at the end of the last line.
struct Terminal {
    columns: usize,
    lines: Vec<String>,
}

impl Terminal {
    fn rows(&self) -> Vec<String> {
        let rows = self.lines.iter().flat_map(|line| {
            let letters: Vec<char> = line.chars().collect();
            let rows: Vec<String> = letters.chunks(self.columns).map(|row| row.iter().collect()).collect();
            if rows.is_empty() { vec![String::new()] } else { rows }
        });
        rows.collect()
    }

    /// Writes a frame: text and line breaks, preceded by a move up and a clear.
    fn write(&mut self, frame: &str) {
        let mut text = frame;
        if let Some(rest) = text.strip_prefix('\r').filter(|rest| !rest.starts_with('\n')) {
            let mut rows = self.rows();
            let (up, rest) = match rest.strip_prefix("\x1b[").and_then(|rest| rest.split_once('A')) {
                Some((up, rest)) if up.bytes().all(|digit| digit.is_ascii_digit()) => {
                    (up.parse().unwrap(), rest)
                }
                _ => (0, rest),
            };
            text = rest.strip_prefix("\x1b[J").expect("what is below is cleared");
            rows.truncate(rows.len() - 1 - up);
            self.lines = rows;
            self.lines.push(String::new());
        }
        assert!(!text.contains('\x1b'), "{text:?}");
        for (place, line) in text.split("\r\n").enumerate() {
            if place > 0 {
                self.lines.push(String::new());
            }
            self.lines.last_mut().unwrap().push_str(line);
        }
    }
}

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn frame_after_resize_leaves_no_rows_of_the_one_before() {
    let long =
        ["first line of forty letters or some more", "second line, which is a bit longer than that one"];
    for columns in [120, 80, 60, 40, 25, 11] {
        let mut terminal = Terminal { columns: 80, lines: lines(&["$ pleach run", ""]) };
        let mut drawn = DrawnLines::default();
        let frame = drawn.replace(Size { columns: 80, rows: 24 }, true, &lines(&long));
        terminal.write(&frame);
        terminal.columns = columns;
        for _ in 0..2 {
            let frame = drawn.replace(Size { columns, rows: 24 }, true, &lines(&long));
            terminal.write(&frame);
        }
        let kept: Vec<String> = long.iter().map(|line| cut(line, columns - 1)).collect();
        let mut expected = Terminal { columns, lines: lines(&["$ pleach run"]) }.rows();
        expected.extend(kept);
        assert_eq!(terminal.rows(), expected, "{columns}");
        let frame = drawn.replace(Size { columns, rows: 24 }, true, &[]);
        terminal.write(&frame);
        assert_eq!(terminal.lines.last().map(String::as_str), Some(""));
        assert!(terminal.rows().iter().all(|row| !row.contains("line")), "{:?}", terminal.rows());
    }
}

#[test]
fn frame_never_exceeds_screen() {
    let all: Vec<String> = (0..50).map(|number| format!("{number} {}", "x".repeat(200))).collect();
    let mut drawn = DrawnLines::default();
    let frame = drawn.replace(Size { columns: 40, rows: 10 }, true, &all);
    assert_eq!(frame.split("\r\n").count(), 9);
    assert!(frame.split("\r\n").all(|line| line.chars().count() == 39 && line.ends_with('…')), "{frame}");
}

#[test]
fn terminal_that_cuts_lines_keeps_rows_above() {
    let mut drawn = DrawnLines::default();
    drawn.replace(Size { columns: 80, rows: 24 }, false, &lines(&["x".repeat(70).as_str(), "y"]));
    let frame = drawn.replace(Size { columns: 20, rows: 24 }, false, &lines(&["z"]));
    assert_eq!(frame, "\r\x1b[1A\x1b[Jz");
}

#[test]
fn bar_is_filled_by_share() {
    assert_eq!([0.0, 0.5, 1.0, 2.0].map(|share| bar(4, share)), ["    ", "=>  ", "====", "===="]);
    assert_eq!([40, 60, 80, 120].map(bar_width), [10, 15, 20, 26]);
}

#[test]
fn least_important_parts_are_left_out_first() {
    let parts = [(2, "120 tasks run".to_owned()), (3, "12 MB held".to_owned()), (0, "5s left".to_owned())];
    assert_eq!(fitting(&parts, 80), "120 tasks run, 12 MB held, 5s left");
    assert_eq!(fitting(&parts, 30), "120 tasks run, 5s left");
    assert_eq!(fitting(&parts, 12), "5s left");
    assert_eq!(fitting(&parts, 4), "5s …");
}
