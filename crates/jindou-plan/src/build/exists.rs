//! EXISTS and NOT EXISTS whose body depends on the outer row only through filters at its top: they become a join on
//! these filters, instead of one evaluation of the body per row.

use super::*;
use crate::MatchBy;
use jindou_syntax::algebra::{Expression, Variable};

/// Largest product of conditions and parts for which every part tests the conditions itself; above it, they are tested
/// once over the union of the parts, since each copy has to be planned.
const MOST_REPEATED: usize = 1 << 14;

/// The body of an EXISTS as a union of parts that do not read the outer row.
struct Peeled<'n> {
    parts: Vec<PeeledPart<'n>>,
    /// Conditions that read only the solution of a part and apply to every part.
    own: Vec<Arc<Expr>>,
    /// Conditions that compare the outer row with a solution of any part.
    between: Vec<Arc<Expr>>,
}

/// One branch of a body: its pattern, the filters that read only the branch, and the filters that read the outer row.
struct PeeledPart<'n> {
    core: &'n LogicalNode,
    own: Vec<Arc<Expr>>,
    between: Vec<Arc<Expr>>,
    /// Columns to add to this part, so that one condition serves all parts: where parts compare different expressions
    /// with the row, each part binds its own expression to the same slot.
    keys: Vec<(Slot, Arc<Expr>)>,
}

/// Removes the operators at the top of `body` that do not decide whether it has a solution, and splits its filters by
/// whether they read the outer row, which has the slots `outer`. `None` if a filter cannot be moved.
fn part<'n>(body: &'n LogicalNode, outer: &SlotSet) -> Option<PeeledPart<'n>> {
    let mut core = body;
    let mut filters: Vec<&Arc<Expr>> = vec![];
    loop {
        core = match &core.kind {
            NodeKind::Filter {
                inner,
                filters: more,
            } => {
                filters.extend(more);
                inner
            }
            NodeKind::Extend { inner, to, value }
                if !value.per_row
                    && !outer.has(*to)
                    && !filters.iter().any(|f| f.slots().has(*to)) =>
            {
                inner
            }
            NodeKind::Distinct { inner, .. }
            | NodeKind::Reduced { inner, .. }
            | NodeKind::OrderBy { inner, .. } => inner,
            _ => break,
        };
    }
    let mut out = PeeledPart {
        core,
        own: vec![],
        between: vec![],
        keys: vec![],
    };
    for f in filters {
        let of_row = f.slots().and(outer);
        if of_row.is_within(&core.uses) {
            // In every solution the part itself binds these slots, to the same values as the row.
            if f.per_row || !of_row.is_within(&core.certain) {
                return None;
            }
            out.own.push(f.clone());
        } else if f.per_row {
            return None;
        } else {
            out.between.push(f.clone());
        }
    }
    Some(out)
}

fn same(a: &Expr, b: &Expr) -> bool {
    a.expression == b.expression && a.variables == b.variables
}

/// One condition that replaces a condition in each of the parts: it compares the outer row with the column `key`.
struct SharedCondition {
    key: Slot,
    /// The column's value in each part.
    values: Vec<Expr>,
    condition: Expr,
}

/// If `f` compares an expression over the outer row with one over the part: the row's expression, the part's
/// expression, and the comparison of the first with the second.
fn with_row<'e>(
    f: &'e Expr,
    part: &PeeledPart<'_>,
    outer: &SlotSet,
) -> Option<(&'e Expression, &'e Expression, MatchBy)> {
    let (a, b, by) = keyed::sides(&f.expression)?;
    let of_row = |e: &Expression| {
        let slots = keyed::slots_of(e, f);
        !slots.is_empty() && slots.is_within(outer) && !slots.meets(&part.core.uses)
    };
    let of_part = |e: &Expression| {
        let slots = keyed::slots_of(e, f);
        !slots.is_empty() && slots.and(outer).is_within(&part.core.certain)
    };
    if of_row(a) && of_part(b) {
        Some((a, b, by))
    } else if of_row(b) && of_part(a) {
        Some((b, a, keyed::flipped(by)))
    } else {
        None
    }
}

