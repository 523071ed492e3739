//! Large uploads through the pinned ring, and from pinned files: the device gets every byte, whichever thread fills a piece, and the
//! ring is pinned once.

mod common;

use common::{native, ring, rows_here, rows_on};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, Device, DeviceBuffer, GpuExecutor, GpuOptions, RingOptions};
use jindou_mapped::MappedFile;
use jindou_model::{CancelToken, MemoryBudget};
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

fn shim(delay: bool) -> Arc<Shim> {
    let options = ShimOptions {
        delay,
        page: 1024,
        ..ShimOptions::default()
    };
    Arc::new(Shim::open(options).unwrap())
}

fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn any_number_of_threads_uploads_the_same_bytes() {
    for (threads, delay) in [(1, false), (2, true), (4, false), (7, true)] {
        let shim = shim(delay);
        let device = Device::with_ring(shim.clone(), u64::MAX, options(threads));
        for bytes in [
            1,
            PIECE,
            2 * PIECE - 1,
            2 * PIECE,
            2 * PIECE + 1,
            13 * PIECE + 77,
            300 * PIECE + 1,
        ] {
            let want = content(bytes, bytes as u64);
            let buffer = DeviceBuffer::with(&device, &want).unwrap();
            assert!(
                buffer.read::<u8>(bytes).unwrap() == want,
                "{bytes} bytes by {threads}"
            );
        }
        drop(device);
        let held = shim.holdings();
        assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0));
    }
}

/// Queries upload at the same time, into one ring.
#[test]
fn uploads_at_the_same_time_share_the_ring() {
    let shim = shim(true);
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
    let held = shim.holdings();
    assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0));
}

#[test]
fn the_ring_is_pinned_once_charged_and_no_larger_than_it_may_be() {
    let shim = shim(false);
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

/// A budget with room for two pieces gives a ring of two; one without room leaves uploads to the staging memory.
#[test]
fn a_small_budget_makes_a_small_ring_or_none() {
    for (limit, pieces) in [(2 * PIECE + 100, 2), (PIECE - 1, 0)] {
        let shim = shim(false);
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

/// Segments, whole and by pages, come through the ring or from pinned files, on a device that does everything as late as it may.
#[test]
fn plans_read_segments_that_threads_brought() {
    let (_folder, snapshot) = ring(4000, 3);
    let (mut paged, mut ran, mut by_itself) = (0, 0, 0);
    for (memory, threads, pinned) in [
        (1 << 30, 1, false),
        (1 << 30, 3, false),
        (1 << 30, 3, true),
        (94 << 10, 3, false),
        (92 << 10, 3, false),
        (92 << 10, 3, true),
        (90 << 10, 2, false),
        (88 << 10, 3, false),
    ] {
        let shim = shim(true);
        let device = Device::with_ring(shim.clone(), memory, options(threads));
        if pinned {
            let pages = snapshot.base().segment_pages();
            device
                .pin_files(pages, u64::MAX, &CancelToken::new())
                .unwrap();
        }
        let gpu = GpuExecutor::on(device, Duration::from_secs(60));
        for text in [
            "SELECT ?b ?c ?v WHERE { :n1 :p ?b . ?b :q ?c . ?c :v ?v }",
            "SELECT ?b ?c ?d WHERE { :n2 :p ?b . ?b :p ?c . ?c :q ?d }",
            "SELECT ?a ?b WHERE { ?a :q ?b . ?a :p ?b }",
        ] {
            let plan = native(&snapshot, text);
            let want = rows_here(&plan, &snapshot);
            match rows_on(&gpu, &plan, &snapshot, &GpuOptions::default()) {
                Ok(rows) => assert_eq!(rows, want, "{text} in {memory}"),
                Err(jindou_model::Error::Limit(_) | jindou_model::Error::Unsupported(_)) => {
                    continue;
                }
                Err(e) => panic!("{text} in {memory}: {e}"),
            }
            ran += 1;
            let traffic = shim.take_traffic();
            paged += traffic.pages;
            by_itself += traffic.registered_bytes;
        }
        drop(gpu);
        let held = shim.holdings();
        assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0));
        assert_eq!(held.registered, 0);
    }
    println!("{ran} runs, {paged} pages, {by_itself} bytes from pinned files");
    assert!(ran >= 6 && paged > 0 && by_itself > 0);
}

/// A mapped file whose words count up from `first`.
fn mapped(folder: &std::path::Path, name: &str, first: u32, bytes: usize) -> MappedFile {
    let words: Vec<u32> = (first..).take(bytes.div_ceil(4)).collect();
    let path = folder.join(name);
    std::fs::write(&path, &bytemuck::cast_slice(&words)[..bytes]).unwrap();
    MappedFile::open(&path).unwrap()
}

/// Slices of pinned files and others are uploaded whole, and only the others are copied by the host. A file of more than a block, too.
#[test]
fn pinned_files_are_copied_by_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let none = CancelToken::new();
    for delay in [false, true] {
        let shim = shim(delay);
        let device = Device::with_ring(shim.clone(), u64::MAX, options(2));
        let large = mapped(folder.path(), "large", 1, (65 << 20) + 77);
        let small = mapped(folder.path(), "small", 7, 5 * PIECE);
        let pages = || vec![large.pages(), small.pages()];
        let whole: u64 = pages().iter().map(|p| p.bytes() as u64).sum();
        // Without enough room for the large one, the small one is pinned alone; what is pinned is not pinned again.
        let little = small.pages().bytes() as u64;
        assert_eq!(device.pin_files(pages(), little, &none).unwrap(), little);
        for _ in 0..2 {
            assert_eq!(device.pin_files(pages(), whole, &none).unwrap(), whole);
        }
        assert_eq!(shim.holdings().registered, whole);
        let _ = shim.take_traffic();
        let slices = [
            (&large[..], large.len()),
            (&large[(64 << 20) - 3 * PIECE - 1..][..7 * PIECE], 7 * PIECE),
            (&small[..], small.len()),
            (&small[100..][..3 * PIECE], 3 * PIECE),
            // Too little to be worth a copy of its own.
            (&small[1..][..PIECE], 0),
        ];
        for (slice, by_itself) in slices {
            let buffer = DeviceBuffer::with(&device, slice).unwrap();
            assert!(buffer.read::<u8>(slice.len()).unwrap() == slice);
            let traffic = shim.take_traffic();
            assert_eq!(traffic.registered_bytes, by_itself as u64);
            assert_eq!(traffic.upload_bytes, slice.len() as u64);
        }
        // Files that are closed are released, and their addresses are others' afterwards.
        drop(large);
        let others = mapped(folder.path(), "others", 3, 9 * PIECE);
        let left = device.pin_files(vec![small.pages()], whole, &none);
        assert_eq!(left.unwrap(), little);
        assert_eq!(shim.holdings().registered, little);
        let buffer = DeviceBuffer::with(&device, &others[..]).unwrap();
        assert!(buffer.read::<u8>(others.len()).unwrap() == others[..]);
        assert_eq!(shim.take_traffic().registered_bytes, 0);
        drop((buffer, device));
        let held = shim.holdings();
        assert_eq!(
            (held.device, held.pinned, held.registered, held.marks),
            (0, 0, 0, 0)
        );
        assert_eq!(shim.failure(), None);
    }
}

