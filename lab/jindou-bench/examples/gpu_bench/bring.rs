//! Measures how fast graph segments are uploaded to the GPU: the speed of the link, the speed at which the host's
//! threads copy into pinned memory, and the share of both that queries reach whose segments are not yet on the device.
//! It also compares settings that could become the default: numbers of threads and sizes of pieces of the upload ring,
//! and files that the driver pins.

use crate::figures::{Goal, say_figure};
use crate::{Options, median, seconds_between};
use jindou_gpu::{
    Backend, CopyLane, Device, DeviceBuffer, GpuExecutor, GpuOptions, ResultUse, RingOptions,
};
use jindou_model::{Direction, Error, MemoryBudget, PredicateId, Result};
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{Snapshot, open};
use jindou_workloads::queries::lubm::QUERIES;
use serde_json::json;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which a device without queries frees its memory. Long, so that it never does here.
const IDLE: Duration = Duration::from_secs(600);

/// Share of the link's speed that uploads should reach.
const PART: f64 = 0.8;
/// Bytes of one copy over the link, and of the pinned memory that the host fills. The CPU emulation of a GPU (the shim)
/// uses fewer.
const BYTES: usize = 256 << 20;
const SHIM_BYTES: usize = 8 << 20;
/// Reads every predicate's segments, and asks for one row only.
const EVERYTHING: &str = "SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 1";

/// Pinned memory, freed when this value is dropped.
struct Pinned<'d> {
    device: &'d Arc<Device>,
    at: NonNull<u8>,
    bytes: usize,
}

impl<'d> Pinned<'d> {
    fn new(device: &'d Arc<Device>, bytes: usize) -> Result<Self> {
        let at = device.alloc_host(bytes)?;
        // SAFETY: the allocation has `bytes` bytes, and no other reference to it exists.
        unsafe { at.write_bytes(0, bytes) };
        Ok(Self { device, at, bytes })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory was initialised in `new`, and no copy from or to it is running.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.bytes) }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated on this device with this length, and all copies from it have ended.
        unsafe { self.device.free_host(self.at, self.bytes) };
    }
}

/// Bytes per second from pinned memory to the device.
fn link(device: &Arc<Device>, pinned: &Pinned<'_>, repeat: usize) -> Result<f64> {
    let to = DeviceBuffer::new(device, pinned.bytes)?;
    let mut seconds = vec![];
    for _ in 0..repeat + 1 {
        let a = device.mark()?;
        // SAFETY: both ranges have this length, and nothing writes to the pinned memory until the wait below.
        unsafe { device.upload(to.at(), pinned.at, pinned.bytes, CopyLane::Ordered)? };
        let b = device.mark()?;
        seconds.push(seconds_between(device, a, b)?.max(1e-9));
    }
    Ok(pinned.bytes as f64 / median(&mut seconds[1..]))
}

/// The store's neighbour lists as slices of the mapped files, of at most `bytes` bytes together.
fn lists(snapshot: &Snapshot, bytes: usize) -> Vec<&[u8]> {
    let (mut out, mut taken) = (vec![], 0);
    for p in (0..snapshot.predicate_count()).map(PredicateId) {
        for d in [Direction::Out, Direction::In] {
            let view = snapshot.edges(p, d);
            let Some(here) = view.here().filter(|_| taken < bytes) else {
                continue;
            };
            let list: &[u8] = bytemuck::cast_slice(here.default.neighbours);
            let list = &list[..list.len().min(bytes - taken)];
            taken += list.len();
            out.push(list);
        }
    }
    out
}

/// Bytes per second that `threads` threads copy from the store's files into pinned memory.
fn fill(to: &mut [u8], from: &[&[u8]], threads: usize, repeat: usize) -> f64 {
    let mut seconds = vec![];
    let mut bytes = 0;
    for _ in 0..repeat + 1 {
        // Pieces of a list, each with the part of `to` that it is copied to, dealt to the threads in turn.
        let mut work: Vec<Vec<(&[u8], &mut [u8])>> = (0..threads).map(|_| vec![]).collect();
        let (mut rest, mut next) = (&mut *to, 0);
        bytes = 0;
        for piece in from.iter().flat_map(|list| list.chunks(1 << 20)) {
            let most = piece.len().min(rest.len());
            let (place, after) = std::mem::take(&mut rest).split_at_mut(most);
            bytes += place.len();
            work[next % threads].push((&piece[..place.len()], place));
            (rest, next) = (after, next + 1);
        }
        let began = Instant::now();
        std::thread::scope(|scope| {
            for mine in work {
                scope.spawn(move || {
                    for (from, to) in mine {
                        to.copy_from_slice(from);
                    }
                });
            }
        });
        seconds.push(began.elapsed().as_secs_f64().max(1e-9));
    }
    bytes as f64 / median(&mut seconds[1..])
}