impl PlanBuilder<'_> {
    fn peeled<'n>(&mut self, body: &'n LogicalNode, outer: &SlotSet) -> Option<Peeled<'n>> {
        let mut one = part(body, outer)?;
        let NodeKind::Union(branches) = &one.core.kind else {
            return Some(Peeled {
                between: std::mem::take(&mut one.between),
                own: vec![],
                parts: vec![one],
            });
        };
        let mut parts = branches
            .iter()
            .map(|b| part(b, outer))
            .collect::<Option<Vec<_>>>()?;
        let mut between = one.between;
        let count = parts.first()?.between.len();
        if parts.iter().any(|p| p.between.len() != count) {
            return None;
        }
        for i in 0..count {
            let first = parts.first()?.between.get(i)?.clone();
            // A filter over the union was pushed down into all of its branches, so each has the same one.
            if parts.iter().all(|p| same(&p.between[i], &first)) {
                between.push(first);
                continue;
            }
            let common = self.common(&parts, i, outer)?;
            let key = common.key;
            for (part, value) in parts.iter_mut().zip(common.values) {
                part.keys.push((key, Arc::new(value)));
            }
            between.push(Arc::new(common.condition));
        }
        Some(Peeled {
            parts,
            own: one.own,
            between,
        })
    }

    /// Merges the `i`-th conditions of all parts into one, if all of them compare the same expression over the row in
    /// the same way; otherwise `None`.
    fn common(
        &mut self,
        parts: &[PeeledPart<'_>],
        i: usize,
        outer: &SlotSet,
    ) -> Option<SharedCondition> {
        let mut values = vec![];
        let mut first: Option<(&Expr, &Expression, MatchBy)> = None;
        for part in parts {
            let f = part.between.get(i)?;
            let (row, own, by) = with_row(f, part, outer)?;
            let (f, ..) = *first.get_or_insert((f, row, by));
            let (_, known, known_by) = first?;
            if known_by != by || !same(&f.only(known), &part.between.get(i)?.only(row)) {
                return None;
            }
            values.push(part.between.get(i)?.only(own));
        }
        let (f, row, by) = first?;
        // A space cannot occur in a variable of the query, so the name is new.
        let key = self.key(|key| format!("key {key}"))?;
        let variable = Variable::new_unchecked(format!("key {key}"));
        let mut condition = f.only(row);
        let compared = keyed::comparison(condition.expression.shared(), by, variable.clone());
        condition.expression = Arc::new(compared);
        condition.variables = condition
            .variables
            .iter()
            .cloned()
            .chain([(variable, key)])
            .collect();
        Some(SharedCondition {
            key,
            values,
            condition,
        })
    }

    /// The rows for which the body has a solution (or, by `kind`, has none), as a join with the solutions of the body
    /// evaluated by itself. `None` if that is not equivalent, or there is no equality to join on.
    pub(super) fn exists_by_key(
        &mut self,
        input: &Built,
        body: &LogicalNode,
        kind: JoinKind,
    ) -> Option<Built> {
        let peeled = self.peeled(body, &input.possible)?;
        if !peeled.between.iter().any(|f| keyed::compares(f)) {
            return None;
        }
        let alone = |core: &LogicalNode| {
            let shared = core.uses.and(&input.possible);
            shared.is_within(&input.certain)
                && shared.is_within(&op_certain(core))
                && is_safe(core, &shared, Some(&input.nodes))
        };
        if !peeled.parts.iter().all(|p| alone(p.core)) {
            return None;
        }
        let own = peeled.own;
        // For example, a thousand conditions in a thousand parts would be a million.
        let in_each = peeled.parts.len().saturating_mul(own.len()) <= MOST_REPEATED;
        let mut parts: Vec<Built> = peeled
            .parts
            .into_iter()
            .map(|mut p| {
                if in_each {
                    p.own.extend(own.iter().cloned());
                }
                let built = self.build_filtered(p.core, p.own);
                let with_key = |b, (to, value): &(Slot, Arc<Expr>)| self.extend(b, *to, value);
                p.keys.iter().fold(built, with_key)
            })
            .collect();
        let mut right = match parts.len() {
            1 => parts.pop()?,
            _ => union(parts),
        };
        if !in_each {
            right = self.filter(right, &own);
        }
        Some(self.hashed(input.clone(), right, kind, &peeled.between))
    }

    /// The rows for which no branch of a union has a solution, as a chain of anti-joins, one per branch; `None` if no
    /// branch has a condition that can be a join key.
    pub(super) fn without_each(&mut self, input: &Built, body: &LogicalNode) -> Option<Built> {
        const MOST: usize = 16;
        let NodeKind::Union(branches) = &body.kind else {
            return None;
        };
        let compares = |b: &LogicalNode| {
            let between = part(b, &input.possible).map(|p| p.between);
            between.is_some_and(|all| all.iter().any(|f| keyed::compares(f)))
        };
        if branches.len() > MOST || !branches.iter().any(compares) {
            return None;
        }
        let without = |at, b: &LogicalNode| self.apply(at, b, ApplyKind::Anti);
        Some(branches.iter().fold(input.clone(), without))
    }

    /// The node's solutions for which all filters are true.
    pub(super) fn build_filtered(&mut self, node: &LogicalNode, filters: Vec<Arc<Expr>>) -> Built {
        match &node.kind {
            _ if filters.is_empty() => self.build(node),
            NodeKind::Join(parts) => self.join(parts, filters),
            NodeKind::Path(_) => self.join(std::slice::from_ref(node), filters),
            _ => {
                // Planning both alternatives would double the work at each level of nested bodies.
                if let Some(apart) = split::split(node, &filters) {
                    return self.join(&apart.parts, apart.over);
                }
                let inner = self.build(node);
                self.filter(inner, &filters)
            }
        }
    }

    /// Joins the sides on their common slots and on those conditions that compare one side with the other; the other
    /// conditions are tested on the pairs.
    pub(super) fn hashed(
        &mut self,
        left: Built,
        right: Built,
        kind: JoinKind,
        conditions: &[Arc<Expr>],
    ) -> Built {
        let both = left.certain.or(&right.certain);
        let comparisons = self.comparisons(conditions);
        let later = SlotSet::default();
        let listed = comparisons.iter().map(Option::as_ref);
        let Some((mut out, used)) = self.matched(&left, &right, kind, &later, listed) else {
            let condition = self.conjunction(conditions, &both);
            return hash_join(left, right, kind, condition);
        };
        let rest: Vec<Arc<Expr>> = conditions
            .iter()
            .enumerate()
            .filter(|(i, _)| !used.contains(i))
            .map(|c| c.1.clone())
            .collect();
        if let Operator::Join(join) = &mut out.op {
            join.condition = self.conjunction(&rest, &both);
        }
        out
    }

    /// Extends each row of the input by the node's matching solutions for which the conditions are true. If a condition
    /// requires a slot of the node to be the same term as a slot of the row, the row's slot replaces it, so that the
    /// exploration starts from its value.
    pub(super) fn go_on_if(
        &mut self,
        input: Built,
        node: &LogicalNode,
        conditions: &[Arc<Expr>],
    ) -> Built {
        if let NodeKind::Bgp(bgp) = &node.kind
            && let Some((group, copies, rest)) =
                equal::given(bgp, conditions, &input, self.snapshot.graph())
        {
            let mut at = self.steps(input, &group);
            for (to, value) in &copies {
                at = self.extend(at, *to, value);
            }
            return self.filter(at, &rest);
        }
        let at = self.go_on(input, node);
        self.filter(at, conditions)
    }
}
