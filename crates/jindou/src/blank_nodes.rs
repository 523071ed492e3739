//! `BNODE(text)` is one blank node a text *and solution* (SPARQL 1.1 §17.4.2.9). The function that evaluates it is told the solution by
//! something that it alone has: BINDs that follow each other see the same.

use jindou_plan::expression_parts_mut;
use oxrdf::Variable;
use spargebra::Query;
use spargebra::algebra::{Expression, Function, GraphPattern};

/// True if a text may call `BNODE`, in any case. Most texts do not, and are seen through in steps of five bytes (Horspool's way). O(text).
pub(crate) fn may_be_called_in(text: &str) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    while let Some(word) = text.get(at..at + 5) {
        // The next place that the word may have, by the byte that is its last one here.
        at += match word[4].to_ascii_lowercase() {
            b'e' if word.eq_ignore_ascii_case(b"bnode") => return true,
            b'd' => 1,
            b'o' => 2,
            b'n' => 3,
            b'b' => 4,
            _ => 5,
        };
    }
    false
}

/// Makes each `BNODE(text)` in a BIND or a SELECT its solution's own. O(query).
pub(crate) fn of_each_solution(query: &mut Query) {
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    Rewriter { made: 0 }.pattern(pattern);
}

struct Rewriter {
    /// Variables made so far.
    made: usize,
}

impl Rewriter {
    fn pattern(&mut self, p: &mut GraphPattern) {
        match p {
            GraphPattern::Bgp { .. } | GraphPattern::Values { .. } | GraphPattern::Path { .. } => {}
            // What is sent to another endpoint is that endpoint's.
            GraphPattern::Service { .. } => {}
            GraphPattern::Extend { .. } => self.binds(p, &mut None),
            GraphPattern::Filter { inner, expr } => {
                self.pattern(inner);
                self.exists(expr);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left);
                self.pattern(right);
                if let Some(e) = expression {
                    self.exists(e);
                }
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.pattern(left);
                self.pattern(right);
            }
            GraphPattern::Graph { inner, .. }
            | GraphPattern::Group { inner, .. }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.pattern(inner),
        }
    }

    fn exists(&mut self, e: &mut Expression) {
        if let Expression::Exists(p) = e {
            self.pattern(p);
        } else {
            for part in expression_parts_mut(e) {
                self.exists(part);
            }
        }
    }

    /// BINDs that follow each other see the same solution, so they share what tells solutions apart.
    fn binds(&mut self, p: &mut GraphPattern, row: &mut Option<Variable>) {
        let GraphPattern::Extend {
            inner, expression, ..
        } = p
        else {
            self.pattern(p);
            if let Some(row) = row.take() {
                let nothing = GraphPattern::Bgp { patterns: vec![] };
                *p = GraphPattern::Extend {
                    inner: Box::new(std::mem::replace(p, nothing)),
                    variable: row,
                    expression: Expression::FunctionCall(Function::StrUuid, vec![]),
                };
            }
            return;
        };
        self.exists(expression);
        if has_bnode(expression) {
            let row = row.get_or_insert_with(|| {
                self.made += 1;
                // A space is in no variable of a query's text.
                Variable::new_unchecked(format!("jindou {}", self.made))
            });
            bnodes(expression, row);
        }
        self.binds(inner, row);
    }
}

fn has_bnode(e: &mut Expression) -> bool {
    matches!(e, Expression::FunctionCall(Function::BNode, list) if !list.is_empty())
        || expression_parts_mut(e).into_iter().any(has_bnode)
}

/// `BNODE(text)` becomes `BNODE(text, row)`: a blank node of the text and of what the row alone has.
fn bnodes(e: &mut Expression, row: &Variable) {
    for part in expression_parts_mut(e) {
        bnodes(part, row);
    }
    if let Expression::FunctionCall(Function::BNode, list) = e
        && list.len() == 1
    {
        list.push(row.clone().into());
    }
}

#[cfg(test)]
mod tests {
    use super::may_be_called_in;

    #[test]
    fn a_call_is_found_wherever_it_is_and_nowhere_else() {
        // All texts of up to seven of these letters.
        let letters = *b"bNode ";
        let mut texts = vec![String::new()];
        let mut found = 0;
        for length in 0..=7 {
            for text in &texts {
                let is_there = text.to_lowercase().contains("bnode");
                assert_eq!(may_be_called_in(text), is_there, "{text:?}");
                found += usize::from(is_there);
            }
            if length < 7 {
                let longer = texts
                    .iter()
                    .flat_map(|t| letters.map(|l| format!("{t}{}", l as char)));
                texts = longer.collect();
            }
        }
        // Of five letters one; of six, two places for it and six letters beside it; of seven, three places.
        assert_eq!(found, 1 + 2 * 6 + 3 * 36);
    }
}
