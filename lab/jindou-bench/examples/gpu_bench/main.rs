//! Checks and measures a GPU, stage by stage: `gpu_bench STAGE [options]`. Each stage prints lines of JSON.
//! `bench/gpu.sh` runs all stages on a machine with a GPU. With `JINDOU_GPU=shim` they run on an emulation on the CPU,
//! where only the checks mean anything.
//!
//! | stage | what |
//! |---|---|
//! | `driver` | the GPU, its driver and memory |
//! | `check` | every kernel against plain Rust on random data, one group after the other (`--only GROUP` for one) |
//! | `speeds` | copies, random accesses, launches, waits, filling, allocating, pinning, the link; the cost model uses
//! them |
//! | `floors` | each kernel's time over its byte floor, on segments of LUBM's shapes |
//! | `load` | LUBM(N) into `--store` |
//! | `queries` | LUBM's queries on that store: counts and checksums against the CPU's, times, predictions, runs with a
//! share of the memory that they need |
//! | `rows` | LUBM's large answers as TSV by the library, with `--gpu` off, on and auto |
//! | `bring` | the speed of the link, of the host's copies into pinned memory, and the share of both that uploads of
//! segments reach |
//! | `paging` | ATC '18's tables 5 and 6 and figures 11 and 12 in milliseconds, with 3, 6 and 10 GB and with all memory |
//! | `served` | heavy and light clients over HTTP, with `--gpu` off, on and auto |
//! | `transfers` | bytes that LUBM's heavy queries need and move, alongside ATC '18's tables 1 and 5 and its figure 11;
//! counted, so that no GPU is needed |
//! | `threads` | the heavy queries of `queries` on this CPU with 1, 2, 4 … threads |
//!
//! With `--seconds`, a stage starts nothing more after that time and prints what it left out. A missed goal is printed
//! ([`figures`]); only a wrong answer is a failure.

mod bring;
mod figures;
mod kernels;
mod lubm;
mod paging;
mod rows;
mod served;
mod speeds;
mod transfers;

use jindou_gpu::backend::Mark;
use jindou_gpu::reference::{Checker, GROUPS};
use jindou_gpu::{Backend, Device, DeviceBuffer};
use jindou_model::{Error, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of all stages.
pub struct Options {
    stage: String,
    rows: u32,
    check_rows: u32,
    repeat: usize,
    only: Option<String>,
    store: PathBuf,
    universities: u32,
    threads: usize,
    /// Time that the stage may take from `began` on; `None`: no limit.
    seconds: Option<f64>,
    began: Instant,
}

impl Options {
    /// True if the CPU emulates the GPU, so that times say nothing about a GPU.
    fn is_shim(&self) -> bool {
        std::env::var("JINDOU_GPU").is_ok_and(|d| d == "shim")
    }

    /// Time that the stage has left; counts from one hour if it has no limit.
    fn left(&self) -> Duration {
        let budget = Duration::from_secs_f64(self.seconds.unwrap_or(3600.0));
        budget.saturating_sub(self.began.elapsed())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Prints what the stage left out because its time was over.
    fn say_left_out(&self, left_out: &[String]) {
        if !left_out.is_empty() {
            say(
                json!({ "stopped": format!("after {:.1} s", self.began.elapsed().as_secs_f64()), "left_out": left_out }),
            );
        }
    }
}

const USAGE: &str = "usage: gpu_bench driver|check|speeds|floors|load|queries|threads|rows|bring|paging|served|transfers \
[--rows N] [--check-rows N] [--repeat R] [--only GROUP] [--store DIR] [--lubm N] [--threads T] [--seconds S]";

fn options() -> std::result::Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let mut o = Options {
        stage: args.next().unwrap_or_default(),
        rows: 16 << 20,
        check_rows: 200_000,
        repeat: 11,
        only: None,
        store: PathBuf::new(),
        universities: 1,
        threads: 2,
        seconds: None,
        began: Instant::now(),
    };
    while let Some(a) = args.next() {
        let value = args.next().ok_or_else(|| format!("{a} needs a value"))?;
        let number = || {
            value
                .parse::<u32>()
                .map_err(|_| format!("{a} needs a number, not {value}"))
        };
        match a.as_str() {
            "--rows" => o.rows = number()?.max(1),
            "--check-rows" => o.check_rows = number()?.max(1),
            "--repeat" => o.repeat = number()?.max(1) as usize,
            "--only" => o.only = Some(value),
            "--store" => o.store = PathBuf::from(value),
            "--lubm" => o.universities = number()?.max(1),
            "--threads" => o.threads = number()?.max(1) as usize,
            "--seconds" => o.seconds = Some(f64::from(number()?)),
            _ => return Err(format!("unknown option {a}")),
        }
    }
    Ok(o)
}

fn main() {
    let code = match options() {
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            2
        }
        Ok(o) => match run(&o) {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(e) => {
                say(json!({ "failed": e.to_string() }));
                1
            }
        },
    };
    std::process::exit(code);
}

