//! Compares each kernel's time with its byte floor, which is the time to move the bytes that it must read and write.
//! The segments are shaped like LUBM's: attributes (one neighbour; keys in runs or dense), memberships (one to many)
//! and sparse keys. The anchors, which are the vertices whose lists are read, are in key order or shuffled.

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
    /// Counters of the kernels, zeroed before each launch.
    scratch: DeviceBuffer,
    rows: u32,
    /// A column that kernels copy along with their rows, and the buffers to which they write.
    carried_from: DeviceBuffer,
    carried_to: DeviceBuffer,
    out: DeviceBuffer,
}

impl<'a> Bench<'a> {
    fn new(device: &'a Arc<Device>, o: &Options, bandwidth: f64) -> Result<Self> {
        let rows = u64::from(o.rows);
        let column = || DeviceBuffer::new(device, rows as usize * 4);
        Ok(Self {
            device,
            repeat: o.repeat,
            bandwidth,
            scratch: DeviceBuffer::new(device, 64 + 8 * rows.div_ceil(TILE) as usize)?,
            rows: o.rows,
            carried_from: DeviceBuffer::with(device, &(0..o.rows).collect::<Vec<_>>())?,
            carried_to: column()?,
            out: column()?,
        })
    }

    fn buffer(&self, words: u64) -> Result<DeviceBuffer> {
        DeviceBuffer::new(self.device, words as usize * 4)
    }

    /// Parameters of a kernel that writes the rows that pass its filter, with one further column.
    fn compact(&self) -> Compact {
        let mut compact: Compact = bytemuck::Zeroable::zeroed();
        compact.rows = self.rows;
        compact.counter = self.scratch.at();
        (
            compact.columns.count,
            compact.columns.from[0],
            compact.columns.to[0],
        ) = (1, self.carried_from.at(), self.carried_to.at());
        compact
    }

    /// Like [`Self::time`] with one unit of work per row.
    fn time_rows<P: bytemuck::NoUninit>(
        &self,
        what: &str,
        kernel: Kernel,
        p: &P,
        bytes: f64,
        moved: f64,
    ) -> Result<()> {
        self.time(what, kernel, u64::from(self.rows), p, bytes, moved)
    }

    /// Runs a kernel and prints its median time, divided by the floor of `bytes` useful bytes and by that of `moved`
    /// bytes. The latter count 32 bytes for each random access, since the memory moves whole sectors.
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
            // SAFETY: the callers pass parameters whose buffers live and have the documented lengths.
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

/// Builds a segment of `keys` keys, with gaps of up to `gap` ids between them and up to `degree` neighbours each.
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
    let mut left_out = vec![];
    let r = &mut XorShift::new(17);
    let b = Bench::new(device, o, bandwidth)?;
    streams(&b, r)?;
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
        let arrays = segment(r, b.rows, gap, degree)?;
        over_segment(&b, r, name, &view(&arrays), degree)?;
    }
    o.say_left_out(&left_out);
    Ok(())
}

/// Measures the kernels that read tables in order: starts, filters and checksums.
fn streams(b: &Bench<'_>, r: &mut XorShift) -> Result<()> {
    let (rows, n, compact) = (b.rows, f64::from(b.rows), b.compact());
    let intervals = DeviceBuffer::with(b.device, &[[5u32, 5 + rows]])?;
    let before = DeviceBuffer::with(b.device, &[0u64])?;
    let p = params::StartIntervalsParams {
        intervals: intervals.at(),
        before: before.at(),
        out: b.out.at(),
        begin: 0,
        count: 1,
        rows,
    };
    let kernel = Kernel::StartIntervals;
    b.time_rows("one interval", kernel, &p, 4.0 * n, 4.0 * n)?;
    let random: Vec<u32> = (0..rows).map(|_| r.bits()).collect();
    let column = DeviceBuffer::with(b.device, &random)?;
    let p = params::RestrictParams {
        compact,
        operand: OperandParams::column(column.at()),
        within: within(0, 1 << 31),
    };
    let what = "half stays, 1 column";
    b.time_rows(what, Kernel::Restrict, &p, 8.0 * n, 8.0 * n)?;
    let p = params::SameParams {
        compact,
        left: OperandParams::column(column.at()),
        right: OperandParams::column(column.at()),
        negate: 0,
        pad: 0,
    };
    b.time_rows("all stay, 1 column", Kernel::Same, &p, 16.0 * n, 16.0 * n)?;
    let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
    (p.sum, p.rows, p.width) = (b.scratch.at(), rows, 2);
    (p.columns[0], p.columns[1]) = (column.at(), b.carried_from.at());
    b.time_rows("2 columns", Kernel::Checksum, &p, 8.0 * n, 8.0 * n)
}

