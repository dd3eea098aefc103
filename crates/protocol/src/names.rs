//! Enums whose variants have names outside this program.

/// Declares an enum with a row for each variant and its name, so that the list, the names and the way back cannot differ.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident => $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// Every one, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name for users, hosts and logs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

pub(crate) use named_enum;
