//! Expressions compiled to a small tree that is interpreted a row at a time: no allocation, no string where numbers
//! do. What has no code of its own becomes a [`Code::Slow`] leaf, evaluated by `spareval` and remembered by its inputs.

use super::cast::Cast;
use super::patterns::regex;
use super::replace::{Pattern, Replace};
use super::slow::Slow;
use super::val::{Arithmetic, Num};
use crate::explore::Run;
use crate::filter::Value;
use jindou_model::{Error, Result, term};
use jindou_plan::{GeneralExpression, Relation, Slot, TermTest};
use oxrdf::{Literal, Variable};
use regex::Regex;
use spargebra::algebra::{Expression as E, Function};

/// Deepest expression; the parser allows no deeper one, this keeps the stack safe whoever made it.
const DEEPEST: usize = 1024;

/// What a compiled expression does.
pub(crate) enum Code {
    /// An error in every row.
    Error,
    Var(Value),
    /// Number of a constant.
    Const(usize),
    Bound(Value),
    Or(Vec<Code>),
    And(Vec<Code>),
    Not(Box<Code>),
    Equal(Box<Code>, Box<Code>),
    Same(Box<Code>, Box<Code>),
    Order(Relation, Box<Code>, Box<Code>),
    In(Box<Code>, Vec<Code>),
    Arithmetic(Arithmetic, Box<Code>, Box<Code>),
    Plus(Box<Code>),
    Minus(Box<Code>),
    If(Box<[Code; 3]>),
    Coalesce(Vec<Code>),
    Kind(TermTest, Box<Code>),
    Call(Call, Vec<Code>),
    Regex(Box<Code>, Box<Regex>),
    /// Text, pattern, flags.
    Matches(Box<[Code; 3]>),
    Replace(Box<Replace>),
    Iri(Box<Code>, Option<Box<oxiri::Iri<String>>>),
    Random,
    /// Number of a slow part, and its arguments.
    Slow(usize, Vec<Code>),
    /// A cast, and the number of the slow part for values that it does not know.
    Cast(Cast, Box<Code>, usize),
}

/// Functions of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Str,
    Lang,
    Datatype,
    LangMatches,
    StrLen,
    Contains,
    StrStarts,
    StrEnds,
    StrBefore,
    StrAfter,
    SubStr,
    UCase,
    LCase,
    Concat,
    Abs,
    Ceil,
    Floor,
    Round,
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    /// Part of a triple term: 0, 1, 2.
    Part(u8),
}

impl Call {
    /// What it does to a number, for those that take nothing else.
    pub fn of_number(self) -> Option<fn(Num) -> Option<Num>> {
        match self {
            Self::Abs => Some(Num::abs),
            Self::Ceil => Some(Num::ceil),
            Self::Floor => Some(Num::floor),
            Self::Round => Some(Num::round),
            _ => None,
        }
    }
}

/// A function that `spareval` evaluates, and room for the ids of its arguments.
pub(crate) struct SlowPart {
    pub slow: Slow,
    pub ids: Vec<u32>,
}

/// Everything that compiling finds.
pub(crate) struct Compiled {
    pub code: Code,
    /// Canonical bytes.
    pub constants: Vec<Vec<u8>>,
    pub slow: Vec<SlowPart>,
    /// The columns that the expression reads, each once.
    pub inputs: Vec<usize>,
    /// The value depends on the inputs alone.
    pub pure: bool,
    /// Some part is worth remembering: strings, or `spareval`.
    pub dear: bool,
}

struct Compiler<'c, 'r> {
    out: Compiled,
    variables: &'c [(Variable, Slot)],
    layout: &'c [Slot],
    base: Option<oxiri::Iri<String>>,
    run: &'c Run<'r>,
}

