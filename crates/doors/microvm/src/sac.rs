//! Windows' Special Administration Console: the one way to give a Windows guest an address before it has a network.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use crate::record::Nic;

const PROMPT: &str = "SAC>";
const DIAL_PAUSE: Duration = Duration::from_secs(2);
const DIAL_ONCE: Duration = Duration::from_secs(5);
/// A guest that boots opens its console late.
const DIAL_WITHIN: Duration = Duration::from_mins(1);
const PROMPT_WITHIN: Duration = Duration::from_mins(1);
const READ: Duration = Duration::from_secs(5);
const DRAIN: Duration = Duration::from_millis(200);
const TRY_PAUSE: Duration = Duration::from_secs(2);
const ENUMERATIONS: u32 = 60;
const VERIFICATIONS: u32 = 10;
/// More than any answer of the console; a guest that floods it is not a console.
const LONGEST: usize = 256 * 1024;

/// One card's static address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticNic {
    /// Its place among the VM's cards, which is the order in which Windows numbers them.
    pub index: usize,
    pub ip: String,
    pub mask: Ipv4Addr,
    pub gateway: String,
}

impl StaticNic {
    /// The cards of a VM that have a static address.
    pub fn of(nics: &[Nic]) -> Vec<Self> {
        let cards = nics.iter().enumerate();
        cards
            .filter_map(|(index, nic)| {
                let address = nic.network.as_ref()?;
                Some(Self {
                    index,
                    ip: address.ip.clone(),
                    mask: mask(address.prefix),
                    gateway: address.gateway.clone(),
                })
            })
            .collect()
    }
}

