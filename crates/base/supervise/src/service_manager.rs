//! Tells systemd how the service is (`Type=notify`): ready, alive, stopping. Started by anything else, every word goes nowhere.
//!
//! The protocol is a datagram of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names; see sd_notify(3).

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

/// A manager that does not read holds us up no longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager that started this process, if one did.
#[derive(Debug)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// It ends the process when nothing was heard for this long.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    pub fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
        // Meant for another process of the unit if it names one.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours);
        Self::at(env::var_os("NOTIFY_SOCKET"), watchdog)
    }

    fn at(socket: Option<OsString>, watchdog_usec: Option<u64>) -> Self {
        let socket = socket.filter(|name| !name.is_empty()).and_then(|name| {
            open(&name)
                .inspect_err(|error| {
                    tracing::warn!("NOTIFY_SOCKET {name:?} cannot be used: {error}");
                })
                .ok()
        });
        let watchdog = watchdog_usec.filter(|usec| *usec > 0).map(Duration::from_micros);
        Self { watchdog: watchdog.filter(|_| socket.is_some()), socket }
    }

    /// Everything was read once and decisions are made.
    pub fn ready(&self, words: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(words)));
    }

    /// Begins nothing new any more.
    pub fn stopping(&self, words: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={}", one_line(words)));
    }

    /// Feeds the watchdog for as long as `is_alive` says so, three times within its patience. Never returns; without a watchdog it just
    /// waits. A service that is stuck is then restarted by whoever supervises it.
    pub async fn keep_alive(&self, is_alive: impl Fn() -> bool) {
        let Some(patience) = self.watchdog else { return std::future::pending().await };
        let mut ticks = interval((patience / 3).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_alive = true;
        loop {
            ticks.tick().await;
            let is_alive = is_alive();
            if is_alive {
                self.send("WATCHDOG=1");
            } else if was_alive {
                tracing::error!("the loops make no progress; the watchdog is no longer fed");
            }
            was_alive = is_alive;
        }
    }

    fn send(&self, message: &str) {
        let Some((socket, manager)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), manager) {
            tracing::warn!("the service manager did not take {message:?}: {error}");
        }
    }
}

fn open(name: &OsString) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        [b'@', name @ ..] => abstract_address(name)?,
        _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor @name")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok((socket, address))
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract sockets are Linux's"))
}

/// A line break would begin another variable.
fn one_line(words: &str) -> String {
    words.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use tokio::time::{sleep, timeout};

    use super::*;

    /// The manager's end of the socket, and its name.
    struct Manager(UnixDatagram, OsString);

    fn unique() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("roost-notify-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    impl Manager {
        fn listen() -> Self {
            let path: PathBuf = env::temp_dir().join(unique());
            let socket = UnixDatagram::bind(&path).unwrap();
            Self::of(socket, path.into())
        }

        fn of(socket: UnixDatagram, name: OsString) -> Self {
            socket.set_nonblocking(true).unwrap();
            Self(socket, name)
        }

        fn heard(&self) -> Vec<String> {
            let mut buffer = [0; 4096];
            let mut heard = Vec::new();
            while let Ok(length) = self.0.recv(&mut buffer) {
                heard.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
            }
            heard
        }
    }

    impl Drop for Manager {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.1);
        }
    }

    #[test]
    fn the_manager_hears_when_the_service_is_ready_and_when_it_stops() {
        let manager = Manager::listen();
        let service = ServiceManager::at(Some(manager.1.clone()), None);
        service.ready("serves on port 8086");
        service.stopping("two starts\nare under way");
        let wanted =
            ["READY=1\nSTATUS=serves on port 8086", "STOPPING=1\nSTATUS=two starts are under way"];
        assert_eq!(manager.heard(), wanted);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_socket_works_like_one_with_a_path() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = unique();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager =
            Manager::of(UnixDatagram::bind_addr(&address).unwrap(), format!("@{name}").into());
        ServiceManager::at(Some(manager.1.clone()), None).ready("");
        assert_eq!(manager.heard(), ["READY=1\nSTATUS="]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_while_the_service_is_alive_and_not_one_moment_longer() {
        let manager = Manager::listen();
        let service = ServiceManager::at(Some(manager.1.clone()), Some(30_000_000));
        let alive = AtomicBool::new(true);
        let feeding = service.keep_alive(|| alive.load(Ordering::Relaxed));
        let watching = async {
            sleep(Duration::from_secs(29)).await;
            assert_eq!(manager.heard(), ["WATCHDOG=1"; 3]);
            alive.store(false, Ordering::Relaxed);
            sleep(Duration::from_mins(5)).await;
            assert!(manager.heard().is_empty());
            alive.store(true, Ordering::Relaxed);
            sleep(Duration::from_secs(15)).await;
            assert!(!manager.heard().is_empty());
        };
        tokio::select! {
            () = feeding => unreachable!("it feeds for ever"),
            () = watching => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_manager_nothing_is_said_and_nothing_fails() {
        let gone = env::temp_dir().join(unique());
        for socket in [None, Some("".into()), Some("vsock:2:9".into()), Some(gone.into_os_string())]
        {
            let service = ServiceManager::at(socket.clone(), Some(1_000_000));
            service.ready("ready");
            service.stopping("stopping");
            let feeding = service.keep_alive(|| true);
            assert!(timeout(Duration::from_mins(1), feeding).await.is_err(), "{socket:?}");
        }
    }
}
