//! Questions to the indexes of a graph: whether an index can answer a filter, how many rows pass, and which ids an
//! exploration can start from.

use crate::condition::CompiledCondition;
use crate::expression::{Expr, varies};
use crate::{Condition, GeneralExpression, Slot};
use jindou_dictionary::index::{Call, MAX_PARTS, Question, QuestionPart, Verdict};
use jindou_graph::Graph;
use jindou_syntax::algebra::{Expression, Function, Variable};
use std::sync::Arc;

/// Largest number of ids from an index that an exploration starts from, so that plans stay small. If more ids pass, the
/// index is still used to test the condition.
const MOST_IDS: usize = 1 << 16;
/// An index's answer is used as a start only if it has at most one in this many of the graph's ids; a larger one is not
/// selective enough.
const SHARE: u32 = 4;
/// Deepest nesting of calls in a question.
const MAX_DEPTH: usize = 8;
/// Largest constant in bytes that is passed to an index, since questions own their constants.
const MAX_CONSTANT: usize = 4 << 10;

/// Smallest estimate for the share of rows that pass a condition: even if few terms pass, most rows may hold these
/// terms.
const LEAST: f64 = 1e-3;

/// A filter as a question that an index of the graph was able to answer when the plan was made.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexQuestion {
    /// The question.
    pub call: Call,
    /// Estimated share of the rows for which the condition holds.
    pub share: f64,
    /// Estimated share of the rows that the index cannot decide, so that the expression is evaluated.
    pub unsettled: f64,
}

impl Condition {
    /// The condition as a question to indexes, if it has that form, and the slot that it is about.
    #[must_use]
    pub fn question(&self) -> Option<(Slot, Question<'_>)> {
        match self {
            Self::Compare(slot, relation, constant) => {
                Some((*slot, Question::Compare(*relation, constant)))
            }
            Self::General(g) => {
                let (_, slot) = g.variables.first()?;
                Some((*slot, Question::Holds(&g.asked.as_ref()?.call)))
            }
            _ => None,
        }
    }
}

impl GeneralExpression {
    /// Share of the rows for which the expression is evaluated; the index decides the others.
    pub(crate) fn costly_share(&self) -> f64 {
        self.asked.as_ref().map_or(1.0, |a| a.unsettled)
    }
}

/// Records in a filter that an index can answer it, if one can. `certain`: whether a slot is bound in every row.
pub(crate) fn mark(g: &mut GeneralExpression, graph: &dyn Graph, certain: impl Fn(Slot) -> bool) {
    let vocabulary = graph.vocabulary();
    let [(variable, slot)] = &g.variables[..] else {
        return;
    };
    if g.per_row || !certain(*slot) {
        return;
    }
    let mut parts = 0;
    if let Some(QuestionPart::Call(call)) = part(&g.expression, variable, &mut parts, 0)
        && let Some(probe) = vocabulary.probe(&Question::Holds(&call))
    {
        // The index's estimate for all terms is used: for expressions, nothing better is known.
        let estimate = probe.estimate();
        let share = estimate.passing as f64 / (estimate.of as f64).max(1.0);
        let share = share.clamp(LEAST, 1.0);
        g.asked = Some(Box::new(IndexQuestion {
            call,
            share,
            unsettled: if estimate.exact { 0.0 } else { share },
        }));
    }
}

/// The share of some terms for which a comparison holds, according to an index; `None` if no index can answer. `ids`
/// are a sample of these terms.
pub(crate) fn share(question: &Question<'_>, ids: &[u32], graph: &dyn Graph) -> Option<f64> {
    let mut probe = graph.vocabulary().probe(question)?;
    let mut verdicts = vec![Verdict::Unsettled; ids.len()];
    probe.test_many(ids, &mut verdicts);
    let settled = verdicts.iter().filter(|v| **v != Verdict::Unsettled);
    let settled = settled.count() as f64;
    if settled == 0.0 {
        return None;
    }
    let passing = verdicts.iter().filter(|v| **v == Verdict::True).count() as f64;
    if passing > 0.0 {
        return Some(passing / settled);
    }
    // That no sampled term passes does not mean that none does; the share among all terms is then more informative.
    let estimate = probe.estimate();
    let rare = estimate.passing as f64 / (estimate.of as f64).max(1.0);
    Some(rare.clamp(LEAST, 0.5 / settled))
}

