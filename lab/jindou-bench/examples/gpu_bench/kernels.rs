//! Each kernel's time over its byte floor, on segments shaped like LUBM's: attributes (one neighbour, keys in
//! runs or dense), memberships (one to many), sparse keys; anchors in key order and shuffled.

use crate::{Options, median, say, seconds_between};
use jindou_gpu::params::{self, Compact, ListRange, MAX_LISTS, OperandParams, TILE};
use jindou_gpu::reference::XorShift;
use jindou_gpu::{Device, DeviceBuffer, Kernel, ResidentSegment};
use jindou_graph::segment::{
    EdgeView, GraphScope, KeyFinder, NamedSegment, SegmentArrays, SegmentBuilder,
};
use jindou_model::Result;
use serde_json::json;
use std::sync::Arc;

struct Bench<'a> {
    device: &'a Arc<Device>,
    repeat: usize,
    bandwidth: f64,
    /// Zeroed before each launch.
    scratch: DeviceBuffer,
}

impl Bench<'_> {
    /// Runs a kernel, prints its median time over the floor of `bytes` useful bytes, and over that of `moved`
    /// bytes, where a random access moves a sector of 32.
    fn time<P: bytemuck::NoUninit>(
        &self,
        what: &str,
        kernel: Kernel,
        units: u64,
        p: &P,
        bytes: f64,
        moved: f64,
    ) -> Result<()> {
        let mut seconds = vec![];
        for _ in 0..self.repeat + 2 {
            self.scratch.clear()?;
            let a = self.device.mark()?;
            // SAFETY: callers pass live buffers of the documented lengths.
            unsafe {
                self.device.launch(
                    kernel,
                    kernel.grid(units).unwrap_or(1),
                    bytemuck::bytes_of(p),
                )?
            };
            let b = self.device.mark()?;
            seconds.push(seconds_between(self.device, a, b)?);
        }
        let s = median(&mut seconds[2..]);
        say(json!({
            "kernel": kernel.symbol(), "on": what, "us": s * 1e6, "mb": bytes / 1e6,
            "times_floor": s / (bytes / self.bandwidth), "times_moved": s / (moved / self.bandwidth),
        }));
        Ok(())
    }
}

/// `keys` keys with steps of up to `gap` ids and up to `degree` neighbours each.
fn segment(r: &mut XorShift, keys: u32, gap: u32, degree: u32) -> Result<SegmentArrays> {
    let mut b = SegmentBuilder::new(false);
    let mut key = 1;
    for _ in 0..keys {
        let mut n = 1 + r.below(keys / 2);
        for _ in 0..1 + r.below(degree) {
            b.push(key, n, 0);
            n += 1 + r.below(1000);
        }
        key += 1 + r.below(gap);
    }
    b.finish()
}

fn view<'a>(a: &'a SegmentArrays) -> EdgeView<'a> {
    EdgeView::new(a.view(), NamedSegment::EMPTY, None)
}

fn shuffle(r: &mut XorShift, v: &mut [u32]) {
    for i in (1..v.len()).rev() {
        v.swap(i, r.below(i as u32 + 1) as usize);
    }
}

