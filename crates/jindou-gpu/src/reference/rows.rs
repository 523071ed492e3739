//! Checks of the kernels that produce start rows, filter rows, expand rows by one neighbour, and compute checksums.

use super::model::{Model, Shape};
use super::{Checker, search_bytes, sorted_rows, wrong};
use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::checksum::checksum;
use crate::params::{self, ColumnsParams, Compact, MAX_COLUMNS, OperandParams};
use crate::resident::ResidentSegment;
use jindou_graph::segment::{GraphScope, KeyFinder};
use jindou_model::Result;

/// Columns that a kernel copies to new ones.
pub(super) struct Carried {
    pub from: Vec<Vec<u32>>,
    inputs: Vec<DeviceBuffer>,
    outputs: Vec<DeviceBuffer>,
}

impl Carried {
    pub fn columns(&self) -> ColumnsParams {
        let mut c: ColumnsParams = bytemuck::Zeroable::zeroed();
        c.count = self.inputs.len() as u32;
        for i in 0..self.inputs.len().min(MAX_COLUMNS) {
            c.from[i] = self.inputs[i].at();
            c.to[i] = self.outputs[i].at();
        }
        c
    }

    pub fn read(&self, rows: usize) -> Result<Vec<Vec<u32>>> {
        self.outputs.iter().map(|b| b.read(rows)).collect()
    }

    pub fn at(&self, column: usize) -> u64 {
        self.inputs[column].at()
    }
}

impl Checker {
    /// Uploads these columns, and allocates output columns for `room` rows.
    pub(super) fn carried(&self, from: Vec<Vec<u32>>, room: u64) -> Result<Carried> {
        let inputs = from.iter().map(|c| self.upload(c)).collect::<Result<_>>()?;
        let outputs = from
            .iter()
            .map(|_| self.room(room))
            .collect::<Result<_>>()?;
        Ok(Carried {
            from,
            inputs,
            outputs,
        })
    }

    pub(super) fn column(&mut self, rows: u32, below: u32) -> Vec<u32> {
        (0..rows).map(|_| self.random.below(below)).collect()
    }

    pub(super) fn intervals(&mut self, count: u32, below: u32) -> Vec<[u32; 2]> {
        let step = below / (count + 1) + 1;
        (0..count)
            .map(|i| {
                let start = i * step + self.random.below(step / 2 + 1);
                [start, start + 1 + self.random.below(step / 2)]
            })
            .collect()
    }

    /// The intervals in the form of kernel parameters, and their buffer, which must outlive the use of the parameters.
    pub(super) fn within(&self, intervals: &[[u32; 2]]) -> Result<(params::Within, DeviceBuffer)> {
        let table = self.upload(intervals)?;
        let first = intervals.first().copied().unwrap_or_default();
        let within = params::Within {
            table: table.at(),
            count: intervals.len() as u32,
            pad: 0,
            start: first[0],
            end: first[1],
        };
        Ok((within, table))
    }

