//! Checks of the kernels for predicate variables: characteristic sets in the form of a segment, and rows that name
//! their own segment.

use super::expansion::{Expansion, Outputs};
use super::model::{Model, Shape};
use super::{Checker, search_bytes};
use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::params::{self, FINDER_SETS, OperandParams, TILE};
use crate::resident::ResidentSegment;
use jindou_graph::segment::GraphScope;
use jindou_model::Result;

impl Checker {
    /// Allocates the state of a prefix sum over `rows` rows: a ticket and a state for each tile.
    fn scan(&self, rows: u32) -> Result<DeviceBuffer> {
        self.zeros(8 + 8 * u64::from(rows).div_ceil(TILE) as usize)
    }

    /// Checks that characteristic sets are looked up and expanded correctly, for several numbers of runs of vertices.
    pub(super) fn sets(&mut self, rows: u32) -> Result<()> {
        for runs in [1u32, 2, 45] {
            let sets: Vec<Vec<u32>> = (0..9)
                .map(|_| {
                    (0..self.random.below(5))
                        .map(|_| self.random.bits())
                        .collect()
                })
                .collect();
            let (mut starts, mut numbers, mut at) = (vec![], vec![], 5 + self.random.below(50));
            for _ in 0..runs {
                starts.push(at);
                numbers.push(self.random.below(sets.len() as u32));
                at += 1 + self.random.below(60);
            }
            let (mut offsets, mut terms) = (vec![0u32], vec![]);
            for s in &sets {
                terms.extend_from_slice(s);
                offsets.push(terms.len() as u32);
            }
            terms.push(0);
            let (table, keys) = (self.upload(&starts)?, self.upload(&numbers)?);
            let (bounds, list) = (self.upload(&offsets)?, self.upload(&terms)?);
            let mut segment: params::SegmentParams = bytemuck::Zeroable::zeroed();
            segment.kind = FINDER_SETS;
            (segment.table, segment.table_len) = (table.at(), runs);
            (segment.keys, segment.key_count) = (keys.at(), sets.len() as u32);
            (segment.offsets, segment.neighbours) = (bounds.at(), list.at());
            segment.edges = terms.len() as u32 - 1;
            let set_of = |v: u32| {
                let run = starts.partition_point(|&s| s <= v);
                run.checked_sub(1).map(|r| &sets[numbers[r] as usize][..])
            };
            let anchors = self.column(rows, at + 20);
            let column = self.upload(&anchors)?;
            let (first, prefix) = (self.room(u64::from(rows))?, self.room(u64::from(rows) + 1)?);
            let (total, scan) = (self.zeros(8)?, self.scan(rows)?);
            let (most, count) = self.rows(rows)?;
            let p = params::MeasureParams {
                count,
                rows: most,
                lists: 1,
                segment,
                anchor: OperandParams::column(column.at()),
                starts: first.at(),
                prefix: prefix.at(),
                total: total.at(),
                ticket: scan.at(),
                state: scan.at() + 8,
            };
            let lookup =
                |v: u32| search_bytes(runs as usize) + if set_of(v).is_some() { 12 } else { 0 };
            let bytes = 12 + anchors.iter().map(|&a| 12 + lookup(a)).sum::<u64>();
            self.launch(Kernel::Measure, u64::from(rows), &p, bytes)?;
            let of = |a: u32| set_of(a).unwrap_or(&[]);
            let lengths: Vec<u32> = anchors.iter().map(|&a| of(a).len() as u32).collect();
            self.compare_prefix(&prefix, &total, &lengths, Kernel::Measure)?;
            let outputs: Outputs = anchors
                .iter()
                .enumerate()
                .flat_map(|(i, &a)| of(a).iter().map(move |&n| (i, n)))
                .collect();
            let e = Expansion {
                kernel: Kernel::Expand,
                rows,
                prefix: prefix.at(),
                starts: first.at(),
                neighbours: list.at(),
                lists: 1,
                ranges: bytemuck::Zeroable::zeroed(),
                intervals: &[],
                row_bytes: 8,
                test_bytes: &|_, _| 0,
                keep: &|_, _| true,
            };
            self.expand(&e, vec![anchors.clone()], &outputs, 2)?;
        }
        Ok(())
    }

