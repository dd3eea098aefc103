//! The rules of the Messages API for a request, written down a second time and plainly: the oracle for the last gate.

use std::collections::BTreeSet;

use windlass_protocol::{Block, BlockKind, Message, MessageId, Origin, Role, Transcript, Transition};

/// Whether a model API would take these messages; the error says what is wrong.
pub fn check_request(messages: &Transcript) -> Result<(), String> {
    let groups = groups(messages);
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return Err("there is no message".into());
    };
    if first.0 != Role::User || last.0 != Role::User {
        return Err("the first and the last message must be the user's".into());
    }
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (role, blocks) in &groups {
        let is_blank = |block: &Block| block.as_text().is_some_and(|text| text.trim().is_empty());
        let inside = |block: &Block| block.result_blocks().iter().any(is_blank);
        if let Some(blank) = blocks.iter().find(|block| is_blank(block) || inside(block)) {
            return Err(format!("blank text: {blank:?}"));
        }
        match role {
            Role::User => {
                check_results(blocks, &open)?;
                open.clear();
            }
            Role::Assistant => {
                if blocks.last().is_some_and(|block| block.is_thinking()) {
                    return Err("an assistant message ends in thinking".into());
                }
                open = blocks
                    .iter()
                    .filter_map(|block| block.as_tool_use())
                    .map(|tool_use| &*tool_use.id)
                    .collect();
                let valid = |id: &&&str| {
                    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
                };
                if let Some(strange) = open.iter().find(|id| !valid(id)) {
                    return Err(format!("the id {strange:?} is refused"));
                }
                if let Some(twice) = open.iter().find(|id| !ids.insert(**id)) {
                    return Err(format!("two tool uses have the id {twice}"));
                }
            }
        }
    }
    Ok(())
}

/// The same where the provider paused the last answer: it goes back as it is, and may be the last message.
pub(crate) fn check_sent(messages: &Transcript, is_paused: bool) -> Result<(), String> {
    let ends_with_answer = messages.last().is_some_and(|last| last.role == Role::Assistant);
    if is_paused && ends_with_answer {
        check_request(&with_prompt(messages))
    } else {
        check_request(messages)
    }
}

/// Whether the next request goes on with a paused answer: also if the one that did is made again.
pub(crate) fn resumes(transition: Transition, is_resumed: bool) -> bool {
    match transition {
        Transition::PauseTurnResume => true,
        Transition::ModelFallback
        | Transition::MaxOutputTokensEscalate
        | Transition::ReactiveCompactRetry
        | Transition::MediaStripRetry
        | Transition::ThinkingStripRetry
        | Transition::CollapseDrainRetry => is_resumed,
        _ => false,
    }
}

/// The conversation and one prompt more.
pub(crate) fn with_prompt(messages: &Transcript) -> Transcript {
    let mut next = messages.clone();
    next.push(Message::user(MessageId(u64::MAX), Origin::Prompt, vec![Block::text("next")]).into());
    next
}

/// The message after tool uses begins with exactly one result for each.
fn check_results(blocks: &[&Block], open: &[&str]) -> Result<(), String> {
    let results: Vec<&str> = blocks.iter().filter_map(|block| result_id(block)).collect();
    let leading: Vec<&str> = blocks.iter().map_while(|block| result_id(block)).collect();
    if results != leading {
        return Err("a result stands behind other content".into());
    }
    let (mut asked, mut answered) = (open.to_vec(), results);
    asked.sort_unstable();
    answered.sort_unstable();
    if asked == answered { Ok(()) } else { Err(format!("asked {asked:?}, answered {answered:?}")) }
}

fn result_id(block: &Block) -> Option<&str> {
    match block.kind() {
        BlockKind::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}

/// Neighbouring messages of one role count as one.
fn groups(messages: &Transcript) -> Vec<(Role, Vec<&Block>)> {
    let mut groups: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in messages.iter() {
        match groups.last_mut() {
            Some((role, blocks)) if *role == message.role => blocks.extend(&message.blocks),
            _ => groups.push((message.role, message.blocks.iter().collect())),
        }
    }
    groups
}
