//! Draws latencies as curves: an SVG with one panel per run. Also writes them as CSV.

use super::histogram::Histogram;
use crate::svg::{Canvas, Colour, Stroke};
use std::fmt::Write as _;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;

/// The cumulative distributions of one run.
pub struct Panel<'a> {
    pub title: String,
    pub curves: Vec<(&'a str, &'a Histogram)>,
}

/// Panels side by side, with the same logarithmic axis of latency in all.
pub fn svg(panels: &[Panel<'_>]) -> String {
    let all = || {
        panels
            .iter()
            .flat_map(|p| &p.curves)
            .filter(|c| c.1.count() > 0)
    };
    let low = all()
        .map(|c| c.1.quantile(0.0).as_secs_f64())
        .fold(f64::MAX, f64::min);
    let high = all().map(|c| c.1.max().as_secs_f64()).fold(0.0, f64::max);
    let (from, to) = if high > 0.0 {
        (
            low.max(1e-7).log10().floor(),
            high.log10().ceil().max(low.log10().floor() + 1.0),
        )
    } else {
        (-6.0, 0.0)
    };
    let full = WIDTH * panels.len() as f64;
    let legend = all().map(|c| c.0).fold(vec![], |mut l: Vec<&str>, n| {
        if !l.contains(&n) {
            l.push(n);
        }
        l
    });
    let mut out = Canvas::new(
        full,
        HEIGHT + 22.0,
        "Latencies: shares of queries that took no longer",
    );
    for (n, panel) in panels.iter().enumerate() {
        let left = WIDTH * n as f64 + LEFT;
        let (w, h) = (WIDTH - LEFT - 16.0, HEIGHT - TOP - BOTTOM);
        let x = |seconds: f64| left + (seconds.max(1e-9).log10() - from) / (to - from) * w;
        let y = |share: f64| TOP + (1.0 - share) * h;
        out.title(left, 20.0, &panel.title);
        let mut power = from;
        while power <= to {
            out.vertical(x(10f64.powf(power)), TOP, h, &unit(power as i32));
            power += 1.0;
        }
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            out.horizontal(left, y(share), w, &share.to_string());
        }
        for (name, curve) in &panel.curves {
            let points = curve.cumulative();
            let Some(first) = points.first() else {
                continue;
            };
            let first = (x(first.0.as_secs_f64()), y(0.0));
            let rest = points
                .iter()
                .map(|(at, share)| (x(at.as_secs_f64()), y(*share)));
            out.curve(
                std::iter::once(first).chain(rest),
                Colour::for_name(&legend, name),
                Stroke::Measured,
            );
        }
    }
    out.legend(&legend, LEFT, HEIGHT, 64.0);
    out.finish()
}

/// The time of 10^`power` seconds with a unit.
fn unit(power: i32) -> String {
    match power {
        ..=-7 => format!("{} ns", 10i64.pow((power + 9).max(0) as u32)),
        -6..=-4 => format!("{} µs", 10i64.pow((power + 6) as u32)),
        -3..=-1 => format!("{} ms", 10i64.pow((power + 3) as u32)),
        _ => format!("{} s", 10i64.pow(power as u32)),
    }
}

/// CSV with the columns run, class, latency in seconds, and share of the class's queries that took no longer.
pub fn csv(panels: &[Panel<'_>]) -> String {
    let mut out = "run,class,seconds,share\n".to_owned();
    for p in panels {
        for (name, h) in &p.curves {
            for (at, share) in h.cumulative() {
                let _ = writeln!(
                    out,
                    "\"{}\",{name},{:.9},{share:.6}",
                    p.title.replace('"', "'"),
                    at.as_secs_f64()
                );
            }
        }
    }
    out
}
