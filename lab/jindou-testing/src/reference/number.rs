//! Numbers: unbounded integers and decimals, IEEE floats and doubles.

use super::typed;
use super::value::Value;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Number of fractional digits above which implementations may round a decimal: XPath F&O 3.1 §4.2 requires 18 digits
/// in total.
pub(crate) const DIGITS: usize = 18;

/// A number, in one of the four types in which XPath computes.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Integer(BigInt),
    Decimal(BigRational),
    Float(f32),
    Double(f64),
}

/// Two numbers, converted to the wider of their types (XPath 3.1 §B.1).
pub(crate) enum Pair {
    Integer(BigInt, BigInt),
    Decimal(BigRational, BigRational),
    Float(f32, f32),
    Double(f64, f64),
}

/// Derived integer datatypes, each with its smallest and largest value; `None` if unlimited.
const DERIVED: [(&str, Option<&str>, Option<&str>); 12] = [
    ("nonPositiveInteger", None, Some("0")),
    ("negativeInteger", None, Some("-1")),
    (
        "long",
        Some("-9223372036854775808"),
        Some("9223372036854775807"),
    ),
    ("int", Some("-2147483648"), Some("2147483647")),
    ("short", Some("-32768"), Some("32767")),
    ("byte", Some("-128"), Some("127")),
    ("nonNegativeInteger", Some("0"), None),
    ("unsignedLong", Some("0"), Some("18446744073709551615")),
    ("unsignedInt", Some("0"), Some("4294967295")),
    ("unsignedShort", Some("0"), Some("65535")),
    ("unsignedByte", Some("0"), Some("255")),
    ("positiveInteger", Some("1"), None),
];

fn digits(s: &str) -> bool {
    !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())
}

fn unsigned(s: &str) -> &str {
    s.strip_prefix(['+', '-']).unwrap_or(s)
}

pub(crate) fn integer(text: &str) -> Option<BigInt> {
    digits(unsigned(text)).then(|| text.strip_prefix('+').unwrap_or(text).parse().ok())?
}

/// Parses digits with at most one point among them; at least one digit is required.
pub(crate) fn decimal(text: &str) -> Option<BigRational> {
    let body = unsigned(text);
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    let all = format!("{whole}{fraction}");
    if !digits(&all) {
        return None;
    }
    let value = BigRational::new(
        all.parse().ok()?,
        BigInt::from(10).pow(fraction.len() as u32),
    );
    Some(if text.starts_with('-') { -value } else { value })
}

/// Parses a float or double; `None` for other texts. XML Schema 1.1 also allows `+INF`.
fn floating<T: std::str::FromStr>(text: &str) -> Option<T> {
    match text {
        "INF" | "+INF" => return "inf".parse().ok(),
        "-INF" => return "-inf".parse().ok(),
        "NaN" => return "NaN".parse().ok(),
        _ => {}
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    decimal(mantissa)?;
    integer(exponent)?;
    // Rust's parser rounds correctly, also to infinity and to zero.
    text.parse().ok()
}

impl Number {
    pub fn is_datatype(local: &str) -> bool {
        matches!(local, "integer" | "decimal" | "float" | "double")
            || DERIVED.iter().any(|(name, ..)| *name == local)
    }

    pub fn parse(text: &str, local: &str) -> Option<Self> {
        match local {
            "integer" => integer(text).map(Self::Integer),
            "decimal" => decimal(text).map(Self::Decimal),
            "float" => floating(text).map(Self::Float),
            "double" => floating(text).map(Self::Double),
            _ => {
                let (_, least, greatest) = DERIVED.iter().find(|(name, ..)| *name == local)?;
                let n = integer(text)?;
                let bound = |b: &Option<&str>| b.map(|b| b.parse::<BigInt>().expect("a bound"));
                let inside =
                    bound(least).is_none_or(|b| n >= b) && bound(greatest).is_none_or(|b| n <= b);
                inside.then_some(Self::Integer(n))
            }
        }
    }

    /// The number as a literal, in one of its many possible lexical forms.
    pub fn value(&self) -> Value {
        Value::computed(match self {
            Self::Integer(n) => typed(n.to_string(), "integer"),
            Self::Decimal(d) => typed(decimal_text(d), "decimal"),
            Self::Float(f) => typed(float_text(f64::from(*f), format!("{f:E}")), "float"),
            Self::Double(f) => typed(float_text(*f, format!("{f:E}")), "double"),
        })
    }

    pub fn rational(&self) -> Option<BigRational> {
        match self {
            Self::Integer(n) => Some(BigRational::from(n.clone())),
            Self::Decimal(d) => Some(d.clone()),
            Self::Float(f) => BigRational::from_float(*f),
            Self::Double(f) => BigRational::from_float(*f),
        }
    }

    /// The nearest double, rounded once from the exact value.
    pub fn double(&self) -> f64 {
        match self {
            Self::Float(f) => f64::from(*f),
            Self::Double(f) => *f,
            Self::Integer(n) => n.to_string().parse().expect("a number"),
            Self::Decimal(d) => decimal_text(d).parse().expect("a number"),
        }
    }

    /// The nearest float, rounded once from the exact value.
    pub fn float(&self) -> f32 {
        match self {
            Self::Float(f) => *f,
            Self::Double(f) => *f as f32,
            Self::Integer(n) => n.to_string().parse().expect("a number"),
            Self::Decimal(d) => decimal_text(d).parse().expect("a number"),
        }
    }

    pub fn pair(&self, other: &Self) -> Pair {
        use Number::{Decimal, Double, Float, Integer};
        match (self, other) {
            (Double(_), _) | (_, Double(_)) => Pair::Double(self.double(), other.double()),
            (Float(_), _) | (_, Float(_)) => Pair::Float(self.float(), other.float()),
            (Integer(a), Integer(b)) => Pair::Integer(a.clone(), b.clone()),
            (Decimal(_) | Integer(_), Decimal(_) | Integer(_)) => Pair::Decimal(
                self.rational().expect("finite"),
                other.rational().expect("finite"),
            ),
        }
    }

    /// The order of the numbers; `None` if one of them is NaN.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match self.pair(other) {
            Pair::Integer(a, b) => Some(a.cmp(&b)),
            Pair::Decimal(a, b) => Some(a.cmp(&b)),
            Pair::Float(a, b) => a.partial_cmp(&b),
            Pair::Double(a, b) => a.partial_cmp(&b),
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Self::Integer(n) => !n.is_zero(),
            Self::Decimal(d) => !d.is_zero(),
            Self::Float(f) => *f != 0.0 && !f.is_nan(),
            Self::Double(f) => *f != 0.0 && !f.is_nan(),
        }
    }

    /// Applies a function of the number's type. Floats are computed as doubles, which is exact for functions whose
    /// result is a float.
    fn map(
        &self,
        integer: fn(&BigInt) -> BigInt,
        decimal: fn(&BigRational) -> BigRational,
        double: fn(f64) -> f64,
    ) -> Self {
        match self {
            Self::Integer(n) => Self::Integer(integer(n)),
            Self::Decimal(d) => Self::Decimal(decimal(d)),
            Self::Float(f) => Self::Float(double(f64::from(*f)) as f32),
            Self::Double(f) => Self::Double(double(*f)),
        }
    }

    pub fn negate(&self) -> Self {
        self.map(|n| -n, |d| -d, |f| -f)
    }

    pub fn abs(&self) -> Self {
        self.map(BigInt::abs, BigRational::abs, f64::abs)
    }

    pub fn floor(&self) -> Self {
        self.map(BigInt::clone, BigRational::floor, f64::floor)
    }

    pub fn ceil(&self) -> Self {
        self.map(BigInt::clone, BigRational::ceil, f64::ceil)
    }

    /// Rounds to the nearest integer, halves towards positive infinity (fn:round). A zero has the argument's sign.
    pub fn round(&self) -> Self {
        self.map(BigInt::clone, half_up, |f| {
            match BigRational::from_float(f) {
                Some(d) if f != 0.0 => signed(f, &half_up(&d)),
                _ => f,
            }
        })
    }
}

