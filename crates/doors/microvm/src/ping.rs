//! ICMP echo: is the guest's network up?

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const PAYLOAD: &[u8] = b"vk-cocoon";
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// Sends echo requests over a raw socket, or over an unprivileged datagram socket where the system allows that.
#[derive(Debug)]
pub struct IcmpPinger {
    kind: Kind,
    sequence: AtomicU16,
    identifier: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Needs `CAP_NET_RAW`; answers come with their IP header.
    Raw,
    /// Needs `net.ipv4.ping_group_range`; the kernel chooses the identifier.
    Datagram,
}

#[derive(Debug, thiserror::Error)]
pub enum PingError {
    #[error(
        "neither a raw socket (CAP_NET_RAW) nor an unprivileged one (net.ipv4.ping_group_range) may be opened"
    )]
    NotAllowed { source: std::io::Error },
    #[error("{address} is not an IPv4 address")]
    NotV4 { address: IpAddr },
    #[error("sending an echo request to {address}")]
    Send { address: Ipv4Addr, source: std::io::Error },
    #[error("waiting for the echo reply of {address}")]
    Receive { address: Ipv4Addr, source: std::io::Error },
    #[error("no echo reply from {address} within {after:?}")]
    Silent { address: Ipv4Addr, after: Duration },
}

impl IcmpPinger {
    /// Finds out once what this process may open. Called within a runtime.
    pub fn new() -> Result<Self, PingError> {
        let identifier = u16::try_from(std::process::id() & 0xffff).unwrap_or_default();
        let with = |kind| Self { kind, sequence: AtomicU16::new(1), identifier };
        match open(Kind::Raw) {
            Ok(_) => Ok(with(Kind::Raw)),
            Err(_) => match open(Kind::Datagram) {
                Ok(_) => Ok(with(Kind::Datagram)),
                Err(source) => Err(PingError::NotAllowed { source }),
            },
        }
    }

    pub async fn ping(&self, address: IpAddr, within: Duration) -> Result<(), PingError> {
        let IpAddr::V4(address) = address else { return Err(PingError::NotV4 { address }) };
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let exchange = self.exchange(address, sequence);
        timeout(within, exchange).await.unwrap_or(Err(PingError::Silent { address, after: within }))
    }

    async fn exchange(&self, address: Ipv4Addr, sequence: u16) -> Result<(), PingError> {
        let send = |source: std::io::Error| PingError::Send { address, source };
        let receive = |source: std::io::Error| PingError::Receive { address, source };
        let socket = open(self.kind).map_err(send)?;
        let request = request(self.identifier, sequence);
        socket.send_to(&request, SocketAddrV4::new(address, 0)).await.map_err(send)?;
        let mut buffer = [0_u8; 1500];
        loop {
            let (count, from) = socket.recv_from(&mut buffer).await.map_err(receive)?;
            let identifier = (self.kind == Kind::Raw).then_some(self.identifier);
            let message = match self.kind {
                Kind::Raw => without_ip_header(&buffer[..count]),
                Kind::Datagram => Some(&buffer[..count]),
            };
            let is_answer = message.is_some_and(|message| is_reply(message, identifier, sequence));
            if is_answer && from.ip() == IpAddr::V4(address) {
                return Ok(());
            }
        }
    }
}

/// The standard library has no type for ICMP sockets; those of UDP send and receive in the same way.
fn open(kind: Kind) -> std::io::Result<UdpSocket> {
    let kind = match kind {
        Kind::Raw => SocketType::RAW,
        Kind::Datagram => SocketType::DGRAM,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, kind, flags, Some(ipproto::ICMP))?;
    UdpSocket::from_std(std::net::UdpSocket::from(socket))
}

fn request(identifier: u16, sequence: u16) -> Vec<u8> {
    let mut message = vec![ECHO_REQUEST, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(PAYLOAD);
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

fn without_ip_header(packet: &[u8]) -> Option<&[u8]> {
    let words = usize::from(packet.first()? & 0x0f);
    packet.get(words * 4..)
}

fn is_reply(message: &[u8], identifier: Option<u16>, sequence: u16) -> bool {
    message.len() >= 8
        && message[0] == ECHO_REPLY
        && identifier.is_none_or(|identifier| message[4..6] == identifier.to_be_bytes())
        && message[6..8] == sequence.to_be_bytes()
}

/// The internet checksum: ones' complement of the ones' complement sum of 16-bit words.
fn checksum(message: &[u8]) -> u16 {
    let mut sum: u32 = message
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_its_checksum_sums_to_nothing() {
        assert_eq!(checksum(&request(0x1234, 7)), 0);
    }

    #[test]
    fn only_our_own_reply_counts() {
        let mut reply = request(9, 3);
        assert!(!is_reply(&reply, Some(9), 3), "a request is no reply");
        reply[0] = ECHO_REPLY;
        assert!(is_reply(&reply, Some(9), 3));
        assert!(!is_reply(&reply, Some(8), 3));
        assert!(!is_reply(&reply, Some(9), 4));
        assert!(is_reply(&reply, None, 3));
        assert!(!is_reply(&reply[..7], None, 3));
    }

    #[tokio::test]
    async fn loopback_answers_where_pings_are_allowed() {
        let Ok(pinger) = IcmpPinger::new() else { return };
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        pinger.ping(loopback, Duration::from_secs(30)).await.unwrap();
        let v6 = pinger.ping("::1".parse().unwrap(), Duration::from_secs(1)).await;
        assert!(matches!(v6, Err(PingError::NotV4 { .. })));
    }
}
