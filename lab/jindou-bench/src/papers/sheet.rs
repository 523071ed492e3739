//! One table of a report, printed in columns or as JSON.

use serde_json::{Value, json};

/// The content of a cell of a [`Sheet`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured or published value; the column's title has its unit.
    Figure(f64),
    /// No value is known.
    None,
}

impl From<&str> for Cell {
    fn from(s: &str) -> Self {
        Self::Text(s.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Self::Count(n)
    }
}

impl From<f64> for Cell {
    /// A number that is not finite becomes [`Cell::None`].
    fn from(x: f64) -> Self {
        if x.is_finite() {
            Self::Figure(x)
        } else {
            Self::None
        }
    }
}

impl From<Option<f64>> for Cell {
    fn from(x: Option<f64>) -> Self {
        x.map_or(Self::None, Self::from)
    }
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Text(s) => s.clone(),
            Self::Count(n) => n.to_string(),
            Self::Figure(x) => figure(*x),
            Self::None => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(s) => json!(s),
            Self::Count(n) => json!(n),
            Self::Figure(x) => json!(x),
            Self::None => Value::Null,
        }
    }
}

/// Three significant digits, without exponent.
fn figure(x: f64) -> String {
    let digits = match x.abs() {
        x if x == 0.0 || x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        x if x >= 0.1 => 3,
        x if x >= 0.01 => 4,
        _ => 5,
    };
    format!("{x:.digits$}")
}

/// A table with its title, notes and errors.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    pub title: String,
    pub notes: Vec<String>,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Errors found while measuring: answers that differ from the published ones.
    pub wrong: Vec<String>,
}

impl Sheet {
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Prints the table with text aligned to the left and numbers to the right.
    pub fn print(&self) {
        println!("{}", self.title);
        let texts: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|r| r.iter().map(Cell::text).collect())
            .collect();
        let width: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                let cells = texts
                    .iter()
                    .map(|r| r.get(i).map_or(0, |c| c.chars().count()));
                cells
                    .max()
                    .unwrap_or(0)
                    .max(self.columns[i].chars().count())
            })
            .collect();
        let line = |cells: &[String]| {
            let mut out = String::from(" ");
            for (i, c) in cells.iter().enumerate() {
                out += &match i {
                    0 => format!(" {c:<w$}", w = width[i]),
                    _ => format!("  {c:>w$}", w = width[i]),
                };
            }
            println!("{}", out.trim_end());
        };
        line(&self.columns);
        for r in &texts {
            line(r);
        }
        for n in &self.notes {
            println!("  * {n}");
        }
        println!();
    }

    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|r| {
                let cells = self.columns.iter().zip(r);
                Value::Object(cells.map(|(c, x)| (c.clone(), x.json())).collect())
            })
            .collect();
        json!({ "title": self.title, "rows": rows, "notes": self.notes, "wrong": self.wrong })
    }
}

/// Geometric mean; NaN if there are no values or one is negative.
pub fn geometric_mean(x: impl IntoIterator<Item = f64>) -> f64 {
    jindou_peers::geometric_mean(x).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        for (x, s) in [
            (0.0, "0"),
            (0.000_123, "0.00012"),
            (0.0494, "0.0494"),
            (0.5, "0.500"),
            (12.34, "12.3"),
            (230_000.0, "230000"),
        ] {
            assert_eq!(figure(x), s);
        }
        assert_eq!(Cell::from(f64::NAN), Cell::None);
    }

    #[test]
    fn geometric_means_are_those_of_powers() {
        assert!((geometric_mean([1.0, 10.0, 100.0]) - 10.0).abs() < 1e-9);
        assert!((geometric_mean([2.0, 8.0]) - 4.0).abs() < 1e-9);
        assert!(geometric_mean([]).is_nan());
    }
}
