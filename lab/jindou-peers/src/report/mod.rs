//! The results of a comparison, as a table and as JSON.

mod table;
mod templates;

pub use table::table;
pub use templates::by_template;

use crate::engine::{About, Loaded, Memory};
use crate::machine::Machine;
use crate::{Error, Result, Seen, geometric_mean};
use jindou_workloads::watdiv::Day;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A whole comparison. Its JSON is this, field by field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The subject of the comparison.
    pub title: String,
    /// The data.
    pub data: Data,
    /// The machine.
    pub machine: Machine,
    /// Load average of the last minute when it ended.
    pub load_after: f64,
    /// When it ended, in seconds since 1970.
    pub unix_seconds: u64,
    /// The command line.
    pub command: String,
    /// Timed rounds that were asked for.
    pub rounds: usize,
    /// The time limit of a query.
    pub limit_seconds: f64,
    /// The engines; the first is the one that ratios are of.
    pub engines: Vec<EngineReport>,
    /// The queries, each with an answer for every engine.
    pub queries: Vec<QueryReport>,
}

/// The data that all loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Its file's name.
    pub name: String,
    /// Its file's length.
    pub bytes: u64,
    /// Statements in the file, duplicates too, if counted.
    pub statements: Option<u64>,
}

/// An engine's figures that belong to no query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The engine's name, version and settings.
    pub about: About,
    /// Time, disk space and memory that the load took.
    pub loaded: Option<Loaded>,
    /// True if the load's figures are those of an earlier run, whose store was used.
    pub load_reused: bool,
    /// The most memory while it answered.
    pub serving: Memory,
    /// Times of `ASK {}`, in milliseconds: the floor of every query's time.
    pub floor_ms: Vec<f64>,
    /// Reason why it took no part.
    pub failed: Option<String>,
}

/// A query and what each engine made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryReport {
    /// Its name.
    pub name: String,
    /// The template that it is an instance of: tables fold a template's instances into one line.
    #[serde(default)]
    pub template: Option<String>,
    /// SPARQL.
    pub text: String,
    /// How many rows are right, if known from elsewhere.
    pub known_rows: Option<u64>,
    /// One for each engine, in their order.
    pub answers: Vec<Answer>,
}

/// One engine's results for one query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The answer, boiled down.
    pub seen: Option<Seen>,
    /// Bytes of the timed answers.
    pub bytes: u64,
    /// The untimed run before the timed ones, in milliseconds.
    pub warm_up_ms: f64,
    /// The timed runs, in milliseconds, ascending.
    pub times_ms: Vec<f64>,
    /// Reason why there is no time.
    pub failure: Option<String>,
    /// True if it took longer than the limit.
    pub over_limit: bool,
    #[serde(skip)]
    pub(crate) broke: bool,
}

/// The middle of ascending numbers.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let n = ascending.len();
    let high = ascending.get(n / 2)?;
    Some(if n % 2 == 1 {
        *high
    } else {
        (ascending[n / 2 - 1] + high) / 2.0
    })
}

impl Answer {
    /// The median, if it was timed to the end.
    pub fn median_ms(&self) -> Option<f64> {
        if self.failure.is_some() {
            return None;
        }
        median(&self.times_ms)
    }
}

/// How many times longer a peer took: at least so long, if it was cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The peer's median over the first engine's.
    pub times: f64,
    /// True if the peer was cut off at the limit.
    pub at_least: bool,
}

impl QueryReport {
    /// True if an engine's answer has the right rows: the known number, or else the first engine's.
    pub fn right(&self, engine: usize) -> bool {
        let rows = |i: usize| self.answers.get(i).and_then(|a| a.seen).map(|s| s.rows);
        match (rows(engine), self.known_rows.or_else(|| rows(0))) {
            (Some(its), Some(right)) => its == right,
            _ => true,
        }
    }

    /// A peer's time over the first engine's.
    pub fn ratio(&self, peer: usize, limit_ms: f64) -> Option<Ratio> {
        let own = self.answers.first()?.median_ms()?;
        let a = self.answers.get(peer)?;
        if a.over_limit {
            return Some(Ratio {
                times: limit_ms / own,
                at_least: true,
            });
        }
        Some(Ratio {
            times: a.median_ms()? / own,
            at_least: false,
        })
    }

    /// The fastest peer with the right number of rows, and its ratio.
    pub fn fastest_peer(&self, limit_ms: f64) -> Option<(usize, Ratio)> {
        (1..self.answers.len())
            .filter(|&i| self.right(i))
            .filter_map(|i| Some((i, self.ratio(i, limit_ms)?)))
            .min_by(|a, b| a.1.times.total_cmp(&b.1.times))
    }
}

