use roost_cds::Secret;

/// An RSA private key for hatcheries that only ever talk to simulators. Everybody has it.
pub fn demo_hatchery_key() -> Secret {
    Secret::from(include_str!("../keys/hatchery.pem"))
}
