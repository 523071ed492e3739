//! `java.util.Random`, which the benchmark's rules use.

/// The 48-bit linear congruential generator of Java's class library.
#[derive(Clone, Debug)]
pub struct JavaRandom(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl JavaRandom {
    /// A generator seeded as by `new Random(seed)`.
    pub fn new(seed: i64) -> Self {
        Self((seed as u64 ^ MULTIPLIER) & MASK)
    }

    /// The next 31 bits as a non-negative number.
    fn next31(&mut self) -> i32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        (self.0 >> 17) as i32
    }

    /// `nextInt(bound)`: uniform in `0 .. bound`. `bound` must be positive.
    pub fn below(&mut self, bound: u32) -> u32 {
        let n = bound as i32;
        let mut u = self.next31();
        if n & (n - 1) == 0 {
            return ((i64::from(n) * i64::from(u)) >> 31) as u32;
        }
        loop {
            let r = u % n;
            // Overflow: the value is in the incomplete last group of `n` values, so Java draws again to be uniform.
            if u.wrapping_sub(r).wrapping_add(n - 1) >= 0 {
                return r as u32;
            }
            u = self.next31();
        }
    }

    /// Uniform in `min ..= max`.
    pub fn range(&mut self, min: u32, max: u32) -> u32 {
        min + self.below(max - min + 1)
    }

    /// The rules' `randomList`: `count` different numbers below `bound` in the order drawn. Each draw picks a position
    /// among the numbers not taken yet. Replaces the content of `out`; `scratch` is a buffer. O(count²); makes exactly
    /// `count` draws.
    pub fn list(&mut self, count: u32, bound: u32, out: &mut Vec<u32>, scratch: &mut Vec<u32>) {
        out.clear();
        scratch.clear();
        for taken in 0..count {
            let mut value = self.below(bound - taken);
            // `scratch` has the numbers already taken, ascending. Skips them to find the free number with index
            // `value`.
            let mut at = 0;
            for &t in scratch.iter() {
                if t > value {
                    break;
                }
                value += 1;
                at += 1;
            }
            scratch.insert(at, value);
            out.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `new Random(42).nextInt(n)`, which is the same on every JVM.
    #[test]
    fn draws_equal_the_published_java_sequence() {
        let mut r = JavaRandom::new(42);
        let drawn: Vec<u32> = (0..10).map(|_| r.below(10)).collect();
        assert_eq!(drawn, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]);
    }

    #[test]
    fn a_list_equals_removal_from_a_pool() {
        for seed in 0..50 {
            let (mut a, mut b) = (JavaRandom::new(seed), JavaRandom::new(seed));
            let (mut out, mut scratch) = (vec![], vec![]);
            a.list(30, 40, &mut out, &mut scratch);
            let mut pool: Vec<u32> = (0..40).collect();
            let expected: Vec<u32> = (0..30)
                .map(|_| pool.remove(b.below(pool.len() as u32) as usize))
                .collect();
            assert_eq!(out, expected);
        }
    }
}
