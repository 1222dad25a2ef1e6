/// Why bytes are not the vim25 message they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The input ends inside an element. While a body is arriving this only means "wait for more".
    #[error("the message ends in the middle")]
    Incomplete,
    #[error("the message holds {what} at byte {at}")]
    Malformed { what: &'static str, at: usize },
    #[error("the message is a {found}, not a {wanted}")]
    Unexpected { wanted: &'static str, found: String },
    #[error("one element of the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
}
