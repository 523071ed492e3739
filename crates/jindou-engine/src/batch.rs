//! Batches: up to some thousand rows of the history table, as a column of ids for each slot that is still needed.

use jindou_model::{Holder, MemoryBudget, Result, invariant};

/// Memory that an operator holds: charged to the query's budget, and released on drop.
pub(crate) struct OperatorCharge {
    budget: MemoryBudget,
    bytes: u64,
    holder: Holder,
}

impl OperatorCharge {
    /// An empty charge for memory whose holder error messages need not name.
    pub fn new(budget: &MemoryBudget) -> Self {
        Self::for_holder(Holder::Rest, budget)
    }

    /// An empty charge for memory that `holder` holds.
    pub fn for_holder(holder: Holder, budget: &MemoryBudget) -> Self {
        Self {
            budget: budget.clone(),
            bytes: 0,
            holder,
        }
    }

    /// Bytes that are charged now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the number of bytes charged. If the budget does not allow that, returns an error and changes nothing.
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        if bytes > self.bytes {
            self.budget.charge_for(self.holder, bytes - self.bytes)?;
        } else if bytes < self.bytes {
            self.budget.release_for(self.holder, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// As [`Self::set`], but more is charged as by [`MemoryBudget::charge_with_headroom`].
    pub fn set_with_headroom(&mut self, bytes: usize) -> Result<()> {
        match (bytes as u64).checked_sub(self.bytes) {
            None | Some(0) => self.set(bytes),
            Some(more) => {
                self.budget.charge_with_headroom(self.holder, more)?;
                self.bytes += more;
                Ok(())
            }
        }
    }

    /// Moves up to `bytes` of this charge into a new one.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = (bytes as u64).min(self.bytes);
        self.bytes -= bytes;
        Self {
            budget: self.budget.clone(),
            bytes,
            holder: self.holder,
        }
    }

    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }
}

impl Drop for OperatorCharge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.release_for(self.holder, self.bytes);
        }
    }
}

/// Borrowed rows. Every column has at least `rows` entries. Rows without columns have no content, and may be more than
/// a batch has.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub columns: &'a [Vec<u32>],
    pub rows: usize,
}

impl<'a> View<'a> {
    /// The ids of one column.
    #[inline]
    pub fn column(&self, at: usize) -> &'a [u32] {
        &self.columns[at][..self.rows]
    }
}

/// Length in ids of the largest column that allocators serve from a thread's own free memory.
const AT_HAND: usize = 256;

/// Grows a column to `room` ids. Only the first `kept` ids keep their values.
pub(crate) fn widen(column: &mut Vec<u32>, kept: usize, room: usize) {
    if room > AT_HAND {
        column.resize(room, 0);
        return;
    }
    // To grow a block in place, the allocator searches for some 500 instructions; a new short block costs less.
    let mut wider = Vec::with_capacity(room);
    wider.extend_from_slice(&column[..kept]);
    wider.resize(room, 0);
    *column = wider;
}

/// The output of a step or a stage. Columns always have their full length `room`, so that loops can write by index;
/// only the first `rows` entries are valid.
pub(crate) struct Batch {
    pub columns: Vec<Vec<u32>>,
    pub rows: usize,
    /// Number of rows passed on so far. Stages pass on larger batches as it grows.
    pub given: usize,
    room: usize,
    charge: OperatorCharge,
}

impl Batch {
    pub fn new(width: usize, budget: &MemoryBudget) -> Self {
        Self {
            columns: vec![Vec::new(); width],
            rows: 0,
            given: 0,
            room: 0,
            charge: OperatorCharge::new(budget),
        }
    }

    /// A batch of `rows` rows, with these columns of just that length.
    pub fn from_columns(
        columns: Vec<Vec<u32>>,
        rows: usize,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let mut charge = OperatorCharge::new(budget);
        invariant!(
            columns.iter().all(|c| c.len() == rows),
            "columns have one id for each of the {rows} rows"
        );
        charge.set(rows * 4 * columns.len())?;
        Ok(Self {
            room: if columns.is_empty() { 0 } else { rows },
            rows,
            columns,
            given: 0,
            charge,
        })
    }

    /// Number of rows for which the columns have space.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Grows the columns to space for at least `rows` rows.
    pub fn ensure(&mut self, rows: usize) -> Result<()> {
        if rows > self.room {
            self.charge.set(rows * 4 * self.columns.len())?;
            for c in &mut self.columns {
                widen(c, self.rows, rows);
            }
            self.room = rows;
        }
        Ok(())
    }

