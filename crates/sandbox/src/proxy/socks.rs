//! What a SOCKS5 client asks of its proxy.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::dial::DialError;
use crate::network::{Host, NetworkDestination};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

const UNREACHABLE: u8 = 4;
const REFUSED: u8 = 2;
const NO_SUCH_COMMAND: u8 = 7;

/// Where the client wants to go; `None` if it was told that this cannot be.
pub(super) async fn read_request(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<Option<NetworkDestination>> {
    let [_, count] = read::<2>(client).await?;
    let mut methods = vec![0; count.into()];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [_, command, _, kind] = read::<4>(client).await?;
    let host = match kind {
        IPV4 => Some(Host::from_address(Ipv4Addr::from(read::<4>(client).await?).into())),
        IPV6 => Some(Host::from_address(Ipv6Addr::from(read::<16>(client).await?).into())),
        NAME => {
            let [length] = read::<1>(client).await?;
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name).await?;
            String::from_utf8(name).ok().and_then(|name| Host::parse(&name))
        }
        _ => None,
    };
    let port = u16::from_be_bytes(read::<2>(client).await?);
    match host {
        Some(host) if command == CONNECT => Ok(Some(NetworkDestination { host, port })),
        _ => {
            client.write_all(&reply(NO_SUCH_COMMAND)).await?;
            Ok(None)
        }
    }
}

async fn read<const N: usize>(client: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// What the client is told about its connection.
pub(super) fn answer(connected: &Result<TcpStream, DialError>) -> [u8; 10] {
    reply(match connected {
        Ok(_) => 0,
        Err(DialError::Refused(_)) => REFUSED,
        Err(DialError::Unreachable(_)) => UNREACHABLE,
    })
}

/// The address in it is nobody's: clients do not need it.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_where_it_wants_to_go() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let check = |said: &[u8], expected: Option<&str>, answered: &[u8]| {
            runtime.block_on(async {
                let (mut ours, mut theirs) = tokio::io::duplex(1000);
                ours.write_all(said).await.unwrap();
                ours.shutdown().await.unwrap();
                let found = read_request(&mut theirs).await.ok().flatten();
                assert_eq!(found.map(|found| found.to_string()).as_deref(), expected, "{said:?}");
                drop(theirs);
                let mut answer = Vec::new();
                ours.read_to_end(&mut answer).await.unwrap();
                assert_eq!(answer, answered, "{said:?}");
            });
        };
        check(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x01\xbb", Some("a:443"), b"\x05\x00");
        check(b"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", Some("127.0.0.1:80"), b"\x05\x00");
        check(b"\x05\x01\x02", None, b"\x05\xff");
        check(b"\x05\x01\x00\x05\x02\x00\x03\x01a\x01\xbb", None, b"\x05\x00\x05\x07\x00\x01\0\0\0\0\0\0");
        check(b"\x05\x01\x00\x05\x01\x00\x03\x01 \x01\xbb", None, b"\x05\x00\x05\x07\x00\x01\0\0\0\0\0\0");
        check(b"\x05\x01\x00\x05\x01\x00\x03\x09a", None, b"\x05\x00");
    }
}
