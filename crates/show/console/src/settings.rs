use secrecy::SecretString;

use roost_tls::ServerTls;

/// Who may look.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What must be shown by whoever does not ask from this machine, and for every action. Without one, and without a client certificate, both are refused.
    pub token: Option<SecretString>,
    /// The header in which the operator's proxy names its client, beside those that every proxy uses. A request
    /// that carries one comes from elsewhere, also if the proxy runs on this machine.
    pub forwarded_header: Option<String>,
    /// `None`: plain HTTP. Whoever shows a good client certificate needs no token.
    pub tls: Option<ServerTls>,
}
