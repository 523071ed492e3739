//! Reproducible pseudo-random numbers for measurements and tests. Not suitable for secrets.

/// The next number of a sequence, by SplitMix64 (Steele, Lea, Flood 2014). Different states yield different numbers,
/// and all 64 bits are equally random.
#[inline]
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers that the authors' program prints for the seed 1234567.
    #[test]
    fn the_published_sequence() {
        let mut state = 1_234_567;
        let first = [(); 5].map(|()| splitmix64(&mut state));
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }
}
