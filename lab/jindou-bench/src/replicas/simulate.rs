//! `jindou bench replicas simulate`, `jindou bench cluster updates simulate`: seeds of the simulator in `jindou-replicas`, on all cores:
//! the guarantees hold in each. With `--plant`, mistakes that it must find.

use super::servers::wrong;
use crate::args::replicas::ReplicasSimulate;
use jindou::{Error, Result};
use jindou_replicas::simulate::{Fault, Seeds, Setup, seeds, trace};
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

/// Seeds after which a line says how far it is.
const EACH: u64 = 1000;

/// Status 3 if a guarantee does not hold, or a planted fault is not found. With `shards`, each server has some shards.
pub fn run(a: &ReplicasSimulate, shards: bool) -> Result<ExitCode> {
    let (all, command) = match shards {
        true => (
            Fault::OF_SHARDS.to_vec(),
            "jindou bench cluster updates simulate",
        ),
        false => (Fault::ALL.to_vec(), "jindou bench replicas simulate"),
    };
    let end = (a.seed.checked_add(a.seeds)).ok_or_else(|| Error::Usage("no such seeds".into()))?;
    let planted = match a.plant.as_deref() {
        None => None,
        Some("all") => Some(all),
        Some(name) => {
            let fault = Fault::named(name).filter(|fault| all.contains(fault));
            let unknown = || Error::Usage(format!("{name} is none of the faults: {all:?}"));
            Some(vec![fault.ok_or_else(unknown)?])
        }
    };
    if a.trace {
        return show(a.seed, shards, planted.as_deref());
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    match planted {
        None => Ok(hold(a.seed..end, (shards, command), threads)),
        Some(faults) => Ok(find(&faults, a.seed..end, threads)),
    }
}

/// The seeds without a fault.
fn hold(range: Range<u64>, (shards, command): (bool, &str), threads: usize) -> ExitCode {
    let begun = Instant::now();
    let played = |n: u64| {
        if n.is_multiple_of(EACH) {
            println!("{n} seeds after {:.0} s", begun.elapsed().as_secs_f64());
        }
    };
    let setup = Setup {
        shards,
        fault: None,
    };
    let all = seeds(range.clone(), setup, threads, played);
    println!("simulated: {}", all.counts);
    let time = begun.elapsed().as_secs_f64();
    if let Some((seed, why)) = failure(&all) {
        println!("{} seeds held; {why}", all.held);
        println!("again, with all that happens: {command} --seed {seed} --trace");
        return ExitCode::from(3);
    }
    println!(
        "the guarantees hold in {} seeds from {}; {time:.1} s on {threads} threads",
        all.held, range.start
    );
    ExitCode::SUCCESS
}

fn failure(all: &Seeds) -> Option<(u64, String)> {
    let (seed, _) = all.failed.as_ref()?;
    Some((*seed, all.failure()?))
}

/// Each fault in turn.
fn find(faults: &[Fault], range: Range<u64>, threads: usize) -> ExitCode {
    let (begun, mut missed) = (Instant::now(), 0);
    for &fault in faults {
        let all = seeds(range.clone(), Setup::from(fault), threads, |_| ());
        match all.failure() {
            Some(why) => println!("{fault:?}: {why}"),
            None => {
                missed += 1;
                println!("{fault:?}: not found in {} seeds", all.held);
            }
        }
    }
    println!(
        "{} of {} planted faults found in {} seeds or fewer; {:.1} s on {threads} threads",
        faults.len() - missed,
        faults.len(),
        range.end - range.start,
        begun.elapsed().as_secs_f64()
    );
    match missed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(3),
    }
}

/// All that happens in one seed.
fn show(seed: u64, shards: bool, planted: Option<&[Fault]>) -> Result<ExitCode> {
    let fault = match planted {
        None => None,
        Some([fault]) => Some(*fault),
        Some(_) => return Err(Error::Usage("--trace with one fault, --plant NAME".into())),
    };
    let (run, lines) = trace(seed, Setup { shards, fault });
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}").map_err(|e| wrong(e.to_string()))?;
    }
    writeln!(out, "{}\nhash {:016x}", run.counts, run.trace).map_err(|e| wrong(e.to_string()))?;
    Ok(match run.violation {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(3),
    })
}
