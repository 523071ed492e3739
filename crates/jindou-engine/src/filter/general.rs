//! Any expression, evaluated by `spareval` on decoded terms. Values are remembered by the ids that went in, so
//! an expression over one variable is evaluated once for each distinct term.

use super::{ERROR, FALSE, TRUE, Value};
use crate::batch::{Charge, View};
use crate::explore::Run;
use jindou_model::{Error, FIRST_QUERY_ID, Result, VertexId, term};
use jindou_plan::{GeneralExpression, Relation, Slot};
use oxrdf::{Literal, Term, Variable};
use rustc_hash::FxHashMap;
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression as Algebra, Function, GraphPattern as AlgebraPattern};
use sparopt::algebra::{Expression, GraphPattern};

/// Remembered values; beyond, all are forgotten.
const MEMO: usize = 1 << 20;

pub(crate) struct General<'a> {
    evaluator: QueryEvaluator,
    expression: Expression,
    variables: Vec<(Variable, Value)>,
    /// For each variable, the one that stands for `STR` of it: the evaluator computes with values and would say
    /// "1" for `"01"^^xsd:integer`.
    texts: Vec<Option<Variable>>,
    /// Substituted in every row.
    constant: Option<(Variable, Term)>,
    /// False for RAND, UUID and the like.
    pure: bool,
    one: FxHashMap<u32, u8>,
    many: FxHashMap<Box<[u32]>, u8>,
    ids: Vec<u32>,
    charge: Option<Charge>,
    bytes: Vec<u8>,
    _plan: std::marker::PhantomData<&'a ()>,
}

impl<'a> General<'a> {
    pub fn new(g: &'a GeneralExpression, layout: &[Slot], run: &Run<'_>) -> Result<Self> {
        let text = g.expression.to_string().to_ascii_uppercase();
        let impure = ["RAND(", "UUID(", "BNODE("]
            .iter()
            .any(|f| text.contains(f));
        let variables = g
            .variables
            .iter()
            .map(|(v, s)| (v.clone(), Value::of(*s, layout)))
            .collect();
        let mut it = Self::of(g.expression.clone(), variables, None)?;
        it.pure = !impure;
        it.charge = Some(Charge::new(run.budget));
        Ok(it)
    }

    /// `value ∘ constant`, for [`Self::of_one`].
    pub fn compare(value: Value, relation: Relation, constant: &[u8]) -> Result<Self> {
        let right = term::decode(constant)
            .ok_or_else(|| Error::Internal("a plan's constant is no term".into()))?;
        let (x, c) = (Variable::new_unchecked("x"), Variable::new_unchecked("c"));
        let sides = || {
            (
                Box::new(Algebra::from(x.clone())),
                Box::new(Algebra::from(c.clone())),
            )
        };
        let (a, b) = sides();
        let expression = match relation {
            Relation::Equal => Algebra::Equal(a, b),
            Relation::NotEqual => Algebra::Not(Box::new(Algebra::Equal(a, b))),
            Relation::Less => Algebra::Less(a, b),
            Relation::LessOrEqual => Algebra::LessOrEqual(a, b),
            Relation::Greater => Algebra::Greater(a, b),
            Relation::GreaterOrEqual => Algebra::GreaterOrEqual(a, b),
        };
        Self::of(expression, vec![(x, value)], Some((c, right)))
    }

