//! Every kind of secret is found wherever it may stand, and nothing around it is touched.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use windlass_secrets::Redactor;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// Characters in no order, always the same. No token is written out here, so that nobody takes one for real.
fn made_up(alphabet: &str, length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).unwrap()
    };
    let alphabet = alphabet.as_bytes();
    (0..length).map(|_| char::from(alphabet[next() % alphabet.len()])).collect()
}

fn letters(length: usize) -> String {
    made_up(LETTERS, length)
}

/// The secret is replaced, alone and in whatever surroundings.
fn check(secret: &str, kind: &str) {
    let redactor = Redactor::default();
    let hidden = format!("[redacted: {kind}]");
    let places = [
        ("", ""),
        ("the key ", " is here"),
        ("KEY=", "\n"),
        ("\"", "\","),
        ("'", "'"),
        ("(", ")"),
        ("first line\n", "\r\nlast line"),
        ("export X='", "'; y"),
        ("> curl -u ", ":x"),
        ("{\\\"key\\\":\\\"", "\\\"}"),
        ("one\\n", "\\ntwo"),
        ("?q%3D", "&r=1"),
        ("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m"),
        ("größe: ", "…"),
        ("     7\t", "\n"),
    ];
    for (before, after) in places {
        let text = format!("{before}{secret}{after}");
        assert_eq!(redactor.redact(&text), format!("{before}{hidden}{after}"), "for {text:?}");
    }
    let twice = format!("{secret} {secret}");
    assert_eq!(redactor.redact(&twice), format!("{hidden} {hidden}"));
}

#[test]
fn tokens_that_say_whose_they_are() {
    let check = |prefix: &str, body: String, kind: &str| check(&format!("{prefix}{body}"), kind);
    check("sk-ant-api03-", letters(93) + "AA", "Anthropic key");
    check("sk-ant-oat01-", letters(40) + "-_" + &letters(40), "Anthropic key");
    check("sk-proj-", letters(60) + "_" + &letters(40), "OpenAI key");
    check("sk-", letters(48), "API key");
    check("AIza", letters(35), "Google API key");
    check("GOCSPX-", letters(28), "Google client secret");
    for prefix in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
        check(prefix, letters(36), "GitHub token");
        check(prefix, letters(76), "GitHub token");
    }
    check("github_pat_", letters(22) + "_" + &letters(59), "GitHub token");
    check("glpat-", letters(20), "GitLab token");
    check("glpat-", letters(27) + ".01.0" + &made_up(HEX, 8), "GitLab token");
    check("AKIA", made_up(CAPITALS, 16), "AWS key id");
    check("ASIA", made_up(CAPITALS, 16), "AWS key id");
    check("xoxb-", "123456789012-1234567890123-".to_owned() + &letters(24), "Slack token");
    check("xoxp-", "123456789012-".to_owned() + &letters(32), "Slack token");
    check("sk_live_", letters(24), "Stripe key");
    check("rk_live_", letters(99), "Stripe key");
    check("npm_", letters(36), "npm token");
    check("pypi-AgEIcHlwaS5vcmc", letters(150), "PyPI token");
    check("HRKU-AA", letters(58), "Heroku key");
    check("dop_v1_", made_up(HEX, 64), "DigitalOcean token");
    check("SK", made_up(HEX, 32), "Twilio key");
    check("hf_", letters(34), "Hugging Face token");
}

