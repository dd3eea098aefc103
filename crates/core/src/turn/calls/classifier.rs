//! The mode `auto`: a small model judges calls that nothing allows, in the user's place.
//!
//! It reads what the user said, what was done before and the call itself, but never what tools returned: that is where
//! somebody else could speak to it. Where it cannot say that a call is harmless, the user is asked.

use std::sync::Arc;

use std::fmt::Write as _;

use windlass_permission::{self as permission, Classifier};
use windlass_protocol::{
    Block, BlockKind, CallFacts, ForkId, Message, Origin, Outcome, Prompt, Ruling, Terminal, Verdict,
};

use super::CallQueue;
use super::call::{Call, CallStage};
use crate::config::RunSource;
use crate::context::one_line;
use crate::step::Cx;
use crate::turn::fork::{ForkContext, ForkPlan};

const OUTPUT_TOKENS: u32 = 300;
/// As much of the past is shown: messages, and characters of each.
const PAST_MAX: usize = 30;
const PAST_CHARS: usize = 800;
const CALL_CHARS: usize = 8_000;

const SYSTEM: &str = include_str!("../../../prompts/judge.txt");

/// Calls that the judge did not let run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassifierBlocks {
    in_row: u32,
    total: u32,
}

impl ClassifierBlocks {
    /// After so many the user is asked instead: judge and assistant do not get along.
    fn is_enough(self) -> bool {
        self.in_row >= 3 || self.total >= 20
    }

    fn note(&mut self, is_blocked: bool) {
        self.in_row = if is_blocked { self.in_row + 1 } else { 0 };
        self.total += u32::from(is_blocked);
    }
}

impl CallQueue {
    /// Whether a call waits for what this fork says.
    pub(crate) fn waits_for_judge(&self, judge: ForkId) -> bool {
        self.calls.iter().any(|call| call.is_judged_by(judge))
    }

    pub(crate) fn on_classified(&mut self, judge: ForkId, outcome: &Outcome, cx: &mut Cx<'_>) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.is_judged_by(judge)) {
            call.on_classified(outcome, cx);
        }
    }
}

impl Call {
    fn is_judged_by(&self, judge: ForkId) -> bool {
        matches!(self.stage, CallStage::Classifying { fork, .. } if fork == judge)
    }

    pub(super) fn classify(&mut self, facts: Arc<CallFacts>, reason: String, cx: &mut Cx<'_>) {
        let enough = cx.state.carry.blocked.is_enough();
        let plan = ForkPlan {
            source: RunSource::Classifier,
            ground: ForkContext::Own {
                model: cx.config.small_model.clone().unwrap_or_else(|| cx.config.model.clone()),
                system: SYSTEM.into(),
            },
            prompt: Prompt::from(self.question(cx)),
            output_tokens: OUTPUT_TOKENS,
        };
        match if enough { None } else { cx.fork(plan) } {
            Some(fork) => self.stage = CallStage::Classifying { fork, facts, reason },
            None => self.ask_instead(facts, reason, cx),
        }
    }

    fn on_classified(&mut self, outcome: &Outcome, cx: &mut Cx<'_>) {
        let CallStage::Classifying { facts, reason, .. } = self.stage.clone() else { return };
        let said = outcome.text.trim();
        let (word, why) = said.split_once(|c: char| !c.is_ascii_alphabetic()).unwrap_or((said, ""));
        let is_complete = outcome.terminal == Terminal::Completed;
        let verdict = match word {
            "ALLOW" if is_complete => Verdict::Allow,
            "BLOCK" if is_complete => Verdict::Deny,
            _ => return self.ask_instead(facts, reason, cx),
        };
        cx.state.carry.blocked.note(verdict == Verdict::Deny);
        let why = why.trim_start_matches([':', ' ', '-', '.', ',', '\n']).trim();
        let reason = match verdict {
            Verdict::Allow => "A model judged this call harmless.".to_owned(),
            _ if why.is_empty() => "A model judged that this call may do harm.".to_owned(),
            _ => format!("A model judged that this call may do harm: {why}"),
        };
        self.record(&Ruling { verdict, rule: None, reason: reason.clone(), is_undecided: false }, cx);
        match verdict {
            Verdict::Allow => self.stage = CallStage::Ready(facts),
            _ => self.tell_hooks_denied(&facts, reason, cx),
        }
    }

    /// Asks the user. Meanwhile other calls may have come to what makes the question needless.
    fn ask_instead(&mut self, facts: Arc<CallFacts>, reason: String, cx: &mut Cx<'_>) {
        let case = self.case(&facts, cx);
        let ruling = match permission::decide_call(&case) {
            now if now.verdict == Verdict::Allow => now,
            _ => permission::ask_in_place(&case, reason),
        };
        self.record(&ruling, cx);
        if ruling.verdict == Verdict::Allow {
            self.stage = CallStage::Ready(facts);
            return;
        }
        self.ask_permission_hooks(facts, ruling.reason, /* repeated */ false, cx);
    }

    /// What the judge reads.
    fn question(&self, cx: &Cx<'_>) -> String {
        let mut text = String::new();
        for note in &*cx.config.memory {
            let _ = writeln!(text, "The user's instructions: {}", one_line(&note.text, PAST_CHARS));
        }
        wishes(&cx.permissions().classifier, &mut text);
        let said: Vec<String> = cx.state.carry.messages.iter().flat_map(|message| lines(message)).collect();
        for line in said.iter().skip(said.len().saturating_sub(PAST_MAX)) {
            let _ = writeln!(text, "{line}");
        }
        let cwd = cx.state.carry.tools.cwd.display();
        let _ = write!(
            text,
            "The call to decide about, in {cwd}: {} {}",
            self.tool,
            one_line(self.tool_use.input.get(), CALL_CHARS)
        );
        text
    }
}

fn wishes(classifier: &Classifier, text: &mut String) {
    let lists = [
        ("About the surroundings", &classifier.environment),
        ("The user lets this run", &classifier.allow),
        ("Block this unless the user asked for it", &classifier.soft_deny),
        ("Block this always", &classifier.hard_deny),
    ];
    for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "{title}: {}", list.join("; "));
    }
}

/// What the judge reads of a message: prompts of people and calls of the model.
fn lines(message: &Message) -> Vec<String> {
    let line = |block: &Block| match block.kind() {
        BlockKind::ToolUse(tool_use) => Some(format!(
            "The assistant called {} {}",
            tool_use.name,
            one_line(tool_use.input.get(), PAST_CHARS)
        )),
        _ if message.origin == Origin::Prompt => {
            block.as_text().map(|text| format!("The user said: {}", one_line(text, PAST_CHARS)))
        }
        _ => None,
    };
    message.blocks.iter().filter_map(line).collect()
}
