//! Functions by IRI: the casts of SPARQL 1.1 §17.5, and those that a program registers.

use jindou_model::term::{self, Parts};
use jindou_model::{Error, Result};
use jindou_values::{DerivedType, simple_text};
use oxrdf::{NamedNode, Term};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Largest number of arguments of a registered function.
pub const MAX_ARGUMENTS: usize = 8;

/// An argument of a function, borrowed in the store's own form, so that reading it allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'a> {
    canonical: &'a [u8],
}

impl<'a> Argument<'a> {
    /// The argument that is the term with these canonical bytes.
    #[must_use]
    pub fn new(canonical: &'a [u8]) -> Self {
        Self { canonical }
    }

    /// The term's parts, borrowed; `None` if the bytes are not a valid term.
    #[must_use]
    pub fn parts(self) -> Option<Parts<'a>> {
        term::parts(self.canonical)
    }

    /// The IRI; `None` for other terms.
    #[must_use]
    pub fn iri(self) -> Option<&'a str> {
        match self.parts()? {
            Parts::Iri(iri) => Some(iri),
            _ => None,
        }
    }

    /// The lexical form of a literal; `None` for other terms.
    #[must_use]
    pub fn lexical(self) -> Option<&'a str> {
        match self.parts()? {
            Parts::String(s) | Parts::Lang(s, _) | Parts::Coded(s, _) | Parts::Typed(s, _) => {
                Some(s)
            }
            Parts::Iri(_) | Parts::Blank(_) | Parts::Triple(_) => None,
        }
    }

    /// The text of a string, with or without a language tag; `None` for other terms.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        match self.parts()? {
            Parts::Lang(s, _) => Some(s),
            parts => simple_text(&parts),
        }
    }

    /// An owned copy of the term; `None` if the bytes are not a valid term.
    #[must_use]
    pub fn to_term(self) -> Option<Term> {
        term::decode(self.canonical)
    }
}

/// A function that a program registers under an IRI. Several threads may call it at the same time.
pub trait Function: Send + Sync {
    /// The numbers of arguments that the function accepts, at most [`MAX_ARGUMENTS`]. Called once, at registration;
    /// queries that call the function with other numbers are rejected.
    fn arguments(&self) -> RangeInclusive<usize>;

