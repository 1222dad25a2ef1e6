//! Where a service is, by its configuration file.

use std::error::Error;
use std::io;
use std::path::Path;

use roost_client::{ServiceAddress, Surroundings};
use roost_hatchery::config::{Listen, Surroundings as _, SystemSurroundings};
use roost_settings::{Problems, Table};
use roost_supervise::Chain;

use crate::serve::sections::{self, ConsoleSection};

/// The files and variables of this machine.
#[derive(Debug, Default)]
pub(crate) struct Here {
    /// The service that is meant, by its name, if the command line says so.
    pub(crate) at: Option<String>,
}

impl Surroundings for Here {
    fn variable(&self, name: &str) -> Option<String> {
        if let ("ROOST_AT", Some(at)) = (name, &self.at) {
            return Some(at.clone());
        }
        SystemSurroundings.variable(name)
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        SystemSurroundings.read_file(path)
    }

    fn service(&self, file: &str) -> Result<ServiceAddress, Box<dyn Error + Send + Sync>> {
        if let Some(console) = without_hatchery(file) {
            let token = console.token.map(|token| token.expose().into());
            let (address, port) = (console.addr, console.port);
            return Ok(ServiceAddress { address, port, is_https: false, token: Ok(token) });
        }
        let listen = Listen::load(file, &SystemSurroundings)?;
        let token = Listen::token(file, &SystemSurroundings)
            .map(|token| token.map(|token| token.expose().into()))
            .map_err(|trouble| Chain(&trouble).to_string());
        Ok(ServiceAddress {
            address: listen.address,
            port: listen.port,
            is_https: listen.tls.is_some(),
            token,
        })
    }
}

/// Where a service of other doors listens. A token that cannot be read is as good as none to those who only look.
fn without_hatchery(file: &str) -> Option<ConsoleSection> {
    let problems = Problems::default();
    let file = Table::parse(file, &problems)?;
    sections::are_alone(&file).then(|| sections::console(&file, &SystemSurroundings, &problems))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn service(http: &str) -> ServiceAddress {
        Here::default()
            .service(&format!("[hatchery.vsphere.commonConfiguration.http]\n{http}"))
            .unwrap()
    }

    #[test]
    fn a_file_says_where_its_service_listens() {
        for (http, address, port, is_https) in [
            ("port = 8086", None, 8086, false),
            ("addr = ''", None, 8081, false),
            ("addr = '[::]'\nport = 9", Some("[::]"), 9, false),
            ("addr = 'roost.example'\nport = 9", Some("roost.example"), 9, false),
            ("certFile = 'c'\nkeyFile = 'k'\nport = 9", None, 9, true),
        ] {
            let found = service(http);
            let found = (found.address.as_deref(), found.port, found.is_https);
            assert_eq!(found, (address, port, is_https), "{http}");
        }
    }

    #[test]
    fn a_service_without_a_hatchery_is_where_its_console_is() {
        let found =
            Here::default().service("[vm-operator]\n[console]\nport = 9\ntoken = 'own'\n").unwrap();
        assert_eq!((found.port, found.is_https), (9, false));
        assert_eq!(found.token.unwrap().unwrap().expose_secret(), "own");
        assert_eq!(Here::default().service("[agent-forge]\n").unwrap().port, 8086);
    }

    #[test]
    fn a_file_says_what_opens_its_service_or_why_not() {
        let own = service("token = 'own'").token.unwrap().unwrap();
        assert_eq!(own.expose_secret(), "own");
        assert!(service("port = 3").token.unwrap().is_none());
        let trouble = service("tokenFile = '/root/nowhere/secret'").token.unwrap_err();
        assert!(trouble.contains("/root/nowhere/secret"), "{trouble}");
    }
}
