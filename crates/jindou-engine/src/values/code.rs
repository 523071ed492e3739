//! Expressions compiled to a small tree that is interpreted one row at a time: no allocation, no string where numbers
//! suffice.

use super::custom::Custom;
use super::make::{Fresh, Hash, MadeTerms};
use super::members::{self, Members};
use super::patterns::{self, Use};
use super::regex::{Matches, RegexPattern, Replace};
use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use crate::filter::ValueSource;
use crate::tree::SlotLayout;
use jindou_model::{Error, Holder, Resource, Result};
use jindou_plan::sparql::{BaseIri, Canonical, Expression as E, Function, Variable};
use jindou_plan::{
    FunctionLookup, Functions, GeneralExpression, MAX_ARGUMENTS, Relation, Slot, TermTest,
};
use jindou_values::functions::{Cost, Scalar};
use jindou_values::{Arithmetic, DerivedType, Num};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Deepest expression. The parser allows no deeper one; this limit protects the stack from other sources of
/// expressions.
const DEEPEST: usize = 1024;

/// Parts of an expression between two checks of the deadline while it is compiled.
const CHECK: usize = 1 << 10;
/// Largest number of patterns of an expression that are compiled with it, if there is memory. Others are compiled at
/// run time, like patterns computed from rows.
const FIXED: usize = 512;
/// Length in bytes from which all machines of a query share a constant.
pub(super) const LONG: usize = 1 << 14;
/// Number of variables up to which a list of them is searched, and of inputs up to which results are cached.
const FEW: usize = 32;
/// Smallest number of bytes charged for an expression.
const LEAST: usize = 1 << 10;
/// Bytes of a part, and of a constant besides its text.
const PART: usize = size_of::<Code>() + 16;
const CONSTANT: usize = 2 * size_of::<Canonical>() + size_of::<super::val::Val>() + 32;

/// Code of a compiled expression: an operation and its operands.
pub(crate) enum Code {
    /// An error in every row.
    Error,
    Var(ValueSource),
    /// Number of a constant.
    Const(usize),
    Bound(ValueSource),
    Or(Vec<Code>),
    And(Vec<Code>),
    Not(Box<Code>),
    Equal(Box<Code>, Box<Code>),
    Same(Box<Code>, Box<Code>),
    Order(Relation, Box<Code>, Box<Code>),
    In(Box<Code>, Vec<Code>),
    /// IN with many members.
    OneOf(Box<Code>, Box<Members>),
    Arithmetic(Arithmetic, Box<Code>, Box<Code>),
    Plus(Box<Code>),
    Minus(Box<Code>),
    If(Box<[Code; 3]>),
    Coalesce(Vec<Code>),
    Kind(TermTest, Box<Code>),
    Call(Call, Vec<Code>),
    Concat(Vec<Code>),
    Regex(Box<Matches>),
    Replace(Box<Replace>),
    Iri(Box<Code>, Option<Arc<BaseIri>>),
    Random,
    Cast(Cast, Box<Code>),
    /// A function that the program registered.
    Custom(Box<Custom>),
    /// A new term in each row.
    Fresh(Fresh),
}

/// A constructor function (SPARQL 1.1 §17.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    String,
    /// A cast to the datatype with this tag.
    Coded(u8),
    /// A cast to a derived type without a tag.
    Derived(DerivedType),
}

/// Functions of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A function that its definition evaluates.
    Scalar(Scalar),
    Encode,
    Hash(Hash),
    /// A term built from up to three values.
    Make(MadeTerms),
}

impl Call {
    /// The function on numbers that it applies, for calls that accept only a number.
    pub fn of_number(self) -> Option<fn(Num) -> Option<Num>> {
        match self {
            Self::Scalar(s) => s.definition().number,
            _ => None,
        }
    }
}

/// Result of compiling an expression.
pub(crate) struct CompiledExpr {
    pub code: Code,
    pub constants: Vec<Canonical>,
    /// The columns that the expression reads, each once.
    pub inputs: Vec<usize>,
    /// True if the value depends only on the inputs.
    pub pure: bool,
    /// True if some part is worth caching: strings, dates.
    pub is_costly: bool,
    /// Number of its parts.
    pub parts: usize,
    /// Memory that the compiled expression takes.
    charge: OperatorCharge,
}

struct ExprCompiler<'c, 'r> {
    out: CompiledExpr,
    variables: &'c [(Variable, Slot)],
    /// The variables by name, if there are many.
    by_name: FxHashMap<&'c str, Slot>,
    layout: &'c SlotLayout<'c>,
    base: Option<Arc<BaseIri>>,
    /// Numbers of the constants.
    places: FxHashMap<Canonical, usize>,
    functions: &'c Functions,
    ctx: &'c EvalContext<'r>,
    bytes: usize,
    fixed: usize,
}

