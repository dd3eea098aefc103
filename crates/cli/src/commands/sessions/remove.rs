//! `windlass sessions rm` and `restore`.

use std::fmt::Write as _;

use anyhow::anyhow;
use windlass_session::{SessionInfo, remove as move_to_trash, restore as put_back};

use super::list::{home_as_tilde, summary};
use super::{Ground, print};

/// Moves sessions to the trash. All of them are looked up first: a wrong id moves none.
pub(super) fn remove(ground: &Ground, queries: &[String]) -> anyhow::Result<()> {
    let find = |query: &String| ground.catalogue().find_id(&ground.cwd, query);
    let sessions: Vec<SessionInfo> = queries.iter().map(find).collect::<Result<_, _>>()?;
    let mut failures = Vec::new();
    let mut text = String::new();
    for session in &sessions {
        match move_to_trash(&ground.layout, session) {
            Ok(_) => {
                let _ = writeln!(text, "Moved to the trash: {} ({})", session.id, summary(session));
            }
            Err(error) => failures.push(format!("{}: {error}", session.id)),
        }
    }
    if !text.is_empty() {
        text.push_str("Undo with `windlass sessions restore ID`.\n");
    }
    finish(&text, &failures)
}

/// Brings sessions back.
pub(super) fn restore(ground: &Ground, queries: &[String]) -> anyhow::Result<()> {
    let mut failures = Vec::new();
    let mut text = String::new();
    for query in queries {
        match put_back(&ground.layout, query) {
            Ok(path) => {
                let _ = writeln!(text, "Restored {}", home_as_tilde(&path));
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    finish(&text, &failures)
}

fn finish(text: &str, failures: &[String]) -> anyhow::Result<()> {
    print(text)?;
    if failures.is_empty() { Ok(()) } else { Err(anyhow!(failures.join(" "))) }
}
