//! Built-in functions of SPARQL 1.1 §17.4, and those for terms of RDF 1.2.

use super::Free;
use super::cast;
use super::duration::Duration;
use super::number::Number;
use super::operate;
use super::string::{self, compatible, simple, text, text_of};
use super::temporal::{TemporalKind, zone_text};
use super::value::{Value, ValueKind};
use md5::Md5;
use num_bigint::BigInt;
use num_rational::BigRational;
use oxrdf::{BaseDirection, NamedNode, NamedOrBlankNode, Term, Triple};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use spargebra::algebra::Function;

/// Evaluates a function call without errors in its arguments. `None` is an error.
pub(super) fn call(f: &Function, args: &[Value], free: &Free) -> Option<Value> {
    let one = args.first();
    let why = "a numeric function of a duration";
    let number = |f: fn(&Number) -> Number| operate::of_number(one?, f, why, free);
    let truth = |b: bool| Some(Value::from(b));
    match f {
        Function::Str => text_of(one?).map(Value::string),
        Function::Lang | Function::LangDir => language(f, one?),
        Function::HasLang => truth(matches!(one?.kind(), ValueKind::Text(_, Some(_)))),
        Function::HasLangDir => truth(matches!(
            one?.kind(),
            ValueKind::Text(_, Some((_, Some(_))))
        )),
        Function::LangMatches => truth(string::lang_matches(&simple(one?)?, &simple(&args[1])?)),
        Function::Datatype => match one?.term() {
            Term::Literal(l) => Some(Value::from_term(&l.datatype().into_owned().into())),
            _ => None,
        },
        Function::Iri => iri(one?, free),
        Function::BNode | Function::Rand | Function::Now | Function::Uuid | Function::StrUuid => {
            free.note("another value at each call");
            None
        }
        Function::Adjust => {
            free.note("ADJUST is not a function of SPARQL 1.1");
            None
        }
        Function::Abs => number(Number::abs),
        Function::Ceil => number(Number::ceil),
        Function::Floor => number(Number::floor),
        Function::Round => number(Number::round),
        Function::Concat => string::concat(args),
        Function::SubStr => string::substring(args, free),
        Function::StrLen => text(one?).map(|(s, _)| Value::integer(s.chars().count())),
        Function::Replace => string::replace(args),
        Function::UCase => text(one?).map(|(s, t)| Value::tagged(s.to_uppercase(), t.as_ref())),
        Function::LCase => text(one?).map(|(s, t)| Value::tagged(s.to_lowercase(), t.as_ref())),
        Function::EncodeForUri => text(one?).map(|(s, _)| Value::string(string::encode(&s))),
        Function::Contains => {
            compatible(one?, &args[1]).and_then(|(a, b, _)| truth(a.contains(&b)))
        }
        Function::StrStarts => {
            compatible(one?, &args[1]).and_then(|(a, b, _)| truth(a.starts_with(&b)))
        }
        Function::StrEnds => {
            compatible(one?, &args[1]).and_then(|(a, b, _)| truth(a.ends_with(&b)))
        }
        Function::StrBefore => string::before(one?, &args[1]),
        Function::StrAfter => string::after(one?, &args[1]),
        Function::Year
        | Function::Month
        | Function::Day
        | Function::Hours
        | Function::Minutes
        | Function::Seconds
        | Function::Timezone
        | Function::Tz => part(f, one?, free),
        Function::Md5 => hash(one?, |b| <Md5 as md5::Digest>::digest(b).to_vec()),
        Function::Sha1 => hash(one?, |b| <Sha1 as sha1::Digest>::digest(b).to_vec()),
        Function::Sha256 => hash(one?, |b| <Sha256 as sha2::Digest>::digest(b).to_vec()),
        Function::Sha384 => hash(one?, |b| <Sha384 as sha2::Digest>::digest(b).to_vec()),
        Function::Sha512 => hash(one?, |b| <Sha512 as sha2::Digest>::digest(b).to_vec()),
        Function::StrLang | Function::StrLangDir => with_language(args),
        Function::StrDt => match args[1].kind() {
            ValueKind::Iri(datatype) => Some(cast::typed_literal(&simple(one?)?, &datatype)),
            _ => None,
        },
        Function::IsIri => truth(matches!(one?.kind(), ValueKind::Iri(_))),
        Function::IsBlank => truth(matches!(one?.kind(), ValueKind::Blank)),
        Function::IsLiteral => truth(matches!(one?.term(), Term::Literal(_))),
        Function::IsNumeric => truth(matches!(one?.kind(), ValueKind::Number(_))),
        Function::Regex => truth(string::matches(args)?),
        Function::Triple => triple(args),
        Function::Subject | Function::Predicate | Function::Object => triple_part(f, one?),
        Function::IsTriple => truth(matches!(one?.kind(), ValueKind::Triple(_))),
        Function::Custom(name) => cast::cast(name.as_str(), one?, free),
    }
}

