//! Checks of the kernels that measure, expand and intersect lists, in one piece and in strips.

use super::model::{Model, Shape};
use super::rows::Carried;
use super::{Checker, cut, search_bytes, sorted_rows, wrong};
use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::params::{self, ListRange, OperandParams};
use crate::resident::ResidentSegment;
use jindou_graph::segment::GraphScope;
use jindou_model::Result;

/// The rows and ids that an expansion considers, before conditions are tested; within a row in the order of its
/// shortest list.
pub(super) type Outputs = Vec<(usize, u32)>;

/// An expansion that `Checker::expand` checks. The columns to be copied and the outputs are passed separately.
pub(super) struct Expansion<'a> {
    pub kernel: Kernel,
    pub rows: u32,
    pub prefix: u64,
    /// The addresses of the rows' lists, for [`Kernel::ExpandAny`].
    pub starts: u64,
    pub neighbours: u64,
    pub lists: u32,
    pub ranges: [ListRange; params::MAX_LISTS],
    pub intervals: &'a [[u32; 2]],
    /// Bytes that are read per row besides the copied columns, and bytes that the tests of one output read.
    pub row_bytes: u64,
    pub test_bytes: &'a dyn Fn(usize, u32) -> u64,
    /// True for outputs that pass the conditions.
    pub keep: &'a dyn Fn(usize, u32) -> bool,
}

/// The parameters that clip lists to a hull; bit i of `lists` is set if list i is clipped.
fn clip_of(hull: Option<[u32; 2]>, lists: u32) -> params::Clip {
    let [start, end] = hull.unwrap_or_default();
    let lists = if hull.is_some() { lists } else { 0 };
    params::Clip {
        start,
        end,
        lists,
        pad: 0,
    }
}

/// The units of an expansion in the order in which kernels number them: the outputs of each row, then the row's end
/// (`None`).
fn units_of(rows: u32, outputs: &Outputs) -> Vec<Option<(usize, u32)>> {
    let mut order = Vec::with_capacity(rows as usize + outputs.len());
    let mut at = 0;
    for row in 0..rows as usize {
        while at < outputs.len() && outputs[at].0 == row {
            order.push(Some(outputs[at]));
            at += 1;
        }
        order.push(None);
    }
    order
}

/// True if the columns that an expansion wrote contain these outputs, in the same order if `ordered`.
fn same_rows(carried: &Carried, out: &DeviceBuffer, want: &Outputs, ordered: bool) -> Result<bool> {
    let mut got = carried.read(want.len())?;
    got.push(out.read(want.len())?);
    let mut wanted: Vec<Vec<u32>> = carried
        .from
        .iter()
        .map(|c| want.iter().map(|w| c[w.0]).collect())
        .collect();
    wanted.push(want.iter().map(|w| w.1).collect());
    Ok(match ordered {
        true => got == wanted,
        false => sorted_rows(&got) == sorted_rows(&wanted),
    })
}

