use std::time::Duration;

use roost_clock::Random;

/// A duration between two bounds, drawn anew each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub from: Duration,
    pub to: Duration,
}

impl Span {
    pub const ZERO: Self = Self { from: Duration::ZERO, to: Duration::ZERO };

    pub const fn millis(from: u64, to: u64) -> Self {
        Self { from: Duration::from_millis(from), to: Duration::from_millis(to) }
    }

    pub const fn secs(from: u64, to: u64) -> Self {
        Self { from: Duration::from_secs(from), to: Duration::from_secs(to) }
    }

    pub(crate) fn draw(self, random: &mut Random) -> Duration {
        random.duration(self.from, self.to)
    }
}

/// How long things take. [`realistic`](Self::realistic) is the default, for paused clocks; [`quick`](Self::quick) lets a person or
/// a test on real time see every phase; [`instant`](Self::instant) takes no time at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timings {
    /// A clone that shares its parent's disk.
    pub clone_linked: Span,
    /// A clone that copies its disk, without the copying.
    pub clone_full: Span,
    /// Copying one GiB that is in use, also when a VM moves to another datastore or a disk file is copied.
    pub copy_gib: Span,
    pub create: Span,
    pub reconfigure: Span,
    pub customize: Span,
    pub power_on: Span,
    pub power_off: Span,
    pub reset: Span,
    pub suspend: Span,
    pub rename: Span,
    pub destroy: Span,
    pub snapshot: Span,
    pub revert: Span,
    pub remove_snapshot: Span,
    /// Moving a VM to another host or pool, without copying.
    pub relocate: Span,
    pub upgrade: Span,
    pub move_into_folder: Span,
    /// Searching, deleting and moving datastore files.
    pub file: Span,
    /// From power on to an operating system that runs.
    pub boot: Span,
    /// From there to guest tools that run.
    pub tools: Span,
    /// What customization takes, when there is one.
    pub customization: Span,
    /// From there to guest operations.
    pub ready: Span,
    /// From there to an address that the tools report.
    pub address: Span,
    /// From a guest's decision to shut down to a VM that is off.
    pub shutdown: Span,
    /// Clones beyond this many wait in state `queued`.
    pub concurrent_clones: usize,
}

impl Timings {
    pub fn realistic() -> Self {
        Self {
            clone_linked: Span::secs(4, 10),
            clone_full: Span::secs(8, 16),
            copy_gib: Span::millis(2_000, 5_000),
            create: Span::millis(800, 2_500),
            reconfigure: Span::millis(400, 1_800),
            customize: Span::millis(400, 1_200),
            power_on: Span::millis(1_200, 4_000),
            power_off: Span::millis(500, 2_000),
            reset: Span::millis(500, 1_500),
            suspend: Span::secs(2, 8),
            rename: Span::millis(200, 900),
            destroy: Span::millis(900, 3_500),
            snapshot: Span::secs(1, 4),
            revert: Span::secs(1, 5),
            remove_snapshot: Span::secs(1, 6),
            relocate: Span::secs(2, 8),
            upgrade: Span::millis(400, 1_200),
            move_into_folder: Span::millis(200, 900),
            file: Span::millis(100, 700),
            boot: Span::secs(10, 30),
            tools: Span::secs(3, 10),
            customization: Span::secs(8, 20),
            ready: Span::secs(1, 4),
            address: Span::secs(1, 8),
            shutdown: Span::secs(4, 15),
            // What vCenter allows per host is eight; clusters here have few hosts.
            concurrent_clones: 8,
        }
    }

    /// Every phase is there and each takes a fraction of a second.
    pub fn quick() -> Self {
        let (short, long) = (Span::millis(20, 80), Span::millis(100, 300));
        Self {
            clone_linked: long,
            clone_full: long,
            copy_gib: Span::millis(10, 30),
            suspend: long,
            relocate: long,
            boot: long,
            tools: long,
            customization: long,
            address: long,
            shutdown: long,
            ..Self::uniform(short, 8)
        }
    }

    /// Nothing takes any time.
    pub fn instant() -> Self {
        Self::uniform(Span::ZERO, 8)
    }

    fn uniform(span: Span, concurrent_clones: usize) -> Self {
        Self {
            clone_linked: span,
            clone_full: span,
            copy_gib: span,
            create: span,
            reconfigure: span,
            customize: span,
            power_on: span,
            power_off: span,
            reset: span,
            suspend: span,
            rename: span,
            destroy: span,
            snapshot: span,
            revert: span,
            remove_snapshot: span,
            relocate: span,
            upgrade: span,
            move_into_folder: span,
            file: span,
            boot: span,
            tools: span,
            customization: span,
            ready: span,
            address: span,
            shutdown: span,
            concurrent_clones,
        }
    }

    /// What copying this many bytes takes.
    pub(crate) fn copying(&self, bytes: i64, random: &mut Random) -> Duration {
        let per_gib = self.copy_gib.draw(random);
        let mib = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        per_gib.saturating_mul(mib) / 1024
    }
}

impl Default for Timings {
    fn default() -> Self {
        Self::realistic()
    }
}
