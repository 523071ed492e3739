//! JSON values in memory: a list of nodes in document order, and one string that contains all their text.
//!
//! Each node has the index of the node after its last descendant, so that values can be skipped, copied and compared
//! without recursion.

mod canonical;
mod number;
mod reader;
mod strings;

pub(super) use canonical::canonical;
pub(super) use number::Number;
pub(super) use reader::{JsonReader, Top};

use super::fault::{Step, bad};

/// The kind of a JSON value. The names of members are strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

#[derive(Clone, Copy, Debug)]
struct JsonNode {
    /// Byte position in the document.
    at: u64,
    /// Position in `text` of the string or number.
    start: usize,
    /// Length of the string or number in bytes, or number of items or members.
    len: u32,
    /// Index of the node after this value.
    next: u32,
    kind: Kind,
}

/// A JSON value, or several consecutive ones.
#[derive(Default, Debug)]
pub(super) struct JsonText {
    nodes: Vec<JsonNode>,
    text: String,
}

impl JsonText {
    /// The first value.
    pub(super) fn root(&self) -> Json<'_> {
        Json { doc: self, node: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.text.clear();
    }

    /// Bytes of memory in use.
    pub(super) fn held(&self) -> u64 {
        (self.nodes.capacity() * size_of::<JsonNode>() + self.text.capacity()) as u64
    }

    /// A copy of a value, independent of the rest of its document.
    pub(super) fn copy(json: Json<'_>) -> Self {
        let (from, to) = (json.node as usize, json.this().next as usize);
        let mut copy = Self {
            nodes: Vec::with_capacity(to - from),
            text: String::new(),
        };
        for node in &json.doc.nodes[from..to] {
            let mut node = *node;
            node.next -= json.node;
            if matches!(node.kind, Kind::String | Kind::Number) {
                let text = &json.doc.text[node.start..node.start + node.len as usize];
                node.start = copy.text.len();
                copy.text.push_str(text);
            }
            copy.nodes.push(node);
        }
        copy
    }
}

/// A value in a [`JsonText`].
#[derive(Clone, Copy)]
pub(super) struct Json<'a> {
    doc: &'a JsonText,
    node: u32,
}

impl<'a> Json<'a> {
    #[inline]
    fn this(self) -> &'a JsonNode {
        &self.doc.nodes[self.node as usize]
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        self.this().kind
    }

    /// Byte position in the document.
    #[inline]
    pub(super) fn at(self) -> u64 {
        self.this().at
    }

    /// Number of items of an array or members of an object.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.this().len as usize
    }

    pub(super) fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub(super) fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    pub(super) fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    #[inline]
    fn raw(self) -> &'a str {
        let node = self.this();
        &self.doc.text[node.start..node.start + node.len as usize]
    }

    /// The content of a string; `None` for other values.
    #[inline]
    pub(super) fn str(self) -> Option<&'a str> {
        (self.kind() == Kind::String).then(|| self.raw())
    }

    /// A number as written; `None` for other values.
    pub(super) fn number(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    pub(super) fn bool(self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// The value of a keyword that is true or false.
    pub(super) fn boolean(self, keyword: &str) -> Step<bool> {
        match self.bool() {
            Some(value) => Ok(value),
            None => Err(bad(
                self.at(),
                format!("invalid {keyword} value: expected true or false"),
            )),
        }
    }

    /// The items of an array; for any other value, that value alone.
    pub(super) fn items(self) -> Items<'a> {
        match self.kind() {
            Kind::Array => Items {
                next: Self {
                    doc: self.doc,
                    node: self.node + 1,
                },
                left: self.this().len,
            },
            _ => Items {
                next: self,
                left: 1,
            },
        }
    }

    /// The members of an object: names and values. Nothing for other values.
    pub(super) fn members(self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> {
        let mut items = Items {
            next: Self {
                doc: self.doc,
                node: self.node + 1,
            },
            left: match self.kind() {
                Kind::Object => 2 * self.this().len,
                _ => 0,
            },
        };
        std::iter::from_fn(move || Some((items.next()?, items.next()?)))
    }

    /// The value of an object's member; `None` if there is none.
    pub(super) fn get(self, name: &str) -> Option<Json<'a>> {
        self.members()
            .find(|(key, _)| key.raw() == name)
            .map(|(_, value)| value)
    }

    /// True if two values consist of the same tokens.
    pub(super) fn same(self, other: Json<'_>) -> bool {
        let nodes = |json: Json<'_>| json.node as usize..json.this().next as usize;
        let (a, b) = (&self.doc.nodes[nodes(self)], &other.doc.nodes[nodes(other)]);
        a.len() == b.len()
            && a.iter().zip(b).all(|(x, y)| {
                let text = matches!(x.kind, Kind::String | Kind::Number);
                x.kind == y.kind
                    && x.len == y.len
                    && (!text
                        || self.doc.text[x.start..][..x.len as usize]
                            == other.doc.text[y.start..][..y.len as usize])
            })
    }
}

/// The items of an array.
#[derive(Clone)]
pub(super) struct Items<'a> {
    next: Json<'a>,
    left: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    #[inline]
    fn next(&mut self) -> Option<Json<'a>> {
        self.left = self.left.checked_sub(1)?;
        let item = self.next;
        self.next.node = item.this().next;
        Some(item)
    }
}