    pub(super) fn starts(&mut self, rows: u32) -> Result<()> {
        for count in [1, 2, 7] {
            let intervals = self.intervals(count, rows * 2);
            let ids: Vec<u32> = intervals.iter().flat_map(|i| i[0]..i[1]).collect();
            let mut before = vec![];
            let mut sum = 0u64;
            for i in &intervals {
                before.push(sum);
                sum += u64::from(i[1] - i[0]);
            }
            let begin = self.random.below(ids.len() as u32);
            let want = &ids[begin as usize..];
            let (table, starts, out) = (
                self.upload(&intervals)?,
                self.upload(&before)?,
                self.room(want.len() as u64)?,
            );
            let p = params::StartIntervalsParams {
                intervals: table.at(),
                before: starts.at(),
                out: out.at(),
                begin: u64::from(begin),
                count,
                rows: want.len() as u32,
            };
            self.launch(
                Kernel::StartIntervals,
                want.len() as u64,
                &p,
                4 * want.len() as u64,
            )?;
            if out.read::<u32>(want.len())? != want {
                return Err(wrong("start_intervals: wrong ids"));
            }
        }
        for (shape, kernel) in [
            (Shape::Intervals, Kernel::StartRuns),
            (Shape::Bitmap, Kernel::StartBits),
        ] {
            // With fewer keys, the finder would be a list of intervals whatever the shape.
            let m = Model::new(&mut self.random, shape, rows.max(200), true, false)?;
            let keys = m.base_keys();
            let segment = ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default)?;
            for (begin, end) in [
                (0, keys.len()),
                (keys.len() / 3, keys.len() / 2),
                (keys.len() - 1, keys.len()),
            ] {
                let want = &keys[begin..end];
                let out = self.room(want.len() as u64)?;
                let (mut first_block, mut blocks, mut units) = (0, 0, want.len() as u64);
                if let KeyFinder::Bitmap { blocks: b, .. } = m.segment().finder {
                    first_block = b.partition_point(|x| x.rank as usize <= begin) as u32 - 1;
                    blocks = b.partition_point(|x| (x.rank as usize) < end) as u32 - first_block;
                    units = u64::from(blocks) * 8;
                }
                let p = params::StartKeysParams {
                    segment: segment.params,
                    out: out.at(),
                    begin: begin as u32,
                    rows: want.len() as u32,
                    first_block,
                    blocks,
                };
                self.launch(
                    kernel,
                    units,
                    &p,
                    4 * want.len() as u64 + 16 * u64::from(blocks),
                )?;
                if out.read::<u32>(want.len())? != want {
                    return Err(wrong(format!("{}: wrong keys", kernel.symbol())));
                }
            }
        }
        Ok(())
    }

    /// Runs a kernel that filters rows, and compares the result with the rows for which `keep` is true.
    pub(super) fn compacts<P: bytemuck::NoUninit>(
        &mut self,
        kernel: Kernel,
        carried: &Carried,
        rows: u32,
        keep: impl Fn(usize) -> bool,
        test_bytes: u64,
        params: impl FnOnce(Compact) -> P,
    ) -> Result<()> {
        let counter = self.zeros(4)?;
        let kept: Vec<usize> = (0..rows as usize).filter(|&i| keep(i)).collect();
        let (most, count) = self.rows(rows)?;
        let compact = Compact {
            rows: most,
            pad: 0,
            count,
            counter: counter.at(),
            columns: carried.columns(),
        };
        let bytes = test_bytes + 8 * (kept.len() * carried.from.len()) as u64;
        self.launch(kernel, u64::from(rows), &params(compact), bytes)?;
        let n = counter.read::<u32>(1)?[0] as usize;
        if n != kept.len() {
            return Err(wrong(format!(
                "{}: {n} rows, not {}",
                kernel.symbol(),
                kept.len()
            )));
        }
        let want: Vec<Vec<u32>> = carried
            .from
            .iter()
            .map(|c| kept.iter().map(|&i| c[i]).collect())
            .collect();
        if sorted_rows(&carried.read(n)?) != sorted_rows(&want) {
            return Err(wrong(format!("{}: wrong rows", kernel.symbol())));
        }
        Ok(())
    }

    pub(super) fn filters(&mut self, rows: u32) -> Result<()> {
        for (width, intervals) in [(1, 1), (3, 2), (2, 9)] {
            let columns = (0..width).map(|_| self.column(rows, 1000)).collect();
            let carried = self.carried(columns, u64::from(rows))?;
            let intervals = self.intervals(intervals, 1000);
            let (within, _table) = self.within(&intervals)?;
            let column = carried.from[0].clone();
            let keep = |i: usize| {
                intervals
                    .iter()
                    .any(|w| column[i] >= w[0] && column[i] < w[1])
            };
            let operand = OperandParams::column(carried.at(0));
            self.compacts(
                Kernel::Restrict,
                &carried,
                rows,
                keep,
                4 * u64::from(rows),
                |compact| params::RestrictParams {
                    compact,
                    operand,
                    within,
                },
            )?;
        }
        for (constant, negate) in [
            (None, false),
            (Some(3), false),
            (None, true),
            (Some(3), true),
        ] {
            let columns: Vec<Vec<u32>> = (0..2).map(|_| self.column(rows, 12)).collect();
            let carried = self.carried(columns.clone(), u64::from(rows))?;
            let keep = |i: usize| (columns[0][i] == constant.unwrap_or(columns[1][i])) != negate;
            let left = OperandParams::column(carried.at(0));
            let right = constant.map_or(
                OperandParams::column(carried.at(1)),
                OperandParams::constant,
            );
            let bytes = if constant.is_some() { 4 } else { 8 } * u64::from(rows);
            self.compacts(Kernel::Same, &carried, rows, keep, bytes, |compact| {
                params::SameParams {
                    compact,
                    left,
                    right,
                    negate: u32::from(negate),
                    pad: 0,
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn checks(&mut self, rows: u32) -> Result<()> {
        for shape in [Shape::Intervals, Shape::Bitmap, Shape::Directory] {
            for (one, patched, fixed) in [
                (false, false, false),
                (true, false, false),
                (false, true, false),
                (false, true, true),
            ] {
                let m = Model::new(&mut self.random, shape, rows / 2 + 9, one, patched)?;
                let segment = ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default)?;
                let fixed =
                    fixed.then(|| m.lists.keys().copied().nth(m.lists.len() / 2).unwrap_or(1));
                let anchors: Vec<u32> = (0..rows)
                    .map(|_| fixed.unwrap_or_else(|| m.probe(&mut self.random)))
                    .collect();
                // About half of the tests succeed: they look for the first, the last or another id of the list.
                let others: Vec<u32> = anchors
                    .iter()
                    .map(|&a| match (m.list(a), self.random.below(4)) {
                        (&[first, ..], 0) => first,
                        (&[.., last], 1) => last,
                        _ => 1 + self.random.below(4000),
                    })
                    .collect();
                let bytes = (0..rows as usize)
                    .map(|i| {
                        4 + if fixed.is_some() { 0 } else { 4 }
                            + m.lookup_bytes(anchors[i])
                            + search_bytes(m.list(anchors[i]).len())
                    })
                    .sum();
                let carried =
                    self.carried(vec![anchors.clone(), others.clone()], u64::from(rows))?;
                let anchor = fixed.map_or(
                    OperandParams::column(carried.at(0)),
                    OperandParams::constant,
                );
                let other = OperandParams::column(carried.at(1));
                let keep = |i: usize| m.list(anchors[i]).contains(&others[i]);
                self.compacts(Kernel::Check, &carried, rows, keep, bytes, |compact| {
                    params::CheckParams {
                        compact,
                        segment: segment.params,
                        anchor,
                        other,
                    }
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn expand_one(&mut self, rows: u32) -> Result<()> {
        for shape in [Shape::Intervals, Shape::Bitmap, Shape::Directory] {
            for restricted in [false, true] {
                let m = Model::new(&mut self.random, shape, rows, true, false)?;
                let segment = ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default)?;
                let anchors: Vec<u32> = (0..rows).map(|_| m.probe(&mut self.random)).collect();
                let intervals = if restricted {
                    self.intervals(2, 4000)
                } else {
                    vec![]
                };
                let (within, _table) = self.within(&intervals)?;
                let inside = |v: u32| {
                    intervals.is_empty() || intervals.iter().any(|w| v >= w[0] && v < w[1])
                };
                let kept: Vec<usize> = (0..rows as usize)
                    .filter(|&i| m.list(anchors[i]).first().is_some_and(|&n| inside(n)))
                    .collect();
                let found: u64 = anchors
                    .iter()
                    .map(|&a| 4 + m.find_bytes(a).0 + 4 * u64::from(!m.list(a).is_empty()))
                    .sum();
                let extra = self.column(rows, 1 << 30);
                let carried =
                    self.carried(vec![anchors.clone(), extra.clone()], u64::from(rows))?;
                let (counter, out) = (self.zeros(4)?, self.room(u64::from(rows))?);
                let (most, count) = self.rows(rows)?;
                let p = params::ExpandOneParams {
                    compact: Compact {
                        rows: most,
                        pad: 0,
                        count,
                        counter: counter.at(),
                        columns: carried.columns(),
                    },
                    segment: segment.params,
                    anchor: OperandParams::column(carried.at(0)),
                    within,
                    out: out.at(),
                };
                self.launch(
                    Kernel::ExpandOne,
                    u64::from(rows),
                    &p,
                    found + 20 * kept.len() as u64,
                )?;
                let n = counter.read::<u32>(1)?[0] as usize;
                let mut got = carried.read(n.min(rows as usize))?;
                got.push(out.read(n.min(rows as usize))?);
                let want = [
                    kept.iter().map(|&i| anchors[i]).collect(),
                    kept.iter().map(|&i| extra[i]).collect(),
                    kept.iter().map(|&i| m.list(anchors[i])[0]).collect(),
                ];
                if n != kept.len() || sorted_rows(&got) != sorted_rows(&want) {
                    return Err(wrong(format!("jd_expand_one: wrong rows ({shape:?})")));
                }
            }
        }
        Ok(())
    }

    pub(super) fn checksums(&mut self, rows: u32) -> Result<()> {
        for width in [1, 3] {
            let columns: Vec<Vec<u32>> = (0..width).map(|_| self.column(rows, u32::MAX)).collect();
            let buffers = columns
                .iter()
                .map(|c| self.upload(c))
                .collect::<Result<Vec<_>>>()?;
            let sum = self.zeros(8)?;
            let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
            (p.rows, p.count) = self.rows(rows)?;
            (p.sum, p.width) = (sum.at(), width);
            for (to, b) in p.columns.iter_mut().zip(&buffers) {
                *to = b.at();
            }
            self.launch(
                Kernel::Checksum,
                u64::from(rows),
                &p,
                4 * u64::from(rows * width),
            )?;
            let views: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
            if sum.read::<u64>(1)?[0] != checksum(&views, rows as usize) {
                return Err(wrong("jd_checksum: wrong sum"));
            }
        }
        Ok(())
    }
}
