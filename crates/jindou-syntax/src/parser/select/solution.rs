//! Builds the algebra of a query from its selection, pattern and modifiers (SPARQL 1.1 §18.2.4, §18.2.5).

use super::{Duplicates, Items, Modifiers, SelectItem, Selection};
use crate::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression, Variable,
};
use crate::parser::aggregates::AggregateFrame;
use crate::parser::group::{Pattern, join};
use crate::parser::{Parse, Parser, RuleHalt};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Variables that a grouped query's HAVING and ORDER BY use outside aggregates, and the aggregates that replace them.
struct Samples<'f> {
    frame: &'f mut AggregateFrame,
    grouped: FxHashSet<u32>,
    before: FxHashSet<u32>,
    chosen: FxHashSet<u32>,
    taken: FxHashMap<u32, Variable>,
}

/// The expression for modification. If it has other owners, it is replaced by a copy of its top node first.
fn owned(e: &mut Arc<Expression>) -> Option<&mut Expression> {
    if Arc::get_mut(e).is_none() {
        *e = Arc::new(e.shared());
    }
    Arc::get_mut(e)
}

impl Parser<'_, '_> {
    /// Replaces each variable ?v that the group's pattern binds and that is not grouped by Sample(?v) (SPARQL 1.1
    /// §18.2.4.1).
    fn sample(&mut self, e: &mut Expression, samples: &mut Samples<'_>) {
        let mut left = vec![e];
        while let Some(e) = left.pop() {
            match e {
                Expression::Variable(v) => {
                    let Some(&id) = self.names.get(v.as_str()) else {
                        continue;
                    };
                    let hidden = samples.before.contains(&id)
                        && !samples.grouped.contains(&id)
                        && !samples.chosen.contains(&id);
                    if !hidden {
                        continue;
                    }
                    if let Some(taken) = samples.taken.get(&id) {
                        *v = taken.clone();
                        continue;
                    }
                    let to = self.fresh_variable();
                    let sample = AggregateExpression::FunctionCall {
                        name: AggregateFunction::Sample,
                        expr: Arc::new(v.clone().into()),
                        distinct: false,
                    };
                    samples.frame.list.push((to.clone(), sample));
                    samples.frame.depth = samples.frame.depth.max(2);
                    samples.taken.insert(id, to.clone());
                    *v = to;
                }
                // The pattern of an EXISTS has its own variables, and BOUND needs a variable rather than a sample.
                e => {
                    let (shared, list) = e.parts_mut();
                    left.extend(shared.filter_map(owned));
                    left.extend(list);
                }
            }
        }
    }

    pub(super) fn build(
        &mut self,
        selection: Selection,
        mut p: Pattern,
        mut modifiers: Modifiers,
    ) -> Parse<(Pattern, Vec<u32>)> {
        let mut frame = self.frames.pop().ok_or(RuleHalt::Fault)?;
        let grouped = modifiers.group.is_some();
        self.sample_ungrouped(&selection, &mut modifiers, &mut frame);
        if let Some(group) = modifiers.group.take() {
            for (e, v) in group.binds {
                p = self.extend(p, v, e)?;
            }
            let depth = p.depth.max(frame.depth) + 1;
            let it = GraphPattern::Group {
                inner: Arc::new(p.it),
                variables: group.variables,
                aggregates: frame.list,
            };
            p = self.deep(it, depth)?;
        }
        if let Some(having) = modifiers.having {
            p = self.filtered(p, having)?;
        }
        if let Some(values) = modifiers.values {
            p = join(p, values);
        }
        let chosen = match selection.items {
            Items::List(items) => {
                let chosen;
                (p, chosen) = self.select_items(items, grouped, p)?;
                chosen
            }
            Items::Star(star) => {
                if grouped {
                    self.star_of_groups(star);
                }
                self.scopes.all()
            }
            Items::Everything => self.scopes.all(),
        };
        let depth = p.depth;
        let mut it = p.it;
        let mut deepest = depth;
        if let Some((expression, depth)) = modifiers.order {
            deepest = deepest.max(depth);
            it = GraphPattern::OrderBy {
                inner: Arc::new(it),
                expression,
            };
        }
        let variables = chosen.iter().map(|v| self.variable_of(*v)).collect();
        it = GraphPattern::Project {
            inner: Arc::new(it),
            variables,
        };
        it = match selection.duplicates {
            Duplicates::Keep => it,
            Duplicates::Distinct => GraphPattern::Distinct {
                inner: Arc::new(it),
            },
            Duplicates::Reduced => GraphPattern::Reduced {
                inner: Arc::new(it),
            },
        };
        if modifiers.limit.is_some() || modifiers.offset.is_some() {
            it = GraphPattern::Slice {
                inner: Arc::new(it),
                start: modifiers.offset.unwrap_or(0),
                length: modifiers.limit,
            };
        }
        Ok((self.deep(it, deepest + 4)?, chosen))
    }

    /// In a grouped query, replaces the variables of HAVING and ORDER BY that are not grouped by Sample(?v).
    fn sample_ungrouped(
        &mut self,
        selection: &Selection,
        modifiers: &mut Modifiers,
        frame: &mut AggregateFrame,
    ) {
        let Some(group) = &modifiers.group else {
            return;
        };
        let mut samples = Samples {
            frame,
            grouped: group.ids.iter().copied().collect(),
            before: group.before.iter().copied().collect(),
            chosen: FxHashSet::default(),
            taken: FxHashMap::default(),
        };
        if let Some(having) = &mut modifiers.having {
            self.sample(&mut having.it, &mut samples);
        }
        if let Some((order, _)) = &mut modifiers.order {
            // ORDER BY, unlike HAVING, can use the names given by SELECT.
            if let Items::List(items) = &selection.items {
                let named = items.iter().filter(|i| i.expression.is_some());
                samples.chosen = named.map(|i| i.id).collect();
            }
            for key in order {
                let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = key;
                if let Some(e) = owned(e) {
                    self.sample(e, &mut samples);
                }
            }
        }
    }

    /// Binds the expressions of SELECT and returns the selected variables, which are a set (SPARQL 1.1 §18.2.4.4).
    fn select_items(
        &mut self,
        items: Vec<SelectItem>,
        grouped: bool,
        mut p: Pattern,
    ) -> Parse<(Pattern, Vec<u32>)> {
        let mut chosen = vec![];
        let few = items.len() <= 16;
        let mut seen = FxHashSet::default();
        for item in items {
            if grouped {
                self.check_grouped(&item);
            }
            let again = if few {
                chosen.contains(&item.id)
            } else {
                !seen.insert(item.id)
            };
            if let Some(e) = item.expression {
                if self.scopes.contains(item.id) {
                    self.redefined(item.at, "SELECT");
                } else if again {
                    self.selected_before(item.at);
                }
                self.scopes.see(item.id);
                self.scopes.define(item.id);
                let v = self.variable_of(item.id);
                p = self.extend(p, v, e)?;
            }
            if !again {
                chosen.push(item.id);
            }
        }
        Ok((p, chosen))
    }

    /// In a grouped query, checks that the variables of an item are grouped, aggregated or selected before it.
    fn check_grouped(&mut self, item: &SelectItem) {
        if item.expression.is_none() {
            if !self.scopes.contains(item.id) {
                self.not_grouped(item.at);
            }
            return;
        }
        let mut said = FxHashSet::default();
        for i in item.noted.clone() {
            let (v, at) = self.noted[i];
            if !self.scopes.contains(v) && said.insert(v) {
                self.not_grouped(at);
            }
        }
    }
}
