//! Arithmetic on numbers of any length, dates, times and durations; casts.

use super::{Interpreter, Maybe, instant_of_id, number_of_bytes};
use crate::eval::EvalContext;
use crate::values::code::Cast;
use crate::values::val::{ArenaSpan, ArenaText, Val};
use jindou_model::term;
use jindou_values::{
    Arithmetic, DerivedType, Duration, Num, Number, Temporal, TemporalKind, Value, cast, cast_text,
    push_string, value,
};

/// A value for which arithmetic is defined.
enum ArithmeticValue {
    Number(Number),
    Time(Temporal),
    Duration(Duration),
}

impl Interpreter {
    fn scalar(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<ArithmeticValue> {
        match v {
            Val::Num(n) => return Some(ArithmeticValue::Number(n.into())),
            Val::Time(t) => return Some(ArithmeticValue::Time(t)),
            Val::Duration(d) => return Some(ArithmeticValue::Duration(d)),
            Val::Bool(_) | Val::Text(_) => return None,
            Val::Id(_) | Val::Term(_) => self.canonical(ctx, v),
        }
        Some(match value(&self.term)? {
            Value::Number(n) => ArithmeticValue::Number(n),
            Value::Temporal(t) => ArithmeticValue::Time(t),
            Value::Duration(d) => ArithmeticValue::Duration(d),
            _ => return None,
        })
    }

    /// A number as a value. If it is not small, the value is a literal.
    fn of_number(&mut self, n: Number) -> Val {
        match n {
            Number::Small(n) => Val::Num(n),
            long => {
                self.term.clear();
                long.push(&mut self.term);
                self.held_term()
            }
        }
    }

    /// The date or time of a value.
    pub(in crate::values) fn time(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<Temporal> {
        match v {
            Val::Time(t) => Some(t),
            _ => match self.scalar(ctx, v)? {
                ArithmeticValue::Time(t) => Some(t),
                _ => None,
            },
        }
    }

    /// The duration of a value.
    pub(in crate::values) fn duration(
        &mut self,
        ctx: &EvalContext<'_>,
        v: Val,
    ) -> Option<Duration> {
        match self.scalar(ctx, v)? {
            ArithmeticValue::Duration(d) => Some(d),
            _ => None,
        }
    }

    /// The instant of a date or time. For a term of the base, it is read from a column.
    pub(super) fn instant(
        &mut self,
        ctx: &EvalContext<'_>,
        v: Val,
    ) -> Option<(TemporalKind, i128)> {
        match v {
            Val::Time(t) => Some((t.kind(), t.instant())),
            Val::Id(id) if id < ctx.vocabulary.ranked_end() => match instant_of_id(ctx, id) {
                // A typed literal without a rank may be an `xsd:dateTimeStamp`.
                None if self.tag(ctx, id) == Some(term::TYPED) => self.instant_of_term(ctx, v),
                instant => instant,
            },
            Val::Id(_) | Val::Term(_) => self.instant_of_term(ctx, v),
            Val::Bool(_) | Val::Num(_) | Val::Text(_) | Val::Duration(_) => None,
        }
    }

    fn instant_of_term(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<(TemporalKind, i128)> {
        let t = self.time(ctx, v)?;
        Some((t.kind(), t.instant()))
    }

    /// `a op b` (SPARQL 1.1 §17.3; XPath F&O 3.1 §4.2, §8.4, §9.7, §9.8).
    pub(super) fn compute(
        &mut self,
        ctx: &EvalContext<'_>,
        op: Arithmetic,
        a: Val,
        b: Val,
    ) -> Maybe {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        if let (Some(x), Some(y)) = (self.number(ctx, a), self.number(ctx, b))
            && let Some(n) = x.compute(op, y)
        {
            return Some(Val::Num(n));
        }
        if op == Subtract
            && let (Some(x), Some(y)) = (self.instant(ctx, a), self.instant(ctx, b))
        {
            return (x.0 == y.0 && x.0 <= TemporalKind::Time)
                .then(|| Duration::of_units(x.1 - y.1).map(Val::Duration))?;
        }
        use ArithmeticValue::{Duration as D, Number as N, Time as T};
        let (a, b) = (self.scalar(ctx, a)?, self.scalar(ctx, b)?);
        match (a, b, op) {
            (N(a), N(b), op) => {
                let n = a.compute(op, &b)?;
                Some(self.of_number(n))
            }
            (T(t), D(d), Add) | (D(d), T(t), Add) => t.plus(d).map(Val::Time),
            (T(t), D(d), Subtract) => t.plus(d.negate()?).map(Val::Time),
            (D(a), D(b), Add) => a.plus(b).map(Val::Duration),
            (D(a), D(b), Subtract) => a.plus(b.negate()?).map(Val::Duration),
            (D(d), N(n), Multiply) | (N(n), D(d), Multiply) => d.multiply(&n).map(Val::Duration),
            (D(d), N(n), Divide) => d.divide(&n).map(Val::Duration),
            (D(a), D(b), Divide) => {
                let n = a.ratio(b)?;
                Some(self.of_number(n))
            }
            _ => None,
        }
    }

    /// A function of one number.
    pub(in crate::values) fn each_number(
        &mut self,
        ctx: &EvalContext<'_>,
        v: Val,
        small: impl FnOnce(Num) -> Option<Num>,
        any: impl FnOnce(&Number) -> Option<Number>,
    ) -> Maybe {
        if let Some(n) = self.number(ctx, v).and_then(small) {
            return Some(Val::Num(n));
        }
        match self.scalar(ctx, v)? {
            ArithmeticValue::Number(n) => {
                let n = any(&n)?;
                Some(self.of_number(n))
            }
            _ => None,
        }
    }

    /// The value of an integer; `None` for other values.
    pub(in crate::values) fn integer(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<i64> {
        match self.number(ctx, v) {
            Some(Num::Int(i)) => Some(i),
            Some(_) => None,
            // An integer of more than 64 bits is clamped, since it is beyond the end of any string anyway.
            None => match self.scalar(ctx, v)? {
                ArithmeticValue::Number(Number::Integer(e)) if e.is_negative() => Some(i64::MIN),
                ArithmeticValue::Number(Number::Integer(_)) => Some(i64::MAX),
                _ => None,
            },
        }
    }

    /// The value cast to another type; `None` for an error.
    pub(super) fn cast(&mut self, ctx: &EvalContext<'_>, to: Cast, v: Val) -> Maybe {
        let tag = match to {
            Cast::String => return self.cast_to_string(ctx, v),
            Cast::Derived(to) => return self.cast_to_derived(ctx, to, v),
            Cast::Coded(tag) => tag,
        };
        let result = match v {
            Val::Num(n) => cast(tag, &n.into()),
            Val::Bool(b) => cast(tag, &Value::Boolean(b)),
            Val::Time(t) => cast(tag, &Value::Temporal(t)),
            Val::Duration(d) => cast(tag, &Value::Duration(d)),
            Val::Text(t) if t.lang.is_some() => None,
            Val::Text(t) => cast_text(tag, self.str(t.text)),
            Val::Id(id) => match self.number_by_id(ctx, id) {
                Some(n) => cast(tag, &n.into()),
                None => {
                    self.canonical(ctx, v);
                    cast(tag, &value(&self.term)?)
                }
            },
            Val::Term(s) => match number_of_bytes(self.bytes(s)) {
                Some(n) => cast(tag, &Value::Number(n)),
                None => cast(tag, &value(self.bytes(s))?),
            },
        };
        Some(match result? {
            // A number of a derived type keeps that type.
            Value::Number(n) if tag >= term::FIRST_DATATYPE + 4 => {
                self.term.clear();
                self.term.push(tag);
                n.push_text(&mut self.term);
                self.held_term()
            }
            Value::Number(n) => self.of_number(n),
            Value::Boolean(b) => Val::Bool(b),
            Value::Temporal(t) => Val::Time(t),
            Value::Duration(d) => Val::Duration(d),
            _ => return None,
        })
    }

    /// A literal of a type derived from `xsd:dateTime` or `xsd:string`: the value is cast to the base type first (F&O
    /// 3.1 §19.3), and must be in the value space of the derived type.
    fn cast_to_derived(&mut self, ctx: &EvalContext<'_>, to: DerivedType, v: Val) -> Maybe {
        let base = match to {
            DerivedType::DateTimeStamp => Cast::Coded(TemporalKind::DateTime.tag()),
            _ => Cast::String,
        };
        let based = self.cast(ctx, base, v)?;
        let mut literal = vec![];
        let text = match based {
            Val::Text(t) => self.str(t.text),
            other => {
                self.canonical(ctx, other);
                std::str::from_utf8(self.term.get(1..)?).ok()?
            }
        };
        if !to.push_cast(text, &mut literal) {
            return None;
        }
        Some(Val::Term(self.push(&literal)))
    }

    /// STR-like cast: the text of strings, IRIs and literals without a known value, otherwise the value's canonical
    /// form.
    fn cast_to_string(&mut self, ctx: &EvalContext<'_>, v: Val) -> Maybe {
        if let Val::Text(t) = v {
            return Some(Val::Text(ArenaText { lang: None, ..t }));
        }
        self.canonical(ctx, v);
        let start = self.arena.len() as u32;
        if !push_string(&value(&self.term)?, &mut self.arena) {
            return None;
        }
        let end = self.arena.len() as u32;
        Some(Val::Text(ArenaText {
            text: ArenaSpan { start, end },
            lang: None,
        }))
    }
}
