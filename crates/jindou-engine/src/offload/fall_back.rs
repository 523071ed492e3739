//! Plans that another executor is asked to run first, as a whole or at least their first steps. If it cannot run them,
//! or fails, this CPU runs them from the start; no row is delivered twice.

use super::{Offload, execute_on};
use crate::execute::{Execution, ExecutionOutcome, ExecutorChoice, drive};
use crate::executor::{Executor, RowBlock};
use crate::sink::{ChecksumSink, Sink, SinkFactory, WorkerSink};
use jindou_model::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

impl Execution<'_> {
    /// The checksum of the plan's rows, computed by another executor; the reason why not, if this CPU has to compute
    /// it.
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
            // It cannot run the whole plan: its first steps run there, the rest here.
            Err(Error::Unsupported(_)) => {
                let mut sum = ChecksumSink::default();
                let (plan, snapshot) = (self.plan, self.snapshot);
                execute_on(plan, snapshot, self.options, self.terms, other, &mut sum)?;
                Ok(sum)
            }
            done => done,
        }
    }

    /// Runs the plan on another executor, or here if that cannot run it. With `hold`, the executor's rows are buffered
    /// until it has finished, so that the CPU can begin from the start if it fails.
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
            // The sink failed, so the rows cannot be delivered from here either.
            Err(e) if watched.refused.load(Ordering::Relaxed) => Err(e),
            // Rows were delivered, so the CPU cannot begin from the start. With `hold`, the executor had finished, so
            // the error is one of the operators here.
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
        // An ASK needs one row. A whole plan cannot be stopped after one row; operators that run here can stop the
        // executor.
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

    /// Decides what follows an attempt on another executor that delivered no rows, or succeeded: its outcome, the
    /// reason why this CPU runs the plan instead, or the query's error.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout` and `SinkClosed`, which would also end the plan here. Any other error if the executor was
    /// demanded.
    fn settle<T>(&self, outcome: Result<T>) -> Result<Result<T, String>> {
        let demanded = matches!(self.executor, ExecutorChoice::Demanded(_));
        match outcome {
            Ok(done) => Ok(Ok(done)),
            // The executor reported it before the first row.
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

/// Sinks that record whether they got rows, and whether one of them failed.
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

/// One worker's sink, which records its use in [`Watched`].
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
