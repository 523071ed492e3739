//! Values of expressions, and conditions.

use super::{Data, Row};
use jindou_model::term;
use jindou_plan::{Condition, GeneralExpression, Relation, Slot, TermTest};
use oxrdf::Term;
use spargebra::algebra::GraphPattern as Pattern;
use sparopt::algebra::GraphPattern;

impl Data<'_> {
    pub(super) fn value(&self, row: &Row, g: &GeneralExpression) -> Option<Vec<u8>> {
        let mut pattern = Pattern::Extend {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            variable: spargebra::term::Variable::new_unchecked("value"),
            expression: g.expression.clone(),
        };
        jindou_testing::pattern_as_specified(&mut pattern);
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            panic!("an expression did not translate");
        };
        let known = g
            .variables
            .iter()
            .filter_map(|(v, s)| Some((v, self.term(*row.get(s)?))));
        let value = self.evaluator.evaluate_expression(&expression, known)?;
        Some(term::encode(&value))
    }

    pub(super) fn truth(&self, row: &Row, g: &GeneralExpression) -> Option<bool> {
        let mut filter = Pattern::Filter {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            expr: g.expression.clone(),
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
        let known = g
            .variables
            .iter()
            .filter_map(|(v, s)| Some((v, self.term(*row.get(s)?))));
        self.evaluator
            .evaluate_effective_boolean_value_expression(&expression, known)
    }

    /// The cheap conditions are only for slots that are bound.
    pub(super) fn equal(&self, row: &Row, (a, b): (Slot, Slot)) -> bool {
        let (x, y) = (
            spargebra::term::Variable::new_unchecked("x"),
            spargebra::term::Variable::new_unchecked("y"),
        );
        let expression = spargebra::algebra::Expression::Equal(
            Box::new(x.clone().into()),
            Box::new(y.clone().into()),
        );
        let g = GeneralExpression {
            expression,
            variables: vec![(x, a), (y, b)],
            per_row: false,
            asked: None,
            base_iri: None,
            functions: jindou_plan::Functions::new(),
        };
        self.truth(row, &g) == Some(true)
    }

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
                    variables: vec![(spargebra::term::Variable::new_unchecked("x"), *s)],
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

fn expression_of(text: &str) -> spargebra::algebra::Expression {
    let query = jindou_plan::parse(text).expect("an expression");
    let spargebra::Query::Select { pattern, .. } = query else {
        panic!("SELECT")
    };
    let Pattern::Project { inner, .. } = pattern else {
        panic!("a projection")
    };
    let Pattern::Extend { expression, .. } = *inner else {
        panic!("BIND")
    };
    expression
}