/// The language tag or the base direction of a literal.
fn language(f: &Function, value: &Value) -> Option<Value> {
    match value.kind() {
        ValueKind::Iri(_) | ValueKind::Blank | ValueKind::Triple(_) => None,
        ValueKind::Text(_, Some((tag, direction))) => match (f, direction) {
            (Function::Lang, _) => Some(Value::string(tag)),
            (_, Some(direction)) => Some(Value::string(direction.to_string())),
            (_, None) => Some(Value::string("")),
        },
        _ => Some(Value::string("")),
    }
}

/// STRLANG, and STRLANGDIR if there is a third argument: the string with a language tag and a base direction.
fn with_language(args: &[Value]) -> Option<Value> {
    let (s, tag) = (simple(&args[0])?, simple(&args[1])?);
    let literal = match args.get(2) {
        None => oxrdf::Literal::new_language_tagged_literal(s, tag),
        Some(direction) => {
            let direction = match simple(direction)?.as_str() {
                "ltr" => BaseDirection::Ltr,
                "rtl" => BaseDirection::Rtl,
                _ => return None,
            };
            oxrdf::Literal::new_directional_language_tagged_literal(s, tag, direction)
        }
    };
    Some(Value::from_term(&literal.ok()?.into()))
}

fn iri(value: &Value, free: &Free) -> Option<Value> {
    match value.kind() {
        ValueKind::Iri(_) => Some(value.clone()),
        ValueKind::Text(s, None) => {
            if !s.contains(':') {
                free.note("a relative IRI needs a base");
            }
            Some(Value::from_term(&NamedNode::new(s).ok()?.into()))
        }
        _ => None,
    }
}

fn triple(args: &[Value]) -> Option<Value> {
    let subject: NamedOrBlankNode = match args[0].term().clone() {
        Term::NamedNode(n) => n.into(),
        Term::BlankNode(b) => b.into(),
        _ => return None,
    };
    let Term::NamedNode(predicate) = args[1].term().clone() else {
        return None;
    };
    let object = &args[2];
    let triple = Triple::new(subject, predicate, object.term().clone());
    Some(if object.is_computed() {
        Value::computed(triple.into())
    } else {
        Value::from_term(&triple.into())
    })
}

fn triple_part(f: &Function, value: &Value) -> Option<Value> {
    let Term::Triple(t) = value.term() else {
        return None;
    };
    Some(match f {
        Function::Subject => Value::from_term(&t.subject.clone().into()),
        Function::Predicate => Value::from_term(&t.predicate.clone().into()),
        _ if value.is_computed() => Value::computed(t.object.clone()),
        _ => Value::from_term(&t.object),
    })
}

/// A component of a date or time, such as its year; an error if the datatype has no such component.
fn part(f: &Function, value: &Value, free: &Free) -> Option<Value> {
    use TemporalKind::{Date, DateTime, Day, Month, MonthDay, Time, Year, YearMonth};
    let t = match value.kind() {
        ValueKind::Temporal(t) => t,
        ValueKind::Duration(_) => {
            free.note("a part of a duration");
            return None;
        }
        _ => return None,
    };
    if !matches!(t.kind, DateTime | Date | Time) {
        free.note("a part of gYear and its like");
    }
    let has = match f {
        Function::Year => matches!(t.kind, DateTime | Date | Year | YearMonth),
        Function::Month => matches!(t.kind, DateTime | Date | Month | YearMonth | MonthDay),
        Function::Day => matches!(t.kind, DateTime | Date | Day | MonthDay),
        Function::Hours | Function::Minutes | Function::Seconds => {
            matches!(t.kind, DateTime | Time)
        }
        _ => true,
    };
    if !has {
        return None;
    }
    let fields = t.fields();
    Some(match f {
        Function::Year => Value::integer(fields.year),
        Function::Month => Value::integer(fields.month),
        Function::Day => Value::integer(fields.day),
        Function::Hours => Value::integer(fields.hour),
        Function::Minutes => Value::integer(fields.minute),
        Function::Seconds => Number::Decimal(fields.second).value(),
        Function::Timezone => {
            Duration::of_seconds(BigRational::from(BigInt::from(t.zone? * 60))).value()
        }
        _ => Value::string(zone_text(t.zone)),
    })
}

fn hash(value: &Value, digest: impl Fn(&[u8]) -> Vec<u8>) -> Option<Value> {
    let digest = digest(simple(value)?.as_bytes());
    let text: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    Some(Value::string(text))
}
