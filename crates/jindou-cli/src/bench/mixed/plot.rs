//! Latencies as curves: an SVG with a panel a run, and CSV.

use super::histogram::Histogram;
use std::fmt::Write as _;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; 10] = [
    "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e",
    "#ff8ab7", "#333333",
];

/// The cumulative distributions of one run.
pub struct Panel<'a> {
    pub title: String,
    pub curves: Vec<(&'a str, &'a Histogram)>,
}

/// Panels side by side; latency on a logarithmic axis, the same in all.
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
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{full}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        HEIGHT + 22.0
    );
    for (n, panel) in panels.iter().enumerate() {
        let left = WIDTH * n as f64 + LEFT;
        let (w, h) = (WIDTH - LEFT - 16.0, HEIGHT - TOP - BOTTOM);
        let x = |seconds: f64| left + (seconds.max(1e-9).log10() - from) / (to - from) * w;
        let y = |share: f64| TOP + (1.0 - share) * h;
        let _ = writeln!(
            out,
            "<text x=\"{left}\" y=\"20\" font-weight=\"bold\">{}</text>",
            escape(&panel.title)
        );
        let mut power = from;
        while power <= to {
            let (at, label) = (x(10f64.powf(power)), unit(power as i32));
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                TOP + h,
                TOP + h + 14.0
            );
            power += 1.0;
        }
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let at = y(share);
            let _ = writeln!(
                out,
                "<path d=\"M{left} {at:.1}h{w}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{share}</text>",
                left - 5.0,
                at + 4.0
            );
        }
        for (name, curve) in &panel.curves {
            let points = curve.cumulative();
            let Some(first) = points.first() else {
                continue;
            };
            let mut d = format!("M{:.1} {:.1}", x(first.0.as_secs_f64()), y(0.0));
            for (at, share) in points {
                let _ = write!(d, "L{:.1} {:.1}", x(at.as_secs_f64()), y(share));
            }
            let _ = writeln!(
                out,
                "<path d=\"{d}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>",
                colour(&legend, name)
            );
        }
    }
    for (i, name) in legend.iter().enumerate() {
        let at = LEFT + 64.0 * i as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{at} {HEIGHT}h16\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{}\">{}</text>",
            colour(&legend, name),
            at + 20.0,
            HEIGHT + 4.0,
            escape(name)
        );
    }
    out + "</svg>\n"
}

fn colour(legend: &[&str], name: &str) -> &'static str {
    let at = legend.iter().position(|n| *n == name).unwrap_or(0);
    COLOURS[at % COLOURS.len()]
}

/// A power of ten seconds.
fn unit(power: i32) -> String {
    match power {
        ..=-7 => format!("{} ns", 10i64.pow((power + 9).max(0) as u32)),
        -6..=-4 => format!("{} µs", 10i64.pow((power + 6) as u32)),
        -3..=-1 => format!("{} ms", 10i64.pow((power + 3) as u32)),
        _ => format!("{} s", 10i64.pow(power as u32)),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Run, class, latency in seconds, share of the class' queries that took no longer.
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
