//! What the rungs of the ladder look at, gathered from the state.

use windlass_protocol::{Origin, Role, Transcript};

use crate::context;
use crate::step::Cx;
use crate::turn::answer_schema;
use crate::turn::budget;
use crate::turn::calls::CallQueue;
use crate::turn::ladder::{LadderLimits, ResponseEnd, ResponseFault, Retry, SchemaFit, Situation};
use crate::turn::stream::OpenResponse;

impl Cx<'_> {
    /// The situation after an answer with these calls, as far as it does not depend on how the answer came.
    pub(crate) fn situation(&self, answer: ResponseEnd, calls: &CallQueue) -> Situation {
        let (carry, config) = (&self.state.carry, self.config);
        let is_bound = answer == ResponseEnd::Failed(ResponseFault::Bound);
        Situation {
            guards: carry.guards,
            limits: self.limits(),
            answer,
            has_calls: !calls.is_empty(),
            settled: false,
            acted: calls.has_acted(),
            retry: Retry::GiveUp,
            stopped_by_hook: calls.stopped_by_hook().is_some(),
            deferred: calls.deferred().is_some(),
            repeated: calls.repeated(),
            staged: context::drainable(self),
            reducible: context::reducible(self),
            has_refused: match answer {
                ResponseEnd::Failed(ResponseFault::Media) => context::has_media(&carry.messages),
                ResponseEnd::Failed(ResponseFault::Block) => {
                    context::replace_block(&carry.messages, self.culprit()).is_some()
                }
                _ => false,
            },
            has_thinking: is_bound && context::has_thinking(&carry.messages),
            after_results: is_after_results(&carry.messages),
            form: SchemaFit::Fits,
            stop_hooks: self.stop_hooks(),
            tokens_left: carry.budget.left(config),
            turns_left: config.turns_max.is_none_or(|limit| carry.turn_count < limit),
            usd_left: budget::usd_left(&self.state.ledger, config),
        }
    }

    /// Whether a final answer has the form the schema asks for.
    pub(crate) fn form(&self, streaming: &OpenResponse) -> SchemaFit {
        match &self.config.answer {
            Some(schema) if streaming.calls.is_empty() => {
                match answer_schema::read(&self.said(streaming), schema) {
                    Ok(_) => SchemaFit::Fits,
                    Err(_) => SchemaFit::Differs,
                }
            }
            _ => SchemaFit::Fits,
        }
    }

    fn limits(&self) -> LadderLimits {
        let config = self.config;
        let own_most = self.model().output_tokens_max;
        LadderLimits {
            may_escalate: config.output.explicit.is_none() && own_most > config.output.first,
            output_recoveries: config.output.recoveries_max,
            stop_blocks: config.stop_hook_blocks_max,
            continuations_min: config.continuation.continuations_min,
            schema_tries: config.answer.as_ref().map_or(0, |answer| answer.retries_max),
            pauses: config.pauses_max,
            fallbacks: u32::try_from(config.fallbacks.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Whether the last thing said is results, and what was attached to them.
fn is_after_results(messages: &Transcript) -> bool {
    let mut last = messages.iter().rev().take_while(|message| message.role == Role::User);
    last.any(|message| message.origin == Origin::Results)
}
