//! `jindou bench warm`: answers per second of light queries on a store that is not in the page cache, with and without
//! its files being read in the background.

use crate::args::BenchWarm;
use crate::measure::run as run_query;
use jindou::{Database, Error, QueryOptions, Result};
use jindou_testing::files_below;
use jindou_workloads::queries::lubm::{Constants, LIGHT};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Drops a store's files from the page cache. They must not be mapped by any process.
fn forget(files: &[PathBuf]) -> Result<()> {
    for path in files {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        file.sync_all().map_err(|e| Error::io(path, e))?;
        // SAFETY: the descriptor is open until the end of this block; the call touches no memory of this process.
        let failed =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if failed != 0 {
            return Err(Error::io(path, std::io::Error::from_raw_os_error(failed)));
        }
    }
    Ok(())
}

/// Reads all files to their ends, one after another. Returns their total bytes.
fn read(files: &[PathBuf]) -> Result<u64> {
    let (mut buffer, mut bytes) = (vec![0; 4 << 20], 0);
    for path in files {
        let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
        loop {
            match file.read(&mut buffer).map_err(|e| Error::io(path, e))? {
                0 => break,
                n => bytes += n as u64,
            }
        }
    }
    Ok(bytes)
}

/// Sends light queries with random constants from several threads. Returns the number answered in each second.
fn ask(db: &Database, a: &BenchWarm, seconds: u64, seed: u64) -> Result<Vec<u64>> {
    let counts: Vec<AtomicU64> = (0..seconds).map(|_| AtomicU64::new(0)).collect();
    let (begun, failed) = (Instant::now(), AtomicBool::new(false));
    let one = |thread: u64| -> Result<()> {
        let options = QueryOptions::default().with_threads(1);
        let mut number = 0;
        let mut constants = LIGHT.map(|_| {
            number += 1;
            Constants::new(a.universities, 0, seed << 32 | thread << 8 | number)
        });
        while !failed.load(Ordering::Relaxed) {
            for (template, constants) in LIGHT.iter().zip(&mut constants) {
                let constant = constants.draw(template.class);
                let text = template.with(&constant.unwrap_or_default());
                run_query(db, &db.plan(&text, &options)?, &options)?;
                match counts.get(begun.elapsed().as_secs() as usize) {
                    Some(count) => drop(count.fetch_add(1, Ordering::Relaxed)),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..a.threads as u64)
            .map(|thread| {
                let (one, failed) = (&one, &failed);
                scope.spawn(move || {
                    let done = one(thread);
                    failed.fetch_or(done.is_err(), Ordering::Relaxed);
                    done
                })
            })
            .collect();
        for thread in threads {
            let done = thread.join();
            done.map_err(|_| Error::Internal("a thread panicked".into()))??;
        }
        Ok::<_, Error>(())
    })?;
    Ok(counts.into_iter().map(AtomicU64::into_inner).collect())
}

fn line(what: &str, seconds: &[u64]) {
    let all: Vec<String> = seconds.iter().map(u64::to_string).collect();
    println!("{what}: {}", all.join(" "));
}

pub fn run(a: &BenchWarm) -> Result<ExitCode> {
    let all = files_below(&a.store);
    let failed = |failure: &Error| eprintln!("jindou-bench: {failure}");
    // Records which parts of the files queries use for the next start, as a server does.
    let warm_rate = {
        let db = Database::open(&a.store)?;
        read(&all)?;
        let warming = db.warm(failed)?;
        ask(&db, a, 3, 1)?;
        let rates = ask(&db, a, 5, 2)?;
        drop(warming);
        rates.iter().sum::<u64>() / rates.len() as u64
    };
    println!("all in memory: {warm_rate} light queries a second");
    let all = files_below(&a.store);
    forget(&all)?;
    let begun = Instant::now();
    let bytes = read(&all)?;
    let in_order = begun.elapsed();
    println!(
        "reading {:.2} GB in order: {:.2} s",
        bytes as f64 / 1e9,
        in_order.as_secs_f64()
    );
    for warms in [false, true] {
        forget(&all)?;
        let db = Database::open(&a.store)?;
        let begun = Instant::now();
        let warming = warms.then(|| db.warm(failed)).transpose()?;
        let (rates, done) = std::thread::scope(|scope| {
            let watch = warming.as_ref().map(|warming| {
                scope.spawn(move || {
                    while !warming.is_done() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    begun.elapsed()
                })
            });
            let rates = ask(&db, a, a.time.as_secs().max(1), 3);
            (rates, watch.and_then(|watch| watch.join().ok()))
        });
        let rates = rates?;
        line(if warms { "reading" } else { "cold" }, &rates);
        let reached = rates.iter().position(|r| *r * 10 >= warm_rate * 9);
        match reached {
            Some(second) => println!("  within 10 % of that rate in second {}", second + 1),
            None => println!("  never within 10 % of that rate"),
        }
        if let Some(done) = done {
            println!(
                "  all read after {:.2} s, {:.2} times as long as in order",
                done.as_secs_f64(),
                done.as_secs_f64() / in_order.as_secs_f64()
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
