//! Rows that another executor produces on the thread that runs the plan, while all workers of a pipeline consume them.
//!
//! ```text
//! executor ─► block ─ cut ─► pieces in a queue ─► any worker: stages, sink
//!    └─ main thread: processes pieces itself while the queue is full
//! ```
//!
//! A block stays in the executor's memory, for example the pinned memory of a device, until its last piece has passed
//! the pipeline.

use crate::executor::RowBlock;
use crate::explore::{Flow, Halt, QueryContext};
use crate::sink::Sink;
use jindou_model::{Charge, Error, Holder, Resource, Result, sync};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// Number of rows per block, where an executor passes batches instead of blocks and they have to be copied.
const BLOCK: usize = 1 << 14;
/// Smallest and largest number of rows of a piece. Small, since the operators above may take long for each row.
const PIECE: Range<u64> = 64..16_384;
/// Pieces grow with the rows received so far, so that each thread would get this many of them.
const PIECES_A_THREAD: u64 = 8;
/// Number of pieces from which on it is worth starting helpers.
const WORTH_HELP: u64 = 2;
/// Polling interval of a worker that waits for a block.
const LOOK: Duration = Duration::from_millis(2);

/// Runs an executor's steps and passes the rows to a sink.
pub(super) type Run<'a> = Box<dyn Fn(&mut dyn Sink) -> Result<()> + Send + Sync + 'a>;

/// Rows that an executor produces once the pipeline's main worker starts it.
pub(crate) struct Streamed<'a> {
    run: Run<'a>,
    /// Largest number of bytes of ids; `None` for no limit.
    most: Option<u64>,
    begun: AtomicBool,
    state: Mutex<StreamState>,
    changed: Condvar,
}

/// Consecutive rows of a block.
struct Piece {
    block: Arc<dyn RowBlock>,
    from: usize,
    rows: usize,
}

#[derive(Default)]
struct StreamState {
    ready: VecDeque<Piece>,
    /// Rows and pieces received so far, and bytes of the rows' ids.
    rows: u64,
    pieces: u64,
    bytes: u64,
    /// True once all blocks have been received.
    over: bool,
}

/// A worker's processing of the rows.
pub(crate) trait StreamWork {
    /// Processes a block of `rows` rows. Each of `columns` has that many ids; there are none if only the number of rows
    /// is needed.
    fn rows(&mut self, columns: &[&[u32]], rows: usize) -> Flow;
    /// True if no more rows are needed.
    fn is_done(&self) -> bool;
}

impl<'a> Streamed<'a> {
    /// Rows of a run, which fails if they have more than `most` bytes of ids.
    pub fn new(run: Run<'a>, most: Option<u64>) -> Self {
        Self {
            run,
            most,
            begun: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        sync::lock(&self.state)
    }

    /// Number of pieces that helpers could process. Unbounded while blocks are still expected, unless there were too
    /// few pieces so far to be worth a helper.
    pub fn left(&self) -> u64 {
        let state = self.state();
        match state.over {
            true => state.ready.len() as u64,
            false if state.pieces >= WORTH_HELP => u64::MAX,
            false => 0,
        }
    }

    /// True if all pieces were taken and no more will come.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.over && state.ready.is_empty()
    }

    /// Takes a waiting piece, if there is one.
    fn pop(&self) -> Option<Piece> {
        self.state().ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.state().ready.len()
    }

    /// Adds received rows to the counts; fails above the limit.
    fn count(&self, rows: usize, width: usize) -> Result<()> {
        let mut state = self.state();
        state.rows += rows as u64;
        state.bytes += 4 * rows as u64 * width as u64;
        if let Some(most) = self.most.filter(|&most| state.bytes > most) {
            return Err(Error::limit(
                Resource::Memory,
                format!(
                    "another executor returned more than {} MiB of ids",
                    most >> 20
                ),
            ));
        }
        Ok(())
    }

