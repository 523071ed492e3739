//! Evaluation of `BNODE(text)`, which returns one blank node per text *and solution* (SPARQL 1.1 §17.4.2.9). The query
//! is rewritten so that a variable holds a blank node unique to the solution, and `BNODE` gets it as a second argument;
//! consecutive BINDs share the variable.

use jindou_plan::sparql::{Expression, Function, GraphPattern, Query, Rewrite, Variable};
use jindou_plan::{expression_parts, map_expression_parts};
use std::convert::Infallible;
use std::sync::Arc;

/// True if a query's text may call `BNODE`, in upper or lower case. Searches in steps of up to five bytes (Horspool's
/// algorithm), since most texts do not contain the word. O(text).
pub(crate) fn may_be_called_in(text: &str) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    while let Some(word) = text.get(at..at + 5) {
        // Distance to the next position at which the word may begin, given by the last byte of the current window.
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

/// Makes the blank nodes of each `BNODE(text)` in a BIND or a SELECT specific to the solution. O(query).
pub(crate) fn of_each_solution(query: &mut Query) {
    let Ok(new) = Rewriter { made: 0 }.pattern(query.pattern());
    if let Some(new) = new {
        *query.pattern_mut() = new;
    }
}

struct Rewriter {
    /// Number of variables created so far.
    made: usize,
}

type New<T> = Result<Option<T>, Infallible>;

impl Rewrite for Rewriter {
    type Error = Infallible;

    fn pattern(&mut self, p: &GraphPattern) -> New<Arc<GraphPattern>> {
        match p {
            // The remote endpoint evaluates BNODE in its own pattern.
            GraphPattern::Service { .. } => Ok(None),
            GraphPattern::Extend { .. } => self.binds(p, &mut None),
            p => Ok(p.rewritten(self)?.map(Arc::new)),
        }
    }

    fn expression(&mut self, e: &Expression) -> New<Arc<Expression>> {
        Ok(self.exists(e)?.map(Arc::new))
    }
}

impl Rewriter {
    fn exists(&mut self, e: &Expression) -> New<Expression> {
        match e {
            Expression::Exists(p) => Ok(self.pattern(p)?.map(Expression::Exists)),
            e => map_expression_parts(e, &mut |e| self.exists(e)),
        }
    }

    /// Rewrites consecutive BINDs, which see the same solution and therefore share one variable that identifies it.
    fn binds(&mut self, p: &GraphPattern, row: &mut Option<Variable>) -> New<Arc<GraphPattern>> {
        let GraphPattern::Extend {
            inner,
            variable,
            expression,
        } = p
        else {
            return self.pattern(p);
        };
        let mut value = self.expression(expression)?;
        if has_bnode(expression) {
            let row = row.get_or_insert_with(|| {
                self.made += 1;
                // A query's text cannot contain this variable, since its name has a space.
                Variable::new_unchecked(format!("jindou {}", self.made))
            });
            let Ok(with_row) = bnodes(value.as_ref().unwrap_or(expression), row);
            value = with_row.map(Arc::new).or(value);
        }
        let mut below = self.binds(inner, row)?;
        if !matches!(**inner, GraphPattern::Extend { .. })
            && let Some(row) = row.take()
        {
            below = Some(Arc::new(GraphPattern::Extend {
                inner: below.unwrap_or_else(|| Arc::clone(inner)),
                variable: row,
                expression: Arc::new(Expression::FunctionCall(Function::StrUuid, vec![])),
            }));
        }
        if below.is_none() && value.is_none() {
            return Ok(None);
        }
        Ok(Some(Arc::new(GraphPattern::Extend {
            inner: below.unwrap_or_else(|| Arc::clone(inner)),
            variable: variable.clone(),
            expression: value.unwrap_or_else(|| Arc::clone(expression)),
        })))
    }
}

fn has_bnode(e: &Expression) -> bool {
    matches!(e, Expression::FunctionCall(Function::BNode, list) if !list.is_empty())
        || expression_parts(e).into_iter().any(has_bnode)
}

/// Turns `BNODE(text)` into `BNODE(text, row)`: a blank node determined by the text and by a value that only this row
/// has.
fn bnodes(e: &Expression, row: &Variable) -> New<Expression> {
    let new = map_expression_parts(e, &mut |e| bnodes(e, row))?;
    if let Expression::FunctionCall(Function::BNode, list) = new.as_ref().unwrap_or(e)
        && let [text] = &list[..]
    {
        let list = vec![text.shared(), row.clone().into()];
        return Ok(Some(Expression::FunctionCall(Function::BNode, list)));
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::may_be_called_in;

    #[test]
    fn a_call_is_found_wherever_it_is_and_nowhere_else() {
        // Tests all texts of up to seven of these characters.
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
        // Texts of five characters match once. Six characters: two positions of the word, six choices for the extra
        // character. Seven: three positions, 36 choices.
        assert_eq!(found, 1 + 2 * 6 + 3 * 36);
    }
}
