use super::*;

fn matches(text: &str, pattern: &str, flags: &str) -> bool {
    let compiled = Pattern::new(pattern, flags, false)
        .unwrap_or_else(|e| panic!("{pattern:?}, {flags:?}: {e}"));
    compiled
        .is_match(text, &mut MatcherScratch::default(), &mut |_| Ok(()))
        .unwrap()
}

/// The result of fn:replace, or the name of the error.
fn replaced(text: &str, pattern: &str, with: &str, flags: &str) -> String {
    let compiled = match Pattern::new(pattern, flags, true) {
        Ok(compiled) => compiled,
        Err(e) => return format!("{:?}", e.reason),
    };
    if compiled.matches_empty() {
        return "FORX0003".into();
    }
    let Some(with_parts) = PatternReplacement::new(with, compiled.groups(), compiled.is_quoted())
    else {
        return "FORX0004".into();
    };
    let mut places = compiled.places(with_parts.groups());
    let mut scratch = MatcherScratch::default();
    let (mut out, mut at) = (String::new(), 0);
    while compiled
        .find(text, at, &mut places, &mut scratch, &mut |_| Ok(()))
        .unwrap()
    {
        let (from, to) = places.group(0).unwrap();
        out += &text[at..from];
        for part in with_parts.parts() {
            out += match *part {
                ReplacementPart::Text(a, b) => &with[a..b],
                ReplacementPart::Group(n) => places.group(n).map_or("", |(a, b)| &text[a..b]),
            };
        }
        at = to;
    }
    out + &text[at..]
}

#[test]
fn examples_of_the_specification_for_matches() {
    let poem = "\nKaum hat dies der Hahn gesehen,\nFängt er auch schon an zu krähen:\nKikeriki! Kikikerikih!!\nTak, tak, tak! - da kommen sie.\n";
    for (text, pattern, flags, expected) in [
        ("abracadabra", "bra", "", true),
        ("abracadabra", "^a.*a$", "", true),
        ("abracadabra", "^bra", "", false),
        (poem, "Kaum.*krähen", "", false),
        (poem, "Kaum.*krähen", "s", true),
        (poem, "^Kaum.*gesehen,$", "m", true),
        (poem, "^Kaum.*gesehen,$", "", false),
        (poem, "kiki", "i", true),
        ("helloworld", "hello world", "x", true),
        ("helloworld", "hello[ ]world", "x", false),
        ("hello world", "hello\\ sworld", "x", true),
        ("hello world", "hello world", "x", false),
        ("abcd", ".*", "q", false),
        ("Mr. B. Obama", "B. OBAMA", "iq", true),
        ("Mum", "([md])[aeiou]\\1", "i", true),
        ("mom", "([md])[aeiou]\\1", "i", true),
        ("Dad", "([md])[aeiou]\\1", "i", true),
        ("DUD", "([md])[aeiou]\\1", "i", true),
        ("Mud", "([md])[aeiou]\\1", "i", false),
        ("say 'no'", "('|\").*\\1", "", true),
        ("say 'no\"", "('|\").*\\1", "", false),
        ("\u{212a}", "[A-Z]", "i", true),
        ("I", "[A-Z-[IO]]", "i", false),
        ("o", "[A-Z-[IO]]", "i", false),
        ("b", "[A-Z-[IO]]", "i", true),
        ("q", "[^Q]", "i", false),
        ("r", "[^Q]", "i", true),
        ("a", "\\p{Lu}", "i", false),
        ("z", "Z", "i", true),
    ] {
        assert_eq!(
            matches(text, pattern, flags),
            expected,
            "{text:?} {pattern:?} {flags:?}"
        );
    }
}