pub fn measure(device: &Arc<Device>, o: &Options, bandwidth: f64) -> Result<()> {
    let (rows, repeat) = (o.rows, o.repeat);
    let mut left_out = vec![];
    let r = &mut XorShift::new(17);
    let scratch = DeviceBuffer::new(device, 64 + 8 * u64::from(rows).div_ceil(TILE) as usize)?;
    let b = Bench {
        device,
        repeat,
        bandwidth,
        scratch,
    };
    let buffer = |words: u64| DeviceBuffer::new(device, words as usize * 4);
    let n = f64::from(rows);
    let carried_from = DeviceBuffer::with(device, &(0..rows).collect::<Vec<_>>())?;
    let (carried_to, out) = (buffer(u64::from(rows))?, buffer(u64::from(rows))?);
    let mut compact: Compact = bytemuck::Zeroable::zeroed();
    compact.rows = rows;
    compact.counter = b.scratch.at();
    (
        compact.columns.count,
        compact.columns.from[0],
        compact.columns.to[0],
    ) = (1, carried_from.at(), carried_to.at());

    // Streaming: starts, filters, checksum.
    let intervals = DeviceBuffer::with(device, &[[5u32, 5 + rows]])?;
    let before = DeviceBuffer::with(device, &[0u64])?;
    let p = params::StartIntervalsParams {
        intervals: intervals.at(),
        before: before.at(),
        out: out.at(),
        begin: 0,
        count: 1,
        rows,
    };
    b.time(
        "one interval",
        Kernel::StartIntervals,
        u64::from(rows),
        &p,
        4.0 * n,
        4.0 * n,
    )?;
    let random: Vec<u32> = (0..rows).map(|_| r.bits()).collect();
    let column = DeviceBuffer::with(device, &random)?;
    let within = params::Within {
        table: 0,
        count: 1,
        pad: 0,
        start: 0,
        end: 1 << 31,
    };
    let p = params::RestrictParams {
        compact,
        operand: OperandParams::column(column.at()),
        within,
    };
    b.time(
        "half stays, 1 column",
        Kernel::Restrict,
        u64::from(rows),
        &p,
        8.0 * n,
        8.0 * n,
    )?;
    let p = params::SameParams {
        compact,
        left: OperandParams::column(column.at()),
        right: OperandParams::column(column.at()),
        negate: 0,
        pad: 0,
    };
    b.time(
        "all stay, 1 column",
        Kernel::Same,
        u64::from(rows),
        &p,
        16.0 * n,
        16.0 * n,
    )?;
    let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
    (p.sum, p.rows, p.width) = (b.scratch.at(), rows, 2);
    (p.columns[0], p.columns[1]) = (column.at(), carried_from.at());
    b.time(
        "2 columns",
        Kernel::Checksum,
        u64::from(rows),
        &p,
        8.0 * n,
        8.0 * n,
    )?;

    for (name, gap, degree) in [
        ("intervals, 1 neighbour", 1, 1),
        ("bitmap, 1 neighbour", 4, 1),
        ("directory, 1 neighbour", 60, 1),
        ("intervals, 1-5 neighbours", 1, 5),
        ("bitmap, 1-5 neighbours", 4, 5),
    ] {
        if o.is_over() {
            left_out.push(name.to_owned());
            continue;
        }
        let arrays = segment(r, rows, gap, degree)?;
        let v = view(&arrays);
        let resident = ResidentSegment::bring(device, &v.into(), GraphScope::Default)?;
        let mut keys = vec![];
        v.default.keys_into(0, rows, &mut keys);
        if let KeyFinder::Bitmap { blocks, .. } = v.default.finder
            && degree == 1
        {
            let p = params::StartKeysParams {
                segment: resident.params,
                out: out.at(),
                begin: 0,
                rows,
                first_block: 0,
                blocks: blocks.len() as u32,
            };
            let bytes = 16.0 * blocks.len() as f64 + 4.0 * n;
            b.time(
                "bitmap",
                Kernel::StartBits,
                blocks.len() as u64 * 8,
                &p,
                bytes,
                bytes,
            )?;
        }
        let edges = v.default.neighbours.len() as f64;
        let kind = v.default.finder.kind().name();
        // Sectors of 32 bytes that a random lookup touches: finder, and offsets or the neighbour.
        let sectors = match kind {
            "intervals" => 1.0,
            "bitmap" => 2.0,
            _ => 3.0,
        };
        for order in ["in order", "shuffled"] {
            if order == "shuffled" {
                shuffle(r, &mut keys);
            }
            let anchors = DeviceBuffer::with(device, &keys)?;
            let what = format!("{name}, {order}");
            let random = order == "shuffled";
            let lookup = resident.lookup_bytes();
            if degree == 1 {
                let p = params::ExpandOneParams {
                    compact,
                    segment: resident.params,
                    anchor: OperandParams::column(anchors.at()),
                    within: bytemuck::Zeroable::zeroed(),
                    out: out.at(),
                };
                // In order, the finder's lines are shared by neighbours: its arrays are read once.
                let finder = if random {
                    lookup * n
                } else {
                    resident.bytes() as f64 - 4.0 * edges
                };
                let bytes = (4.0 + 4.0 + 12.0) * n + finder;
                let moved = if random {
                    (4.0 + 12.0 + 32.0 * sectors) * n
                } else {
                    bytes
                };
                b.time(&what, Kernel::ExpandOne, u64::from(rows), &p, bytes, moved)?;
                continue;
            }
            let (starts, prefix) = (buffer(u64::from(rows))?, buffer(u64::from(rows) + 1)?);
            let p = params::MeasureParams {
                rows,
                lists: 1,
                segment: resident.params,
                anchor: OperandParams::column(anchors.at()),
                count: 0,
                starts: starts.at(),
                prefix: prefix.at(),
                total: b.scratch.at(),
                ticket: b.scratch.at() + 8,
                state: b.scratch.at() + 16,
            };
            let finder = if random {
                (lookup + 8.0) * n
            } else {
                resident.bytes() as f64 - 4.0 * edges
            };
            let bytes = 12.0 * n + finder;
            let moved = if random {
                (12.0 + 32.0 * sectors) * n
            } else {
                bytes
            };
            b.time(&what, Kernel::Measure, u64::from(rows), &p, bytes, moved)?;
            let total = b.scratch.read::<u64>(1)?[0];
            let units = u64::from(rows) + total;
            let bounds = buffer(2)?;
            let (wide, new) = (buffer(total)?, buffer(total)?);
            let mut p: params::ExpandParams = bytemuck::Zeroable::zeroed();
            p.columns = compact.columns;
            p.columns.to[0] = wide.at();
            (p.prefix, p.bounds, p.starts) = (prefix.at(), bounds.at(), starts.at());
            (p.neighbours, p.out, p.counter) =
                (resident.params.neighbours, new.at(), b.scratch.at());
            (p.begin, p.end, p.rows, p.lists) = (0, units, rows, 1);
            p.room = total;
            let t = total as f64;
            let bytes = 12.0 * n + 12.0 * t;
            // A short list out of order: its sectors are not shared with other rows.
            let moved = if random {
                12.0 * n + 32.0 * n + 8.0 * t
            } else {
                bytes
            };
            b.time(&what, Kernel::Expand, units, &p, bytes, moved)?;
            p.within = params::Within {
                table: 0,
                count: 1,
                pad: 0,
                start: 0,
                end: u32::MAX,
            };
            b.time(&what, Kernel::ExpandWithin, units, &p, bytes, moved)?;

            // Check: the edge to the first neighbour; intersection: each list with itself, all stay.
            let others: Vec<u32> = keys
                .iter()
                .map(|&k| v.default.neighbours_of(k).first().copied().unwrap_or(0))
                .collect();
            let others = DeviceBuffer::with(device, &others)?;
            let p2 = params::CheckParams {
                compact,
                segment: resident.params,
                anchor: OperandParams::column(anchors.at()),
                other: OperandParams::column(others.at()),
            };
            let bytes = (8.0 + 8.0 + 12.0) * n + finder;
            let moved = if random {
                (16.0 + 32.0 * (sectors + 1.0)) * n
            } else {
                bytes
            };
            b.time(&what, Kernel::Check, u64::from(rows), &p2, bytes, moved)?;
            // The same where the predicate, of 64, is in a column.
            let heads = vec![resident.params.head; 64];
            let heads = DeviceBuffer::with(device, &heads)?;
            let terms = DeviceBuffer::with(device, &(1..=64u32).collect::<Vec<_>>())?;
            let catalog = params::CatalogParams {
                heads: heads.at(),
                terms: terms.at(),
                count: 64,
                pad: 0,
            };
            let predicates: Vec<u32> = (0..rows).map(|_| 1 + r.below(64)).collect();
            let predicates = DeviceBuffer::with(device, &predicates)?;
            let (anchor, predicate) = (
                OperandParams::column(anchors.at()),
                OperandParams::column(predicates.at()),
            );
            let p3 = params::CheckAnyParams {
                compact,
                catalog,
                anchor,
                predicate,
                other: p2.other,
            };
            let (more, more_moved) = (bytes + 4.0 * n, moved + 4.0 * n);
            b.time(
                &what,
                Kernel::CheckAny,
                u64::from(rows),
                &p3,
                more,
                more_moved,
            )?;
            let lists = buffer(2 * u64::from(rows))?;
            let p3 = params::MeasureAnyParams {
                rows,
                pad: 0,
                catalog,
                anchor,
                predicate,
                lists: lists.at(),
                prefix: prefix.at(),
                total: b.scratch.at(),
                ticket: b.scratch.at() + 8,
                state: b.scratch.at() + 16,
                count: 0,
            };
            let bytes = 20.0 * n + finder;
            let moved = if random {
                (20.0 + 32.0 * sectors) * n
            } else {
                bytes
            };
            b.time(
                &what,
                Kernel::MeasureAny,
                u64::from(rows),
                &p3,
                bytes,
                moved,
            )?;
            let p3 = params::ExpandAnyParams {
                columns: p.columns,
                prefix: prefix.at(),
                bounds: bounds.at(),
                lists: lists.at(),
                out: new.at(),
                count: 0,
                total: 0,
                begin: 0,
                end: units,
                room: total,
                rows,
                pad: 0,
            };
            let bytes = 16.0 * n + 12.0 * t;
            let moved = if random {
                16.0 * n + 32.0 * n + 8.0 * t
            } else {
                bytes
            };
            b.time(&what, Kernel::ExpandAny, units, &p3, bytes, moved)?;
            let (s0, l0, s1, l1) = (
                buffer(u64::from(rows))?,
                buffer(u64::from(rows))?,
                buffer(u64::from(rows))?,
                buffer(u64::from(rows))?,
            );
            let mut m: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
            (m.rows, m.lists, m.prefix) = (rows, 2, prefix.at());
            (m.total, m.ticket, m.state) =
                (b.scratch.at(), b.scratch.at() + 8, b.scratch.at() + 16);
            for (i, (s, l)) in [(&s0, &l0), (&s1, &l1)].into_iter().enumerate() {
                m.anchors[i] = OperandParams::column(anchors.at());
                m.segments[i] = resident.params;
                m.ranges[i] = ListRange {
                    neighbours: resident.params.neighbours,
                    starts: s.at(),
                    lengths: l.at(),
                    start: 0,
                    length: 0,
                };
            }
            let bytes = (4.0 + 2.0 * 12.0) * n + 2.0 * finder;
            let moved = if random {
                (28.0 + 64.0 * sectors) * n
            } else {
                bytes
            };
            b.time(
                &what,
                Kernel::MeasureMany,
                u64::from(rows),
                &m,
                bytes,
                moved,
            )?;
            p.ranges = [bytemuck::Zeroable::zeroed(); MAX_LISTS];
            p.ranges[..2].copy_from_slice(&m.ranges[..2]);
            p.lists = 2;
            p.within = bytemuck::Zeroable::zeroed();
            // Each candidate is searched in a list of about three.
            let bytes = 24.0 * n + (4.0 + 12.0 + 8.0) * t;
            let moved = if random {
                24.0 * n + 32.0 * n + 8.0 * t
            } else {
                bytes
            };
            b.time(&what, Kernel::Intersect, units, &p, bytes, moved)?;
        }
    }
    o.say_left_out(&left_out);
    Ok(())
}
