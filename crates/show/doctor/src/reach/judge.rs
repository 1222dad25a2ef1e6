//! What a connection that got so far means.

use jiff::{SignedDuration, Timestamp};
use roost_tls::Certificate;
use roost_tls::{Belief, Disbelief, Thumbprint, TlsTrust};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::{Reach, Target};
use crate::patience::told;
use crate::report::{Fact, Finding, Verdict};

/// What to write into the file so that a server is believed.
#[derive(Debug, Clone, Copy)]
pub struct TrustWords {
    pub ca_file: &'static str,
    /// Where a certificate can be pinned.
    pub thumbprint: Option<&'static str>,
    pub insecure: &'static str,
    /// Where the certificate of the authority can be had.
    pub authority: &'static str,
}

/// New certificates take a while to be asked for and approved.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

const CERTIFICATE: &str = "certificate";

pub fn judge(target: &Target, reach: &Reach, words: TrustWords, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    if target.host.parse::<std::net::IpAddr>().is_err() {
        let advice = "check the name in the file and the name servers of this machine";
        findings.push(reach.addresses.judge("name", advice, |addresses| {
            if addresses.is_empty() {
                return Finding::fail("name", "has no address").advice(advice);
            }
            let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            Finding::pass("name", format!("{} is {}", target.host, all.join(", ")))
        }));
    }
    let advice = "check that the server runs, the port in the file, and the firewalls between here and there";
    findings.push(reach.connected.judge("connection", advice, |address| {
        Finding::pass("connection", format!("{address} answers"))
    }));
    match (&reach.chain, &target.trust) {
        (Some(Fact::Known(chain)), Some(trust)) => {
            findings.push(certificate(target, trust, chain, words, now));
        }
        (Some(Fact::Failed(why) | Fact::Unanswered(why)), _) => {
            let finding = Finding::fail(CERTIFICATE, format!("no TLS: {why}"));
            findings.push(finding.advice(
                "what answers on that port does not speak TLS, or hangs; check port and scheme",
            ));
        }
        (Some(Fact::Skipped(why)), _) => findings.push(Finding::skip(CERTIFICATE, why)),
        (None, _) | (Some(Fact::Known(_)), None) => findings.push(unencrypted(target)),
    }
    findings
}

/// Why nothing is to be sent there, by what was found so far.
pub fn obstacle(findings: &[Finding]) -> Option<&'static str> {
    let failed = findings.iter().find(|finding| finding.verdict == Verdict::Fail)?;
    Some(match failed.check.as_str() {
        CERTIFICATE => "there is no connection that can be trusted",
        _ => "there is no connection",
    })
}

fn unencrypted(target: &Target) -> Finding {
    let is_here = target.host == "localhost"
        || target.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here {
        return Finding::pass(
            CERTIFICATE,
            "none: not encrypted, and it does not leave this machine",
        );
    }
    Finding::warn(CERTIFICATE, "none: passwords and tokens go unencrypted").advice("use https")
}

fn certificate(
    target: &Target,
    trust: &TlsTrust,
    chain: &[CertificateDer<'_>],
    words: TrustWords,
    now: Timestamp,
) -> Finding {
    let Some(leaf) = chain.first() else {
        return Finding::fail(CERTIFICATE, "the server shows none")
            .advice("check the server's TLS set-up");
    };
    let read = Certificate::read(leaf);
    let whose = match &read {
        Some(read) if read.is_self_signed => format!("{:?}, signed by itself", read.subject),
        Some(read) => format!("{:?}, signed by {:?}", read.subject, read.issuer),
        None => "of a form that is not known".to_owned(),
    };
    let thumbprint = Thumbprint::of(leaf);
    let secs = u64::try_from(now.as_second()).unwrap_or_default();
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(secs));
    let finding = match trust.judge(&target.host, chain, at) {
        Ok(belief) => believed(belief, trust, &whose, words),
        Err(Disbelief::Trust { source }) => {
            let advice = format!("check {}", words.ca_file);
            return Finding::fail(CERTIFICATE, told(source)).advice(advice);
        }
        Err(why) => {
            return Finding::fail(CERTIFICATE, format!("{whose}: not trusted: {why}"))
                .details([format!("SHA-256 thumbprint {thumbprint}")])
                .advice(how_to_trust(words, &thumbprint));
        }
    };
    match read {
        Some(read) => with_expiry(finding, &read, now),
        None => finding,
    }
}

fn believed(belief: Belief, trust: &TlsTrust, whose: &str, words: TrustWords) -> Finding {
    match (belief, trust) {
        (Belief::Authority, TlsTrust::CaFile(path)) => {
            Finding::pass(CERTIFICATE, format!("{whose}; trusted by {}", path.display()))
        }
        (Belief::Authority, _) => {
            Finding::pass(CERTIFICATE, format!("{whose}; trusted by this machine's authorities"))
        }
        (Belief::Thumbprint, _) => {
            Finding::pass(CERTIFICATE, format!("{whose}; trusted by its thumbprint"))
        }
        (Belief::Anyone, _) => Finding::warn(
            CERTIFICATE,
            format!("{whose}; not verified: whoever is in between can read the password"),
        )
        .advice(format!("give {} instead of {}", trust_keys(words), words.insecure)),
    }
}

