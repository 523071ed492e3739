//! A least-squares line through logarithms, which gives the exponent of a power law.

/// A slope with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    /// `None` with two points, through which every line fits exactly.
    pub error: Option<f64>,
}

/// Least squares of ln y on ln x, so that y grows as x to the power of the slope. `None` with fewer than two different
/// x, or if a value is not positive.
pub fn slope(x: &[f64], y: &[f64]) -> Option<Slope> {
    let points: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = points.len() as f64;
    if points.iter().any(|p| !p.0.is_finite() || !p.1.is_finite()) {
        return None;
    }
    let mx = points.iter().map(|p| p.0).sum::<f64>() / n;
    let my = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    if points.len() < 2 || sxx == 0.0 {
        return None;
    }
    let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>() / sxx;
    let rest: f64 = points
        .iter()
        .map(|p| (p.1 - my - slope * (p.0 - mx)).powi(2))
        .sum();
    let error = (points.len() > 2).then(|| (rest / (n - 2.0) / sxx).sqrt());
    Some(Slope { slope, error })
}

/// The slope in a word.
pub fn verdict(slope: f64) -> &'static str {
    match slope {
        s if s < 0.15 => "constant",
        s if s < 0.9 => "less than linear",
        s if s <= 1.1 => "linear",
        _ => "more than linear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_found_again() {
        let x = [1.0, 2.0, 8.0, 64.0];
        for power in [0.0, 0.5, 1.0, 2.0] {
            let y = x.map(|x: f64| 3.0 * x.powf(power));
            let s = slope(&x, &y).unwrap();
            assert!((s.slope - power).abs() < 1e-9 && s.error.unwrap() < 1e-6);
        }
        assert_eq!(slope(&x, &[1.0, 0.0, 1.0, 1.0]), None);
        assert_eq!(slope(&[1.0], &[1.0]), None);
        assert_eq!(slope(&[2.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(slope(&[1.0, 2.0], &[1.0, 2.0]).unwrap().error, None);
    }

    /// Compared with a fit computed by hand: points (0, 0), (1, 1), (2, 0) have slope 0 and a sum of squared residuals
    /// of 2/3.
    #[test]
    fn the_error_is_the_textbooks() {
        let e = std::f64::consts::E;
        let s = slope(&[1.0, e, e * e], &[1.0, e, 1.0]).unwrap();
        assert!(s.slope.abs() < 1e-12);
        assert!((s.error.unwrap() - (2.0f64 / 3.0 / 2.0).sqrt()).abs() < 1e-12);
    }
}
