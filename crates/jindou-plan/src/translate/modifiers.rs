//! DISTINCT and GROUP BY.

use super::*;

impl Translator {
    pub(super) fn distinct(
        &mut self,
        inner: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
        reduced: bool,
    ) -> Result<LogicalNode, Reason> {
        use crate::logical::NodeKind;
        let make = |inner: Box<LogicalNode>, slots: Vec<Slot>| {
            if reduced {
                NodeKind::Reduced { inner, slots }
            } else {
                NodeKind::Distinct { inner, slots }
            }
        };
        let as_set = !reduced || self.as_set;
        let mut node = self.counted(as_set, |t| t.pattern(inner, env, place))?;
        let mut slots: Vec<Slot> = match projected(inner) {
            Some(variables) => {
                let mut slots = vec![];
                for v in variables {
                    if let Some(&s) = env.slots.get(v)
                        && node.possible.has(s)
                        && !slots.contains(&s)
                    {
                        slots.push(s);
                    }
                }
                slots
            }
            None => node.possible.to_vec(),
        };
        if let PatternGraphTerm::Slot(g) = place
            && !slots.contains(g)
        {
            node = in_some_graph(node, &SlotSet::one(*g), place);
            slots.push(*g);
        }
        // The ORDER BY moves above, since removing duplicates does not preserve the order.
        let visible = node.possible.clone();
        let is_project = matches!(node.kind, NodeKind::Project(_));
        let mut wrap = match node.kind {
            NodeKind::Project(inner) if matches!(inner.kind, NodeKind::OrderBy { .. }) => *inner,
            kind => LogicalNode { kind, ..node },
        };
        let mut keys = vec![];
        if let NodeKind::OrderBy { keys: own, inner } = wrap.kind {
            keys = own;
            wrap = *inner;
        }
        if keys.is_empty() {
            return Ok(wrap.above(|inner| make(inner, slots)));
        }
        if reduced || keys.iter().all(|k| slots.contains(&k.0)) {
            if !reduced {
                wrap = wrap.above(|inner| make(inner, slots));
            }
            let sorted = wrap.above(|inner| NodeKind::OrderBy { inner, keys });
            return Ok(if is_project {
                sorted.project(&visible)
            } else {
                sorted
            });
        }
        // Sort keys that are not selected: each distinct row takes the position of any one of its duplicates.
        let mut samples = vec![];
        let mut order = vec![];
        for (slot, descending) in keys {
            if slots.contains(&slot) {
                order.push((slot, descending));
                continue;
            }
            let to = self.hidden("order")?;
            order.push((to, descending));
            samples.push(Aggregate {
                to,
                function: AggregateFunction::Sample,
                of: Some(slot),
                distinct: false,
                row: vec![],
            });
        }
        let one = if slots.is_empty() {
            wrap.above(|inner| make(inner, slots))
        } else {
            let grouped = wrap.group(slots, samples);
            grouped.above(|inner| NodeKind::OrderBy { inner, keys: order })
        };
        Ok(if is_project {
            one.project(&visible)
        } else {
            one
        })
    }

    pub(super) fn group(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let (mut own, mut visible) = self.scope(variables, env);
        let as_set = aggregates.iter().all(|(_, a)| match a {
            AggregateExpression::CountSolutions { distinct } => *distinct,
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                let alike = matches!(
                    name,
                    SetFunction::Min | SetFunction::Max | SetFunction::Sample
                );
                (*distinct || alike) && !self.is_varying(expr)
            }
        });
        let mut node = self.counted(as_set, |t| t.pattern(inner, &mut own, place))?;
        let named: SlotSet = own.slots.values().copied().collect();
        let row = node.possible.and(&named).to_vec();
        let mut by: Vec<Slot> = variables
            .iter()
            .filter_map(|v| own.slots.get(v).copied())
            .collect();
        by.dedup();
        let mut out = vec![];
        for (name, aggregate) in aggregates {
            let to = self.variable(name, env);
            visible.insert(to);
            let (function, of, distinct) = match aggregate {
                AggregateExpression::CountSolutions { distinct } => {
                    (AggregateFunction::CountRows, None, *distinct)
                }
                AggregateExpression::FunctionCall {
                    name,
                    expr,
                    distinct,
                } => {
                    let function = match name {
                        SetFunction::Count => AggregateFunction::Count,
                        SetFunction::Sum => AggregateFunction::Sum,
                        SetFunction::Avg => AggregateFunction::Avg,
                        SetFunction::Min => AggregateFunction::Min,
                        SetFunction::Max => AggregateFunction::Max,
                        SetFunction::Sample => AggregateFunction::Sample,
                        SetFunction::GroupConcat { separator } => AggregateFunction::GroupConcat(
                            separator.as_ref().map_or(" ", |s| s.as_str()).to_owned(),
                        ),
                        SetFunction::Custom(f) => {
                            let fault = format!(
                                "unknown aggregate {f}; SPARQL's are COUNT, SUM, AVG, MIN, MAX, SAMPLE and GROUP_CONCAT"
                            );
                            self.fault = Some(fault.clone());
                            return Err(fault);
                        }
                    };
                    let slot;
                    (node, slot) = self.slot_of(node, expr, &mut own, place)?;
                    let of = match slot {
                        Some(s) => s,
                        // A variable that is never bound is an error in every row.
                        None => self.hidden("unbound")?,
                    };
                    (function, Some(of), *distinct)
                }
            };
            let counts_rows = matches!(function, AggregateFunction::CountRows);
            out.push(Aggregate {
                to,
                function,
                of,
                distinct,
                row: if counts_rows && distinct {
                    row.clone()
                } else {
                    vec![]
                },
            });
        }
        if let PatternGraphTerm::Slot(g) = place
            && !by.is_empty()
            && !by.contains(g)
        {
            node = in_some_graph(node, &SlotSet::one(*g), place);
            by.push(*g);
        }
        Ok(node.group(by, out).project(&visible))
    }
}