fn trust_keys(words: TrustWords) -> String {
    match words.thumbprint {
        Some(thumbprint) => format!("{} or {thumbprint}", words.ca_file),
        None => words.ca_file.to_owned(),
    }
}

fn how_to_trust(words: TrustWords, thumbprint: &Thumbprint) -> String {
    let authority = format!("set {} to a PEM file with {}", words.ca_file, words.authority);
    match words.thumbprint {
        Some(key) => format!(
            "{authority}; or, if that thumbprint is the one that the server's administrators see, {key} = \"{thumbprint}\""
        ),
        None => authority,
    }
}

fn with_expiry(finding: Finding, read: &Certificate, now: Timestamp) -> Finding {
    let day = read.not_after.strftime("%Y-%m-%d");
    let left = read.not_after.duration_since(now);
    let found = format!("{}; ", finding.found);
    let renew = "have it renewed; a new certificate has a new thumbprint";
    if left.is_negative() {
        // Only a pin or no verification at all comes here with it.
        return Finding::warn(CERTIFICATE, format!("{found}expired on {day}")).advice(renew);
    }
    if left < SOON {
        let days = left.as_hours() / 24;
        return Finding::warn(CERTIFICATE, format!("{found}expires on {day}, in {days} days"))
            .advice(renew);
    }
    Finding { found: format!("{found}good until {day}"), ..finding }
}

#[cfg(test)]
mod tests {
    use roost_tls::TlsIdentity;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);
    const WORDS: TrustWords = TrustWords {
        ca_file: "caFile",
        thumbprint: Some("thumbprint"),
        insecure: "insecure",
        authority: "the CA",
    };

    fn shown() -> CertificateDer<'static> {
        let identity = TlsIdentity::self_signed("vCenter simulator", &["vc.example.org"]).unwrap();
        CertificateDer::from(identity.certificate_der().to_vec())
    }

    fn target(trust: TlsTrust) -> Target {
        Target { host: "vc.example.org".into(), port: 443, trust: Some(trust) }
    }

    fn verdict_on(trust: &TlsTrust, leaf: &CertificateDer<'static>) -> Finding {
        certificate(&target(trust.clone()), trust, std::slice::from_ref(leaf), WORDS, NOW)
    }

    #[test]
    fn a_certificate_is_believed_by_what_the_file_says() {
        let leaf = shown();
        let pinned = verdict_on(&TlsTrust::Thumbprint(Thumbprint::of(&leaf)), &leaf);
        assert_eq!(pinned.verdict, Verdict::Pass, "{pinned:?}");
        assert!(pinned.found.contains("by its thumbprint") && pinned.found.contains("good until"));
        let insecure = verdict_on(&TlsTrust::Insecure, &leaf);
        assert_eq!(insecure.verdict, Verdict::Warn);
        let other = verdict_on(&TlsTrust::Thumbprint(Thumbprint::of(b"another")), &leaf);
        assert_eq!(other.verdict, Verdict::Fail);
        assert!(other.advice.unwrap().contains(&Thumbprint::of(&leaf).to_string()));
        let lost = verdict_on(&TlsTrust::CaFile("/no/such/ca.pem".into()), &leaf);
        assert!(lost.found.contains("/no/such/ca.pem"), "{lost:?}");
    }

    #[test]
    fn the_end_of_a_certificate_is_told_a_month_ahead() {
        let read = Certificate {
            common_name: None,
            organisations: Vec::new(),
            subject: "vc".into(),
            issuer: "ca".into(),
            is_self_signed: false,
            not_before: NOW,
            not_after: NOW + SignedDuration::from_hours(24 * 10),
        };
        let pass = || Finding::pass(CERTIFICATE, "vc");
        let soon = with_expiry(pass(), &read, NOW);
        assert_eq!((soon.verdict, soon.found.contains("in 10 days")), (Verdict::Warn, true));
        let late = with_expiry(pass(), &read, NOW + SignedDuration::from_hours(24 * 11));
        assert_eq!((late.verdict, late.found.contains("expired")), (Verdict::Warn, true));
    }

    #[test]
    fn only_a_server_of_this_machine_may_do_without_encryption() {
        let plain = |host: &str| Target { host: host.into(), port: 80, trust: None };
        assert_eq!(unencrypted(&plain("::1")).verdict, Verdict::Pass);
        assert_eq!(unencrypted(&plain("cds.example.org")).verdict, Verdict::Warn);
    }

    #[test]
    fn every_step_that_was_not_reached_is_skipped() {
        let reach = Reach {
            addresses: Fact::Failed("no such host".into()),
            connected: Fact::Skipped("the name has no address".into()),
            chain: Some(Fact::Skipped("the name has no address".into())),
        };
        let findings = judge(&target(TlsTrust::System), &reach, WORDS, NOW);
        let verdicts: Vec<Verdict> = findings.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Fail, Verdict::Skip, Verdict::Skip]);
        assert_eq!(obstacle(&findings), Some("there is no connection"));
        let untrusted = [Finding::pass("connection", ""), Finding::fail(CERTIFICATE, "")];
        assert_eq!(obstacle(&untrusted), Some("there is no connection that can be trusted"));
        assert_eq!(obstacle(&untrusted[..1]), None);
    }
}