#[test]
fn examples_of_the_specification_for_replace() {
    for (text, pattern, with, flags, expected) in [
        ("abracadabra", "bra", "*", "", "a*cada*"),
        ("abracadabra", "a.*a", "*", "", "*"),
        ("abracadabra", "a.*?a", "*", "", "*c*bra"),
        ("abracadabra", "a", "", "", "brcdbr"),
        ("abracadabra", "a(.)", "a$1$1", "", "abbraccaddabbra"),
        ("abracadabra", ".*?", "$1", "", "FORX0003"),
        ("AAAA", "A+", "b", "", "b"),
        ("AAAA", "A+?", "b", "", "bbbb"),
        ("darted", "^(.*?)d(.*)$", "$1c$2", "", "carted"),
        ("abcd", "(ab)|(a)", "[1=$1][2=$2]", "", "[1=ab][2=]cd"),
        ("a\\b\\c", "\\", "\\\\", "q", "a\\\\b\\\\c"),
        ("a/b/c", "/", "$", "q", "a$b$c"),
        // Five groups: the second and a 3. No group: nothing for one digit, the rest as it stands.
        ("abcde", "(a)(b)(c)(d)(e)", "$23", "", "b3"),
        ("x", "x", "[$3]", "", "[]"),
        ("x", "x", "[$12]", "", "[2]"),
        ("x", "x", "[$0123]", "", "[23]"),
        ("x", "(x)", "[$001]", "", "[x]"),
        ("x", "x", "[$00]", "", "[x]"),
        ("x", "x", "\\$\\\\", "", "$\\"),
        ("x", "x", "a$", "", "FORX0004"),
        ("x", "x", "$a", "", "FORX0004"),
        ("x", "x", "\\", "", "FORX0004"),
        ("x", "x", "\\n", "", "FORX0004"),
        ("x", "x", "$", "g", "Flags"),
        ("x", "[", "$", "", "Pattern"),
    ] {
        assert_eq!(
            replaced(text, pattern, with, flags),
            expected,
            "{pattern:?} {with:?}"
        );
    }
}

#[test]
fn what_other_dialects_read_otherwise() {
    for (text, pattern, flags, expected) in [
        ("a", "^[a-z-[aeiou]]$", "", false),
        ("b", "^[a-z-[aeiou]]$", "", true),
        ("&", "^[a&&b]$", "", true),
        ("a", "^[a&&b]$", "", true),
        ("~", "^[a~~b]$", "", true),
        ("a#b", "a#b", "x", true),
        (" ", "^[ ]$", "x", true),
        ("a\rb", "a.b", "", false),
        ("a\nb", "a.b", "", false),
        ("a\rb", "a.b", "s", true),
        ("\u{a0}", "^\\s$", "", false),
        ("ab1", "^\\i\\c*$", "", true),
        ("1ab", "^\\i\\c*$", "", false),
        ("abab", "^(ab)\\1$", "", true),
        ("a", "^\\p{IsBasicLatin}$", "", true),
        ("é", "^\\p{IsBasicLatin}$", "", false),
        ("é", "^\\P{IsBasicLatin}$", "", true),
        ("a", "^\\p{ I s Basic Latin }$", "x", true),
        // `^` and `$` stand for themselves between brackets, and `-` at the ends and after ranges and escapes.
        ("^", "^[$^]$", "", true),
        ("-", "^[-a]$", "", true),
        ("-", "^[a-]$", "", true),
        ("-", "^[a-k-z]$", "", true),
        ("y", "^[a-k-z]$", "", false),
        ("-", "^[\\d-z]$", "", true),
        ("y", "^[\\d-z]$", "", false),
        ("-", "^[a--[b]]$", "", true),
        ("-", "^[--[b]]$", "", true),
        ("-", "^[--]$", "", true),
        ("a", "^[^^]$", "", true),
        ("b", "^[^a-c-[b]]$", "", false),
        ("z", "^[^a-c-[b]]$", "", true),
        // A text that ends with a line end has no line after it.
        ("a\n", "^$", "m", false),
        ("a\n\n", "^$", "m", true),
        ("\n", "^$", "m", true),
        ("a\nb", "^b$", "m", true),
        ("a\n", "a$", "m", true),
        ("a\n", "a$", "", false),
        ("a\n", "\\n$", "m", false),
        ("a\n", "\\n$", "", true),
        ("a\n", "\\n^", "m", false),
        ("a\r\nb", "^b", "m", true),
        ("a\rb", "^b", "m", false),
        // A back-reference to a group that took no part is empty; digits count while there are that many groups.
        ("b", "^(a)?\\1b$", "", true),
        ("ab", "^(a)?\\1b$", "", false),
        ("a0", "^(a)\\10$", "", false),
        ("aa0", "^(a)\\10$", "", true),
        (
            "abcdefghijj",
            "^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10$",
            "",
            true,
        ),
        ("", "a||b", "", true),
        ("", "()", "", true),
        ("b", "^a{0}b$", "", true),
        ("", "^*", "", true),
        ("ẞ", "ß", "i", true),
        ("ς", "[Σ]", "i", true),
    ] {
        assert_eq!(
            matches(text, pattern, flags),
            expected,
            "{text:?} {pattern:?} {flags:?}"
        );
    }
    assert_eq!(replaced("a#b", "a#b", "X", "x"), "X");
    assert_eq!(replaced("aab", "(a){0}(b)", "[$1$2]", ""), "aa[b]");
    assert_eq!(
        replaced("abcabdaab", "(a(b)?)\\1?", "<$1$2>", ""),
        "<abb>c<abb>d<a><abb>".replace("<a><abb>", "<a>b")
    );
    assert_eq!(replaced("a\nb\n", "^", "> ", "m"), "FORX0003");
    assert_eq!(replaced("a\nb\n", "^(.)", "> $1", "m"), "> a\n> b\n");
    assert_eq!(replaced("aa\nb", "(.)\\1", "[$0|$1]", ""), "[aa|a]\nb");
}

