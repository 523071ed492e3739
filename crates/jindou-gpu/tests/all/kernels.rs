//! Every kernel on the shim against plain Rust code, in orders drawn from seeds, together with the bytes that it is
//! documented to move. And injected bugs must be found.

use crate::common::{logging, shim};
use jindou_gpu::params::{self, OperandParams};
use jindou_gpu::reference::{Checker, XorShift};
use jindou_gpu::shim::{KernelCounts, Shim, ShimOptions, planted_bugs};
use jindou_gpu::{Backend, Device, DeviceBuffer, Kernel, ResidentSegment};
use jindou_graph::segment::{EdgeView, GraphScope, NamedSegment, SegmentBuilder};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Checks all kernels, over tables whose row count the host overestimates by `spare` rows.
fn check(options: ShimOptions, rows: u32, seed: u64, spare: u32) -> jindou_model::Result<()> {
    let shim: Arc<dyn Backend> = Arc::new(Shim::open(options)?);
    let mut c = Checker::new(shim, seed);
    c.spare = spare;
    c.all(rows)
}

/// Runs threads in an order drawn from a seed; 0 to run them in order.
fn shuffled(seed: u64) -> ShimOptions {
    ShimOptions {
        seed,
        ..ShimOptions::default()
    }
}

#[test]
fn kernels_agree_with_plain_rust_in_order() {
    for rows in [1, 31, 300, 2048, 3000] {
        check(shuffled(0), rows, u64::from(rows), 0).unwrap();
    }
}

#[test]
fn kernels_agree_with_plain_rust_in_shuffled_orders() {
    for seed in 1..=3 {
        check(shuffled(seed), 3000, seed, 0).unwrap();
    }
}

#[test]
fn kernels_read_how_many_rows_there_are() {
    for (rows, spare, seed) in [(1, 1, 0), (300, 9000, 0), (2048, 1, 5), (3000, 5000, 6)] {
        check(shuffled(seed), rows, u64::from(rows), spare).unwrap();
    }
}

/// Tables of which only the device knows that they have no rows.
#[test]
fn kernels_read_that_there_are_no_rows() {
    let device = Device::new(shim(ShimOptions::default()));
    let word = |value: u32| DeviceBuffer::with(&device, &[value, 0]).unwrap();
    let (none, total, counter, prefix) = (word(0), word(7), word(0), word(9));
    let (scan, out) = (DeviceBuffer::with(&device, &[0u64; 9]).unwrap(), word(5));
    let launch = |kernel: Kernel, p: &[u8]| {
        // SAFETY: there are no rows to read, and there is room for what is written in that case.
        unsafe { device.launch(kernel, 4, p).unwrap() };
        device.sync().unwrap();
    };
    let mut p: params::MeasureParams = bytemuck::Zeroable::zeroed();
    (p.rows, p.count, p.prefix, p.total) = (5000, none.at(), prefix.at(), total.at());
    (p.ticket, p.state) = (scan.at(), scan.at() + 8);
    launch(Kernel::Measure, bytemuck::bytes_of(&p));
    assert_eq!(total.read::<u64>(1).unwrap(), [0]);
    assert_eq!(prefix.read::<u32>(1).unwrap(), [0]);
    let mut p: params::ExpandParams = bytemuck::Zeroable::zeroed();
    (p.rows, p.count, p.prefix, p.total) = (5000, none.at(), prefix.at(), total.at());
    (p.end, p.room, p.lists, p.out) = (9000, 4000, 2, out.at());
    p.counter = counter.at();
    for kernel in [Kernel::Expand, Kernel::ExpandWithin, Kernel::Intersect] {
        launch(kernel, bytemuck::bytes_of(&p));
    }
    let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
    (p.rows, p.count, p.sum, p.width) = (5000, none.at(), counter.at(), 1);
    launch(Kernel::Checksum, bytemuck::bytes_of(&p));
    assert_eq!(counter.read::<u64>(1).unwrap(), [0]);
    assert_eq!(out.read::<u32>(1).unwrap(), [5]);
}

