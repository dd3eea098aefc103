//! `windlass sessions search`.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use anyhow::ensure;
use serde_json::{Value, json};
use windlass::SessionStore;
use windlass::session_store::{SearchHit, SearchSpeaker, SessionInfo};
use windlass_text::time::now_ms;

use super::list::summary;
use super::{SearchArguments, columns, json_list, print, short};
use crate::views::layout;
use crate::{complain, display};

pub(super) fn run(store: &SessionStore, wanted: &SearchArguments) -> anyhow::Result<()> {
    let words = wanted.words.join(" ");
    ensure!(!words.trim().is_empty(), "missing search words. Usage: `windlass sessions search WORDS`.");
    let searched = wanted.list.sessions(store);
    let limit = wanted.list.limit();
    let mut hits: Vec<SearchHit<'_>> = Vec::new();
    let mut more = false;
    let unreadable = store.search(&searched, &words, &mut |hit| {
        more = hits.len() == limit;
        if more {
            return ControlFlow::Break(());
        }
        hits.push(hit);
        ControlFlow::Continue(())
    });
    for path in unreadable {
        complain(&format!("cannot read {}; it was not searched.", path.display()));
    }
    if wanted.list.json {
        return print(&json_list(hits.iter().map(as_json)));
    }
    if hits.is_empty() && !more {
        return print(&nothing(&words, wanted.list.all, searched.len()));
    }
    let mut text = as_text(&hits, now_ms(), columns());
    if more {
        text.push_str("\nMore matches are not shown; add --limit N.\n");
    }
    print(&text)
}

fn nothing(words: &str, is_everywhere: bool, sessions: usize) -> String {
    let words = display::line(words);
    let searched = display::quantity(sessions as u64, "session");
    let elsewhere = if is_everywhere { "" } else { " Add --all to search all projects." };
    format!("No matches for {words:?} in {searched}.{elsewhere}\n")
}

fn as_text(hits: &[SearchHit<'_>], now_ms: u64, columns: usize) -> String {
    const SPEAKER: usize = 12;
    let mut text = String::new();
    let mut last: Option<&SessionInfo> = None;
    for hit in hits {
        if last.is_none_or(|last| last.path != hit.session.path) {
            let gap = if last.is_some() { "\n" } else { "" };
            let ago = display::ago(hit.session.modified_ms, now_ms);
            let line = format!("{}  {ago}  {}", short(hit.session), summary(hit.session));
            let _ = writeln!(text, "{gap}{}", layout::cut(&line, columns));
            last = Some(hit.session);
        }
        let speaker = layout::cut(&speaker(&hit.who), SPEAKER);
        let said = display::line(&format!("{}{}{}", hit.before, hit.words, hit.behind));
        let pad = " ".repeat(SPEAKER - layout::width(&speaker));
        let _ = writeln!(text, "{}", layout::cut(&format!("  {speaker}{pad}  {said}"), columns));
    }
    text
}

fn speaker(who: &SearchSpeaker) -> String {
    match who {
        SearchSpeaker::User => "You".into(),
        SearchSpeaker::Assistant => "Assistant".into(),
        SearchSpeaker::Tool(name) => display::line(name),
        SearchSpeaker::Engine => "Note".into(),
        SearchSpeaker::Summary => "Summary".into(),
        SearchSpeaker::Title => "Title".into(),
    }
}

fn as_json(hit: &SearchHit<'_>) -> Value {
    json!({
        "sessionId": hit.session.id.to_string(),
        "uuid": hit.uuid,
        "at": hit.at_ms,
        "who": speaker(&hit.who).to_lowercase(),
        "before": hit.before,
        "words": hit.words,
        "behind": hit.behind,
        "path": hit.session.path.to_string_lossy(),
    })
}