    fn of(
        expression: Algebra,
        variables: Vec<(Variable, Value)>,
        constant: Option<(Variable, Term)>,
    ) -> Result<Self> {
        let mut expression = expression;
        let mut texts = vec![None; variables.len()];
        take_texts(&mut expression, &variables, &mut texts);
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
            texts,
            constant,
            pure: true,
            one: FxHashMap::default(),
            many: FxHashMap::default(),
            ids: vec![],
            charge: None,
            bytes: vec![],
            _plan: std::marker::PhantomData,
        })
    }

    /// The value for one id in place of the only variable.
    pub fn of_one(&mut self, run: &Run<'_>, id: u32) -> Result<u8> {
        if let Some(&v) = self.one.get(&id) {
            return Ok(v);
        }
        self.ids.clear();
        self.ids.push(id);
        let v = self.compute(run)?;
        if self.pure {
            if self.one.len() >= MEMO {
                self.one.clear();
            }
            self.one.insert(id, v);
            self.recharge(self.one.capacity() * 9)?;
        }
        Ok(v)
    }

    pub fn eval(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let mut since_check = 0;
        for (i, o) in out.iter_mut().enumerate() {
            if *o != TRUE {
                continue;
            }
            since_check += 1;
            if since_check == 256 {
                since_check = 0;
                run.check()?;
            }
            if let [(_, value)] = self.variables[..] {
                *o = self.of_one(run, value.at(rows, from + i))?;
                continue;
            }
            self.ids.clear();
            for (_, v) in &self.variables {
                self.ids.push(v.at(rows, from + i));
            }
            if self.pure
                && let Some(&v) = self.many.get(&self.ids[..])
            {
                *o = v;
                continue;
            }
            *o = self.compute(run)?;
            if self.pure {
                if self.many.len() >= MEMO {
                    self.many.clear();
                }
                self.many.insert(self.ids.clone().into_boxed_slice(), *o);
                self.recharge(self.many.capacity() * (24 + 4 * self.ids.len()))?;
            }
        }
        Ok(())
    }

    fn recharge(&mut self, bytes: usize) -> Result<()> {
        match &mut self.charge {
            Some(c) => c.set(bytes),
            None => Ok(()),
        }
    }

    /// Evaluates on the terms of `self.ids`.
    fn compute(&mut self, run: &Run<'_>) -> Result<u8> {
        let mut substitutions: Vec<(&Variable, Term)> = Vec::with_capacity(self.ids.len() + 1);
        for (((variable, _), text), &id) in self.variables.iter().zip(&self.texts).zip(&self.ids) {
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
                let lexical = match &t {
                    Term::Literal(l) => Some(l.value()),
                    Term::NamedNode(n) => Some(n.as_str()),
                    // STR of these is an error, as is an unbound variable.
                    Term::BlankNode(_) | Term::Triple(_) => None,
                };
                if let (Some(text), Some(lexical)) = (text, lexical) {
                    substitutions.push((text, Literal::new_simple_literal(lexical).into()));
                }
                substitutions.push((variable, t));
            }
        }
        if let Some((v, t)) = &self.constant {
            substitutions.push((v, t.clone()));
        }
        Ok(
            match self
                .evaluator
                .evaluate_effective_boolean_value_expression(&self.expression, substitutions)
            {
                Some(true) => TRUE,
                Some(false) => FALSE,
                None => ERROR,
            },
        )
    }
}

/// Replaces `STR(?v)` by a variable for its text.
fn take_texts(e: &mut Algebra, variables: &[(Variable, Value)], texts: &mut [Option<Variable>]) {
    use Algebra as E;
    if let E::FunctionCall(Function::Str, list) = e
        && let [E::Variable(v)] = &list[..]
        && let Some(at) = variables.iter().position(|(x, _)| x == v)
    {
        // A space is in no variable of a query's text.
        let text =
            texts[at].get_or_insert_with(|| Variable::new_unchecked(format!("text of {at}")));
        *e = text.clone().into();
        return;
    }
    let parts: Vec<&mut Algebra> = match e {
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => vec![],
        E::Or(a, b)
        | E::And(a, b)
        | E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => vec![a, b],
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => vec![a],
        E::In(a, list) => std::iter::once(&mut **a).chain(list).collect(),
        E::If(a, b, c) => vec![a, b, c],
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter_mut().collect(),
    };
    for part in parts {
        take_texts(part, variables, texts);
    }
}
