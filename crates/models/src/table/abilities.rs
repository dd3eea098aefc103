//! What only some models take: ways of thinking, levels of effort, clearing by the provider, budgets.

use windlass_protocol::{Effort, ThinkingSupport};

/// What a group of models takes beside text and tools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Abilities {
    pub(super) thinking: ThinkingSupport,
    pub(super) efforts: &'static [Effort],
    pub(super) binds_thinking: bool,
    pub(super) edits_context: bool,
    pub(super) takes_task_budget: bool,
}

/// Models with the same abilities. Names are those of the table of limits.
pub(super) const GROUPS: &[(&[&str], Abilities)] = &[
    (
        &[
            "claude-fable-5-2",
            "claude-mythos-5-2",
            "claude-fable-5-1",
            "claude-mythos-5-1",
            "claude-opus-5-5",
        ],
        Abilities { binds_thinking: true, ..ALWAYS_THINKING },
    ),
    (&["claude-fable-5", "claude-mythos-5"], ALWAYS_THINKING),
    (&["claude-sonnet-5-5"], Abilities { binds_thinking: true, takes_task_budget: false, ..ALWAYS_THINKING }),
    (&["claude-opus-5"], Abilities { thinking: by_default(Some(Effort::High)), ..ALWAYS_THINKING }),
    (
        &["claude-haiku-5-5"],
        Abilities { thinking: by_default(Some(Effort::High)), binds_thinking: true, ..ALWAYS_THINKING },
    ),
    (
        &["claude-sonnet-5"],
        Abilities { thinking: by_default(Some(Effort::Max)), takes_task_budget: false, ..ALWAYS_THINKING },
    ),
    (
        &["claude-opus-4-8", "claude-opus-4-7"],
        Abilities { thinking: ThinkingSupport { adaptive: true, ..ON_REQUEST }, ..ALWAYS_THINKING },
    ),
    (
        &["claude-opus-4-6", "claude-sonnet-4-6"],
        Abilities {
            thinking: ThinkingSupport { adaptive: true, budgeted: true, ..ON_REQUEST },
            efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::Max],
            ..BUDGETED
        },
    ),
    (&["claude-opus-4-5"], Abilities { efforts: &[Effort::Low, Effort::Medium, Effort::High], ..BUDGETED }),
    (
        &[
            "claude-sonnet-4-5",
            "claude-haiku-4-5",
            "claude-opus-4-1",
            "claude-opus-4",
            "claude-opus-4-0",
            "claude-sonnet-4",
            "claude-sonnet-4-0",
        ],
        BUDGETED,
    ),
    (&["claude-3-5-haiku"], Abilities { thinking: NONE, edits_context: false, ..BUDGETED }),
];

const NONE: ThinkingSupport =
    ThinkingSupport { adaptive: false, budgeted: false, disabled_up_to: None, by_default: false };

/// Off unless the request asks for it, and can be said to be off at any effort.
const ON_REQUEST: ThinkingSupport = ThinkingSupport { disabled_up_to: Some(Effort::Max), ..NONE };

const ALWAYS_THINKING: Abilities = Abilities {
    thinking: by_default(None),
    efforts: &Effort::ALL,
    binds_thinking: false,
    edits_context: true,
    takes_task_budget: true,
};

const BUDGETED: Abilities = Abilities {
    thinking: ThinkingSupport { budgeted: true, ..ON_REQUEST },
    efforts: &[],
    binds_thinking: false,
    edits_context: true,
    takes_task_budget: false,
};

const fn by_default(disabled_up_to: Option<Effort>) -> ThinkingSupport {
    ThinkingSupport { adaptive: true, budgeted: false, disabled_up_to, by_default: true }
}

/// The abilities of a model, by its plain name.
pub(super) fn abilities(plain: &str) -> Option<&'static Abilities> {
    GROUPS.iter().find(|(ids, _)| ids.contains(&plain)).map(|(_, abilities)| abilities)
}