/// Compiles an expression for rows with these columns.
pub(crate) fn compile(
    g: &GeneralExpression,
    layout: &SlotLayout<'_>,
    ctx: &EvalContext<'_>,
) -> Result<CompiledExpr> {
    let mut c = ExprCompiler {
        out: CompiledExpr {
            code: Code::Error,
            constants: vec![],
            inputs: vec![],
            pure: true,
            is_costly: false,
            parts: 0,
            charge: OperatorCharge::for_holder(Holder::Text, ctx.budget),
        },
        variables: &g.variables,
        by_name: if g.variables.len() > FEW {
            g.variables.iter().map(|(v, s)| (v.as_str(), *s)).collect()
        } else {
            FxHashMap::default()
        },
        layout,
        base: g.base_iri.clone().map(Arc::new),
        places: FxHashMap::default(),
        functions: &g.functions,
        ctx,
        bytes: LEAST,
        fixed: 0,
    };
    c.out.code = c.code(&g.expression, 0)?;
    c.charge()?;
    Ok(c.out)
}

impl ExprCompiler<'_, '_> {
    fn charge(&mut self) -> Result<()> {
        self.ctx.check()?;
        self.out.charge.set(self.bytes)
    }

    fn value(&mut self, v: &Variable) -> ValueSource {
        let slot = if self.by_name.is_empty() {
            let found = self.variables.iter().find(|(x, _)| x == v);
            found.map(|(_, s)| *s)
        } else {
            self.by_name.get(v.as_str()).copied()
        };
        let value = slot.map_or(ValueSource::Unbound, |s| {
            ValueSource::of_slot(s, self.layout)
        });
        // With more than two inputs, their identity is not needed.
        if let ValueSource::Column(c) = value
            && self.out.inputs.len() <= FEW
            && !self.out.inputs.contains(&c)
        {
            self.out.inputs.push(c);
        }
        value
    }

