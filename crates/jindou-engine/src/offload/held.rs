//! Rows from another executor, held until it is done with all of them: if it fails in between, none was delivered, and
//! the CPU can begin from the start.

use crate::sink::Sink;
use jindou_model::{CancelToken, Error, Holder, MemoryBudget, Resource, Result};

/// Largest number of bytes of ids that are held. Decoding dominates longer results, and the CPU does that in any case.
const MOST: u64 = 256 << 20;
/// Number of rows that are held and delivered together.
const ROWS: usize = 1 << 16;

/// Some rows, column by column.
struct HeldChunk {
    ids: Vec<u32>,
    rows: usize,
    bytes: u64,
}

/// Rows from another executor, held until it is done with all of them. Charged to the query's budget.
pub(crate) struct HeldRows {
    width: usize,
    chunks: Vec<HeldChunk>,
    bytes: u64,
    budget: MemoryBudget,
}

impl HeldRows {
    /// No rows, of this many columns.
    pub fn new(width: usize, budget: &MemoryBudget) -> Self {
        Self {
            width,
            chunks: Vec::new(),
            bytes: 0,
            budget: budget.clone(),
        }
    }

    /// Gives the rows to a sink, in order.
    pub fn give(mut self, cancel: &CancelToken, sink: &mut dyn Sink) -> Result<()> {
        for chunk in std::mem::take(&mut self.chunks) {
            cancel.check()?;
            let columns: Vec<&[u32]> = match chunk.rows {
                0 => continue,
                rows => chunk.ids.chunks_exact(rows).collect(),
            };
            sink.batch(&columns, chunk.rows)?;
            self.release(chunk.bytes);
        }
        Ok(())
    }

    fn release(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.budget.release_for(Holder::Offload, bytes);
    }
}

impl Sink for HeldRows {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        if columns.len() != self.width {
            return Err(Error::Internal(
                "another executor returned unexpected columns".into(),
            ));
        }
        for from in (0..rows).step_by(ROWS) {
            let n = ROWS.min(rows - from);
            let bytes = (n * self.width) as u64 * 4 + size_of::<HeldChunk>() as u64;
            if self.bytes + bytes > MOST {
                return Err(Error::limit(
                    Resource::Memory,
                    format!(
                        "another executor returned more than {} MiB of ids",
                        MOST >> 20
                    ),
                ));
            }
            self.budget.charge_for(Holder::Offload, bytes)?;
            self.bytes += bytes;
            let mut ids = Vec::with_capacity(n * self.width);
            for column in columns {
                let part = column.get(from..from + n);
                ids.extend_from_slice(part.ok_or_else(|| {
                    Error::Internal(
                        "another executor returned a column shorter than its rows".into(),
                    )
                })?);
            }
            self.chunks.push(HeldChunk {
                ids,
                rows: n,
                bytes,
            });
        }
        Ok(())
    }
}

impl Drop for HeldRows {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::CollectSink;

    #[test]
    fn rows_come_out_as_they_went_in_and_memory_is_given_back() {
        let budget = MemoryBudget::new(4 << 20);
        let mut held = HeldRows::new(2, &budget);
        let (a, b): (Vec<u32>, Vec<u32>) = (0..100_000).map(|i| (i, i * 7)).unzip();
        held.batch(&[&a, &b], a.len()).unwrap();
        held.batch(&[&a[..3], &b[..3]], 3).unwrap();
        assert!(budget.used() > 800_000);
        let mut out = CollectSink::default();
        held.give(&CancelToken::new(), &mut out).unwrap();
        let rows: Vec<Vec<u32>> = out.rows().map(<[u32]>::to_vec).collect();
        assert_eq!(rows.len(), 100_003);
        assert!((0..100_003).all(|i| rows[i] == [a[i % 100_000], b[i % 100_000]]));
        assert_eq!(budget.used(), 0);
        // Without columns, rows are counted all the same.
        let mut held = HeldRows::new(0, &budget);
        held.batch(&[], 70_000).unwrap();
        let mut out = CollectSink::default();
        held.give(&CancelToken::new(), &mut out).unwrap();
        assert_eq!((out.rows, budget.used()), (70_000, 0));
    }

    #[test]
    fn too_many_rows_are_refused_and_leave_nothing_charged() {
        let budget = MemoryBudget::new(1 << 20);
        let mut held = HeldRows::new(1, &budget);
        let ids = vec![1u32; 1 << 16];
        let refused = (0..100).find_map(|_| held.batch(&[&ids], ids.len()).err());
        assert!(matches!(refused, Some(Error::Limit(_))));
        drop(held);
        assert_eq!(budget.used(), 0);
    }
}
