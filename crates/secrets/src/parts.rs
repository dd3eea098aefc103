//! Tokens that are known by their parts: what stands in front, dots between, what a part says when it is decoded.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;
use serde::de::IgnoredAny;

use crate::span::{SecretKind, Span};
use crate::words::{TOKEN, count, count_back, is, is_varied, stands_alone, token_start};

/// A longer header is none.
const JWT_HEADER_BYTES_MAX: usize = 4096;

/// The secret that a run begins, is or ends.
pub(crate) fn find(text: &[u8], run: &Range<usize>) -> Option<Span> {
    let token = TokenCandidate { text, run, start: token_start(text, run) };
    token
        .jwt()
        .or_else(|| token.discord())
        .or_else(|| token.telegram())
        .or_else(|| token.sendgrid())
        .or_else(|| token.google())
        .or_else(|| token.vault())
        .or_else(|| token.webhook())
        .or_else(|| token.azure())
}

struct TokenCandidate<'a> {
    text: &'a [u8],
    run: &'a Range<usize>,
    /// Behind escapes at the front of the run.
    start: usize,
}

impl TokenCandidate<'_> {
    fn inside(&self) -> &[u8] {
        &self.text[self.start..self.run.end]
    }

    fn before(&self) -> &[u8] {
        &self.text[..self.start]
    }

    /// The part behind a dot at `at`.
    fn part(&self, at: usize) -> Option<Range<usize>> {
        let rest = self.text.get(at..)?.strip_prefix(b".")?;
        Some(at + 1..at + 1 + count(rest, TOKEN))
    }

    /// Three parts and more, the first of which is JSON.
    fn jwt(&self) -> Option<Span> {
        let header = self.inside();
        let begins_json = header.starts_with(b"eyJ") || header.starts_with(b"ewog");
        (begins_json && header.len() <= JWT_HEADER_BYTES_MAX).then_some(())?;
        let payload = self.part(self.run.end)?;
        let signature = self.part(payload.end)?;
        (payload.len() >= 4 && signature.len() >= 8).then_some(())?;
        let header = URL_SAFE_NO_PAD.decode(header).ok()?;
        serde_json::from_slice::<IgnoredAny>(&header).ok()?;
        // An encrypted one has two more.
        let encrypted = self.part(signature.end).and_then(|third| self.part(third.end));
        let last = encrypted.filter(|part| part.len() >= 8).unwrap_or(signature);
        Some(span(self.start, last.end, "JWT"))
    }

    /// The number of a bot in base64, a time and a signature.
    fn discord(&self) -> Option<Span> {
        let number = self.inside();
        (matches!(number[0], b'M' | b'N' | b'O') && (22..=28).contains(&number.len())).then_some(())?;
        let time = self.part(self.run.end)?;
        let signature = self.part(time.end)?;
        ((5..=7).contains(&time.len()) && (27..=45).contains(&signature.len())).then_some(())?;
        let number = STANDARD_NO_PAD.decode(number).ok()?;
        number.iter().all(u8::is_ascii_digit).then_some(())?;
        Some(span(self.start, signature.end, "Discord token"))
    }

    /// The number of a bot, a colon and 35 characters.
    fn telegram(&self) -> Option<Span> {
        let inside = self.inside();
        (inside.len() == 35 && inside.starts_with(b"AA")).then_some(())?;
        let before = self.before().strip_suffix(b":")?;
        let digits = count_back(before, 11, |byte| byte.is_ascii_digit());
        let front = &before[..before.len() - digits];
        ((8..=10).contains(&digits) && (front.ends_with(b"bot") || stands_alone(front))).then_some(())?;
        Some(span(self.start - 1 - digits, self.run.end, "Telegram token"))
    }

    fn sendgrid(&self) -> Option<Span> {
        let front = self.before().strip_suffix(b"SG.")?;
        let rest = self.part(self.run.end)?;
        (stands_alone(front) && self.inside().len() == 22 && rest.len() == 43).then_some(())?;
        Some(span(front.len(), rest.end, "SendGrid key"))
    }

    /// Access and refresh tokens.
    fn google(&self) -> Option<Span> {
        let before = self.before();
        let front = before.strip_suffix(b"ya29.").or_else(|| {
            before
                .strip_suffix(b"1//")
                .filter(|_| self.inside().starts_with(b"0") && self.inside().len() >= 40)
        })?;
        (stands_alone(front) && is_varied(self.inside())).then_some(())?;
        Some(span(front.len(), self.run.end, "Google token"))
    }

    fn vault(&self) -> Option<Span> {
        let before = self.before();
        let front = [b"hvs.", b"hvb.", b"hvr."].iter().find_map(|prefix| before.strip_suffix(*prefix))?;
        (stands_alone(front) && self.inside().len() >= 20 && is_varied(self.inside())).then_some(())?;
        Some(span(front.len(), self.run.end, "Vault token"))
    }

    /// The last part of an address that lets anybody write.
    fn webhook(&self) -> Option<Span> {
        let front = &self.before()[..self.start.checked_sub(1)?];
        (self.before().last() == Some(&b'/') && is_varied(self.inside())).then_some(())?;
        let path = count_back(front, 64, |byte| is(byte, TOKEN) || byte == b'/');
        let host = &front[..front.len() - path];
        let path = &front[front.len() - path..];
        let is_discord = memmem::find(path, b"/api/webhooks/").is_some() && self.inside().len() >= 60;
        let is_slack = host.ends_with(b"hooks.slack.") && path.starts_with(b"com/services/");
        (is_discord || is_slack).then(|| span(self.start, self.run.end, "webhook secret"))
    }

    /// Client secrets have a mark behind the third character, keys and access tokens one near their end.
    fn azure(&self) -> Option<Span> {
        let inside = self.inside();
        let marked = |at: usize, mark: &[u8]| inside.len() == 84 && inside[at..].starts_with(mark);
        if marked(76, b"AZDO") || marked(52, b"JQQJ99") {
            return Some(span(self.start, self.run.end, "Azure token"));
        }
        let front = self.before().strip_suffix(b"Q~")?;
        let is_part = |byte: u8| is(byte, TOKEN) || matches!(byte, b'.' | b'~');
        let fits = count_back(front, 4, is_part) == 4 && front.last().is_some_and(u8::is_ascii_digit);
        (fits && stands_alone(&front[..front.len() - 4])).then_some(())?;
        let rest = &self.text[self.start..];
        let rest = rest.iter().take(64).take_while(|byte| is_part(**byte)).count();
        (30..=36).contains(&rest).then(|| span(front.len() - 4, self.start + rest, "Azure secret"))
    }
}

fn span(start: usize, end: usize, kind: &'static str) -> Span {
    Span { start, end, kind: SecretKind::Token(kind) }
}
