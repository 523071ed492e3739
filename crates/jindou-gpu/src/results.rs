//! Passes results to the sink in blocks of rows in pinned memory. The sink may keep a block for a while and pass it to
//! another thread; when the block is dropped, its memory returns to the device's pool.

use crate::buffer::HostBuffer;
use crate::device::Device;
use crate::execute::RowSink;
use crate::table::DeviceTable;
use crate::turns::DeviceTurn;
use jindou_engine::{RowBlock, Sink};
use jindou_model::Result;
use jindou_plan::Slot;
use std::sync::Arc;

/// Largest and smallest number of rows of a block: large enough that copying takes longer than queueing the copies, and
/// small enough that a few blocks do not take much pinned memory.
const MOST_ROWS: usize = 1 << 16;
const LEAST_ROWS: usize = 1 << 12;
/// Largest size of a block in bytes, unless it has the smallest number of rows.
const MOST_BYTES: usize = 1 << 20;

/// Number of rows per block of a table with this many rows and columns.
fn block_rows(rows: usize, width: usize) -> usize {
    let within = MOST_BYTES / (4 * width.max(1));
    let most = (1 << within.max(1).ilog2()).clamp(LEAST_ROWS, MOST_ROWS);
    rows.next_power_of_two().clamp(LEAST_ROWS, most)
}

/// The receiver of result rows.
pub(crate) enum RowsOut<'a> {
    /// A function that processes each block before it gets the next one.
    Each(&'a mut RowSink<'a>),
    /// A sink that may keep some blocks and pass them to other threads.
    Blocks(&'a mut dyn Sink),
}

impl RowsOut<'_> {
    fn give(&mut self, rows: PinnedRows) -> Result<()> {
        match self {
            Self::Each(sink) => {
                let columns: Vec<&[u32]> = (0..rows.width).map(|at| rows.column(at)).collect();
                sink(&columns, rows.rows)
            }
            Self::Blocks(sink) => sink.block(Box::new(rows)),
        }
    }

    /// Passes on rows that have no columns.
    pub fn bare(&mut self, rows: usize) -> Result<()> {
        match self {
            Self::Each(sink) => sink(&[], rows),
            Self::Blocks(sink) => sink.batch(&[], rows),
        }
    }
}

/// A block of rows in pinned memory, column by column; each column has space for `room` rows.
struct PinnedRows {
    buffer: HostBuffer,
    room: usize,
    rows: usize,
    width: usize,
}

impl RowBlock for PinnedRows {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn column(&self, at: usize) -> &[u32] {
        let words: &[u32] = bytemuck::cast_slice(self.buffer.bytes());
        let from = at * self.room;
        words.get(from..from + self.rows).unwrap_or(&[])
    }
}

/// Copies all rows of a table to the host and passes them on block by block. While the sink processes one block, the
/// next one is copied.
pub(crate) fn hand_out(
    device: &Arc<Device>,
    table: &DeviceTable,
    slots: &[Slot],
    turn: &mut DeviceTurn,
    out: &mut RowsOut<'_>,
) -> Result<()> {
    let total = table.rows as usize;
    let room = block_rows(total, slots.len());
    let mut under_way: Option<PinnedRows> = None;
    for from in (0..total).step_by(room) {
        turn.cancel().check()?;
        let rows = room.min(total - from);
        let mut buffer = HostBuffer::new(device, room * slots.len().max(1) * 4)?;
        let words: &mut [u32] = bytemuck::cast_slice_mut(buffer.bytes_mut());
        for (&slot, out) in slots.iter().zip(words.chunks_mut(room)) {
            if table.column(slot).is_none() {
                out[..rows].fill(0);
            }
        }
        for (i, &slot) in slots.iter().enumerate() {
            if let Some(c) = table.column(slot) {
                // SAFETY: the column holds `total` ids, of which these are a part. The memory is freed only after the
                // copy, by the order of the queue.
                unsafe { buffer.download(i * room * 4, c.at + from as u64 * 4, rows * 4)? };
            }
        }
        buffer.queued()?;
        let next = PinnedRows {
            buffer,
            room,
            rows,
            width: slots.len(),
        };
        if let Some(block) = under_way.replace(next) {
            give(block, turn, out)?;
        }
    }
    match under_way {
        Some(block) => give(block, turn, out),
        None => Ok(()),
    }
}

fn give(mut block: PinnedRows, turn: &mut DeviceTurn, out: &mut RowsOut<'_>) -> Result<()> {
    block.buffer.wait(turn.cancel())?;
    // Other queries may use the device while the sink, which may be slow, processes the block.
    turn.aside(|| out.give(block))
}
