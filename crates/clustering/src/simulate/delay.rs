//! Delays of an execution: fixed, or drawn for each job from a Weibull distribution.

use super::draw::unit;

/// Shape of the Weibull distributions in the clustering examples of WorkflowSim 1.0, the simulator of paper 002:
/// `BalancedClusteringExample1` draws each delay with shape 1 and the delay of its command line as scale, which is then also
/// the mean. Papers of the same authors fit overheads, but print no shape that these simulations could use.
pub const WORKFLOWSIM_SHAPE: f64 = 1.0;

/// A delay of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// The same seconds for each job.
    Fixed(f64),
    /// Drawn for each job from a Weibull distribution.
    Weibull {
        /// Shape, above 0. A shape of 1 is the exponential distribution.
        shape: f64,
        /// Scale in seconds, 0 or more.
        scale: f64,
    },
}

impl Delay {
    /// No delay.
    pub const NONE: Self = Self::Fixed(0.0);

    /// Returns the mean in seconds.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(seconds) => seconds,
            Self::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
        }
    }

    /// Returns the Weibull distribution of this shape with the same mean.
    #[must_use]
    pub fn weibull(self, shape: f64) -> Self {
        Self::Weibull { shape, scale: self.mean() / libm::tgamma(1.0 + 1.0 / shape) }
    }

    /// Returns the delay of a job in seconds. It depends on the arguments only.
    pub(crate) fn seconds(self, seed: u64, kind: u64, job: u32) -> f64 {
        match self {
            Self::Fixed(seconds) => seconds,
            // Inverse of the distribution function. Functions of `libm` give the same bits on every machine.
            Self::Weibull { shape, scale } => {
                scale * libm::pow(-libm::log1p(-unit(seed, &[kind, u64::from(job)])), 1.0 / shape)
            }
        }
    }

    /// Returns whether each draw is a finite number of 0 or more seconds.
    pub(crate) fn is_valid(self) -> bool {
        let parameters = match self {
            Self::Fixed(seconds) => seconds >= 0.0,
            Self::Weibull { shape, scale } => shape > 0.0 && shape.is_finite() && scale >= 0.0,
        };
        parameters && self.mean().is_finite()
    }
}

/// Delays that a job adds to the run times of its tasks: the overheads `s` and `c` of paper 002, section 3 and Fig. 3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overheads {
    /// Workflow engine delay `e`: from the end of all parents to the submission of the job. No worker waits for it.
    pub engine: Delay,
    /// Queue delay `q`: the worker of the job waits for it before data transfers.
    pub queue: Delay,
    /// Clustering delay `c`: a job of two or more tasks occupies its worker for it before the first task.
    pub clustering: Delay,
    /// Post delay `p`: from the end of a job to the release of its children. No worker waits for it.
    pub post: Delay,
}

impl Overheads {
    /// No overheads.
    pub const NONE: Self =
        Self { engine: Delay::NONE, queue: Delay::NONE, clustering: Delay::NONE, post: Delay::NONE };

    /// Returns the overheads with each delay drawn from a Weibull distribution of this shape and the present mean.
    #[must_use]
    pub fn weibull(self, shape: f64) -> Self {
        Self {
            engine: self.engine.weibull(shape),
            queue: self.queue.weibull(shape),
            clustering: self.clustering.weibull(shape),
            post: self.post.weibull(shape),
        }
    }

    /// Returns the delays with their names.
    pub(crate) fn named(self) -> [(&'static str, Delay); 4] {
        [
            ("engine delay", self.engine),
            ("queue delay", self.queue),
            ("clustering delay", self.clustering),
            ("post delay", self.post),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weibull_delays_have_the_mean_of_the_fixed_ones() {
        for shape in [0.7, WORKFLOWSIM_SHAPE, 2.5] {
            let delay = Delay::Fixed(60.0).weibull(shape);
            assert!((delay.mean() - 60.0).abs() < 1e-9);
            let draws: Vec<f64> = (0..20_000).map(|job| delay.seconds(7, 1, job)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            assert!((mean - 60.0).abs() < 2.0, "shape {shape}: mean {mean}");
            assert!(draws.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0));
        }
        assert_eq!(Delay::Fixed(60.0).weibull(1.0), Delay::Weibull { shape: 1.0, scale: 60.0 });
    }

    #[test]
    fn the_median_of_a_weibull_delay_follows_its_distribution() {
        let delay = Delay::Weibull { shape: 2.0, scale: 10.0 };
        let median = 10.0 * 2.0_f64.ln().sqrt();
        let below = (0..20_000).filter(|job| delay.seconds(3, 0, *job) < median).count();
        assert!((9_700..10_300).contains(&below), "{below}");
    }

    #[test]
    fn draws_differ_by_seed_kind_and_job_only() {
        let delay = Delay::Fixed(1.0).weibull(1.0);
        let draw = delay.seconds(1, 2, 3);
        assert_eq!(draw.to_bits(), delay.seconds(1, 2, 3).to_bits());
        assert!(
            draw != delay.seconds(2, 2, 3)
                && draw != delay.seconds(1, 3, 3)
                && draw != delay.seconds(1, 2, 4)
        );
    }

    #[test]
    fn impossible_delays_are_invalid() {
        let weibull = |shape, scale| Delay::Weibull { shape, scale };
        for delay in [
            Delay::Fixed(-1.0),
            Delay::Fixed(f64::NAN),
            Delay::Fixed(f64::INFINITY),
            weibull(0.0, 1.0),
            weibull(f64::NAN, 1.0),
            weibull(1.0, -1.0),
            weibull(0.001, 1.0),
        ] {
            assert!(!delay.is_valid(), "{delay:?}");
        }
        assert!(Delay::NONE.is_valid() && weibull(0.5, 0.0).is_valid());
    }
}
