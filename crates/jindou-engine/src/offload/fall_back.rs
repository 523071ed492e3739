//! Plans that another executor is asked to run first, as a whole or at least their first steps. If it cannot, or fails,
//! this CPU runs them from the start, and no row is delivered twice.

use super::held::HeldRows;
use super::{Offload, execute_on};
use crate::execute::{drive, execute};
use crate::executor::{Executor, ShardWork};
use crate::options::{ExecOptions, Profile};
use crate::sink::{ChecksumSink, ParallelSink, Sink, SinkFactory, Streaming, Summed};
use crate::terms::QueryTerms;
use jindou_graph::Graph;
use jindou_model::{Error, Result};
use jindou_plan::Plan;
use std::sync::Arc;

/// The executor that a plan is for.
#[derive(Clone, Default)]
pub enum ExecutorChoice {
    /// The CPU.
    #[default]
    Here,
    /// Another executor; the CPU if that one cannot run the plan, or fails.
    Rather(Arc<dyn Executor>),
    /// Another executor, whose failure is the query's; the CPU only for plans that it cannot run at all.
    Demanded(Arc<dyn Executor>),
    /// The shards of the store, as far as they can run the plan, and for the rest this CPU, which asks them for data.
    /// Their failure is the query's.
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
    /// Lines about the execution that only its executor can give; empty unless profiling.
    pub details: String,
    /// Reason why the CPU ran the plan although another executor was chosen.
    pub why_here: Option<String>,
    /// Work of each shard for rows that shards made.
    pub shards: Vec<ShardWork>,
}

impl Execution<'_> {
    /// Runs the plan with one sink per worker, made by `sinks`. Rows of another executor, and those whose order
    /// matters, come from one worker.
    ///
    /// # Errors
    /// As [`execute`]; [`Error::Gpu`], in one sentence, where another executor was demanded and failed.
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
                self.begin_there(other, &mut sum)?;
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
        let offload = match Offload::for_plan(plan, snapshot, self.options, shards) {
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
        let why = match self.executor {
            ExecutorChoice::Here => None,
            ExecutorChoice::Shards(shards) => return self.at_shards(&**shards, sinks),
            ExecutorChoice::Rather(other) => {
                // Nothing is delivered before the executor is done, so that the CPU can begin from the start.
                let mut held = HeldRows::new(self.plan.output.len(), &self.options.memory);
                match self.settle(self.rows_there(&**other, &mut held))? {
                    Ok(ran) => {
                        let mut sink = sinks.worker();
                        held.give(&self.options.cancel, &mut *sink)?;
                        sink.done()?;
                        return Ok(ran);
                    }
                    Err(why) => Some(why),
                }
            }
            ExecutorChoice::Demanded(other) => {
                let mut sink = FailureCheck {
                    sink: sinks.worker(),
                    refused: false,
                };
                match self.rows_there(&**other, &mut sink) {
                    // Nothing else needs to produce rows that are not taken.
                    Err(e) if sink.refused => return Err(e),
                    done => match self.settle(done)? {
                        Ok(ran) => {
                            sink.sink.done()?;
                            return Ok(ran);
                        }
                        Err(why) => Some(why),
                    },
                }
            }
        };
        let (plan, snapshot) = (self.plan, self.snapshot);
        let profile = drive(plan, snapshot, self.options, self.terms, sinks, None)?;
        Ok(ExecutionOutcome {
            profile,
            details: String::new(),
            why_here: why,
            shards: Vec::new(),
        })
    }

    /// Runs the whole plan, or its first steps, on the other executor.
    ///
    /// # Errors
    /// `Unsupported` before the first row, where the other executor runs no part of it; otherwise its own or the
    /// sink's.
    fn rows_there(&self, other: &dyn Executor, sink: &mut dyn Sink) -> Result<ExecutionOutcome> {
        // One row is enough for an ASK; the operators here take care of that.
        if !self.plan.is_ask() {
            match other.whole(self.plan, self.snapshot, self.options, sink) {
                Err(Error::Unsupported(_)) => {}
                done => return done,
            }
        }
        let profile = self.begin_there(other, sink)?;
        Ok(ExecutionOutcome {
            profile,
            ..ExecutionOutcome::default()
        })
    }

    fn begin_there(&self, other: &dyn Executor, sink: &mut dyn Sink) -> Result<Profile> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        execute_on(plan, snapshot, self.options, self.terms, other, sink)
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

/// A sink that records whether it failed for its own reasons.
struct FailureCheck<S> {
    sink: S,
    refused: bool,
}

impl<S: std::ops::DerefMut<Target: Sink> + Send> Sink for FailureCheck<S> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let taken = self.sink.batch(columns, rows);
        self.refused |= taken.is_err();
        taken
    }
}
