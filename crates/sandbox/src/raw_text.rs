//! Paths, arguments and variables for serde (`#[serde(with = "raw_text")]`): text where they are UTF-8, else their bytes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<T: RawText, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.clone().encode().serialize(serializer)
}

pub(crate) fn deserialize<'a, T: RawText, D: Deserializer<'a>>(deserializer: D) -> Result<T, D::Error> {
    T::Encoded::deserialize(deserializer).map(T::decode)
}

/// A value made of system strings, which need not be UTF-8.
pub(crate) trait RawText: Clone {
    type Encoded: Serialize + DeserializeOwned;
    fn encode(self) -> Self::Encoded;
    fn decode(encoded: Self::Encoded) -> Self;
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum EncodedText {
    Text(String),
    Bytes(Vec<u8>),
}

impl RawText for OsString {
    type Encoded = EncodedText;

    fn encode(self) -> EncodedText {
        self.into_string().map_or_else(|raw| EncodedText::Bytes(raw.into_vec()), EncodedText::Text)
    }

    fn decode(encoded: EncodedText) -> Self {
        match encoded {
            EncodedText::Text(text) => text.into(),
            EncodedText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl RawText for PathBuf {
    type Encoded = EncodedText;

    fn encode(self) -> EncodedText {
        self.into_os_string().encode()
    }

    fn decode(encoded: EncodedText) -> Self {
        OsString::decode(encoded).into()
    }
}

impl<T: RawText> RawText for Option<T> {
    type Encoded = Option<T::Encoded>;

    fn encode(self) -> Self::Encoded {
        self.map(T::encode)
    }

    fn decode(encoded: Self::Encoded) -> Self {
        encoded.map(T::decode)
    }
}

impl<T: RawText> RawText for Vec<T> {
    type Encoded = Vec<T::Encoded>;

    fn encode(self) -> Self::Encoded {
        self.into_iter().map(T::encode).collect()
    }

    fn decode(encoded: Self::Encoded) -> Self {
        encoded.into_iter().map(T::decode).collect()
    }
}

impl<A: RawText, B: RawText> RawText for (A, B) {
    type Encoded = (A::Encoded, B::Encoded);

    fn encode(self) -> Self::Encoded {
        (self.0.encode(), self.1.encode())
    }

    fn decode((first, second): Self::Encoded) -> Self {
        (A::decode(first), B::decode(second))
    }
}