#[test]
fn kernels_move_the_bytes_that_they_document() {
    for spare in [0, 4000] {
        let shim = logging();
        let mut c = Checker::new(shim.clone(), 11);
        c.spare = spare;
        c.all(3000).unwrap();
        let log = shim.take_log();
        assert_eq!(log.len(), c.launches.len());
        let mut seen = BTreeSet::new();
        for (i, ((kernel, counts), (expected, bytes))) in log.iter().zip(&c.launches).enumerate() {
            let name = kernel.symbol();
            assert_eq!(kernel, expected);
            assert_eq!(counts.total(), *bytes, "launch {i}, {name}: {counts:?}");
            seen.insert(*kernel);
        }
        assert_eq!(seen.len(), Kernel::ALL.len(), "not all checked: {seen:?}");
    }
}

/// The shim must reject grids that a GPU's driver would reject.
#[test]
fn a_grid_without_blocks_or_with_too_many_is_refused() {
    let shim = Shim::open(ShimOptions::default()).unwrap();
    for &kernel in Kernel::ALL {
        let params = vec![0; kernel.params_size()];
        for grid in [0, 1 << 31] {
            // SAFETY: no block runs, so nothing is accessed.
            let refused = unsafe { shim.launch(kernel, grid, &params) }.unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains(kernel.symbol()), "{refused}");
            assert!(refused.contains(&grid.to_string()), "{refused}");
        }
    }
    assert_eq!(shim.take_traffic().launches, 0);
}

/// For warps of 32 rows: the number of warps with an access, and of sectors that they touch, given the address that
/// each row reads or writes.
fn sectors(addresses: &[Option<u64>]) -> (u64, u64) {
    let warps = addresses.chunks(32).map(|warp| {
        let touched: BTreeSet<u64> = warp.iter().flatten().map(|a| a / 32).collect();
        touched.len() as u64
    });
    let warps: Vec<u64> = warps.filter(|&n| n > 0).collect();
    (warps.len() as u64, warps.iter().sum())
}

/// A shim that counts sectors.
fn counting() -> ShimOptions {
    ShimOptions {
        log: true,
        sectors: true,
        ..ShimOptions::default()
    }
}

/// Launches a kernel and returns the shim's counts.
fn counted<P: bytemuck::NoUninit>(
    shim: &Shim,
    device: &Device,
    kernel: Kernel,
    rows: u32,
    p: &P,
) -> KernelCounts {
    let _ = shim.take_log();
    let grid = kernel.grid(u64::from(rows)).unwrap();
    // SAFETY: callers pass live buffers of the documented lengths.
    unsafe { device.launch(kernel, grid, bytemuck::bytes_of(p)).unwrap() };
    device.sync().unwrap();
    let [(of, counts)] = shim.take_log()[..] else {
        panic!("one launch");
    };
    assert_eq!(of, kernel);
    counts
}

