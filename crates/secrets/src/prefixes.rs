//! Tokens that say at their front whose they are.

use std::ops::Range;

use crate::span::{SecretKind, Span};
use crate::words::{TOKEN, WORD_BYTES_MIN, count, count_back, is, is_varied, token_start};

/// More parts behind dots has no token.
const DOTTED_MAX: usize = 3;

/// One kind of token, and what it may begin with; all of that has the same first byte.
struct TokenKind {
    prefixes: &'static [&'static str],
    name: &'static str,
    body: Body,
}

/// What follows the prefix. It is never of one case alone: that would be words.
enum Body {
    /// So many letters and digits, and no more.
    Exactly(usize),
    /// So many hexadecimal digits, and no more.
    Hex(usize),
    /// So many capitals and digits, and no more.
    Capitals(usize),
    /// So many letters and digits, or more.
    Plain(usize),
    /// So many letters, digits, `-` and `_`, and no more.
    ExactlyWide(usize),
    /// So many letters, digits, `-` and `_`, or more: everything that follows.
    Wide(usize),
    /// The same, and parts that follow behind dots.
    Dotted(usize),
}

const fn row(prefixes: &'static [&'static str], name: &'static str, body: Body) -> TokenKind {
    TokenKind { prefixes, name, body }
}

/// Sorted by the first byte; of two that fit, the one that comes first counts.
static KINDS: &[TokenKind] = &[
    row(&["ABIA", "ACCA", "AKIA", "ASIA"], "AWS key id", Body::Capitals(16)),
    row(&["AGE-SECRET-KEY-1"], "age key", Body::Capitals(58)),
    row(&["AIza"], "Google API key", Body::ExactlyWide(35)),
    row(&["ATATT3", "ATCTT3"], "Atlassian token", Body::Wide(80)),
    row(&["EAAA"], "Square token", Body::ExactlyWide(60)),
    row(&["GOCSPX-"], "Google client secret", Body::Wide(24)),
    row(&["HRKU-"], "Heroku key", Body::Wide(36)),
    row(&["NRAK-"], "New Relic key", Body::Capitals(27)),
    row(&["PMAK-"], "Postman key", Body::Wide(48)),
    row(&["SK"], "Twilio key", Body::Hex(32)),
    row(&["dapi"], "Databricks token", Body::Hex(32)),
    row(&["dckr_pat_", "dckr_oat_"], "Docker token", Body::Wide(20)),
    row(&["doo_v1_", "dop_v1_", "dor_v1_"], "DigitalOcean token", Body::Hex(64)),
    row(&["figd_"], "Figma token", Body::Wide(32)),
    row(&["ghp_", "gho_", "ghu_", "ghr_"], "GitHub token", Body::Plain(36)),
    row(&["ghs_"], "GitHub token", Body::Dotted(36)),
    row(&["github_pat_"], "GitHub token", Body::Wide(36)),
    row(
        &[
            "glagent-", "glcbt-", "gldt-", "glffct-", "glft-", "glimt-", "gloas-", "glpat-", "glptt-",
            "glrt-", "glsoat-",
        ],
        "GitLab token",
        Body::Dotted(20),
    ),
    row(&["glc_", "glsa_"], "Grafana token", Body::Wide(32)),
    row(&["gsk_"], "Groq key", Body::Plain(40)),
    row(&["hf_"], "Hugging Face token", Body::Exactly(34)),
    row(&["lin_api_"], "Linear key", Body::Plain(32)),
    row(&["nfp_"], "Netlify token", Body::Plain(36)),
    row(&["npm_"], "npm token", Body::Exactly(36)),
    row(&["nvapi-"], "NVIDIA key", Body::Wide(60)),
    row(&["pplx-"], "Perplexity key", Body::Plain(40)),
    row(&["pypi-AgE"], "PyPI token", Body::Wide(50)),
    row(&["r8_"], "Replicate token", Body::Exactly(37)),
    row(&["rk_live_", "rk_prod_"], "Stripe key", Body::Plain(16)),
    row(&["rubygems_"], "RubyGems key", Body::Hex(48)),
    row(&["sbp_"], "Supabase token", Body::Hex(40)),
    row(&["shpat_", "shpca_", "shppa_", "shpss_"], "Shopify token", Body::Hex(32)),
    row(&["sk-ant-"], "Anthropic key", Body::Wide(20)),
    row(&["sk-proj-", "sk-svcacct-", "sk-admin-"], "OpenAI key", Body::Wide(20)),
    row(&["sk-or-v1-"], "OpenRouter key", Body::Hex(64)),
    row(&["sk-"], "API key", Body::Plain(20)),
    row(&["sk_live_", "sk_prod_"], "Stripe key", Body::Plain(16)),
    row(&["sntrys_"], "Sentry token", Body::Wide(40)),
    row(&["sntryu_"], "Sentry token", Body::Hex(64)),
    row(&["tskey-"], "Tailscale key", Body::Wide(20)),
    row(&["vcp_"], "Vercel token", Body::Plain(40)),
    row(&["whsec_"], "webhook secret", Body::Plain(24)),
    row(&["xai-"], "xAI key", Body::Plain(60)),
    row(&["xapp-"], "Slack token", Body::Wide(20)),
    row(
        &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        "Slack token",
        Body::Wide(16),
    ),
];