impl Report {
    /// The limit in milliseconds.
    pub fn limit_ms(&self) -> f64 {
        self.limit_seconds * 1e3
    }

    /// Geometric mean of a peer's ratios, over how many queries, and whether some of them are "at least".
    pub fn mean_ratio(&self, peer: usize) -> Option<(Ratio, usize)> {
        mean(
            self.queries
                .iter()
                .filter_map(|q| q.ratio(peer, self.limit_ms())),
        )
    }

    /// Geometric mean of the ratios of each query's fastest peer.
    pub fn mean_of_fastest(&self) -> Option<(Ratio, usize)> {
        mean(
            self.queries
                .iter()
                .filter_map(|q| Some(q.fastest_peer(self.limit_ms())?.1)),
        )
    }

    /// Queries for which some peer with the right rows was faster than the first engine.
    pub fn losses(&self) -> Vec<(&QueryReport, usize, Ratio)> {
        self.queries
            .iter()
            .filter_map(|q| {
                let (peer, r) = q.fastest_peer(self.limit_ms())?;
                (r.times < 1.0).then_some((q, peer, r))
            })
            .collect()
    }

    /// Disagreements, a sentence each: wrong row counts, other terms, queries that were not answered.
    pub fn differences(&self) -> Vec<String> {
        let mut out = Vec::new();
        for q in &self.queries {
            let first = q.answers.first().and_then(|a| a.seen);
            for (e, a) in self.engines.iter().zip(&q.answers) {
                let name = &e.about.name;
                match (a.seen, q.known_rows.or(first.map(|f| f.rows))) {
                    (Some(s), Some(right)) if s.rows != right => out.push(format!(
                        "{}: {name} gave {} rows, {}",
                        q.name,
                        s.rows,
                        if q.known_rows.is_some() {
                            format!("{right} are right")
                        } else {
                            format!("{} gave {right}", self.engines[0].about.name)
                        }
                    )),
                    (Some(s), _) if first.is_some_and(|f| f.rows == s.rows && f != s) => {
                        out.push(format!(
                            "{}: {name} gave as many rows as {}, but other terms",
                            q.name, self.engines[0].about.name
                        ));
                    }
                    _ => {}
                }
                if let Some(why) = &a.failure
                    && e.failed.is_none()
                {
                    out.push(if a.over_limit {
                        format!("{}: {name} took more than {} s", q.name, self.limit_seconds)
                    } else {
                        format!("{}: {name}: {why}", q.name)
                    });
                }
            }
        }
        for e in &self.engines {
            if let Some(why) = &e.failed {
                out.push(format!("{} took no part: {why}", e.about.name));
            }
        }
        out
    }

    /// Writes the report as JSON.
    pub fn write_json(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::Engine(format!("{}: {e}", file.display())))?;
        std::fs::write(file, text + "\n").map_err(|e| Error::io(file, e))
    }

    /// Reads what [`Self::write_json`] wrote.
    pub fn read_json(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
        serde_json::from_str(&text).map_err(|e| Error::Engine(format!("{}: {e}", file.display())))
    }
}

fn mean(of: impl Iterator<Item = Ratio>) -> Option<(Ratio, usize)> {
    let all: Vec<Ratio> = of.collect();
    let times = geometric_mean(all.iter().map(|r| r.times))?;
    Some((
        Ratio {
            times,
            at_least: all.iter().any(|r| r.at_least),
        },
        all.len(),
    ))
}

/// Milliseconds in three digits: `0.012`, `1.23`, `45.6`, `1,234`.
fn ms(x: f64) -> String {
    if x < 1.0 {
        format!("{x:.3}")
    } else if x < 10.0 {
        format!("{x:.2}")
    } else if x < 100.0 {
        format!("{x:.1}")
    } else {
        thousands(x.round() as u64)
    }
}

/// `12 ×`, `> 3,000 ×`.
fn ratio_text(r: Ratio) -> String {
    let n = if r.times < 10.0 {
        format!("{:.2}", r.times)
    } else {
        thousands(r.times.round() as u64)
    };
    format!("{}{n} ×", if r.at_least { "> " } else { "" })
}

/// `1,234,567`.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// `850 KB`, `12.3 MB`, `4.56 GB` (powers of ten, as disks are sold).
fn size(bytes: u64) -> String {
    let b = bytes as f64;
    if b < 1e6 {
        format!("{:.0} KB", b / 1e3)
    } else if b < 1e9 {
        format!("{:.1} MB", b / 1e6)
    } else {
        format!("{:.2} GB", b / 1e9)
    }
}

