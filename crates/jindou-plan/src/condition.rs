//! FILTER expressions → [`Condition`]s, or sets of ids if the filter by itself determines them.

use crate::ask;
use crate::expression::Expr;
use crate::set::SlotSet;
use crate::validity::WatchedSnapshot;
use crate::{Condition, Operand, Relation, Slot, TermTest};
use jindou_dictionary::index::Question;
use jindou_syntax::algebra::{Canonical, Expression, Function, NamedNode, Variable};
use jindou_values::{Value, value};
use std::sync::Arc;

/// A filter after compilation.
pub(crate) enum CompiledCondition {
    /// Every row passes.
    True,
    /// No row passes, for this reason.
    False(String),
    /// The slot holds one of these ids; this replaces the filter.
    OneOf(Slot, Vec<u32>),
    /// A condition to test when its slots are bound.
    Test(Condition),
    /// As [`Self::Test`], together with the only ids of the graph's own terms that can pass according to an index, and
    /// the index's description.
    Narrowed(Slot, Vec<u32>, String, Condition),
}

/// Up to this number of members, IN compares each member by its value rank; beyond it, members are looked up in a set.
/// Also the largest number of operands of `&&` or `||` that become separate conditions.
const MANY: usize = 64;

pub(crate) struct ConditionCompiler<'a> {
    pub snapshot: &'a WatchedSnapshot<'a>,
    /// Slots that can only hold IRIs and blank nodes: subjects, predicates and graphs.
    pub resources: u128,
    /// Slots that are bound in every row; `None` if all are. Only general expressions handle unbound slots.
    pub certain: Option<&'a SlotSet>,
    /// True if all slots hold only terms of the store, since patterns bound them. VALUES, BIND and SERVICE may bind
    /// terms that the store lacks, so a constant that the store lacks must then be compared as a term.
    pub stored: bool,
}

