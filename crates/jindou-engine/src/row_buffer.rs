//! Rows in memory, in chunks of about a batch: inputs of joins, results of dependent parts, rows of VALUES.

use crate::batch::{OperatorCharge, View};
use crate::explore::{Consumer, Flow, QueryContext};
use jindou_model::{Holder, Result};

/// Some rows, in columns of equal length.
pub(crate) struct RowChunk {
    columns: Vec<Vec<u32>>,
    rows: usize,
}

impl RowChunk {
    pub fn view(&self) -> View<'_> {
        View {
            columns: &self.columns,
            rows: self.rows,
        }
    }
}

/// Rows in chunks, charged to the query's budget. A pipeline reads a chunk without copying it.
pub(crate) struct RowBuffer {
    width: usize,
    chunks: Vec<RowChunk>,
    /// Number of rows in chunks.
    rows: u64,
    /// Number of rows, if they have no columns.
    bare: u64,
    /// Number of rows at which a chunk is full.
    full: usize,
    charge: OperatorCharge,
}

impl RowBuffer {
    /// Creates a buffer for rows of `width` columns, charged to `holder`.
    pub fn new(width: usize, ctx: &QueryContext<'_>, holder: Holder) -> Self {
        Self {
            width,
            chunks: vec![],
            rows: 0,
            bare: 0,
            full: ctx.batch_rows,
            charge: OperatorCharge::for_holder(holder, ctx.budget),
        }
    }

    /// Appends a copy of the rows.
    pub fn push(&mut self, rows: View<'_>) -> Result<()> {
        if rows.rows == 0 {
            return Ok(());
        }
        if self.width == 0 {
            self.bare += rows.rows as u64;
            return Ok(());
        }
        self.rows += rows.rows as u64;
        if let Some(last) = self.chunks.last_mut()
            && last.rows + rows.rows <= self.full
        {
            let had = last.columns.first().map_or(0, Vec::capacity);
            // A chunk's space is doubled, up to that of a full chunk.
            let want = last.rows + rows.rows;
            if want > had {
                let room = (had * 2).clamp(want, self.full);
                self.charge
                    .set(self.charge.bytes() as usize + (room - had) * 4 * self.width)?;
                for c in &mut last.columns {
                    c.reserve_exact(room - c.len());
                }
            }
            for (i, c) in last.columns.iter_mut().enumerate() {
                c.extend_from_slice(rows.column(i));
            }
            last.rows = want;
            return Ok(());
        }
        self.charge
            .set(self.charge.bytes() as usize + rows.rows * 4 * self.width + 64)?;
        self.chunks.push(RowChunk {
            columns: (0..self.width).map(|c| rows.column(c).to_vec()).collect(),
            rows: rows.rows,
        });
        Ok(())
    }

    /// Moves the rows of another buffer to the end of this one.
    pub fn append(&mut self, mut other: Self) -> Result<()> {
        let bytes = other.charge.bytes() as usize;
        // Otherwise the rows would be charged twice for a moment.
        other.charge.set(0)?;
        self.charge.set(self.charge.bytes() as usize + bytes)?;
        self.rows += other.rows;
        self.bare += other.bare;
        self.chunks.append(&mut other.chunks);
        Ok(())
    }

    pub fn rows(&self) -> u64 {
        self.rows + self.bare
    }

    pub fn bare(&self) -> u64 {
        self.bare
    }

    pub fn chunks(&self) -> &[RowChunk] {
        &self.chunks
    }

    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// Calls `f` with all rows, chunk by chunk; with rows without columns in one call.
    pub fn each(&self, mut f: impl FnMut(View<'_>) -> Flow) -> Flow {
        if self.bare > 0 {
            f(View {
                columns: &[],
                rows: usize::try_from(self.bare).unwrap_or(usize::MAX),
            })?;
        }
        for c in &self.chunks {
            f(c.view())?;
        }
        Ok(())
    }
}

impl Consumer for RowBuffer {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        Ok(self.push(rows)?)
    }
}
