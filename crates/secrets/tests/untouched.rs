//! Ordinary text is left alone, byte for byte.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use windlass_secrets::Redactor;

#[track_caller]
fn check(text: &str) {
    let redacted = Redactor::default().redact(text).into_owned();
    let touched = text.lines().zip(redacted.lines()).find(|(before, after)| before != after);
    assert!(redacted == text, "was touched: {touched:?}");
}

#[test]
fn things_that_look_like_secrets() {
    for text in [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b\nAuthor: A <a@example.org>",
        "index 3f78685..89e6c98 100644",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "token: 123e4567-e89b-12d3-a456-426614174000",
        "checksum = \"47042f9c6b9c9bd1a7a8b3d5b0d4f8a0ca3d1b2b0a55bd8c8d2cfb1a3f8e0d11\"",
        "\"integrity\": \"sha512-9a0364b9e99bb480dd25e1f0284c8555Ab3+/xYzQ1w2E3r4T5y6U7i8O9p0==\"",
        "resolved \"https://registry.example.org/a/-/a-1.0.0.tgz#9a0364b9e99bb480dd25e1f0284c8555aabbccdd\"",
        "mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089",
        "\"nextPageToken\": \"CAUQAHoGCNzWlKkGQzE1aB3dE5fG7hI9\"",
        "fn token(token: &TokenStream2) -> Result<AccessTokenResponse, Error2> { self.token = token; }",
        "const password = process.env.DB_PASSWORD_V2 || config.get('database.password');",
        "token = get_token_from_environment_variable_2()",
        "api_key: your-api-key-goes-here-123",
        "API_KEY=<your key here>\nTOKEN=${TOKEN:-none}\nPASSWORD=$DB_PASSWORD_2a3b4c5d",
        "secret: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "Authorization: Bearer <token>\nAuthorization: Bearer $TOKEN\nAuthorization: Bearer YOUR_ACCESS_TOKEN",
        "Bearer authentication-is-described-below",
        "the Authorization: header of this request",
        "postgres://user:password@localhost/db mysql://root:root@127.0.0.1 http://u:${PASS}@h",
        "https://example.org:8080/a@b?c=d:e@f http://[::1]:80/@x ssh://git@github.com:22/x",
        ".sk-fading-circle .sk-circle-container-wrapper { color: red } /* task-queue-manager-v2 */",
        "npm_config_registry npm_package_version npm_lifecycle_event_with_long_name",
        "sk-ant-your-api-key-goes-here-please ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx xoxb-your-token-goes-here",
        "hf_hub_download_with_very_long_name r8_unorm_srgb_texture_format_name",
        "eyJhbGciOiJIUzI1NiJ9 is the header of a JWT; a.b.c is none; eyJub3QganNvbg.abcdefgh.abcdefghijkl",
        "AKIA AKIAab AKIAIOSFODNN7EXAMPLEXYZ SKELETON_KEY_OF_THE_HOUSE",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUXQ1a2b3c4d5e6f7g8h9i0jklmnopqrstuvwxyzABCDEF\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n-----END PUBLIC KEY-----",
        "assert!(pem.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\"));\nassert!(pem.ends_with(\"-----END RSA PRIVATE KEY-----\"));",
        "/home/user/.cache/pip/wheels/a1/b2/c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8",
        "2024-01-15T10:30:00.123456Z 192.168.100.200:8080 1.2.3-beta.4+build.5678",
        "!function(e,t){var n=e.token,r=t.a1B2c3D4;n.password=r.q7Zx2LmV9bTr4WcN(e.k9),i(\"a0b1c2d3e4f5\")}(window,{});",
        "_ZN4core3fmt9Formatter9write_str17h8c2f0a7d3b1e6f59E",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    ] {
        check(text);
    }
}

#[test]
fn pictures() {
    let mut state = 1_u64;
    for size in [100, 1000, 1_000_000] {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .take(size)
        .collect();
        check(&STANDARD.encode(&bytes));
        check(&format!("src=\"data:image/png;base64,{}\"", STANDARD.encode(&bytes)));
        let wrapped: Vec<String> = STANDARD
            .encode(&bytes)
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        check(&wrapped.join("\n"));
    }
}

/// Our own sources, documents and lock file are ordinary text, but for made-up secrets in a few tests.
#[test]
fn this_project() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut lines = 0;
    let mut touched = Vec::new();
    let mut paths =
        ["crates", "docs", "xtask/src", "Cargo.lock", "README.md"].map(|name| root.join(name)).to_vec();
    while let Some(path) = paths.pop() {
        if path.ends_with("crates/secrets") {
            continue;
        }
        if let Ok(entries) = std::fs::read_dir(&path) {
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            lines += text.lines().count();
            let redacted = Redactor::default().redact(&text).into_owned();
            let pairs = text.lines().zip(redacted.lines()).filter(|(before, after)| before != after);
            touched.extend(pairs.map(|(_, after)| format!("{}: {after}", path.display())));
        }
    }
    assert!(lines > 10_000 && touched.len() * 2000 < lines, "{} of {lines}: {touched:#?}", touched.len());
}
