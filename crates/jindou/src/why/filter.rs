//! Reasons why a FILTER removes all solutions.

use super::pattern::TermRole;
use super::probe::{ProbedGraphs, within};
use super::walk::{Inside, PatternWalk};
use super::words::{constant, list, pattern_of, shortened};
use super::{ReasonKind as K, Suggestion};
use jindou_plan::expression_parts;
use jindou_plan::sparql::{Expression, Function, GraphPattern, Literal, TermPattern, Variable};
use oxrdf::Term;
use std::ops::Range;
use std::sync::Arc;

/// Largest number of conditions that are tried one by one.
const CONDITIONS: usize = 16;
/// Largest number of a variable's values that a message shows.
const SHOWN: usize = 3;

/// The conditions that `&&` combines in an expression. The last one is a conjunction if there are more than
/// [`CONDITIONS`].
fn conditions(e: &Arc<Expression>) -> Vec<Arc<Expression>> {
    let mut open = vec![e];
    let mut out = Vec::new();
    while let Some(e) = open.pop() {
        match &**e {
            Expression::And(a, b) if out.len() + open.len() < CONDITIONS => open.extend([b, a]),
            _ => out.push(Arc::clone(e)),
        }
    }
    out
}

fn filtered(inner: &Arc<GraphPattern>, expr: Arc<Expression>) -> Arc<GraphPattern> {
    Arc::new(GraphPattern::Filter {
        expr,
        inner: Arc::clone(inner),
    })
}

/// The variables in the first parts of an expression.
fn variables(e: &Expression) -> Vec<Variable> {
    let mut out: Vec<Variable> = Vec::new();
    for part in expression_parts(e).into_iter().take(200) {
        if let Expression::Variable(v) | Expression::Bound(v) = part
            && !out.contains(v)
        {
            out.push(v.clone());
        }
    }
    out
}

fn has_exists(e: &Expression) -> bool {
    let parts = expression_parts(e).into_iter().take(200);
    { parts }.any(|p| matches!(p, Expression::Exists(_)))
}

impl PatternWalk<'_, '_> {
    /// Reports the conditions of a FILTER that no solution of `inner` satisfies; `inner` has solutions.
    pub(super) fn filter(
        &mut self,
        expr: &Arc<Expression>,
        inner: &Arc<GraphPattern>,
        graph: Inside<'_>,
        depth: usize,
    ) {
        let all = conditions(expr);
        let (mut told, mut each_keeps_some) = (false, true);
        for e in &all {
            let with = within(filtered(inner, Arc::clone(e)), graph);
            let keeps_some = match all.len() {
                1 => Some(false),
                _ => self.probe.has(&with, ProbedGraphs::Own),
            };
            if keeps_some == Some(false) {
                self.condition(e, inner, graph, depth);
                told = true;
            }
            each_keeps_some &= keeps_some == Some(true);
        }
        if !told {
            let message = match each_keeps_some {
                true => {
                    "each condition of FILTER keeps solutions, but no solution satisfies all of them"
                }
                false => "no solution satisfies all conditions of FILTER",
            };
            let range = self.filter_place(expr).map(|p| p.1);
            self.report(K::Filter, message, range.as_ref());
        }
    }

    /// The range in the text of the FILTER that contains this condition, and true if the condition is the whole FILTER.
    /// `None` if no FILTER contains it.
    fn filter_place(&self, e: &Expression) -> Option<(bool, Range<usize>)> {
        let is_part = |whole: &Expression| {
            let mut open = vec![whole];
            while let Some(part) = open.pop() {
                if part == e {
                    return true;
                }
                if let Expression::And(a, b) = part {
                    open.extend([&**a, &**b]);
                }
            }
            false
        };
        let filters = &self.text.recorded.filters;
        let exact = filters.iter().find(|f| f.0 == *e);
        if let Some((_, range)) = exact {
            return Some((true, range.clone()));
        }
        let within = filters.iter().take(100).find(|f| is_part(&f.0))?;
        Some((false, within.1.clone()))
    }

