//! Plots as SVG: axes, curves, a legend.

use std::fmt::Write as _;

const COLOURS: [&str; 10] = [
    "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e",
    "#ff8ab7", "#333333",
];

/// The colour of a name, by its place in the legend.
pub fn colour(legend: &[&str], name: &str) -> &'static str {
    let at = legend.iter().position(|n| *n == name).unwrap_or(0);
    COLOURS[at % COLOURS.len()]
}

/// A drawing; lengths are pixels, from the upper left corner.
pub struct Canvas(String);

impl Canvas {
    /// An empty one on white.
    pub fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ))
    }

    /// A panel's title.
    pub fn title(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x}\" y=\"{y}\" font-weight=\"bold\">{}</text>",
            escape(text)
        );
    }

    /// A line of the grid with its label below.
    pub fn vertical(&mut self, x: f64, top: f64, height: f64, label: &str) {
        let _ = writeln!(
            self.0,
            "<path d=\"M{x:.1} {top}V{:.1}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            top + height,
            top + height + 14.0,
            escape(label)
        );
    }

    /// A line of the grid with its label on the left.
    pub fn horizontal(&mut self, left: f64, y: f64, width: f64, label: &str) {
        let _ = writeln!(
            self.0,
            "<path d=\"M{left} {y:.1}h{width}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 5.0,
            y + 4.0,
            escape(label)
        );
    }

    /// A line through points.
    pub fn curve(&mut self, points: impl Iterator<Item = (f64, f64)>, colour: &str, dashed: bool) {
        let mut d = String::new();
        for (x, y) in points {
            let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { 'M' } else { 'L' });
        }
        let dashes = if dashed {
            " stroke-dasharray=\"4 3\""
        } else {
            ""
        };
        let _ = writeln!(
            self.0,
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>"
        );
    }

    /// A measured point.
    pub fn dot(&mut self, x: f64, y: f64, colour: &str) {
        let _ = writeln!(
            self.0,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
        );
    }

    /// Names with their colours, side by side.
    pub fn legend(&mut self, names: &[&str], left: f64, y: f64, step: f64) {
        self.legend_of(names, names, left, y, step);
    }

    /// Some of them, for a legend of several rows.
    pub fn legend_of(&mut self, all: &[&str], names: &[&str], left: f64, y: f64, step: f64) {
        for (i, name) in names.iter().enumerate() {
            let at = left + step * i as f64;
            let _ = writeln!(
                self.0,
                "<path d=\"M{at} {y}h16\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{}\">{}</text>",
                colour(all, name),
                at + 20.0,
                y + 4.0,
                escape(name)
            );
        }
    }

    /// The document.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
