//! Finds the terms of a set that equal a given term by `=`, without comparing with each of them.
//!
//! Equality of numbers is not transitive: 16777217 and 16777216 both equal `"16777216"^^xsd:float`. So there is no key
//! that all equal values share. Instead, the numbers of the set are sorted once for each numeric type in which they may
//! be compared. The numbers that equal a given one are then a range of each sorted list.

use super::machine::Interpreter;
use super::val::Val;
use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use jindou_model::term;
use jindou_model::{Holder, Result};
use jindou_values::{Decimal, DurationKey, Exact, Num, Number, TemporalKind, Value, simple_text};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Number of terms between two checks of the deadline.
const CHECK: usize = 1 << 12;
/// Texts are charged whenever they have grown by this many bytes.
const CHARGED: usize = 1 << 20;
/// Approximate bytes of a literal of a derived type, apart from its text.
const DERIVED: usize = 96;
/// Number of cached results of a worker from which on the cache is cleared.
const MEMO: usize = 1 << 18;

/// Terms by the way in which the terms that equal them are found.
enum EqualityClass {
    /// Equals only itself: IRIs, blank nodes, strings with a language tag, and literals whose value is unknown.
    Itself,
    /// A literal of `xsd:string`: equals itself, and literals of derived types with the same text.
    String,
    /// A literal of a type derived from `xsd:string`: equals all strings with the same text. Its canonical bytes are
    /// then in `Interpreter::term`.
    Derived,
    /// Equals nothing: NaN, unbound.
    Nothing,
    Number(Number),
    /// Equals all values that have the same key.
    Keyed(EqualityKey),
    /// Must be compared with each such term: triple terms.
    Compared,
}

/// Keys of values whose equality is transitive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EqualityKey {
    Boolean(bool),
    Time(TemporalKind, i128),
    Duration(DurationKey),
}

fn class_of(m: &mut Interpreter, ctx: &EvalContext<'_>, id: u32) -> EqualityClass {
    if id == 0 {
        return EqualityClass::Nothing;
    }
    let Some(tag) = m.tag(ctx, id) else {
        return EqualityClass::Nothing;
    };
    if term::NUMERIC_TAGS.contains(&tag)
        && let Some(n) = m.number(ctx, Val::Id(id))
    {
        return if n.is_nan() {
            EqualityClass::Nothing
        } else {
            EqualityClass::Number(n.into())
        };
    }
    if tag == term::TRIPLE {
        return EqualityClass::Compared;
    }
    match tag {
        term::STRING => return EqualityClass::String,
        term::TYPED => {}
        tag if tag < term::FIRST_DATATYPE => return EqualityClass::Itself,
        _ => {}
    }
    m.load(ctx, id);
    match jindou_values::value(&m.term) {
        Some(Value::String(_)) => EqualityClass::Derived,
        Some(Value::Number(n)) => EqualityClass::Number(n),
        Some(Value::Boolean(b)) => EqualityClass::Keyed(EqualityKey::Boolean(b)),
        Some(Value::Temporal(t)) => EqualityClass::Keyed(EqualityKey::Time(t.kind(), t.instant())),
        Some(Value::Duration(d)) => EqualityClass::Keyed(EqualityKey::Duration(d.key())),
        _ => EqualityClass::Itself,
    }
}

/// Values in ascending order, each with its term's id.
type Sorted<K> = Vec<(K, u32)>;

/// Floating point numbers in ascending order, without NaN. Negative zero is stored as zero.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Real(f64);

impl Real {
    fn float(f: f32) -> Self {
        Self(f64::from(f))
    }

    fn double(d: f64) -> Self {
        Self(d)
    }
}

/// A set of terms, prepared for finding those that equal a given term. O(n log n) to build.
pub(crate) struct Equals {
    /// Integers and decimals, one list for each type in which they are compared: exactly (`long` if they do not fit
    /// `exact`), as floats, and as doubles.
    exact: Sorted<Decimal>,
    long: Vec<(Exact, u32)>,
    as_floats: Sorted<Real>,
    as_doubles: Sorted<Real>,
    floats: Sorted<Real>,
    doubles: Sorted<Real>,
    keyed: Sorted<EqualityKey>,
    /// Bytes of the digits of long numbers.
    long_bytes: usize,
    compared: Vec<u32>,
    /// The ids of literals of types derived from `xsd:string`, by their text.
    derived: FxHashMap<Box<str>, Vec<u32>>,
    derived_bytes: usize,
    charge: OperatorCharge,
}

