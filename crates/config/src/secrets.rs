//! What of the settings must not be seen anywhere.

use crate::ApiSettings;

/// Headers whose names hold one of these carry a secret. Others may say a team's name, which is in every second file.
const TELLING: &[&str] = &["authorization", "key", "token", "secret", "password", "cookie", "credential"];

impl ApiSettings {
    /// The secrets that are sent to the provider: whatever prints or keeps text hides these first.
    pub fn secrets(&self) -> Vec<&str> {
        let keys = [&self.key, &self.token].into_iter().flatten().map(windlass_protocol::Secret::reveal);
        let headers = self.headers.iter().filter(|(name, _)| is_telling(name));
        let headers = headers.map(|(_, value)| without_scheme(value.reveal()));
        let password = self.base_url.as_ref().and_then(|url| password(url.reveal()));
        keys.chain(headers).chain(password).collect()
    }
}

/// Whether what has this name is a secret.
pub(crate) fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// `Bearer x` hides `x`.
fn without_scheme(value: &str) -> &str {
    let value = value.trim();
    match value.split_once(' ') {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest.trim(),
        _ => value,
    }
}

fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use windlass_protocol::Secret;

    use super::*;

    #[test]
    fn what_is_sent_to_the_provider_is_secret() {
        let header = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        let api = ApiSettings {
            key: Some(Secret::new("key")),
            token: Some(Secret::new("token")),
            base_url: Some(Secret::new("https://me:in:the@way@host/a@b")),
            headers: vec![
                header("Authorization", "Bearer bearer"),
                header("X-Api-Key", "header-key"),
                header("Cookie", "a=1; b=2"),
                header("X-Team", "engineering"),
            ],
            ..ApiSettings::default()
        };
        assert_eq!(api.secrets(), ["key", "token", "bearer", "header-key", "a=1; b=2", "in:the@way"]);
        assert_eq!(ApiSettings::default().secrets(), Vec::<&str>::new());
    }
}
