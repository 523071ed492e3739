//! Draws plots as SVG: axes, curves, labels. The colours follow the viewer's light or dark setting.

use std::fmt::Write as _;

/// Colours that can be told apart in one panel, each on a white and on a black background.
const COLOURS: [[&str; 2]; 10] = [
    ["#2563c9", "#7aaeff"],
    ["#c2500a", "#ff9d5c"],
    ["#1f7a34", "#63cf7d"],
    ["#8a3fc4", "#c99bff"],
    ["#c4183c", "#ff7b93"],
    ["#0b7a80", "#4fd0d6"],
    ["#7a5230", "#d2a679"],
    ["#b0207f", "#ff8bd0"],
    ["#6b7000", "#d3d45a"],
    ["#555c66", "#b4bcc8"],
];

/// Distance between lines of text.
pub const LINE: f64 = 13.0;

/// A colour by number, counted from 0. There are ten; larger numbers repeat them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub usize);

impl Colour {
    fn class(self) -> usize {
        self.0 % COLOURS.len()
    }
}

/// Style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Solid: the figures are measured.
    Measured,
    /// Dashed and lighter: the figures are projected.
    Projected,
}

/// The point of a text that its coordinates refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A drawing. Coordinates are pixels from the upper left corner.
pub struct Canvas(String);

impl Canvas {
    /// An empty drawing; screen readers read `title`.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n<title>{}</title>\n<style>\n\
             .page {{ fill: #fff }}\ntext {{ fill: #1c2128 }}\n.muted {{ fill: #59636e }}\n\
             .grid {{ stroke: #dfe3e8; fill: none }}\n.guide {{ stroke: #9aa4b0; fill: none }}\n",
            escape(title)
        );
        let colours = |out: &mut String, theme: usize| {
            for (i, c) in COLOURS.iter().enumerate() {
                let _ = writeln!(
                    out,
                    ".s{i} {{ stroke: {0}; fill: none }} .f{i} {{ fill: {0} }}",
                    c[theme]
                );
            }
        };
        colours(&mut out, 0);
        out += "@media (prefers-color-scheme: dark) {\n.page { fill: #14171c }\ntext { fill: #e8ebef }\n.muted { fill: #a3adb8 }\n\
                .grid { stroke: #2d333b }\n.guide { stroke: #6b7580 }\n";
        colours(&mut out, 1);
        out += "}\n</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
        Self(out)
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, attributes: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{}\"{attributes}>{}</text>",
            anchor.name(),
            escape(text)
        );
    }

    /// The heading of several panels.
    pub fn heading(&mut self, x: f64, y: f64, text: &str) {
        self.text(
            (x, y),
            Anchor::Start,
            " font-weight=\"bold\" font-size=\"14\"",
            text,
        );
    }

    /// A panel's title.
    pub fn title(&mut self, x: f64, y: f64, text: &str) {
        self.text((x, y), Anchor::Start, " font-weight=\"bold\"", text);
    }

    /// A remark in a lighter grey.
    pub fn note(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.text((x, y), anchor, " class=\"muted\"", text);
    }

    /// A text in the colour of the curve that it belongs to.
    pub fn label(&mut self, x: f64, y: f64, anchor: Anchor, colour: Colour, text: &str) {
        let class = format!(" class=\"f{}\"", colour.class());
        self.text((x, y), anchor, &class, text);
    }

    /// A vertical grid line with its label below.
    pub fn vertical(&mut self, x: f64, top: f64, height: f64, label: &str) {
        let _ = writeln!(
            self.0,
            "<path class=\"grid\" d=\"M{x:.1} {top:.1}v{height:.1}\"/>"
        );
        self.note(x, top + height + 14.0, Anchor::Middle, label);
    }

    /// A horizontal grid line with its label on the left.
    pub fn horizontal(&mut self, left: f64, y: f64, width: f64, label: &str) {
        let _ = writeln!(
            self.0,
            "<path class=\"grid\" d=\"M{left:.1} {y:.1}h{width:.1}\"/>"
        );
        self.note(left - 5.0, y + 4.0, Anchor::End, label);
    }

    /// A dotted guide line, which is not data.
    pub fn guide(&mut self, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.0,
            "<path class=\"guide\" stroke-dasharray=\"1 3\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A line through points.
    pub fn curve(
        &mut self,
        points: impl Iterator<Item = (f64, f64)>,
        colour: Colour,
        stroke: Stroke,
    ) {
        let how = match stroke {
            Stroke::Measured => "stroke-width=\"2\"",
            Stroke::Projected => {
                "stroke-width=\"1.4\" stroke-dasharray=\"5 4\" stroke-opacity=\"0.65\""
            }
        };
        let _ = writeln!(
            self.0,
            "<path class=\"s{}\" {how} d=\"{}\"/>",
            colour.class(),
            path(points)
        );
    }

    /// The area of a polygon.
    pub fn area(&mut self, points: impl Iterator<Item = (f64, f64)>, colour: Colour) {
        let _ = writeln!(
            self.0,
            "<path class=\"f{}\" fill-opacity=\"0.1\" d=\"{}Z\"/>",
            colour.class(),
            path(points)
        );
    }

    /// A measured point.
    pub fn dot(&mut self, x: f64, y: f64, colour: Colour) {
        let _ = writeln!(
            self.0,
            "<circle class=\"f{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>",
            colour.class()
        );
    }

    /// The finished SVG document.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { 'M' } else { 'L' });
    }
    d
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Moves labels apart vertically, so that no two are nearer than [`LINE`], none is above `top`, and none below `bottom`
/// if they fit. Their order stays, and each moves as little as possible. `heights` and the result are y coordinates.
pub fn apart(heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|a, b| heights[*a].total_cmp(&heights[*b]));
    let mut out = heights.to_vec();
    let mut least = top;
    for &i in &order {
        out[i] = out[i].max(least);
        least = out[i] + LINE;
    }
    let mut most = bottom.max(top + LINE * order.len().saturating_sub(1) as f64);
    for &i in order.iter().rev() {
        out[i] = out[i].min(most);
        most = out[i] - LINE;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_stay_inside() {
        assert_eq!(apart(&[10.0, 50.0], 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(apart(&[50.0, 48.0], 0.0, 100.0), [61.0, 48.0]);
        assert_eq!(apart(&[99.0, 100.0, 98.0], 0.0, 100.0), [87.0, 100.0, 74.0]);
        assert_eq!(apart(&[5.0, 5.0, 5.0], 0.0, 20.0), [0.0, 13.0, 26.0]);
        assert!(apart(&[], 0.0, 1.0).is_empty());
    }

    #[test]
    fn text_is_escaped() {
        let mut c = Canvas::new(10.0, 10.0, "a < b");
        c.title(0.0, 0.0, "R&D");
        let out = c.finish();
        assert!(out.contains("<title>a &lt; b</title>") && out.contains("R&amp;D"));
    }
}
