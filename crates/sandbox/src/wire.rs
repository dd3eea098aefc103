//! Values as bytes, for what the processes of one command tell each other.
//!
//! Every value says how long it is before it comes, so whoever reads never waits for more than there is. What does not
//! read as the value it should be is nothing at all: both ends are the same program.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// No message is longer. The environment of a program alone may have a few megabytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The length that stands before a message.
const LENGTH_BYTES: usize = 8;

/// A value that can be told to another process of this program.
pub(crate) trait Wire: Sized {
    fn put(&self, bytes: &mut Vec<u8>);
    /// Takes the value from the front; `None` if it is not there.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

/// A message: the value with its length in front.
pub(crate) fn message(value: &impl Wire) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH_BYTES];
    value.put(&mut bytes);
    let length = (bytes.len() - LENGTH_BYTES) as u64;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Takes the first message from what has arrived, once all its bytes are there.
pub(crate) fn take_message<T: Wire>(arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let mut rest = &arrived[..];
    let Some(length) = u64::take(&mut rest) else { return Ok(None) };
    let length = checked_length(length)?;
    let Some(mut value) = rest.get(..length) else { return Ok(None) };
    let value = T::take(&mut value).ok_or(io::ErrorKind::InvalidData)?;
    arrived.drain(..LENGTH_BYTES + length);
    Ok(Some(value))
}

/// Waits for one message; `None` if the other end was closed before all of it came.
pub(crate) fn read_message<T: Wire>(socket: impl AsFd) -> io::Result<Option<T>> {
    let mut length = [0; LENGTH_BYTES];
    if !fill(&socket, &mut length)? {
        return Ok(None);
    }
    let mut bytes = vec![0; checked_length(u64::from_le_bytes(length))?];
    if !fill(&socket, &mut bytes)? {
        return Ok(None);
    }
    Ok(Some(T::take(&mut &bytes[..]).ok_or(io::ErrorKind::InvalidData)?))
}

pub(crate) fn write_all(socket: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(&socket, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

fn checked_length(length: u64) -> io::Result<usize> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MESSAGE_BYTES_MAX { Err(io::ErrorKind::InvalidData.into()) } else { Ok(length) }
}

/// Whether the buffer could be filled before the end.
fn fill(socket: impl AsFd, mut buffer: &mut [u8]) -> io::Result<bool> {
    while !buffer.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::read(&socket, &mut *buffer))? {
            0 => return Ok(false),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(true)
}

macro_rules! wire_number {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (number, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*number))
            }
        }
    )*};
}

wire_number!(u8, u16, u32, u64, i32);

impl Wire for bool {
    fn put(&self, bytes: &mut Vec<u8>) {
        u8::from(*self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        match u8::take(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for OsString {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).put(bytes);
        bytes.extend(self.as_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::take(bytes)?).ok()?;
        let (value, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(Self::from_vec(value.to_vec()))
    }
}

impl Wire for PathBuf {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_os_str().to_owned().put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        OsString::take(bytes).map(Self::from)
    }
}

impl Wire for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        OsString::from(self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        OsString::take(bytes)?.into_string().ok()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        if let Some(value) = self {
            value.put(bytes);
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        if bool::take(bytes)? { T::take(bytes).map(Some) } else { Some(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).put(bytes);
        for value in self {
            value.put(bytes);
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let count = u64::take(bytes)?;
        let mut values = Self::new();
        for _ in 0..count {
            values.push(T::take(bytes)?);
        }
        Some(values)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?))
    }
}

/// Tells a struct field by field, in the order given.
macro_rules! wire_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                $($crate::wire::Wire::put(&self.$field, bytes);)*
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::wire::Wire::take(bytes)?),* })
            }
        }
    };
}

/// Tells an enum by the number of its variant, and what that holds.
macro_rules! wire_enum {
    ($name:ident { $($number:literal => $variant:ident $(($field:ident))?),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($field))? => {
                        $crate::wire::Wire::put(&($number as u8), bytes);
                        $($crate::wire::Wire::put($field, bytes);)?
                    })*
                }
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                match <u8 as $crate::wire::Wire>::take(bytes)? {
                    $($number => Some(Self::$variant $(({
                        let $field = $crate::wire::Wire::take(bytes)?;
                        $field
                    }))?),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Shape {
        Point,
        Path(Vec<(u32, Option<OsString>)>),
    }
    wire_enum!(Shape { 0 => Point, 1 => Path(points) });

    #[test]
    fn a_message_comes_whole_or_not_at_all() {
        let check = |shape: Shape| {
            let bytes = message(&shape);
            for cut in 0..bytes.len() {
                let mut arrived = bytes[..cut].to_vec();
                assert_eq!(take_message::<Shape>(&mut arrived).unwrap(), None);
                let (mut ours, theirs) = UnixStream::pair().unwrap();
                ours.write_all(&bytes[..cut]).unwrap();
                drop(ours);
                assert_eq!(read_message::<Shape>(theirs).unwrap(), None);
            }
            let mut arrived = [&bytes[..], b"next"].concat();
            assert_eq!(take_message(&mut arrived).unwrap(), Some(shape));
            assert_eq!(arrived, b"next");
        };
        check(Shape::Point);
        check(Shape::Path(vec![(7, None), (u32::MAX, Some(OsString::from_vec(vec![255, 0, b'a'])))]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Shape::take(&mut &bytes[..]);
            let _ = crate::request::Request::take(&mut &bytes[..]);
            let _ = crate::report::Message::take(&mut &bytes[..]);
            let _ = take_message::<Shape>(&mut bytes.clone());
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |bytes: &[u8]| assert!(take_message::<Shape>(&mut bytes.to_vec()).is_err(), "{bytes:?}");
        check(&[255; 9]);
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 9]);
        check(&[9, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255]);
    }
}
