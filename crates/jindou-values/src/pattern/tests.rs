use super::*;

fn matches(text: &str, pattern: &str, flags: &str) -> bool {
    let compiled = Pattern::new(pattern, flags, false)
        .unwrap_or_else(|e| panic!("{pattern:?}, {flags:?}: {e}"));
    compiled
        .is_match(text, &mut MatcherScratch::default(), &mut |_| Ok(()))
        .unwrap()
}

/// The result of REPLACE, or the code of fn:replace's error.
fn replaced(text: &str, pattern: &str, with: &str, flags: &str) -> String {
    let compiled = match Pattern::new(pattern, flags, true) {
        Ok(compiled) => compiled,
        Err(e) => return format!("{:?}", e.reason),
    };
    if compiled.matches_empty() {
        return "FORX0003".into();
    }
    match PatternReplacement::new(with, compiled.groups(), compiled.is_quoted()) {
        Some(_) => panic!("{text:?}: no error"),
        None => "FORX0004".into(),
    }
}

/// Error codes of replacements. Examples and deviating dialects are in
/// `crates/jindou/tests/cases/values/patterns.test`, where all errors look the same.
#[test]
fn replacements_that_fail_say_why() {
    for (text, pattern, with, flags, expected) in [
        ("abracadabra", ".*?", "$1", "", "FORX0003"),
        ("a\nb\n", "^", "> ", "m", "FORX0003"),
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
        "[\\w-]".repeat(10_000),
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
    // Variants are added once per class, not once for each of its many ranges.
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

/// Patterns for which naive backtracking takes exponential time.
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
        // Either there is no match, or an error that advises what to do. Each check stands for 16,384 steps.
        match found {
            Ok(found) => assert!(!found, "{pattern}"),
            Err(e) => assert!(e.to_string().contains("back-references"), "{pattern}: {e}"),
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