impl ConditionCompiler<'_> {
    pub(crate) fn compile(&self, filter: &Expr) -> CompiledCondition {
        let scope = filter;
        if let Some(one_of) = self.one_of(&filter.expression, scope) {
            return one_of;
        }
        match self.condition(&filter.expression, scope, 0) {
            Condition::And(list) if list.is_empty() => CompiledCondition::True,
            Condition::Or(list) if list.is_empty() => {
                CompiledCondition::False("a FILTER is never true".into())
            }
            // Only explorations can start from listed ids. If `stored` is false, the rows come from other operators.
            c if self.stored => ask::narrowed(c, self.snapshot.graph()),
            c => CompiledCondition::Test(c),
        }
    }

    /// Compiles `?x = <iri>`, `sameTerm(?x, constant)` and `?x IN (<iri>, …)` to a set of ids; `None` for other
    /// filters.
    fn one_of(&self, e: &Expression, scope: &Expr) -> Option<CompiledCondition> {
        let mut ids = vec![];
        let slot = match e {
            Expression::Equal(a, b) | Expression::SameTerm(a, b) => {
                let same = matches!(e, Expression::SameTerm(..));
                let (v, c) = match (&**a, &**b) {
                    (Expression::Variable(v), c) | (c, Expression::Variable(v)) => (v, c),
                    _ => return None,
                };
                match c {
                    Expression::NamedNode(n) => ids.extend(self.iri(n)?),
                    Expression::Literal(l) if same => {
                        ids.extend(self.id(l.canonical())?);
                    }
                    _ => return None,
                }
                self.slot(v, scope)?
            }
            Expression::In(v, list) => {
                let Expression::Variable(v) = &**v else {
                    return None;
                };
                for e in list {
                    let Expression::NamedNode(n) = e else {
                        return None;
                    };
                    ids.extend(self.iri(n)?);
                }
                self.slot(v, scope)?
            }
            _ => return None,
        };
        Some(if ids.is_empty() {
            CompiledCondition::False("a FILTER needs a term that the store does not have".into())
        } else {
            CompiledCondition::OneOf(slot, ids)
        })
    }

    /// As [`Self::id`].
    fn iri(&self, iri: &NamedNode) -> Option<Option<u32>> {
        self.id(&iri.canonical())
    }

    /// The id of a term. `Some(None)` if the store lacks it and so no slot can hold it; `None` if the store lacks it,
    /// but a slot may hold it nevertheless ([`Self::stored`]).
    fn id(&self, canonical: &Canonical) -> Option<Option<u32>> {
        let id = self.snapshot.lookup(canonical).map(|v| v.0);
        (id.is_some() || self.stored).then_some(id)
    }

    /// Compiles a condition; `And([])` is true, `Or([])` is false. Below `MAX_INLINE` levels, the rest becomes one
    /// general expression.
    fn condition(&self, e: &Arc<Expression>, scope: &Expr, depth: usize) -> Condition {
        const MAX_INLINE: usize = 64;
        let general = || self.general(e, scope);
        if jindou_model::scope::is_over() {
            return Condition::Or(vec![]);
        }
        if depth > MAX_INLINE {
            return general();
        }
        match &**e {
            Expression::And(..) | Expression::Or(..) => self.chain(e, scope, depth),
            Expression::Not(a) => Condition::Not(Box::new(self.condition(a, scope, depth + 1))),
            Expression::Bound(v) => match scope.slot(v) {
                Some(slot) => Condition::Bound(slot),
                None => Condition::Or(vec![]),
            },
            Expression::SameTerm(a, b) => match (&**a, &**b) {
                (Expression::Variable(a), Expression::Variable(b)) => {
                    match (self.slot(a, scope), self.slot(b, scope)) {
                        (Some(a), Some(b)) => Condition::Same(Operand::Slot(a), Operand::Slot(b)),
                        _ => general(),
                    }
                }
                _ => self.one_of(e, scope).map_or_else(general, known),
            },
            Expression::Equal(a, b) => match (&**a, &**b) {
                // An IRI or blank node equals only itself, and that comparison is never an error.
                (Expression::Variable(a), Expression::Variable(b)) => {
                    match (self.slot(a, scope), self.slot(b, scope)) {
                        (Some(a), Some(b)) if self.is_resource(a) || self.is_resource(b) => {
                            Condition::Same(Operand::Slot(a), Operand::Slot(b))
                        }
                        _ => general(),
                    }
                }
                _ => match self.one_of(e, scope) {
                    Some(c) => known(c),
                    None => self
                        .compare(a, Relation::Equal, b, scope)
                        .unwrap_or_else(general),
                },
            },
            Expression::Less(a, b) => self
                .compare(a, Relation::Less, b, scope)
                .unwrap_or_else(general),
            Expression::LessOrEqual(a, b) => self
                .compare(a, Relation::LessOrEqual, b, scope)
                .unwrap_or_else(general),
            Expression::Greater(a, b) => self
                .compare(a, Relation::Greater, b, scope)
                .unwrap_or_else(general),
            Expression::GreaterOrEqual(a, b) => self
                .compare(a, Relation::GreaterOrEqual, b, scope)
                .unwrap_or_else(general),
            Expression::In(v, list) => {
                if let Some(c) = self.one_of(e, scope) {
                    return known(c);
                }
                if list.len() > MANY {
                    return general();
                }
                // `a IN (b, c)` is `a = b || a = c`.
                let parts: Option<Vec<Condition>> = list
                    .iter()
                    .map(|c| match (&**v, c) {
                        (Expression::Variable(x), Expression::NamedNode(n)) => {
                            let slot = self.slot(x, scope)?;
                            Some(match self.iri(n)? {
                                Some(id) => {
                                    Condition::Same(Operand::Slot(slot), Operand::Const(id))
                                }
                                None => Condition::Or(vec![]),
                            })
                        }
                        (v, c) => self.compare(v, Relation::Equal, c, scope),
                    })
                    .collect();
                parts.map_or_else(general, Condition::Or)
            }
            Expression::FunctionCall(f, args) => {
                let test = match f {
                    Function::IsIri => TermTest::Iri,
                    Function::IsBlank => TermTest::Blank,
                    Function::IsLiteral => TermTest::Literal,
                    Function::IsNumeric => TermTest::Numeric,
                    _ => return general(),
                };
                match args.as_slice() {
                    [Expression::Variable(v)] => match self.slot(v, scope) {
                        Some(slot) => Condition::Kind(slot, test),
                        None => general(),
                    },
                    _ => general(),
                }
            }
            _ => general(),
        }
    }

    /// Compiles `a && b && …` or `a || b || …`. In a long chain, all operands that need a general expression become a
    /// single one, since each general expression has variables and a cache of its own.
    fn chain(&self, e: &Arc<Expression>, scope: &Expr, depth: usize) -> Condition {
        let or = matches!(**e, Expression::Or(..));
        let pair = |e: &Arc<Expression>| match &**e {
            Expression::And(a, b) if !or => Some((Arc::clone(a), Arc::clone(b))),
            Expression::Or(a, b) if or => Some((Arc::clone(a), Arc::clone(b))),
            _ => None,
        };
        let all = if or { Condition::Or } else { Condition::And };
        let (mut parts, mut open) = (vec![], vec![Arc::clone(e)]);
        while let Some(e) = open.pop() {
            match pair(&e) {
                Some((a, b)) => open.extend([b, a]),
                None => parts.push(e),
            }
        }
        if parts.len() <= MANY {
            return match pair(e) {
                Some((a, b)) => all(vec![
                    self.condition(&a, scope, depth + 1),
                    self.condition(&b, scope, depth + 1),
                ]),
                None => self.general(e, scope),
            };
        }
        let (mut known, mut general) = (vec![], vec![]);
        for part in parts {
            match self.condition(&part, scope, depth + 1) {
                Condition::General(_) => general.push(part),
                c => known.push(c),
            }
        }
        // Balanced, so that recursion over the tree is shallow.
        while general.len() > 1 {
            let mut parts = general.into_iter();
            let mut next = vec![];
            while let Some(a) = parts.next() {
                next.push(match (parts.next(), or) {
                    (Some(b), true) => Arc::new(Expression::Or(a, b)),
                    (Some(b), false) => Arc::new(Expression::And(a, b)),
                    (None, _) => a,
                });
            }
            general = next;
        }
        known.extend(general.iter().map(|e| self.general(e, scope)));
        all(known)
    }

    /// Compiles a comparison of a variable with a literal of a datatype whose values are ordered by value ranks.
    fn compare(
        &self,
        a: &Expression,
        relation: Relation,
        b: &Expression,
        scope: &Expr,
    ) -> Option<Condition> {
        let (v, l, relation) = match (a, b) {
            (Expression::Variable(v), Expression::Literal(l)) => (v, l, relation),
            (Expression::Literal(l), Expression::Variable(v)) => (v, l, flip(relation)),
            _ => return None,
        };
        let slot = self.slot(v, scope)?;
        let constant = l.canonical();
        well_formed(constant).then(|| Condition::Compare(slot, relation, constant.clone()))
    }

    fn is_resource(&self, slot: Slot) -> bool {
        self.resources.checked_shr(u32::from(slot)).unwrap_or(0) & 1 == 1
    }

    /// The slot of a variable, if it is bound in every row.
    fn slot(&self, v: &Variable, scope: &Expr) -> Option<Slot> {
        let slot = scope.slot(v)?;
        self.certain.is_none_or(|c| c.has(slot)).then_some(slot)
    }

    fn general(&self, e: &Arc<Expression>, scope: &Expr) -> Condition {
        ask::general(e, scope, self.snapshot.graph(), |slot| {
            self.certain.is_none_or(|c| c.has(slot))
        })
    }
}

