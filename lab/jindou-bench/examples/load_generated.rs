//! Loads generated data into a folder and prints the seconds of each phase and the bytes of each part.
//!
//! `cargo run --release -p jindou-bench --example load_generated -- SOURCE DIR [THREADS [MEMORY_MIB]]`
//! with `lubm:UNIVERSITIES` or `ugly:QUADS` as source.

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, Result};
use jindou_store::{LoadOptions, check, info, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::ugly::Ugly;
use std::path::Path;
use std::time::Instant;

/// Discards batches, to measure the cost of generating alone.
struct Nowhere;

impl QuadSink for Nowhere {
    fn batch(&mut self, _: &QuadBatch) -> Result<()> {
        Ok(())
    }
}

/// Makes a source. Called for each pass, since a source delivers its data once.
type Make = Box<dyn Fn() -> Box<dyn QuadSource>>;

fn source(name: &str) -> Option<Make> {
    let (kind, size) = name.split_once(':')?;
    let size: u64 = size.parse().ok()?;
    match kind {
        "lubm" => Some(Box::new(move || Box::new(Lubm::new(size as u32, 0)))),
        "ugly" => Some(Box::new(move || Box::new(Ugly::new(size, 0)))),
        _ => None,
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let (Some(make), Some(dir)) = (args.first().and_then(|a| source(a)), args.get(1)) else {
        eprintln!("usage: load_generated lubm:UNIVERSITIES|ugly:QUADS DIR [THREADS [MEMORY_MIB]]");
        std::process::exit(2);
    };
    let dir = Path::new(dir);
    let mut options = LoadOptions::default().with_replace(true);
    if let Some(threads) = number(2) {
        options.threads = threads as usize;
    }
    if let Some(mib) = number(3) {
        options.memory = mib << 20;
    }
    let alone = make();
    let clock = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..options.threads {
            let (alone, threads) = (&alone, options.threads);
            scope.spawn(move || alone.run(t, threads, &mut Nowhere, &Progress::default()));
        }
    });
    println!(
        "generate to nowhere    {:8.2} s",
        clock.elapsed().as_secs_f64()
    );

    let clock = Instant::now();
    let report = load(dir, &*make(), &options, &Progress::default())?;
    let seconds = clock.elapsed().as_secs_f64();
    for (phase, s) in &report.seconds {
        println!("{phase:22} {s:8.2} s");
    }
    println!(
        "all                    {seconds:8.2} s, {:.2} M quads/s, {} read, {} stored, {} terms, peak {} MiB",
        report.quads_read as f64 / seconds / 1e6,
        report.quads_read,
        report.quads_stored,
        report.terms,
        report.peak_bytes >> 20
    );
    let quads = report.quads_stored.max(1) as f64;
    for (name, bytes) in &report.files {
        println!(
            "{name:22} {bytes:12} B {:6.2} a quad",
            *bytes as f64 / quads
        );
    }
    for (name, bytes) in info(dir)?.parts {
        println!(
            "  {name:32} {bytes:12} B {:6.2} a quad",
            bytes as f64 / quads
        );
    }
    println!("in all {:.2} B a quad", report.store_bytes as f64 / quads);
    let clock = Instant::now();
    drop(open(dir)?);
    println!("open {:.1} ms", clock.elapsed().as_secs_f64() * 1e3);
    let clock = Instant::now();
    let checked = check(dir)?;
    let seconds = clock.elapsed().as_secs_f64();
    println!("check {seconds:.2} s, sound: {}", checked.is_sound());
    for damage in checked.damages {
        println!("  {damage}");
    }
    Ok(())
}