/// The shim's counts of accesses by warp, and of sectors touched, must be those that plain Rust computes from the
/// addresses.
#[test]
fn the_shim_counts_the_sectors_that_warps_touch() {
    const ROWS: u32 = 5000;
    let shim = shim(counting());
    let device = Device::new(shim.clone());
    let mut r = XorShift::new(5);
    let [streamed, random, cached, written] = [0, 1, 2, 3];
    // A bitmap of 20,000 keys with one neighbour each.
    let mut builder = SegmentBuilder::new(false);
    let keys: Vec<u32> = (0..20_000u32).map(|i| 3 + i * 3 + r.below(2)).collect();
    for &key in &keys {
        builder.push(key, 1 + r.below(1 << 20), 0);
    }
    let arrays = builder.finish().unwrap();
    let view = EdgeView::new(arrays.view(), NamedSegment::EMPTY, None);
    let segment = ResidentSegment::bring(&device, &view.into(), GraphScope::Default).unwrap();
    assert_eq!(segment.params.head.kind, 2, "a bitmap");
    for spread in [false, true] {
        // Adjacent or random keys; some ids are not keys.
        let anchor = |i: u32| match spread {
            true => r.below(70_000),
            false => keys[i as usize],
        };
        let anchors: Vec<u32> = (0..ROWS).map(anchor).collect();
        let column = DeviceBuffer::with(&device, &anchors).unwrap();
        let out = DeviceBuffer::new(&device, ROWS as usize * 4).unwrap();
        let counter = DeviceBuffer::new(&device, 4).unwrap();
        counter.clear().unwrap();
        let mut p: params::ExpandOneParams = bytemuck::Zeroable::zeroed();
        (p.compact.rows, p.compact.counter) = (ROWS, counter.at());
        (p.segment, p.anchor) = (segment.params, OperandParams::column(column.at()));
        p.out = out.at();
        let c = counted(&shim, &device, Kernel::ExpandOne, ROWS, &p);
        let all: Vec<u64> = (0..u64::from(ROWS)).collect();
        let reads: Vec<_> = all.iter().map(|i| Some(column.at() + 4 * i)).collect();
        let (requests, touched) = sectors(&reads);
        let of = |kind: usize| (c.requests[kind], c.sectors[kind]);
        assert_eq!(of(streamed), (requests, touched));
        let head = &segment.params.head;
        let blocks = anchors.iter().map(|&v| {
            let block = u64::from(v.checked_sub(head.first)? / 64);
            (block < u64::from(head.table_len)).then_some(head.table + 16 * block)
        });
        let lists = anchors.iter().map(|v| {
            let key = keys.binary_search(v).ok()?;
            Some(head.neighbours + 4 * key as u64)
        });
        let lists: Vec<_> = lists.collect();
        let (a, b) = (sectors(&blocks.collect::<Vec<_>>()), sectors(&lists));
        assert_eq!(of(random), (a.0 + b.0, a.1 + b.1));
        if spread {
            // Nearly one sector per lane for finding the key, and one per lane that has a key.
            assert!(c.sectors[random] > 30 * requests, "{c:?}");
        } else {
            // 32 adjacent keys are in two or three blocks, and their neighbours in four or five sectors.
            assert!(c.sectors[random] <= 7 * requests, "{c:?}");
        }
        // Kept rows are appended, so the rows of a tile and item begin anywhere in a sector.
        let kept = lists.iter().flatten().count() as u64;
        assert_eq!((c.written, c.requests[written]), (4 * kept, requests));
        let least = kept.div_ceil(8);
        assert!((least..=least + 2 * requests).contains(&c.sectors[written]));
        assert_eq!(c.requests[cached], 0);
    }
}