/// Turns the result of [`ConditionCompiler::one_of`] into a condition inside a larger one.
pub(crate) fn known(c: CompiledCondition) -> Condition {
    match c {
        CompiledCondition::True => Condition::And(vec![]),
        CompiledCondition::False(_) => Condition::Or(vec![]),
        CompiledCondition::OneOf(slot, ids) => {
            let mut each: Vec<Condition> = ids
                .into_iter()
                .map(|id| Condition::Same(Operand::Slot(slot), Operand::Const(id)))
                .collect();
            if each.len() == 1 {
                each.remove(0)
            } else {
                Condition::Or(each)
            }
        }
        CompiledCondition::Test(c) | CompiledCondition::Narrowed(_, _, _, c) => c,
    }
}

fn flip(r: Relation) -> Relation {
    match r {
        Relation::Less => Relation::Greater,
        Relation::LessOrEqual => Relation::GreaterOrEqual,
        Relation::Greater => Relation::Less,
        Relation::GreaterOrEqual => Relation::LessOrEqual,
        Relation::Equal | Relation::NotEqual => r,
    }
}

/// Returns true for literals that can be compared without a general expression: strings, numbers except NaN, booleans,
/// dates, times and durations.
pub(crate) fn well_formed(bytes: &[u8]) -> bool {
    match value(bytes) {
        Some(Value::Number(n)) => !n.to_f64().is_nan(),
        Some(Value::String(_) | Value::Boolean(_) | Value::Temporal(_) | Value::Duration(_)) => {
            true
        }
        _ => false,
    }
}