impl Equals {
    /// Builds the set of terms with these ids, which must be distinct.
    pub fn new(ids: &[u32], holder: Holder, ctx: &EvalContext<'_>) -> Result<Self> {
        let mut out = Self {
            exact: vec![],
            long: vec![],
            as_floats: vec![],
            as_doubles: vec![],
            floats: vec![],
            doubles: vec![],
            keyed: vec![],
            long_bytes: 0,
            compared: vec![],
            derived: FxHashMap::default(),
            derived_bytes: 0,
            charge: OperatorCharge::for_holder(holder, ctx.budget),
        };
        let mut m = Interpreter::empty(ctx);
        let mut charged = 0;
        for part in ids.chunks(CHECK) {
            ctx.check()?;
            for &id in part {
                match class_of(&mut m, ctx, id) {
                    EqualityClass::Itself | EqualityClass::String | EqualityClass::Nothing => {}
                    EqualityClass::Derived => {
                        if let Some(text) = text_of(&m) {
                            out.derived_bytes += text.len() + DERIVED;
                            out.derived.entry(text.into()).or_default().push(id);
                        }
                        if out.derived_bytes > charged + CHARGED {
                            charged = out.derived_bytes;
                            out.charge.set(out.bytes())?;
                        }
                    }
                    EqualityClass::Number(n) => out.number(&n, id),
                    EqualityClass::Keyed(key) => out.keyed.push((key, id)),
                    EqualityClass::Compared => out.compared.push(id),
                }
            }
            out.charge.set(out.bytes())?;
        }
        ctx.check()?;
        out.exact.sort_unstable();
        out.long.sort_unstable();
        out.keyed.sort_unstable();
        for list in [
            &mut out.as_floats,
            &mut out.as_doubles,
            &mut out.floats,
            &mut out.doubles,
        ] {
            list.sort_unstable_by(|a, b| a.0.0.total_cmp(&b.0.0));
        }
        Ok(out)
    }

    fn number(&mut self, n: &Number, id: u32) {
        match n {
            Number::Small(Num::Flt(f)) => self.floats.push((positive(Real::float(*f)), id)),
            Number::Small(Num::Dbl(d)) => self.doubles.push((positive(Real::double(*d)), id)),
            exact => {
                match ExactKey::of_number(exact) {
                    Some(ExactKey::Small(d)) => self.exact.push((d, id)),
                    Some(ExactKey::Long(e)) => {
                        self.long_bytes += e.bytes();
                        self.long.push((e, id));
                    }
                    None => {}
                }
                self.as_floats.push((positive(Real::float(n.to_f32())), id));
                self.as_doubles
                    .push((positive(Real::double(n.to_f64())), id));
            }
        }
    }

    fn bytes(&self) -> usize {
        let reals = [
            &self.as_floats,
            &self.as_doubles,
            &self.floats,
            &self.doubles,
        ];
        self.exact.capacity() * size_of::<(Decimal, u32)>()
            + self.long.capacity() * size_of::<(Exact, u32)>()
            + self.long_bytes
            + reals.iter().map(|r| r.capacity()).sum::<usize>() * size_of::<(Real, u32)>()
            + self.keyed.capacity() * size_of::<(EqualityKey, u32)>()
            + self.compared.capacity() * 4
            + self.derived_bytes
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.charge.bytes()
    }
}

/// The text of the string whose canonical bytes the interpreter has loaded.
fn text_of(m: &Interpreter) -> Option<&str> {
    simple_text(&term::parts(&m.term)?)
}

/// Replaces negative zero by zero, since the two would be sorted apart.
fn positive(r: Real) -> Real {
    Real(r.0 + 0.0)
}

/// Sort key of an integer or decimal: equal values have equal keys, whatever their types are.
enum ExactKey {
    Small(Decimal),
    Long(Exact),
}

impl ExactKey {
    fn of_number(n: &Number) -> Option<Self> {
        match n {
            Number::Small(Num::Int(i)) => return Some(Self::Small((*i).into())),
            Number::Small(Num::Dec(d)) => return Some(Self::Small(*d)),
            _ => {}
        }
        match Number::decimal(n.exact()?) {
            Number::Small(Num::Dec(d)) => Some(Self::Small(d)),
            Number::Decimal(e) => Some(Self::Long(e)),
            _ => None,
        }
    }
}

