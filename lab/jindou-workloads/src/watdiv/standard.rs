//! WatDiv's e-commerce model, on which its published data sets and its 20 basic templates are based: products with
//! reviews, retailers with offers, users who follow, like and buy.

use super::model::Distribution::{Normal, Uniform, Zipfian};
use super::model::{
    Association, AttributeGroup, AttributeValues, Distribution, EntityKind, LiteralProperty,
    WatdivModel,
};
use crate::date::Day;

const NAMESPACES: [(&str, &str); 11] = [
    ("dc", "http://purl.org/dc/terms/"),
    ("foaf", "http://xmlns.com/foaf/"),
    ("gr", "http://purl.org/goodrelations/"),
    ("gn", "http://www.geonames.org/ontology#"),
    ("mo", "http://purl.org/ontology/mo/"),
    ("og", "http://ogp.me/ns#"),
    ("rev", "http://purl.org/stuff/rev#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("sorg", "http://schema.org/"),
    ("wsdbm", "http://db.uwaterloo.ca/~galuc/wsdbm/"),
];

/// Kinds whose number of entities is the same at every scale.
const FIXED: [(&str, u32); 10] = [
    ("wsdbm:Genre", 21),
    ("wsdbm:SubGenre", 145),
    ("wsdbm:Topic", 250),
    ("wsdbm:ProductCategory", 15),
    ("wsdbm:City", 240),
    ("wsdbm:Country", 25),
    ("wsdbm:Language", 35),
    ("wsdbm:Role", 3),
    ("wsdbm:AgeGroup", 9),
    ("wsdbm:Gender", 2),
];

/// The values of an attribute.
#[derive(Clone, Copy)]
enum Of {
    Text,
    Name,
    Int(i64, i64),
    /// As `Int`, but normally distributed.
    Bell(i64, i64),
    Days(Day, Day),
}
use Of::{Bell, Int, Name, Text};

const ANY_INT: Of = Int(0, 65_535);
const ANY_DAY: Of = Of::Days(Day(0), super::parse::LAST_DAY);

/// Days between two dates, each given by year, month and day.
fn days(from: [i32; 3], to: [i32; 3]) -> Of {
    let day = |[y, m, d]: [i32; 3]| Day::from_date(y, m, d).unwrap_or(Day(0));
    Of::Days(day(from), day(to))
}

/// A group of attributes: probability, class (or ""), attributes.
type Row<'a> = (f64, &'a str, &'a [(&'a str, Of)]);

impl WatdivModel {
    /// The model of the published data sets (10M, 100M, 1B triples are scales 100, 1000, 10000).
    #[must_use]
    pub fn standard() -> Self {
        let mut m = Self {
            namespaces: NAMESPACES
                .map(|(p, iri)| (p.to_owned(), iri.to_owned()))
                .to_vec(),
            ..Self::default()
        };
        for (name, count) in FIXED {
            m.add(name, count, &[]);
            m.kinds.iter_mut().for_each(|k| k.scales = false);
        }
        m.add_products();
        m.add_trade();
        m.add_people();
        m.associate();
        m
    }

    fn add(&mut self, name: &str, count: u32, groups: &[Row]) {
        let attribute = |(name, of): &(&str, Of)| LiteralProperty {
            property: self.iri(name),
            values: match *of {
                Text => AttributeValues::Words("A".into(), "z".into()),
                Name => AttributeValues::Name("A".into(), "z".into()),
                Int(a, b) | Bell(a, b) => AttributeValues::Integer(a, b),
                Of::Days(a, b) => AttributeValues::Date(a, b),
            },
            distribution: match of {
                Bell(..) => Normal,
                _ => Uniform,
            },
        };
        let group = |(probability, class, attributes): &Row| AttributeGroup {
            probability: *probability,
            class: (!class.is_empty()).then(|| self.iri(class)),
            attributes: attributes.iter().map(attribute).collect(),
        };
        let kind = EntityKind {
            iri: self.iri(name),
            count,
            scales: true,
            groups: groups.iter().map(group).collect(),
        };
        self.kinds.push(kind);
    }

    /// Expands a name of this file. All of them have declared prefixes, which a test checks.
    fn iri(&self, name: &str) -> String {
        self.expand(name).unwrap_or_default()
    }

