//! Plots speed-up by cores as small multiples: one panel per model and way of gathering, with curves for warm and cold
//! files.
//!
//! Both axes are logarithmic, so the lines of equal efficiency (speed-up ÷ cores, figures 1 and 5 of the paper) are
//! straight and parallel. All panels have the same axes. Solid curves and dots are measured; the dashed ones are the
//! upper and lower bound projected from the times of one and two workers.

use super::fit::{Fit, Line};
use super::report::{fits, series};
use crate::svg::{Anchor, Canvas, Colour, LINE, Stroke, apart};

const COLUMNS: usize = 4;
const WIDTH: f64 = 280.0;
const HEIGHT: f64 = 216.0;
const HEAD: f64 = 92.0;
const HEADING: f64 = 30.0;
const LEFT: f64 = 40.0;
/// Space for the labels at the curves' ends.
const RIGHT: f64 = 72.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 30.0;
const EFFICIENCIES: [f64; 3] = [1.0, 0.1, 0.01];

/// The panels under one heading.
struct Section<'a> {
    heading: &'static str,
    panels: Vec<Panel<'a>>,
}

/// The runs of one panel: warm, cold, or both.
struct Panel<'a> {
    title: String,
    runs: Vec<Vec<&'a Line>>,
}

fn sections(lines: &[Line]) -> Vec<Section<'_>> {
    let all = series(lines);
    let mut out: Vec<Section<'_>> = vec![];
    for (heading, models) in [
        (
            "Task parallelism: different queries at once, each on the whole store",
            &["ST", "LT"][..],
        ),
        (
            "SD: data parallelism, queries of small footprint, each on all partitions at once",
            &["SD"],
        ),
        (
            "LD: data parallelism, queries of large footprint, each on all partitions at once",
            &["LD"],
        ),
    ] {
        let mut panels: Vec<Panel<'_>> = vec![];
        for model in models {
            for run in all.iter().filter(|s| s[0].model == *model) {
                let title = match *model {
                    "ST" => "ST: queries of small footprint".to_owned(),
                    "LT" => "LT: queries of large footprint".to_owned(),
                    _ => run[0].way.clone(),
                };
                match panels.iter_mut().find(|p| p.title == title) {
                    Some(p) => p.runs.push(run.clone()),
                    None => panels.push(Panel {
                        title,
                        runs: vec![run.clone()],
                    }),
                }
            }
        }
        if !panels.is_empty() {
            out.push(Section { heading, panels });
        }
    }
    out
}

/// A range of values on a logarithmic axis, and the pixels of its ends.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    at: [f64; 2],
}

impl Axis {
    fn place(&self, v: f64) -> f64 {
        let part = (v / self.from).ln() / (self.to / self.from).ln();
        self.at[0] + part * (self.at[1] - self.at[0])
    }
}

/// The axes of all panels: the largest number of cores, and the range of speed-ups.
struct Scale {
    last: u32,
    low: f64,
    high: f64,
}

impl Scale {
    fn new(lines: &[Line], cores: u32) -> Self {
        let measured = lines.iter().map(Line::cores).max().unwrap_or(2);
        let last = measured.max(cores).max(3);
        let speed_ups = lines.iter().map(Line::speed_up);
        let projected = series(lines).into_iter().filter_map(|s| {
            let fits = fits(&s)?;
            Some(fits.map(|f| (2..=last).map(|c| speed_up(&s, &f, c)).collect::<Vec<_>>()))
        });
        let projected = projected.flatten().flatten();
        let (mut low, mut high) = (1.0f64, 1.0f64);
        for v in speed_ups.chain(projected).filter(|v| *v > 0.0) {
            (low, high) = (low.min(v), high.max(v));
        }
        Self {
            last,
            low: step_below(low.max(1e-3)),
            high: step_above(high.max(2.0)),
        }
    }

    /// Values with a grid line: 1, 2 and 5 times powers of ten, or only the powers if those would be too many.
    fn ticks(&self) -> Vec<f64> {
        let inside = |v: &f64| *v > self.low * 0.999 && *v < self.high * 1.001;
        let all = |steps: &'static [f64]| {
            (-4..7)
                .flat_map(move |p| steps.iter().map(move |s| s * 10f64.powi(p)))
                .filter(inside)
                .collect::<Vec<_>>()
        };
        let fine = all(&[1.0, 2.0, 5.0]);
        if fine.len() <= 9 { fine } else { all(&[1.0]) }
    }

    /// Powers of two, and the largest number of cores unless it is too near to one.
    fn cores(&self) -> Vec<u32> {
        let mut out: Vec<u32> = (1..)
            .map(|p| 1 << p)
            .take_while(|c| *c <= self.last)
            .collect();
        if let Some(power) = out.last()
            && f64::from(self.last) > 1.3 * f64::from(*power)
        {
            out.push(self.last);
        }
        out
    }
}

/// The largest 1, 2 or 5 times a power of ten that is not above `v`.
fn step_below(v: f64) -> f64 {
    let power = 10f64.powf(v.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|m| m * power);
    steps.into_iter().find(|s| *s <= v).unwrap_or(power)
}

