//! What holds for any text.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use windlass_secrets::Redactor;

/// Pieces that finders look for, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let literal = prop::sample::select(vec![
        "ghp_",
        "sk-",
        "sk-ant-api03-",
        "AKIA",
        "glpat-",
        "xoxb-",
        "eyJhbGciOiJIUzI1NiJ9",
        ".",
        "-",
        "_",
        ":",
        "=",
        "://",
        "@",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "\n",
        "\\n",
        "\"",
        " ",
        "password",
        "token",
        "--token ",
        "Authorization: ",
        "Bearer ",
        "Basic ",
        "%3D",
        "\u{1b}[0m",
        "ü",
        "[redacted: secret]",
        "known-value",
        "SG.",
        "Q~",
        "/",
    ]);
    let piece = prop_oneof![
        3 => literal.prop_map(str::to_owned),
        1 => "[A-Za-z0-9_-]{16,70}",
        1 => "[A-Za-z0-9]{1,5}",
        1 => "[A-Z2-7]{16}",
        1 => "[0-9a-f]{32}",
        1 => "[ -~]{0,12}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn redacting_twice_changes_nothing_more(text in pieces()) {
        let redactor = Redactor::new(["known-value", "other known value"]);
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once).into_owned();
        prop_assert_eq!(&once, &twice);
        prop_assert!(!once.contains("known-value"));
        let line = redactor.redact_line(&text).into_owned();
        prop_assert!(!line.contains("known-value"));
    }

    #[test]
    fn json_stays_json(text in pieces(), name in pieces()) {
        let redactor = Redactor::new(["known-value"]);
        let value = serde_json::json!({ &name: [&text], "token": &text, "n": 1.5 });
        let json = value.to_string();
        let redacted = redactor.redact_json(&json).into_owned();
        let parsed: serde_json::Value = serde_json::from_str(&redacted).unwrap();
        let names = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(names(&parsed), names(&value));
        prop_assert_eq!(redactor.redact_json(&redacted).into_owned(), redacted);
    }
}

/// Texts that make finders look far, many times over. Each is large enough that a finder which looks at everything from every
/// place would take hours.
#[test]
fn time_follows_the_size_of_the_text() {
    let redactor = Redactor::new(["known-value"]);
    for piece in [
        "sk-",
        "sk-proj-",
        "ghp_",
        "eyJ-",
        "eyJhbGciOiJIUzI1NiJ9.",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nabc\n",
        "://",
        "a:b@",
        "http://a:",
        "authorization=",
        "Authorization: Bearer ",
        "token=",
        "token=\"",
        "--token ",
        "password: ",
        "SG.",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/",
        "known-valu",
        "Q~",
        "%3D",
        "a",
        "-",
        "\n",
    ] {
        let text = piece.repeat(1_000_000 / piece.len());
        let started = Instant::now();
        let _ = redactor.redact(&text);
        let _ = redactor.redact_line(&text);
        assert!(started.elapsed() < Duration::from_mins(1), "{piece:?} took {:?}", started.elapsed());
    }
}
