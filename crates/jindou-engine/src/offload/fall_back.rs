//! Plans that another executor is asked to run first, as a whole or at least their first steps. If it cannot, or fails,
//! this CPU runs them from the start, and no row is delivered twice.

use super::{Offload, execute_on};
use crate::execute::{drive, execute};
use crate::executor::{Executor, RowBlock, ShardWork};
use crate::options::{ExecOptions, Profile};
use crate::sink::{ChecksumSink, ParallelSink, Sink, SinkFactory, Streaming, Summed, WorkerSink};
use crate::terms::QueryTerms;
use jindou_graph::Graph;
use jindou_model::{Error, Result};
use jindou_plan::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The executor that a plan is for.
#[derive(Clone, Default)]
pub enum ExecutorChoice {
    /// The CPU.
    #[default]
    Here,
    /// Another executor; the CPU if that one cannot run the plan, or fails.
    Rather(Arc<dyn Executor>),
    /// Another executor is required: if it fails, so does the query. The CPU is used only for plans that it cannot
    /// execute at all.
    Demanded(Arc<dyn Executor>),
    /// The shards of the store execute as much of the plan as they can, and this CPU the rest, requesting data from
    /// them. If they fail, so does the query.
    Shards(Arc<dyn Executor>),
}

impl ExecutorChoice {
    fn other(&self) -> Option<&dyn Executor> {
        match self {
            Self::Here | Self::Shards(_) => None,
            Self::Rather(other) | Self::Demanded(other) => Some(&**other),
        }
    }
}

/// A plan with everything needed to run it.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The state of the graph that it was made for.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
    /// The query-local terms.
    pub terms: &'a QueryTerms,
    /// The executor to use.
    pub executor: &'a ExecutorChoice,
}

/// The outcome of a plan that ran.
#[derive(Clone, Debug, Default)]
pub struct ExecutionOutcome {
    /// Counts and times.
    pub profile: Profile,
    /// Lines about the execution that only its executor knows; empty unless profiling.
    pub details: String,
    /// Reason why the CPU ran the plan although another executor was chosen.
    pub why_here: Option<String>,
    /// Work of each shard for rows that shards made.
    pub shards: Vec<ShardWork>,
}

impl Execution<'_> {
    /// Executes the plan with one sink per worker, created by `sinks`. If the order of rows matters, they all come from
    /// one worker.
    ///
    /// # Errors
    /// As [`execute`]; [`Error::Gpu`], in one sentence, if another executor was required and failed.
    pub fn run<P: ParallelSink>(&self, sinks: &P) -> Result<ExecutionOutcome> {
        self.rows(sinks)
    }

    /// Runs the plan with one consumer, which gets one batch at a time.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn stream(&self, sink: &mut dyn Sink) -> Result<ExecutionOutcome> {
        self.rows(&Streaming::new(sink, self.options))
    }

    /// Runs the plan into a checksum; also returns whether another executor computed it, and the work of each shard.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn checksum(&self) -> Result<(ChecksumSink, bool, Vec<ShardWork>)> {
        if let Some(other) = self.executor.other()
            && let Ok(sum) = self.settle(self.checksum_there(other))?
        {
            return Ok((sum, true, Vec::new()));
        }
        let sum = Summed::<ChecksumSink>::default();
        let shards = match self.executor {
            ExecutorChoice::Shards(shards) => self.at_shards(&**shards, &sum)?.shards,
            _ => {
                execute(self.plan, self.snapshot, self.options, self.terms, &sum)?;
                Vec::new()
            }
        };
        Ok((sum.into_inner(), false, shards))
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

    /// Runs the plan, as much as possible of it at the shards.
    fn at_shards(
        &self,
        shards: &dyn Executor,
        sinks: &dyn SinkFactory,
    ) -> Result<ExecutionOutcome> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        let offload = match Offload::for_plan(plan, snapshot, self.options, shards, false) {
            Ok(offload) => Some(offload),
            Err(Error::Unsupported(_)) => None,
            Err(e) => return Err(e),
        };
        let offload = offload.as_ref();
        let profile = drive(plan, snapshot, self.options, self.terms, sinks, offload)?;
        Ok(ExecutionOutcome {
            profile,
            details: offload.map_or(String::new(), Offload::details),
            why_here: None,
            shards: offload.map_or(Vec::new(), Offload::work),
        })
    }

    fn rows(&self, sinks: &dyn SinkFactory) -> Result<ExecutionOutcome> {
        let (other, hold) = match self.executor {
            ExecutorChoice::Here => (None, false),
            ExecutorChoice::Shards(shards) => return self.at_shards(&**shards, sinks),
            // Nothing is delivered before the executor is done with its rows, so that the CPU can begin from the start.
            ExecutorChoice::Rather(other) => (Some(other), true),
            ExecutorChoice::Demanded(other) => (Some(other), false),
        };
        let mut why = None;
        if let Some(other) = other {
            let watched = Watched {
                sinks,
                has_rows: AtomicBool::new(false),
                refused: AtomicBool::new(false),
            };
            match self.rows_there(&**other, hold, &watched) {
                // Nothing else needs to produce rows that are not taken.
                Err(e) if watched.refused.load(Ordering::Relaxed) => return Err(e),
                // Once rows are delivered, the CPU cannot begin from the start. The executor is done by then, unless it
                // was demanded.
                Err(e) if watched.has_rows() && (hold || matches!(e, Error::Unsupported(_))) => {
                    return Err(e);
                }
                done => match self.settle(done)? {
                    Ok(ran) => return Ok(ran),
                    Err(reason) => why = Some(reason),
                },
            }
        }
        let (plan, snapshot) = (self.plan, self.snapshot);
        let profile = drive(plan, snapshot, self.options, self.terms, sinks, None)?;
        Ok(ExecutionOutcome {
            profile,
            details: String::new(),
            why_here: why,
            shards: Vec::new(),
        })
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