/// Calls `f` with every slot that a condition reads.
pub(crate) fn for_each_slot(c: &Condition, f: &mut impl FnMut(Slot)) {
    match c {
        Condition::Same(a, b) => {
            for o in [a, b] {
                if let Operand::Slot(s) = o {
                    f(*s);
                }
            }
        }
        Condition::Compare(s, ..) | Condition::Kind(s, _) | Condition::Bound(s) => f(*s),
        Condition::And(list) | Condition::Or(list) => list.iter().for_each(|c| for_each_slot(c, f)),
        Condition::Not(c) => for_each_slot(c, f),
        Condition::General(g) => g.variables.iter().for_each(|v| f(v.1)),
    }
}

/// Adds the slots that a condition reads.
pub(crate) fn add_slots(c: &Condition, out: &mut SlotSet) {
    for_each_slot(c, &mut |s| out.insert(s));
}

impl Condition {
    /// Returns true for the condition that the planner emits where nothing can match.
    #[must_use]
    pub fn is_false(&self) -> bool {
        matches!(self, Self::Or(list) if list.is_empty())
    }
}

/// Estimates the share of rows that pass.
pub(crate) fn selectivity(c: &Condition) -> f64 {
    selectivity_by(c, &mut |_, _| None)
}

/// Estimates as [`selectivity`] does, but `known` may give the share for a comparison of a slot; `None` if it cannot.
pub(crate) fn selectivity_by(
    c: &Condition,
    known: &mut dyn FnMut(Slot, &Question<'_>) -> Option<f64>,
) -> f64 {
    if let Condition::Compare(slot, relation, constant) = c
        && let Some(share) = known(*slot, &Question::Compare(*relation, constant))
    {
        return share;
    }
    let mut selectivity = |c: &Condition| selectivity_by(c, known);
    match c {
        Condition::Same(..) | Condition::Compare(_, Relation::Equal, _) => 0.05,
        Condition::Compare(_, Relation::NotEqual, _) | Condition::Bound(_) => 0.95,
        Condition::Compare(..) => 0.33,
        Condition::General(g) => g.asked.as_ref().map_or(0.5, |a| a.share),
        Condition::Kind(..) => 0.5,
        Condition::And(list) => list.iter().map(&mut selectivity).product(),
        Condition::Or(list) => list.iter().map(&mut selectivity).sum::<f64>().min(1.0),
        Condition::Not(c) => (1.0 - selectivity(c)).max(0.05),
    }
}