/// The smallest 1, 2 or 5 times a power of ten that is not below `v`.
fn step_above(v: f64) -> f64 {
    let power = 10f64.powf(v.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|m| m * power);
    steps.into_iter().find(|s| *s >= v).unwrap_or(10.0 * power)
}

fn speed_up(run: &[&Line], fit: &Fit, cores: u32) -> f64 {
    run[0].serial / fit.seconds(cores.max(2) - 1)
}

/// A number with two significant digits.
fn short(v: f64) -> String {
    let digits = match v {
        9.95.. => 0,
        0.995.. => 1,
        0.0995.. => 2,
        _ => 3,
    };
    format!("{v:.digits$}")
}

fn colour(run: &[&Line]) -> Colour {
    Colour(usize::from(!run[0].cold))
}

fn name(run: &[&Line]) -> &'static str {
    if run[0].cold { "cold" } else { "warm" }
}

/// The drawing.
pub fn svg(title: &str, lines: &[Line], cores: u32) -> String {
    let sections = sections(lines);
    let scale = Scale::new(lines, cores);
    let columns = sections.iter().map(|s| s.panels.len()).max().unwrap_or(1);
    let columns = columns.clamp(3, COLUMNS);
    let rows = |s: &Section<'_>| s.panels.len().div_ceil(columns) as f64;
    let height = HEAD
        + sections
            .iter()
            .map(|s| HEADING + HEIGHT * rows(s))
            .sum::<f64>();
    let mut out = Canvas::new(
        WIDTH * columns as f64,
        height,
        &format!("Speed-up by cores: {title}"),
    );
    head(&mut out, title, &scale);
    let mut top = HEAD;
    for section in &sections {
        out.heading(12.0, top + 18.0, section.heading);
        top += HEADING;
        for (n, panel) in section.panels.iter().enumerate() {
            let left = WIDTH * (n % columns) as f64;
            draw(
                &mut out,
                panel,
                &scale,
                left,
                top + HEIGHT * (n / columns) as f64,
            );
        }
        top += HEIGHT * rows(section);
    }
    out.finish()
}

fn head(out: &mut Canvas, title: &str, scale: &Scale) {
    out.heading(12.0, 24.0, &format!("Speed-up by cores: {title}"));
    let mut x = 12.0;
    for (i, name) in ["cold files", "warm files"].into_iter().enumerate() {
        let y = 43.0;
        out.curve(
            [(x, y), (x + 26.0, y)].into_iter(),
            Colour(i),
            Stroke::Measured,
        );
        out.dot(x + 13.0, y, Colour(i));
        out.label(x + 32.0, y + 4.0, Anchor::Start, Colour(i), name);
        x += 100.0;
    }
    out.note(
        x,
        47.0,
        Anchor::Start,
        "solid with dots: measured, over one worker that gets all queries at once; one of the cores is the master's",
    );
    let mut x = 12.0;
    for i in 0..2 {
        let y = 61.0;
        out.area(
            [
                (x, y - 5.0),
                (x + 40.0, y - 5.0),
                (x + 40.0, y + 5.0),
                (x, y + 5.0),
            ]
            .into_iter(),
            Colour(i),
        );
        out.curve(
            [(x, y), (x + 40.0, y)].into_iter(),
            Colour(i),
            Stroke::Projected,
        );
        x += 50.0;
    }
    out.note(
        212.0,
        65.0,
        Anchor::Start,
        &format!(
            "dashed: PROJECTED from the times of one and two workers, the most and the least; labels on the right: at {} cores",
            scale.last
        ),
    );
    out.guide((12.0, 79.0), (102.0, 79.0));
    out.note(
        212.0,
        83.0,
        Anchor::Start,
        "dotted: equal efficiency (speed-up ÷ cores); across: cores, up: speed-up, both logarithmic",
    );
}

