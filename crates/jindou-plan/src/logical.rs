//! SPARQL algebra → one group of patterns with filters and modifiers over slots, or the reason why not.

use crate::{Count, Slot};
use jindou_model::term;
use oxrdf::vocab::xsd;
use rustc_hash::{FxHashMap, FxHashSet};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression, QueryDataset,
};
use spargebra::term::{NamedNodePattern, TermPattern, Variable};

/// Why a query is not native; shown by EXPLAIN.
pub(crate) type Reason = String;

/// One position of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    Slot(Slot),
    /// Canonical bytes.
    Term(Vec<u8>),
}

/// The graph position of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Default,
    /// Canonical bytes.
    Named(Vec<u8>),
    Slot(Slot),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    pub subject: End,
    pub predicate: End,
    pub object: End,
    pub place: Place,
}

/// One conjunct of a FILTER.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub expression: Expression,
    /// The variables of the group that the FILTER stands in; others are unbound in it.
    pub scope: FxHashMap<Variable, Slot>,
}

/// Everything but the order of evaluation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logical {
    pub ask: bool,
    pub dataset: Option<QueryDataset>,
    /// Name of each slot; hidden ones contain a space.
    pub slots: Vec<String>,
    pub patterns: Vec<Pattern>,
    /// `GRAPH ?g {}`.
    pub any_graph: Vec<Slot>,
    pub filters: Vec<Filter>,
    pub group: Option<(Vec<Slot>, Vec<Count>)>,
    pub distinct: bool,
    pub order: Vec<(Slot, bool)>,
    pub slice: Option<(u64, Option<u64>)>,
    pub output: Vec<Slot>,
}

/// Deepest algebra that is walked; the parser's bounds keep real queries below it.
const MAX_DEPTH: usize = 4 * crate::parse::MAX_NESTING + crate::parse::MAX_CHAINED;
/// Most slots of a native query.
const MAX_SLOTS: usize = 120;

pub(crate) fn of(query: &Query) -> Result<Logical, Reason> {
    let (ask, dataset, pattern) = match query {
        Query::Select {
            dataset, pattern, ..
        } => (false, dataset, pattern),
        Query::Ask {
            dataset, pattern, ..
        } => (true, dataset, pattern),
        Query::Construct { .. } => return Err("CONSTRUCT".into()),
        Query::Describe { .. } => return Err("DESCRIBE".into()),
    };
    let mut t = Translator {
        out: Logical {
            ask,
            dataset: dataset.clone(),
            ..Logical::default()
        },
        ..Translator::default()
    };
    t.modifiers(pattern)?;
    if t.out.slots.len() > MAX_SLOTS {
        return Err(format!("more than {MAX_SLOTS} variables"));
    }
    Ok(t.out)
}

#[derive(Default)]
struct Translator {
    out: Logical,
    variables: FxHashMap<Variable, Slot>,
    blanks: FxHashMap<String, Slot>,
}

/// Variables bound by a group.
type Bound = FxHashMap<Variable, Slot>;

