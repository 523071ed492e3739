//! Expressions, FILTER, BIND, EXISTS.

use super::*;
use jindou_model::scope;

impl Translator {
    /// Translates an expression without EXISTS. `scope` has the slots of the variables that it can see.
    pub(super) fn expr(
        &mut self,
        e: &Arc<Expression>,
        scope: &SlotSet,
        env: &ScopeSlots,
    ) -> Arc<Expr> {
        let functions = self.functions.clone();
        let mut fault = None;
        let mut calls = false;
        let mut variables = Variables::default();
        let mut per_row = false;
        let mut needs_base = false;
        walk(e, &mut |e| match e {
            Expression::Variable(v) | Expression::Bound(v) => {
                variables.add(v, || {
                    let slot = env.slots.get(v).copied()?;
                    (scope.has(slot) || self.outer.has(slot)).then_some(slot)
                });
            }
            Expression::FunctionCall(f, arguments) => {
                per_row |= varies(f);
                needs_base |= matches!(f, Function::Iri);
                if let Function::Custom(name) = f {
                    calls = true;
                    per_row |= functions.varies(name.as_str());
                    if fault.is_none() {
                        fault = functions.fault(name.as_str(), arguments.len());
                    }
                }
            }
            _ => {}
        });
        if self.fault.is_none() {
            self.fault = fault;
        }
        Arc::new(Expr::new(
            Arc::clone(e),
            variables.list.into(),
            per_row,
            if needs_base { self.base.clone() } else { None },
            if calls { functions } else { Functions::new() },
        ))
    }

    /// Returns true if the expression may have different values in equal solutions (RAND, BNODE, …).
    pub(super) fn is_varying(&self, e: &Expression) -> bool {
        let mut found = false;
        walk(e, &mut |e| {
            found |= match e {
                Expression::FunctionCall(Function::Custom(f), _) => {
                    self.functions.varies(f.as_str())
                }
                Expression::FunctionCall(f, _) => varies(f),
                _ => false,
            };
        });
        found
    }

    /// Translates an expression over the node's rows. Returns the node as well, with an operator added for each EXISTS
    /// in the expression.
    pub(super) fn expr_over(
        &mut self,
        mut node: LogicalNode,
        e: &Arc<Expression>,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
        scope: &SlotSet,
    ) -> Result<(LogicalNode, Arc<Expr>), Reason> {
        if !has_exists(e) {
            let expr = self.expr(e, scope, env);
            return Ok((node, expr));
        }
        let mut marks = vec![];
        let marked = self.marks(&mut node, e, env, place, scope, &mut marks)?;
        let e = marked.map_or_else(|| Arc::clone(e), Arc::new);
        let mut expr = self.expr(&e, scope, env);
        let own = Arc::make_mut(&mut expr);
        own.variables = own.variables.iter().cloned().chain(marks).collect();
        Ok((node, expr))
    }

    /// The expression with each EXISTS replaced by a variable, to which `node` is made to bind its result; `None`
    /// without EXISTS.
    pub(super) fn marks(
        &mut self,
        node: &mut LogicalNode,
        e: &Expression,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
        scope: &SlotSet,
        marks: &mut Vec<(Variable, Slot)>,
    ) -> Result<Option<Expression>, Reason> {
        if let Expression::Exists(p) = e {
            let slot = self.hidden("exists")?;
            // A space cannot occur in a variable of the query, so the name is new.
            let name = Variable::new_unchecked(format!("exists {slot}"));
            let own = std::mem::replace(node, LogicalNode::unit());
            *node = self.exists(own, p, ApplyKind::Mark(slot), env, place, scope)?;
            marks.push((name.clone(), slot));
            return Ok(Some(name.into()));
        }
        map_parts(e, &mut |part| {
            self.marks(node, part, env, place, scope, marks)
        })
    }

    pub(super) fn exists(
        &mut self,
        node: LogicalNode,
        pattern: &GraphPattern,
        kind: ApplyKind,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
        scope: &SlotSet,
    ) -> Result<LogicalNode, Reason> {
        // Variables that the rows and outer rows cannot bind are local to the body.
        let mut own = ScopeSlots {
            is_inner: true,
            ..ScopeSlots::default()
        };
        for (v, &slot) in &env.slots {
            if scope.has(slot) || self.outer.has(slot) {
                own.slots.insert(v.clone(), slot);
            }
        }
        let before = self.enter(scope);
        let body = self.counted(true, |t| t.pattern(pattern, &mut own, place));
        self.outer = before;
        let body = body?;
        Ok(in_some_graph(node, &body.uses, place).apply(body, kind))
    }

