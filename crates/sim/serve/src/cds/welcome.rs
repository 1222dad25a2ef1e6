use std::fmt;

use roost_cds::Secret;
use serde_json::json;

use super::{SimCds, TemplateModel};

/// A token that the simulator accepts.
pub(super) enum Token {
    /// In the source for everybody to read: it opens nothing but simulators, and is shown.
    Demo(Secret),
    /// Who gave it knows it; it may be one that is used elsewhere, too.
    Given { flag: &'static str, secret: Secret },
}

impl Token {
    pub(super) fn of(
        flag: &'static str,
        given: Option<Secret>,
        demo: &str,
    ) -> anyhow::Result<Self> {
        match given {
            Some(secret) if secret.is_empty() => anyhow::bail!("{flag} must not be empty"),
            Some(secret) => Ok(Self::Given { flag, secret }),
            None => Ok(Self::Demo(demo.into())),
        }
    }

    pub(super) fn secret(&self) -> &Secret {
        match self {
            Self::Demo(secret) | Self::Given { secret, .. } => secret,
        }
    }

    /// As a value of TOML.
    fn shown(&self) -> String {
        match self {
            Self::Demo(secret) => text(secret.expose()),
            Self::Given { flag, .. } => format!("\"...\" # as given with {flag}"),
        }
    }
}

/// A string of JSON is one of TOML.
fn text(text: &str) -> String {
    json!(text).to_string()
}

/// What is said at the start: what is there, who may sign in, and how a hatchery does.
pub(super) struct Welcome<'a> {
    pub(super) args: &'a SimCds,
    pub(super) url: &'a str,
    pub(super) seed: u64,
    pub(super) models: &'a [TemplateModel],
    pub(super) token: Token,
    pub(super) token_v2: Token,
    pub(super) is_local: bool,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { args, url, seed, .. } = self;
        writeln!(f, "Embedded CDS API on {url} (seed {seed})\n")?;
        writeln!(f, "Worker models:")?;
        for model in self.models {
            writeln!(f, "  {} is the template {}", model.name_in_jobs(), model.template)?;
        }
        if args.jobs > 0 {
            let every = args.every.as_secs_f64();
            writeln!(f, "{} jobs arrive in waves, one every {every} s.", args.jobs)?;
        }
        if args.chaos > 0.0 {
            writeln!(f, "Faults of every kind, each with a chance of {}.", args.chaos)?;
        }
        let is_demo = [&self.token, &self.token_v2].iter().any(|t| matches!(t, Token::Demo(_)));
        let of_tokens =
            if is_demo { " Its demo tokens open nothing but this simulator." } else { "" };
        writeln!(f, "\nThis is what a hatchery needs to sign in.{of_tokens}\n")?;
        writeln!(f, "{}", self.toml())?;
        writeln!(
            f,
            "Workers run in guests that execute: `roost sim vcenter --tls --guests exec` prints the other half of the file."
        )?;
        if !self.is_local {
            writeln!(f, "Other machines can reach it.")?;
        }
        if args.control {
            writeln!(f, "Control endpoint: {url}/roost/control/")?;
        }
        writeln!(f, "Ctrl-C ends it.")
    }
}

impl Welcome<'_> {
    pub(super) fn toml(&self) -> String {
        let (name, region) = (text(&self.args.hatchery), text(&self.args.region));
        let (token, token_v2) = (self.token.shown(), self.token_v2.shown());
        let url = text(self.url);
        format!(
            "\
[hatchery.vsphere.commonConfiguration]
name = {name}
# Any RSA key will do: openssl genrsa -out hatchery-key.pem 4096
rsaPrivateKeyFile = \"hatchery-key.pem\"

[hatchery.vsphere.commonConfiguration.http]
port = 8086

[hatchery.vsphere.commonConfiguration.api]
token = {token}
tokenV2 = {token_v2}

[hatchery.vsphere.commonConfiguration.api.http]
url = {url}

[hatchery.vsphere.commonConfiguration.provision]
region = {region}
"
        )
    }
}