    /// Queues a block, in pieces for this many threads.
    fn push(&self, block: Box<dyn RowBlock>, threads: usize) -> Result<()> {
        self.count(block.rows(), block.width())?;
        let block: Arc<dyn RowBlock> = Arc::from(block);
        let mut state = self.state();
        // Rows without columns are not data but a number, so dividing them gains nothing.
        let piece = match block.width() {
            0 => block.rows(),
            _ => (state.rows / (PIECES_A_THREAD * threads as u64)).clamp(PIECE.start, PIECE.end)
                as usize,
        };
        for from in (0..block.rows()).step_by(piece.max(1)) {
            state.pieces += 1;
            state.ready.push_back(Piece {
                block: Arc::clone(&block),
                from,
                rows: piece.min(block.rows() - from),
            });
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The next piece, for a worker that does not run the executor; `None` if there are no more, or `is_done`. The
    /// thread gives up its place in the pool while it waits for a piece.
    fn next(&self, ctx: &QueryContext<'_>, is_done: &dyn Fn() -> bool) -> Result<Option<Piece>> {
        loop {
            let mut state = self.state();
            let (next, over) = (state.ready.pop_front(), state.over);
            drop(state);
            if next.is_some() {
                return Ok(next);
            }
            if over || is_done() {
                return Ok(None);
            }
            ctx.pool.blocking(ctx.cancel, &mut || {
                let state = self.state();
                if state.ready.is_empty() && !state.over {
                    let waited = self.changed.wait_timeout(state, LOOK);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            })?;
            ctx.check()?;
        }
    }

    /// Runs the executor, unless another call did. Pieces of its blocks are queued for other workers; while more than
    /// `room` are in the queue, this thread processes pieces. `between` is called for each block: it requests helpers,
    /// and gives up the thread's place in the pool if it must.
    pub fn drive(
        &self,
        ctx: &QueryContext<'_>,
        room: usize,
        work: &mut dyn StreamWork,
        between: &mut dyn FnMut() -> Result<()>,
    ) -> Flow {
        if self.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let end = End(self);
        let mut driver = Driver {
            streamed: self,
            ctx,
            room,
            work: OnThread::new(work),
            between: OnThread::new(between),
            halt: None,
        };
        let ran = (self.run)(&mut driver);
        match (driver.halt.take(), ran) {
            (Some(halt), _) => Err(halt),
            (None, Err(e)) => Err(e.into()),
            (None, Ok(())) => {
                end.well();
                Ok(())
            }
        }
    }

    /// Processes pieces until there are no more, `work` needs no more, or `stays` returns false.
    pub fn take_all(
        &self,
        ctx: &QueryContext<'_>,
        work: &mut dyn StreamWork,
        stays: &mut dyn FnMut() -> Result<bool>,
    ) -> Flow {
        while !work.is_done() && stays()? {
            let Some(piece) = self.next(ctx, &|| work.is_done())? else {
                break;
            };
            give(&piece, work)?;
        }
        Ok(())
    }
}

/// Passes a piece to a worker.
fn give(piece: &Piece, work: &mut dyn StreamWork) -> Flow {
    let (block, rows) = (&piece.block, piece.from..piece.from + piece.rows);
    let column = |at: usize| &block.column(at)[rows.clone()];
    let columns: Vec<&[u32]> = (0..block.width()).map(column).collect();
    work.rows(&columns, piece.rows)
}

/// On drop, marks the end of the blocks and wakes all waiting workers. Unless `well` was called, the run has failed,
/// and waiting pieces are dropped.
struct End<'d, 'a>(&'d Streamed<'a>);

impl End<'_, '_> {
    fn well(self) {
        self.0.state().over = true;
    }
}

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if !std::mem::replace(&mut state.over, true) {
            state.ready.clear();
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// Makes a value that only this thread may use `Send`, since an executor's sink must be: other threads cannot access
/// it.
struct OnThread<'d, T: ?Sized> {
    value: &'d mut T,
    thread: ThreadId,
}

// SAFETY: `value` is only touched through `get`, which refuses on any thread but the one that made this; moving or
// dropping a reference touches nothing.
unsafe impl<T: ?Sized> Send for OnThread<'_, T> {}

impl<'d, T: ?Sized> OnThread<'d, T> {
    fn new(value: &'d mut T) -> Self {
        Self {
            value,
            thread: std::thread::current().id(),
        }
    }

    fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// The value; `None` on another thread.
    fn get(&mut self) -> Option<&mut T> {
        self.is_here().then_some(&mut *self.value)
    }
}

/// The sink for the executor's rows: queues them, and processes some on this thread.
struct Driver<'d, 'a, 'p> {
    streamed: &'d Streamed<'a>,
    ctx: &'d QueryContext<'p>,
    room: usize,
    work: OnThread<'d, dyn StreamWork + 'd>,
    between: OnThread<'d, dyn FnMut() -> Result<()> + 'd>,
    /// Set if the rows' consumer ended the run: its reason. The executor only gets `SinkClosed`.
    halt: Option<Halt>,
}

impl Driver<'_, '_, '_> {
    /// Converts a worker's result for the executor, and stores the reason if the worker stops.
    fn unless_halted(&mut self, flow: Flow) -> Result<()> {
        flow.map_err(|halt| {
            self.halt = Some(halt);
            Error::SinkClosed
        })
    }

    fn queue(&mut self, block: Box<dyn RowBlock>) -> Result<()> {
        let pushed = self.streamed.push(block, self.room + 1);
        let (Some(work), Some(between)) = (self.work.get(), self.between.get()) else {
            // Called on another thread, which must not use the worker. The memory of its rows is limited by what they
            // are charged to.
            return pushed;
        };
        let (streamed, ctx, room) = (self.streamed, self.ctx, self.room);
        let go_on = || -> Flow {
            pushed?;
            if work.is_done() {
                return Err(Halt::Stop);
            }
            ctx.check()?;
            between()?;
            while streamed.ready() > room
                && let Some(piece) = streamed.pop()
            {
                if work.is_done() {
                    return Err(Halt::Stop);
                }
                give(&piece, work)?;
            }
            Ok(())
        };
        let flow = go_on();
        self.unless_halted(flow)
    }
}

impl Sink for Driver<'_, '_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let (streamed, ctx) = (self.streamed, self.ctx);
        // There are no other workers, or nothing to divide: process the rows without copying them.
        if (columns.is_empty() || self.room == 0)
            && let (Some(work), Some(between)) = (self.work.get(), self.between.get())
        {
            let mut take = || -> Flow {
                if work.is_done() {
                    return Err(Halt::Stop);
                }
                ctx.check()?;
                streamed.count(rows, columns.len())?;
                between()?;
                work.rows(columns, rows)
            };
            let flow = take();
            return self.unless_halted(flow);
        }
        let step = if columns.is_empty() { rows } else { BLOCK };
        for from in (0..rows).step_by(step) {
            let n = step.min(rows - from);
            let block = OwnBlock::new(columns, from, n, self.ctx)?;
            self.queue(Box::new(block))?;
        }
        Ok(())
    }

    fn block(&mut self, block: Box<dyn RowBlock>) -> Result<()> {
        if block.width() == 0 || !self.work.is_here() {
            let columns: Vec<&[u32]> = (0..block.width()).map(|at| block.column(at)).collect();
            return self.batch(&columns, block.rows());
        }
        if block.rows() == 0 {
            return Ok(());
        }
        self.queue(block)
    }
}

/// A copy of rows in the query's own memory, charged to its budget.
struct OwnBlock {
    ids: Vec<u32>,
    rows: usize,
    width: usize,
    _charge: Charge,
}

impl OwnBlock {
    fn new(columns: &[&[u32]], from: usize, rows: usize, ctx: &QueryContext<'_>) -> Result<Self> {
        let mut charge = Charge::new(Holder::Offload, ctx.budget);
        charge.set(4 * (rows * columns.len()) as u64)?;
        let mut ids = Vec::with_capacity(rows * columns.len());
        for column in columns {
            ids.extend_from_slice(&column[from..from + rows]);
        }
        Ok(Self {
            ids,
            rows,
            width: columns.len(),
            _charge: charge,
        })
    }
}

impl RowBlock for OwnBlock {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn column(&self, at: usize) -> &[u32] {
        &self.ids[at * self.rows..(at + 1) * self.rows]
    }
}
