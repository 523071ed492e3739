//! Every kernel on the CPU shim against plain Rust, in orders drawn from seeds, its bytes as documented, and
//! planted bugs found.

use jindou_gpu::Backend;
use jindou_gpu::reference::Checker;
use jindou_gpu::shim::{Shim, ShimOptions, planted_bugs};
use std::collections::BTreeMap;
use std::sync::Arc;

fn check(options: ShimOptions, rows: u32, seed: u64) -> jindou_model::Result<Checker> {
    let shim: Arc<dyn Backend> = Arc::new(Shim::open(options)?);
    let mut c = Checker::new(shim, seed);
    c.all(rows).map(|()| c)
}

#[test]
fn kernels_agree_with_plain_rust_in_order() {
    for rows in [1, 31, 300, 2048, 3000] {
        check(ShimOptions::default(), rows, u64::from(rows)).unwrap();
    }
}

#[test]
fn kernels_agree_with_plain_rust_in_shuffled_orders() {
    for seed in 1..=3 {
        check(
            ShimOptions {
                seed,
                ..ShimOptions::default()
            },
            3000,
            seed,
        )
        .unwrap();
    }
}

#[test]
fn kernels_move_the_bytes_that_they_document() {
    let shim = Arc::new(
        Shim::open(ShimOptions {
            log: true,
            ..ShimOptions::default()
        })
        .unwrap(),
    );
    let mut c = Checker::new(shim.clone() as Arc<dyn Backend>, 11);
    c.all(3000).unwrap();
    let log = shim.take_log();
    assert_eq!(log.len(), c.launches.len());
    let mut seen = BTreeMap::new();
    for (i, ((kernel, counts), (expected, bytes))) in log.iter().zip(&c.launches).enumerate() {
        assert_eq!(kernel, expected);
        assert_eq!(
            counts.total(),
            *bytes,
            "launch {i}, {}: {counts:?}",
            kernel.symbol()
        );
        *seen.entry(*kernel).or_insert(0) += 1;
    }
    assert_eq!(
        seen.len(),
        jindou_gpu::Kernel::ALL.len(),
        "every kernel is checked: {seen:?}"
    );
}

#[test]
fn planted_bugs_are_found() {
    let mut missed = vec![];
    for (bug, name) in planted_bugs() {
        let found = (0..6).any(|seed| {
            let options = ShimOptions {
                seed,
                bug,
                ..ShimOptions::default()
            };
            check(options, 4500, seed + 1).is_err()
        });
        if !found {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