pub fn measure(backend: &Arc<dyn Backend>, o: &Options) -> Result<bool> {
    let snapshot = Snapshot::of_base(open(&o.store)?);
    let bytes = if o.is_shim() { SHIM_BYTES } else { BYTES };
    let speed = {
        let device = Device::new(Arc::clone(backend));
        link(&device, &Pinned::new(&device, bytes)?, o.repeat)?
    };
    let goal = Goal::AtLeast(PART * speed / 1e9);
    let more = json!({ "mb": bytes as f64 / 1e6 });
    let (what, had) = ("the link, from pinned memory", Some(speed / 1e9));
    say_figure(o, what, "GB/s", None, had, more);
    let heavy = QUERIES
        .iter()
        .filter(|q| ["L1", "L2", "L7"].contains(&q.name));
    let texts = heavy.map(|q| (q.name, q.text));
    let mut left_out = vec![];
    for (name, text) in texts.chain([("everything", EVERYTHING)]) {
        if o.is_over() {
            left_out.push(name.to_owned());
            continue;
        }
        let plan = plan(&parse(text)?, &snapshot, &PlanOptions::default())?;
        let options = GpuOptions {
            profile: true,
            ..GpuOptions::default()
        };
        // Each run has a new device without segments. In the first run the process has not yet read most pages of the
        // store's files either; only earlier queries have read some.
        let (mut seconds, mut brought) = (vec![], 0);
        for _ in 0..o.repeat.min(5) + 1 {
            if !seconds.is_empty() && o.is_over() {
                break;
            }
            // `prepare` allocates the ring for uploads, as opening a device does.
            let device = Device::new(Arc::clone(backend));
            device.prepare()?;
            let gpu = GpuExecutor::on(device, IDLE);
            match gpu.execute(&plan, &snapshot, ResultUse::Count, &options) {
                Ok(r) => {
                    seconds.push(r.profile.bring_seconds.max(1e-9));
                    brought = r.profile.segment_bytes;
                }
                Err(e @ (Error::Limit(_) | Error::Unsupported(_))) => {
                    let more = json!({ "query": name, "refused": e.to_string() });
                    say_figure(o, &format!("{name}, cold"), "GB/s", Some(goal), None, more);
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        let Some(&first) = seconds.first() else {
            continue;
        };
        for (run, seconds) in [("first", first), ("later", median(&mut seconds[1..]))] {
            let had = (seconds > 0.0).then_some(brought as f64 / seconds / 1e9);
            let more = json!({ "query": name, "mb": brought as f64 / 1e6, "ms": seconds * 1e3 });
            let what = format!("{name}, bringing its segments, {run} time");
            say_figure(o, &what, "GB/s", Some(goal), had, more);
        }
    }
    ways(backend, bytes, goal, o)?;
    filling(backend, &snapshot, bytes, goal, o)?;
    o.say_left_out(&left_out);
    Ok(true)
}

/// Seconds until these lists are on the device.
fn brought(device: &Arc<Device>, to: &DeviceBuffer, lists: &[&[u8]]) -> Result<f64> {
    let began = Instant::now();
    let mut at = 0;
    for list in lists {
        to.write(at, list)?;
        at += list.len();
    }
    device.sync()?;
    Ok(began.elapsed().as_secs_f64().max(1e-9))
}

/// Speeds of the ring by number of threads and by size of pieces, each measured just after the files were mapped and
/// again.
fn ways(backend: &Arc<dyn Backend>, bytes: usize, goal: Goal, o: &Options) -> Result<()> {
    let usual = RingOptions::default();
    let mut threads = vec![1, 2, 4, 6, 8, 12, 16];
    threads.retain(|&t| t <= o.threads.max(2));
    let sizes = [256usize << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20];
    // Each number of threads with the default size of pieces, and each size with the default number of threads.
    let by_threads = threads.iter().map(|&t| (t, usual.piece));
    let by_size = sizes.iter().map(|&size| (usual.threads, size));
    for (threads, piece) in by_threads.chain(by_size) {
        if o.is_over() {
            return Ok(());
        }
        let ring = RingOptions {
            threads,
            piece,
            budget: MemoryBudget::unlimited(),
        };
        let pinned = ring.pieces() * piece;
        let device = Device::with_ring(Arc::clone(backend), u64::MAX, ring);
        let began = Instant::now();
        device.prepare()?;
        let pinning = began.elapsed().as_secs_f64();
        // A new mapping, whose pages this process has not read yet.
        let fresh = Snapshot::of_base(open(&o.store)?);
        let lists = lists(&fresh, bytes);
        let all = lists.iter().map(|l| l.len()).sum::<usize>();
        let to = DeviceBuffer::new(&device, all)?;
        let first = brought(&device, &to, &lists)?;
        let mut again = vec![];
        for _ in 0..o.repeat.min(5) {
            again.push(brought(&device, &to, &lists)?);
        }
        let speed = |seconds: f64| all as f64 / seconds / 1e9;
        let what = format!("ring of {threads} threads, pieces of {} KiB", piece >> 10);
        let more = json!({
            "threads": threads, "piece_kib": piece >> 10, "pinned_mib": pinned as f64 / f64::from(1 << 20),
            "pin_ms": pinning * 1e3, "fresh_gb_s": speed(first), "mb": all as f64 / 1e6,
        });
        say_figure(
            o,
            &what,
            "GB/s",
            Some(goal),
            Some(speed(median(&mut again))),
            more,
        );
    }
    Ok(())
}

/// Speeds at which several numbers of threads fill pinned memory from the store's files.
fn filling(
    backend: &Arc<dyn Backend>,
    snapshot: &Snapshot,
    bytes: usize,
    goal: Goal,
    o: &Options,
) -> Result<()> {
    let device = Device::new(Arc::clone(backend));
    let mut pinned = Pinned::new(&device, bytes)?;
    let lists = lists(snapshot, bytes);
    let mut threads = 1;
    while threads <= o.threads && !o.is_over() {
        let speed = fill(pinned.bytes(), &lists, threads, o.repeat.min(5));
        let what = format!("store to pinned memory, {threads} threads");
        let more = json!({ "threads": threads });
        say_figure(o, &what, "GB/s", Some(goal), Some(speed / 1e9), more);
        threads *= 2;
    }
    Ok(())
}
