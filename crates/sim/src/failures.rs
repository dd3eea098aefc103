//! The ways in which a request can fail, and the points at which it can.

use windlass_protocol::FailureClass;

/// Lists what is named; whatever is not named does not compile.
macro_rules! all_of {
    ($list:ident: $kind:ident, $what:literal, $($name:ident)*) => {
        #[doc = $what]
        pub const $list: &[$kind] = &[$($kind::$name),*];
        const _: fn($kind) = |one| match one {
            $($kind::$name => (),)*
        };
    };
}

all_of!(FAILURE_CLASSES: FailureClass, "Every class of failure.",
    Overflow Media RateLimited Quota Overloaded Server Auth Forbidden NotFound BadRequest Binding Connect Tls Cut
    Stalled Malformed
);

/// Where in a response a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailurePoint {
    /// Nothing of the response had come.
    BeforeResponse,
    /// A block had begun and was not complete.
    InsideBlock,
    /// The response had begun and no block was open.
    BetweenBlocks,
    /// A call of the response had started, wherever in it the failure was.
    AfterCallStarted,
}

all_of!(FAILURE_POINTS: FailurePoint, "Every point at which a request can fail.",
    BeforeResponse InsideBlock BetweenBlocks AfterCallStarted
);
