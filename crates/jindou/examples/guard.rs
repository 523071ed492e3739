//! The work that `scripts/bench-quick.sh` counts instructions of: loading, planning, exploring, serialising.
//!
//! ```text
//! cargo run --release --example guard -- prepare DIR
//! cargo run --release --example guard -- run DIR [TIMES]
//! ```
//!
//! `prepare` makes the input. `run` runs each part once (or `TIMES` times) and prints its name, its number of rows and
//! the shortest time in seconds. Everything runs on one thread, and random choices have fixed seeds, so that two runs
//! of the same executable execute (almost) the same instructions. The code uses only the library's public interface, so
//! that it can be built against older versions of the library too.

use jindou::parse::Sources;
use jindou::{
    Database, Error, LoadOptions, PlannedQuery, Progress, QueryOptions, Result, ResultFormat,
    ResultWriter,
};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::ntriples::{TagCase, write_source};
use jindou_workloads::queries::lubm::{Constants, LIGHT, QUERIES};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// Number of LUBM universities in the store that is queried, and in the text that is loaded.
const ASKED: u32 = 5;
const LOADED: u32 = 1;
/// Repetitions of short operations within a part, so that reading the clock adds little to the part's instruction
/// count.
const PLANS: usize = 20;
const RUNS: usize = 10;
const CONSTANTS: usize = 200;

/// Prepares the input, or runs and counts each part.
pub fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["prepare", dir] => prepare(Path::new(dir)),
        ["run", dir] => run(Path::new(dir), 1),
        ["run", dir, times] => match times.parse() {
            Ok(times) => run(Path::new(dir), times),
            Err(_) => Err(Error::Query(format!("'{times}' is not a number of runs"))),
        },
        _ => Err(Error::Query(
            "guard prepare DIR | guard run DIR [TIMES]".into(),
        )),
    }
}

fn load_options() -> LoadOptions {
    LoadOptions::default()
        .with_threads(1)
        .with_memory(1 << 30)
        .with_replace(true)
}

fn prepare(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
    let text = dir.join("text.nt");
    let file = std::fs::File::create(&text).map_err(|e| Error::io(&text, e))?;
    let mut out = BufWriter::new(file);
    write_source(&Lubm::new(LOADED, 0), TagCase::Lower, &mut out)?;
    out.flush().map_err(|e| Error::io(&text, e))?;
    let graph = Lubm::new(ASKED, 0);
    Database::load(
        dir.join("store"),
        &graph,
        &load_options(),
        &Progress::default(),
    )?;
    Ok(())
}

/// Only instructions below this function are counted: the profiler finds it by its name in the stack.
#[inline(never)]
fn guard_measured(part: &mut dyn FnMut() -> Result<u64>) -> Result<u64> {
    std::hint::black_box(part())
}

/// Makes glibc's allocator merge small freed blocks now. Otherwise it does so at the next large allocation, and the
/// part that happens to make it would be charged for blocks that earlier parts freed.
fn settle() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(64 << 10)));
}

/// Runs parts and prints their names, rows and times.
struct Parts {
    times: usize,
}

impl Parts {
    fn part(&self, name: &str, part: &mut dyn FnMut() -> Result<u64>) -> Result<()> {
        let mut best = f64::INFINITY;
        let mut rows = 0;
        for _ in 0..self.times.max(1) {
            settle();
            let start = Instant::now();
            rows = guard_measured(part)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{name}\t{rows}\t{best:.9}");
        Ok(())
    }
}

fn run(dir: &Path, times: usize) -> Result<()> {
    let parts = Parts { times };
    let loaded = dir.join("loaded");
    let text = dir.join("text.nt");
    parts.part("load text", &mut || {
        let sources = Sources::builder().path(&text).build()?;
        let report = Database::load(&loaded, &sources, &load_options(), &Progress::default())?;
        Ok(report.quads_read)
    })?;
    let store = dir.join("store");
    parts.part("open", &mut || Ok(Database::open(&store)?.quads()))?;
    let db = Database::open(&store)?;
    let options = QueryOptions::default().with_threads(1);
    for q in &QUERIES {
        parts.part(&format!("plan {}", q.name), &mut || {
            for _ in 0..PLANS {
                std::hint::black_box(db.plan_uncached(q.text, &options)?);
            }
            Ok(PLANS as u64)
        })?;
    }
    for q in &QUERIES {
        let plan = db.plan(q.text, &options)?;
        db.checksum(&plan, &options)?;
        parts.part(&format!("explore {}", q.name), &mut || {
            repeated(RUNS, || Ok(db.checksum(&plan, &options)?.rows))
        })?;
    }
    for (i, template) in LIGHT.iter().enumerate() {
        let mut constants = Constants::new(ASKED, 0, i as u64 + 1);
        let mut plans: Vec<PlannedQuery> = Vec::new();
        while plans.len() < CONSTANTS {
            let Some(iri) = constants.draw(template.class) else {
                break;
            };
            plans.push(db.plan_uncached(&template.with(&iri), &options)?);
        }
        parts.part(&format!("light {}", template.name), &mut || {
            let mut rows = 0;
            for p in &plans {
                rows += db.checksum(p, &options)?.rows;
            }
            Ok(rows)
        })?;
    }
    for (name, format) in [
        ("tsv", ResultFormat::Tsv),
        ("json", ResultFormat::Json),
        ("xml", ResultFormat::Xml),
    ] {
        for q in QUERIES.iter().filter(|q| matches!(q.name, "L2" | "L7")) {
            parts.part(&format!("write {} as {name}", q.name), &mut || {
                repeated(2, || {
                    let mut out = std::io::sink();
                    let mut writer = ResultWriter::new(&mut out, format);
                    Ok(db.run(q.text, &options, &mut writer)?.rows)
                })
            })?;
        }
    }
    Ok(())
}

fn repeated(times: usize, mut f: impl FnMut() -> Result<u64>) -> Result<u64> {
    let mut sum = 0;
    for _ in 0..times {
        sum += f()?;
    }
    Ok(sum)
}
