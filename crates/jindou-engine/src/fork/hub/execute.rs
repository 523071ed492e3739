//! The coordinator's executor: decides where an exploration is executed, and starts it.

use super::*;
use crate::executor::Top;
use crate::fork::message::FirstByColumn;
use crate::fork::sieve::MOST;
use crate::options::StepProfile;
use jindou_model::{Invariant, invariant};
use jindou_plan::{Operator, Plan, Walk};
use std::fmt::{self, Write};

/// Executes explorations at the shards that have their data.
pub struct ForkExecutor {
    pub(super) hub: Arc<HubState>,
    pub(super) mode: ShardMode,
}

/// Where an exploration is executed.
enum ForkMode {
    /// On this server, which requests data from others.
    Here,
    /// Completely at one shard.
    There(u32),
    /// At all shards (fork-join).
    Fork(Starts),
}

/// The reason for the choice of a [`ForkMode`].
enum ForkReason {
    /// Requested by the caller.
    Demanded,
    /// Other shards cannot produce the start rows.
    Start,
    /// Estimated nanoseconds when executed here and when executed at all shards.
    Costs([f64; 2]),
}

impl fmt::Display for ForkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demanded => f.write_str("requested by the caller"),
            Self::Start => f.write_str("only this server can start it"),
            Self::Costs([here, parts]) => {
                let (here, parts) = (here / 1e6, parts / 1e6);
                write!(
                    f,
                    "estimated {parts:.1} ms at all shards, {here:.1} ms here"
                )
            }
        }
    }
}

impl ForkExecutor {
    fn way(&self, graph: &dyn Graph, steps: &[Step], all: &[Step]) -> (ForkMode, ForkReason) {
        let (Some(sharded), false) = (graph.as_sharded(), self.mode == ShardMode::InPlace) else {
            return (ForkMode::Here, ForkReason::Demanded);
        };
        let (own, blocks) = (sharded.number(), sharded.blocks());
        let Some(starts) = starts(blocks, steps) else {
            return (ForkMode::Here, ForkReason::Start);
        };
        if self.mode != ShardMode::Dynamic {
            return (ForkMode::Fork(starts), ForkReason::Demanded);
        }
        let [here, parts] = costs(graph, blocks.shards(), all, self.hub.waits());
        let way = match starts {
            _ if parts < here => ForkMode::Fork(starts),
            Starts::On(shard) if shard != own => ForkMode::There(shard),
            _ => ForkMode::Here,
        };
        (way, ForkReason::Costs([here, parts]))
    }

    /// The number of leading steps to execute at other shards, the mode, and the reason for it.
    fn first_steps(&self, graph: &dyn Graph, steps: &[Step]) -> (usize, ForkMode, ForkReason) {
        let forkable = steps.iter().take_while(|s| is_forkable(s)).count();
        let first = &steps[..forkable];
        // Single steps can be encoded, but all of them together may be too long.
        if jindou_plan::wire::put_steps(first, &mut Vec::new()).is_err() {
            return (0, ForkMode::Here, ForkReason::Start);
        }
        let (way, why) = self.way(graph, first, steps);
        let n = match way {
            ForkMode::Here => 0,
            // The remaining steps would run here, so one shard alone saves nothing.
            ForkMode::There(_) if forkable < steps.len() => 0,
            ForkMode::There(_) | ForkMode::Fork(_) => forkable,
        };
        (n, way, why)
    }

