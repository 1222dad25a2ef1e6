use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Chance from a seed. `ChaCha8` because its stream is specified: a seed means the same run on every machine and release.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    generator: ChaCha8Rng,
}

impl Random {
    pub fn from_seed(seed: u64) -> Self {
        Self { seed, generator: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// A fresh seed from the system, to be printed so that the run can be replayed.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system")]
    pub fn from_system() -> Self {
        Self::from_seed(rand::random())
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// An independent stream for one purpose: draws of one fork never shift those of another.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        // FNV-1a: stable across releases, unlike the standard hasher.
        let label = label.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::from_seed(self.seed.rotate_left(17) ^ label)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number in `0..limit`; 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.generator.random_range(0..limit) }
    }

    /// True with this probability, which is clamped to `0.0..=1.0`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.generator.random_bool(probability.clamp(0.0, 1.0))
    }

    /// A duration between the two, both included, in milliseconds.
    pub fn duration(&mut self, from: Duration, to: Duration) -> Duration {
        let span = to.saturating_sub(from).as_millis().try_into().unwrap_or(u64::MAX - 1);
        from + Duration::from_millis(self.below(span + 1))
    }

    /// A version 4 UUID in its usual text form.
    pub fn uuid(&mut self) -> String {
        let mut bytes = [0_u8; 16];
        self.generator.fill_bytes(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let number = u128::from_be_bytes(bytes);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            number >> 96,
            number >> 80 & 0xffff,
            number >> 64 & 0xffff,
            number >> 48 & 0xffff,
            number & 0xffff_ffff_ffff
        )
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(items.len() as u64)).ok()?;
        items.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let draw = |seed| {
            let mut random = Random::from_seed(seed);
            (random.next_u64(), random.uuid(), random.chance(0.5), random.below(9))
        };
        assert_eq!(draw(42), draw(42));
        assert_ne!(draw(42), draw(43));
    }

    #[test]
    fn a_fork_does_not_depend_on_what_its_parent_drew() {
        let mut parent = Random::from_seed(1);
        let before = parent.fork("boot").next_u64();
        parent.next_u64();
        assert_eq!(parent.fork("boot").next_u64(), before);
        assert_ne!(parent.fork("clone").next_u64(), before);
    }

    #[test]
    fn durations_stay_within_their_bounds() {
        let mut random = Random::from_seed(3);
        let (from, to) = (Duration::from_secs(2), Duration::from_secs(5));
        for _ in 0..1000 {
            let drawn = random.duration(from, to);
            assert!(drawn >= from && drawn <= to, "{drawn:?}");
        }
        assert_eq!(random.duration(to, from), to, "an empty span is its start");
    }

    #[test]
    fn uuids_have_version_and_variant() {
        let uuid = Random::from_seed(5).uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }
}