    fn add_products(&mut self) {
        let concert = "wsdbm:ProductCategory0";
        let album = "wsdbm:ProductCategory1";
        let movie = "wsdbm:ProductCategory2";
        let book = "wsdbm:ProductCategory3";
        let article = "wsdbm:ProductCategory4";
        let expiry = days([2014, 1, 1], [2019, 12, 31]);
        self.add(
            "wsdbm:Product",
            250,
            &[
                (1.0, "", &[("og:title", Text)]),
                (0.6, "", &[("sorg:description", Text)]),
                (0.3, "", &[("sorg:contentRating", Int(6, 18))]),
                (0.3, "", &[("sorg:keywords", Text)]),
                (0.3, "", &[("sorg:text", Text)]),
                (0.1, "", &[("sorg:contentSize", Int(0, 9999))]),
                (0.1, "", &[("sorg:caption", Text)]),
                (0.05, "", &[("sorg:expires", expiry)]),
                (
                    0.8,
                    concert,
                    &[("mo:opus", Int(0, 999)), ("mo:movement", Int(0, 9))],
                ),
                (0.5, concert, &[("wsdbm:composer", Name)]),
                (0.5, concert, &[("mo:performer", Text)]),
                (0.5, album, &[("mo:producer", Text)]),
                (0.5, album, &[("mo:record_number", Int(0, 999))]),
                (0.5, album, &[("mo:release", ANY_DAY)]),
                (0.3, movie, &[("sorg:duration", Int(0, 500))]),
                (0.5, movie, &[("sorg:producer", Text)]),
                (0.1, movie, &[("sorg:award", Text)]),
                (0.1, movie, &[("sorg:award", Text)]),
                (0.1, movie, &[("sorg:award", Text)]),
                (1.0, book, &[("sorg:isbn", ANY_INT)]),
                (0.5, book, &[("sorg:bookEdition", Bell(1, 6))]),
                (0.25, book, &[("sorg:numberOfPages", Bell(1, 999))]),
                (0.8, article, &[("sorg:publisher", Text)]),
                (0.7, article, &[("sorg:datePublished", ANY_DAY)]),
                (0.2, article, &[("sorg:wordCount", Bell(250, 10_000))]),
                (
                    0.2,
                    article,
                    &[
                        ("sorg:printColumn", Int(1970, 2013)),
                        ("sorg:printEdition", Int(1, 36)),
                    ],
                ),
                (
                    0.2,
                    article,
                    &[
                        ("sorg:printPage", Int(1, 999)),
                        ("sorg:printSection", Int(1, 9)),
                    ],
                ),
            ],
        );
    }

    fn add_trade(&mut self) {
        let phone = Int(1_111_111, 9_999_999);
        let serial = Int(11_111_111, 99_999_999);
        self.add(
            "wsdbm:Retailer",
            12,
            &[
                (1.0, "", &[("gr:name", Text), ("gr:description", Text)]),
                (0.8, "", &[("sorg:openingHours", Int(6, 18))]),
                (0.6, "", &[("sorg:paymentAccepted", Text)]),
                (0.8, "", &[("sorg:email", Text)]),
                (0.7, "", &[("sorg:telephone", phone)]),
                (0.1, "", &[("sorg:faxNumber", phone)]),
                (0.4, "", &[("sorg:aggregateRating", Int(1, 10))]),
                (0.1, "", &[("sorg:legalName", Text)]),
            ],
        );
        let from = days([2013, 1, 1], [2013, 6, 21]);
        let through = days([2013, 9, 1], [2013, 12, 31]);
        let price_until = days([2013, 6, 22], [2013, 8, 31]);
        self.add(
            "wsdbm:Offer",
            900,
            &[
                (1.0, "", &[("gr:serialNumber", serial)]),
                (1.0, "", &[("gr:price", Int(0, 999))]),
                (0.4, "", &[("gr:validFrom", from)]),
                (0.4, "", &[("gr:validThrough", through)]),
                (0.2, "", &[("sorg:priceValidUntil", price_until)]),
                (1.0, "", &[("sorg:eligibleQuantity", Int(1, 9))]),
            ],
        );
        let purchase = days([2012, 1, 1], [2012, 12, 31]);
        self.add(
            "wsdbm:Purchase",
            1500,
            &[
                (1.0, "", &[("gr:price", Int(0, 999))]),
                (0.3, "", &[("wsdbm:purchaseDate", purchase)]),
            ],
        );
    }

    fn add_people(&mut self) {
        self.add(
            "wsdbm:Website",
            50,
            &[(
                1.0,
                "",
                &[("sorg:url", Text), ("wsdbm:hits", Int(0, 10_000))],
            )],
        );
        self.add(
            "wsdbm:Review",
            1500,
            &[
                (1.0, "", &[("rev:rating", Int(0, 10))]),
                (0.3, "", &[("rev:title", Text)]),
                (0.7, "", &[("rev:text", Text)]),
                (0.05, "", &[("rev:totalVotes", Int(1, 999))]),
            ],
        );
        let birth = days([1970, 1, 1], [1999, 12, 31]);
        let id = Int(1_000_000, 9_999_999);
        self.add(
            "wsdbm:User",
            1000,
            &[
                (1.0, "", &[("wsdbm:userId", id)]),
                (
                    0.7,
                    "",
                    &[("foaf:givenName", Name), ("foaf:familyName", Name)],
                ),
                (0.2, "", &[("sorg:birthDate", birth)]),
                (0.9, "", &[("sorg:email", Text)]),
                (0.05, "", &[("sorg:telephone", Int(1_111_111, 9_999_999))]),
                (0.05, "", &[("sorg:jobTitle", Text)]),
            ],
        );
    }

