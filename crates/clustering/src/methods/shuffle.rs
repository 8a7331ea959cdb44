//! Horizontal clustering by number (paper 002, Algorithm 4).

use super::Size;

/// Cuts a level into jobs of equal numbers of tasks. With [`Size::Jobs`] the level is shuffled first, as WorkflowSim does, and
/// the first `n mod jobs` jobs have one task more. With [`Size::Tasks`] jobs have consecutive tasks, the last one the rest.
pub(super) fn cut(level: &[u32], size: Size, seed: u64, index: usize) -> Vec<Vec<u32>> {
    let jobs = match size {
        Size::Tasks(tasks) => return level.chunks(tasks.max(1)).map(<[u32]>::to_vec).collect(),
        Size::Jobs(jobs) => jobs.max(1),
    };
    let mut tasks = level.to_vec();
    shuffle(&mut tasks, seed, index);
    let (larger, less) = (tasks.len() % jobs, tasks.len() / jobs);
    let (first, rest) = tasks.split_at(larger * (less + 1));
    let jobs = first.chunks(less + 1).chain(rest.chunks(less.max(1)));
    jobs.map(<[u32]>::to_vec).collect()
}

/// Shuffles tasks (Fisher and Yates 1938) with numbers of a seed and a level, the same on every machine.
fn shuffle(tasks: &mut [u32], seed: u64, level: usize) {
    let mut state = word(seed ^ word(level as u64));
    for last in (1..tasks.len()).rev() {
        state = state.wrapping_add(GAMMA);
        // The upper word of the product is uniform up to 2⁻⁶⁴ × tasks.
        let other = (u128::from(word(state)) * (last as u128 + 1)) >> 64;
        tasks.swap(last, other as usize);
    }
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a word (SplitMix64, Steele, Lea and Flood 2014).
fn word(state: u64) -> u64 {
    let mut word = state.wrapping_add(GAMMA);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_the_same_on_every_machine() {
        let mut tasks = [0, 1, 2, 3, 4, 5, 6, 7];
        shuffle(&mut tasks, 0, 0);
        assert_eq!(tasks, [4, 0, 2, 6, 3, 5, 1, 7]);
    }

    #[test]
    fn each_position_gets_each_task_equally_often() {
        let mut counts = [[0_u32; 4]; 4];
        for seed in 0..4000 {
            let mut tasks = [0, 1, 2, 3];
            shuffle(&mut tasks, seed, 3);
            for (position, task) in tasks.iter().enumerate() {
                counts[position][*task as usize] += 1;
            }
        }
        // 1,000 ± 6 standard deviations of 27.
        assert!(counts.iter().flatten().all(|count| count.abs_diff(1000) < 164), "{counts:?}");
    }
}
