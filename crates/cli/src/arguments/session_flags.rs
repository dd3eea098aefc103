//! Which session the user means, checked as far as words can be.

use anyhow::{anyhow, bail};
use uuid::Uuid;
use windlass::sessions::{SessionChoice, SessionSource};

/// The flags about sessions, as they were given.
#[derive(Debug, Default)]
pub(crate) struct SessionFlags<'a> {
    pub(crate) newest: bool,
    pub(crate) named: Option<&'a str>,
    pub(crate) fork: bool,
    pub(crate) at: Option<&'a str>,
    pub(crate) drops: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) cut: Option<u64>,
    pub(crate) forget: bool,
}

impl SessionFlags<'_> {
    /// The session they name. Each error is for the user.
    pub(crate) fn choice(&self) -> anyhow::Result<SessionChoice> {
        let flags = self;
        let source = match (flags.named.map(str::trim), flags.newest) {
            (Some(_), true) => {
                bail!("--resume and --continue name two sessions. Give only one of them.");
            }
            (Some(""), false) => {
                bail!(
                    "--resume needs a session: its id, its name, or words of its first prompt. \
                     `windlass sessions list` lists them; --continue takes the latest."
                );
            }
            (Some(words), false) => SessionSource::Named(words.to_owned()),
            (None, true) => SessionSource::Newest,
            (None, false) => SessionSource::New,
        };
        let is_new = source == SessionSource::New;
        for (flag, given) in [("--fork-session", flags.fork), ("--resume-session-at", flags.at.is_some())] {
            if given && is_new {
                bail!("{flag} needs a session: add --resume ID or --continue.");
            }
        }
        if flags.drops.is_some() && flags.at.is_none() {
            bail!("--resume-drops-turn needs --resume-session-at.");
        }
        if flags.id.is_some() && !is_new && !flags.fork {
            bail!("--session-id is for a new session. With --resume or --continue, add --fork-session.");
        }
        Ok(SessionChoice {
            source,
            fork: flags.fork,
            at: flags.at.map(|text| uuid("--resume-session-at", text)).transpose()?,
            cut: flags.cut,
            drops: flags.drops.map(str::to_owned),
            id: flags.id.map(|text| uuid("--session-id", text)).transpose()?,
            name: flags.name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned),
            forget: flags.forget,
        })
    }
}

fn uuid(flag: &str, text: &str) -> anyhow::Result<Uuid> {
    let example = "11111111-2222-4333-8444-555555555555";
    Uuid::parse_str(text.trim()).map_err(|_| {
        let given = if text.trim().is_empty() { "''".to_owned() } else { windlass::display::line(text) };
        anyhow!("{flag} {given} is not a UUID such as {example}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(flags: &SessionFlags<'_>, expected: Result<SessionSource, &str>) {
        let seen = flags.choice().map(|choice| choice.source);
        match (seen, expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen, expected),
            (Err(seen), Err(expected)) => assert!(seen.to_string().contains(expected), "{seen}"),
            (seen, expected) => panic!("{seen:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn flags_that_fit_together_name_one_session() {
        let id = Some("11111111-2222-4333-8444-555555555555");
        let none = SessionFlags::default;
        check(&none(), Ok(SessionSource::New));
        check(&SessionFlags { id, ..none() }, Ok(SessionSource::New));
        check(&SessionFlags { newest: true, ..none() }, Ok(SessionSource::Newest));
        check(
            &SessionFlags { named: Some(" my work "), ..none() },
            Ok(SessionSource::Named("my work".into())),
        );
        check(&SessionFlags { newest: true, fork: true, id, ..none() }, Ok(SessionSource::Newest));
        check(&SessionFlags { newest: true, at: id, drops: Some(""), ..none() }, Ok(SessionSource::Newest));
        check(&SessionFlags { named: Some("x"), newest: true, ..none() }, Err("two sessions"));
        check(&SessionFlags { named: Some(""), ..none() }, Err("windlass sessions list"));
        check(&SessionFlags { fork: true, ..none() }, Err("--fork-session needs a session"));
        check(&SessionFlags { at: id, ..none() }, Err("--resume-session-at needs a session"));
        check(&SessionFlags { newest: true, id, ..none() }, Err("add --fork-session"));
        check(&SessionFlags { newest: true, drops: id, ..none() }, Err("needs --resume-session-at"));
        check(&SessionFlags { id: Some("x"), ..none() }, Err("--session-id x is not a UUID"));
        check(
            &SessionFlags { newest: true, at: Some(""), ..none() },
            Err("--resume-session-at '' is not a UUID"),
        );
    }
}