    /// The value, `None` for an error (as in SPARQL: BIND then binds nothing, FILTER drops the row). An argument is
    /// `None` where it is unbound or itself an error. A panic ends the query with an error that names the function.
    fn call(&self, arguments: &[Option<Argument<'_>>]) -> Option<Term>;

    /// True if equal arguments always give the same value. Then values are cached, and expressions with the function
    /// may be evaluated earlier or less often than the query suggests. Called once.
    fn is_deterministic(&self) -> bool {
        true
    }
}

/// A closure as a [`Function`], with the numbers of arguments that it accepts.
struct Closure<F>(RangeInclusive<usize>, F);

impl<F> Function for Closure<F>
where
    F: Fn(&[Option<Argument<'_>>]) -> Option<Term> + Send + Sync,
{
    fn arguments(&self) -> RangeInclusive<usize> {
        self.0.clone()
    }

    fn call(&self, arguments: &[Option<Argument<'_>>]) -> Option<Term> {
        self.1(arguments)
    }
}

/// A registered function.
#[derive(Clone)]
struct RegisteredFunction {
    function: Arc<dyn Function>,
    arguments: RangeInclusive<usize>,
    deterministic: bool,
}

/// A function that a query calls by its IRI.
#[derive(Clone)]
pub enum FunctionLookup {
    /// The cast to `xsd:string`.
    ToString,
    /// The cast to the datatype with this tag ([`term::datatype_code`]).
    Cast(u8),
    /// The cast to a derived datatype without a tag.
    CastDerived(DerivedType),
    /// A function that the program registered.
    Registered(Arc<dyn Function>),
}

/// The functions that queries may call by IRI: the casts, and the registered ones. Cheap to clone. Two values are equal
/// if one is a clone of the other, or if both have no registered functions.
#[derive(Clone, Default)]
pub struct Functions {
    registered: Option<Arc<BTreeMap<String, RegisteredFunction>>>,
}

impl Functions {
    /// Only the casts, without registered functions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True if no function is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registered.as_ref().is_none_or(|all| all.is_empty())
    }

    /// Adds a function under an IRI.
    ///
    /// # Errors
    /// [`Error::Query`] for a string that is not an IRI, an IRI that already has a function, and numbers of arguments
    /// above [`MAX_ARGUMENTS`].
    pub fn register(&mut self, iri: &str, function: Arc<dyn Function>) -> Result<()> {
        NamedNode::new(iri)
            .map_err(|e| Error::Query(format!("a function's name, <{iri}>, is not an IRI: {e}")))?;
        if self.find(iri).is_some() {
            return Err(Error::Query(format!(
                "the function <{iri}> is already registered; use another IRI"
            )));
        }
        let arguments = function.arguments();
        if arguments.is_empty() || *arguments.end() > MAX_ARGUMENTS {
            return Err(Error::Query(format!(
                "the function <{iri}> is declared with {} to {} arguments; the maximum is {MAX_ARGUMENTS}",
                arguments.start(),
                arguments.end()
            )));
        }
        let entry = RegisteredFunction {
            deterministic: function.is_deterministic(),
            arguments,
            function,
        };
        let all = self.registered.get_or_insert_default();
        Arc::make_mut(all).insert(iri.to_owned(), entry);
        Ok(())
    }

    /// Adds a deterministic function that is a closure.
    ///
    /// # Errors
    /// As [`Self::register`].
    pub fn with(
        mut self,
        iri: &str,
        arguments: RangeInclusive<usize>,
        function: impl Fn(&[Option<Argument<'_>>]) -> Option<Term> + Send + Sync + 'static,
    ) -> Result<Self> {
        self.register(iri, Arc::new(Closure(arguments, function)))?;
        Ok(self)
    }

    fn entry(&self, iri: &str) -> Option<&RegisteredFunction> {
        self.registered.as_ref()?.get(iri)
    }

    /// The function with this IRI, for the engine.
    #[doc(hidden)]
    #[must_use]
    pub fn find(&self, iri: &str) -> Option<FunctionLookup> {
        if iri == oxrdf::vocab::xsd::STRING.as_str() {
            return Some(FunctionLookup::ToString);
        }
        if let Some(code) = term::datatype_code(iri) {
            return Some(FunctionLookup::Cast(code));
        }
        if let Some(derived) = DerivedType::from_iri(iri) {
            return Some(FunctionLookup::CastDerived(derived));
        }
        Some(FunctionLookup::Registered(Arc::clone(
            &self.entry(iri)?.function,
        )))
    }

    /// Reason why a call with this many arguments is invalid; `None` if it is valid.
    pub(crate) fn fault(&self, iri: &str, arguments: usize) -> Option<String> {
        let takes = match self.find(iri) {
            None => {
                if let Some(extension) = jindou_syntax::extension_of_iri(iri) {
                    return Some(format!(
                        "unknown function <{iri}>: {}; {}",
                        extension.message(),
                        extension.instead
                    ));
                }
                return Some(format!(
                    "unknown function <{iri}>; casts are called xsd:integer(…), xsd:dateTime(…) and so on, other functions are registered by the program that opens the database"
                ));
            }
            Some(
                FunctionLookup::ToString | FunctionLookup::Cast(_) | FunctionLookup::CastDerived(_),
            ) => 1..=1,
            Some(FunctionLookup::Registered(_)) => self.entry(iri)?.arguments.clone(),
        };
        (!takes.contains(&arguments)).then(|| {
            let (least, most) = (takes.start(), takes.end());
            let numbers = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            let plural = if numbers == "1" { "" } else { "s" };
            format!(
                "the function <{iri}> takes {numbers} argument{plural}, but is given {arguments}"
            )
        })
    }

    /// Returns true for a function whose value may differ between calls with equal arguments.
    #[must_use]
    pub fn varies(&self, iri: &str) -> bool {
        self.entry(iri).is_some_and(|e| !e.deterministic)
    }
}

impl jindou_syntax::Calls for Functions {
    fn fault(&self, iri: &str, arguments: usize) -> Option<String> {
        self.fault(iri, arguments)
    }
}

impl PartialEq for Functions {
    fn eq(&self, other: &Self) -> bool {
        match (&self.registered, &other.registered) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Functions {}

impl Hash for Functions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equality and hash use the map's address. It is not reused while a key with this hash exists, since that key
        // owns the map.
        self.registered.as_ref().map(Arc::as_ptr).hash(state);
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.registered.iter().flat_map(|r| r.keys());
        f.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Arc<dyn Function> {
        Arc::new(Closure(1..=2, |_: &[Option<Argument<'_>>]| None))
    }

    #[test]
    fn names_are_iris_that_have_no_function() {
        let mut f = Functions::new();
        for (iri, why) in [
            ("no iri", "is not an IRI"),
            (
                "http://www.w3.org/2001/XMLSchema#integer",
                "is already registered",
            ),
        ] {
            let e = f.register(iri, nothing()).unwrap_err().to_string();
            assert!(e.contains(why) && e.contains(iri), "{e}");
        }
        f.register("http://e/f", nothing()).unwrap();
        let e = f.register("http://e/f", nothing()).unwrap_err();
        assert!(e.to_string().contains("is already registered"), "{e}");
        let many = Closure(0..=9, |_: &[Option<Argument<'_>>]| None);
        let e = f.register("http://e/many", Arc::new(many)).unwrap_err();
        assert!(e.to_string().contains("the maximum is 8"), "{e}");
    }

    #[test]
    fn calls_are_checked_by_name_and_number_of_arguments() {
        let mut f = Functions::new();
        f.register("http://e/f", nothing()).unwrap();
        assert_eq!(f.fault("http://e/f", 1), None);
        assert_eq!(f.fault("http://e/f", 2), None);
        let fault = f.fault("http://e/f", 3).unwrap();
        assert!(
            fault.contains("<http://e/f> takes 1 to 2 arguments, but is given 3"),
            "{fault}"
        );
        let fault = f.fault("http://e/g", 1).unwrap();
        assert!(fault.contains("unknown function <http://e/g>"), "{fault}");
        let integer = oxrdf::vocab::xsd::INTEGER.as_str();
        assert_eq!(f.fault(integer, 1), None);
        assert!(
            f.fault(integer, 2)
                .unwrap()
                .contains("takes 1 argument, but")
        );
    }

    #[test]
    fn equal_are_clones_and_those_without_functions() {
        let mut f = Functions::new();
        assert_eq!(f, Functions::new());
        f.register("http://e/f", nothing()).unwrap();
        assert_eq!(f, f.clone());
        let mut g = Functions::new();
        g.register("http://e/f", nothing()).unwrap();
        assert_ne!(f, g);
    }
}
