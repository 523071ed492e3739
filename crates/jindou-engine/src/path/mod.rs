//! Property paths: the nodes that a path leads to from a given node, and whether it leads from one given node to
//! another.
//!
//! | module | job |
//! |---|---|
//! | `automaton` | a path as states and moves |
//! | `search` | breadth-first search over states and nodes |
//! | `seen` | the set of nodes that a search has visited |
//!
//! A search follows each reachable edge at most once per state. If both ends are known, it runs from both ends, always
//! expanding the side with fewer nodes in its queue.

mod automaton;
mod search;
mod seen;

use crate::batch::OperatorCharge;
use crate::explore::QueryContext;
use automaton::Automaton;
use jindou_graph::segment::GraphScope;
use jindou_model::{Holder, Invariant, Result};
use jindou_plan::{GraphRef, Path};
use search::{PathGraph, Side};
use seen::VisitedSet;

/// The nodes to search from for a path whose ends are both variables.
pub(crate) struct Free {
    /// Nodes to search from.
    pub starts: Vec<u32>,
    /// Nodes without a walk of at least one edge, which a zero-length path connects with themselves.
    pub alone: Vec<u32>,
    /// True if the starts are ends of the path: the search runs backwards.
    pub backwards: bool,
    _charge: OperatorCharge,
}

/// Searches for one path in one choice of graphs. Each worker has one.
pub(crate) struct PathSearch<'a> {
    graph: &'a GraphRef,
    forward: Automaton,
    backward: Automaton,
    /// Searches from a subject (`ahead`) and, through the inverse path, from an object (`behind`).
    ahead: Side,
    behind: Side,
    /// For searches from both ends: the search from the object, along the moves of `forward` reversed.
    meeting: Side,
    /// If the results in `ahead` and in `behind` are complete, the start node and the graph of each.
    whole: [Option<(u32, Option<u32>)>; 2],
    /// The nodes and the graph of the last call of `holds`.
    last: Option<(u32, u32, Option<u32>)>,
    scratch: Vec<u32>,
}

impl<'a> PathSearch<'a> {
    /// # Errors
    /// `Limit` for a path of more than a thousand edges.
    pub fn new(path: &Path, graph: &'a GraphRef, ctx: &QueryContext<'_>) -> Result<Self> {
        let forward = Automaton::from_path(path, false)?;
        let backward = Automaton::from_path(path, true)?;
        Ok(Self {
            graph,
            ahead: Side::new(forward.states(), ctx),
            behind: Side::new(backward.states(), ctx),
            meeting: Side::new(forward.states(), ctx),
            forward,
            backward,
            whole: [None; 2],
            last: None,
            scratch: vec![],
        })
    }

