//! Times and amounts for people.

use jiff::Timestamp;

/// `11:48:12`, by UTC.
pub(crate) fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// `2026-01-01 11:48:12 UTC`
pub(crate) fn date(at: Timestamp) -> String {
    at.strftime("%F %T UTC").to_string()
}

pub(crate) fn secs(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min {} s", secs / 60, secs % 60),
        3_600..86_400 => format!("{} h {} min", secs / 3_600, secs % 3_600 / 60),
        _ => format!("{} d {} h", secs / 86_400, secs % 86_400 / 3_600),
    }
}

/// To the tenth of a second while that says something.
pub(crate) fn millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => secs(millis / 1_000),
    }
}

pub(crate) fn memory(mb: u64) -> String {
    if mb >= 1_024 && mb.is_multiple_of(1_024) {
        format!("{} GiB", mb / 1_024)
    } else if mb >= 10 * 1_024 {
        format!("{}.{} GiB", mb / 1_024, mb % 1_024 * 10 / 1_024)
    } else {
        format!("{mb} MiB")
    }
}

/// An amount that a gate weighs, in the units that it has.
pub(crate) fn in_units_of_gate(gate: &str, amount: u64) -> String {
    match gate {
        "memory" | "memory-reserve" | "pool-memory" => memory(amount),
        "pool-cpu" => format!("{amount} MHz"),
        _ => amount.to_string(),
    }
}

/// What a gate asks, for those who do not know it by name. One that is not known here is shown by its name alone.
pub(crate) fn of_gate(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "request" => "no VM serves it yet",
        "workers" => "workers at the same time",
        "pending" => "workers that have not joined CDS yet",
        "registering" => "models that register at the same time",
        "pool-cpu" => "CPU of the vSphere resource pool",
        "pool-memory" => "memory of the vSphere resource pool",
        "cpus" => "CPUs of all workers and spares",
        "memory" => "memory of all workers and spares",
        "cpu-reserve" => "CPUs, with some left for others",
        "memory-reserve" => "memory, with some left for others",
        "address" => "an address to give",
        "paused" => "a person has said to wait",
        "views" => "both servers were read whole and lately",
        "own" => "it is ours",
        "sightings" => "seen twice",
        "grace" => "its time to be mistaken is over",
        "budget" => "deletions in a minute",
        "freeze" => "deletions are not frozen",
        "held" => "nobody is at work on it",
        _ => return None,
    })
}

/// `1 job`, `3 jobs`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Milliseconds from one time to another; 0 if it is the other way round.
pub(crate) fn ms_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

/// Of a long id, what tells it from others on a screen.
pub(crate) fn short_id(id: &str) -> &str {
    let is_uuid = id.len() == 36 && id.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    if is_uuid { &id[..8] } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!([secs(0), secs(59), secs(134)], ["0 s", "59 s", "2 min 14 s"]);
        assert_eq!([secs(3_900), secs(90_000)], ["1 h 5 min", "1 d 1 h"]);
        assert_eq!([millis(7), millis(1_250), millis(61_000)], ["7 ms", "1.2 s", "1 min 1 s"]);
        assert_eq!([memory(512), memory(4_096), memory(81_000)], ["512 MiB", "4 GiB", "79.1 GiB"]);
        assert_eq!([count(1, "job", "jobs"), count(0, "job", "jobs")], ["1 job", "0 jobs"]);
        assert_eq!(short_id("e37b34f2-709a-4a7d-a019-f265ae50fb21"), "e37b34f2");
        assert_eq!(short_id("1045"), "1045");
    }

    #[test]
    fn times_are_utc() {
        let at: Timestamp = "2026-01-01T11:48:12.65Z".parse().unwrap();
        assert_eq!(
            (clock(at).as_str(), date(at).as_str()),
            ("11:48:12", "2026-01-01 11:48:12 UTC")
        );
    }
}