    /// Checks expansions and tests whose predicate is in a column, over segments of every shape.
    pub(super) fn any(&mut self, rows: u32) -> Result<()> {
        for gaps in [false, true] {
            let models = [
                (Shape::Intervals, false, false),
                (Shape::Bitmap, true, false),
                (Shape::Bitmap, false, true),
                (Shape::Directory, false, false),
                (Shape::Directory, true, true),
            ]
            .into_iter()
            .map(|(shape, one, patched)| {
                Model::new(&mut self.random, shape, rows / 6 + 9, one, patched)
            })
            .collect::<Result<Vec<_>>>()?;
            let segments = models
                .iter()
                .map(|m| ResidentSegment::bring(&self.device, &m.view(), GraphScope::Default))
                .collect::<Result<Vec<_>>>()?;
            let terms: Vec<u32> = (0..models.len() as u32)
                .map(|i| if gaps { 40 + i * i } else { 40 + i })
                .collect();
            let heads: Vec<params::SegmentHead> = segments.iter().map(|s| s.params.head).collect();
            let (heads_at, terms_at) = (self.upload(&heads)?, self.upload(&terms)?);
            let catalog = params::CatalogParams {
                heads: heads_at.at(),
                terms: terms_at.at(),
                count: terms.len() as u32,
                pad: 0,
            };
            // Some rows name a term that is not a predicate.
            let predicates: Vec<u32> = (0..rows)
                .map(|_| match self.random.below(8) {
                    0 => 35 + self.random.below(40),
                    _ => terms[self.random.below(terms.len() as u32) as usize],
                })
                .collect();
            let model_of = |row: usize| {
                let at = terms.binary_search(&predicates[row]).ok()?;
                Some(&models[at])
            };
            let anchors: Vec<u32> = (0..rows as usize)
                .map(|row| match model_of(row) {
                    // Some rows look up the key with the longest list.
                    Some(m) if self.random.below(90) == 0 => {
                        m.lists.iter().max_by_key(|l| l.1.len()).map_or(1, |l| *l.0)
                    }
                    Some(m) => m.probe(&mut self.random),
                    None => 1 + self.random.below(500),
                })
                .collect();
            let list = |row: usize| model_of(row).map_or(&[][..], |m| m.list(anchors[row]));
            let lookup = |row: usize| model_of(row).map_or(0, |m| m.lookup_bytes(anchors[row]));
            self.any_expansion(rows, catalog, &anchors, &predicates, &list, &lookup)?;
            self.any_checks(rows, catalog, &anchors, &predicates, &list, &lookup)?;
        }
        Ok(())
    }

    fn any_expansion<'m>(
        &mut self,
        rows: u32,
        catalog: params::CatalogParams,
        anchors: &[u32],
        predicates: &[u32],
        list: &dyn Fn(usize) -> &'m [u32],
        lookup: &dyn Fn(usize) -> u64,
    ) -> Result<()> {
        let (anchor, predicate) = (self.upload(anchors)?, self.upload(predicates)?);
        let (lists, prefix) = (
            self.room(2 * u64::from(rows))?,
            self.room(u64::from(rows) + 1)?,
        );
        let (total, scan) = (self.zeros(8)?, self.scan(rows)?);
        let (most, count) = self.rows(rows)?;
        let p = params::MeasureAnyParams {
            rows: most,
            count,
            pad: 0,
            catalog,
            anchor: OperandParams::column(anchor.at()),
            predicate: OperandParams::column(predicate.at()),
            lists: lists.at(),
            prefix: prefix.at(),
            total: total.at(),
            ticket: scan.at(),
            state: scan.at() + 8,
        };
        let all = 0..rows as usize;
        let bytes = 12 + all.clone().map(|r| 8 + lookup(r) + 12).sum::<u64>();
        self.launch(Kernel::MeasureAny, u64::from(rows), &p, bytes)?;
        let lengths: Vec<u32> = all.clone().map(|r| list(r).len() as u32).collect();
        self.compare_prefix(&prefix, &total, &lengths, Kernel::MeasureAny)?;
        let outputs: Outputs = all
            .flat_map(|r| list(r).iter().map(move |&n| (r, n)))
            .collect();
        let e = Expansion {
            kernel: Kernel::ExpandAny,
            rows,
            prefix: prefix.at(),
            starts: lists.at(),
            neighbours: 0,
            lists: 1,
            ranges: bytemuck::Zeroable::zeroed(),
            intervals: &[],
            row_bytes: 12,
            test_bytes: &|_, _| 0,
            keep: &|_, _| true,
        };
        let columns = vec![anchors.to_vec(), predicates.to_vec()];
        self.expand(&e, columns.clone(), &outputs, 1)?;
        self.expand(&e, columns[1..].to_vec(), &outputs, 3)
    }

    fn any_checks<'m>(
        &mut self,
        rows: u32,
        catalog: params::CatalogParams,
        anchors: &[u32],
        predicates: &[u32],
        list: &dyn Fn(usize) -> &'m [u32],
        lookup: &dyn Fn(usize) -> u64,
    ) -> Result<()> {
        let others: Vec<u32> = (0..rows as usize)
            .map(|r| match (list(r), self.random.below(4)) {
                (&[first, ..], 0) => first,
                (&[.., last], 1) => last,
                _ => 1 + self.random.below(4000),
            })
            .collect();
        let bytes = (0..rows as usize)
            .map(|r| 12 + lookup(r) + search_bytes(list(r).len()))
            .sum();
        let columns = vec![anchors.to_vec(), predicates.to_vec(), others.clone()];
        let carried = self.carried(columns, u64::from(rows))?;
        let [anchor, predicate, other] = [0, 1, 2].map(|i| OperandParams::column(carried.at(i)));
        self.compacts(
            Kernel::CheckAny,
            &carried,
            rows,
            |r| list(r).contains(&others[r]),
            bytes,
            |compact| params::CheckAnyParams {
                compact,
                catalog,
                anchor,
                predicate,
                other,
            },
        )
    }
}
