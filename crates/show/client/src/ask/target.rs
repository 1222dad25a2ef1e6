use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use roost_supervise::Chain;

use super::args::Reach;
use super::targets;

/// Where a service is if nobody says so: the port of the sample configuration.
const DEFAULT_URL: &str = "http://127.0.0.1:8086";

/// What surrounds a command.
pub trait Surroundings {
    fn variable(&self, name: &str) -> Option<String>;

    fn read_file(&self, path: &Path) -> io::Result<String>;

    /// Where the service of a configuration file listens.
    fn service(&self, file: &str) -> Result<ServiceAddress, Box<dyn Error + Send + Sync>>;
}

/// What a configuration file says about its service.
#[derive(Debug)]
pub struct ServiceAddress {
    /// `None`: all interfaces.
    pub address: Option<String>,
    pub port: u16,
    pub is_https: bool,
    /// What opens it, or why that cannot be read.
    pub token: Result<Option<SecretString>, String>,
}

/// Whom to ask.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) token: Option<SecretString>,
    /// Why the token of the configuration file is not there, if it names one.
    pub(super) token_trouble: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{text:?} is no address of a service: it must be like {DEFAULT_URL}")]
    Url { text: String },
    #[error("reading {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}", path.display())]
    Config { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("{words}")]
    Named { words: String },
    #[error("{} holds no token", path.display())]
    NoToken { path: PathBuf },
}

impl Target {
    pub(super) fn find(
        reach: &Reach,
        surroundings: &dyn Surroundings,
    ) -> Result<Self, TargetError> {
        let filled =
            |name| surroundings.variable(name).filter(|text: &String| !text.trim().is_empty());
        let (mut token, mut token_trouble) = (None, None);
        let mut token_file = reach.token_file.clone();
        let at = filled("ROOST_AT").filter(|_| reach.url.is_none() && reach.config.is_none());
        let url = match (&reach.url, &reach.config) {
            (Some(url), _) => url.clone(),
            _ if let Some(at) = &at => {
                let named = targets::find(surroundings, at)
                    .map_err(|error| TargetError::Named { words: Chain(&*error).to_string() })?;
                token_file = token_file.or(named.token_file);
                named.url
            }
            (None, Some(path)) => {
                let text = read(path, surroundings)?;
                let service = surroundings
                    .service(&text)
                    .map_err(|source| TargetError::Config { path: path.clone(), source })?;
                let url = url_of(&service);
                // Whoever only looks may do so without a token that they may not read.
                match service.token {
                    Ok(given) => token = given.map(|token| token.expose_secret().to_owned()),
                    Err(trouble) => token_trouble = Some(trouble),
                }
                url
            }
            (None, None) => filled("ROOST_URL").unwrap_or_else(|| DEFAULT_URL.to_owned()),
        };
        if let Some(path) = &token_file {
            let text = read(path, surroundings)?;
            if text.trim().is_empty() {
                return Err(TargetError::NoToken { path: path.clone() });
            }
            token = Some(text);
        }
        let token = token.or_else(|| filled("ROOST_TOKEN"));
        let token = token.map(|token| SecretString::from(token.trim()));
        Ok(Self { url: parse(&url)?, token, token_trouble })
    }
}

fn read(path: &Path, surroundings: &dyn Surroundings) -> Result<String, TargetError> {
    surroundings
        .read_file(path)
        .map_err(|source| TargetError::Read { path: path.to_owned(), source })
}