impl Checker {
    /// Runs an expansion in `strips` strips and compares the result with `outputs`.
    pub(super) fn expand(
        &mut self,
        e: &Expansion<'_>,
        columns: Vec<Vec<u32>>,
        outputs: &Outputs,
        strips: u64,
    ) -> Result<()> {
        let width = columns.len();
        let units = u64::from(e.rows) + outputs.len() as u64;
        let (within, _table) = self.within(e.intervals)?;
        let carried = self.carried(columns, outputs.len() as u64 + 1)?;
        let out = self.zeros(outputs.len() * 4 + 4)?;
        let order = units_of(e.rows, outputs);
        let ordered = matches!(e.kernel, Kernel::Expand | Kernel::ExpandAny);
        for s in 0..strips {
            let (begin, end) = (units * s / strips, units * (s + 1) / strips);
            let (bounds, counter) = (self.room(2)?, self.zeros(4)?);
            let part = &order[begin as usize..end as usize];
            let candidates: Outputs = part.iter().flatten().copied().collect();
            let want: Outputs = candidates
                .iter()
                .copied()
                .filter(|&(r, v)| (e.keep)(r, v))
                .collect();
            // A row is read in the strip that contains its first unit, which is an output or its end.
            let mut begun = 0;
            for i in begin as usize..end as usize {
                if i == 0 || order[i - 1].is_none() {
                    begun += 1;
                }
            }
            let bounded = begin < end && (strips > 1 || self.spare == 0);
            let bytes = 8 * u64::from(bounded)
                + e.row_bytes * begun
                + candidates
                    .iter()
                    .map(|&(r, v)| 4 + (e.test_bytes)(r, v))
                    .sum::<u64>()
                + 4 * (1 + width as u64) * want.len() as u64;
            // A single strip takes everything, even if the number of rows is known only on the device.
            let (most, count) = match strips {
                1 => self.rows(e.rows)?,
                _ => (e.rows, 0),
            };
            let spare = u64::from(most - e.rows) * 2;
            let total = self.upload(&[outputs.len() as u64])?;
            let p = params::ExpandParams {
                columns: carried.columns(),
                prefix: e.prefix,
                bounds: if spare > 0 { 0 } else { bounds.at() },
                starts: e.starts,
                neighbours: e.neighbours,
                out: out.at(),
                counter: counter.at(),
                count,
                total: if spare > 0 { total.at() } else { 0 },
                begin,
                end: end + spare,
                room: outputs.len() as u64,
                rows: most,
                lists: e.lists,
                within,
                ranges: e.ranges,
            };
            if spare > 0 && !outputs.is_empty() {
                self.check_no_room(e.kernel, &p, &out, &counter)?;
            }
            self.launch_expansion(e.kernel, &p, bytes)?;
            let ended = |units: u64| {
                order[..units as usize]
                    .iter()
                    .filter(|o| o.is_none())
                    .count() as u32
            };
            if bounded && bounds.read::<u32>(2)? != [ended(begin), ended(end)] {
                return Err(wrong(format!("{}: wrong bounds", e.kernel.symbol())));
            }
            let made = if ordered {
                want.len()
            } else {
                counter.read::<u32>(1)?[0] as usize
            };
            if made != want.len() {
                return Err(wrong(format!(
                    "{}: {made} rows, not {}",
                    e.kernel.symbol(),
                    want.len()
                )));
            }
            if !same_rows(&carried, &out, &want, ordered)? {
                return Err(wrong(format!("{}: wrong rows", e.kernel.symbol())));
            }
        }
        Ok(())
    }

    /// Checks that an expansion writes nothing if its bound is one less than the number of outputs.
    fn check_no_room(
        &mut self,
        kernel: Kernel,
        p: &params::ExpandParams,
        out: &DeviceBuffer,
        counter: &DeviceBuffer,
    ) -> Result<()> {
        let fewer = params::ExpandParams {
            room: p.room - 1,
            ..*p
        };
        self.launch_expansion(kernel, &fewer, 0)?;
        let untouched = out.read::<u32>(p.room as usize)?.iter().all(|&v| v == 0);
        if !untouched || counter.read::<u32>(1)? != [0] {
            return Err(wrong(format!("{}: no room is left", kernel.symbol())));
        }
        Ok(())
    }

    /// Runs an expansion over all of its units. For [`Kernel::ExpandAny`], the lists' addresses are in `starts`.
    fn launch_expansion(
        &mut self,
        kernel: Kernel,
        p: &params::ExpandParams,
        bytes: u64,
    ) -> Result<()> {
        let units = p.end - p.begin;
        if kernel != Kernel::ExpandAny {
            return self.launch(kernel, units, p, bytes);
        }
        let any = params::ExpandAnyParams {
            columns: p.columns,
            prefix: p.prefix,
            bounds: p.bounds,
            lists: p.starts,
            out: p.out,
            count: p.count,
            total: p.total,
            begin: p.begin,
            end: p.end,
            room: p.room,
            rows: p.rows,
            pad: 0,
        };
        self.launch(kernel, units, &any, bytes)
    }

    pub(super) fn compare_prefix(
        &self,
        prefix: &DeviceBuffer,
        total: &DeviceBuffer,
        lengths: &[u32],
        kernel: Kernel,
    ) -> Result<()> {
        let mut want = vec![0u32];
        let mut sum = 0u64;
        for &l in lengths {
            sum += u64::from(l);
            want.push(sum as u32);
        }
        let (got, got_sum) = (prefix.read::<u32>(want.len())?, total.read::<u64>(1)?[0]);
        if let Some(i) = (0..want.len()).find(|&i| got[i] != want[i]) {
            return Err(wrong(format!(
                "{}: prefix {i} is {}, not {}",
                kernel.symbol(),
                got[i],
                want[i]
            )));
        }
        if got_sum != sum {
            return Err(wrong(format!(
                "{}: total {got_sum}, not {sum}",
                kernel.symbol()
            )));
        }
        Ok(())
    }