fn draw(out: &mut Canvas, panel: &Panel<'_>, scale: &Scale, left: f64, top: f64) {
    let (left, right) = (left + LEFT, left + WIDTH - RIGHT);
    let (up, down) = (top + TOP, top + HEIGHT - BOTTOM);
    let across = Axis {
        from: 2.0,
        to: f64::from(scale.last),
        at: [left, right],
    };
    let along = Axis {
        from: scale.low,
        to: scale.high,
        at: [down, up],
    };
    let place = |(cores, v): (u32, f64)| {
        let v = v.clamp(scale.low, scale.high);
        (across.place(f64::from(cores)), along.place(v))
    };
    out.title(left, up - 8.0, &panel.title);
    for c in scale.cores() {
        out.vertical(across.place(f64::from(c)), up, down - up, &c.to_string());
    }
    for v in scale.ticks() {
        out.horizontal(left, along.place(v), right - left, &v.to_string());
    }
    for e in EFFICIENCIES {
        let from = 2f64.max(scale.low / e);
        let to = f64::from(scale.last).min(scale.high / e);
        if to > from * 1.2 {
            let at = |c: f64| (across.place(c), along.place(c * e));
            out.guide(at(from), at(to));
            let (x, y) = at(to);
            let text = format!("{} %", e * 100.0);
            out.note(x - 3.0, (y + 3.0).max(up + 10.0), Anchor::End, &text);
        }
    }
    let mut labels: Vec<(f64, Colour, String)> = vec![];
    for run in &panel.runs {
        let colour = colour(run);
        let label = |v: f64| format!("{} {}", name(run), short(v));
        if let Some(fits) = fits(run) {
            let curves = fits.map(|f| -> Vec<(f64, f64)> {
                (2..=scale.last)
                    .map(|c| place((c, speed_up(run, &f, c))))
                    .collect()
            });
            out.area(
                curves[0].iter().chain(curves[1].iter().rev()).copied(),
                colour,
            );
            for curve in &curves {
                out.curve(curve.iter().copied(), colour, Stroke::Projected);
            }
            let ends = fits.map(|f| speed_up(run, &f, scale.last));
            let heights = ends.map(|v| place((scale.last, v)).1);
            if heights[1] - heights[0] < LINE && short(ends[0]) == short(ends[1]) {
                labels.push((heights[0], colour, label(ends[0])));
            } else {
                for (v, y) in ends.into_iter().zip(heights) {
                    labels.push((y, colour, label(v)));
                }
            }
        } else if let Some(l) = run.iter().max_by_key(|l| l.workers) {
            labels.push((
                place((l.cores(), l.speed_up())).1,
                colour,
                label(l.speed_up()),
            ));
        }
    }
    // The measured curves are drawn last, above the projections, with the speed-up at their ends.
    let last = |run: &[&Line]| run.iter().max_by_key(|l| l.workers).map(|l| l.speed_up());
    let highest = panel
        .runs
        .iter()
        .filter_map(|r| last(r))
        .fold(0.0, f64::max);
    for run in &panel.runs {
        let points = || run.iter().map(|l| place((l.cores(), l.speed_up())));
        out.curve(points(), colour(run), Stroke::Measured);
        for (x, y) in points() {
            out.dot(x, y, colour(run));
        }
        if let (Some(v), Some((x, y))) = (last(run), points().next_back())
            && x < right
        {
            let (y, anchor) = if v >= highest {
                (y - 8.0, Anchor::Middle)
            } else {
                (y + 15.0, Anchor::End)
            };
            out.label(x, y, anchor, colour(run), &short(v));
        }
    }
    let heights: Vec<f64> = labels.iter().map(|l| l.0).collect();
    for ((_, colour, text), y) in labels.iter().zip(apart(&heights, up, down)) {
        out.label(right + 6.0, y + 4.0, Anchor::Start, *colour, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(model: &'static str, cold: bool, way: &str, workers: u32, seconds: f64) -> Line {
        Line {
            model,
            cold,
            way: way.into(),
            workers,
            serial: 10.0,
            seconds,
            master: 0.1,
            ..Line::default()
        }
    }

    #[test]
    fn each_model_and_way_has_a_panel_with_labels_in_two_colours() {
        let mut lines = vec![];
        for (model, way) in [("ST", ""), ("SD", "hash, point"), ("SD", "star, point")] {
            for cold in [false, true] {
                for (workers, seconds) in [(1, 10.0), (2, 7.0)] {
                    lines.push(line(model, cold, way, workers, seconds));
                }
            }
        }
        let out = svg("a test", &lines, 48);
        for title in [
            "ST: queries of small footprint",
            "hash, point",
            "star, point",
        ] {
            assert_eq!(out.matches(&format!(">{title}<")).count(), 1, "{title}");
        }
        // Two projected ends per run.
        assert_eq!(out.matches(">warm ").count(), 3 * 2 + 1);
        assert_eq!(out.matches(">cold ").count(), 3 * 2 + 1);
        // A measured dot for each line, and two in the legend.
        assert_eq!(out.matches("<circle").count(), lines.len() + 2);
        // Two projected curves per run, and two in the legend.
        assert_eq!(out.matches("stroke-dasharray=\"5 4\"").count(), 6 * 2 + 2);
        assert!(!out.contains("class=\"s2\"") && !out.contains("NaN"));
    }

    #[test]
    fn what_was_measured_is_drawn_without_a_projection_too() {
        let out = svg("a test", &[line("LT", true, "", 4, 2.5)], 1);
        assert!(out.contains(">cold 4.0<"), "{out}");
        assert!(!out.contains("NaN") && !out.contains("inf"));
        assert!(svg("nothing", &[], 48).ends_with("</svg>\n"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!((step_below(0.34), step_above(0.34)), (0.2, 0.5));
        assert_eq!((step_below(1.0), step_above(1.0)), (1.0, 1.0));
        assert_eq!((step_below(60.0), step_above(60.0)), (50.0, 100.0));
        let scale = Scale {
            last: 48,
            low: 0.5,
            high: 20.0,
        };
        assert_eq!(scale.cores(), [2, 4, 8, 16, 32, 48]);
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
    }
}
