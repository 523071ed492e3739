//! Quick measurement of a device's speeds, in at most some tenths of a second.

use super::Calibration;
use super::calibration::DOUBTFUL;
use crate::backend::{Kernel, Mark};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::device::Device;
use crate::params::{self, OperandParams};
use crate::random::XorShift;
use jindou_graph::segment::FinderKind;
use jindou_model::{CancelToken, Invariant, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of lookups in one measurement of random reads: enough to keep the largest GPU busy for some tens of
/// microseconds.
const LOOK_UPS: u32 = 1 << 20;
/// Number of kernels queued together to time one.
const QUEUED: u32 = 64;
/// Sizes in bytes of the memory in which random reads are measured: within a GPU's cache, beyond it, and large enough
/// to include the cost of address translation. Each is an array of ids, which have 32 bits.
const FOOTPRINTS: [u64; 3] = [30 << 20, 1 << 30, 15 << 30];
const _: () = assert!(FOOTPRINTS[2] / 4 < u32::MAX as u64);

impl Calibration {
    /// Measures a device that must be otherwise idle. No further measurement begins after `budget`; figures missing
    /// then are derived from the others.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn measure(device: &Arc<Device>, budget: Duration, cancel: &CancelToken) -> Result<Self> {
        Self::measure_and_say(device, budget, cancel).map(|m| m.0)
    }

    /// As [`Self::measure`]; also returns the warnings of [`Self::mend`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn measure_and_say(
        device: &Arc<Device>,
        budget: Duration,
        cancel: &CancelToken,
    ) -> Result<(Self, Vec<String>)> {
        let began = Instant::now();
        let (free, _) = device.memory()?;
        let (launch, sync) = launches(device, cancel)?;
        // Copies of increasing size, until one takes long enough to be timed.
        let most = (free / 8).clamp(1 << 20, 256 << 20) as usize;
        let mut bytes = 1 << 20;
        let (mut upload, mut download) = (0.0, 0.0);
        let stream = loop {
            let (from, to) = (
                DeviceBuffer::new(device, bytes)?,
                DeviceBuffer::new(device, bytes)?,
            );
            from.clear()?;
            let seconds = least_of(device, cancel, 3, &|| {
                // SAFETY: two live buffers of this length.
                unsafe { device.copy(to.at(), from.at(), bytes) }
            })?;
            let stream = (2 * bytes) as f64 / seconds;
            if upload == 0.0 || bytes <= 16 << 20 {
                (upload, download) = link(device, &to, bytes, sync, cancel)?;
            }
            if seconds > 200e-6 || bytes >= most || began.elapsed() > budget / 3 {
                break stream;
            }
            bytes = (bytes * 4).min(most);
        };
        let mut random = Vec::<(f64, f64)>::new();
        for size in FOOTPRINTS {
            if began.elapsed() > budget / 2 || size > free / 2 {
                break;
            }
            let most = random.last().map_or(stream, |p| p.1.min(stream));
            let mut rate = sectors(device, size, stream, cancel)?;
            if rate > most * DOUBTFUL {
                rate = rate.min(sectors(device, size, stream, cancel)?);
            }
            random.push((size as f64, rate));
        }
        let mut speeds = Self {
            stream,
            random,
            launch,
            sync,
            upload,
            download,
        };
        let refused = speeds.mend();
        Ok((speeds, refused))
    }
}

/// The shortest of `times` executions of the queued `work`, in seconds by the device's clock.
fn least_of(
    device: &Arc<Device>,
    cancel: &CancelToken,
    times: usize,
    work: &dyn Fn() -> Result<()>,
) -> Result<f64> {
    let mut least = f64::MAX;
    for _ in 0..times {
        let from = device.mark()?;
        let done = work().and_then(|()| device.mark());
        let seconds = done.and_then(|to| {
            let seconds = wait_between(device, &from, &to, cancel);
            device.unmark(to);
            seconds
        });
        device.unmark(from);
        least = least.min(seconds?);
    }
    Ok(least.max(1e-9))
}

fn wait_between(device: &Device, from: &Mark, to: &Mark, cancel: &CancelToken) -> Result<f64> {
    device.wait_for(to, cancel)?;
    device.between(from, to)
}