    fn scope(&self, graph: Option<u32>) -> GraphScope<'a> {
        let fixed = || {
            self.graph
                .scope()
                .invariant("only a slot's graph is not known")
        };
        graph.map_or_else(fixed, GraphScope::Named)
    }

    /// Appends the nodes that the path leads to from `from` (`backwards`: from which it leads there), each once,
    /// ascending.
    pub fn ends(
        &mut self,
        ctx: &QueryContext<'_>,
        from: u32,
        graph: Option<u32>,
        backwards: bool,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.search(ctx, from, graph, backwards)?;
        let (side, automaton) = self.side(backwards);
        // Adds the nodes of all accepting states to the set of the largest one. This spoils the search, which is
        // complete.
        let ends = |s: &usize| automaton.accepting.get(*s) == Some(&true);
        let most = (0..automaton.states())
            .filter(ends)
            .max_by_key(|&s| side.seen[s].order.len());
        let Some(most) = most else {
            return Ok(());
        };
        for state in (0..automaton.states()).filter(ends).filter(|s| *s != most) {
            let [Some(a), Some(b)] = two(&mut side.seen, most, state) else {
                continue;
            };
            a.reserve(b.order.len())?;
            for &v in &b.order {
                a.insert(v);
            }
        }
        if let Some(seen) = side.seen.get(most) {
            seen.sorted(out);
        }
        Ok(())
    }

    fn side(&mut self, backwards: bool) -> (&mut Side, &Automaton) {
        if backwards {
            (&mut self.behind, &self.backward)
        } else {
            (&mut self.ahead, &self.forward)
        }
    }

    /// Finds all nodes that can be reached from a node, unless this side has just done so.
    fn search(
        &mut self,
        ctx: &QueryContext<'_>,
        from: u32,
        graph: Option<u32>,
        backwards: bool,
    ) -> Result<()> {
        let of = usize::from(backwards);
        if self.whole[of] == Some((from, graph)) {
            return Ok(());
        }
        self.whole[of] = None;
        let scope = self.scope(graph);
        let (side, automaton) = self.side(backwards);
        side.clear()?;
        side.begin(automaton.start, from)?;
        side.exhaust(ctx, PathGraph::forward(automaton, scope))?;
        self.whole[of] = Some((from, graph));
        Ok(())
    }

    /// Returns true if the term is a node of the graphs, that is, an end of an edge in them.
    pub fn is_node(&mut self, ctx: &QueryContext<'_>, v: u32, graph: Option<u32>) -> Result<bool> {
        Ok(search::is_node(
            ctx,
            v,
            self.scope(graph),
            &mut self.scratch,
        ))
    }

    /// Returns true if the path leads from one node to the other.
    pub fn holds(
        &mut self,
        ctx: &QueryContext<'_>,
        from: u32,
        to: u32,
        graph: Option<u32>,
    ) -> Result<bool> {
        let last = self.last.replace((from, to, graph));
        // If an end is the same as in the last call, a complete search from it is worthwhile: further rows only look it
        // up.
        if self.whole[0] == Some((from, graph))
            || last.is_some_and(|l| (l.0, l.2) == (from, graph) && l.1 != to)
        {
            return self.reaches(ctx, from, to, graph, false);
        }
        if self.whole[1] == Some((to, graph))
            || last.is_some_and(|l| (l.1, l.2) == (to, graph) && l.0 != from)
        {
            return self.reaches(ctx, to, from, graph, true);
        }
        self.meet(ctx, from, to, graph)
    }

    fn reaches(
        &mut self,
        ctx: &QueryContext<'_>,
        from: u32,
        to: u32,
        graph: Option<u32>,
        backwards: bool,
    ) -> Result<bool> {
        self.search(ctx, from, graph, backwards)?;
        let (side, automaton) = self.side(backwards);
        let mut ends = side.seen.iter().zip(&automaton.accepting);
        Ok(ends.any(|(seen, accepting)| *accepting && seen.contains(to)))
    }

    /// Searches from both ends at once; returns true when they meet.
    fn meet(
        &mut self,
        ctx: &QueryContext<'_>,
        from: u32,
        to: u32,
        graph: Option<u32>,
    ) -> Result<bool> {
        self.whole[0] = None;
        let scope = self.scope(graph);
        let a = &self.forward;
        if from == to && a.is_nullable() {
            return Ok(true);
        }
        let (ahead, back) = (&mut self.ahead, &mut self.meeting);
        ahead.clear()?;
        back.clear()?;
        ahead.begin(a.start, from)?;
        for (state, _) in a.accepting.iter().enumerate().filter(|x| *x.1) {
            back.begin(state, to)?;
        }
        loop {
            let (n, m) = (ahead.waiting(), back.waiting());
            // One side has visited everything that it can reach, without meeting the other side: there is no path.
            if n == 0 || m == 0 {
                return Ok(false);
            }
            let met = if n <= m {
                ahead.level(ctx, PathGraph::forward(a, scope), Some(back))?
            } else {
                back.level(ctx, PathGraph::backward(a, scope), Some(ahead))?
            };
            if met {
                return Ok(true);
            }
        }
    }

    /// Finds the nodes at which a path may begin, and those at which it may end, and chooses the fewer of them as
    /// starts.
    pub fn free(&mut self, ctx: &QueryContext<'_>, graph: Option<u32>) -> Result<Free> {
        let scope = self.scope(graph);
        let (mut subjects, mut objects) = (VisitedSet::new(ctx), VisitedSet::new(ctx));
        search::starts(ctx, &self.forward, scope, &mut subjects)?;
        search::starts(ctx, &self.backward, scope, &mut objects)?;
        let backwards = objects.order.len() < subjects.order.len();
        let ends = if backwards { objects } else { subjects };
        let mut all = VisitedSet::new(ctx);
        if self.forward.is_nullable() {
            search::nodes(ctx, scope, &mut all)?;
        }
        let mut charge = OperatorCharge::for_holder(Holder::Path, ctx.budget);
        charge.set((ends.order.len() + all.order.len()) * 4)?;
        let mut starts = Vec::new();
        ends.sorted(&mut starts);
        let mut alone = Vec::new();
        all.sorted(&mut alone);
        alone.retain(|&v| !ends.contains(v));
        Ok(Free {
            starts,
            alone,
            backwards,
            _charge: charge,
        })
    }
}

/// Mutable references to two different elements; `None` for an index out of range.
fn two<T>(list: &mut [T], a: usize, b: usize) -> [Option<&mut T>; 2] {
    if a < b {
        let (x, y) = list.split_at_mut(b.min(list.len()));
        [x.get_mut(a), y.first_mut()]
    } else {
        let (x, y) = list.split_at_mut(a.min(list.len()));
        [y.first_mut(), x.get_mut(b)]
    }
}
