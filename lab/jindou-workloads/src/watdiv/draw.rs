//! Draws random numbers from the distributions of a model.

use super::model::Distribution;
use crate::random::SplitMix;
use crate::real::{deviate, unit};
use std::sync::Arc;

/// A normal deviate with mean 1/2 and standard deviation 1/6, cut off at 0 and 1.
pub(crate) fn normal(random: &mut SplitMix) -> f64 {
    (0.5 + deviate(random) * (0.5 / 3.0)).clamp(0.0, 1.0)
}

/// Zipf's law over `0 .. n` with exponent 1, as the sums of 1/1 + … + 1/i.
#[derive(Debug)]
pub(crate) struct Zipf(Vec<f64>);

impl Zipf {
    /// Creates the table for `n` values, of 8 bytes each.
    pub(crate) fn new(n: u32) -> Self {
        let mut sum = 0.0;
        let sums = (1..=n).map(|i| {
            sum += 1.0 / f64::from(i);
            sum
        });
        Self(sums.collect())
    }

    /// Draws a number; 0 is the most likely one, and the result for an empty table. O(log n).
    pub(crate) fn draw(&self, random: &mut SplitMix) -> u32 {
        let all = self.0.last().copied().unwrap_or(0.0);
        let at = unit(random) * all;
        let rank = self.0.partition_point(|sum| *sum <= at);
        rank.min(self.0.len().saturating_sub(1)) as u32
    }
}

/// Draws numbers from 0 to `last`: a random number of [0, 1] times `factor`, plus `bias`, rounded down.
#[derive(Debug)]
pub(crate) struct PlaceDraw {
    distribution: Distribution,
    factor: f64,
    bias: f64,
    last: u64,
    /// Table for a Zipfian distribution over all numbers; `None` for other distributions.
    zipf: Option<Arc<Zipf>>,
}

impl PlaceDraw {
    /// Draws one of `n` entities; 0 if there are none. Like the original, rounds to the nearest number, so entity 0 has
    /// half the probability of others, and the last one one and a half times as much. Results of queries about an
    /// entity 0 depend on this.
    pub(crate) fn entities(distribution: Distribution, n: u32, zipf: Option<Arc<Zipf>>) -> Self {
        Self {
            distribution,
            factor: n.into(),
            bias: 0.5,
            last: n.saturating_sub(1).into(),
            zipf,
        }
    }

    /// Draws a number from 0 to `last`, rounded to the nearest: 0 and `last` have half the probability of others.
    pub(crate) fn nearest(distribution: Distribution, last: u64, zipf: Option<Arc<Zipf>>) -> Self {
        Self {
            distribution,
            factor: last as f64,
            bias: 0.5,
            last,
            zipf,
        }
    }

    /// Draws a number below `n`; 0 if `n` is 0.
    pub(crate) fn below(distribution: Distribution, n: u64, zipf: Option<Arc<Zipf>>) -> Self {
        Self {
            distribution,
            factor: n as f64,
            bias: 0.0,
            last: n.saturating_sub(1),
            zipf,
        }
    }

    /// Draws a number.
    pub(crate) fn draw(&self, random: &mut SplitMix) -> u64 {
        let part = match (self.distribution, &self.zipf) {
            (Distribution::Zipfian, Some(zipf)) => return zipf.draw(random).into(),
            (Distribution::Normal, _) => normal(random),
            _ => unit(random),
        };
        ((part * self.factor + self.bias) as u64).min(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares mean, deviation and tails with those of the definition, within five standard errors.
    #[test]
    fn normal_draws_have_the_mean_deviation_and_tails_they_should() {
        let n = 200_000;
        let mut random = SplitMix::stream(1, 2, 3);
        let draws: Vec<f64> = (0..n).map(|_| normal(&mut random)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 5.0 / 6.0 / f64::from(n).sqrt());
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Cutting off at three standard deviations reduces the variance by 0.4 %.
        assert!((variance * 36.0 - 0.996).abs() < 0.002 + 5.0 * (2.0 / f64::from(n)).sqrt());
        for (bound, share) in [(1.0 / 3.0, 0.158_655), (0.5, 0.5), (2.0 / 3.0, 0.841_345)] {
            let below = draws.iter().filter(|x| **x < bound).count() as f64;
            let error = (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((below / f64::from(n) - share).abs() < 5.0 * error);
        }
    }

    #[test]
    fn zipf_draws_fall_as_one_over_rank() {
        let (n, things) = (200_000, 100);
        let zipf = Zipf::new(things);
        let mut random = SplitMix::stream(4, 5, 6);
        let mut seen = vec![0u32; things as usize];
        (0..n).for_each(|_| seen[zipf.draw(&mut random) as usize] += 1);
        let all: f64 = (1..=things).map(|i| 1.0 / f64::from(i)).sum();
        for (rank, count) in seen.iter().enumerate() {
            let share = 1.0 / (rank as f64 + 1.0) / all;
            let error = (share * (1.0 - share) * f64::from(n)).sqrt();
            assert!((f64::from(*count) - share * f64::from(n)).abs() < 5.0 * error);
        }
        assert_eq!(Zipf::new(0).draw(&mut random), 0);
    }

    #[test]
    fn the_first_place_gets_half_and_the_last_one_and_a_half() {
        let mut random = SplitMix::stream(7, 8, 9);
        let places = PlaceDraw::entities(Distribution::Uniform, 4, None);
        let mut seen = [0u32; 4];
        (0..80_000).for_each(|_| seen[places.draw(&mut random) as usize] += 1);
        for (count, due) in seen.iter().zip([10_000.0, 20_000.0, 20_000.0, 30_000.0f64]) {
            assert!(
                (f64::from(*count) - due).abs() < 5.0 * due.sqrt(),
                "{seen:?}"
            );
        }
    }

    #[test]
    fn places_stay_inside_of_their_range() {
        let mut random = SplitMix::stream(1, 1, 1);
        for distribution in [
            Distribution::Uniform,
            Distribution::Normal,
            Distribution::Zipfian,
        ] {
            for n in [0, 1, 2, 9] {
                let zipf = |n: u32| Some(Arc::new(Zipf::new(n)));
                let places = [
                    PlaceDraw::entities(distribution, n, zipf(n)),
                    PlaceDraw::nearest(distribution, n.into(), zipf(n + 1)),
                    PlaceDraw::below(distribution, n.into(), zipf(n)),
                ];
                for (places, last) in places.iter().zip([n.max(1) - 1, n, n.max(1) - 1]) {
                    let seen: Vec<u64> = (0..2000).map(|_| places.draw(&mut random)).collect();
                    assert!(seen.iter().all(|p| *p <= last.into()));
                    assert!(seen.contains(&0) && seen.contains(&last.into()));
                }
            }
        }
    }
}
