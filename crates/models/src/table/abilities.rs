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

const NONE: ThinkingSupport =
    ThinkingSupport { adaptive: false, budgeted: false, disabled_up_to: None, by_default: false };

/// Off unless the request asks for it, and can be said to be off at any effort.
const ON_REQUEST: ThinkingSupport = ThinkingSupport { disabled_up_to: Some(Effort::Max), ..NONE };

/// Thinks unless the request switches it off, which it may do at efforts up to this.
const fn by_default(disabled_up_to: Option<Effort>) -> ThinkingSupport {
    ThinkingSupport { adaptive: true, budgeted: false, disabled_up_to, by_default: true }
}

pub(super) const FABLE_5: Abilities = Abilities {
    thinking: by_default(None),
    efforts: &Effort::ALL,
    binds_thinking: false,
    edits_context: true,
    takes_task_budget: true,
};

/// Also the models of the Fable family that came later.
pub(super) const OPUS_5_5: Abilities = Abilities { binds_thinking: true, ..FABLE_5 };

pub(super) const OPUS_5: Abilities = Abilities { thinking: by_default(Some(Effort::High)), ..FABLE_5 };

pub(super) const OPUS_4_8: Abilities =
    Abilities { thinking: ThinkingSupport { adaptive: true, ..ON_REQUEST }, ..FABLE_5 };

pub(super) const SONNET_5_5: Abilities = Abilities { takes_task_budget: false, ..OPUS_5_5 };

pub(super) const SONNET_5: Abilities =
    Abilities { thinking: by_default(Some(Effort::Max)), takes_task_budget: false, ..FABLE_5 };

pub(super) const HAIKU_5_5: Abilities = Abilities { binds_thinking: true, ..OPUS_5 };

/// What all models of the fourth generation take.
pub(super) const BUDGETED: Abilities = Abilities {
    thinking: ThinkingSupport { budgeted: true, ..ON_REQUEST },
    efforts: &[],
    binds_thinking: false,
    edits_context: true,
    takes_task_budget: false,
};

pub(super) const OPUS_4_6: Abilities = Abilities {
    thinking: ThinkingSupport { adaptive: true, budgeted: true, ..ON_REQUEST },
    efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::Max],
    ..BUDGETED
};

pub(super) const OPUS_4_5: Abilities =
    Abilities { efforts: &[Effort::Low, Effort::Medium, Effort::High], ..BUDGETED };

pub(super) const HAIKU_3_5: Abilities = Abilities { thinking: NONE, edits_context: false, ..BUDGETED };
