//! Plans that another executor is asked to run first: as a whole, or else their first steps. If it cannot, or fails, this CPU
//! runs them from the start, and no row is delivered twice.

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
pub enum Choice {
    /// The CPU.
    #[default]
    Here,
    /// Another executor; the CPU if that one cannot run the plan, or fails.
    Rather(Arc<dyn Executor>),
    /// Another executor, whose failure is the query's; the CPU for what that one cannot run at all.
    Demanded(Arc<dyn Executor>),
    /// The shards of the store, as far as they can run the plan; this CPU, which asks them for data, for the rest. Their failure is the
    /// query's.
    Shards(Arc<dyn Executor>),
}

impl Choice {
    fn other(&self) -> Option<&dyn Executor> {
        match self {
            Self::Here | Self::Shards(_) => None,
            Self::Rather(other) | Self::Demanded(other) => Some(&**other),
        }
    }
}

/// A plan, and all that running it takes.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The state of the graph that it was made for.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
    /// The terms that the query makes.
    pub terms: &'a QueryTerms,
    /// The executor that it is for.
    pub executor: &'a Choice,
}

/// The outcome of a plan that ran.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Counts and times.
    pub profile: Profile,
    /// Lines about the run that only its executor knows; empty unless profiling.
    pub details: String,
    /// The reason why the CPU ran the plan although another executor was chosen.
    pub why_here: Option<String>,
    /// Work of each shard for rows that shards made.
    pub shards: Vec<ShardWork>,
}

impl Execution<'_> {
    /// Runs the plan with one sink a worker, made by `sinks`. Rows of another executor, and those whose order means something,
    /// come from one worker.
    ///
    /// # Errors
    /// As [`execute`]; [`Error::Gpu`], in one sentence, where another executor was demanded and failed.
    pub fn run<P: ParallelSink>(&self, sinks: &P) -> Result<Ran> {
        self.rows(sinks)
    }

    /// Runs the plan with one consumer, which gets one batch at a time.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn stream(&self, sink: &mut dyn Sink) -> Result<Ran> {
        self.rows(&Streaming::new(sink, self.options))
    }

    /// Runs the plan into a checksum; with it, whether another executor made it, and the work of each shard.
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
            Choice::Shards(shards) => self.at_shards(&**shards, &sum)?.shards,
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

    /// Runs the plan, what can be of it at the shards.
    fn at_shards(&self, shards: &dyn Executor, sinks: &dyn SinkFactory) -> Result<Ran> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        let offload = match Offload::of(plan, snapshot, self.options, shards) {
            Ok(offload) => Some(offload),
            Err(Error::Unsupported(_)) => None,
            Err(e) => return Err(e),
        };
        let offload = offload.as_ref();
        let profile = drive(plan, snapshot, self.options, self.terms, sinks, offload)?;
        Ok(Ran {
            profile,
            details: offload.map_or(String::new(), Offload::details),
            why_here: None,
            shards: offload.map_or(Vec::new(), Offload::work),
        })
    }

    fn rows(&self, sinks: &dyn SinkFactory) -> Result<Ran> {
        let why = match self.executor {
            Choice::Here => None,
            Choice::Shards(shards) => return self.at_shards(&**shards, sinks),
            Choice::Rather(other) => {
                // Nothing goes out before the other is done, so that the CPU can begin from the start.
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
            Choice::Demanded(other) => {
                let mut sink = Watched {
                    sink: sinks.worker(),
                    refused: false,
                };
                match self.rows_there(&**other, &mut sink) {
                    // No one else need try to make rows that are not taken.
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
        Ok(Ran {
            profile,
            details: String::new(),
            why_here: why,
            shards: Vec::new(),
        })
    }

    /// Runs the whole plan, or its first steps, on the other executor.
    ///
    /// # Errors
    /// `Unsupported` before the first row, where the other executor runs nothing of it; else its own or the sink's.
    fn rows_there(&self, other: &dyn Executor, sink: &mut dyn Sink) -> Result<Ran> {
        // Of an ASK, one row is enough, which the operators here see to.
        if !self.plan.is_ask() {
            match other.whole(self.plan, self.snapshot, self.options, sink) {
                Err(Error::Unsupported(_)) => {}
                done => return done,
            }
        }
        let profile = self.begin_there(other, sink)?;
        Ok(Ran {
            profile,
            ..Ran::default()
        })
    }

    fn begin_there(&self, other: &dyn Executor, sink: &mut dyn Sink) -> Result<Profile> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        execute_on(plan, snapshot, self.options, self.terms, other, sink)
    }

    /// Decides what follows a try on another executor that gave nothing out: its outcome, why this CPU runs the plan, or the
    /// query's error.
    ///
    /// # Errors
    /// The query's own end: it was cancelled, or its time is over. Where the executor was demanded, in one sentence why it
    /// failed.
    fn settle<T>(&self, outcome: Result<T>) -> Result<Result<T, String>> {
        let demanded = matches!(self.executor, Choice::Demanded(_));
        match outcome {
            Ok(done) => Ok(Ok(done)),
            // Said before the first row.
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

/// A sink of which it is known whether rows failed for its own reasons.
struct Watched<S> {
    sink: S,
    refused: bool,
}

impl<S: std::ops::DerefMut<Target: Sink> + Send> Sink for Watched<S> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let taken = self.sink.batch(columns, rows);
        self.refused |= taken.is_err();
        taken
    }
}
