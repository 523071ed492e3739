//! Random numbers for measurements and tests.

/// A small random number generator (xorshift*), whose numbers are the same on every machine.
#[derive(Clone, Debug)]
pub struct XorShift(u64);

impl XorShift {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// A random number less than `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(n.max(1))) >> 32) as u32
    }
}