/// The rows that begin with a byte, as a range.
static ROWS: [(u8, u8); 256] = rows();

#[expect(clippy::cast_possible_truncation, reason = "the table has fewer than 256 rows; a test checks it")]
const fn rows() -> [(u8, u8); 256] {
    let mut index = [(0, 0); 256];
    let mut row = 0;
    while row < KINDS.len() {
        let first = KINDS[row].prefixes[0].as_bytes()[0] as usize;
        if index[first].1 == 0 {
            index[first].0 = row as u8;
        }
        index[first].1 = row as u8 + 1;
        row += 1;
    }
    index
}

/// The kinds that may begin with a byte, each with one of its prefixes.
fn candidates(first: u8) -> impl Iterator<Item = (&'static str, &'static TokenKind)> {
    let (from, to) = ROWS[usize::from(first)];
    let kinds = KINDS[usize::from(from)..usize::from(to)].iter();
    kinds.flat_map(|kind| kind.prefixes.iter().map(move |prefix| (*prefix, kind)))
}

/// The tokens in a run. One may begin at the front, and behind each `-` and `_`.
pub(crate) fn find(text: &[u8], run: &Range<usize>, spans: &mut Vec<Span>) {
    let mut at = token_start(text, run);
    while at + WORD_BYTES_MIN <= run.end {
        match token(text, at, run.end) {
            Some(span) => {
                at = span.end;
                spans.push(span);
            }
            None => at += 1,
        }
        // A token that took everything took what stands behind dots too.
        let Some(rest) = text.get(at..run.end) else { return };
        let Some(next) = rest.iter().position(|byte| matches!(byte, b'-' | b'_')) else { return };
        at += next + 1;
    }
}

fn token(text: &[u8], at: usize, run_end: usize) -> Option<Span> {
    let rest = &text[at..run_end];
    let (prefix, kind) = candidates(rest[0]).find(|(prefix, _)| rest.starts_with(prefix.as_bytes()))?;
    let body = &rest[prefix.len()..];
    let taken = body_length(&kind.body, body)?;
    is_varied(&body[..taken.min(256)]).then_some(())?;
    let end = at + prefix.len() + taken;
    let end = if matches!(kind.body, Body::Dotted(_)) { end + dotted_length(&text[end..]) } else { end };
    Some(Span { start: at, end, kind: SecretKind::Token(kind.name) })
}

fn body_length(body: &Body, bytes: &[u8]) -> Option<usize> {
    let count = |wanted: fn(&u8) -> bool| bytes.iter().take_while(|byte| wanted(byte)).count();
    let plain = count(u8::is_ascii_alphanumeric);
    let (length, fits) = match *body {
        Body::Exactly(wanted) => (plain, plain == wanted),
        Body::Plain(least) => (plain, plain >= least),
        Body::Hex(wanted) => (plain, plain == wanted && count(u8::is_ascii_hexdigit) == wanted),
        Body::Capitals(wanted) => {
            let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            (plain, plain == wanted && count(is_capital) == wanted)
        }
        Body::ExactlyWide(wanted) => (bytes.len(), bytes.len() == wanted),
        Body::Wide(least) | Body::Dotted(least) => (bytes.len(), bytes.len() >= least),
    };
    fits.then_some(length)
}

/// The length of further parts, each behind a dot: long ones, or short ones that begin with a digit.
fn dotted_length(rest: &[u8]) -> usize {
    let mut end = 0;
    for _ in 0..DOTTED_MAX {
        let Some(part) = rest.get(end..).and_then(|rest| rest.strip_prefix(b".")) else { break };
        let length = count(part, TOKEN);
        if length < WORD_BYTES_MIN && !(length > 1 && part[0].is_ascii_digit()) {
            break;
        }
        end += 1 + length;
    }
    end
}

/// Whether a text ends in what may be the beginning of a token, and where it begins there.
pub(crate) fn unfinished_start(text: &[u8]) -> Option<usize> {
    let run = text.len() - count_back(text, 256, |byte| is(byte, TOKEN))..text.len();
    if run.is_empty() {
        return None;
    }
    let begins = |at: usize| {
        let rest = &text[at..];
        // Two letters could be anything.
        let telling = |prefix: &str| prefix.len() > 3 && rest.len() >= prefix.len() + 4;
        let mut prefixes = candidates(rest[0]).map(|(prefix, _)| prefix);
        rest.len() < 80 && prefixes.any(|prefix| telling(prefix) && rest.starts_with(prefix.as_bytes()))
    };
    let first = token_start(text, &run).min(text.len() - 1);
    let inner = (run.start + 1..run.end).filter(|at| matches!(text[at - 1], b'-' | b'_'));
    std::iter::once(first).chain(inner).find(|at| begins(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_looked_up() {
        assert!(KINDS.len() < 256);
        let prefixes = || KINDS.iter().flat_map(|kind| kind.prefixes).copied();
        for prefix in prefixes() {
            let mut found = candidates(prefix.as_bytes()[0]);
            assert!(found.any(|(row, _)| row == prefix), "{prefix}");
        }
        let firsts: Vec<u8> = prefixes().map(|prefix| prefix.as_bytes()[0]).collect();
        assert!(firsts.is_sorted());
    }
}