/// A file is closed while the device copies from it: it is released only when that is done.
#[test]
fn files_stay_pinned_while_they_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let none = CancelToken::new();
    let shim = shim(true);
    let device = Device::with_ring(shim.clone(), u64::MAX, options(1));
    let file = mapped(folder.path(), "file", 1, 40 * PIECE);
    let bytes = file.pages().bytes() as u64;
    device.pin_files(vec![file.pages()], bytes, &none).unwrap();
    let want = file.to_vec();
    let buffer = DeviceBuffer::with(&device, &file[..]).unwrap();
    drop(file);
    // The copy is not done: nothing has asked for it. To ask makes the shim do it; it is lost where pages go before.
    assert_eq!(shim.holdings().registered, bytes);
    assert_eq!(device.pin_files(Vec::new(), bytes, &none).unwrap(), 0);
    assert_eq!(shim.holdings().registered, 0);
    assert!(buffer.read::<u8>(want.len()).unwrap() == want);
    assert_eq!(shim.failure(), None);
}

/// Whatever call fails, and one more after it, uploads are right or errors, a file that is closed stays until its copies are done, and
/// nothing stays pinned in the end.
#[test]
fn failures_while_files_are_pinned_or_copied() {
    let folder = tempfile::tempdir().unwrap();
    let none = CancelToken::new();
    let other = content(9 * PIECE, 5);
    let (mut released, mut unpinned) = (0, 0);
    for fault in DeviceFault::ALL {
        for at in 1..200 {
            let mut done = false;
            for again in [0, 1, 2, 3] {
                let file = mapped(folder.path(), "file", 1, 20 * PIECE);
                let shim = shim(true);
                let faulty = Arc::new(DeviceFaults::new(shim.clone(), fault, at));
                let device = Device::with_ring(faulty.clone(), u64::MAX, options(2));
                let pinned = device.pin_files(vec![file.pages()], u64::MAX, &none);
                unpinned += u32::from(pinned.is_err());
                let mut buffers = Vec::new();
                for slice in [&file[..], &other[..], &file[7..][..11 * PIECE]] {
                    if let Ok(buffer) = DeviceBuffer::with(&device, slice) {
                        buffers.push((slice.to_vec(), buffer));
                    }
                }
                let failed = faulty.calls() >= at;
                drop(file);
                faulty.arm(again);
                for _ in 0..2 {
                    let left = device.pin_files(Vec::new(), u64::MAX, &none);
                    released += u32::from(left.is_ok_and(|left| left == 0));
                }
                for (want, buffer) in &buffers {
                    if let Ok(got) = buffer.read::<u8>(want.len()) {
                        assert!(got == *want, "{fault:?} at {at}");
                    }
                }
                drop((buffers, device));
                if faulty.failure().is_none() {
                    assert_eq!(shim.failure(), None, "{fault:?} at {at}, {again}");
                }
                drop(faulty);
                let held = shim.holdings();
                let left = (held.device, held.pinned, held.registered, held.marks);
                assert_eq!(left, (0, 0, 0, 0), "{fault:?} at {at}, {again}");
                done = !failed;
            }
            if done {
                break;
            }
            assert!(at < 199);
        }
    }
    println!("{released} releases, {unpinned} files could not be pinned");
    assert!(released > 100 && unpinned > 0);
}
