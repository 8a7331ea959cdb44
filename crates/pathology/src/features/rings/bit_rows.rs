//! Rows of bits, one for each pixel.

use std::ops::Range;

/// Pixels of a word. The lowest bit is the leftmost one.
pub(super) const WORD_PX: usize = u64::BITS as usize;

/// Rows of equal length, of a range of the words of an image's rows.
#[derive(Default)]
pub(super) struct BitRows {
    /// First word in the image.
    first: usize,
    /// Words of a row.
    length: usize,
    words: Vec<u64>,
}

impl BitRows {
    pub(super) fn new(words: Range<usize>, rows: usize) -> Self {
        Self { first: words.start, length: words.len(), words: vec![0; words.len() * rows] }
    }

    /// Makes them rows of zeros of these words.
    pub(super) fn clear(&mut self, words: Range<usize>, rows: usize) {
        (self.first, self.length) = (words.start, words.len());
        self.words.clear();
        self.words.resize(words.len() * rows, 0);
    }

    pub(super) fn row(&self, y: usize) -> &[u64] {
        &self.words[y * self.length..][..self.length]
    }

    pub(super) fn row_mut(&mut self, y: usize) -> &mut [u64] {
        &mut self.words[y * self.length..][..self.length]
    }

    /// Returns all rows, of at least one word.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.length.max(1))
    }

    /// Marks `length` pixels from column `x` of the image, at least one.
    pub(super) fn mark(&mut self, y: usize, x: usize, length: u32) {
        let start = x - self.first * WORD_PX;
        let last = start + length as usize - 1;
        let (low, high) = (u64::MAX << (start % WORD_PX), u64::MAX >> (WORD_PX - 1 - last % WORD_PX));
        let words = &mut self.row_mut(y)[start / WORD_PX..=last / WORD_PX];
        match words {
            [word] => *word |= low & high,
            [first, inner @ .., last] => {
                *first |= low;
                inner.fill(u64::MAX);
                *last |= high;
            }
            [] => {}
        }
    }

    /// Marks the pixels from column `x` in the last word of each row, if it has that column.
    pub(super) fn mark_from(&mut self, x: usize) {
        if !x.is_multiple_of(WORD_PX) {
            let last = self.length;
            let rows = self.words.chunks_exact_mut(last.max(1));
            rows.filter_map(|row| row.last_mut()).for_each(|word| *word |= u64::MAX << (x % WORD_PX));
        }
    }
}

/// Appends the last row of `length` words, which begins at `start`, widened by 1 px on both sides.
pub(super) fn widen(rows: &mut Vec<u64>, start: usize, length: usize) {
    let mut left = 0;
    for at in start..start + length {
        let word = rows[at];
        let right = if at + 1 < start + length { rows[at + 1] } else { 0 };
        rows.push(word | word << 1 | word >> 1 | left >> (WORD_PX - 1) | right << (WORD_PX - 1));
        left = word;
    }
}

/// Appends the runs of marked pixels of a row: the number of their first pixel, and of the one after the last. The
/// row begins at pixel `offset` of the image, and these words at word `first` of the row.
pub(super) fn append_runs(
    words: impl Iterator<Item = u64>,
    offset: usize,
    first: usize,
    runs: &mut Vec<i32>,
) {
    let mut at = offset + first * WORD_PX;
    let mut last = 0;
    for word in words {
        // A bit for each pixel that differs from the one before it.
        let mut changes = word ^ (word << 1 | last);
        while changes != 0 {
            // Fewer than 2^31 pixels, as the reader of images ensures.
            runs.push((at + changes.trailing_zeros() as usize) as i32);
            changes &= changes - 1;
        }
        last = word >> (WORD_PX - 1);
        at += WORD_PX;
    }
    if last > 0 {
        runs.push(at as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(row: &[u64]) -> Vec<usize> {
        (0..row.len() * WORD_PX).filter(|x| row[x / WORD_PX] >> (x % WORD_PX) & 1 == 1).collect()
    }

    proptest! {
        #[test]
        fn runs_are_those_that_were_marked(
            runs in prop::collection::vec((0..300_usize, 1..150_u32), 0..6),
            first in 0..3_usize,
        ) {
            let mut rows = BitRows::new(first..first + 8, 2);
            let mut expected = vec![false; 8 * WORD_PX];
            for (x, length) in &runs {
                rows.mark(1, first * WORD_PX + x, *length);
                expected[*x..x + *length as usize].fill(true);
            }
            let expected: Vec<usize> = (0..expected.len()).filter(|x| expected[*x]).collect();
            prop_assert_eq!(&columns(rows.row(1)), &expected);
            prop_assert!(rows.row(0).iter().all(|word| *word == 0));
            let mut found = Vec::new();
            append_runs(rows.row(1).iter().copied(), 1000, first, &mut found);
            let start = (1000 + first * WORD_PX) as i32;
            let pixels: Vec<usize> =
                found.chunks(2).flat_map(|run| run[0]..run[1]).map(|pixel| (pixel - start) as usize).collect();
            prop_assert_eq!(&pixels, &expected);
            // Runs are maximal.
            prop_assert!(found.chunks(2).zip(found.chunks(2).skip(1)).all(|(a, b)| a[1] < b[0]));
            let mut widened = rows.row(1).to_vec();
            widen(&mut widened, 0, 8);
            let beside = |x: &usize| expected.iter().any(|marked| marked.abs_diff(*x) <= 1);
            prop_assert_eq!(columns(&widened[8..]), (0..8 * WORD_PX).filter(beside).collect::<Vec<_>>());
        }
    }

    #[test]
    fn runs_end_with_the_row() {
        let mut rows = BitRows::new(0..2, 1);
        rows.mark(0, 100, 28);
        let mut found = Vec::new();
        append_runs(rows.row(0).iter().copied(), 0, 0, &mut found);
        assert_eq!(found, [100, 128]);
        rows.mark_from(70);
        assert_eq!(columns(rows.row(0)), (70..128).collect::<Vec<_>>());
    }
}
