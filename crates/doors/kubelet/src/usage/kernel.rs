//! The kernel's own words, read.

/// Nanoseconds of a processor in one tick.
pub(super) fn nanos_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// User and system time of a process, in ticks, from its `stat`. A program's name may hold anything, also brackets.
pub(super) fn process_ticks(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(field(11)? + field(12)?)
}

/// A line such as `VmRSS:    1234 kB`, in bytes.
pub(super) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Time at work of all processors, in ticks. Idle and waiting is no work; a guest's time is in the user's already.
pub(super) fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, irq, soft_irq, rest @ ..] = fields.as_slice() else {
        return None;
    };
    Some(user + nice + system + irq + soft_irq + rest.first().unwrap_or(&0))
}

/// Bytes that an interface of the host has received and sent.
pub(super) fn interface(devices: &str, name: &str) -> Option<(u64, u64)> {
    let line =
        devices.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    Some((*fields.first()?, *fields.get(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "4242 (cloud) hyper (x) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 1 2 3";
        assert_eq!(process_ticks(stat), Some(200));
        assert_eq!(process_ticks("4242 (x) S 1"), None);
    }

    #[test]
    fn idle_processors_do_not_count() {
        let stat = "cpu  100 10 40 99999 5000 1 2 3 70 7\ncpu0 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), Some(156), "user, nice, system, irq, softirq, steal");
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn sizes_and_interfaces_are_found_by_name() {
        assert_eq!(kilobytes("VmHWM:\t 9 kB\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12 * 1024));
        let devices = "Inter-| Receive\n face |bytes\n  tapA-0: 1000 1 0 0 0 0 0 0 2000 2 0 0\ntapA-01: 5 0 0 0 0 0 0 0 6 0\n";
        assert_eq!(interface(devices, "tapA-0"), Some((1000, 2000)));
        assert_eq!(interface(devices, "tapB-0"), None);
    }
}