    fn associate(&mut self) {
        for (ends, property, object, (most, spread), cover, choice) in ASSOCIATIONS {
            self.associations.push(Association {
                subject: self.kind(&self.iri(ends.subject)).unwrap_or_default(),
                property: self.iri(property),
                object: self.kind(&self.iri(object)).unwrap_or_default(),
                exclusive: ends.exclusive,
                most: *most,
                spread: *spread,
                cover: *cover,
                choice: *choice,
                subject_class: ends.which.map(|c| self.iri(c)),
                object_class: ends.to.map(|c| self.iri(c)),
            });
        }
    }
}

/// The conditions on the subjects and objects of an association.
#[derive(Clone, Copy)]
struct Ends {
    subject: &'static str,
    exclusive: bool,
    which: Option<&'static str>,
    to: Option<&'static str>,
}

/// Subjects of a kind, which may share objects.
const fn many(subject: &'static str) -> Ends {
    Ends {
        subject,
        exclusive: false,
        which: None,
        to: None,
    }
}

/// Subjects of a kind, which do not share objects.
const fn once(subject: &'static str) -> Ends {
    Ends {
        exclusive: true,
        ..many(subject)
    }
}

impl Ends {
    /// Limits the subjects to instances of a class.
    const fn which(self, class: &'static str) -> Self {
        Self {
            which: Some(class),
            ..self
        }
    }

    /// Limits the objects to instances of a class.
    const fn to(self, class: &'static str) -> Self {
        Self {
            to: Some(class),
            ..self
        }
    }
}

/// Distributions of the number of objects: always the largest number, uniform, and normal.
const FLAT: Option<Distribution> = None;
const EVEN: Option<Distribution> = Some(Uniform);
const BELL: Option<Distribution> = Some(Normal);

const SUB_GENRE: Ends = many("wsdbm:SubGenre");
const PRODUCT: Ends = many("wsdbm:Product");
const USER: Ends = many("wsdbm:User");
const RETAILER: Ends = many("wsdbm:Retailer");
const OFFER: Ends = many("wsdbm:Offer");
const CONCERT: Ends = PRODUCT.which("wsdbm:ProductCategory0");
const ALBUM: Ends = PRODUCT.which("wsdbm:ProductCategory1");
const MOVIE: Ends = PRODUCT.which("wsdbm:ProductCategory2");
const BOOK: Ends = PRODUCT.which("wsdbm:ProductCategory3");
const ARTICLE: Ends = PRODUCT.which("wsdbm:ProductCategory4");
const BUYER: Ends = once("wsdbm:User").which("wsdbm:Role0");
const REVIEW: Ends = many("wsdbm:Review").to("wsdbm:Role1");
/// The class of the users who make albums, movies and books.
const ARTIST: &str = "wsdbm:Role2";

/// An association: subjects, property, kind of the objects, the largest number of objects of a subject and the
/// distribution of this number, the share of subjects that have any, and the distribution by which objects are chosen.
type AssociationRow = (
    Ends,
    &'static str,
    &'static str,
    (u32, Option<Distribution>),
    f64,
    Distribution,
);