#[test]
fn faults_have_their_place() {
    for (pattern, flags, place, part) in [
        ("(?i)a", "", 3, "look-around"),
        ("a(?=b)", "", 4, "look-around"),
        ("a\\b", "", 2, "no `\\b`"),
        ("a\\z", "", 2, "no `\\z`"),
        ("[[:alpha:]]", "", 2, "`[` between"),
        ("[a", "", 1, "without `]`"),
        ("(a", "", 1, "without `)`"),
        ("a)", "", 2, "closes no group"),
        ("a]", "", 2, "closes nothing"),
        ("a}", "", 2, "closes nothing"),
        ("*a", "", 1, "nothing before"),
        ("a**", "", 3, "nothing before"),
        ("a*+", "", 3, "nothing before"),
        ("a{,2}", "", 3, "expected a number"),
        ("a{3,2}", "", 5, "less than"),
        ("a{2", "", 4, "expected `}`"),
        ("a{99999999999}", "", 3, "too large"),
        ("[]", "", 2, "nothing between"),
        ("[^]", "", 3, "nothing between"),
        ("[z-a]", "", 4, "comes after"),
        ("[a-\\d]", "", 4, "one character"),
        ("[a--b]", "", 4, "cannot end"),
        ("[--z]", "", 2, "cannot begin"),
        ("[-[a]]", "", 2, "nothing to subtract"),
        ("[a-[b]c]", "", 7, "must come last"),
        ("[\\1]", "", 2, "references"),
        ("\\1", "", 1, "no group 1 comes before"),
        ("(a\\1)", "", 3, "is closed before"),
        ("(a)\\2", "", 4, "no group 2 comes before"),
        ("\\0", "", 1, "references"),
        ("\\p{Foo}", "", 4, "not a category"),
        ("\\p{Cs}", "", 4, "not a category"),
        ("\\p{IsFoo}", "", 4, "no block"),
        ("\\pL", "", 3, "expected `{`"),
        ("\\p{L", "", 3, "without `}`"),
        ("a\\", "", 2, "at the end"),
        ("  a  )", "x", 6, "closes no group"),
    ] {
        let e = Pattern::new(pattern, flags, false).expect_err(pattern);
        assert_eq!(e.reason, InvalidPattern::Pattern, "{pattern}");
        assert_eq!(e.place, place, "{pattern}: {e}");
        assert!(e.to_string().contains(part), "{pattern}: {e}");
    }
    let e = Pattern::new("a", "ig", false).unwrap_err();
    assert_eq!((e.reason, e.place), (InvalidPattern::Flags, 2));
}

