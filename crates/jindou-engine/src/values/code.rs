//! Expressions, compiled to a small tree that is interpreted one row at a time. Interpreting it allocates no memory,
//! and creates no strings where numbers are sufficient.

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

/// Number of parts of an expression between two checks of the deadline while it is compiled.
const CHECK: usize = 1 << 10;
/// Largest number of constant regular expressions that are compiled together with an expression, as long as there is
/// memory. Others are compiled when they are first used.
const FIXED: usize = 512;
/// Length in bytes from which on all interpreters of a query share one copy of a constant.
pub(super) const LONG: usize = 1 << 14;
/// Largest number of variables that are searched in a list rather than a hash table, and of inputs that are recorded.
const FEW: usize = 32;
/// Smallest number of bytes charged for an expression.
const LEAST: usize = 1 << 10;
/// Bytes charged for a part, and for a constant apart from its text.
const PART: usize = size_of::<Code>() + 16;
const CONSTANT: usize = 2 * size_of::<Canonical>() + size_of::<super::val::Val>() + 32;

/// Code of a compiled expression: an operation and its operands.
pub(crate) enum Code {
    /// An error in every row.
    Error,
    Var(ValueSource),
    /// The constant with this number.
    Const(usize),
    Bound(ValueSource),
    Or(Vec<Code>),
    And(Vec<Code>),
    Not(Box<Code>),
    Equal(Box<Code>, Box<Code>),
    Same(Box<Code>, Box<Code>),
    Order(Relation, Box<Code>, Box<Code>),
    In(Box<Code>, Vec<Code>),
    /// IN with at least [`MANY`](members::MANY) members.
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
    /// A function that the application registered.
    Custom(Box<Custom>),
    /// A term that is new in each row.
    Fresh(Fresh),
}

/// A constructor function (SPARQL 1.1 §17.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    String,
    /// A cast to the datatype with this tag.
    Coded(u8),
    /// A cast to a derived type that has no tag.
    Derived(DerivedType),
}

/// Built-in functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A function that its definition in `jindou-values` evaluates.
    Scalar(Scalar),
    Encode,
    Hash(Hash),
    /// A term built from up to three values.
    Make(MadeTerms),
}

impl Call {
    /// The operation of a function that accepts only a number.
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
    /// The columns that the expression reads, each once. Complete only if there are few, as needed for caching by one
    /// or two.
    pub inputs: Vec<usize>,
    /// True if the value depends on nothing but the inputs.
    pub pure: bool,
    /// True if a part, such as one on strings or dates, costs more than looking up a cached result.
    pub is_costly: bool,
    /// Number of parts (operations, variables and constants) of the expression.
    pub parts: usize,
    /// Memory that the compiled expression takes.
    charge: OperatorCharge,
}

/// Outcome of compiling a constant pattern together with an expression.
enum FixedPattern {
    Compiled(RegexPattern),
    Invalid,
    /// Not compiled yet, for want of memory.
    Later,
}

struct ExprCompiler<'c, 'r> {
    out: CompiledExpr,
    variables: &'c [(Variable, Slot)],
    /// The slots of variables by name; empty if there are few.
    by_name: FxHashMap<&'c str, Slot>,
    layout: &'c SlotLayout<'c>,
    base: Option<Arc<BaseIri>>,
    /// The number of each constant.
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
        // Results are cached only by one or two inputs, so a long list need not be complete.
        if let ValueSource::Column(c) = value
            && self.out.inputs.len() <= FEW
            && !self.out.inputs.contains(&c)
        {
            self.out.inputs.push(c);
        }
        value
    }

    /// The code for a constant, which is stored once however often it occurs.
    fn constant(&mut self, term: &Canonical) -> Code {
        if let Some(place) = self.places.get(term) {
            return Code::Const(*place);
        }
        let place = self.out.constants.len();
        self.bytes += CONSTANT;
        if term.len() < LONG {
            // The interpreter makes a copy of a short constant.
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
                // Chains of AND or OR may be long and are nested on one side, so they are flattened without recursion.
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
        // The planner adds the number of the solution to BNODE with a label, so that it then has two arguments.
        let labelled = matches!((f, list.len()), (Function::BNode, 2));
        if !definition.takes(list.len()) && !labelled {
            return Err(unsupported(f, list));
        }
        self.out.is_costly |= definition.cost == Cost::Text;
        self.out.pure &= definition.deterministic;
        // A search for a constant text is prepared once, like that for a pattern.
        if let (Function::Contains, [text, E::Literal(part)]) = (f, list)
            && let Some(part) = part.as_plain_string()
            && let FixedPattern::Compiled(pattern) = self.fixed(part, "q", Use::Match)?
        {
            let text = self.code(text, depth)?;
            return Ok(Code::Regex(Box::new(Matches { text, pattern })));
        }
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

    /// A call of a function that is named by an IRI.
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

    /// Compiles a constant pattern, as long as there is memory.
    fn fixed(&mut self, pattern: &str, flags: &str, of_use: Use) -> Result<FixedPattern> {
        if self.fixed >= FIXED {
            return Ok(FixedPattern::Later);
        }
        self.ctx.check()?;
        let Some(compiled) = patterns::compiled(pattern, flags, of_use) else {
            return Ok(FixedPattern::Invalid);
        };
        let bytes = compiled.bytes();
        if self.out.charge.set(self.bytes + bytes).is_err() {
            self.fixed = FIXED;
            return Ok(FixedPattern::Later);
        }
        self.bytes += bytes;
        self.fixed += 1;
        Ok(FixedPattern::Compiled(RegexPattern::Fixed(Box::new(
            compiled,
        ))))
    }

    /// A regular expression with its flags. If both are constant it is compiled here; `None` if it is invalid, which is
    /// an error in every row.
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
        if let Some((pattern, flags)) = known {
            match self.fixed(&pattern, &flags, of_use)? {
                FixedPattern::Compiled(pattern) => return Ok(Some(pattern)),
                FixedPattern::Invalid => return Ok(None),
                FixedPattern::Later => {}
            }
        }
        let flags = flags.map(|f| self.code(f, depth)).transpose()?;
        Ok(Some(RegexPattern::Computed(
            self.code(pattern, depth)?,
            flags,
        )))
    }
}

/// The error for a call that the planner rejects; a plan may come from elsewhere.
fn unsupported(f: &Function, list: &[E]) -> Error {
    Error::Unsupported(format!("the function {f} with {} arguments", list.len()))
}
