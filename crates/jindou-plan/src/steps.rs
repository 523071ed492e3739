//! One group of patterns → exploration steps, which either start by themselves or extend rows that bind some of its
//! slots.
//!
//! The search uses bit masks of slots, so the slots of a group are numbered from 0 during the search.

use crate::emit::StepEmitter;
use crate::logical::{Bgp, LogicalPattern, PatternGraphTerm, PatternTerm};
use crate::model::CostModel;
use crate::resolve::{self, Dataset};
use crate::set::SlotSet;
use crate::validity::WatchedSnapshot;
use crate::{
    Condition, EdgeList, FarEnd, GraphRef, Operand, PredicateRef, Slot, StartSource, Step,
    StepKind, search,
};
use jindou_model::scope;
use std::sync::Arc;

/// Largest number of slots in one group; the other bits of a 128-bit mask are for hidden slots that steps add.
pub(crate) const MAX_LOCAL: usize = 100;

/// Steps with their estimates.
pub(crate) struct PlannedSteps {
    /// The steps. Empty if the extended rows already satisfy the group except for `conditions`.
    pub steps: Vec<Step>,
    /// If there are no steps, the conditions on the extended rows.
    pub conditions: Vec<Condition>,
    pub rows: f64,
    /// Cost of the steps, without the cost of the rows that they extend.
    pub cost: f64,
}

/// Plans a group. `given`: the slots that every row to extend binds, and the estimated number of these rows; `None` if
/// the steps start by themselves. `Err` is the reason why nothing can match.
pub(crate) fn plan(
    group: &Bgp,
    slots: &mut Vec<String>,
    given: Option<(&SlotSet, f64)>,
    dataset: &Dataset,
    snapshot: &WatchedSnapshot<'_>,
) -> Result<PlannedSteps, String> {
    let given_up = || Err("planning took too long".to_owned());
    if scope::is_over() {
        return given_up();
    }
    let mut local = LocalSlots::default();
    let inside = local.group(group);
    let mut names: Vec<String> = local
        .globals
        .iter()
        .map(|&g| slots[usize::from(g)].clone())
        .collect();
    let found = resolve::resolve(&inside, &names, dataset, snapshot)
        .and_then(|r| resolve::stars(&r, snapshot.graph(), &names).map(|stars| (r, stars)));
    let (resolved, stars) = found.inspect_err(|_| snapshot.bind())?;
    let model = CostModel::new(&resolved, snapshot.graph(), stars);
    let given = given.map(|(set, rows)| {
        let mask = local
            .globals
            .iter()
            .enumerate()
            .filter(|(_, g)| set.has(**g))
            .fold(0u128, |m, (i, _)| m | 1 << i);
        (mask, rows)
    });
    let mut need = model.masks.iter().fold(0u128, |a, m| a | m);
    for (slot, _) in &resolved.classes {
        need |= 1 << slot;
    }
    for (slot, within) in resolved.within.iter().enumerate() {
        if within.is_some() {
            need |= 1 << slot;
        }
    }
    let known = given.map_or(0, |g| g.0);
    need |= known;
    let Some(moves) = search::order(&model, need, known, given.map_or(1.0, |g| g.1)) else {
        return given_up();
    };
    let mut emitter = StepEmitter::new(&model, snapshot.graph(), &mut names, given);
    let (rows, cost) = emitter.run(&moves);
    let mut steps = emitter.steps;
    let mut conditions = if steps.is_empty() {
        resolved.conditions.clone()
    } else {
        vec![]
    };
    for name in names.drain(local.globals.len()..) {
        local
            .globals
            .push(slots.len().min(usize::from(Slot::MAX)) as Slot);
        slots.push(name);
    }
    let map = |s: &mut Slot| {
        *s = local.globals.get(usize::from(*s)).copied().unwrap_or(*s);
    };
    for step in &mut steps {
        renumber(&mut step.kind, &map);
        step.filters.iter_mut().for_each(|c| condition(c, &map));
    }
    conditions.iter_mut().for_each(|c| condition(c, &map));
    Ok(PlannedSteps {
        steps,
        conditions,
        rows,
        cost,
    })
}

