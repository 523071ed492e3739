//! Property paths: the nodes that a path leads to from a node, by breadth-first search.

use crate::batch::Charge;
use crate::explore::Run;
use jindou_model::{Direction, Error, PredicateId, Result};
use jindou_plan::{GraphRef, Path};
use jindou_store::segment::Scope;
use rustc_hash::FxHashSet;

/// Nodes between two looks at the clock.
const CHECK: usize = 1024;

/// Searches for one path in one choice of graphs.
pub(crate) struct PathSearch<'a> {
    path: &'a Path,
    graph: &'a GraphRef,
    scratch: Vec<u32>,
    charge: Charge,
}

impl<'a> PathSearch<'a> {
    /// # Errors
    /// None yet: a faster search may refuse a path that is too large.
    pub fn new(path: &'a Path, graph: &'a GraphRef, run: &Run<'_>) -> Result<Self> {
        Ok(Self {
            path,
            graph,
            scratch: vec![],
            charge: Charge::of("property path", run.budget),
        })
    }

    fn scope<'s>(&self, graph: Option<u32>) -> Result<Scope<'s>>
    where
        'a: 's,
    {
        match graph {
            Some(g) => Ok(Scope::Named(g)),
            None => self
                .graph
                .scope()
                .ok_or_else(|| Error::Internal("a path in a graph that is not known".into())),
        }
    }

    /// Appends the nodes that the path leads to from `from`, each once, ascending.
    pub fn forward(
        &mut self,
        run: &Run<'_>,
        from: u32,
        graph: Option<u32>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.search(run, from, graph, Direction::Out, out)
    }

    /// Appends the nodes from which the path leads to `to`, each once, ascending.
    pub fn backward(
        &mut self,
        run: &Run<'_>,
        to: u32,
        graph: Option<u32>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.search(run, to, graph, Direction::In, out)
    }

    fn search(
        &mut self,
        run: &Run<'_>,
        from: u32,
        graph: Option<u32>,
        direction: Direction,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let scope = self.scope(graph)?;
        let path = self.path;
        let found = self.ends(run, path, &[from], scope, direction)?;
        out.extend_from_slice(&found);
        self.charge.set(0)
    }

    /// True if the path leads from one node to the other.
    pub fn holds(&mut self, run: &Run<'_>, from: u32, to: u32, graph: Option<u32>) -> Result<bool> {
        let scope = self.scope(graph)?;
        let path = self.path;
        let found = self.ends(run, path, &[from], scope, Direction::Out)?;
        self.charge.set(0)?;
        Ok(found.binary_search(&to).is_ok())
    }

    /// Calls `each` with every node that a path with both ends free may start at: all nodes of the graphs.
    pub fn starts(
        &mut self,
        run: &Run<'_>,
        graph: Option<u32>,
        each: &mut dyn FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        let scope = self.scope(graph)?;
        let mut all: Vec<u32> = Vec::new();
        for p in (0..run.snapshot.predicate_count()).map(PredicateId) {
            run.check()?;
            for direction in [Direction::Out, Direction::In] {
                let view = run.snapshot.edges(p, direction);
                let mut keys = Vec::new();
                view.candidate_keys(scope, &mut keys);
                let mut scratch = Vec::new();
                keys.retain(|&k| !view.read(k, scope, &mut scratch).is_empty());
                all.append(&mut keys);
            }
            all.sort_unstable();
            all.dedup();
            self.charge.set(all.capacity() * 8)?;
        }
        all.into_iter().try_for_each(each)
    }

    /// The nodes that a path leads to from any of some nodes; ascending.
    fn ends(
        &mut self,
        run: &Run<'_>,
        path: &Path,
        from: &[u32],
        scope: Scope<'_>,
        direction: Direction,
    ) -> Result<Vec<u32>> {
        run.check()?;
        let mut out = Vec::new();
        match path {
            Path::Predicate(None) => {}
            Path::Predicate(Some(p)) => self.edges(run, *p, from, scope, direction, &mut out)?,
            Path::Inverse(p) => {
                return self.ends(run, p, from, scope, direction.reverse());
            }
            Path::Sequence(parts) => {
                out.extend_from_slice(from);
                let step =
                    |me: &mut Self, at: Vec<u32>, p: &Path| me.ends(run, p, &at, scope, direction);
                if direction == Direction::Out {
                    for p in parts {
                        out = step(self, out, p)?;
                    }
                } else {
                    for p in parts.iter().rev() {
                        out = step(self, out, p)?;
                    }
                }
            }
            Path::Alternative(parts) => {
                for p in parts {
                    out.append(&mut self.ends(run, p, from, scope, direction)?);
                }
            }
            Path::ZeroOrOne(p) => {
                out = self.ends(run, p, from, scope, direction)?;
                out.extend_from_slice(from);
            }
            Path::ZeroOrMore(p) => return self.closure(run, p, from, scope, direction, true),
            Path::OneOrMore(p) => return self.closure(run, p, from, scope, direction, false),
            Path::Except(not) => {
                for &v in from {
                    let predicates = run.snapshot.predicates_of(v, direction).to_vec();
                    for p in predicates.into_iter().map(PredicateId) {
                        if !not.contains(&p) {
                            self.edges(run, p, &[v], scope, direction, &mut out)?;
                        }
                    }
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    fn edges(
        &mut self,
        run: &Run<'_>,
        predicate: PredicateId,
        from: &[u32],
        scope: Scope<'_>,
        direction: Direction,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let view = run.snapshot.edges(predicate, direction);
        for (i, &v) in from.iter().enumerate() {
            if i % CHECK == 0 {
                run.check()?;
                self.charge
                    .set(self.charge.bytes().max(out.capacity() as u64 * 4) as usize)?;
            }
            out.extend_from_slice(view.read(v, scope, &mut self.scratch));
        }
        Ok(())
    }

    fn closure(
        &mut self,
        run: &Run<'_>,
        path: &Path,
        from: &[u32],
        scope: Scope<'_>,
        direction: Direction,
        zero: bool,
    ) -> Result<Vec<u32>> {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut front = from.to_vec();
        if zero {
            seen.extend(from);
        }
        while !front.is_empty() {
            let next = self.ends(run, path, &front, scope, direction)?;
            front.clear();
            front.extend(next.into_iter().filter(|&v| seen.insert(v)));
            self.charge
                .set((seen.capacity() * 6) + front.capacity() * 8)?;
        }
        let mut out: Vec<u32> = seen.into_iter().collect();
        out.sort_unstable();
        Ok(out)
    }
}