#[test]
fn what_is_too_large_is_refused_before_it_takes_memory() {
    for pattern in [
        "a{1000}{1000}{1000}"
            .replace("}{", "}){")
            .replacen('a', "(?:(?:a", 1),
        "\\p{L}".repeat(10_000),
        "\\w{1000}".repeat(100),
        "(a{1000}b{1000}){1000}\\1".into(),
        "(((a{1000}){1000}){1000})\\1".into(),
        "(".repeat(20_000),
        "[a-".repeat(20_000),
        "(a)".repeat(20_000),
        "x".repeat(LONGEST + 1),
        "(a*)*{4000000000}"
            .replace("*{", "){")
            .replacen('(', "((", 1),
    ] {
        let e = Pattern::new(&pattern, "", true).expect_err(&pattern[..10]);
        assert!(e.to_string().len() < 200);
    }
    // Each of many classes is closed under case once.
    let wide = format!("[{}]", "\0-\u{10ffff}".repeat(8_000));
    assert!(matches("a", &wide, "i"));
    let escapes = format!("[{}]", "\\w\\W\\p{L}".repeat(4_000));
    assert!(matches("a", &escapes, ""));
    let nested = format!("{}b{}", "(".repeat(200), ")".repeat(200));
    assert!(matches("abc", &nested, ""));
    assert!(
        matches("abc", &format!("{nested}?\\1"), "")
            && matches("bb", &format!("^{nested}\\200$"), "")
    );
}

/// Patterns for which backtracking without a memory takes time exponential in the text.
#[test]
fn no_pattern_takes_exponential_time() {
    let text = "a".repeat(3_000);
    for pattern in [
        "^(a*)*$\\1b",
        "^(a|aa)+\\1b$",
        "(x+x+)+y\\1",
        "^(a+)+(a+)+\\1\\2b$",
        "^(?:(a?)*)*\\1b$",
        "^(a?){60}a{60}\\1b",
        "(.*)(.*)(.*)(.*)\\1b",
        "^((a|a)*|(a|a)*)*\\1b$",
        "^(?:a*?)*?(a)\\1b$",
    ] {
        let compiled = Pattern::new(pattern, "", false).unwrap();
        let mut most = 0;
        let mut checks = 0_u64;
        let found = compiled.is_match(&text, &mut MatcherScratch::default(), &mut |bytes| {
            most = most.max(bytes);
            checks += 1;
            Ok(())
        });
        // No match, or a limit with advice; each check stands for 16,384 steps.
        match found {
            Ok(found) => assert!(!found, "{pattern}"),
            Err(e) => assert!(
                e.to_string().contains("references to groups"),
                "{pattern}: {e}"
            ),
        }
        assert!(checks < 2_000, "{pattern}: {checks}");
        assert!(most < 256 << 20, "{pattern}: {most}");
    }
    // A caller's limits end a search.
    let compiled = Pattern::new("^(.*)(.*)(.*)\\3\\2\\1b$", "", false).unwrap();
    let text = "ab".repeat(2_000) + "b";
    let mut left = 3;
    let ended = compiled.is_match(&text, &mut MatcherScratch::default(), &mut |_| {
        left -= 1;
        match left {
            0 => Err(jindou_model::Error::limit(
                jindou_model::Resource::Memory,
                "no more",
            )),
            _ => Ok(()),
        }
    });
    assert!(ended.is_err() || left > 0);
}