/// Parameters for one interval of ids.
fn within(start: u32, end: u32) -> params::Within {
    params::Within {
        table: 0,
        count: 1,
        pad: 0,
        start,
        end,
    }
}

fn over_segment(
    b: &Bench<'_>,
    r: &mut XorShift,
    name: &str,
    v: &EdgeView<'_>,
    degree: u32,
) -> Result<()> {
    let resident = ResidentSegment::bring(b.device, &(*v).into(), GraphScope::Default)?;
    let mut keys = vec![];
    v.default.keys_into(0, b.rows, &mut keys);
    if let KeyFinder::Bitmap { blocks, .. } = v.default.finder
        && degree == 1
    {
        start_bits(b, &resident, blocks.len())?;
    }
    let edges = v.default.neighbours.len() as f64;
    for order in ["in order", "shuffled"] {
        let random = order == "shuffled";
        if random {
            shuffle(r, &mut keys);
        }
        let extra = if degree == 1 { 0.0 } else { 8.0 };
        let run = SegmentRun {
            b,
            what: format!("{name}, {order}"),
            random,
            resident: &resident,
            anchors: DeviceBuffer::with(b.device, &keys)?,
            // In key order, neighbouring rows share the finder's cache lines, so its arrays are read once.
            finder: match random {
                true => (resident.lookup_bytes() + extra) * f64::from(b.rows),
                false => resident.bytes() as f64 - 4.0 * edges,
            },
            // Sectors of 32 bytes that a random lookup reads: those of the finder, and the offsets or the single
            // neighbour.
            sectors: match v.default.finder.kind().name() {
                "intervals" => 1.0,
                "bitmap" => 2.0,
                _ => 3.0,
            },
        };
        if degree == 1 {
            run.expand_one()?;
            continue;
        }
        let others = keys
            .iter()
            .map(|&k| v.default.neighbours_of(k).first().copied().unwrap_or(0))
            .collect::<Vec<_>>();
        let others = DeviceBuffer::with(b.device, &others)?;
        let expanded = run.measure_and_expand()?;
        run.check(&others)?;
        run.along_any_predicate(r, &others, &expanded)?;
        run.intersect(&expanded)?;
    }
    Ok(())
}

fn start_bits(b: &Bench<'_>, resident: &ResidentSegment, blocks: usize) -> Result<()> {
    let p = params::StartKeysParams {
        segment: resident.params,
        out: b.out.at(),
        begin: 0,
        rows: b.rows,
        first_block: 0,
        blocks: blocks as u32,
    };
    let bytes = 16.0 * blocks as f64 + 4.0 * f64::from(b.rows);
    let units = blocks as u64 * 8;
    b.time("bitmap", Kernel::StartBits, units, &p, bytes, bytes)
}

/// Runs of the kernels that follow one segment, with all of its keys as anchors.
struct SegmentRun<'a> {
    b: &'a Bench<'a>,
    what: String,
    /// True if the keys are shuffled.
    random: bool,
    resident: &'a ResidentSegment,
    anchors: DeviceBuffer,
    /// Bytes that are read to find the lists of all keys.
    finder: f64,
    /// Sectors that are read to find the list of one random key.
    sectors: f64,
}

/// An expansion after the pass that measures the lists.
struct Expanded {
    p: params::ExpandParams,
    total: u64,
    units: u64,
    prefix: DeviceBuffer,
    bounds: DeviceBuffer,
    new: DeviceBuffer,
    _starts: DeviceBuffer,
    _carried: DeviceBuffer,
}