/// Compiles an expression for rows with these columns.
pub(crate) fn compile(g: &GeneralExpression, layout: &[Slot], run: &Run<'_>) -> Result<Compiled> {
    let mut c = Compiler {
        out: Compiled {
            code: Code::Error,
            constants: vec![],
            slow: vec![],
            inputs: vec![],
            pure: true,
            dear: false,
        },
        variables: &g.variables,
        layout,
        base: g
            .base_iri
            .as_ref()
            .and_then(|b| oxiri::Iri::parse(b.clone()).ok()),
        run,
    };
    c.out.code = c.code(&g.expression, 0)?;
    Ok(c.out)
}

impl Compiler<'_, '_> {
    fn value(&mut self, v: &Variable) -> Value {
        let value = self
            .variables
            .iter()
            .find(|(x, _)| x == v)
            .map_or(Value::Unbound, |(_, s)| Value::of(*s, self.layout));
        if let Value::Column(c) = value
            && !self.out.inputs.contains(&c)
        {
            self.out.inputs.push(c);
        }
        value
    }

    fn constant(&mut self, bytes: Vec<u8>) -> Code {
        self.out.constants.push(bytes);
        Code::Const(self.out.constants.len() - 1)
    }

    fn list(&mut self, list: &[E], depth: usize) -> Result<Vec<Code>> {
        list.iter().map(|e| self.code(e, depth)).collect()
    }

    fn two(&mut self, a: &E, b: &E, depth: usize) -> Result<(Box<Code>, Box<Code>)> {
        Ok((
            Box::new(self.code(a, depth)?),
            Box::new(self.code(b, depth)?),
        ))
    }

    fn code(&mut self, e: &E, depth: usize) -> Result<Code> {
        if depth > DEEPEST {
            return Err(Error::Limit("an expression is nested too deep".into()));
        }
        let depth = depth + 1;
        Ok(match e {
            E::NamedNode(n) => {
                let mut bytes = vec![];
                term::push_iri(n.as_str(), &mut bytes);
                self.constant(bytes)
            }
            E::Literal(l) => {
                let mut bytes = vec![];
                term::push_literal(l, &mut bytes);
                self.constant(bytes)
            }
            E::Variable(v) => Code::Var(self.value(v)),
            E::Bound(v) => Code::Bound(self.value(v)),
            E::Or(..) | E::And(..) => {
                // Chains lean to one side and may be long: flat, without recursion.
                let or = matches!(e, E::Or(..));
                let mut parts = vec![];
                let mut stack = vec![e];
                while let Some(e) = stack.pop() {
                    match e {
                        E::Or(a, b) if or => stack.extend([&**b, &**a]),
                        E::And(a, b) if !or => stack.extend([&**b, &**a]),
                        other => parts.push(self.code(other, depth)?),
                    }
                }
                if or {
                    Code::Or(parts)
                } else {
                    Code::And(parts)
                }
            }
            E::Not(a) => Code::Not(Box::new(self.code(a, depth)?)),
            E::Equal(a, b) => {
                let (a, b) = self.two(a, b, depth)?;
                Code::Equal(a, b)
            }
            E::SameTerm(a, b) => {
                let (a, b) = self.two(a, b, depth)?;
                Code::Same(a, b)
            }
            E::Greater(a, b) => self.order(Relation::Greater, a, b, depth)?,
            E::GreaterOrEqual(a, b) => self.order(Relation::GreaterOrEqual, a, b, depth)?,
            E::Less(a, b) => self.order(Relation::Less, a, b, depth)?,
            E::LessOrEqual(a, b) => self.order(Relation::LessOrEqual, a, b, depth)?,
            E::In(a, list) => {
                let a = self.code(a, depth)?;
                Code::In(Box::new(a), self.list(list, depth)?)
            }
            E::Add(a, b) => self.arithmetic(Arithmetic::Add, a, b, depth)?,
            E::Subtract(a, b) => self.arithmetic(Arithmetic::Subtract, a, b, depth)?,
            E::Multiply(a, b) => self.arithmetic(Arithmetic::Multiply, a, b, depth)?,
            E::Divide(a, b) => self.arithmetic(Arithmetic::Divide, a, b, depth)?,
            E::UnaryPlus(a) => Code::Plus(Box::new(self.code(a, depth)?)),
            E::UnaryMinus(a) => Code::Minus(Box::new(self.code(a, depth)?)),
            E::If(a, b, c) => Code::If(Box::new([
                self.code(a, depth)?,
                self.code(b, depth)?,
                self.code(c, depth)?,
            ])),
            E::Coalesce(list) => Code::Coalesce(self.list(list, depth)?),
            E::Exists(_) => {
                return Err(Error::Internal(
                    "EXISTS inside a compiled expression".into(),
                ));
            }
            E::FunctionCall(f, list) => self.function(f, list, depth)?,
        })
    }

