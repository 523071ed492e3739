//! Functions that have no code of their own, evaluated by `spareval` on decoded terms. Values are remembered by the
//! ids that went in.

use crate::batch::Charge;
use crate::explore::Run;
use jindou_model::{Error, FIRST_QUERY_ID, Result, VertexId, term};
use oxrdf::{Term, Variable};
use rustc_hash::FxHashMap;
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression as Algebra, GraphPattern as AlgebraPattern};
use sparopt::algebra::{Expression, GraphPattern};

/// Remembered values; beyond, all are forgotten.
const MEMO: usize = 1 << 20;
/// And beyond so many bytes of them.
const MEMO_BYTES: usize = 64 << 20;

pub(crate) struct Slow {
    evaluator: QueryEvaluator,
    expression: Expression,
    variables: Vec<Variable>,
    /// False for RAND, UUID and the like: nothing is remembered.
    pure: bool,
    memo: FxHashMap<Box<[u32]>, Option<Box<[u8]>>>,
    held: usize,
    charge: Charge,
    bytes: Vec<u8>,
    last: Option<Box<[u8]>>,
}

impl Slow {
    /// An expression over variables whose ids [`Self::value`] gets in the same order.
    pub fn new(
        expression: Algebra,
        variables: Vec<Variable>,
        pure: bool,
        run: &Run<'_>,
    ) -> Result<Self> {
        // The evaluator takes the optimiser's algebra, which is only made from whole patterns.
        let pattern = AlgebraPattern::Extend {
            inner: Box::new(AlgebraPattern::Bgp { patterns: vec![] }),
            variable: Variable::new_unchecked("value"),
            expression,
        };
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            return Err(Error::Internal("an expression did not translate".into()));
        };
        Ok(Self {
            evaluator: QueryEvaluator::new(),
            expression,
            variables,
            pure,
            memo: FxHashMap::default(),
            held: 0,
            charge: Charge::new(run.budget),
            bytes: vec![],
            last: None,
        })
    }

    /// Canonical bytes of the value; `None` for an error.
    pub fn value(&mut self, run: &Run<'_>, ids: &[u32]) -> Result<Option<&[u8]>> {
        if self.pure {
            // Looked up twice: a borrow that is returned conditionally would last too long.
            if self.memo.contains_key(ids) {
                return Ok(self.memo.get(ids).and_then(|v| v.as_deref()));
            }
        }
        run.check()?;
        let value = self.compute(run, ids);
        if !self.pure {
            self.last = value;
            return Ok(self.last.as_deref());
        }
        if self.memo.len() >= MEMO || self.held >= MEMO_BYTES {
            self.memo.clear();
            self.held = 0;
        }
        self.held += 64 + 4 * ids.len() + value.as_ref().map_or(0, |v| v.len());
        self.charge.set(self.held.next_multiple_of(1 << 16))?;
        Ok(self.memo.entry(ids.into()).or_insert(value).as_deref())
    }

    fn compute(&mut self, run: &Run<'_>, ids: &[u32]) -> Option<Box<[u8]>> {
        let mut substitutions: Vec<(&Variable, Term)> = Vec::with_capacity(ids.len());
        for (variable, &id) in self.variables.iter().zip(ids) {
            if id == 0 {
                continue;
            }
            self.bytes.clear();
            let v = VertexId(id);
            if id >= FIRST_QUERY_ID {
                run.terms.term(v, &mut self.bytes);
            } else {
                run.snapshot.term(v, &mut self.bytes);
            }
            // A term that the store cannot read is as good as unbound: `check` names the damage.
            if let Some(t) = term::decode(&self.bytes) {
                substitutions.push((variable, t));
            }
        }
        let value = self
            .evaluator
            .evaluate_expression(&self.expression, substitutions)?;
        Some(term::encode(&value).into())
    }
}