impl Translator {
    fn modifiers(&mut self, mut at: &GraphPattern) -> Result<(), Reason> {
        if let GraphPattern::Slice {
            inner,
            start,
            length,
        } = at
        {
            self.out.slice = Some((*start as u64, length.map(|l| l as u64)));
            at = inner;
        }
        match at {
            GraphPattern::Distinct { inner } => {
                self.out.distinct = true;
                at = inner;
            }
            // Any number of duplicates may stay.
            GraphPattern::Reduced { inner } => at = inner,
            _ => {}
        }
        let mut projected = None;
        if let GraphPattern::Project { inner, variables } = at {
            projected = Some(variables);
            at = inner;
        }
        let mut order = &[][..];
        if let GraphPattern::OrderBy { inner, expression } = at {
            order = expression;
            at = inner;
        }
        // `(?x AS ?y)`, `(COUNT(?x) AS ?n)`: other names of a slot. The innermost comes first in the query.
        let mut aliases = vec![];
        while let GraphPattern::Extend {
            inner,
            variable,
            expression,
        } = at
        {
            let Expression::Variable(of) = expression else {
                return Err("an expression in SELECT or BIND".into());
            };
            aliases.push((variable, of));
            at = inner;
        }
        let mut bound;
        if let GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } = at
        {
            let inside = self.group(inner, &Place::Default, 0)?;
            bound = Bound::default();
            let mut by = vec![];
            for v in variables {
                let Some(&slot) = inside.get(v) else {
                    return Err("GROUP BY a variable that is never bound".into());
                };
                by.push(slot);
                bound.insert(v.clone(), slot);
            }
            let mut row: Vec<Slot> = inside.values().copied().collect();
            row.sort_unstable();
            let mut counts = vec![];
            for (name, aggregate) in aggregates {
                let (of, distinct) = match aggregate {
                    AggregateExpression::CountSolutions { distinct } => (None, *distinct),
                    AggregateExpression::FunctionCall {
                        name: AggregateFunction::Count,
                        expr: Expression::Variable(v),
                        distinct,
                    } => match inside.get(v) {
                        Some(&slot) => (Some(slot), *distinct),
                        None => return Err("COUNT of a variable that is never bound".into()),
                    },
                    AggregateExpression::FunctionCall { .. } => {
                        return Err("an aggregate other than COUNT".into());
                    }
                };
                let to = self.new_slot(format!("count {}", counts.len()));
                bound.insert(name.clone(), to);
                let row = if of.is_none() && distinct {
                    row.clone()
                } else {
                    vec![]
                };
                counts.push(Count {
                    to,
                    of,
                    distinct,
                    row,
                });
            }
            self.out.group = Some((by, counts));
        } else {
            bound = self.group(at, &Place::Default, 0)?;
        }
        for (name, of) in aliases.into_iter().rev() {
            // An unbound source leaves the alias unbound.
            if let Some(&slot) = bound.get(of) {
                bound.insert(name.clone(), slot);
                if let Some(n) = self.out.slots.get_mut(slot as usize)
                    && n.starts_with("count ")
                {
                    *n = name.as_str().to_owned();
                }
            }
        }
        if self.out.ask {
            return Ok(());
        }
        let Some(projected) = projected else {
            return Err("no projection".into());
        };
        for v in projected {
            let slot = match bound.get(v) {
                Some(&slot) => slot,
                None => self.new_slot(v.as_str().to_owned()),
            };
            self.out.output.push(slot);
        }
        for e in order {
            let (Expression::Variable(v), descending) = (match e {
                OrderExpression::Asc(e) => (e, false),
                OrderExpression::Desc(e) => (e, true),
            }) else {
                return Err("ORDER BY an expression".into());
            };
            // A variable that is never bound orders nothing; one that ordered before adds nothing.
            if let Some(&slot) = bound.get(v)
                && !self.out.order.iter().any(|o| o.0 == slot)
            {
                self.out.order.push((slot, descending));
            }
        }
        if self.out.distinct
            && self
                .out
                .order
                .iter()
                .any(|o| !self.out.output.contains(&o.0))
        {
            return Err("DISTINCT ordered by a variable that is not selected".into());
        }
        Ok(())
    }

    fn new_slot(&mut self, name: String) -> Slot {
        self.out.slots.push(name);
        (self.out.slots.len() - 1) as Slot
    }

    /// Adds a group's patterns and filters; returns the variables it binds.
    fn group(
        &mut self,
        pattern: &GraphPattern,
        place: &Place,
        depth: usize,
    ) -> Result<Bound, Reason> {
        if depth > MAX_DEPTH || self.out.slots.len() > MAX_SLOTS {
            return Err("the query is too large".into());
        }
        let mut bound = Bound::default();
        match pattern {
            GraphPattern::Bgp { patterns } => {
                for p in patterns {
                    let subject = self.end(&p.subject, &mut bound)?;
                    let predicate = match &p.predicate {
                        NamedNodePattern::NamedNode(n) => iri(n.as_str()),
                        NamedNodePattern::Variable(v) => End::Slot(self.variable(v, &mut bound)),
                    };
                    let object = self.end(&p.object, &mut bound)?;
                    self.push(subject, predicate, object, place);
                }
                // `GRAPH ?g` binds even around nothing.
                if let (Place::Slot(g), true) = (place, patterns.is_empty()) {
                    self.out.any_graph.push(*g);
                }
                if let (Place::Named(_), true) = (place, patterns.is_empty()) {
                    return Err("GRAPH around nothing".into());
                }
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                let subject = self.end(subject, &mut bound)?;
                let object = self.end(object, &mut bound)?;
                self.path(subject, path, object, place)?;
            }
            GraphPattern::Join { left, right } => {
                bound = self.group(left, place, depth + 1)?;
                bound.extend(self.group(right, place, depth + 1)?);
            }
            GraphPattern::Filter { expr, inner } => {
                bound = self.group(inner, place, depth + 1)?;
                let mut conjuncts = vec![];
                split(expr, &mut conjuncts);
                for e in conjuncts {
                    let mut used = FxHashSet::default();
                    supported(e, &mut used)?;
                    if let Place::Slot(g) = place
                        && used
                            .iter()
                            .any(|v| self.variables.get(*v) == Some(g) && !bound.contains_key(*v))
                    {
                        return Err("a FILTER on the graph variable inside its own GRAPH".into());
                    }
                    self.out.filters.push(Filter {
                        expression: e.clone(),
                        scope: bound.clone(),
                    });
                }
            }
            GraphPattern::Graph { .. } if *place != Place::Default => {
                return Err("GRAPH inside GRAPH".into());
            }
            GraphPattern::Graph { name, inner } => match name {
                NamedNodePattern::NamedNode(n) => {
                    let mut bytes = vec![];
                    term::push_iri(n.as_str(), &mut bytes);
                    bound = self.group(inner, &Place::Named(bytes), depth + 1)?;
                }
                NamedNodePattern::Variable(v) => {
                    let slot = self.variable(v, &mut Bound::default());
                    bound = self.group(inner, &Place::Slot(slot), depth + 1)?;
                    bound.insert(v.clone(), slot);
                }
            },
            GraphPattern::LeftJoin { .. } => return Err("OPTIONAL".into()),
            GraphPattern::Lateral { .. } => return Err("LATERAL".into()),
            GraphPattern::Union { .. } => return Err("UNION".into()),
            GraphPattern::Extend { .. } => return Err("BIND".into()),
            GraphPattern::Minus { .. } => return Err("MINUS".into()),
            GraphPattern::Values { .. } => return Err("VALUES".into()),
            GraphPattern::Service { .. } => return Err("SERVICE".into()),
            GraphPattern::OrderBy { .. }
            | GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::Group { .. } => return Err("a sub-query or HAVING".into()),
        }
        Ok(bound)
    }

    fn push(&mut self, subject: End, predicate: End, object: End, place: &Place) {
        let pattern = Pattern {
            subject,
            predicate,
            object,
            place: place.clone(),
        };
        // The same pattern twice constrains nothing more: a group is a conjunction and each match is unique.
        if !self.out.patterns.contains(&pattern) {
            self.out.patterns.push(pattern);
        }
    }

    fn path(
        &mut self,
        s: End,
        path: &PropertyPathExpression,
        o: End,
        place: &Place,
    ) -> Result<(), Reason> {
        match path {
            PropertyPathExpression::NamedNode(n) => self.push(s, iri(n.as_str()), o, place),
            PropertyPathExpression::Reverse(inner) => self.path(o, inner, s, place)?,
            PropertyPathExpression::Sequence(a, b) => {
                let name = format!("path {}", self.out.slots.len());
                let middle = End::Slot(self.new_slot(name));
                self.path(s, a, middle.clone(), place)?;
                self.path(middle, b, o, place)?;
            }
            _ => return Err("a property path".into()),
        }
        Ok(())
    }

    fn variable(&mut self, v: &Variable, bound: &mut Bound) -> Slot {
        let slot = match self.variables.get(v) {
            Some(&slot) => slot,
            None => {
                let slot = self.new_slot(v.as_str().to_owned());
                self.variables.insert(v.clone(), slot);
                slot
            }
        };
        bound.insert(v.clone(), slot);
        slot
    }

    fn end(&mut self, end: &TermPattern, bound: &mut Bound) -> Result<End, Reason> {
        Ok(match end {
            TermPattern::NamedNode(n) => iri(n.as_str()),
            TermPattern::Literal(l) => {
                let mut bytes = vec![];
                term::push_literal(l, &mut bytes);
                End::Term(bytes)
            }
            TermPattern::Variable(v) => End::Slot(self.variable(v, bound)),
            TermPattern::BlankNode(b) => match self.blanks.get(b.as_str()) {
                Some(&slot) => End::Slot(slot),
                None => {
                    let slot = self.new_slot(format!("blank {}", self.blanks.len()));
                    self.blanks.insert(b.as_str().to_owned(), slot);
                    End::Slot(slot)
                }
            },
            TermPattern::Triple(_) => return Err("a triple term in a pattern".into()),
        })
    }
}

