//! A set of queries on one store, as in `bsbm`, `sp2b`, `watdiv` and `lubm --official`: loads the data, collects a row
//! for each query or template, and prints them as a table or JSON.

use crate::measure::{Measured, Times, peak_memory, write_json};
use jindou::{Database, InfoReport, LoadOptions, LoadReport, Progress, QuadSource, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Report of a load.
pub struct Loaded {
    pub report: LoadReport,
    pub seconds: f64,
}

/// Options for loading with at most `memory` bytes.
pub fn load_options(memory: Option<u64>, threads: usize) -> LoadOptions {
    let mut options = LoadOptions::default().with_threads(threads);
    if let Some(m) = memory {
        options.memory = m;
    }
    options
}

/// Loads a store with at most `memory` bytes.
pub fn load(
    dir: &Path,
    source: &dyn QuadSource,
    memory: Option<u64>,
    threads: usize,
) -> Result<Loaded> {
    let options = load_options(memory, threads);
    let start = Instant::now();
    let report = Database::load(dir, source, &options, &Progress::default())?;
    Ok(Loaded {
        report,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Measurements of all instances of a query or template.
struct Row {
    name: String,
    measured: Vec<Measured>,
}

impl Row {
    /// The value of `time` for each instance; `time` returns milliseconds.
    fn times(&self, time: impl Fn(&Measured) -> f64) -> Times {
        let each = self.measured.iter().map(time);
        Times::new(each.map(|ms| Duration::from_secs_f64(ms / 1e3)))
    }
}

/// The rows of a report, in the order of their first instances.
#[derive(Default)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Adds an instance to the last row if that has this name, otherwise to a new row.
    pub fn add(&mut self, name: &str, measured: Measured) {
        match self.0.last_mut() {
            Some(row) if row.name == name => row.measured.push(measured),
            _ => self.0.push(Row {
                name: name.to_owned(),
                measured: vec![measured],
            }),
        }
    }

    /// Prints the table. `heading` names the measurement, `each` says if a row is a query or a template.
    pub fn print(&self, heading: &str, each: &str, loaded: Option<&Loaded>, info: &InfoReport) {
        println!("{heading}");
        match loaded {
            Some(l) => println!(
                "load: {} statements in {:.2} s, {:.2} M/s; peak memory {} MiB",
                l.report.quads_read,
                l.seconds,
                l.report.quads_read as f64 / 1e6 / l.seconds.max(1e-9),
                l.report.peak_bytes >> 20
            ),
            None => println!("load: reusing the existing store"),
        }
        println!(
            "store: {} bytes, {:.2} a triple",
            info.bytes,
            info.bytes as f64 / info.quads.max(1) as f64
        );
        println!("medians over the instances of a {each}, each the median of its runs:");
        println!(
            "query instances    plan ms    exec ms       min       max   to TSV ms  rows of each"
        );
        for row in &self.0 {
            let exec = row.times(|m| m.exec.median());
            let counts: Vec<String> = row
                .measured
                .iter()
                .map(|m| m.seen.rows.to_string())
                .collect();
            println!(
                "{:<5} {:>9}  {:>9.3}  {:>9.3} {:>9.3} {:>9.3}  {:>10.3}  {}",
                row.name,
                row.measured.len(),
                row.times(|m| m.plan.median()).median(),
                exec.median(),
                exec.min(),
                exec.max(),
                row.times(|m| m.total.median()).median(),
                counts.join(" "),
            );
        }
        println!("peak memory of this process {} MiB", peak_memory() >> 20);
    }

    /// Writes the figures as JSON to the file `to`, to standard output if that is `-`. `head` is an object with fields
    /// of the whole report. `named` returns an object with fields that identify an instance, given the name of its row
    /// and its index there.
    pub fn write_json(
        &self,
        to: &Path,
        head: Value,
        named: impl Fn(&str, usize) -> Value,
        loaded: Option<&Loaded>,
        info: &InfoReport,
    ) -> Result<()> {
        let rows = self.0.iter();
        let queries: Vec<Value> = rows
            .flat_map(|row| row.measured.iter().enumerate().map(move |(i, m)| (row, i, m)))
            .map(|(row, i, m)| {
                let figures = json!({
                    "rows": m.seen.rows, "checksum": format!("{:016x}", m.seen.checksum),
                    "plan_ms": m.plan.median(), "exec_ms": m.exec.median(), "total_ms": m.total.median(),
                    "exec_min_ms": m.exec.min(), "exec_max_ms": m.exec.max(),
                });
                both(named(&row.name, i), figures)
            })
            .collect();
        let figures = json!({
            "triples": info.quads, "store_bytes": info.bytes, "peak_bytes": peak_memory(), "queries": queries,
            "load": loaded.map(|l| json!({
                "triples": l.report.quads_read, "seconds": l.seconds,
                "peak_bytes": l.report.peak_bytes, "store_bytes": l.report.store_bytes,
            })),
        });
        write_json(to, &both(head, figures))
    }
}

/// An object with the members of both.
fn both(mut a: Value, b: Value) -> Value {
    if let (Value::Object(a), Value::Object(b)) = (&mut a, b) {
        a.extend(b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_joined() {
        let joined = both(json!({"a": 1, "b": 2}), json!({"c": [3]}));
        assert_eq!(joined, json!({"a": 1, "b": 2, "c": [3]}));
    }
}