/// Prints a line of results.
pub fn say(line: Value) {
    println!("{line}");
}

/// Runs a stage. Returns false if it found an error.
fn run(o: &Options) -> Result<bool> {
    let open = || jindou_gpu::open().map_err(Error::Unsupported);
    match o.stage.as_str() {
        "driver" => driver(&*open()?),
        "check" => check(&open()?, o),
        "speeds" => speeds::measure(&Device::new(open()?), o),
        "floors" => {
            let device = Device::new(open()?);
            let bandwidth = copy_bandwidth(&device, (o.rows as usize) * 64, o.repeat)?;
            say(json!({ "copy_gb_s": bandwidth / 1e9, "rows": o.rows }));
            kernels::measure(&device, o, bandwidth)?;
            Ok(true)
        }
        "load" => lubm::load_into(o),
        "queries" => lubm::measure(open()?, o),
        "threads" => lubm::threads(o),
        "rows" => rows::measure(o),
        "bring" => bring::measure(&open()?, o),
        "paging" => paging::measure(o),
        "served" => served::measure(o),
        "transfers" => transfers::measure(o),
        other => Err(Error::Unsupported(format!(
            "no stage is called '{other}'; {USAGE}"
        ))),
    }
}

fn driver(backend: &dyn Backend) -> Result<bool> {
    let (free, total) = backend.memory()?;
    say(json!({
        "device": backend.name(), "identity": backend.identity(), "free_mib": free >> 20, "total_mib": total >> 20,
    }));
    Ok(true)
}

/// Checks every group of kernels at several sizes. A group that fails does not stop the others.
fn check(backend: &Arc<dyn Backend>, o: &Options) -> Result<bool> {
    let mut right = true;
    let wanted = |g: &&str| o.only.as_ref().is_none_or(|only| only == g);
    let mut left_out = vec![];
    for group in GROUPS.into_iter().filter(wanted) {
        if o.is_over() {
            left_out.push(group.to_owned());
            continue;
        }
        let mut launches = 0;
        let done = [1, 31, 300, 2048, 5000, o.check_rows]
            .into_iter()
            .try_for_each(|rows| {
                let seeds = if rows == o.check_rows { 1 } else { 3 };
                (1..=seeds).try_for_each(|seed| {
                    let mut c = Checker::new(Arc::clone(backend), seed * 1000 + u64::from(rows));
                    // One seed uses tables with spare rows, whose real length only the device knows.
                    c.spare = if seed == 2 { 3000 } else { 0 };
                    let done = c.group(group, rows);
                    launches += c.launches.len();
                    done
                })
            });
        right &= done.is_ok();
        match done {
            Ok(()) => say(json!({ "group": group, "right": true, "launches": launches })),
            Err(e) => say(json!({ "group": group, "right": false, "why": e.to_string() })),
        }
        if let Some(why) = backend.failure() {
            return Err(Error::Internal(why));
        }
    }
    o.say_left_out(&left_out);
    Ok(right)
}

/// Median of the bytes per second of a copy inside the device; reads and writes both count.
fn copy_bandwidth(device: &Arc<Device>, bytes: usize, repeat: usize) -> Result<f64> {
    let (from, to) = (
        DeviceBuffer::new(device, bytes)?,
        DeviceBuffer::new(device, bytes)?,
    );
    from.clear()?;
    let mut seconds = vec![];
    for _ in 0..repeat + 2 {
        let a = device.mark()?;
        // SAFETY: both buffers live and have this length.
        unsafe { device.copy(to.at(), from.at(), bytes)? };
        let b = device.mark()?;
        seconds.push(seconds_between(device, a, b)?);
    }
    Ok(2.0 * bytes as f64 / median(&mut seconds[2..]))
}

/// Seconds between two marks. Waits until the device has reached both, and frees them.
fn seconds_between(device: &Device, a: Mark, b: Mark) -> Result<f64> {
    device.sync()?;
    let seconds = device.between(&a, &b)?;
    device.unmark(a);
    device.unmark(b);
    Ok(seconds)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
