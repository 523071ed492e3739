//! Casts of numbers and texts, without a term in between. What is not here (dates, booleans, numbers as text or in a narrower
//! type) `spareval` casts.

use super::machine::{Machine, Maybe};
use super::val::{Num, Text, Val};
use crate::explore::Run;
use jindou_model::term::{self, Parts};
use oxrdf::vocab::xsd;
use oxsdatatypes::{Decimal, Double, Float, Integer};

/// A cast (XPath constructor function) that has code here for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    String,
    Integer,
    Decimal,
    Float,
    Double,
}

impl Cast {
    /// The cast with this name.
    pub fn named(iri: &str) -> Option<Self> {
        let all = [
            (xsd::STRING, Self::String),
            (xsd::INTEGER, Self::Integer),
            (xsd::DECIMAL, Self::Decimal),
            (xsd::FLOAT, Self::Float),
            (xsd::DOUBLE, Self::Double),
        ];
        all.into_iter().find(|c| c.0.as_str() == iri).map(|c| c.1)
    }

    fn number(self, n: Num) -> Option<Num> {
        Some(match (self, n) {
            (Self::Float, Num::Flt(_))
            | (Self::Double, Num::Dbl(_))
            | (Self::Decimal, Num::Dec(_))
            | (Self::Integer, Num::Int(_)) => n,
            (Self::Float, Num::Int(i)) => Num::Flt(i.into()),
            (Self::Float, Num::Dec(d)) => Num::Flt(d.into()),
            (Self::Float, Num::Dbl(d)) => Num::Flt(d.into()),
            (Self::Double, n) => Num::Dbl(n.double()),
            (Self::Decimal, Num::Int(i)) => Num::Dec(i.into()),
            _ => return None,
        })
    }

    fn parse(self, text: &str) -> Option<Num> {
        match self {
            Self::String => None,
            Self::Integer => text.parse::<Integer>().ok().map(Num::Int),
            Self::Decimal => text.parse::<Decimal>().ok().map(Num::Dec),
            Self::Float => text.parse::<Float>().ok().map(Num::Flt),
            Self::Double => text.parse::<Double>().ok().map(Num::Dbl),
        }
    }
}

impl Machine {
    /// The value in another type, or no value where that is an error; `None` if it is not known here.
    pub(super) fn cast(&mut self, run: &Run<'_>, to: Cast, v: Val) -> Option<Maybe> {
        if to == Cast::String {
            return self.cast_to_string(run, v).map(Some);
        }
        if let Some(n) = self.number(run, v) {
            return to.number(n).map(|n| Some(Val::Num(n)));
        }
        let text = self.simple(run, v)?;
        Some(to.parse(self.str(text)).map(Val::Num))
    }

    /// Of strings, and of literals of a type that has no values here: their text.
    fn cast_to_string(&mut self, run: &Run<'_>, v: Val) -> Option<Val> {
        let text = match v {
            Val::Text(t) => Some(t.text),
            Val::Bool(_) | Val::Num(_) => None,
            Val::Id(_) | Val::Term(_) => {
                self.canonical(run, v);
                let held = std::mem::take(&mut self.term);
                let text = match term::parts(&held) {
                    Some(Parts::String(s) | Parts::Lang(s, _)) => Some(self.push(s.as_bytes())),
                    Some(Parts::Typed(s, datatype))
                        if !datatype.starts_with("http://www.w3.org/") =>
                    {
                        Some(self.push(s.as_bytes()))
                    }
                    _ => None,
                };
                self.term = held;
                text
            }
        };
        text.map(|text| Val::Text(Text { text, lang: None }))
    }
}