#[test]
fn tokens_made_of_parts() {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let payload = URL_SAFE_NO_PAD.encode(r#"{"sub":"1234567890"}"#);
    check(&format!("{header}.{payload}.{}", letters(43)), "JWT");
    check(&format!("{header}.{}.{}.{}.{}", letters(60), letters(16), letters(80), letters(22)), "JWT");
    check(&format!("SG.{}.{}", letters(22), letters(43)), "SendGrid key");
    check(&format!("1234567890:AA{}", letters(33)), "Telegram token");
    let bot = STANDARD.encode("123456789012345678");
    check(&format!("{bot}.{}.{}", letters(6), letters(38)), "Discord token");
    check(&format!("ya29.{}", letters(120)), "Google token");
    check(&format!("hvs.{}", letters(90)), "Vault token");
    check(&format!("a1B8Q~{}", letters(34)), "Azure secret");
    check(&format!("{}AZDO{}", letters(76), made_up(CAPITALS, 4)), "Azure token");
}

#[test]
fn tokens_in_addresses() {
    let check = |text: &str, expected: &str| assert_eq!(Redactor::default().redact(text), expected);
    let key = letters(24);
    check(
        &format!("https://hooks.slack.com/services/T01234567/B01234567/{key}"),
        "https://hooks.slack.com/services/T01234567/B01234567/[redacted: webhook secret]",
    );
    check(
        &format!("https://discord.com/api/webhooks/123456789012345678/{}", letters(68)),
        "https://discord.com/api/webhooks/123456789012345678/[redacted: webhook secret]",
    );
    check(
        &format!("https://api.telegram.org/bot12345678:AA{}/getMe", letters(33)),
        "https://api.telegram.org/bot[redacted: Telegram token]/getMe",
    );
    check(
        "postgres://app:hunter2!@db.internal:5432/x",
        "postgres://app:[redacted: password]@db.internal:5432/x",
    );
    check("see <https://me:s3cr3t@example.org/>.", "see <https://me:[redacted: password]@example.org/>.");
    check("redis://:s3cr3t@cache:6379", "redis://:[redacted: password]@cache:6379");
    check(
        "amqp://u:p%40ss@h [a](ftp://x:yz12@h)",
        "amqp://u:[redacted: password]@h [a](ftp://x:[redacted: password]@h)",
    );
}

#[test]
fn headers() {
    let check = |before: &str, value: &str, after: &str| {
        let text = format!("{before}{value}{after}");
        assert_eq!(Redactor::default().redact(&text), format!("{before}[redacted: credentials]{after}"));
    };
    let token = letters(32);
    check("Authorization: Bearer ", &token, "\r\n");
    check("authorization: token ", &token, "");
    check("> Proxy-Authorization: Basic ", &STANDARD.encode("user:pass"), "\n");
    check("curl -H 'Authorization: Bearer ", &token, "' https://x");
    check("{\"Authorization\": \"Bearer ", &token, "\"}");
    check("headers[\"Authorization\"] = \"Bearer ", &token, "\"");
    check("HTTP_AUTHORIZATION=Bearer ", &token, "\n");
    check("sent Bearer ", &token, " to it");
}

#[test]
fn random_values_beside_telling_names() {
    let check = |before: &str, value: &str, after: &str| {
        let text = format!("{before}{value}{after}");
        assert_eq!(Redactor::default().redact(&text), format!("{before}[redacted: secret]{after}"));
    };
    let value = letters(24);
    check("password = \"", &value, "\"");
    check("DB_PASSWORD=", &value, "\nOTHER=1");
    check("  api_key: ", &value, "\n");
    check("\"client_secret\" : \"", &value, "\",");
    check("{\\\"token\\\":\\\"", &value, "\\\"}");
    check("config['secret_key'] = '", &value, "'");
    check("let token: &str = \"", &value, "\";");
    check("deploy --token ", &value, " --force");
    check("<password>", &value, "</password>");
    check("secret_key_base => '", &made_up(HEX, 128), "'");
    check("aws_secret_access_key = ", &(letters(20) + "/+" + &letters(18)), "\n");
    check("AccountKey=", &(letters(60) + "+/" + &letters(24) + "=="), ";EndpointSuffix=x");
    check("password: '", "p8#Kd!2xRtQz@7Lm$w,(k", "'");
    check("HEROKU_API_KEY=", "123e4567-e89b-12d3-a456-426614174000", "\n");
}

fn key_block(label: &str, newline: &str) -> String {
    let mut block = format!("-----BEGIN {label}-----{newline}");
    for _ in 0..12 {
        write!(block, "{}{newline}", made_up(&format!("{LETTERS}+/"), 64)).unwrap();
    }
    write!(block, "{}=={newline}-----END {label}-----", letters(22)).unwrap();
    block
}

#[test]
fn private_keys() {
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        for newline in ["\n", "\r\n", "\\n"] {
            let block = key_block(label, newline);
            let text = format!("before\n{block}\nafter\n{block}");
            let expected = "before\n[redacted: private key]\nafter\n[redacted: private key]";
            assert_eq!(Redactor::default().redact(&text), expected, "{label} {newline:?}");
        }
    }
    let account = format!("{{\"private_key\": \"{}\\n\", \"a\": 1}}", key_block("PRIVATE KEY", "\\n"));
    assert_eq!(
        Redactor::default().redact(&account),
        "{\"private_key\": \"[redacted: private key]\\n\", \"a\": 1}"
    );
}