    pub(super) fn expansions(&mut self, rows: u32) -> Result<()> {
        for (shape, one, patched) in [
            (Shape::Intervals, false, false),
            (Shape::Bitmap, false, true),
            (Shape::Bitmap, true, true),
            (Shape::Directory, false, false),
            (Shape::Directory, false, true),
        ] {
            let m = Model::new(&mut self.random, shape, rows / 4 + 9, one, patched)?;
            let segment = ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default)?;
            let mut anchors: Vec<u32> = (0..rows).map(|_| m.probe(&mut self.random)).collect();
            // A long stretch of rows without neighbours, so that some tiles consist of row ends only.
            let empty = anchors.len() / 3..anchors.len() / 3 * 2;
            anchors[empty].fill(0);
            // Also one row with a list longer than a tile.
            if let Some(hub) = m.lists.iter().max_by_key(|l| l.1.len()) {
                anchors[0] = *hub.0;
            }
            let column = self.upload(&anchors)?;
            let (starts, prefix) = (self.room(u64::from(rows))?, self.room(u64::from(rows) + 1)?);
            let extra = self.column(rows, 1 << 30);
            // Whole lists, and lists clipped to a hull; also to an empty hull, and to one that contains everything.
            for hull in [None, Some([900, 2900]), Some([77, 77]), Some([0, 5000])] {
                let all = |a: u32| (m.list(a), 0);
                let list = |a: u32| hull.map_or(all(a), |hull| cut(m.list(a), hull));
                let lengths: Vec<u32> = anchors.iter().map(|&a| list(a).0.len() as u32).collect();
                let total = self.zeros(8)?;
                let kernel = match hull {
                    None => Kernel::Measure,
                    Some(_) => Kernel::MeasureCut,
                };
                let scan = self.zeros(8 + 8 * u64::from(rows).div_ceil(kernel.tile()) as usize)?;
                let (most, count) = self.rows(rows)?;
                if let Some(hull) = hull {
                    let lengths = self.room(u64::from(rows))?;
                    let mut p: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
                    (p.rows, p.count, p.lists) = (most, count, 1);
                    (p.prefix, p.total) = (prefix.at(), total.at());
                    (p.ticket, p.state) = (scan.at(), scan.at() + 8);
                    p.clip = clip_of(Some(hull), 1);
                    p.anchors[0] = OperandParams::column(column.at());
                    p.segments[0] = segment.params;
                    p.ranges[0].neighbours = segment.params.neighbours;
                    (p.ranges[0].starts, p.ranges[0].lengths) = (starts.at(), lengths.at());
                    let of = |&a: &u32| 16 + m.lookup_bytes(a) + list(a).1;
                    let bytes = 12 + anchors.iter().map(of).sum::<u64>();
                    self.launch(kernel, u64::from(rows), &p, bytes)?;
                } else {
                    let p = params::MeasureParams {
                        rows: most,
                        lists: 1,
                        segment: segment.params,
                        anchor: OperandParams::column(column.at()),
                        starts: starts.at(),
                        prefix: prefix.at(),
                        total: total.at(),
                        ticket: scan.at(),
                        state: scan.at() + 8,
                        count,
                    };
                    let of = |&a: &u32| 12 + m.lookup_bytes(a);
                    let bytes = 12 + anchors.iter().map(of).sum::<u64>();
                    self.launch(kernel, u64::from(rows), &p, bytes)?;
                }
                self.compare_prefix(&prefix, &total, &lengths, kernel)?;
                let outputs: Outputs = anchors
                    .iter()
                    .enumerate()
                    .flat_map(|(i, &a)| list(a).0.iter().map(move |&n| (i, n)))
                    .collect();
                let mut e = Expansion {
                    kernel: Kernel::Expand,
                    rows,
                    prefix: prefix.at(),
                    starts: starts.at(),
                    neighbours: segment.params.neighbours,
                    lists: 1,
                    ranges: bytemuck::Zeroable::zeroed(),
                    intervals: &[],
                    row_bytes: 8,
                    test_bytes: &|_, _| 0,
                    keep: &|_, _| true,
                };
                self.expand(&e, vec![anchors.clone()], &outputs, 3)?;
                if hull.is_some() {
                    continue;
                }
                self.expand(&e, vec![anchors.clone(), extra.clone()], &outputs, 1)?;
                let intervals = self.intervals(3, 4000);
                let keep = |_: usize, v: u32| intervals.iter().any(|w| v >= w[0] && v < w[1]);
                (e.kernel, e.intervals, e.keep) = (Kernel::ExpandWithin, &intervals, &keep);
                self.expand(&e, vec![anchors.clone(), extra.clone()], &outputs, 2)?;
            }
        }
        Ok(())
    }

    pub(super) fn intersections(&mut self, rows: u32) -> Result<()> {
        // The last member is a bit mask of the lists that are clipped.
        for (count, fixed, restricted, clips) in [
            (2, false, false, 0),
            (3, true, false, 0),
            (2, true, true, 0),
            (2, false, true, 0b11),
            (3, false, true, 0b101),
        ] {
            let mut lists = self.random_lists(rows, count, fixed)?;
            let intervals = if restricted {
                self.intervals(2, 4000)
            } else {
                vec![]
            };
            lists.hull = match intervals.as_slice() {
                [first, .., last] if clips != 0 => Some([first[0], last[1]]),
                _ => None,
            };
            lists.clips = clips;
            let measured = self.measure_lists(rows, &lists)?;
            let list = |i: usize, row: usize| lists.measured(i, row).0;
            let driver = |row: usize| lists.driver(row);
            let outputs: Outputs = (0..rows as usize)
                .flat_map(|r| list(driver(r), r).iter().map(move |&n| (r, n)))
                .collect();
            let inside =
                |v: u32| intervals.is_empty() || intervals.iter().any(|w| v >= w[0] && v < w[1]);
            let keep = |r: usize, v: u32| {
                inside(v) && (0..count).all(|i| list(i, r).binary_search(&v).is_ok())
            };
            let test_bytes = |r: usize, v: u32| {
                let mut bytes = 0;
                if !inside(v) {
                    return 0;
                }
                for i in (0..count).filter(|&i| i != driver(r)) {
                    bytes += search_bytes(list(i, r).len());
                    if list(i, r).binary_search(&v).is_err() {
                        break;
                    }
                }
                bytes
            };
            let e = Expansion {
                kernel: Kernel::Intersect,
                rows,
                prefix: measured.prefix.at(),
                starts: 0,
                neighbours: 0,
                lists: count as u32,
                ranges: measured.ranges,
                intervals: &intervals,
                row_bytes: 4 + 8 * measured.columns,
                test_bytes: &test_bytes,
                keep: &keep,
            };
            let anchors = &lists.anchors;
            self.expand(&e, vec![anchors[0].clone()], &outputs, 1)?;
            self.expand(
                &e,
                vec![anchors[0].clone(), anchors[1].clone()],
                &outputs,
                2,
            )?;
        }
        Ok(())
    }

    /// Makes random lists of `count` segments. Some rows have the longest list of each segment, so that intersections
    /// are not empty; if `fixed`, all rows have the longest list of the last segment.
    fn random_lists(&mut self, rows: u32, count: usize, fixed: bool) -> Result<Lists> {
        let shapes = [Shape::Bitmap, Shape::Directory, Shape::Intervals];
        let models = (0..count)
            .map(|i| Model::new(&mut self.random, shapes[i], rows / 8 + 9, false, i == 1))
            .collect::<Result<Vec<_>>>()?;
        let segments = models
            .iter()
            .map(|m| ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default))
            .collect::<Result<Vec<_>>>()?;
        let hub = |m: &Model| m.lists.iter().max_by_key(|l| l.1.len()).map_or(1, |l| *l.0);
        let anchors: Vec<Vec<u32>> = models
            .iter()
            .enumerate()
            .map(|(i, m)| {
                let hub = hub(m);
                (0..rows)
                    .map(|_| {
                        let fix = fixed && i + 1 == count;
                        if fix || self.random.below(80) == 0 {
                            hub
                        } else {
                            m.probe(&mut self.random)
                        }
                    })
                    .collect()
            })
            .collect();
        Ok(Lists {
            models,
            segments,
            anchors,
            fixed,
            hull: None,
            clips: 0,
        })
    }

    /// Measures lists on the device and compares the lengths with the expected ones.
    fn measure_lists(&mut self, rows: u32, lists: &Lists) -> Result<MeasuredLists> {
        let mut p: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
        p.clip = clip_of(lists.hull, lists.clips);
        let (prefix, total) = (self.room(u64::from(rows) + 1)?, self.zeros(8)?);
        let kernel = match lists.clips {
            0 => Kernel::MeasureMany,
            _ => Kernel::MeasureCut,
        };
        let scan = self.zeros(8 + 8 * u64::from(rows).div_ceil(kernel.tile()) as usize)?;
        (p.rows, p.count) = self.rows(rows)?;
        p.lists = lists.models.len() as u32;
        (p.prefix, p.total, p.ticket, p.state) =
            (prefix.at(), total.at(), scan.at(), scan.at() + 8);
        let mut owned = vec![];
        let mut bytes = 12 + 4 * u64::from(rows);
        let mut columns = 0;
        for (i, m) in lists.models.iter().enumerate() {
            let (segment, anchors) = (&lists.segments[i], &lists.anchors[i]);
            p.segments[i] = segment.params;
            p.ranges[i].neighbours = segment.params.neighbours;
            if lists.fixed && i + 1 == lists.models.len() {
                let (start, length) = segment.range_of(&m.segment(), anchors[0]);
                (p.ranges[i].start, p.ranges[i].length) = (start, length);
                continue;
            }
            columns += 1;
            let (c, s, l) = (
                self.upload(anchors)?,
                self.room(u64::from(rows))?,
                self.room(u64::from(rows))?,
            );
            p.anchors[i] = OperandParams::column(c.at());
            (p.ranges[i].starts, p.ranges[i].lengths) = (s.at(), l.at());
            let of = |(row, &a): (usize, &u32)| 12 + m.lookup_bytes(a) + lists.measured(i, row).1;
            bytes += anchors.iter().enumerate().map(of).sum::<u64>();
            owned.extend([c, s, l]);
        }
        self.launch(kernel, u64::from(rows), &p, bytes)?;
        let lengths: Vec<u32> = (0..rows as usize)
            .map(|row| lists.measured(lists.driver(row), row).0.len() as u32)
            .collect();
        self.compare_prefix(&prefix, &total, &lengths, kernel)?;
        Ok(MeasuredLists {
            ranges: p.ranges,
            prefix,
            columns,
            _owned: owned,
        })
    }
}

