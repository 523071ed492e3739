//! Checks and measures the device: `gpu_bench [--rows N] [--check-rows N] [--repeat R] [--lubm N [--threads T]]`.
//!
//! First every kernel against plain Rust on random data, then the device's copy bandwidth, then each kernel's time
//! over its byte floor on segments of LUBM's shapes, then (with `--lubm`) LUBM's queries through the real loader and
//! planner, counts and checksums compared with the CPU engine's. `JINDOU_GPU=shim` runs all of it on the CPU, where
//! only the checks mean anything.

mod kernels;
mod lubm;

use jindou_gpu::backend::Mark;
use jindou_gpu::reference::Checker;
use jindou_gpu::{Device, DeviceBuffer};
use jindou_model::{Error, Result};
use std::sync::Arc;

struct Options {
    rows: u32,
    check_rows: u32,
    repeat: usize,
    lubm: Option<u32>,
    threads: usize,
}

fn options() -> std::result::Result<Options, String> {
    let mut o = Options {
        rows: 16 << 20,
        check_rows: 200_000,
        repeat: 11,
        lubm: None,
        threads: 2,
    };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut number = || -> std::result::Result<u32, String> {
            args.next()
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| format!("{a} needs a number"))
        };
        match a.as_str() {
            "--rows" => o.rows = number()?,
            "--check-rows" => o.check_rows = number()?,
            "--repeat" => o.repeat = number()?.max(1) as usize,
            "--lubm" => o.lubm = Some(number()?),
            "--threads" => o.threads = number()?.max(1) as usize,
            _ => return Err(format!("unknown option {a}")),
        }
    }
    Ok(o)
}

fn main() {
    let code = match options() {
        Err(why) => {
            eprintln!(
                "{why}\nusage: gpu_bench [--rows N] [--check-rows N] [--repeat R] [--lubm N [--threads T]]"
            );
            2
        }
        Ok(o) => match run(&o) {
            Ok(()) => 0,
            Err(e) => {
                eprintln!("FAILED: {e}");
                1
            }
        },
    };
    std::process::exit(code);
}

fn run(o: &Options) -> Result<()> {
    let backend = jindou_gpu::open().map_err(Error::Unsupported)?;
    let (free, total) = backend.memory()?;
    println!(
        "device: {}, {} of {} MiB free",
        backend.name(),
        free >> 20,
        total >> 20
    );
    for rows in [1, 31, 300, 2048, 5000, o.check_rows] {
        for seed in 1..=3 {
            let mut c = Checker::new(Arc::clone(&backend), seed * 1000 + u64::from(rows));
            c.all(rows)?;
            if rows == o.check_rows {
                println!(
                    "checked {} launches at {rows} rows, seed {seed}",
                    c.launches.len()
                );
                break;
            }
        }
    }
    let device = Device::new(Arc::clone(&backend));
    let bandwidth = copy_bandwidth(&device, (o.rows as usize) * 64, o.repeat)?;
    println!(
        "copy bandwidth: {:.0} GB/s (read and written)",
        bandwidth / 1e9
    );
    kernels::measure(&device, o.rows, o.repeat, bandwidth)?;
    match o.lubm {
        Some(n) => lubm::measure(backend, n, o.threads, o.repeat, bandwidth),
        None => Ok(()),
    }
}

/// Bytes a second of a copy inside the device, reads and writes both counted; median.
fn copy_bandwidth(device: &Arc<Device>, bytes: usize, repeat: usize) -> Result<f64> {
    let (from, to) = (
        DeviceBuffer::new(device, bytes)?,
        DeviceBuffer::new(device, bytes)?,
    );
    from.clear()?;
    let mut seconds = vec![];
    for _ in 0..repeat + 2 {
        let a = device.mark()?;
        // SAFETY: two live buffers of this length.
        unsafe { device.copy(to.at(), from.at(), bytes)? };
        let b = device.mark()?;
        seconds.push(seconds_between(device, a, b)?);
    }
    Ok(2.0 * bytes as f64 / median(&mut seconds[2..]))
}

/// Seconds from one mark to another, which are waited for and given back.
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
