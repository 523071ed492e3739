//! Random real numbers and functions that give the same results on every machine. They use only sums, products,
//! quotients and square roots of doubles, which IEEE 754 defines exactly.

use crate::random::SplitMix;
use std::f64::consts::LN_2;

/// Uniform in [0, 1), with 53 random bits.
pub(crate) fn unit(random: &mut SplitMix) -> f64 {
    (random.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A standard normal deviate, by Marsaglia's polar method.
pub(crate) fn deviate(random: &mut SplitMix) -> f64 {
    loop {
        let (u, v) = (2.0 * unit(random) - 1.0, 2.0 * unit(random) - 1.0);
        let s = u * u + v * v;
        if s > 0.0 && s < 1.0 {
            return u * (-2.0 * ln(s) / s).sqrt();
        }
    }
}

/// A standard normal deviate, drawn again if it is beyond two standard deviations.
pub(crate) fn within_two(random: &mut SplitMix) -> f64 {
    loop {
        let z = deviate(random);
        if z.abs() < 2.0 {
            return z;
        }
    }
}

/// The natural logarithm of a positive normal number, with a relative error of about 1e-15. The standard library uses
/// the platform's function, whose last bits differ between platforms.
pub(crate) fn ln(x: f64) -> f64 {
    // x = mantissa · 2^exponent with the mantissa in [√½, √2); its logarithm is 2 artanh of a number less than 0.172.
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut sum = 0.0;
    for k in (0..11).rev() {
        sum = sum * square + 1.0 / f64::from(2 * k + 1);
    }
    2.0 * t * sum + exponent as f64 * LN_2
}

/// e to the power of `x`, with a relative error of about 1e-15; 0 or infinity if the result is not a normal number.
pub(crate) fn exp(x: f64) -> f64 {
    let exponent = (x / LN_2).round();
    if exponent < -1000.0 {
        return 0.0;
    }
    if exponent > 1000.0 {
        return f64::INFINITY;
    }
    let rest = x - exponent * LN_2;
    let mut sum = 1.0;
    for k in (1..18).rev() {
        sum = 1.0 + sum * rest / f64::from(k);
    }
    sum * f64::from_bits(((exponent as i64 + 1023) as u64) << 52)
}

/// `x` to the power of `y`, for positive `x`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        for i in 1..2000u32 {
            for x in [
                f64::from(i) / 1000.0,
                f64::from(i) * 1e9,
                1e-300 * f64::from(i),
            ] {
                let error = (ln(x) - x.ln()).abs();
                assert!(error <= 1e-15 * x.ln().abs().max(1.0), "ln {x}: {error}");
            }
        }
    }

    #[test]
    fn powers_are_right() {
        for i in -4000i32..4000 {
            let x = f64::from(i) / 100.0;
            let error = (exp(x) / x.exp() - 1.0).abs();
            assert!(error < 1e-13, "exp {x}: {error}");
            let base = f64::from(i.abs() + 1);
            assert!((pow(base, -1.6) / base.powf(-1.6) - 1.0).abs() < 1e-12);
        }
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
    }

    #[test]
    fn two_deviations_bound_the_normal() {
        let mut random = SplitMix::stream(1, 2, 3);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| within_two(&mut random)).collect();
        assert!(draws.iter().all(|z| z.abs() < 2.0));
        // A normal distribution cut off at two deviations has the variance 0.7737.
        let variance = draws.iter().map(|z| z * z).sum::<f64>() / f64::from(n);
        assert!((variance - 0.7737).abs() < 0.01, "{variance}");
    }
}
