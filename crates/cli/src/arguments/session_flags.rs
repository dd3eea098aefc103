//! Which session the user means, checked as far as words can be.

use anyhow::{anyhow, bail};
use clap::Args;
use uuid::Uuid;
use windlass::sessions::{SessionChoice, SessionSource};

/// The flags about sessions, as they were given.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionFlags {
    /// Continue the latest session of this directory
    #[arg(short = 'c', long = "continue")]
    newest: bool,
    /// Continue a session: its id or the beginning of it, its name, or words of its first prompt
    #[arg(short = 'r', long = "resume", value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    named: Option<String>,
    /// With --resume or --continue: continue in a copy with a new id
    #[arg(long = "fork-session")]
    fork: bool,
    /// With --resume or --continue: continue after the message with this uuid and drop the later ones
    #[arg(long = "resume-session-at", value_name = "UUID")]
    at: Option<String>,
    /// With --resume-session-at: refuse unless exactly the turn of this prompt is dropped
    #[arg(long = "resume-drops-turn", value_name = "UUID")]
    drops: Option<String>,
    /// UUID for the new session
    #[arg(long = "session-id", value_name = "UUID")]
    id: Option<String>,
    /// Name for the session, to find it again
    #[arg(short = 'n', long)]
    name: Option<String>,
    /// With --resume or --continue: restore files to their state at this prompt, and exit; undo reverts that; without a value, list the prompts
    #[arg(long, value_name = "UUID", num_args = 0..=1, default_missing_value = "")]
    pub(super) rewind_files: Option<String>,
    /// With --rewind-files: only show what would change
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not save the session
    #[arg(long = "no-session-persistence")]
    forget: bool,
    /// How many bytes of the session's log a copy takes over; not for the command line.
    #[arg(skip)]
    pub(crate) cut: Option<u64>,
}

impl SessionFlags {
    /// The session they name. Each error is for the user.
    pub(crate) fn choice(&self) -> anyhow::Result<SessionChoice> {
        let source = match (self.named.as_deref().map(str::trim), self.newest) {
            (Some(_), true) => bail!("--resume and --continue name two sessions. Give only one of them."),
            (Some(""), false) => bail!(
                "--resume needs a session: its id, its name, or words of its first prompt. \
                 `windlass sessions list` lists them; --continue takes the latest."
            ),
            (Some(words), false) => SessionSource::Named(words.to_owned()),
            (None, true) => SessionSource::Newest,
            (None, false) => SessionSource::New,
        };
        let choice = SessionChoice {
            source,
            should_fork: self.fork,
            after_message: self.at.as_deref().map(|text| uuid("--resume-session-at", text)).transpose()?,
            log_bytes: self.cut,
            dropped_turn: self.drops.clone(),
            id: self.id.as_deref().map(|text| uuid("--session-id", text)).transpose()?,
            name: self.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned),
            is_unsaved: self.forget,
        };
        choice.check()?;
        Ok(choice)
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
    fn check(flags: &SessionFlags, expected: Result<SessionSource, &str>) {
        let seen = flags.choice().map(|choice| choice.source);
        match (seen, expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen, expected),
            (Err(seen), Err(expected)) => assert!(seen.to_string().contains(expected), "{seen}"),
            (seen, expected) => panic!("{seen:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn flags_that_fit_together_name_one_session() {
        let text = |text: &str| Some(text.to_owned());
        let id = || text("11111111-2222-4333-8444-555555555555");
        let none = SessionFlags::default;
        check(&none(), Ok(SessionSource::New));
        check(&SessionFlags { id: id(), ..none() }, Ok(SessionSource::New));
        check(&SessionFlags { newest: true, ..none() }, Ok(SessionSource::Newest));
        check(
            &SessionFlags { named: text(" my work "), ..none() },
            Ok(SessionSource::Named("my work".into())),
        );
        check(&SessionFlags { newest: true, fork: true, id: id(), ..none() }, Ok(SessionSource::Newest));
        check(&SessionFlags { newest: true, at: id(), drops: text(""), ..none() }, Ok(SessionSource::Newest));
        check(&SessionFlags { named: text("x"), newest: true, ..none() }, Err("two sessions"));
        check(&SessionFlags { named: text(""), ..none() }, Err("windlass sessions list"));
        check(&SessionFlags { fork: true, ..none() }, Err("--fork-session needs a session"));
        check(&SessionFlags { at: id(), ..none() }, Err("--resume-session-at needs a session"));
        check(&SessionFlags { newest: true, id: id(), ..none() }, Err("add --fork-session"));
        check(&SessionFlags { newest: true, drops: id(), ..none() }, Err("needs --resume-session-at"));
        check(&SessionFlags { id: text("x"), ..none() }, Err("--session-id x is not a UUID"));
        check(
            &SessionFlags { newest: true, at: text(""), ..none() },
            Err("--resume-session-at '' is not a UUID"),
        );
    }
}
