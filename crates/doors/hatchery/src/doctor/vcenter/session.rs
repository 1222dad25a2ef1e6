//! Whether it lets us in, and what it is.

use super::facts::{About, Session};
use roost_doctor::Finding;

/// The first API whose tasks and property stream are as Roost uses them.
const OLDEST: (u32, u32) = (6, 5);
/// Older ones get no corrections from their maker.
const OLDEST_SUPPORTED: (u32, u32) = (7, 0);

pub(super) fn judge(session: &Session) -> Vec<Finding> {
    let about = match session {
        Session::Open(about) => about,
        Session::Refused { user } => {
            let finding = Finding::fail("login", format!("the vCenter refuses {user}"));
            return vec![finding.advice(
                "check hatchery.vsphere.user, with its domain (user@vsphere.local), and its password; \
                 several bad logins lock the account for a while",
            )];
        }
        Session::NoPassword(why) => {
            let finding = Finding::fail("login", format!("there is no password: {why}"));
            return vec![finding.advice("check hatchery.vsphere.passwordFile or passwordEnv")];
        }
        Session::NoApi(why) => {
            let finding = Finding::fail("login", why);
            return vec![finding.advice(
                "the vCenter is starting or overloaded, or what answers there is none: its API is below /sdk on that port",
            )];
        }
    };
    let mut findings = vec![Finding::pass("login", &about.user), version(about)];
    if !about.has_guest_operations {
        let finding = Finding::fail("guests", "the server has no guest operations");
        findings.push(finding.advice("without them no worker can be started; use another server"));
    }
    findings
}

fn version(about: &About) -> Finding {
    let name = &about.full_name;
    if !about.is_vcenter {
        return Finding::fail("version", format!("{name} is a host and no vCenter")).advice(
            "only a vCenter clones VMs: point hatchery.vsphere.endpoint to the one that manages it",
        );
    }
    match parse(&about.api_version) {
        Some(version) if version < OLDEST => {
            Finding::fail("version", format!("{name} is older than 6.5"))
                .advice("use a vCenter 7.0 or later")
        }
        Some(version) if version < OLDEST_SUPPORTED => {
            Finding::warn("version", format!("{name}, API {}", about.api_version))
                .advice("it gets no corrections any more; plan for 8.0 or later")
        }
        _ => Finding::pass("version", format!("{name}, API {}", about.api_version)),
    }
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_doctor::Verdict;

    fn about(is_vcenter: bool, api_version: &str) -> Session {
        Session::Open(About {
            user: "roost".into(),
            full_name: "VMware vCenter Server".into(),
            is_vcenter,
            api_version: api_version.into(),
            has_guest_operations: true,
        })
    }

    #[test]
    fn versions_and_products_are_told_apart() {
        for (session, wanted) in [
            (about(true, "8.0.3.0"), Verdict::Pass),
            (about(true, "6.7.3"), Verdict::Warn),
            (about(true, "6.0"), Verdict::Fail),
            (about(true, "dev"), Verdict::Pass),
            (about(false, "8.0.3.0"), Verdict::Fail),
        ] {
            assert_eq!(judge(&session)[1].verdict, wanted, "{session:?}");
        }
    }

    #[test]
    fn a_refused_login_names_the_user_and_what_to_check() {
        let findings = judge(&Session::Refused { user: "roost".into() });
        assert_eq!(findings.len(), 1);
        assert!(findings[0].found.contains("roost"));
        assert!(findings[0].advice.as_deref().unwrap().contains("hatchery.vsphere.user"));
    }
}