fn iri(text: &str) -> End {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    term::push_iri(text, &mut bytes);
    End::Term(bytes)
}

/// The conjuncts of a filter: a row stays if all are true, whatever is false or an error.
fn split<'a>(mut e: &'a Expression, out: &mut Vec<&'a Expression>) {
    let mut rest = vec![];
    loop {
        if let Expression::And(a, b) = e {
            rest.push(&**b);
            e = a;
        } else {
            out.push(e);
            match rest.pop() {
                Some(next) => e = next,
                None => return,
            }
        }
    }
}

/// Refuses expressions whose value is not a function of the row: memoising by ids would be wrong.
fn supported<'a>(e: &'a Expression, used: &mut FxHashSet<&'a Variable>) -> Result<(), Reason> {
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match e {
            Expression::NamedNode(_) | Expression::Literal(_) => {}
            Expression::Variable(v) | Expression::Bound(v) => {
                used.insert(v);
            }
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => stack.extend([&**a, &**b]),
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
                stack.push(a)
            }
            Expression::In(a, list) => {
                stack.push(a);
                stack.extend(list);
            }
            Expression::If(a, b, c) => stack.extend([&**a, &**b, &**c]),
            Expression::Coalesce(list) => stack.extend(list),
            Expression::Exists(_) => return Err("EXISTS".into()),
            Expression::FunctionCall(f, list) => {
                match f {
                    Function::Rand
                    | Function::Uuid
                    | Function::StrUuid
                    | Function::BNode
                    | Function::Now => {
                        return Err(format!("the function {f}"));
                    }
                    Function::Iri => return Err("the function IRI".into()),
                    Function::Custom(name) if !name.as_str().starts_with(XSD) => {
                        return Err(format!("the function {name}"));
                    }
                    _ => {}
                }
                stack.extend(list);
            }
        }
    }
    Ok(())
}

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const _: () = assert!(xsd::STRING.as_str().len() > XSD.len());