/// Sectors read per row when a list is measured, and ids read when it is expanded, if half of the ids lie in an
/// interval: without clipping, and with it. Clipping short lists costs more than it saves, so they are not clipped
/// (`compile/clip.rs`).
#[test]
fn cutting_lists_pays_where_they_are_long() {
    const ROWS: u32 = 2048;
    let shim = shim(counting());
    let device = Device::new(shim.clone());
    let mut r = XorShift::new(3);
    println!("ids of a list  tested: sectors, ids walked  cut: sectors, ids walked, a row");
    for (degree, shuffled) in [1u32, 4, 8, 16, 32, 64, 256]
        .into_iter()
        .flat_map(|d| [(d, false), (d, true)])
    {
        let mut builder = SegmentBuilder::new(false);
        for key in 1..=ROWS {
            let mut id = 1 + r.below(500);
            for _ in 0..degree {
                builder.push(key, id, 0);
                id += 1 + r.below(2_000_000 / degree);
            }
        }
        let arrays = builder.finish().unwrap();
        let view = EdgeView::new(arrays.view(), NamedSegment::EMPTY, None);
        let segment = ResidentSegment::bring(&device, &view.into(), GraphScope::Default).unwrap();
        let mut anchors: Vec<u32> = (1..=ROWS).collect();
        for i in (1..anchors.len()).rev().filter(|_| shuffled) {
            anchors.swap(i, r.below(i as u32 + 1) as usize);
        }
        let column = DeviceBuffer::with(&device, &anchors).unwrap();
        let words = |n: u64| DeviceBuffer::new(&device, n as usize * 4).unwrap();
        let rows = u64::from(ROWS);
        let mut of = [(0.0, 0.0); 2];
        for cut in [false, true] {
            let (starts, prefix, out) = (words(rows), words(rows + 1), words(rows * 256));
            let scan = DeviceBuffer::with(&device, &[0u64; 12]).unwrap();
            let lengths = words(rows);
            let mut p: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
            (p.rows, p.lists, p.segments[0]) = (ROWS, 1, segment.params);
            p.anchors[0] = OperandParams::column(column.at());
            p.ranges[0].neighbours = segment.params.neighbours;
            (p.ranges[0].starts, p.ranges[0].lengths) = (starts.at(), lengths.at());
            (p.prefix, p.total) = (prefix.at(), scan.at());
            (p.ticket, p.state) = (scan.at() + 8, scan.at() + 16);
            p.clip.end = 500_000;
            p.clip.lists = u32::from(cut);
            let all = |c: &KernelCounts| c.sectors.iter().sum::<u64>();
            let measured = counted(&shim, &device, Kernel::MeasureCut, ROWS, &p);
            let total = scan.read::<u64>(1).unwrap()[0];
            let mut p: params::ExpandParams = bytemuck::Zeroable::zeroed();
            (p.prefix, p.starts, p.neighbours) =
                (prefix.at(), starts.at(), segment.params.neighbours);
            (p.out, p.counter) = (out.at(), scan.at() + 88);
            (p.end, p.room, p.rows, p.lists) = (rows + total, total, ROWS, 1);
            (p.within.count, p.within.end) = (1, 500_000);
            let kernel = match cut {
                true => Kernel::Expand,
                false => Kernel::ExpandWithin,
            };
            let units = ROWS + total as u32;
            let made = counted(&shim, &device, kernel, units, &p);
            let a_row = |n: u64| n as f64 / rows as f64;
            of[usize::from(cut)] = (a_row(all(&measured) + all(&made)), a_row(made.candidates));
        }
        let [(tested, walked), (sectors, left)] = of;
        let order = if shuffled { "shuffled" } else { "in order" };
        println!("{degree:>3} {order} {tested:>16.1} {walked:>11.1} {sectors:>13.1} {left:>11.1}");
        // A row reads both ends of its list, and searches for one bound.
        let most = tested + 3.0 + f64::from(degree).log2();
        assert!(sectors <= most, "{degree}");
        // On an H200, a random sector takes as long as reading two ids; in order of keys, as half an id.
        let (ids, least) = if shuffled { (2.0, 24) } else { (0.5, 4) };
        let gain = walked - left - ids * (sectors - tested);
        assert!(gain > 0.0 || degree < least, "{degree} {order}: {gain}");
    }
}

/// The names of injected bugs that no check finds.
fn missed(bugs: impl Iterator<Item = (u32, String)>) -> Vec<String> {
    let mut missed = vec![];
    for (bug, name) in bugs {
        let found = (0..6).any(|seed| {
            let options = ShimOptions {
                bug,
                ..shuffled(seed)
            };
            let spare = if seed % 2 == 1 { 2500 } else { 0 };
            check(options, 4500, seed + 1, spare).is_err()
        });
        if !found {
            missed.push(name);
        }
    }
    missed
}

#[test]
fn some_planted_bugs_are_found() {
    let missed = missed(planted_bugs().into_iter().step_by(8));
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
#[ignore = "40 seconds of a processor"]
fn planted_bugs_are_found() {
    let missed = missed(planted_bugs().into_iter());
    assert!(missed.is_empty(), "not found: {missed:?}");
}
