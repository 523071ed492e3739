//! Bars as inline SVG. Lengths are percentages and text stays outside, so a bar fits any width and its labels stay
//! as large as the page's other text.

use std::fmt::Write;

/// A scale from numbers to 0..=100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From 0 to this.
    Linear(f64),
    /// From ten to the first power to ten to the second.
    Log(i32, i32),
}

impl Scale {
    /// A logarithmic scale of whole decades around all positive numbers of `of`.
    pub fn log_around(of: impl IntoIterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for x in of.into_iter().filter(|x| x.is_finite() && *x > 0.0) {
            least = least.min(x);
            most = most.max(x);
        }
        if most == 0.0 {
            return Self::Log(0, 1);
        }
        let low = least.log10().floor() as i32;
        let high = (most.log10().ceil() as i32).max(low + 1);
        // What is exactly on the first decade would have no length.
        Self::Log(
            if least.log10() - f64::from(low) < 0.05 {
                low - 1
            } else {
                low
            },
            high,
        )
    }

    /// Where a number is, in percent, with two digits.
    pub fn percent(self, x: f64) -> f64 {
        let part = match self {
            Self::Linear(most) => x / most.max(f64::MIN_POSITIVE),
            Self::Log(low, high) => {
                (x.max(f64::MIN_POSITIVE).log10() - f64::from(low)) / f64::from(high - low)
            }
        };
        (part.clamp(0.0, 1.0) * 1e4).round() / 1e2
    }

    /// The numbers that get a line.
    pub fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear(most) => (0..=4).map(|i| most * f64::from(i) / 4.0).collect(),
            Self::Log(low, high) => (low..=high).map(|e| 10f64.powi(e)).collect(),
        }
    }
}

/// One bar: its length, from where to where it varied, whether it was cut off, and its colour's number.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// The number it stands for.
    pub value: f64,
    /// The least and the most.
    pub range: Option<(f64, f64)>,
    /// True if the true value is longer.
    pub cut: bool,
    /// The colour's number, which stands for the engine.
    pub colour: usize,
}

/// A bar on its scale. It is decoration for those who see it: the number must stand alongside it as text.
pub fn bar(b: Bar, scale: Scale, out: &mut String) {
    let _ = write!(
        out,
        "<svg class=\"bar\" aria-hidden=\"true\" width=\"100%\" height=\"16\">"
    );
    for t in scale.ticks() {
        let x = scale.percent(t);
        let _ = write!(
            out,
            "<line class=\"tick\" x1=\"{x}%\" x2=\"{x}%\" y1=\"0\" y2=\"16\"/>"
        );
    }
    let _ = write!(
        out,
        "<rect class=\"c{}{}\" x=\"0\" y=\"3\" width=\"{}%\" height=\"10\" rx=\"2\"/>",
        b.colour,
        if b.cut { " cut" } else { "" },
        scale.percent(b.value)
    );
    if let Some((least, most)) = b.range {
        let (x1, x2) = (scale.percent(least), scale.percent(most));
        let _ = write!(
            out,
            "<line class=\"range\" x1=\"{x1}%\" x2=\"{x2}%\" y1=\"8\" y2=\"8\"/>"
        );
    }
    *out += "</svg>";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades() {
        assert_eq!(Scale::log_around([0.5, 30.0]), Scale::Log(-1, 2));
        assert_eq!(Scale::log_around([1.0, 1.0]), Scale::Log(-1, 1));
        assert_eq!(Scale::log_around([]), Scale::Log(0, 1));
        let s = Scale::Log(-1, 3);
        assert_eq!(s.percent(10.0), 50.0);
        assert_eq!(s.percent(1e9), 100.0);
        assert_eq!(s.percent(0.0), 0.0);
        assert_eq!(Scale::Linear(8.0).percent(2.0), 25.0);
        assert_eq!(Scale::Linear(0.0).percent(0.0), 0.0);
    }

    #[test]
    fn a_bar_has_its_length() {
        let mut out = String::new();
        bar(
            Bar {
                value: 10.0,
                range: Some((1.0, 100.0)),
                cut: true,
                colour: 3,
            },
            Scale::Log(0, 2),
            &mut out,
        );
        assert!(
            out.contains("class=\"c3 cut\"") && out.contains("width=\"50%\""),
            "{out}"
        );
        assert!(out.contains("x1=\"0%\" x2=\"100%\" y1=\"8\""), "{out}");
    }
}