/// A prefix that is none counts as 24.
fn mask(prefix: u8) -> Ipv4Addr {
    match prefix {
        1..=32 => Ipv4Addr::from(u32::MAX << (32 - u32::from(prefix))),
        _ => Ipv4Addr::new(255, 255, 255, 0),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SacError {
    #[error("the console at {} could not be reached within a minute", path.display())]
    Dial { path: PathBuf },
    #[error("the console showed no prompt within a minute")]
    NoPrompt,
    #[error("talking to the console")]
    Talk { source: std::io::Error },
    #[error("the console did not answer {command:?}")]
    Silent { command: String },
    #[error("the guest shows {seen} network cards, {wanted} are expected")]
    TooFewCards { seen: usize, wanted: usize },
    #[error("the guest did not take {ip} on card {index}")]
    NotTaken { ip: String, index: usize },
}

/// An open console.
#[derive(Debug)]
pub struct SacConsole<S = UnixStream> {
    stream: S,
}

impl SacConsole {
    pub async fn dial(path: &Path) -> Result<Self, SacError> {
        let deadline = Instant::now() + DIAL_WITHIN;
        loop {
            if let Ok(Ok(stream)) = timeout(DIAL_ONCE, UnixStream::connect(path)).await {
                return Self::open(stream).await;
            }
            if Instant::now() + DIAL_PAUSE >= deadline {
                return Err(SacError::Dial { path: path.to_owned() });
            }
            sleep(DIAL_PAUSE).await;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> SacConsole<S> {
    /// Takes the console on this stream, once it shows its prompt.
    pub async fn open(stream: S) -> Result<Self, SacError> {
        let mut console = Self { stream };
        console.find_prompt().await?;
        Ok(console)
    }

    /// Gives every card its address and looks whether the guest took it. `cards`: how many the VM has.
    pub async fn set_addresses(
        &mut self,
        nics: &[StaticNic],
        cards: usize,
    ) -> Result<(), SacError> {
        let numbers = self.enumerate(cards).await?;
        for nic in nics {
            let too_few = SacError::TooFewCards { seen: numbers.len(), wanted: nic.index + 1 };
            let number = *numbers.get(nic.index).ok_or(too_few)?;
            self.command(&format!("i {number} {} {} {}", nic.ip, nic.mask, nic.gateway)).await?;
            self.verify(nic, number).await?;
        }
        Ok(())
    }

    /// The guest's own numbers of its cards, in its order. They appear some time after the prompt.
    async fn enumerate(&mut self, wanted: usize) -> Result<Vec<u32>, SacError> {
        let mut seen = Vec::new();
        for attempt in 0..ENUMERATIONS {
            if attempt > 0 {
                sleep(TRY_PAUSE).await;
            }
            seen = numbers(&self.command("i").await?);
            if seen.len() >= wanted {
                return Ok(seen);
            }
        }
        Err(SacError::TooFewCards { seen: seen.len(), wanted })
    }

    async fn verify(&mut self, nic: &StaticNic, number: u32) -> Result<(), SacError> {
        for attempt in 0..VERIFICATIONS {
            if attempt > 0 {
                sleep(TRY_PAUSE).await;
            }
            let listing = self.command("i").await?;
            if addresses(&listing).any(|(net, ip)| net == number && ip == nic.ip) {
                return Ok(());
            }
        }
        Err(SacError::NotTaken { ip: nic.ip.clone(), index: nic.index })
    }

    async fn find_prompt(&mut self) -> Result<(), SacError> {
        let deadline = Instant::now() + PROMPT_WITHIN;
        let mut seen = String::new();
        while Instant::now() < deadline {
            self.write("\r\n").await?;
            if self.read_until_prompt(&mut seen).await? {
                return Ok(());
            }
        }
        Err(SacError::NoPrompt)
    }

    async fn command(&mut self, command: &str) -> Result<String, SacError> {
        self.drain().await?;
        self.write(&format!("{command}\r\n")).await?;
        let mut answer = String::new();
        if self.read_until_prompt(&mut answer).await? {
            Ok(answer)
        } else {
            Err(SacError::Silent { command: command.to_owned() })
        }
    }

    async fn write(&mut self, text: &str) -> Result<(), SacError> {
        self.stream.write_all(text.as_bytes()).await.map_err(|source| SacError::Talk { source })
    }

    /// What the guest said unasked belongs to no command.
    async fn drain(&mut self) -> Result<(), SacError> {
        let mut buffer = [0; 4096];
        while let Ok(read) = timeout(DRAIN, self.stream.read(&mut buffer)).await {
            if read.map_err(|source| SacError::Talk { source })? == 0 {
                return Err(SacError::Talk { source: std::io::ErrorKind::UnexpectedEof.into() });
            }
        }
        Ok(())
    }

    /// True once the prompt came; false if the console kept silent for the length of a read.
    async fn read_until_prompt(&mut self, to: &mut String) -> Result<bool, SacError> {
        let deadline = Instant::now() + READ;
        let mut buffer = [0; 4096];
        while to.len() < LONGEST {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(read) = timeout(left, self.stream.read(&mut buffer)).await else {
                return Ok(false);
            };
            match read.map_err(|source| SacError::Talk { source })? {
                0 => {
                    return Err(SacError::Talk {
                        source: std::io::ErrorKind::UnexpectedEof.into(),
                    });
                }
                count => to.push_str(&String::from_utf8_lossy(&buffer[..count])),
            }
            if to.contains(PROMPT) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `Net: 3, Ip=10.0.0.5  Subnet=...` of each card.
fn addresses(listing: &str) -> impl Iterator<Item = (u32, &str)> {
    listing.split("Net:").skip(1).filter_map(|entry| {
        let (number, rest) = entry.trim_start().split_once(',')?;
        let ip = rest.trim_start().strip_prefix("Ip=")?;
        Some((number.parse().ok()?, ip.split_whitespace().next()?))
    })
}

/// A card has a line per address, IPv6 too; its number counts once.
fn numbers(listing: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for (number, _) in addresses(listing) {
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    const LISTING: &str = "i\r\nNet: 3, Ip=169.254.1.1  Subnet=255.255.0.0  Gateway=0.0.0.0\r\n\
        Net: 3, Ip=fe80::1  Prefix=64\r\nNet: 7, Ip=10.0.0.5  Subnet=255.255.255.0  Gateway=10.0.0.1\r\nSAC>";

    #[test]
    fn cards_are_numbered_once_in_their_order() {
        assert_eq!(numbers(LISTING), [3, 7]);
        assert!(addresses(LISTING).any(|(net, ip)| (net, ip) == (7, "10.0.0.5")));
        assert!(
            !addresses(LISTING).any(|(net, ip)| (net, ip) == (3, "10.0.0.5")),
            "another card's address"
        );
        assert!(numbers("Net: x, Ip=1\r\nNet 3").is_empty());
    }

    #[test]
    fn prefixes_become_masks() {
        for (prefix, want) in [
            (24, "255.255.255.0"),
            (16, "255.255.0.0"),
            (32, "255.255.255.255"),
            (0, "255.255.255.0"),
            (60, "255.255.255.0"),
        ] {
            assert_eq!(mask(prefix).to_string(), want);
        }
    }

    /// A guest that shows its cards at the third question and takes what it is told at the second look.
    async fn guest(mut stream: DuplexStream) -> Vec<String> {
        let (mut said, mut asked, mut set) = (Vec::new(), 0, 0);
        let mut pending = String::new();
        let mut buffer = [0; 1024];
        loop {
            let count = stream.read(&mut buffer).await.unwrap_or(0);
            if count == 0 {
                return said;
            }
            pending.push_str(&String::from_utf8_lossy(&buffer[..count]));
            while let Some((line, rest)) = pending.clone().split_once("\r\n") {
                pending = rest.to_owned();
                let answer = match line {
                    "" => "\r\nSAC>".to_owned(),
                    "i" => {
                        asked += 1;
                        let taken = if set > 0 && asked > 4 { "10.0.0.5" } else { "169.254.0.9" };
                        if asked < 3 {
                            "SAC>".to_owned()
                        } else {
                            format!("Net: 3, Ip={taken} \r\nSAC>")
                        }
                    }
                    _ => {
                        set += 1;
                        "SAC>".to_owned()
                    }
                };
                said.push(line.to_owned());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_set_and_seen() {
        let (near, far) = tokio::io::duplex(4096);
        let guest = tokio::spawn(guest(far));
        let mut console = SacConsole::open(near).await.unwrap();
        let nic = StaticNic {
            index: 0,
            ip: "10.0.0.5".into(),
            mask: mask(24),
            gateway: "10.0.0.1".into(),
        };
        console.set_addresses(&[nic], 1).await.unwrap();
        drop(console);
        let said = guest.await.unwrap();
        assert!(said.contains(&"i 3 10.0.0.5 255.255.255.0 10.0.0.1".to_owned()), "{said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_console_that_is_not_there_is_given_up_after_a_minute() {
        let error = SacConsole::dial(Path::new("/nonexistent/console.sock")).await.unwrap_err();
        assert!(matches!(error, SacError::Dial { .. }));
    }
}
