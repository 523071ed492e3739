//! Results on their way from the device to the sink.

use crate::buffer::HostBuffer;
use crate::device::Device;
use crate::execute::RowSink;
use crate::table::DeviceTable;
use crate::turns::DeviceTurn;
use jindou_model::Result;
use jindou_plan::Slot;
use std::sync::Arc;

/// Rows that are copied back at a time.
const RESULT_ROWS: usize = 1 << 18;

/// The path of result rows to the sink: while the sink takes one part, the next is copied.
#[derive(Default)]
pub(crate) struct Results {
    buffers: [Option<HostBuffer>; 2],
    /// Rows that a buffer holds.
    room: usize,
}

impl Results {
    /// Copies all rows of a table back, part by part, and passes them to the sink.
    pub fn hand_out(
        &mut self,
        device: &Arc<Device>,
        table: &DeviceTable,
        slots: &[Slot],
        turn: &mut DeviceTurn,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let total = table.rows as usize;
        let wanted = RESULT_ROWS.min(total.next_power_of_two().max(1024));
        if self.room < wanted {
            (self.room, self.buffers) = (wanted, [None, None]);
        }
        let room = self.room;
        // Buffer and rows of the part that is in transit.
        let mut under_way: Option<(usize, usize)> = None;
        for (number, from) in (0..total).step_by(room).enumerate() {
            turn.cancel().check()?;
            let n = room.min(total - from);
            let buffer = match &mut self.buffers[number % 2] {
                Some(b) => b,
                none => none.insert(HostBuffer::new(device, room * slots.len().max(1) * 4)?),
            };
            let words: &mut [u32] = bytemuck::cast_slice_mut(buffer.bytes_mut());
            for (&slot, out) in slots.iter().zip(words.chunks_mut(room)) {
                if table.column(slot).is_none() {
                    out[..n].fill(0);
                }
            }
            for (i, &slot) in slots.iter().enumerate() {
                if let Some(c) = table.column(slot) {
                    // SAFETY: the column holds `total` ids, of which these are a part; it lives until the copy is waited
                    // for, or is freed after it.
                    unsafe { buffer.download(i * room * 4, c.at + from as u64 * 4, n * 4)? };
                }
            }
            buffer.queued()?;
            if let Some(part) = under_way.replace((number % 2, n)) {
                self.give(part, slots.len(), turn, sink)?;
            }
        }
        match under_way {
            Some(part) => self.give(part, slots.len(), turn, sink),
            None => Ok(()),
        }
    }

    fn give(
        &mut self,
        (buffer, n): (usize, usize),
        width: usize,
        turn: &mut DeviceTurn,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let Some(buffer) = &mut self.buffers[buffer] else {
            return Ok(());
        };
        buffer.wait(turn.cancel())?;
        let words: &[u32] = bytemuck::cast_slice(buffer.bytes());
        let columns: Vec<&[u32]> = words
            .chunks(self.room)
            .take(width)
            .map(|c| &c[..n])
            .collect();
        // A slow reader does not keep others from the device.
        turn.aside(|| sink(&columns, n))
    }
}