    /// One line for each exploration of a plan: where its steps would be executed, and why.
    #[must_use]
    pub fn explain(&self, plan: &Plan, graph: &dyn Graph) -> String {
        let mut all = Vec::new();
        plan.root.walk(&mut |op| {
            if let Operator::Explore(e) = op
                && e.empty.is_none()
            {
                all.push(&e.steps);
            }
            Walk::Independent
        });
        let mut out = String::new();
        for (number, steps) in (1..).zip(&all) {
            if all.len() > 1 {
                let _ = write!(out, "exploration {number} of {}: ", all.len());
            }
            let (n, way, why) = self.first_steps(graph, steps);
            let _ = match way {
                ForkMode::Fork(_) if n == steps.len() => {
                    writeln!(out, "matched at all shards: {why}")
                }
                ForkMode::Fork(_) if n > 1 => {
                    writeln!(out, "its first {n} steps matched at all shards: {why}")
                }
                ForkMode::Fork(_) => {
                    writeln!(
                        out,
                        "run here, asking other shards for their data: they can only start it"
                    )
                }
                ForkMode::There(shard) if n > 0 => writeln!(out, "run at shard {shard}: {why}"),
                _ => writeln!(out, "run here, asking other shards for their data: {why}"),
            };
        }
        out
    }

    /// The program for a query's parts, which read the snapshot with this number at the given servers.
    fn program(
        &self,
        task: &Task<'_>,
        needs: Needs,
        (state, servers): (u64, Vec<u8>),
    ) -> PartProgram {
        let mut steps = Vec::new();
        let put = jindou_plan::wire::put_steps(task.steps, &mut steps);
        invariant!(put.is_ok(), "only steps that can be sent are: {put:?}");
        PartProgram {
            steps,
            state,
            servers,
            time: task.options.cancel.left(),
            memory: task.options.memory.limit(),
            mode: self.mode,
            repeats: needs.repeats,
            first: needs.top.and_then(|top| first(top, task.steps)),
            profile: task.options.profile,
        }
    }

    /// Executes the whole task at one shard; `None` if that is not possible, so that the task has to run here.
    fn there(&self, task: &Task<'_>, shard: u32) -> Result<Option<Box<dyn PulledRows>>> {
        let hub = &self.hub;
        let Some(state) = hub.shards.name_of(task.snapshot) else {
            return Ok(None);
        };
        let _kept = self.keep(task, state)?;
        let query = QueryName {
            home: hub.home,
            number: hub.number(),
        };
        let program = self.program(task, Needs::default(), (state, hub.bind(query)?));
        let way = [hub.home, shard];
        let cancel = &task.options.cancel;
        let answered = hub.post(query, way, PartMessage::Run(program), cancel);
        hub.unbind(query);
        let (answer, bytes) = answered?;
        match answer {
            PartAnswer::Ran(rows, ..) if !rows.fits(width_after(task.steps)) => {
                Err(Error::shard(shard, NO_FIT))
            }
            PartAnswer::Ran(rows, counts, terms) => {
                let back = rows.bytes() + terms.bytes.len() as u64;
                if let Some(sharded) = task.snapshot.as_sharded() {
                    let others = sharded.others();
                    others.keep_terms(shard, &terms.ids, &terms.ends, &terms.bytes);
                }
                let Columns { rows, columns } = rows;
                let details = format!(
                    "run at shard {shard}: {rows} rows in one round of {} bytes\n",
                    bytes + back
                );
                Ok(Some(Box::new(Ready::new(columns, rows, counts, details))))
            }
            PartAnswer::Failed(f) => Err(f.error()),
            _ => Ok(None),
        }
    }

