//! Times and amounts for people.

use jiff::Timestamp;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Sentences and pages: `2 min 14 s`, `4 GiB`.
    Long,
    /// Columns of a terminal: `2m14s`, `4GiB`.
    Short,
}

/// `11:48:12`, by UTC.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// `2026-01-01 11:48:12 UTC`
pub fn date(at: Timestamp) -> String {
    at.strftime("%F %T UTC").to_string()
}

/// The two largest units of it.
pub fn secs(secs: u64, style: Style) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    type UnitOf = (u64, &'static str, &'static str);
    const UNITS: [UnitOf; 4] =
        [(DAY, "d", "d"), (HOUR, "h", "h"), (MINUTE, "min", "m"), (1, "s", "s")];
    let name = |unit: UnitOf| if style == Style::Long { unit.1 } else { unit.2 };
    let large = UNITS.iter().position(|unit| secs >= unit.0).unwrap_or(UNITS.len() - 1);
    let (first, rest) = (secs / UNITS[large].0, secs % UNITS[large].0);
    let small = UNITS.get(large + 1).map(|unit| (rest / unit.0, *unit));
    match (style, small) {
        (Style::Long, None) => format!("{first} {}", name(UNITS[large])),
        (Style::Long, Some((rest, unit))) => {
            format!("{first} {} {rest} {}", name(UNITS[large]), name(unit))
        }
        (Style::Short, None | Some((0, _))) => format!("{first}{}", name(UNITS[large])),
        (Style::Short, Some((rest, unit))) => {
            format!("{first}{}{rest}{}", name(UNITS[large]), name(unit))
        }
    }
}

/// To the tenth of a second while that says something.
pub fn millis(millis: u64, style: Style) -> String {
    let gap = gap(style);
    match millis {
        0..1_000 => format!("{millis}{gap}ms"),
        1_000..60_000 => format!("{}.{}{gap}s", millis / 1_000, millis % 1_000 / 100),
        _ => secs(millis / 1_000, style),
    }
}

pub fn memory(mb: u64, style: Style) -> String {
    let gap = gap(style);
    if mb >= 1_024 && mb.is_multiple_of(1_024) {
        format!("{}{gap}GiB", mb / 1_024)
    } else if mb >= 10 * 1_024 {
        format!("{}.{}{gap}GiB", mb / 1_024, mb % 1_024 * 10 / 1_024)
    } else {
        format!("{mb}{gap}MiB")
    }
}

fn gap(style: Style) -> &'static str {
    match style {
        Style::Long => " ",
        Style::Short => "",
    }
}

/// `1 VM`, `3 VMs`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Milliseconds from one time to another; 0 if it is the other way round, as after a clock was set back.
pub fn ms_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

pub fn secs_between(from: Timestamp, to: Timestamp) -> u64 {
    ms_between(from, to) / 1_000
}

/// Of a long id, what tells it from others on a screen.
pub fn short_id(id: &str) -> &str {
    let is_uuid = id.len() == 36 && id.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    if is_uuid { &id[..8] } else { id }
}

/// With a capital first letter, as a title.
pub fn title(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_say_them() {
        for (number, long, short) in [
            (0, "0 s", "0s"),
            (59, "59 s", "59s"),
            (60, "1 min 0 s", "1m"),
            (134, "2 min 14 s", "2m14s"),
            (3_900, "1 h 5 min", "1h5m"),
            (90_000, "1 d 1 h", "1d1h"),
            (864_000, "10 d 0 h", "10d"),
        ] {
            assert_eq!(
                (secs(number, Style::Long), secs(number, Style::Short)),
                (long.into(), short.into())
            );
        }
        for (number, long, short) in [
            (7, "7 ms", "7ms"),
            (1_250, "1.2 s", "1.2s"),
            (59_999, "59.9 s", "59.9s"),
            (61_000, "1 min 1 s", "1m1s"),
        ] {
            assert_eq!(
                (millis(number, Style::Long), millis(number, Style::Short)),
                (long.into(), short.into())
            );
        }
        let long = |mb| memory(mb, Style::Long);
        assert_eq!([long(512), long(4_096), long(81_000)], ["512 MiB", "4 GiB", "79.1 GiB"]);
        assert_eq!(memory(262_144, Style::Short), "256GiB");
        assert_eq!([count(1, "VM", "VMs"), count(0, "VM", "VMs")], ["1 VM", "0 VMs"]);
        assert_eq!(short_id("e37b34f2-709a-4a7d-a019-f265ae50fb21"), "e37b34f2");
        assert_eq!(short_id("1045"), "1045");
        assert_eq!([title("pods"), title("")], ["Pods", ""]);
    }

    #[test]
    fn times_are_utc_and_a_clock_set_back_makes_no_time_of_it() {
        let at: Timestamp = "2026-01-01T11:48:12.65Z".parse().unwrap();
        assert_eq!((clock(at), date(at)), ("11:48:12".into(), "2026-01-01 11:48:12 UTC".into()));
        let (early, late) = (Timestamp::constant(90, 0), Timestamp::constant(100, 0));
        assert_eq!((secs_between(early, late), secs_between(late, early)), (10, 0));
    }
}