    fn order(&mut self, r: Relation, a: &E, b: &E, depth: usize) -> Result<Code> {
        let (a, b) = self.two(a, b, depth)?;
        Ok(Code::Order(r, a, b))
    }

    fn arithmetic(&mut self, op: Arithmetic, a: &E, b: &E, depth: usize) -> Result<Code> {
        let (a, b) = self.two(a, b, depth)?;
        Ok(Code::Arithmetic(op, a, b))
    }

    fn function(&mut self, f: &Function, list: &[E], depth: usize) -> Result<Code> {
        let test = match f {
            Function::IsIri => Some(TermTest::Iri),
            Function::IsBlank => Some(TermTest::Blank),
            Function::IsLiteral => Some(TermTest::Literal),
            Function::IsNumeric => Some(TermTest::Numeric),
            _ => None,
        };
        if let (Some(test), [a]) = (test, list) {
            return Ok(Code::Kind(test, Box::new(self.code(a, depth)?)));
        }
        let call = match (f, list.len()) {
            (Function::Str, 1) => Some(Call::Str),
            (Function::Lang, 1) => Some(Call::Lang),
            (Function::Datatype, 1) => Some(Call::Datatype),
            (Function::LangMatches, 2) => Some(Call::LangMatches),
            (Function::StrLen, 1) => Some(Call::StrLen),
            (Function::Contains, 2) => Some(Call::Contains),
            (Function::StrStarts, 2) => Some(Call::StrStarts),
            (Function::StrEnds, 2) => Some(Call::StrEnds),
            (Function::StrBefore, 2) => Some(Call::StrBefore),
            (Function::StrAfter, 2) => Some(Call::StrAfter),
            (Function::SubStr, 2 | 3) => Some(Call::SubStr),
            (Function::UCase, 1) => Some(Call::UCase),
            (Function::LCase, 1) => Some(Call::LCase),
            (Function::Concat, _) => Some(Call::Concat),
            (Function::Abs, 1) => Some(Call::Abs),
            (Function::Ceil, 1) => Some(Call::Ceil),
            (Function::Floor, 1) => Some(Call::Floor),
            (Function::Round, 1) => Some(Call::Round),
            (Function::Year, 1) => Some(Call::Year),
            (Function::Month, 1) => Some(Call::Month),
            (Function::Day, 1) => Some(Call::Day),
            (Function::Hours, 1) => Some(Call::Hours),
            (Function::Minutes, 1) => Some(Call::Minutes),
            (Function::Subject, 1) => Some(Call::Part(0)),
            (Function::Predicate, 1) => Some(Call::Part(1)),
            (Function::Object, 1) => Some(Call::Part(2)),
            _ => None,
        };
        if let Some(call) = call {
            self.out.dear |= !matches!(call, Call::Abs | Call::Ceil | Call::Floor | Call::Round);
            return Ok(Code::Call(call, self.list(list, depth)?));
        }
        match (f, list) {
            (Function::Regex, [text, E::Literal(pattern), flags @ ..])
                if pattern.datatype() == oxrdf::vocab::xsd::STRING =>
            {
                self.out.dear = true;
                let flags = match flags {
                    [] => Some(""),
                    [E::Literal(l)] if l.datatype() == oxrdf::vocab::xsd::STRING => Some(l.value()),
                    _ => None,
                };
                if let Some(flags) = flags {
                    // A pattern that is none is an error in every row.
                    return Ok(match regex(pattern.value(), flags) {
                        Some(r) => Code::Regex(Box::new(self.code(text, depth)?), Box::new(r)),
                        None => Code::Error,
                    });
                }
            }
            (Function::Regex, [text, pattern, flags @ ..]) if flags.len() < 2 => {
                self.out.dear = true;
                return Ok(Code::Matches(Box::new([
                    self.code(text, depth)?,
                    self.code(pattern, depth)?,
                    self.flags(flags, depth)?,
                ])));
            }
            (Function::Replace, [text, pattern, replacement, flags @ ..]) if flags.len() < 2 => {
                self.out.dear = true;
                let plain = |e: &E| match e {
                    E::Literal(l) if l.datatype() == oxrdf::vocab::xsd::STRING => {
                        Some(l.value().to_owned())
                    }
                    _ => None,
                };
                let known = match flags {
                    [] => plain(pattern).zip(Some(String::new())),
                    [flags, ..] => plain(pattern).zip(plain(flags)),
                };
                let pattern = match known {
                    Some((p, f)) => match regex(&p, &f) {
                        Some(r) => Pattern::Fixed(Box::new(r)),
                        // A pattern that is none is an error in every row.
                        None => return Ok(Code::Error),
                    },
                    None => {
                        Pattern::Computed(self.code(pattern, depth)?, self.flags(flags, depth)?)
                    }
                };
                return Ok(Code::Replace(Box::new(Replace {
                    text: self.code(text, depth)?,
                    pattern,
                    replacement: self.code(replacement, depth)?,
                })));
            }
            (Function::Iri, [a]) => {
                self.out.dear = true;
                let base = self.base.clone().map(Box::new);
                return Ok(Code::Iri(Box::new(self.code(a, depth)?), base));
            }
            (Function::Now, []) => {
                let now = Literal::from(self.run.terms.now());
                let mut bytes = vec![];
                term::push_literal(&now, &mut bytes);
                return Ok(self.constant(bytes));
            }
            (Function::Rand, []) => {
                self.out.pure = false;
                return Ok(Code::Random);
            }
            _ => {}
        }
        self.slow(f, list, depth)
    }