/// Seconds that one more kernel in the queue takes, and seconds until the host has read a number that the last kernel
/// wrote.
fn launches(device: &Arc<Device>, cancel: &CancelToken) -> Result<(f64, f64)> {
    let table = DeviceBuffer::with(device, &[[1u32, 2], [0, 0]])?;
    let out = DeviceBuffer::new(device, 256)?;
    let p = params::StartIntervalsParams {
        intervals: table.at(),
        before: table.at() + 8,
        out: out.at(),
        begin: 0,
        count: 1,
        rows: 1,
    };
    // SAFETY: one interval, its count of ids before it, and room for one id.
    let launch = || unsafe { device.launch(Kernel::StartIntervals, 1, bytemuck::bytes_of(&p)) };
    launch()?;
    device.wait(cancel)?;
    let (mut one, mut many) = (f64::MAX, f64::MAX);
    let mut back = HostBuffer::new(device, 4)?;
    for _ in 0..5 {
        let began = Instant::now();
        launch()?;
        // SAFETY: the kernel writes four bytes there.
        unsafe { back.download(0, out.at(), 4)? };
        back.wait(cancel)?;
        one = one.min(began.elapsed().as_secs_f64());
        let began = Instant::now();
        for _ in 0..QUEUED {
            launch()?;
        }
        device.wait(cancel)?;
        many = many.min(began.elapsed().as_secs_f64());
    }
    let launch = ((many - one) / f64::from(QUEUED - 1)).max(1e-9);
    Ok((launch, (one - launch).max(1e-9)))
}

/// Bytes per second of copies to the device and from it, without the time `sync` of a wait.
fn link(
    device: &Arc<Device>,
    buffer: &DeviceBuffer,
    bytes: usize,
    sync: f64,
    cancel: &CancelToken,
) -> Result<(f64, f64)> {
    let content = vec![0u8; bytes];
    let (mut there, mut back) = (f64::MAX, f64::MAX);
    let mut pinned = HostBuffer::new(device, bytes)?;
    for _ in 0..2 {
        let began = Instant::now();
        buffer.write(0, &content)?;
        device.wait(cancel)?;
        there = there.min(began.elapsed().as_secs_f64());
        let began = Instant::now();
        // SAFETY: the buffer has as many bytes.
        unsafe { pinned.download(0, buffer.at(), bytes)? };
        pinned.wait(cancel)?;
        back = back.min(began.elapsed().as_secs_f64());
    }
    let rate = |seconds: f64| bytes as f64 / (seconds - sync).max(seconds / 8.0);
    Ok((rate(there), rate(back)))
}

/// Bytes per second of random reads of sectors in `size` bytes of memory.
fn sectors(device: &Arc<Device>, size: u64, stream: f64, cancel: &CancelToken) -> Result<f64> {
    let edges = (size / 4) as u32;
    let neighbours = DeviceBuffer::new(device, size as usize)?;
    neighbours.clear()?;
    // Consecutive keys with one neighbour each, so that finding a key reads nothing and a lookup reads one sector.
    let mut p: params::ExpandOneParams = bytemuck::Zeroable::zeroed();
    p.segment.kind = FinderKind::Intervals as u32;
    p.segment.table_len = 1;
    p.segment.runs[0] = params::Run {
        start: 1,
        end: edges + 1,
        base: 0,
    };
    (p.segment.key_count, p.segment.edges) = (edges, edges);
    p.segment.neighbours = neighbours.at();
    let mut r = XorShift::new(size);
    let anchors: Vec<u32> = (0..LOOK_UPS).map(|_| 1 + r.below(edges)).collect();
    let column = DeviceBuffer::with(device, &anchors)?;
    let out = DeviceBuffer::new(device, LOOK_UPS as usize * 4)?;
    let counter = DeviceBuffer::new(device, 4)?;
    p.anchor = OperandParams::column(column.at());
    p.out = out.at();
    (p.compact.rows, p.compact.counter) = (LOOK_UPS, counter.at());
    let grid = Kernel::ExpandOne.grid(LOOK_UPS.into());
    let grid = grid.invariant("the look-ups fit one launch");
    let seconds = least_of(device, cancel, 3, &|| {
        counter.clear()?;
        // SAFETY: the column has as many ids, each of which is a key; the output has room for them.
        unsafe { device.launch(Kernel::ExpandOne, grid, bytemuck::bytes_of(&p)) }
    })?;
    let looked = f64::from(LOOK_UPS);
    // Subtract the time for anchors and outputs, which are accessed sequentially.
    let alone = (seconds - 8.0 * looked / stream).max(seconds / 8.0);
    Ok(32.0 * looked / alone)
}