impl SegmentRun<'_> {
    fn rows(&self) -> f64 {
        f64::from(self.b.rows)
    }

    /// Bytes that the memory moves: `scattered` for keys in random order, otherwise the useful bytes.
    fn moved(&self, bytes: f64, scattered: f64) -> f64 {
        if self.random { scattered } else { bytes }
    }

    fn expand_one(&self) -> Result<()> {
        let (b, n) = (self.b, self.rows());
        let p = params::ExpandOneParams {
            compact: b.compact(),
            segment: self.resident.params,
            anchor: OperandParams::column(self.anchors.at()),
            within: bytemuck::Zeroable::zeroed(),
            out: b.out.at(),
        };
        let bytes = (4.0 + 4.0 + 12.0) * n + self.finder;
        let moved = self.moved(bytes, (4.0 + 12.0 + 32.0 * self.sectors) * n);
        b.time_rows(&self.what, Kernel::ExpandOne, &p, bytes, moved)
    }

    fn measure_and_expand(&self) -> Result<Expanded> {
        let (b, n) = (self.b, self.rows());
        let rows = u64::from(b.rows);
        let (starts, prefix) = (b.buffer(rows)?, b.buffer(rows + 1)?);
        let p = params::MeasureParams {
            rows: b.rows,
            lists: 1,
            segment: self.resident.params,
            anchor: OperandParams::column(self.anchors.at()),
            count: 0,
            starts: starts.at(),
            prefix: prefix.at(),
            total: b.scratch.at(),
            ticket: b.scratch.at() + 8,
            state: b.scratch.at() + 16,
        };
        let bytes = 12.0 * n + self.finder;
        let moved = self.moved(bytes, (12.0 + 32.0 * self.sectors) * n);
        b.time_rows(&self.what, Kernel::Measure, &p, bytes, moved)?;
        let total = b.scratch.read::<u64>(1)?[0];
        let units = rows + total;
        let bounds = b.buffer(2)?;
        let (carried, new) = (b.buffer(total)?, b.buffer(total)?);
        let mut p: params::ExpandParams = bytemuck::Zeroable::zeroed();
        p.columns = b.compact().columns;
        p.columns.to[0] = carried.at();
        (p.prefix, p.bounds, p.starts) = (prefix.at(), bounds.at(), starts.at());
        (p.neighbours, p.out, p.counter) =
            (self.resident.params.neighbours, new.at(), b.scratch.at());
        (p.begin, p.end, p.rows, p.lists) = (0, units, b.rows, 1);
        p.room = total;
        let t = total as f64;
        let bytes = 12.0 * n + 12.0 * t;
        // In random order, the sectors of a short list are not shared with other rows.
        let moved = self.moved(bytes, 12.0 * n + 32.0 * n + 8.0 * t);
        b.time(&self.what, Kernel::Expand, units, &p, bytes, moved)?;
        p.within = within(0, u32::MAX);
        b.time(&self.what, Kernel::ExpandWithin, units, &p, bytes, moved)?;
        Ok(Expanded {
            p,
            total,
            units,
            prefix,
            bounds,
            new,
            _starts: starts,
            _carried: carried,
        })
    }

    fn check_bytes(&self) -> (f64, f64) {
        let n = self.rows();
        let bytes = (8.0 + 8.0 + 12.0) * n + self.finder;
        let scattered = (16.0 + 32.0 * (self.sectors + 1.0)) * n;
        (bytes, self.moved(bytes, scattered))
    }

    /// Checks for each key that the edge to its first neighbour exists.
    fn check(&self, others: &DeviceBuffer) -> Result<()> {
        let p = params::CheckParams {
            compact: self.b.compact(),
            segment: self.resident.params,
            anchor: OperandParams::column(self.anchors.at()),
            other: OperandParams::column(others.at()),
        };
        let (bytes, moved) = self.check_bytes();
        self.b
            .time_rows(&self.what, Kernel::Check, &p, bytes, moved)
    }

    /// Measures the kernels whose predicate (one of 64) is read from a column.
    fn along_any_predicate(
        &self,
        r: &mut XorShift,
        others: &DeviceBuffer,
        expanded: &Expanded,
    ) -> Result<()> {
        let (b, n, t) = (self.b, self.rows(), expanded.total as f64);
        let heads = vec![self.resident.params.head; 64];
        let heads = DeviceBuffer::with(b.device, &heads)?;
        let terms = DeviceBuffer::with(b.device, &(1..=64u32).collect::<Vec<_>>())?;
        let catalog = params::CatalogParams {
            heads: heads.at(),
            terms: terms.at(),
            count: 64,
            pad: 0,
        };
        let predicates: Vec<u32> = (0..b.rows).map(|_| 1 + r.below(64)).collect();
        let predicates = DeviceBuffer::with(b.device, &predicates)?;
        let (anchor, predicate) = (
            OperandParams::column(self.anchors.at()),
            OperandParams::column(predicates.at()),
        );
        let p = params::CheckAnyParams {
            compact: b.compact(),
            catalog,
            anchor,
            predicate,
            other: OperandParams::column(others.at()),
        };
        let (bytes, moved) = self.check_bytes();
        let (bytes, moved) = (bytes + 4.0 * n, moved + 4.0 * n);
        b.time_rows(&self.what, Kernel::CheckAny, &p, bytes, moved)?;
        let lists = b.buffer(2 * u64::from(b.rows))?;
        let p = params::MeasureAnyParams {
            rows: b.rows,
            pad: 0,
            catalog,
            anchor,
            predicate,
            lists: lists.at(),
            prefix: expanded.prefix.at(),
            total: b.scratch.at(),
            ticket: b.scratch.at() + 8,
            state: b.scratch.at() + 16,
            count: 0,
        };
        let bytes = 20.0 * n + self.finder;
        let moved = self.moved(bytes, (20.0 + 32.0 * self.sectors) * n);
        b.time_rows(&self.what, Kernel::MeasureAny, &p, bytes, moved)?;
        let p = params::ExpandAnyParams {
            columns: expanded.p.columns,
            prefix: expanded.prefix.at(),
            bounds: expanded.bounds.at(),
            lists: lists.at(),
            out: expanded.new.at(),
            count: 0,
            total: 0,
            begin: 0,
            end: expanded.units,
            room: expanded.total,
            rows: b.rows,
            pad: 0,
        };
        let bytes = 16.0 * n + 12.0 * t;
        let moved = self.moved(bytes, 16.0 * n + 32.0 * n + 8.0 * t);
        let units = expanded.units;
        b.time(&self.what, Kernel::ExpandAny, units, &p, bytes, moved)
    }

    /// Intersects each list with itself, so that all candidates pass.
    fn intersect(&self, expanded: &Expanded) -> Result<()> {
        let (b, n, t) = (self.b, self.rows(), expanded.total as f64);
        let column = || b.buffer(u64::from(b.rows));
        let arrays = [(column()?, column()?), (column()?, column()?)];
        let mut m: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
        (m.rows, m.lists, m.prefix) = (b.rows, 2, expanded.prefix.at());
        (m.total, m.ticket, m.state) = (b.scratch.at(), b.scratch.at() + 8, b.scratch.at() + 16);
        for (i, (starts, lengths)) in arrays.iter().enumerate() {
            m.anchors[i] = OperandParams::column(self.anchors.at());
            m.segments[i] = self.resident.params;
            m.ranges[i] = ListRange {
                neighbours: self.resident.params.neighbours,
                starts: starts.at(),
                lengths: lengths.at(),
                start: 0,
                length: 0,
            };
        }
        let bytes = (4.0 + 2.0 * 12.0) * n + 2.0 * self.finder;
        let moved = self.moved(bytes, (28.0 + 64.0 * self.sectors) * n);
        b.time_rows(&self.what, Kernel::MeasureMany, &m, bytes, moved)?;
        let mut p = expanded.p;
        p.ranges = [bytemuck::Zeroable::zeroed(); MAX_LISTS];
        p.ranges[..2].copy_from_slice(&m.ranges[..2]);
        p.lists = 2;
        p.within = bytemuck::Zeroable::zeroed();
        // Each candidate is searched for in a list of about three neighbours.
        let bytes = 24.0 * n + (4.0 + 12.0 + 8.0) * t;
        let moved = self.moved(bytes, 24.0 * n + 32.0 * n + 8.0 * t);
        let units = expanded.units;
        b.time(&self.what, Kernel::Intersect, units, &p, bytes, moved)
    }
}
