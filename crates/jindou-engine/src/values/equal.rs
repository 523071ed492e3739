//! Finds the terms of a set that equal a given one, in the sense of `=`, without comparing with each.
//!
//! Equality of numbers is not transitive: 16777217 and 16777216 both equal `"16777216"^^xsd:float`. So there is no key that
//! equal values share. Instead, the numbers of the set are sorted by what each type of number compares by, and the partners of
//! one are a range of each sort.

use super::machine::Machine;
use super::val::Val;
use crate::batch::Charge;
use crate::explore::Run;
use jindou_model::term;
use jindou_model::{Holder, Result};
use jindou_values::{Decimal, DurationKey, Exact, Kind, Num, Number, Value};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Terms between two looks at the clock.
const CHECK: usize = 1 << 12;
/// Answers kept by a worker; beyond, all are forgotten.
const MEMO: usize = 1 << 18;

/// How a term equals others.
enum Class {
    /// Only itself: IRIs, blank nodes, strings with and without a language, literals without a value here, of which only the same
    /// term is known to be equal.
    Itself,
    /// Nothing: NaN, unbound.
    Nothing,
    Number(Number),
    /// All values that share this key.
    Keyed(Key),
    /// Nothing is known but by comparing: triple terms.
    Compared,
}

/// Values whose equality is transitive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Boolean(bool),
    Time(Kind, i128),
    Duration(DurationKey),
}

fn class_of(m: &mut Machine, run: &Run<'_>, id: u32) -> Class {
    if id == 0 {
        return Class::Nothing;
    }
    let Some(tag) = m.tag(run, id) else {
        return Class::Nothing;
    };
    if term::NUMERIC_TAGS.contains(&tag)
        && let Some(n) = m.number(run, Val::Id(id))
    {
        return if n.is_nan() {
            Class::Nothing
        } else {
            Class::Number(n.into())
        };
    }
    if tag == term::TRIPLE {
        return Class::Compared;
    }
    if tag < term::FIRST_DATATYPE {
        return Class::Itself;
    }
    m.load(run, id);
    match jindou_values::value(&m.term) {
        Some(Value::Number(n)) => Class::Number(n),
        Some(Value::Boolean(b)) => Class::Keyed(Key::Boolean(b)),
        Some(Value::Temporal(t)) => Class::Keyed(Key::Time(t.kind(), t.instant())),
        Some(Value::Duration(d)) => Class::Keyed(Key::Duration(d.key())),
        _ => Class::Itself,
    }
}

/// A value to sort by, and whose it is.
type Sorted<K> = Vec<(K, u32)>;

/// Floating point numbers without NaN, in their order; both zeros are one.
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

/// A set of terms, ready to be asked who equals what. O(n log n) to make.
pub(crate) struct Equals {
    /// Integers and decimals by their value, as floats and as doubles: what compares with each type.
    exact: Sorted<Decimal>,
    long: Vec<(Exact, u32)>,
    as_floats: Sorted<Real>,
    as_doubles: Sorted<Real>,
    floats: Sorted<Real>,
    doubles: Sorted<Real>,
    keyed: Sorted<Key>,
    /// Of the digits of long numbers.
    long_bytes: usize,
    compared: Vec<u32>,
    charge: Charge,
}

impl Equals {
    /// Of distinct ids.
    pub fn new(ids: &[u32], holder: Holder, run: &Run<'_>) -> Result<Self> {
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
            charge: Charge::of(holder, run.budget),
        };
        let mut m = Machine::empty(run);
        for part in ids.chunks(CHECK) {
            run.check()?;
            for &id in part {
                match class_of(&mut m, run, id) {
                    Class::Itself | Class::Nothing => {}
                    Class::Number(n) => out.number(&n, id),
                    Class::Keyed(key) => out.keyed.push((key, id)),
                    Class::Compared => out.compared.push(id),
                }
            }
            out.charge.set(out.bytes())?;
        }
        run.check()?;
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
                match Place::of(exact) {
                    Some(Place::Small(d)) => self.exact.push((d, id)),
                    Some(Place::Long(e)) => {
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
            + self.keyed.capacity() * size_of::<(Key, u32)>()
            + self.compared.capacity() * 4
    }

    /// Bytes that it holds.
    pub fn held(&self) -> u64 {
        self.charge.bytes()
    }
}

/// Zero for both zeros, which sort apart.
fn positive(r: Real) -> Real {
    Real(r.0 + 0.0)
}

/// Where an integer or decimal is sorted: each value in one place, whatever its type.
enum Place {
    Small(Decimal),
    Long(Exact),
}

impl Place {
    fn of(n: &Number) -> Option<Self> {
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

/// Asks an [`Equals`]. One a worker.
pub(crate) struct Partners {
    machine: Machine,
    /// Where the partners of a number, date or the like were put.
    memo: FxHashMap<u32, (u32, u32)>,
    list: Vec<u32>,
    itself: [u32; 1],
    charge: Charge,
}

impl Partners {
    pub fn new(run: &Run<'_>) -> Self {
        Self {
            machine: Machine::empty(run),
            memo: FxHashMap::default(),
            list: vec![],
            itself: [0],
            charge: Charge::new(run.budget),
        }
    }

    /// Terms of the set for which `=` with this one is true, by their ids. A term that equals only itself is given whether the
    /// set has it or not.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn of(&mut self, run: &Run<'_>, set: &Equals, id: u32) -> Result<&[u32]> {
        if let Some(&(from, to)) = self.memo.get(&id) {
            return Ok(&self.list[from as usize..to as usize]);
        }
        let class = class_of(&mut self.machine, run, id);
        if matches!(class, Class::Itself) {
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
            Class::Itself | Class::Nothing => {}
            Class::Number(n) => match n {
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
                    match Place::of(&exact) {
                        Some(Place::Small(d)) => range(&set.exact, d, out),
                        Some(Place::Long(e)) => range(&set.long, e, out),
                        None => {}
                    }
                    range(&set.floats, Real::float(exact.to_f32()), out);
                    range(&set.doubles, Real::double(exact.to_f64()), out);
                }
            },
            Class::Keyed(key) => range(&set.keyed, key, out),
            Class::Compared => {
                for (i, &other) in set.compared.iter().enumerate() {
                    if i % 64 == 0 {
                        run.check()?;
                    }
                    self.machine.clear();
                    if self.machine.equal(run, Val::Id(id), Val::Id(other)) == Some(true) {
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