/// The numbers that a group's slots have within the group.
#[derive(Default)]
struct LocalSlots {
    globals: Vec<Slot>,
}

impl LocalSlots {
    fn slot(&mut self, s: Slot) -> Slot {
        let at = self.globals.iter().position(|g| *g == s);
        at.unwrap_or_else(|| {
            self.globals.push(s);
            self.globals.len() - 1
        }) as Slot
    }

    fn end(&mut self, e: &PatternTerm) -> PatternTerm {
        match e {
            PatternTerm::Slot(s) => PatternTerm::Slot(self.slot(*s)),
            PatternTerm::Term(t) => PatternTerm::Term(t.clone()),
        }
    }

    fn group(&mut self, group: &Bgp) -> Bgp {
        let patterns = group
            .patterns
            .iter()
            .map(|p| LogicalPattern {
                subject: self.end(&p.subject),
                predicate: self.end(&p.predicate),
                object: self.end(&p.object),
                place: match &p.place {
                    PatternGraphTerm::Slot(g) => PatternGraphTerm::Slot(self.slot(*g)),
                    other => other.clone(),
                },
            })
            .collect();
        let filters = group
            .filters
            .iter()
            .map(|f| Arc::new(f.renamed(|s| self.slot(s))))
            .collect();
        Bgp::new(patterns, filters)
    }
}

fn operand(o: &mut Operand, map: &impl Fn(&mut Slot)) {
    if let Operand::Slot(s) = o {
        map(s);
    }
}

fn graph(g: &mut GraphRef, map: &impl Fn(&mut Slot)) {
    if let GraphRef::Slot(s) | GraphRef::Bind(s, _) = g {
        map(s);
    }
}

fn list(l: &mut EdgeList, map: &impl Fn(&mut Slot)) {
    operand(&mut l.anchor, map);
    graph(&mut l.graph, map);
}

fn source(s: &mut StartSource, map: &impl Fn(&mut Slot)) {
    match s {
        StartSource::List(l) => list(l, map),
        StartSource::Keys { graph: g, .. } => graph(g, map),
        StartSource::Unit | StartSource::IdFilter | StartSource::Graphs(_) => {}
    }
}

fn predicate_ref(p: &mut PredicateRef, map: &impl Fn(&mut Slot)) {
    match p {
        PredicateRef::Bind(s) | PredicateRef::Slot(s) => map(s),
    }
}

fn renumber(kind: &mut StepKind, map: &impl Fn(&mut Slot)) {
    match kind {
        StepKind::Start { to, source: s, .. } => {
            if let Some(to) = to {
                map(to);
            }
            source(s, map);
        }
        StepKind::Cross { to, source: s, .. } => {
            map(to);
            source(s, map);
        }
        StepKind::Expand { to, lists, .. } => {
            map(to);
            lists.iter_mut().for_each(|l| list(l, map));
        }
        StepKind::Check { list: l, other } => {
            list(l, map);
            operand(other, map);
        }
        StepKind::Restrict { slot, .. } => map(slot),
        StepKind::ExpandAny {
            anchor,
            predicate,
            far,
            graph: g,
            ..
        } => {
            operand(anchor, map);
            predicate_ref(predicate, map);
            match far {
                FarEnd::Bind(s) => map(s),
                FarEnd::Known(o) => operand(o, map),
            }
            graph(g, map);
        }
        StepKind::ScanAll {
            subject,
            predicate,
            object,
            graph: g,
        } => {
            map(subject);
            predicate_ref(predicate, map);
            map(object);
            graph(g, map);
        }
    }
}

fn condition(c: &mut Condition, map: &impl Fn(&mut Slot)) {
    match c {
        Condition::Same(a, b) => {
            operand(a, map);
            operand(b, map);
        }
        Condition::Compare(s, ..) | Condition::Kind(s, _) | Condition::Bound(s) => map(s),
        Condition::And(list) | Condition::Or(list) => {
            list.iter_mut().for_each(|c| condition(c, map));
        }
        Condition::Not(c) => condition(c, map),
        Condition::General(g) => {
            let variables = Arc::make_mut(&mut g.variables);
            variables.iter_mut().for_each(|v| map(&mut v.1));
        }
    }
}