fn range<K: PartialOrd>(list: &[(K, u32)], key: K, out: &mut Vec<u32>) {
    let from = list.partition_point(|e| e.0 < key);
    let equal = list
        .iter()
        .skip(from)
        .take_while(|e| e.0.partial_cmp(&key) == Some(Ordering::Equal));
    out.extend(equal.map(|e| e.1));
}

/// One worker's lookups in an [`Equals`].
pub(crate) struct Partners {
    machine: Interpreter,
    /// Cache: for an id, the range of `list` with the terms that equal it.
    memo: FxHashMap<u32, (u32, u32)>,
    list: Vec<u32>,
    itself: [u32; 1],
    charge: OperatorCharge,
}

impl Partners {
    pub fn new(ctx: &EvalContext<'_>) -> Self {
        Self {
            machine: Interpreter::empty(ctx),
            memo: FxHashMap::default(),
            list: vec![],
            itself: [0],
            charge: OperatorCharge::new(ctx.budget),
        }
    }

    /// Ids of the terms of the set that equal this one. If a term equals only itself, it is returned without a check
    /// whether the set contains it.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn equal_ids(&mut self, ctx: &EvalContext<'_>, set: &Equals, id: u32) -> Result<&[u32]> {
        if let Some(&(from, to)) = self.memo.get(&id) {
            return Ok(&self.list[from as usize..to as usize]);
        }
        let class = class_of(&mut self.machine, ctx, id);
        let is_string = matches!(class, EqualityClass::String);
        if matches!(class, EqualityClass::Itself) || is_string && set.derived.is_empty() {
            self.itself[0] = id;
            return Ok(&self.itself);
        }
        if self.memo.len() >= MEMO || self.list.len() >= MEMO * 16 {
            self.memo.clear();
            self.list.clear();
        }
        let from = self.list.len();
        let out = &mut self.list;
        match class {
            EqualityClass::Itself | EqualityClass::Nothing => {}
            EqualityClass::String | EqualityClass::Derived => {
                let machine = &mut self.machine;
                if is_string {
                    machine.load(ctx, id);
                    out.push(id);
                } else if let Some(text) = text_of(machine) {
                    let plain = [&[term::STRING], text.as_bytes()].concat();
                    out.push(ctx.terms.resolve(ctx.vocabulary, &plain, ctx.budget)?.0);
                }
                let derived = text_of(machine).and_then(|text| set.derived.get(text));
                out.extend(derived.into_iter().flatten());
            }
            EqualityClass::Number(n) => match n {
                Number::Small(Num::Flt(f)) => {
                    let f = Real::float(f);
                    range(&set.as_floats, f, out);
                    range(&set.floats, f, out);
                    range(&set.doubles, f, out);
                }
                Number::Small(Num::Dbl(d)) => {
                    let d = Real::double(d);
                    range(&set.as_doubles, d, out);
                    range(&set.floats, d, out);
                    range(&set.doubles, d, out);
                }
                exact => {
                    match ExactKey::of_number(&exact) {
                        Some(ExactKey::Small(d)) => range(&set.exact, d, out),
                        Some(ExactKey::Long(e)) => range(&set.long, e, out),
                        None => {}
                    }
                    range(&set.floats, Real::float(exact.to_f32()), out);
                    range(&set.doubles, Real::double(exact.to_f64()), out);
                }
            },
            EqualityClass::Keyed(key) => range(&set.keyed, key, out),
            EqualityClass::Compared => {
                for (i, &other) in set.compared.iter().enumerate() {
                    if i % 64 == 0 {
                        ctx.check()?;
                    }
                    self.machine.clear();
                    if self.machine.equal(ctx, Val::Id(id), Val::Id(other)) == Some(true) {
                        out.push(other);
                    }
                }
            }
        }
        if let Some(new) = self.list.get_mut(from..) {
            new.sort_unstable();
        }
        let to = self.list.len();
        self.memo.insert(id, (from as u32, to as u32));
        self.charge
            .set(self.memo.capacity() * 13 + self.list.capacity() * 4)?;
        Ok(&self.list[from..to])
    }
}