/// The UTC date of a time in seconds since 1970.
fn date(unix_seconds: u64) -> String {
    let (year, month, day) = Day((unix_seconds / 86_400) as i32).date();
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report with a win, a loss, a wrong answer, a time-out and an engine that took no part.
    pub fn sample() -> Report {
        let engine = |name: &str, failed: Option<&str>| {
            let loaded = Loaded {
                seconds: 12.0,
                disk: 123_456_789,
                memory: Memory {
                    resident: 3 << 30,
                    own: 1 << 30,
                },
            };
            EngineReport {
                about: About {
                    name: name.into(),
                    version: format!("{name} 1.0"),
                    licence: "MIT".into(),
                    how: format!("how <{name}> & co were set up"),
                    over_http: true,
                },
                loaded: failed.is_none().then_some(loaded),
                floor_ms: vec![0.1, 0.2, 0.3],
                failed: failed.map(str::to_owned),
                ..EngineReport::default()
            }
        };
        let answer = |rows: u64, times: &[f64]| Answer {
            seen: Some(Seen { rows, checksum: 1 }),
            bytes: 10,
            times_ms: times.to_vec(),
            ..Answer::default()
        };
        let failed = |why: &str, over_limit: bool| Answer {
            failure: Some(why.into()),
            over_limit,
            ..Answer::default()
        };
        let query = |name: &str, known_rows, answers| QueryReport {
            name: name.into(),
            template: None,
            text: "SELECT * { ?s ?p \"<&>\" }".into(),
            known_rows,
            answers,
        };
        Report {
            title: "LUBM(5)".into(),
            data: Data {
                name: "data.nt".into(),
                bytes: 1_000_000,
                statements: Some(12_345),
            },
            machine: Machine::default(),
            load_after: 0.5,
            unix_seconds: 1_795_305_600,
            command: "jindou bench lubm -n 5 --peers a,b".into(),
            rounds: 3,
            limit_seconds: 60.0,
            engines: vec![
                engine("jindou", None),
                engine("a", None),
                engine("b", Some("no port")),
            ],
            queries: vec![
                query(
                    "L1",
                    Some(10),
                    vec![
                        answer(10, &[1.0, 2.0, 4.0]),
                        answer(10, &[20.0, 20.0, 21.0]),
                        failed("it does not run", false),
                    ],
                ),
                query(
                    "L2",
                    None,
                    vec![
                        answer(10, &[4.0]),
                        answer(10, &[1.0, 3.0]),
                        failed("it does not run", false),
                    ],
                ),
                query(
                    "L3",
                    Some(7),
                    vec![
                        answer(7, &[4.0]),
                        answer(6, &[1.0]),
                        failed("it does not run", false),
                    ],
                ),
                query(
                    "L4",
                    None,
                    vec![
                        answer(7, &[6.0]),
                        failed("timed out", true),
                        failed("it does not run", false),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn ratios_losses_and_differences() {
        let r = sample();
        let ratio = |q: usize| r.queries[q].ratio(1, r.limit_ms()).unwrap();
        assert_eq!(ratio(0).times, 10.0);
        assert_eq!(ratio(1).times, 0.5);
        assert!(ratio(3).at_least && ratio(3).times == 10_000.0);
        // A wrong answer is never the fastest.
        assert_eq!(r.queries[2].fastest_peer(r.limit_ms()), None);
        assert_eq!(r.losses().len(), 1);
        let (mean, n) = r.mean_of_fastest().unwrap();
        assert_eq!(n, 3);
        assert!((mean.times - 50_000f64.powf(1.0 / 3.0)).abs() < 1e-9 && mean.at_least);
        let d = r.differences();
        assert_eq!(
            d,
            [
                "L3: a gave 6 rows, 7 are right",
                "L4: a took more than 60 s",
                "b took no part: no port"
            ]
        );
    }

    #[test]
    fn other_terms_are_named() {
        let mut r = sample();
        r.queries[0].answers[1].seen = Some(Seen {
            rows: 10,
            checksum: 2,
        });
        assert!(
            r.differences()[0].contains("other terms"),
            "{:?}",
            r.differences()
        );
    }

    #[test]
    fn json_there_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("r.json");
        sample().write_json(&file).unwrap();
        assert_eq!(Report::read_json(&file).unwrap(), sample());
    }

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(
            [0.0123, 1.234, 45.67, 1234.5].map(ms),
            ["0.012", "1.23", "45.7", "1,235"]
        );
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(size(12_345_678), "12.3 MB");
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_795_305_599), "2026-11-21");
        assert_eq!(median(&[1.0, 2.0, 10.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[]), None);
    }
}