/// The expression as a call over one variable; `None` if it has another form or is too large.
fn part(
    e: &Expression,
    variable: &Variable,
    parts: &mut usize,
    depth: usize,
) -> Option<QuestionPart> {
    *parts += 1;
    if *parts > MAX_PARTS || depth > MAX_DEPTH {
        return None;
    }
    let constant = |bytes: &[u8]| (bytes.len() <= MAX_CONSTANT).then(|| bytes.to_vec());
    let mut call = |name: String, arguments: &mut dyn Iterator<Item = &Expression>| {
        let arguments = arguments.map(|a| part(a, variable, parts, depth + 1));
        let arguments = arguments.collect::<Option<Vec<_>>>()?;
        Some(QuestionPart::Call(Call { name, arguments }))
    };
    let pair = |a, b| <[&Expression; 2]>::from((a, b)).into_iter();
    match e {
        Expression::Variable(v) => (v == variable).then_some(QuestionPart::Variable),
        Expression::NamedNode(n) => Some(QuestionPart::Constant(constant(&n.canonical())?)),
        Expression::Literal(l) => Some(QuestionPart::Constant(constant(l.canonical())?)),
        Expression::FunctionCall(Function::Custom(iri), list) => {
            call(iri.as_str().to_owned(), &mut list.iter())
        }
        Expression::FunctionCall(f, list) if !varies(f) => call(f.to_string(), &mut list.iter()),
        Expression::Equal(a, b) => call("=".into(), &mut pair(&**a, &**b)),
        Expression::Less(a, b) => call("<".into(), &mut pair(&**a, &**b)),
        Expression::LessOrEqual(a, b) => call("<=".into(), &mut pair(&**a, &**b)),
        Expression::Greater(a, b) => call(">".into(), &mut pair(&**a, &**b)),
        Expression::GreaterOrEqual(a, b) => call(">=".into(), &mut pair(&**a, &**b)),
        _ => None,
    }
}

/// The filter's slot, the ids of the graph's own terms that pass the filter, and the index's description of itself.
/// `None` unless an index lists the ids and they are few. Terms that updates added are not listed.
pub(crate) fn few(c: &Condition, graph: &dyn Graph) -> Option<(Slot, Vec<u32>, String)> {
    let vocabulary = graph.vocabulary();
    if !vocabulary.has_indexes() {
        return None;
    }
    let (slot, question) = c.question()?;
    let mut probe = vocabulary.probe(&question)?;
    let known = graph.dense_ids();
    let limit = MOST_IDS.min((known / SHARE) as usize);
    let mut ids = probe.ids(limit)?;
    // A damaged file may list anything.
    ids.retain(|&id| id > 0 && id <= known);
    (ids.len() <= limit).then(|| (slot, ids, probe.explain()))
}

/// The filter as a test, together with the ids that pass it if they are few.
pub(crate) fn narrowed(mut c: Condition, graph: &dyn Graph) -> CompiledCondition {
    let Some((slot, ids, why)) = few(&c, graph) else {
        return CompiledCondition::Test(c);
    };
    if let Condition::General(g) = &mut c
        && let Some(asked) = &mut g.asked
    {
        // Only listed ids reach the test, and nearly all of them pass.
        asked.share = 1.0;
    }
    CompiledCondition::Narrowed(slot, ids, why, c)
}

/// Compiles the part `e` of the filter `scope` to a general expression, marked if an index can answer it ([`mark`]).
pub(crate) fn general(
    e: &Arc<Expression>,
    scope: &Expr,
    graph: &dyn Graph,
    certain: impl Fn(Slot) -> bool,
) -> Condition {
    let mut g = scope.part(e);
    mark(&mut g, graph, certain);
    Condition::General(Box::new(g))
}
