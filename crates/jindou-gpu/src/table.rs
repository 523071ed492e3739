//! The history table in device memory: one column of ids per slot that is still needed.

use crate::buffer::DeviceBuffer;
use crate::compile::Owner;
use crate::counts::RowCount;
use crate::params::{ColumnsParams, Compact, OperandParams};
use jindou_model::{Error, Result};
use jindou_plan::{Operand as PlanOperand, Slot};
use std::sync::Arc;

/// A column: its address, and what keeps its memory alive.
#[derive(Clone)]
pub(crate) struct TableColumn {
    pub slot: Slot,
    pub at: u64,
    pub owner: Owner,
}

/// Rows of ids, column by column. A part of a table is a view of its memory.
#[derive(Clone, Default)]
pub(crate) struct DeviceTable {
    /// Number of rows; an upper bound if `count` is set.
    pub rows: u32,
    /// Where the device has the row count, if the host does not know it.
    pub count: Option<RowCount>,
    pub columns: Vec<TableColumn>,
}

impl DeviceTable {
    /// Rows `from .. to` of a table whose row count the host knows.
    pub fn part(&self, from: u32, to: u32) -> Self {
        let columns = self
            .columns
            .iter()
            .map(|c| TableColumn {
                slot: c.slot,
                at: c.at + u64::from(from) * 4,
                owner: c.owner.clone(),
            })
            .collect();
        Self {
            rows: to - from,
            count: None,
            columns,
        }
    }

    /// Address of the row count on the device; 0 if the host knows it.
    pub fn count_at(&self) -> u64 {
        self.count.map_or(0, |c| c.at)
    }

    /// The column of a slot.
    pub fn column(&self, slot: Slot) -> Option<&TableColumn> {
        self.columns.iter().find(|c| c.slot == slot)
    }

    /// A plan's operand as kernel parameters. A slot without a column is an error in the plan.
    pub fn operand(&self, o: PlanOperand) -> Result<OperandParams> {
        match o {
            PlanOperand::Const(id) => Ok(OperandParams::constant(id)),
            PlanOperand::Slot(s) => self
                .column(s)
                .map(|c| OperandParams::column(c.at))
                .ok_or_else(|| Error::Internal(format!("step reads slot {s}, which is not bound"))),
        }
    }

    /// The columns that a step keeps.
    pub fn kept(&self, keep: &[Slot]) -> impl Iterator<Item = &TableColumn> {
        self.columns.iter().filter(move |c| keep.contains(&c.slot))
    }
}

/// A table that a kernel will fill: one buffer with its columns one after the other.
pub(crate) struct NewTable {
    pub buffer: Arc<DeviceBuffer>,
    pub slots: Vec<Slot>,
    /// Capacity in rows.
    pub room: u64,
}

impl NewTable {
    /// Bytes for this many rows and columns. Columns are padded so that each starts at a cache line.
    pub fn bytes(columns: usize, room: u64) -> u64 {
        columns as u64 * Self::stride(room)
    }

    fn stride(room: u64) -> u64 {
        (room * 4).next_multiple_of(256)
    }

    /// Address of a column.
    pub fn at(&self, column: usize) -> u64 {
        self.buffer.at() + column as u64 * Self::stride(self.room)
    }

    /// Kernel parameters that tell it to copy the columns `from` to the first columns of this table.
    pub fn columns<'a>(&self, from: impl Iterator<Item = &'a TableColumn>) -> ColumnsParams {
        let mut c: ColumnsParams = bytemuck::Zeroable::zeroed();
        for (i, column) in from.enumerate() {
            c.from[i] = column.at;
            c.to[i] = self.at(i);
            c.count += 1;
        }
        c
    }

    /// The table, after a kernel has written this many rows.
    pub fn finish(self, rows: u32) -> DeviceTable {
        self.finish_as(rows, None)
    }

    /// The table, if the host knows only a bound on its row count, and `count` is the exact number on the device.
    pub fn finish_as(self, rows: u32, count: Option<RowCount>) -> DeviceTable {
        let columns = (0..self.slots.len())
            .map(|i| TableColumn {
                slot: self.slots[i],
                at: self.at(i),
                owner: Owner::Buffer(Arc::clone(&self.buffer)),
            })
            .collect();
        DeviceTable {
            rows,
            count,
            columns,
        }
    }
}

/// Parameters common to all kernels that filter rows of `table`. `counter` is where they count the rows that they keep.
pub(crate) fn compact(table: &DeviceTable, counter: u64, columns: ColumnsParams) -> Compact {
    Compact {
        rows: table.rows,
        pad: 0,
        count: table.count_at(),
        counter,
        columns,
    }
}