    /// Number of a constant, which is stored once, however often it occurs.
    fn constant(&mut self, term: &Canonical) -> Code {
        if let Some(place) = self.places.get(term) {
            return Code::Const(*place);
        }
        let place = self.out.constants.len();
        self.bytes += CONSTANT;
        if term.len() < LONG {
            // The machine has it once more.
            self.bytes += term.len();
        }
        self.places.insert(term.clone(), place);
        self.out.constants.push(term.clone());
        Code::Const(place)
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
            return Err(Error::limit(
                Resource::Form,
                "an expression is nested too deeply",
            ));
        }
        let depth = depth + 1;
        self.bytes += PART;
        self.out.parts += 1;
        if self.out.parts.is_multiple_of(CHECK) {
            self.charge()?;
        }
        Ok(match e {
            E::NamedNode(n) => self.constant(&n.canonical()),
            E::Literal(l) => self.constant(l.canonical()),
            E::Variable(v) => Code::Var(self.value(v)),
            E::Bound(v) => Code::Bound(self.value(v)),
            E::Or(..) | E::And(..) => {
                // Chains lean to one side and may be long: flattened without recursion.
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
                let list = self.list(list, depth)?;
                if list.len() < members::MANY {
                    return Ok(Code::In(Box::new(a), list));
                }
                self.out.is_costly = true;
                let members = Members::new(list, &self.out.constants);
                Code::OneOf(Box::new(a), Box::new(members))
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
            E::Exists(_) => unreachable!("the planner makes EXISTS an operator"),
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
        let Some(definition) = f.definition() else {
            return self.custom(f, list, depth);
        };
        // Labels of blank nodes come with the number of their solution.
        let labelled = matches!((f, list.len()), (Function::BNode, 2));
        if !definition.takes(list.len()) && !labelled {
            return Err(unsupported(f, list));
        }
        self.out.is_costly |= definition.cost == Cost::Text;
        self.out.pure &= definition.deterministic;
        let call = match (f, definition.row) {
            (_, Some(scalar)) => Some(Call::Scalar(scalar)),
            (Function::EncodeForUri, _) => Some(Call::Encode),
            (Function::Md5, _) => Some(Call::Hash(Hash::Md5)),
            (Function::Sha1, _) => Some(Call::Hash(Hash::Sha1)),
            (Function::Sha256, _) => Some(Call::Hash(Hash::Sha256)),
            (Function::Sha384, _) => Some(Call::Hash(Hash::Sha384)),
            (Function::Sha512, _) => Some(Call::Hash(Hash::Sha512)),
            (Function::StrLang, _) => Some(Call::Make(MadeTerms::Lang)),
            (Function::StrLangDir, _) => Some(Call::Make(MadeTerms::LangDir)),
            (Function::StrDt, _) => Some(Call::Make(MadeTerms::Typed)),
            (Function::Triple, _) => Some(Call::Make(MadeTerms::Triple)),
            (Function::BNode, _) if !list.is_empty() => Some(Call::Make(MadeTerms::Blank)),
            _ => None,
        };
        if let Some(call) = call {
            return Ok(Code::Call(call, self.list(list, depth)?));
        }
        match (f, list) {
            (Function::Regex, [text, pattern, flags @ ..]) => {
                return Ok(
                    match self.pattern(pattern, flags.first(), Use::Match, depth)? {
                        Some(pattern) => Code::Regex(Box::new(Matches {
                            text: self.code(text, depth)?,
                            pattern,
                        })),
                        None => Code::Error,
                    },
                );
            }
            (Function::Replace, [text, pattern, replacement, flags @ ..]) => {
                return Ok(
                    match self.pattern(pattern, flags.first(), Use::Replace, depth)? {
                        Some(pattern) => Code::Replace(Box::new(Replace {
                            text: self.code(text, depth)?,
                            pattern,
                            replacement: self.code(replacement, depth)?,
                        })),
                        None => Code::Error,
                    },
                );
            }
            (Function::Concat, list) => return Ok(Code::Concat(self.list(list, depth)?)),
            (Function::Iri, [a]) => {
                let base = self.base.clone();
                return Ok(Code::Iri(Box::new(self.code(a, depth)?), base));
            }
            (Function::Now, []) => {
                let mut bytes = vec![];
                self.ctx.terms.now().push(&mut bytes);
                return Ok(self.constant(&bytes.into()));
            }
            (Function::Rand, []) => return Ok(Code::Random),
            (Function::BNode | Function::Uuid | Function::StrUuid, []) => {
                return Ok(Code::Fresh(match f {
                    Function::BNode => Fresh::Blank,
                    Function::Uuid => Fresh::Iri,
                    _ => Fresh::String,
                }));
            }
            _ => {}
        }
        Err(unsupported(f, list))
    }

    /// A call of a function that an IRI names.
    fn custom(&mut self, f: &Function, list: &[E], depth: usize) -> Result<Code> {
        let Function::Custom(name) = f else {
            return Err(unsupported(f, list));
        };
        self.out.is_costly = true;
        match (self.functions.find(name.as_str()), list) {
            (Some(FunctionLookup::ToString), [of]) => {
                Ok(Code::Cast(Cast::String, Box::new(self.code(of, depth)?)))
            }
            (Some(FunctionLookup::Cast(to)), [of]) => {
                Ok(Code::Cast(Cast::Coded(to), Box::new(self.code(of, depth)?)))
            }
            (Some(FunctionLookup::CastDerived(to)), [of]) => {
                let of = Box::new(self.code(of, depth)?);
                Ok(Code::Cast(Cast::Derived(to), of))
            }
            (Some(FunctionLookup::Registered(function)), list) if list.len() <= MAX_ARGUMENTS => {
                self.out.pure &= !self.functions.varies(name.as_str());
                Ok(Code::Custom(Box::new(Custom {
                    iri: name.as_str().to_owned(),
                    function,
                    arguments: self.list(list, depth)?,
                })))
            }
            _ => Err(unsupported(f, list)),
        }
    }

    /// A pattern with its flags, compiled if both are constant; `None` for an invalid one: an error in every row.
    fn pattern(
        &mut self,
        pattern: &E,
        flags: Option<&E>,
        of_use: Use,
        depth: usize,
    ) -> Result<Option<RegexPattern>> {
        let plain = |e: &E| match e {
            E::Literal(l) => l.as_plain_string().map(str::to_owned),
            _ => None,
        };
        let known = match flags {
            None => plain(pattern).zip(Some(String::new())),
            Some(flags) => plain(pattern).zip(plain(flags)),
        };
        if let Some((pattern, flags)) = known
            && self.fixed < FIXED
        {
            self.ctx.check()?;
            let Some(compiled) = patterns::compiled(&pattern, &flags, of_use) else {
                return Ok(None);
            };
            let bytes = compiled.bytes();
            if self.out.charge.set(self.bytes + bytes).is_ok() {
                self.bytes += bytes;
                self.fixed += 1;
                return Ok(Some(RegexPattern::Fixed(Box::new(compiled))));
            }
            self.fixed = FIXED;
        }
        let flags = flags.map(|f| self.code(f, depth)).transpose()?;
        Ok(Some(RegexPattern::Computed(
            self.code(pattern, depth)?,
            flags,
        )))
    }
}

/// The planner refuses such calls; this is a check for plans from elsewhere.
fn unsupported(f: &Function, list: &[E]) -> Error {
    Error::Unsupported(format!("the function {f} with {} arguments", list.len()))
}