fn url_of(service: &ServiceAddress) -> String {
    let address = service.address.as_deref().unwrap_or("127.0.0.1");
    let host = match address.trim_matches(['[', ']']).parse::<IpAddr>() {
        // Whoever listens everywhere listens here.
        Ok(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        Ok(IpAddr::V4(ip)) => ip.to_string(),
        Err(_) => address.to_owned(),
    };
    let scheme = if service.is_https { "https" } else { "http" };
    format!("{scheme}://{host}:{}", service.port)
}

fn parse(text: &str) -> Result<Url, TargetError> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            // A password in an address ends up in shell histories and messages.
            && url.username().is_empty()
            && url.password().is_none()
    });
    // The text may hold such a password.
    url.ok_or_else(|| TargetError::Url { text: text.rsplit('@').next().unwrap_or(text).to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default)]
    struct Pretend {
        variables: BTreeMap<&'static str, &'static str>,
        files: BTreeMap<&'static str, String>,
    }

    impl Surroundings for Pretend {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|&value| value.to_owned())
        }

        fn read_file(&self, path: &Path) -> io::Result<String> {
            let file = path.to_str().and_then(|path| self.files.get(path));
            file.cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        }

        /// A file is `ADDRESS PORT SCHEME TOKEN`, each `-` if it says nothing.
        fn service(&self, file: &str) -> Result<ServiceAddress, Box<dyn Error + Send + Sync>> {
            let words: Vec<&str> = file.split_whitespace().collect();
            let [address, port, scheme, token] = words[..] else { return Err("no service".into()) };
            let said = |text: &str| (text != "-").then(|| text.to_owned());
            let token = match token.strip_prefix('!') {
                Some(trouble) => Err(trouble.to_owned()),
                None => Ok(said(token).map(SecretString::from)),
            };
            Ok(ServiceAddress {
                address: said(address),
                port: port.parse()?,
                is_https: scheme == "https",
                token,
            })
        }
    }

    fn found(reach: &Reach, surroundings: &Pretend) -> (String, Option<String>) {
        let Target { url, token, .. } = Target::find(reach, surroundings).unwrap();
        (url.to_string(), token.map(|token| token.expose_secret().to_owned()))
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_that_before_the_default() {
        let mut surroundings = Pretend::default();
        let mut reach = Reach::default();
        assert_eq!(found(&reach, &surroundings), ("http://127.0.0.1:8086/".into(), None));
        surroundings.variables =
            [("ROOST_URL", "http://env:1"), ("ROOST_TOKEN", "from-env")].into();
        let token = |text: &str| Some(text.to_owned());
        assert_eq!(found(&reach, &surroundings), ("http://env:1/".into(), token("from-env")));
        surroundings.files = [("conf", "- 3 - -".into()), ("token", "from-file\n".into())].into();
        reach.config = Some("conf".into());
        reach.token_file = Some("token".into());
        let want = ("http://127.0.0.1:3/".into(), token("from-file"));
        assert_eq!(found(&reach, &surroundings), want);
        reach.url = Some("https://cli:2/below".into());
        assert_eq!(found(&reach, &surroundings).0, "https://cli:2/below");
    }

    #[test]
    fn the_address_of_a_file_is_one_that_can_be_asked() {
        for (file, url) in [
            ("- 8086 - -", "http://127.0.0.1:8086/"),
            ("0.0.0.0 9 - -", "http://127.0.0.1:9/"),
            (":: 9 - -", "http://127.0.0.1:9/"),
            ("[::] 9 - -", "http://127.0.0.1:9/"),
            ("10.0.0.7 9 - -", "http://10.0.0.7:9/"),
            ("fd00::7 9 - -", "http://[fd00::7]:9/"),
            ("roost.example 9 - -", "http://roost.example:9/"),
            ("- 9 https -", "https://127.0.0.1:9/"),
        ] {
            let surroundings =
                Pretend { files: [("conf", file.to_owned())].into(), ..Pretend::default() };
            let reach = Reach { config: Some("conf".into()), ..Reach::default() };
            assert_eq!(found(&reach, &surroundings).0, url, "{file}");
        }
    }

    #[test]
    fn the_token_of_the_file_opens_its_service_and_one_that_may_not_be_read_is_no_hindrance() {
        let mut surroundings = Pretend {
            variables: [("ROOST_TOKEN", "of-another")].into(),
            files: [("conf", "- 3 - own".into())].into(),
        };
        let reach = Reach { config: Some("conf".into()), ..Reach::default() };
        assert_eq!(found(&reach, &surroundings).1.as_deref(), Some("own"));
        surroundings.files.insert("conf", "- 3 - !/root/secret".into());
        assert_eq!(found(&reach, &surroundings).1.as_deref(), Some("of-another"));
        surroundings.variables.clear();
        let target = Target::find(&reach, &surroundings).unwrap();
        assert!(target.token.is_none());
        let trouble = target.token_trouble.unwrap();
        assert!(trouble.contains("/root/secret"), "{trouble}");
    }

    #[test]
    fn a_name_stands_for_an_address_and_its_token() {
        let targets = "[paris]\nurl = 'https://paris.example:8086'\ntoken-file = '/token'\n";
        let here = Pretend {
            variables: [
                ("ROOST_AT", "paris"),
                ("ROOST_TARGETS", "/targets"),
                ("ROOST_URL", "http://x"),
            ]
            .into(),
            files: [("/targets", targets.to_owned()), ("/token", "secret\n".to_owned())].into(),
        };
        let found = Target::find(&Reach::default(), &here).unwrap();
        assert_eq!(found.url.as_str(), "https://paris.example:8086/");
        assert_eq!(found.token.unwrap().expose_secret(), "secret");
        let url = Some("http://127.0.0.1:9".to_owned());
        let found = Target::find(&Reach { url, ..Reach::default() }, &here).unwrap();
        assert_eq!(found.url.port(), Some(9), "what is written out is meant");
        let nobody = Pretend {
            variables: [("ROOST_AT", "rome"), ("ROOST_TARGETS", "/targets")].into(),
            ..here
        };
        let error = Target::find(&Reach::default(), &nobody).unwrap_err().to_string();
        assert!(error.contains("\"rome\"") && error.contains("paris"), "{error}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let surroundings = Pretend { files: [("empty", "\n".into())].into(), ..Pretend::default() };
        let refused = |reach: Reach| Target::find(&reach, &surroundings).unwrap_err().to_string();
        let url = |url: &str| refused(Reach { url: Some(url.into()), ..Reach::default() });
        for text in ["localhost:8086", "ftp://h", "unix:/run/roost", "http://u:hunter2@h"] {
            let said = url(text);
            assert!(said.contains("is no address of a service"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        let file = |path: &str| Reach { token_file: Some(path.into()), ..Reach::default() };
        assert_eq!(refused(file("none")), "reading none");
        assert_eq!(refused(file("empty")), "empty holds no token");
    }
}