/// `whole` as a double that has the sign of `was`, the number before rounding.
fn signed(was: f64, whole: &BigRational) -> f64 {
    let magnitude: f64 = whole.abs().to_integer().to_f64().expect("a double");
    magnitude.copysign(was)
}

pub(crate) fn half_up(d: &BigRational) -> BigRational {
    (d + BigRational::new(BigInt::one(), BigInt::from(2))).floor()
}

/// Number of fractional digits of a number; `None` if its decimal expansion is infinite.
pub(crate) fn places(d: &BigRational) -> Option<usize> {
    let mut rest = d.denom().clone();
    let (mut twos, mut fives) = (0, 0);
    for (factor, count) in [(2, &mut twos), (5, &mut fives)] {
        let factor = BigInt::from(factor);
        while (&rest % &factor).is_zero() {
            rest /= &factor;
            *count += 1;
        }
    }
    rest.is_one().then(|| twos.max(fives))
}

/// The number rounded to this many fractional digits.
pub(crate) fn rounded(d: &BigRational, digits: usize) -> BigRational {
    let scale = BigInt::from(10).pow(digits as u32);
    BigRational::new(
        (d * BigRational::from(scale.clone())).round().to_integer(),
        scale,
    )
}

/// XPath's lexical form of a decimal: without a point if it is whole, and without trailing zeros.
pub(crate) fn decimal_text(d: &BigRational) -> String {
    let n = places(d).expect("a decimal has an end");
    let scaled = (d.abs() * BigRational::from(BigInt::from(10).pow(n as u32))).to_integer();
    let mut text = format!("{:0>width$}", scaled.to_string(), width = n + 1);
    if n > 0 {
        text.insert(text.len() - n, '.');
    }
    if d.is_negative() {
        text.insert(0, '-');
    }
    text
}

/// The form of a float in a cast to a string (XPath F&O 3.1 §19.1.1): a decimal from a millionth to a million,
/// otherwise with an exponent. `scientific` is Rust's form, such as `1.5E3`.
fn float_text(f: f64, scientific: String) -> String {
    if f.is_nan() {
        return "NaN".into();
    }
    if f.is_infinite() {
        return if f > 0.0 { "INF" } else { "-INF" }.into();
    }
    if f == 0.0 {
        return if f.is_sign_negative() { "-0" } else { "0" }.into();
    }
    let (mantissa, exponent) = scientific.split_once('E').expect("an exponent");
    let places: i32 = exponent.parse().expect("a number");
    if (-6..6).contains(&places) {
        let scale = BigRational::from(BigInt::from(10)).pow(places);
        return decimal_text(&(decimal(mantissa).expect("digits") * scale));
    }
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}
