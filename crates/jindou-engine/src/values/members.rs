//! IN with many members: the constants are in tables, so that a value is looked up instead of compared with each.

use super::code::Code;
use super::machine::{Interpreter, number_of_bytes};
use super::val::Val;
use crate::eval::EvalContext;
use jindou_model::{Result, term};
use jindou_plan::sparql::Canonical;
use jindou_values::Num;
use rustc_hash::FxHashSet;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Number of members from which on tables are used.
pub(crate) const MANY: usize = 32;
/// Number of comparisons between two checks of the deadline.
const LOOK: usize = 1 << 10;

/// A constant as a hash table's key, found by its canonical bytes. All workers share the bytes.
#[derive(PartialEq, Eq)]
struct ByBytes(Canonical);

impl Borrow<[u8]> for ByBytes {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Hash for ByBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0[..].hash(state);
    }
}

/// The members of an IN.
pub(crate) struct Members {
    list: Vec<Code>,
    /// IRIs, strings and strings with a language tag, which equal only the same term (apart from members in `others`).
    exact: FxHashSet<ByBytes>,
    /// For each number except those of `xsd:float`, which are compared after rounding: the nearest double, and the
    /// position in `list`. Ascending.
    numbers: Vec<(f64, u32)>,
    /// Positions of some string and some number. A value of the other kind is compared with them, to get the error of
    /// comparing with any of them.
    string: Option<usize>,
    number: Option<usize>,
    /// Positions of all other members, which are compared one by one.
    others: Vec<usize>,
}

impl Members {
    /// Builds the tables. `constants` has the canonical bytes of the constants in `list`.
    pub(crate) fn new(list: Vec<Code>, constants: &[Canonical]) -> Self {
        let mut out = Self {
            list: vec![],
            exact: FxHashSet::default(),
            numbers: vec![],
            string: None,
            number: None,
            others: vec![],
        };
        let mut seen = FxHashSet::default();
        for (place, member) in list.iter().enumerate() {
            let bytes = match member {
                // Skip a constant that was already added.
                Code::Const(n) if !seen.insert(*n) => continue,
                Code::Const(n) => Some(&constants[*n]),
                _ => None,
            };
            let exact = bytes.map(|bytes| ByBytes(bytes.clone()));
            let bytes: &[u8] = bytes.map_or(&[], |bytes| bytes);
            match bytes.first() {
                Some(&term::IRI) => out.exact.extend(exact),
                Some(&(term::STRING | term::LANG)) => {
                    out.exact.extend(exact);
                    out.string = Some(place);
                }
                _ => match number_of_bytes(bytes).and_then(|n| n.small()) {
                    Some(n) if !matches!(n, Num::Flt(_)) && !n.to_f64().is_nan() => {
                        out.numbers.push((n.to_f64(), place as u32));
                        out.number = Some(place);
                    }
                    _ => out.others.push(place),
                },
            }
        }
        out.numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.list = list;
        out
    }

    /// Range of `numbers` that may equal this number.
    fn near(&self, n: Num) -> Range<usize> {
        let place = |less: &dyn Fn(f64) -> bool| self.numbers.partition_point(|m| less(m.0));
        match n {
            Num::Flt(x) => place(&|m| (m as f32) < x)..place(&|m| (m as f32) <= x),
            n => {
                let x = n.to_f64();
                place(&|m| m < x)..place(&|m| m <= x)
            }
        }
    }

    /// True if the value equals a member. `None` if it equals none and a comparison is an error.
    pub(crate) fn have(
        &self,
        machine: &mut Interpreter,
        ctx: &EvalContext<'_>,
        value: Val,
        at: super::machine::BatchRow<'_>,
    ) -> Result<Option<bool>> {
        let tag = machine.tag_of(ctx, value);
        let exact = matches!(tag, term::IRI | term::BLANK | term::STRING | term::LANG);
        let mut failed = false;
        let mut compare = |machine: &mut Interpreter, place: usize| -> Result<bool> {
            let Some(member) = self.list.get(place) else {
                return Ok(false);
            };
            let equal = match machine.eval(ctx, member, at)? {
                Some(member) => machine.equal(ctx, value, member),
                None => None,
            };
            failed |= equal.is_none();
            Ok(equal == Some(true))
        };
        let of_others = match machine.number(ctx, value) {
            _ if exact => {
                machine.canonical(ctx, value);
                if self.exact.contains(machine.canonical_bytes()) {
                    return Ok(Some(true));
                }
                self.number
            }
            Some(n) if term::NUMERIC_TAGS.contains(&tag) => {
                for (i, m) in self.numbers[self.near(n)].iter().enumerate() {
                    if i % LOOK == LOOK - 1 {
                        ctx.check()?;
                    }
                    if compare(machine, m.1 as usize)? {
                        return Ok(Some(true));
                    }
                }
                self.string
            }
            _ => {
                // Dates, booleans, ill-typed literals: compared with all members one by one.
                for place in 0..self.list.len() {
                    if place % LOOK == LOOK - 1 {
                        ctx.check()?;
                    }
                    if compare(machine, place)? {
                        return Ok(Some(true));
                    }
                }
                return Ok((!failed).then_some(false));
            }
        };
        for (i, &place) in self.others.iter().chain(&of_others).enumerate() {
            if i % LOOK == LOOK - 1 {
                ctx.check()?;
            }
            if compare(machine, place)? {
                return Ok(Some(true));
            }
        }
        Ok((!failed).then_some(false))
    }
}
