//! A small random generator whose streams can be started at any thing, so that any part of a generated graph can be
//! generated again without the other parts.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl SplitMix {
    /// The stream of thing `index` of a kind, in the graph with a seed.
    pub(crate) fn stream(seed: u64, kind: u64, index: u64) -> Self {
        let kind = mix(seed.wrapping_add(GOLDEN)) ^ kind.wrapping_mul(GOLDEN);
        Self(mix(mix(kind).wrapping_add(index.wrapping_mul(GOLDEN))))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0 .. bound` (0 when `bound` is 0); the bias is below 2⁻³² times `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Uniform in `min ..= max`.
    pub(crate) fn range(&mut self, min: u32, max: u32) -> u32 {
        min + self.below(max - min + 1)
    }

    /// Returns true with the probability `part` / `whole`.
    pub(crate) fn chance(&mut self, part: u32, whole: u32) -> bool {
        self.below(whole) < part
    }

    /// A random element of a slice, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u32) as usize]
    }

    /// A rank below `bound` by Zipf's law with exponent 1, approximated by octaves: all octaves are equally likely, and
    /// so are the ranks 2ᵏ-1 to 2ᵏ⁺¹-2 of an octave. Uses integers only, so that all machines draw the same numbers.
    pub(crate) fn zipf(&mut self, bound: u32) -> u32 {
        let octaves = u32::BITS - bound.leading_zeros();
        loop {
            let width = 1u32 << self.below(octaves);
            let rank = width - 1 + self.below(width);
            if rank < bound {
                return rank;
            }
            if bound == 0 {
                return 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |k, i| SplitMix::stream(1, k, i).bits();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
    }

    #[test]
    fn ranks_follow_zipf_and_stay_inside() {
        let mut random = SplitMix::stream(7, 0, 0);
        for bound in [1, 2, 3, 1000] {
            let mut seen = vec![0u32; bound as usize];
            (0..40_000).for_each(|_| seen[random.zipf(bound) as usize] += 1);
            assert!(seen[0] >= seen[bound as usize - 1]);
        }
        let mut first = 0;
        (0..100_000).for_each(|_| first += u32::from(random.zipf(1023) == 0));
        assert!(
            (9_000..11_000).contains(&first),
            "one octave in ten: {first}"
        );
    }
}
