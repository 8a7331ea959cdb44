//! The authors' designs, as in their Dakota inputs: parameters over continuous ranges, integers truncated
//! afterwards, connectivities among them.
//!
//! The project's samplers are not used, because they sample grids and would share more than the published
//! designs.

/// Random number generator of sufficient quality (SplitMix64, Steele, Lea and Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The 15 parameters: name, range, and whether the authors' code truncates it.
pub(crate) const PARAMETERS: [(&str, f64, f64, bool); 15] = [
    ("B", 210.0, 240.0, true),
    ("G", 210.0, 240.0, true),
    ("R", 210.0, 240.0, true),
    ("T1", 2.5, 7.5, false),
    ("T2", 2.5, 7.5, false),
    ("MorphRecon", 4.0, 8.0, true),
    ("G1", 5.0, 80.0, true),
    ("FillHoles", 4.0, 8.0, true),
    ("minSize", 2.0, 40.0, true),
    ("maxSize", 900.0, 1500.0, true),
    ("G2", 2.0, 40.0, true),
    ("minSizePl", 5.0, 80.0, true),
    ("Watershed", 4.0, 8.0, true),
    ("minSizeSeg", 2.0, 80.0, true),
    ("maxSizeSeg", 900.0, 1500.0, true),
];

/// Parameters of the VBD study: T2, G1, G2, minSize, maxSize, minSizePl, minSizeSeg, MorphRecon.
const EIGHT: [usize; 8] = [4, 6, 10, 8, 9, 11, 13, 5];

/// A parameter set. Values are bits, because they are only compared.
pub(crate) type Set = [u64; 15];

fn value(parameter: usize, unit: f64) -> u64 {
    let (_, low, high, truncated) = PARAMETERS[parameter];
    let value = low + unit * (high - low);
    if truncated { value.trunc().to_bits() } else { value.to_bits() }
}

/// Sampling of the two matrices of a variance-based decomposition.
#[derive(Clone, Copy)]
pub(crate) enum Sampler {
    MonteCarlo,
    LatinHypercube,
    Halton,
}

/// Returns ten sets for each of `samples` rows: the rows of two matrices, and of the first with each column
/// of the second.
pub(crate) fn vbd(sampler: Sampler, samples: usize, seed: u64) -> Vec<Set> {
    let mut random = Random::new(seed);
    let columns: Vec<Vec<f64>> = (0..16).map(|column| units(sampler, column, samples, &mut random)).collect();
    let set = |row: usize, second: &dyn Fn(usize) -> bool| {
        let mut set = [0; 15];
        for (at, parameter) in EIGHT.into_iter().enumerate() {
            set[parameter] = value(parameter, columns[at + if second(at) { 8 } else { 0 }][row]);
        }
        set
    };
    let row = |row: usize| {
        let mixed = (0..8).map(move |column| set(row, &move |at| at == column));
        [set(row, &|_| false), set(row, &|_| true)].into_iter().chain(mixed).collect::<Vec<_>>()
    };
    (0..samples).flat_map(row).collect()
}

/// Returns one column of numbers between 0 and 1.
fn units(sampler: Sampler, column: usize, samples: usize, random: &mut Random) -> Vec<f64> {
    const PRIMES: [usize; 16] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];
    match sampler {
        Sampler::MonteCarlo => (0..samples).map(|_| random.unit()).collect(),
        Sampler::LatinHypercube => {
            let mut units: Vec<f64> =
                (0..samples).map(|stratum| (stratum as f64 + random.unit()) / samples as f64).collect();
            random.shuffle(&mut units);
            units
        }
        Sampler::Halton => {
            let prime = PRIMES[column];
            let digits = |mut number: usize| {
                let (mut unit, mut weight) = (0.0, 1.0);
                while number > 0 {
                    weight /= prime as f64;
                    unit += weight * (number % prime) as f64;
                    number /= prime;
                }
                unit
            };
            (1..=samples).map(digits).collect()
        }
    }
}

/// Returns a MOAT design as PSUADE draws it with 20 partitions: 22 levels, steps of half of them, all 15
/// parameters.
pub(crate) fn moat(evaluations: usize, seed: u64) -> Vec<Set> {
    const LEVELS: usize = 22;
    let mut random = Random::new(seed);
    let mut sets = Vec::new();
    while sets.len() < evaluations {
        let mut levels: Vec<usize> = PARAMETERS.iter().map(|_| random.below(LEVELS)).collect();
        let mut order: Vec<usize> = (0..PARAMETERS.len()).collect();
        random.shuffle(&mut order);
        let point = |levels: &[usize]| {
            let mut set = [0; 15];
            for (parameter, level) in levels.iter().enumerate() {
                set[parameter] = value(parameter, *level as f64 / (LEVELS - 1) as f64);
            }
            set
        };
        sets.push(point(&levels));
        for parameter in order {
            let step = LEVELS / 2;
            levels[parameter] =
                if levels[parameter] < step { levels[parameter] + step } else { levels[parameter] - step };
            sets.push(point(&levels));
        }
    }
    sets.truncate(evaluations);
    sets
}