#[cfg(test)]
mod tests {
    use super::*;

    fn logical(text: &str) -> Result<Logical, Reason> {
        of(&crate::parse::parse(text).unwrap())
    }

    #[test]
    fn what_is_native_and_what_is_not() {
        for text in [
            "SELECT * { ?s ?p ?o }",
            "SELECT DISTINCT ?s { ?s <http://e/p> ?o . ?o ^<http://e/q>/<http://e/r> ?z FILTER(?z > 3) }",
            "SELECT REDUCED ?s { { ?s ?p 1 } { ?s ?p ?z } } ORDER BY DESC(?s) LIMIT 3 OFFSET 2",
            "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) ?g { GRAPH ?g { ?s ?p [] } } GROUP BY ?g ORDER BY ?n",
            "SELECT ?a (?a AS ?b) { GRAPH <http://e/g> { ?a ?p ?o } }",
            "ASK FROM <http://e/g> { ?a ?p ?o }",
            "ASK {}",
            "SELECT ?never { ?a ?p ?o } ORDER BY ?nothing",
        ] {
            logical(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
        for text in [
            "SELECT * { ?s ?p ?o OPTIONAL { ?s ?q ?z } }",
            "SELECT * { { ?s ?p ?o } UNION { ?o ?p ?s } }",
            "SELECT * { ?s <http://e/p>* ?o }",
            "SELECT * { ?s ?p ?o FILTER EXISTS { ?o ?p ?s } }",
            "SELECT * { ?s ?p ?o FILTER(RAND() < 0.5) }",
            "SELECT (SUM(?o) AS ?n) { ?s ?p ?o }",
            "SELECT * { ?s ?p ?o VALUES ?s { 1 } }",
            "SELECT * { { SELECT ?s { ?s ?p ?o } LIMIT 2 } }",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 2)",
            "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?o",
            "CONSTRUCT WHERE { ?s ?p ?o }",
            "SELECT * { GRAPH ?g { ?s ?p ?o FILTER(?g = ?s) } }",
        ] {
            assert!(logical(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_filter_sees_only_its_group() {
        let l = logical("SELECT * { ?a ?p ?o . { ?b ?q ?r FILTER(?a = ?b) } }").unwrap();
        let names: Vec<_> = l.filters[0].scope.keys().map(Variable::as_str).collect();
        assert!(names.contains(&"b") && !names.contains(&"a"));
    }
}
