//! Large uploads through the pinned ring: the device receives every byte, whichever thread fills a piece, and the ring
//! is pinned only once.

use crate::common::{holds_nothing, native, paged, ring, rows_here, rows_on, shim};
use jindou_gpu::reference::XorShift;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Device, DeviceBuffer, GpuExecutor, GpuOptions, RingOptions};
use jindou_model::{Error, MemoryBudget};
use std::sync::Arc;
use std::time::Duration;

const PIECE: usize = 4096;

fn options(threads: usize) -> RingOptions {
    RingOptions {
        threads,
        piece: PIECE,
        budget: MemoryBudget::new(1 << 20),
    }
}

fn late(delay: bool) -> Arc<Shim> {
    shim(ShimOptions {
        delay,
        ..paged(1024)
    })
}

fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut r = XorShift::new(seed);
    (0..bytes).map(|_| r.bits() as u8).collect()
}

#[test]
fn any_number_of_threads_uploads_the_same_bytes() {
    for (threads, delay) in [(1, false), (2, true), (4, false), (7, true)] {
        let shim = late(delay);
        let device = Device::with_ring(shim.clone(), u64::MAX, options(threads));
        let two = 2 * PIECE;
        for bytes in [
            1,
            PIECE,
            two - 1,
            two,
            two + 1,
            13 * PIECE + 77,
            300 * PIECE + 1,
        ] {
            let want = content(bytes, bytes as u64);
            let buffer = DeviceBuffer::with(&device, &want).unwrap();
            let got = buffer.read::<u8>(bytes).unwrap();
            assert!(got == want, "{bytes} bytes by {threads}");
        }
        drop(device);
        holds_nothing(&shim, "afterwards");
    }
}

/// Several queries upload at the same time through one ring.
#[test]
fn uploads_at_the_same_time_share_the_ring() {
    let shim = late(true);
    let device = Device::with_ring(shim.clone(), u64::MAX, options(3));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let device = &device;
            scope.spawn(move || {
                for round in 0..20 {
                    let want = content((3 + round) * PIECE, 100 * thread + round as u64);
                    let buffer = DeviceBuffer::with(device, &want).unwrap();
                    assert!(buffer.read::<u8>(want.len()).unwrap() == want);
                }
            });
        }
    });
    drop(device);
    holds_nothing(&shim, "afterwards");
}

#[test]
fn the_ring_is_pinned_once_charged_and_no_larger_than_it_may_be() {
    let shim = late(false);
    let ring = options(3);
    let budget = ring.budget.clone();
    let device = Device::with_ring(shim.clone(), u64::MAX, ring);
    device.prepare().unwrap();
    device.prepare().unwrap();
    let pinned = (6 * PIECE) as u64;
    assert_eq!((shim.holdings().pinned, budget.used()), (pinned, pinned));
    let _ = shim.take_traffic();
    for _ in 0..3 {
        let want = content(100 * PIECE, 5);
        let buffer = DeviceBuffer::with(&device, &want).unwrap();
        device.sync().unwrap();
        drop(buffer);
    }
    let traffic = shim.take_traffic();
    assert_eq!((traffic.pinned, shim.holdings().pinned), (0, pinned));
    assert_eq!(traffic.upload_bytes, (300 * PIECE) as u64);
    assert_eq!(traffic.uploads, 300);
    drop(device);
    assert_eq!((shim.holdings().pinned, budget.used()), (0, 0));
}

/// A budget for two pieces makes a ring of two pieces; with a smaller budget, uploads use the staging memory.
#[test]
fn a_small_budget_makes_a_small_ring_or_none() {
    for (limit, pieces) in [(2 * PIECE + 100, 2), (PIECE - 1, 0)] {
        let shim = late(false);
        let ring = RingOptions {
            budget: MemoryBudget::new(limit as u64),
            ..options(4)
        };
        let device = Device::with_ring(shim.clone(), u64::MAX, ring);
        assert_eq!(device.prepare().is_ok(), pieces > 0);
        assert_eq!(shim.holdings().pinned, (pieces * PIECE) as u64);
        let want = content(50 * PIECE, 9);
        let buffer = DeviceBuffer::with(&device, &want).unwrap();
        if pieces > 0 {
            assert_eq!(shim.holdings().pinned, (pieces * PIECE) as u64);
        }
        assert!(buffer.read::<u8>(want.len()).unwrap() == want);
    }
}

/// Segments, as a whole and in pages, are uploaded through the ring to a device that does everything as late as
/// possible.
#[test]
fn plans_read_segments_that_threads_brought() {
    let (_folder, snapshot) = ring(4000, 3);
    let (mut pages, mut ran) = (0, 0);
    for (kib, threads) in [
        (1 << 20, 1),
        (1 << 20, 3),
        (94, 3),
        (92, 3),
        (90, 2),
        (88, 3),
    ] {
        let shim = late(true);
        let device = Device::with_ring(shim.clone(), kib << 10, options(threads));
        let gpu = GpuExecutor::on(device, Duration::from_secs(60));
        for text in [
            "SELECT ?b ?c ?v WHERE { :n1 :p ?b . ?b :q ?c . ?c :v ?v }",
            "SELECT ?b ?c ?d WHERE { :n2 :p ?b . ?b :p ?c . ?c :q ?d }",
            "SELECT ?a ?b WHERE { ?a :q ?b . ?a :p ?b }",
        ] {
            let plan = native(&snapshot, text);
            let want = rows_here(&plan, &snapshot);
            match rows_on(&gpu, &plan, &snapshot, &GpuOptions::default()) {
                Ok(rows) => assert_eq!(rows, want, "{text} in {kib} KiB"),
                Err(Error::Limit(_) | Error::Unsupported(_)) => continue,
                Err(e) => panic!("{text} in {kib} KiB: {e}"),
            }
            ran += 1;
            pages += shim.take_traffic().pages;
        }
        drop(gpu);
        holds_nothing(&shim, "afterwards");
    }
    println!("{ran} runs, {pages} pages");
    assert!(ran >= 6 && pages > 0);
}