#[rustfmt::skip]
const ASSOCIATIONS: &[AssociationRow] = &[
    (SUB_GENRE, "rdf:type", "wsdbm:Genre", (1, FLAT), 1.0, Uniform),
    (SUB_GENRE, "og:tag", "wsdbm:Topic", (6, EVEN), 1.0, Uniform),
    (PRODUCT, "rdf:type", "wsdbm:ProductCategory", (1, FLAT), 1.0, Uniform),
    (PRODUCT, "wsdbm:hasGenre", "wsdbm:SubGenre", (2, FLAT), 1.0, Normal),
    (PRODUCT, "wsdbm:hasGenre", "wsdbm:SubGenre", (3, EVEN), 0.25, Normal),
    (PRODUCT, "og:tag", "wsdbm:Topic", (20, BELL), 0.6, Uniform),
    (PRODUCT, "foaf:homepage", "wsdbm:Website", (1, FLAT), 0.25, Uniform),
    (many("wsdbm:City"), "gn:parentCountry", "wsdbm:Country", (1, FLAT), 1.0, Zipfian),
    (many("wsdbm:Website"), "sorg:language", "wsdbm:Language", (1, FLAT), 1.0, Zipfian),
    (USER, "rdf:type", "wsdbm:Role", (3, FLAT), 0.01, Zipfian),
    (USER, "rdf:type", "wsdbm:Role", (2, FLAT), 0.1, Zipfian),
    (USER, "rdf:type", "wsdbm:Role", (1, FLAT), 1.0, Zipfian),
    (USER, "wsdbm:likes", "wsdbm:Product", (5, BELL), 0.2, Zipfian),
    (USER, "wsdbm:likes", "wsdbm:Product", (25, BELL), 0.05, Uniform),
    (once("wsdbm:User"), "foaf:homepage", "wsdbm:Website", (1, FLAT), 0.05, Uniform),
    (USER, "wsdbm:subscribes", "wsdbm:Website", (15, BELL), 0.2, Uniform),
    (USER.to("wsdbm:Role2"), "wsdbm:follows", "wsdbm:User", (5, BELL), 0.2, Zipfian),
    (USER.to("wsdbm:Role1"), "wsdbm:follows", "wsdbm:User", (15, BELL), 0.3, Uniform),
    (USER.to("wsdbm:Role0"), "wsdbm:follows", "wsdbm:User", (100, BELL), 0.6, Uniform),
    (USER, "wsdbm:friendOf", "wsdbm:User", (225, BELL), 0.4, Uniform),
    (USER, "dc:Location", "wsdbm:City", (1, FLAT), 0.4, Zipfian),
    (USER, "foaf:age", "wsdbm:AgeGroup", (1, FLAT), 0.5, Normal),
    (USER, "wsdbm:gender", "wsdbm:Gender", (1, FLAT), 0.6, Uniform),
    (USER, "sorg:nationality", "wsdbm:Country", (1, FLAT), 0.2, Zipfian),
    (CONCERT.to(ARTIST), "mo:conductor", "wsdbm:User", (1, FLAT), 0.5, Uniform),
    (CONCERT, "mo:performed_in", "wsdbm:City", (1, FLAT), 0.5, Zipfian),
    (ALBUM.to(ARTIST), "mo:artist", "wsdbm:User", (1, FLAT), 0.8, Zipfian),
    (MOVIE.to(ARTIST), "sorg:actor", "wsdbm:User", (25, BELL), 0.8, Uniform),
    (MOVIE.to(ARTIST), "sorg:director", "wsdbm:User", (1, FLAT), 0.8, Zipfian),
    (MOVIE, "sorg:trailer", "wsdbm:Website", (3, EVEN), 0.1, Uniform),
    (MOVIE, "sorg:language", "wsdbm:Language", (4, EVEN), 0.3, Zipfian),
    (BOOK.to(ARTIST), "sorg:author", "wsdbm:User", (4, BELL), 0.8, Uniform),
    (BOOK.to(ARTIST), "sorg:editor", "wsdbm:User", (4, BELL), 0.4, Uniform),
    (BOOK, "sorg:language", "wsdbm:Language", (10, EVEN), 0.05, Zipfian),
    (ARTICLE, "sorg:author", "wsdbm:User", (1, FLAT), 0.8, Uniform),
    (ARTICLE, "sorg:editor", "wsdbm:User", (3, BELL), 0.1, Uniform),
    (RETAILER, "gr:offers", "wsdbm:Offer", (180, BELL), 1.0, Zipfian),
    (RETAILER, "gr:offers", "wsdbm:Offer", (90, BELL), 0.5, Normal),
    (RETAILER, "gr:offers", "wsdbm:Offer", (45, BELL), 0.25, Uniform),
    (once("wsdbm:Retailer"), "sorg:contactPoint", "wsdbm:User", (1, FLAT), 0.8, Uniform),
    (once("wsdbm:Retailer"), "sorg:employee", "wsdbm:User", (10, EVEN), 0.2, Uniform),
    (OFFER, "gr:includes", "wsdbm:Product", (1, FLAT), 1.0, Uniform),
    (OFFER, "sorg:eligibleRegion", "wsdbm:Country", (5, FLAT), 0.5, Zipfian),
    (BUYER, "wsdbm:makesPurchase", "wsdbm:Purchase", (20, BELL), 0.3, Uniform),
    (many("wsdbm:Purchase"), "wsdbm:purchaseFor", "wsdbm:Product", (1, FLAT), 1.0, Zipfian),
    (REVIEW, "rev:reviewer", "wsdbm:User", (1, FLAT), 1.0, Uniform),
    (once("wsdbm:Product"), "rev:hasReview", "wsdbm:Review", (60, BELL), 0.2, Uniform),
];