    fn condition(
        &mut self,
        e: &Arc<Expression>,
        inner: &Arc<GraphPattern>,
        graph: Inside<'_>,
        depth: usize,
    ) {
        let place = self.filter_place(e);
        let range = place.as_ref().map(|p| &p.1);
        let told = match &place {
            Some((true, range)) => self.text.piece(range),
            Some((false, range)) => format!("a condition of {}", self.text.piece(range)),
            None => "HAVING".to_owned(),
        };
        // For EXISTS, the best explanation is the reason why its pattern has no match.
        let exists = match &**e {
            Expression::Exists(p) => Some((p, false)),
            Expression::Not(n) => match &**n {
                Expression::Exists(p) => Some((p, true)),
                _ => None,
            },
            _ => None,
        };
        if let Some((pattern, is_not)) = exists {
            let message = if is_not {
                format!("{told} removes every solution: all of them have a match of this pattern")
            } else {
                format!("{told} removes every solution: none of them has a match of this pattern")
            };
            self.report(K::Filter, message, range);
            if !is_not {
                self.explain(pattern, graph, depth + 1);
            }
            return;
        }
        let mut variables = variables(e);
        let of_nothing = variables.is_empty() && !has_exists(e);
        // HAVING conditions may use internal variables, which are not in the text.
        variables.retain(|v| {
            let name = v.as_str();
            let marks = ['?', '$'];
            let text = self.text.text;
            marks.iter().any(|m| text.contains(&format!("{m}{name}")))
        });
        if of_nothing {
            let message =
                format!("{told} keeps no solution: it is false or an error whatever the data");
            self.report(K::NeverTrue, message, range);
            return;
        }
        let negated = Arc::new(Expression::Not(Arc::clone(e)));
        let never = within(filtered(inner, negated), graph);
        let is_error = self.probe.has(&never, ProbedGraphs::Own) == Some(false);
        let mut examples = Vec::new();
        for v in variables.iter().take(2) {
            let pattern = within(Arc::clone(inner), graph);
            let Some(values) = self.probe.values(&pattern, v, SHOWN, ProbedGraphs::Own) else {
                continue;
            };
            let values: Vec<String> = values
                .iter()
                .map(|t| shortened(&self.text.term(t)))
                .collect();
            examples.push(match values.is_empty() {
                true => format!("{v} has no value"),
                false => format!("{v} is {}", values.join(", ")),
            });
        }
        let examples = match examples.is_empty() {
            true => String::new(),
            false => format!("; {}, for example", list(&examples)),
        };
        let (kind, message) = if is_error {
            let why = "it is an error for each of them, which counts as false";
            (
                K::NeverTrue,
                format!("{told} keeps no solution: {why}{examples}"),
            )
        } else {
            (K::Filter, format!("{told} keeps no solution{examples}"))
        };
        let mut reason = self.text.reason(kind, message, range);
        reason.suggestions = self.equal_values(e, inner, graph, range);
        let found = !reason.suggestions.is_empty();
        self.push(reason);
        if !found {
            self.unknown_iris(e, range);
        }
    }

    /// For a condition such as `?v = "text"`, suggests values of the variable with the same text, but another language,
    /// datatype or case.
    fn equal_values(
        &self,
        e: &Expression,
        inner: &Arc<GraphPattern>,
        graph: Inside<'_>,
        range: Option<&Range<usize>>,
    ) -> Vec<Suggestion> {
        let (a, b) = match e {
            Expression::Equal(a, b) | Expression::SameTerm(a, b) => (&**a, &**b),
            Expression::In(a, list) => match list.as_slice() {
                [only] => (&**a, only),
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let (v, l) = match (a, b) {
            (Expression::Variable(v), Expression::Literal(l))
            | (Expression::Literal(l), Expression::Variable(v)) => (v, l),
            _ => return Vec::new(),
        };
        let call = |f: Function, e: Expression| Expression::FunctionCall(f, vec![e]);
        let text = call(Function::LCase, call(Function::Str, v.clone().into()));
        let wanted = Literal::new_simple_literal(l.value().trim().to_lowercase());
        let same = Expression::Equal(Arc::new(text), Arc::new(Expression::Literal(wanted)));
        let pattern = within(filtered(inner, Arc::new(same)), graph);
        let part = TermPattern::from(l.clone());
        let at = self.text.recorded.term(&part, range);
        let values = self.probe.values(&pattern, v, 2, ProbedGraphs::Own);
        let values = values
            .unwrap_or_default()
            .into_iter()
            .filter(|t| pattern_of(t).is_some());
        values
            .map(|t| {
                let text = self.text.term(&t);
                let suggestion = Suggestion::new(format!("write {}", shortened(&text)));
                match &at {
                    Some(at) if text.len() <= 300 => suggestion.replacing(at.clone(), text),
                    _ => suggestion,
                }
            })
            .collect()
    }

    /// Reports the IRIs of a condition that do not occur in the store.
    fn unknown_iris(&mut self, e: &Expression, range: Option<&Range<usize>>) {
        let mut found = Vec::new();
        for part in expression_parts(e).into_iter().take(200) {
            if let Expression::NamedNode(n) = part
                && !found.contains(n)
                && found.len() < 3
            {
                found.push(n.clone());
            }
        }
        for n in found {
            let part = TermPattern::from(n);
            if let Some(t @ Term::NamedNode(_)) = constant(&part)
                && !self.probe.knows(&t)
                && !is_of_language(&t)
            {
                self.unknown(&t, &part, TermRole::Anywhere, None, range);
            }
        }
    }
}

/// True for IRIs of datatypes and functions, which a query may use although they do not occur in the store.
fn is_of_language(t: &Term) -> bool {
    matches!(t, Term::NamedNode(n) if n.as_str().starts_with("http://www.w3.org/2001/XMLSchema#")
        || n.as_str().starts_with("http://www.w3.org/2005/xpath-functions"))
}