    pub fn view(&self) -> View<'_> {
        View {
            columns: &self.columns,
            rows: self.rows,
        }
    }

    /// Appends all rows of a view that has the same columns.
    pub fn append(&mut self, view: View<'_>) -> Result<()> {
        let want = self.rows + view.rows;
        if want > self.room && !self.columns.is_empty() {
            self.ensure(want.next_power_of_two())?;
        }
        for (at, out) in self.columns.iter_mut().enumerate() {
            out[self.rows..want].copy_from_slice(view.column(at));
        }
        self.rows = want;
        Ok(())
    }

    /// Replaces the content by the rows `from..from + rows` of another batch, which has as many columns.
    pub fn copy_rows(&mut self, other: &Self, from: usize, rows: usize) -> Result<()> {
        self.ensure(rows)?;
        for (to, c) in self.columns.iter_mut().zip(&other.columns) {
            to[..rows].copy_from_slice(&c[from..from + rows]);
        }
        self.rows = rows;
        Ok(())
    }

    /// Replaces the content by the rows `from..from + rows` of these columns, which are as many as the batch's.
    pub fn copy_columns(&mut self, other: &[&[u32]], from: usize, rows: usize) -> Result<()> {
        self.ensure(rows)?;
        for (to, c) in self.columns.iter_mut().zip(other) {
            to[..rows].copy_from_slice(&c[from..from + rows]);
        }
        self.rows = rows;
        Ok(())
    }

    /// Sets `columns[to][from + i]` to `input[index[i]]` for each entry of the index, which ascends. An index `0, 1, 2,
    /// …` is copied as a block.
    pub fn gather(&mut self, to: usize, from: usize, input: &[u32], index: &[u32]) {
        let Some(out) = self
            .columns
            .get_mut(to)
            .and_then(|c| c.get_mut(from..from + index.len()))
        else {
            return;
        };
        gather(input, index, out);
    }

    /// Of the rows from position `from` on, keeps those whose flag is 1, in order.
    pub fn retain(&mut self, from: usize, keep: &[u8]) {
        let mut kept = 0;
        for (n, column) in self.columns.iter_mut().enumerate() {
            let tail = &mut column[from..from + keep.len()];
            let mut w = 0;
            for (i, &k) in keep.iter().enumerate() {
                tail[w] = tail[i];
                w += usize::from(k == 1);
            }
            if n == 0 {
                kept = w;
            }
        }
        if self.columns.is_empty() {
            kept = keep.iter().filter(|&&k| k == 1).count();
        }
        self.rows = from + kept;
    }
}

/// `out[i] = input[index[i]]` for an ascending index. If its entries are consecutive, the values are copied as a block.
#[inline]
pub(crate) fn gather(input: &[u32], index: &[u32], out: &mut [u32]) {
    let (Some(&first), Some(&last)) = (index.first(), index.last()) else {
        return;
    };
    if let Some(run) = input.get(first as usize..(last as usize).saturating_add(1))
        && run.len() == index.len()
        && is_run(index)
    {
        out.copy_from_slice(run);
        return;
    }
    // The last index is the largest: checking it lets the loop run without bounds checks.
    let input = &input[..last as usize + 1];
    for (o, &i) in out.iter_mut().zip(index) {
        *o = input[i as usize];
    }
}

/// `out[i] = input[index[i]]` for an index in any order.
#[inline]
pub(crate) fn pick(input: &[u32], index: &[u32], out: &mut [u32]) {
    for (o, &i) in out.iter_mut().zip(index) {
        *o = input[i as usize];
    }
}

/// Returns true if the values are consecutive.
#[inline]
pub(crate) fn is_run(index: &[u32]) -> bool {
    let (Some(&first), Some(&last)) = (index.first(), index.last()) else {
        return true;
    };
    if last.wrapping_sub(first) as usize != index.len() - 1 {
        return false;
    }
    let mut wrong = 0;
    for (i, &x) in index.iter().enumerate() {
        wrong |= x ^ first.wrapping_add(i as u32);
    }
    wrong == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retained_rows_keep_their_order() {
        let mut b = Batch::new(2, &MemoryBudget::unlimited());
        b.ensure(8).unwrap();
        b.columns[0][..5].copy_from_slice(&[9, 1, 2, 3, 4]);
        b.columns[1][..5].copy_from_slice(&[9, 5, 6, 7, 8]);
        b.rows = 5;
        b.retain(1, &[1, 0, 2, 1]);
        assert_eq!(b.view().column(0), [9, 1, 4]);
        assert_eq!(b.view().column(1), [9, 5, 8]);
    }

    #[test]
    fn gathering_copies_runs_and_repeats() {
        let input = [10, 11, 12, 13];
        for index in [
            vec![1, 2, 3],
            vec![0, 0, 3],
            vec![1, 1, 2, 4 - 1],
            vec![2],
            vec![0, 2, 2],
        ] {
            let mut out = vec![0; index.len()];
            gather(&input, &index, &mut out);
            assert_eq!(
                out,
                index.iter().map(|&i| input[i as usize]).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_refused_charge_takes_nothing_and_all_is_given_back() {
        let budget = MemoryBudget::new(100);
        {
            let mut b = Batch::new(1, &budget);
            b.ensure(20).unwrap();
            assert!(b.ensure(40).is_err());
            assert_eq!(budget.used(), 80);
        }
        assert_eq!(budget.used(), 0);
    }
}