    /// Keeps the task's graph in the hub, so that the parts of the query can be opened over it.
    fn keep(&self, task: &Task<'_>, name: u64) -> Result<KeptState<'_>> {
        let graph = task.snapshot.shared();
        let graph = graph.ok_or_else(|| Error::Internal("parts of a borrowed graph".into()))?;
        Ok(self.hub.keep(graph, name))
    }

    fn fork(
        &self,
        task: &Task<'_>,
        starts: Starts,
        (needs, why): (Needs, ForkReason),
    ) -> Result<Option<Box<dyn PulledRows>>> {
        let hub = &self.hub;
        let Some(state) = hub.shards.name_of(task.snapshot) else {
            return Ok(None);
        };
        let _kept = self.keep(task, state)?;
        let sharded = task.snapshot.as_sharded();
        let sharded = sharded.invariant("only a sharded store's queries are forked");
        let (own, blocks) = (sharded.number(), sharded.blocks());
        let query = QueryName {
            home: hub.home,
            number: hub.number(),
        };
        let cancel = &task.options.cancel;
        let servers = hub.bind(query)?;
        let links = (0..blocks.shards())
            .map(|s| hub.link(query, s))
            .collect::<Result<Vec<_>>>()
            .inspect_err(|_| hub.unbind(query))?;
        let places: Vec<u32> = match starts {
            Starts::Everywhere => (0..blocks.shards()).collect(),
            Starts::On(shard) => vec![shard],
            Starts::Home => vec![own],
        };
        let numbers: Vec<u64> = places.iter().map(|_| hub.number()).collect();
        let gathering = Arc::new(Gathering::new(
            (query, Arc::clone(hub)),
            cancel,
            &task.options.memory,
            links,
            (task.steps.len(), width_after(task.steps), needs.repeats),
            why.to_string(),
            &numbers,
        ));
        lock(&hub.gatherings).insert(query, Arc::clone(&gathering));
        // From here on, an early return drops `gathered`, which ends the parts.
        let gathered = GatheredRows::new(gathering);
        let begin = PartMessage::Begin(self.program(task, needs, (state, servers)));
        let all = (0..blocks.shards()).map(|s| (s, begin.clone())).collect();
        let answers = hub.posts(query, hub.home, all, cancel)?;
        if (answers.iter()).any(|(_, answer, _)| matches!(answer, PartAnswer::Declined)) {
            return Ok(None);
        }
        taken(answers)?;
        let alone = starts != Starts::Everywhere;
        let start = numbers
            .iter()
            .map(|&number| PartMessage::Start { number, alone });
        let all = places.iter().copied().zip(start).collect();
        let mut answers = hub.posts(query, hub.home, all, cancel)?;
        // If a part has failed meanwhile, other parts may have ended already and answer `Unknown`. The failure itself
        // reaches the coordinator in a message of its own.
        answers.retain(|(_, answer, _)| !matches!(answer, PartAnswer::Unknown));
        taken(answers)?;
        Ok(Some(Box::new(gathered)))
    }
}

fn width_after(steps: &[Step]) -> usize {
    layouts(steps).last().map_or(0, Vec::len)
}

/// The request for only the leading rows of a sort order, for the parts; `None` if no row can be left out or too many
/// are needed.
fn first(top: Top, steps: &[Step]) -> Option<FirstByColumn> {
    let columns = layouts(steps).pop()?;
    let column = columns.iter().position(|slot| *slot == top.slot)?;
    let most = (1..=MOST).contains(&top.most).then_some(top.most)?;
    Some(FirstByColumn {
        column: u32::try_from(column).ok()?,
        is_descending: top.is_descending,
        is_alone: top.is_alone,
        most: u32::try_from(most).ok()?,
    })
}

fn taken(answers: Vec<(u32, PartAnswer, u64)>) -> Result<()> {
    for (shard, answer, _) in answers {
        match answer {
            PartAnswer::Taken(_) => {}
            PartAnswer::Failed(f) => return Err(f.error()),
            _ => {
                return Err(Error::shard(
                    shard,
                    "it did not accept its part of the query",
                ));
            }
        }
    }
    Ok(())
}

impl Executor for ForkExecutor {
    fn name(&self) -> &'static str {
        "shards"
    }

    fn runs_nested(&self) -> bool {
        false
    }

    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        Ok(self.first_steps(task.snapshot, task.steps).0)
    }

    fn is_pulled(&self) -> bool {
        true
    }

    fn pull(&self, task: &Task<'_>, needs: Needs) -> Result<Option<Box<dyn PulledRows>>> {
        let (way, why) = self.way(task.snapshot, task.steps, task.steps);
        match way {
            ForkMode::Here => Ok(None),
            ForkMode::There(shard) => self.there(task, shard),
            ForkMode::Fork(starts) => self.fork(task, starts, (needs, why)),
        }
    }

    fn stream(
        &self,
        _task: &Task<'_>,
        _sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        Err(Error::Unsupported("rows of other shards are pulled".into()))
    }
}
