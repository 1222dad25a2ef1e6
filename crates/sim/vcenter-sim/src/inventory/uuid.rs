use roost_clock::Random;

/// A random UUID of version 4; VMs keep it as a number and show it with [`uuid_text`].
pub(crate) fn draw_uuid(random: &mut Random) -> u128 {
    let drawn = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    drawn & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62
}

pub(crate) fn uuid_text(uuid: u128) -> String {
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        uuid >> 96,
        uuid >> 80 & 0xffff,
        uuid >> 64 & 0xffff,
        uuid >> 48 & 0xffff,
        uuid & 0xffff_ffff_ffff
    )
}

/// Accepts any grouping of the 32 digits.
pub(crate) fn parse_uuid(text: &str) -> Option<u128> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_survives_its_text() {
        let uuid = draw_uuid(&mut Random::from_seed(1));
        let text = uuid_text(uuid);
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]), "{text}");
        assert_eq!(parse_uuid(&text), Some(uuid));
        assert_eq!(parse_uuid("4"), None);
    }
}