#[test]
fn private_keys_that_were_cut() {
    let check =
        |text: &str, expected: &str| assert_eq!(Redactor::default().redact(text), expected, "for {text}");
    let block = key_block("EC PRIVATE KEY", "\n");
    let lines: Vec<&str> = block.lines().collect();
    check(
        &format!("$ head key\n{}\n$ next", lines[..5].join("\n")),
        "$ head key\n[redacted: private key]$ next",
    );
    check(
        &format!("$ tail key\n{}\n$ next", lines[5..].join("\n")),
        "$ tail key\n[redacted: private key]\n$ next",
    );
    let numbered: String = lines.iter().enumerate().fold(String::new(), |mut text, (at, line)| {
        writeln!(text, "{:>6}\t{line}", at + 1).unwrap();
        text
    });
    check(&numbered, "     1\t[redacted: private key]\n");
    check(
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") {",
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") {",
    );
}

#[test]
fn known_values_in_every_form() {
    let value = "w/ird \"value\" of ours: ü";
    let redactor = Redactor::new([value, "short", "", "  trimmed value \n"]);
    let hidden = "[redacted: known secret]";
    let check =
        |form: &str| assert_eq!(redactor.redact(&format!("<{form}>")), format!("<{hidden}>"), "{form}");
    check(value);
    check(r#"w/ird \"value\" of ours: ü"#);
    check(r#"w\/ird \"value\" of ours: ü"#);
    check("w%2Fird%20%22value%22%20of%20ours%3A%20%C3%BC");
    check("w%2fird%20%22value%22%20of%20ours%3a%20%c3%bc");
    check("trimmed value");
    assert_eq!(redactor.redact("short"), "short");
    for before in ["", "a", "ab", "user:"] {
        for after in ["", "x", "xy", "xyz"] {
            let whole = STANDARD.encode(format!("{before}{value}{after}"));
            let redacted = redactor.redact(&whole);
            assert!(redacted.contains(hidden), "{before:?} {after:?}");
            assert!(redacted.len() < hidden.len() + 16, "{redacted} leaves too much");
        }
    }
    assert!(!format!("{redactor:?}").contains("ird"));
}

#[test]
fn unfinished_lines() {
    let redactor = Redactor::new(["sesame-open-sesame"]);
    let check = |line: &str, expected: &str| assert_eq!(redactor.redact_line(line), expected, "for {line}");
    check("Compiling windlass v0.1.0 (/home/me/windlass)", "Compiling windlass v0.1.0 (/home/me/windlass)");
    check("key: sesame-open-se", "key: [redacted: known secret]");
    check("key: sesame", "key: sesame");
    check("got ghp_1a2b3", "got [redacted: unfinished token]");
    check("got ghp_", "got ghp_");
    check(&format!("got ghp_{}", letters(36)), "got [redacted: GitHub token]");
    check(&letters(64), "[redacted: private key]");
    check(&made_up(HEX, 64), &made_up(HEX, 64));
}
