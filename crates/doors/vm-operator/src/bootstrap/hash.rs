//! XXH64, with which applied payloads are remembered.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// The hash of what is wanted, as the annotations keep it. It covers the payload itself and not its difference to what is there, which would be another one
/// after it was applied.
pub fn payload_hash(payload: &impl serde::Serialize) -> String {
    let bytes = serde_json::to_vec(payload).unwrap_or_default();
    format!("{:016x}", xxh64(&bytes, 0))
}

fn round(accumulator: u64, lane: u64) -> u64 {
    accumulator.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn merge(accumulator: u64, value: u64) -> u64 {
    (accumulator ^ round(0, value)).wrapping_mul(P1).wrapping_add(P4)
}

fn lane(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let mut stripes = bytes.chunks_exact(32);
    let mut hash = if bytes.len() >= 32 {
        let mut v = [
            seed.wrapping_add(P1).wrapping_add(P2),
            seed.wrapping_add(P2),
            seed,
            seed.wrapping_sub(P1),
        ];
        for stripe in stripes.by_ref() {
            for (accumulator, eight) in v.iter_mut().zip(stripe.chunks_exact(8)) {
                *accumulator = round(*accumulator, lane(eight));
            }
        }
        let sum = v[0]
            .rotate_left(1)
            .wrapping_add(v[1].rotate_left(7))
            .wrapping_add(v[2].rotate_left(12))
            .wrapping_add(v[3].rotate_left(18));
        v.into_iter().fold(sum, merge)
    } else {
        seed.wrapping_add(P5)
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let mut rest = if bytes.len() >= 32 { stripes.remainder() } else { bytes };
    while let Some((eight, tail)) = rest.split_first_chunk::<8>() {
        hash = (hash ^ round(0, lane(eight))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        rest = tail;
    }
    if let Some((four, tail)) = rest.split_first_chunk::<4>() {
        hash =
            (hash ^ lane(four).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = tail;
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the reference implementation.
    #[test]
    fn known_texts_have_their_known_hashes() {
        for (text, hash) in [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ] {
            assert_eq!(xxh64(text.as_bytes(), 0), hash, "{text}");
        }
    }
}
