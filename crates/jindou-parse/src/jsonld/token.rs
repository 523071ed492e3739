//! The value of a JSON number, for those numbers whose value matters here.

/// Number of digits of an integer that the parser gets wrong.
const WRONG: i64 = 21;

/// A value that the parser gets wrong, or that could be mistaken for a stand-in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum JsonNumber {
    /// Negative zero.
    MinusZero,
    /// An integer of 20 or 21 digits.
    Integer(i128),
}

impl JsonNumber {
    /// The value of a number, if it is one of these.
    pub(super) fn from_token(token: &[u8]) -> Option<Self> {
        let (negative, digits) = match token {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, token),
        };
        // Nearly all numbers are short and have no exponent.
        let plain = |b: &u8| !matches!(b, b'e' | b'E');
        let zero = negative && digits.first() == Some(&b'0');
        if !zero && digits.len() < WRONG as usize - 1 && digits.iter().all(plain) {
            return None;
        }
        let number = NumberToken::parse(digits)?;
        let first = number.digits().position(|d| d != b'0');
        let Some(first) = first else {
            return negative.then_some(Self::MinusZero);
        };
        let significant = number.digits().skip(first);
        // The number of digits before the point in the form without an exponent.
        let whole = number.exponent.checked_add(number.integer.len() as i64)? - first as i64;
        if whole != WRONG && whole != WRONG - 1 {
            return None;
        }
        let mut value = 0i128;
        let mut len = 0;
        for digit in significant {
            if len < whole {
                value = value * 10 + i128::from(digit - b'0');
                len += 1;
            } else if digit != b'0' {
                return None; // a fraction
            }
        }
        value *= 10i128.pow((whole - len) as u32);
        Some(Self::Integer(if negative { -value } else { value }))
    }

    /// The value in the form of an `xsd:integer`.
    pub(super) fn integer(self) -> String {
        match self {
            Self::MinusZero => "0".into(),
            Self::Integer(n) => n.to_string(),
        }
    }

    /// The value in the form in which the parser writes an `xsd:double`: canonical, with all of its digits.
    pub(super) fn double(self) -> String {
        let Self::Integer(n) = self else {
            return "-0.0E0".into();
        };
        let digits = n.unsigned_abs().to_string();
        let exponent = digits.len() - 1;
        let fraction = digits[1..].trim_end_matches('0');
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        let sign = if n < 0 { "-" } else { "" };
        format!("{sign}{}.{fraction}E{exponent}", &digits[..1])
    }

    /// The value in canonical JSON: the nearest 64-bit number, in the fewest digits that distinguish it from others
    /// (RFC 8785).
    pub(super) fn json(self) -> String {
        match self {
            Self::MinusZero => "0".into(),
            // Below 10^21 JavaScript writes no exponent either.
            Self::Integer(n) => (n as f64).to_string(),
        }
    }
}

/// The parts of a number that follows JSON's grammar.
struct NumberToken<'a> {
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> NumberToken<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (integer, rest) = digits(text)?;
        if integer.len() > 1 && integer[0] == b'0' {
            return None;
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest)?,
            _ => (&rest[..0], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => {
                let (negative, rest) = match rest {
                    [b'-', rest @ ..] => (true, rest),
                    [b'+', rest @ ..] => (false, rest),
                    _ => (false, rest),
                };
                let (exponent, rest) = digits(rest)?;
                if !rest.is_empty() {
                    return None;
                }
                let exponent: i64 = str::from_utf8(exponent).ok()?.parse().ok()?;
                if negative { -exponent } else { exponent }
            }
            _ => return None,
        };
        Some(Self {
            integer,
            fraction,
            exponent,
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.integer.iter().chain(self.fraction).copied()
    }
}

/// The leading digits, at least one, and the text after them.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    (len > 0).then(|| text.split_at(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_question_are_found_however_they_are_written() {
        let e20 = 10i128.pow(20);
        for (text, expected) in [
            ("100000000000000000000", Some(e20)),
            ("1e20", Some(e20)),
            ("1E+20", Some(e20)),
            ("-1e20", Some(-e20)),
            ("0.1e21", Some(e20)),
            ("0.0001e24", Some(e20)),
            ("100000000000000000000.000", Some(e20)),
            ("10000000000000000000000e-2", Some(e20)),
            ("1.0e00000000000000000000020", Some(e20)),
            ("999999999999999999999", Some(10 * e20 - 1)),
            (
                "12345678901234567890.5e1",
                Some(123_456_789_012_345_678_905),
            ),
            ("99999999999999999999", Some(e20 - 1)),
            ("9999999999999999999", None),
            ("1e21", None),
            ("1e-20", None),
            ("100000000000000000000.5", None),
            ("1000000000000000000000", None),
            ("1e99999999999999999999", None),
            ("1e9223372036854775807", None),
            ("0e20", None),
            ("00100000000000000000000", None),
            ("1e20e1", None),
            ("1e", None),
            ("100000000000000000000.", None),
        ] {
            let expected = expected.map(JsonNumber::Integer);
            assert_eq!(JsonNumber::from_token(text.as_bytes()), expected, "{text}");
        }
        for text in ["-0", "-0.0", "-0e5", "-0.00e-7"] {
            assert_eq!(
                JsonNumber::from_token(text.as_bytes()),
                Some(JsonNumber::MinusZero),
                "{text}"
            );
        }
    }

    #[test]
    fn forms_are_canonical() {
        let n = JsonNumber::Integer(-123_456_789_012_345_678_900);
        assert_eq!(n.integer(), "-123456789012345678900");
        assert_eq!(n.double(), "-1.234567890123456789E20");
        // 1.2345678901234568e20 in JavaScript.
        assert_eq!(n.json(), "-123456789012345680000");
        assert_eq!(JsonNumber::Integer(10i128.pow(20)).double(), "1.0E20");
    }
}
