//! Values of expressions, and conditions.

use super::{Data, Row};
use jindou_model::term;
use jindou_plan::sparql::{self, Expression, Query, Variable};
use jindou_plan::{Condition, GeneralExpression, Match, MatchBy, Relation, TermTest};
use oxrdf::Term;
use spargebra::algebra::GraphPattern as Pattern;
use sparopt::algebra::GraphPattern;
use std::sync::Arc;

impl Data<'_> {
    pub(super) fn value(&self, row: &Row, g: &GeneralExpression) -> Option<Vec<u8>> {
        let mut pattern = Pattern::Extend {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            variable: spargebra::term::Variable::new_unchecked("value"),
            expression: (&*g.expression).into(),
        };
        jindou_testing::pattern_as_specified(&mut pattern);
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            panic!("an expression did not translate");
        };
        let known = self.known(row, g);
        let known = known.iter().map(|(v, t)| (v, t.clone()));
        let value = self.evaluator.evaluate_expression(&expression, known)?;
        Some(term::encode(&value))
    }

    fn known(&self, row: &Row, g: &GeneralExpression) -> Vec<(oxrdf::Variable, Term)> {
        let known = g.variables.iter();
        known
            .filter_map(|(v, s)| Some((v.into(), self.term(*row.get(s)?))))
            .collect()
    }

    pub(super) fn truth(&self, row: &Row, g: &GeneralExpression) -> Option<bool> {
        let mut filter = Pattern::Filter {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            expr: (&*g.expression).into(),
        };
        jindou_testing::pattern_as_specified(&mut filter);
        let Pattern::Filter {
            expr: expression,
            inner,
        } = filter
        else {
            panic!("a filter stays one");
        };
        let pattern = Pattern::Extend {
            inner,
            variable: spargebra::term::Variable::new_unchecked("value"),
            expression,
        };
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            panic!("an expression did not translate");
        };
        let known = self.known(row, g);
        let known = known.iter().map(|(v, t)| (v, t.clone()));
        self.evaluator
            .evaluate_effective_boolean_value_expression(&expression, known)
    }

    /// True if both are bound and the comparison is true.
    pub(super) fn is_match(&self, left: &Row, right: &Row, m: &Match) -> bool {
        let (Some(a), Some(b)) = (left.get(&m.left), right.get(&m.right)) else {
            return false;
        };
        let [x, y] = ["x", "y"].map(Variable::new_unchecked);
        let (a, b) = ((0, *a), (1, *b));
        let [l, r] = [&x, &y].map(|v| Arc::new(Expression::Variable(v.clone())));
        let expression = match m.by {
            MatchBy::Term => Expression::SameTerm(l, r),
            MatchBy::Value => Expression::Equal(l, r),
            MatchBy::Order(Relation::Less) => Expression::Less(l, r),
            MatchBy::Order(Relation::LessOrEqual) => Expression::LessOrEqual(l, r),
            MatchBy::Order(Relation::Greater) => Expression::Greater(l, r),
            MatchBy::Order(_) => Expression::GreaterOrEqual(l, r),
        };
        let g = GeneralExpression {
            expression: Arc::new(expression),
            variables: [(x, a.0), (y, b.0)].into(),
            per_row: false,
            asked: None,
            base_iri: None,
            functions: jindou_plan::Functions::new(),
        };
        self.truth(&Row::from([a, b]), &g) == Some(true)
    }

    /// The cheap conditions are only for slots that are bound.
    pub(super) fn test(&self, row: &Row, c: &Condition) -> Option<bool> {
        match c {
            Condition::Same(a, b) => Some(self.operand(row, *a) == self.operand(row, *b)),
            Condition::Compare(s, relation, constant) => {
                let sign = match relation {
                    Relation::Equal => "=",
                    Relation::NotEqual => "!=",
                    Relation::Less => "<",
                    Relation::LessOrEqual => "<=",
                    Relation::Greater => ">",
                    Relation::GreaterOrEqual => ">=",
                };
                let text = format!(
                    "SELECT * {{ BIND(?x {sign} {} AS ?y) }}",
                    term::decode(constant).expect("a constant")
                );
                let expression = expression_of(&text);
                let g = GeneralExpression {
                    expression,
                    variables: [(Variable::new_unchecked("x"), *s)].into(),
                    base_iri: None,
                    functions: jindou_plan::Functions::new(),
                    per_row: false,
                    asked: None,
                };
                assert!(row.contains_key(s));
                self.truth(row, &g)
            }
            Condition::Kind(s, test) => {
                let t = self.term(row[s]);
                Some(match test {
                    TermTest::Iri => matches!(t, Term::NamedNode(_)),
                    TermTest::Blank => matches!(t, Term::BlankNode(_)),
                    TermTest::Literal => matches!(t, Term::Literal(_)),
                    TermTest::Numeric => match &t {
                        Term::Literal(l) => {
                            l.datatype().as_str().ends_with("integer")
                                || l.datatype().as_str().ends_with("decimal")
                        }
                        _ => false,
                    },
                })
            }
            Condition::Bound(s) => Some(row.contains_key(s)),
            Condition::And(list) => {
                let each: Vec<_> = list.iter().map(|c| self.test(row, c)).collect();
                if each.contains(&Some(false)) {
                    Some(false)
                } else {
                    each.iter().all(Option::is_some).then_some(true)
                }
            }
            Condition::Or(list) => {
                let each: Vec<_> = list.iter().map(|c| self.test(row, c)).collect();
                if each.contains(&Some(true)) {
                    Some(true)
                } else {
                    each.iter().all(Option::is_some).then_some(false)
                }
            }
            Condition::Not(c) => self.test(row, c).map(|b| !b),
            Condition::General(g) => self.truth(row, g),
        }
    }

    // ---- exploration ----
}

fn expression_of(text: &str) -> Arc<Expression> {
    let query = jindou_plan::parse(text).expect("an expression");
    let Query::Select { pattern, .. } = query else {
        panic!("SELECT")
    };
    let sparql::GraphPattern::Project { inner, .. } = &*pattern else {
        panic!("a projection")
    };
    let sparql::GraphPattern::Extend { expression, .. } = &**inner else {
        panic!("BIND")
    };
    Arc::clone(expression)
}