    /// Flags of a pattern; none are an empty string.
    fn flags(&mut self, flags: &[E], depth: usize) -> Result<Code> {
        match flags.first() {
            Some(flags) => self.code(flags, depth),
            None => Ok(self.constant(term::encode(&Literal::from("").into()))),
        }
    }

    /// A function that `spareval` evaluates, over arguments that are computed here. All functions that come here fail
    /// if an argument does, so an argument without a value may be handed over as an unbound variable.
    fn slow(&mut self, f: &Function, list: &[E], depth: usize) -> Result<Code> {
        self.out.dear = true;
        let pure = !matches!(
            f,
            Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode
        );
        self.out.pure &= pure;
        let mut arguments = self.list(list, depth)?;
        let variables: Vec<Variable> = (0..list.len())
            .map(|i| Variable::new_unchecked(format!("a{i}")))
            .collect();
        let call = E::FunctionCall(
            f.clone(),
            variables.iter().cloned().map(E::Variable).collect(),
        );
        let slow = Slow::new(call, variables, pure, self.run)?;
        self.out.slow.push(SlowPart {
            slow,
            ids: Vec::with_capacity(list.len()),
        });
        let number = self.out.slow.len() - 1;
        if let (Function::Custom(name), 1) = (f, arguments.len())
            && let Some(cast) = Cast::named(name.as_str())
            && let Some(of) = arguments.pop()
        {
            return Ok(Code::Cast(cast, Box::new(of), number));
        }
        Ok(Code::Slow(number, arguments))
    }
}