/// Lists to be intersected: each row has one list of each segment.
struct Lists {
    models: Vec<Model>,
    segments: Vec<ResidentSegment>,
    /// The key of each list, by segment and row.
    anchors: Vec<Vec<u32>>,
    /// True if all rows have the same list of the last segment.
    fixed: bool,
    /// The hull to which lists are clipped, and a bit mask of the lists that are.
    hull: Option<[u32; 2]>,
    clips: u32,
}

impl Lists {
    /// A row's list of segment `i` after clipping, and the bytes that clipping reads.
    fn measured(&self, i: usize, row: usize) -> (&[u32], u64) {
        let list = self.models[i].list(self.anchors[i][row]);
        match self.hull {
            Some(hull) if self.clips & (1 << i) != 0 => cut(list, hull),
            _ => (list, 0),
        }
    }

    /// Number of the segment with the shortest list of a row, the first one if there are several. Kernels read this
    /// list and search the others.
    fn driver(&self, row: usize) -> usize {
        (0..self.models.len())
            .min_by_key(|&i| self.measured(i, row).0.len())
            .unwrap_or(0)
    }
}

/// Arrays on the device that describe measured lists.
struct MeasuredLists {
    ranges: [ListRange; params::MAX_LISTS],
    prefix: DeviceBuffer,
    /// Number of lists whose keys are in a column.
    columns: u64,
    _owned: Vec<DeviceBuffer>,
}
