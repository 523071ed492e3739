//! Plans that another executor is asked to run first, as a whole or at least their first steps. If it cannot, or fails,
//! this CPU runs them from the start, and no row is delivered twice.

use super::{Offload, execute_on};
use crate::execute::{Execution, ExecutionOutcome, ExecutorChoice, drive};
use crate::executor::{Executor, RowBlock};
use crate::sink::{ChecksumSink, Sink, SinkFactory, WorkerSink};
use jindou_model::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

impl Execution<'_> {
    /// The checksum of the plan's rows from another executor; the reason if this CPU is to compute it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn checksum_elsewhere(
        &self,
        other: &dyn Executor,
    ) -> Result<Result<ChecksumSink, String>> {
        self.settle(self.checksum_there(other))
    }

    fn checksum_there(&self, other: &dyn Executor) -> Result<ChecksumSink> {
        match other.checksum(self.plan, self.snapshot, self.options) {
            // Its first steps there, the rest here.
            Err(Error::Unsupported(_)) => {
                let mut sum = ChecksumSink::default();
                let (plan, snapshot) = (self.plan, self.snapshot);
                execute_on(plan, snapshot, self.options, self.terms, other, &mut sum)?;
                Ok(sum)
            }
            done => done,
        }
    }

    /// Runs the plan at another executor, or here if that cannot run it. With `hold`, nothing is delivered before the
    /// executor is done with its rows, so that the CPU can begin from the start if it fails.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn rows_elsewhere(
        &self,
        other: &dyn Executor,
        hold: bool,
        sinks: &dyn SinkFactory,
    ) -> Result<ExecutionOutcome> {
        let watched = Watched {
            sinks,
            has_rows: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        };
        match self.rows_there(other, hold, &watched) {
            // Nothing else needs to produce rows that are not taken.
            Err(e) if watched.refused.load(Ordering::Relaxed) => Err(e),
            // Once rows are delivered, the CPU cannot begin from the start. The executor is done by then, unless it was
            // demanded.
            Err(e) if watched.has_rows() && (hold || matches!(e, Error::Unsupported(_))) => Err(e),
            done => match self.settle(done)? {
                Ok(ran) => Ok(ran),
                Err(why) => Ok(ExecutionOutcome {
                    why_here: Some(why),
                    ..self.rows_here(sinks)?
                }),
            },
        }
    }

    /// Executes the whole plan, or its first steps, on the other executor. With `hold`, its rows are buffered until it
    /// has finished.
    ///
    /// # Errors
    /// `Unsupported` before the first row, if the other executor cannot execute any part of it; otherwise its own or
    /// the sink's.
    fn rows_there(
        &self,
        other: &dyn Executor,
        hold: bool,
        sinks: &Watched<'_>,
    ) -> Result<ExecutionOutcome> {
        let (plan, snapshot, options) = (self.plan, self.snapshot, self.options);
        let drive = |offload: &Offload<'_>| {
            drive(plan, snapshot, options, self.terms, sinks, Some(offload))
        };
        // One row is enough for an ASK; the operators here take care of that.
        if !plan.is_ask() {
            let offload = Offload::whole(options, other, hold);
            match drive(&offload) {
                Err(Error::Unsupported(_)) if !sinks.has_rows() => {}
                done => return done.map(|profile| offload.ran(profile)),
            }
        }
        let offload = Offload::for_plan(plan, snapshot, options, other, hold)?;
        Ok(ExecutionOutcome {
            profile: drive(&offload)?,
            ..ExecutionOutcome::default()
        })
    }

    /// Decides what follows an attempt on another executor that delivered nothing: its outcome, the reason why this CPU
    /// runs the plan, or the query's error.
    ///
    /// # Errors
    /// The query was cancelled, or its time is over. Where the executor was demanded, one sentence about its failure.
    fn settle<T>(&self, outcome: Result<T>) -> Result<Result<T, String>> {
        let demanded = matches!(self.executor, ExecutorChoice::Demanded(_));
        match outcome {
            Ok(done) => Ok(Ok(done)),
            // Reported before the first row.
            Err(Error::Unsupported(why)) => Ok(Err(why)),
            Err(e @ (Error::Cancelled | Error::Timeout(_) | Error::SinkClosed)) => Err(e),
            Err(Error::Internal(why)) if demanded => Err(Error::Gpu(why)),
            Err(Error::Limit(why)) if demanded => Err(Error::Gpu(why.to_string())),
            Err(e) if demanded => Err(e),
            Err(Error::Internal(why)) => Ok(Err(why)),
            Err(e) => Ok(Err(e.to_string())),
        }
    }
}

/// Sinks that record whether rows were delivered, and whether one failed for its own reasons.
struct Watched<'s> {
    sinks: &'s dyn SinkFactory,
    has_rows: AtomicBool,
    refused: AtomicBool,
}

impl Watched<'_> {
    fn has_rows(&self) -> bool {
        self.has_rows.load(Ordering::Relaxed)
    }

    fn unless_refused(&self, taken: Result<()>) -> Result<()> {
        taken.inspect_err(|_| self.refused.store(true, Ordering::Relaxed))
    }
}

impl SinkFactory for Watched<'_> {
    fn worker<'s>(&'s self) -> Box<dyn WorkerSink + 's> {
        Box::new(WatchedSink {
            all: self,
            sink: self.sinks.worker(),
        })
    }
}

/// One worker's sink.
struct WatchedSink<'s> {
    all: &'s Watched<'s>,
    sink: Box<dyn WorkerSink + 's>,
}

impl Sink for WatchedSink<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.all.has_rows.store(true, Ordering::Relaxed);
        self.all.unless_refused(self.sink.batch(columns, rows))
    }

    fn block(&mut self, rows: Box<dyn RowBlock>) -> Result<()> {
        self.all.has_rows.store(true, Ordering::Relaxed);
        self.all.unless_refused(self.sink.block(rows))
    }
}

impl WorkerSink for WatchedSink<'_> {
    fn done(self: Box<Self>) -> Result<()> {
        let Self { all, sink } = *self;
        all.unless_refused(sink.done())
    }
}