    pub(super) fn filter(
        &mut self,
        mut node: LogicalNode,
        e: &Arc<Expression>,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
        scope: &SlotSet,
    ) -> Result<LogicalNode, Reason> {
        let (mut plain, mut others) = (vec![], vec![]);
        for c in conjuncts(e) {
            if scope::is_over() {
                return Err(GIVEN_UP.into());
            }
            if has_exists(c) {
                others.push(c);
            } else {
                plain.push(self.expr(c, scope, env));
            }
        }
        node = node.filter(plain);
        for c in others {
            let (negated, inner) = match &**c {
                Expression::Not(e) => (true, &**e),
                e => (false, e),
            };
            if let Expression::Exists(p) = inner {
                let kind = if negated {
                    ApplyKind::Anti
                } else {
                    ApplyKind::Semi
                };
                node = self.exists(node, p, kind, env, place, scope)?;
            } else {
                let (with_marks, expr) = self.expr_over(node, c, env, place, scope)?;
                node = with_marks.filter(vec![expr]);
            }
        }
        Ok(node)
    }

    pub(super) fn extend(
        &mut self,
        inner: &GraphPattern,
        variable: &Variable,
        expression: &Arc<Expression>,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        if let Expression::Variable(v) = &**expression {
            // In `(COUNT(*) AS ?n)`, the aggregate is bound directly to the slot of `?n`.
            if !env.slots.contains_key(v) && is_aggregate(inner, v) {
                let slot = self.variable(variable, env);
                env.slots.insert(v.clone(), slot);
                return self.pattern(inner, env, place);
            }
            if env.is_select {
                let node = self.pattern(inner, env, place)?;
                if let Some(&slot) = env.slots.get(v)
                    && node.possible.has(slot)
                    && !env.slots.contains_key(variable)
                {
                    env.slots.insert(variable.clone(), slot);
                    return Ok(node);
                }
                let scope = node.possible.clone();
                let value = self.expr(expression, &scope, env);
                let to = self.variable(variable, env);
                return Ok(node.extend(to, value));
            }
        }
        // Two equal solutions may get different values, say new blank nodes, so both must be kept.
        let as_set = self.as_set && !self.is_varying(expression);
        let node = self.counted(as_set, |t| t.pattern(inner, env, place))?;
        let scope = node.possible.clone();
        let (node, value) = self.expr_over(node, expression, env, place, &scope)?;
        let to = self.variable(variable, env);
        Ok(node.extend(to, value))
    }

    /// Binds an expression over the node's rows to a new slot; a variable keeps its own slot. `None` if it is never
    /// bound.
    pub(super) fn slot_of(
        &mut self,
        node: LogicalNode,
        e: &Arc<Expression>,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<(LogicalNode, Option<Slot>), Reason> {
        if let Expression::Variable(v) = &**e {
            let slot = env.slots.get(v).copied();
            let seen = slot.filter(|s| node.possible.has(*s) || self.outer.has(*s));
            return Ok((node, seen));
        }
        let scope = node.possible.clone();
        let (node, value) = self.expr_over(node, e, env, place, &scope)?;
        let to = self.hidden("expression")?;
        Ok((node.extend(to, value), Some(to)))
    }

    pub(super) fn ordered(
        &mut self,
        inner: &GraphPattern,
        keys: &[OrderExpression],
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<(LogicalNode, Vec<(Slot, bool)>), Reason> {
        let mut node = self.pattern(inner, env, place)?;
        let mut out: Vec<(Slot, bool)> = vec![];
        for k in keys {
            let (e, descending) = match k {
                OrderExpression::Asc(e) => (e, false),
                OrderExpression::Desc(e) => (e, true),
            };
            let slot;
            (node, slot) = self.slot_of(node, e, env, place)?;
            // A variable that is never bound does not sort, and a repeated key changes nothing.
            if let Some(slot) = slot
                && !out.iter().any(|o| o.0 == slot)
            {
                out.push((slot, descending));
            }
        }
        Ok((node, out))
    }
}

pub(super) fn has_exists(e: &Expression) -> bool {
    let mut found = false;
    walk(e, &mut |e| found |= matches!(e, Expression::Exists(_)));
    found
}

/// Returns true if the expression names a variable of one of these slots, including in the patterns of an EXISTS.
pub(super) fn reads(e: &Expression, slots: &SlotSet, env: &ScopeSlots) -> bool {
    let named = |v: &Variable| env.slots.get(v).is_some_and(|s| slots.has(*s));
    let mut patterns = vec![];
    let mut found = false;
    walk(e, &mut |e| match e {
        Expression::Variable(v) | Expression::Bound(v) => found |= named(v),
        Expression::Exists(p) => patterns.push(p),
        _ => {}
    });
    let mut of_slots = env.slots.iter().filter(|v| slots.has(*v.1));
    found || !patterns.is_empty() && of_slots.any(|v| patterns.iter().any(|p| p.mentions(v.0)))
}

/// Returns true if the parser introduced the variable `v` for an aggregate of the group below `p`.
pub(super) fn is_aggregate(p: &GraphPattern, v: &Variable) -> bool {
    match p {
        GraphPattern::Extend { inner, .. } | GraphPattern::Filter { inner, .. } => {
            is_aggregate(inner, v)
        }
        GraphPattern::Group { aggregates, .. } => aggregates.iter().any(|a| a.0 == *v),
        _ => false,
    }
}
