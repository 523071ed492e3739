//! Checks every kernel against plain Rust on the shim, in one thread: `check_kernels [ROWS [SEEDS [BUG]]]`. It is meant
//! for sanitizers, which would report the threads of the test harness as races. With the name of an injected bug, it
//! fails if the bug is found.

use jindou_gpu::Backend;
use jindou_gpu::reference::Checker;
use jindou_gpu::shim::{Shim, ShimOptions, planted_bugs};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (rows, seeds) = (number(0, 2500u64) as u32, number(1, 2u64));
    let bug = args
        .get(2)
        .and_then(|name| planted_bugs().into_iter().find(|b| b.1 == *name));
    for seed in 0..=seeds {
        let options = ShimOptions {
            seed,
            bug: bug.as_ref().map_or(0, |b| b.0),
            ..ShimOptions::default()
        };
        let checked = Shim::open(options).and_then(|shim| {
            let shim: Arc<dyn Backend> = Arc::new(shim);
            let mut c = Checker::new(shim, seed + 1);
            c.all(rows)?;
            Ok(c.launches.len())
        });
        match checked {
            Ok(n) => println!("seed {seed}: {n} launches agree"),
            Err(e) => {
                println!("seed {seed}: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
