//! When the ISO is looked at, and what is kept of those before.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Refreshed;
use crate::api::{IsoStatus, IsoVersion, PoolDefaults, VsphereAgentPool};
use crate::plan::whole_seconds;

/// Whether the ISO is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Now,
    /// Not before.
    At(Timestamp),
}

/// `url` is where it is now.
pub fn due(pool: &VsphereAgentPool, url: &str, now: Timestamp) -> Due {
    let Some(iso) = &pool.status.iso else { return Due::Now };
    let token = pool.force_refresh_token();
    let is_moved = !iso.path.starts_with(&format!("{}/", pool.iso_prefix()));
    if iso.path.is_empty()
        || iso.sha256.is_empty()
        || is_moved
        || !iso.url.is_empty() && iso.url != url
        || !token.is_empty() && token != iso.force_refresh_token
    {
        return Due::Now;
    }
    let Some(Time(checked)) = iso.checked_at else { return Due::Now };
    match checked.checked_add(pool.check_interval()) {
        Ok(at) if now < at => Due::At(at),
        _ => Due::Now,
    }
}

/// The status after a look. The current one leads the history; what is the same file is there once.
pub fn after_refresh(
    pool: &VsphereAgentPool,
    url: &str,
    found: &Refreshed,
    now: Timestamp,
) -> IsoStatus {
    let before = pool.status.iso.clone().unwrap_or_default();
    let now = Time(whole_seconds(now));
    let is_new = found.uploaded || before.uploaded_at.is_none() || before.path != found.path;
    let size = i64::try_from(found.bytes).ok();
    let uploaded_at = if is_new { Some(now.clone()) } else { before.uploaded_at.clone() };
    let current = IsoVersion {
        path: found.path.clone(),
        sha256: found.sha256.clone(),
        size_bytes: size,
        uploaded_at: uploaded_at.clone(),
    };
    let mut history = vec![current];
    history.extend(earlier(&before).into_iter().filter(|version| version.path != found.path));
    history.truncate(pool.retain_versions());
    IsoStatus {
        url: url.to_owned(),
        path: found.path.clone(),
        sha256: found.sha256.clone(),
        size_bytes: size,
        checked_at: Some(now),
        uploaded_at,
        force_refresh_token: pool.force_refresh_token().to_owned(),
        history,
        stale: before.stale,
    }
}

/// The one that was active, then the others, newest first.
fn earlier(before: &IsoStatus) -> Vec<IsoVersion> {
    let active = (!before.path.is_empty()).then(|| IsoVersion {
        path: before.path.clone(),
        sha256: before.sha256.clone(),
        size_bytes: before.size_bytes,
        uploaded_at: before.uploaded_at.clone(),
    });
    let others = before.history.iter().filter(|version| version.path != before.path).cloned();
    active.into_iter().chain(others).collect()
}

/// Files that `after` does not keep: those that this look leaves behind, and those of earlier ones that could not be deleted.
pub fn stale_paths(before: &IsoStatus, after: &IsoStatus) -> Vec<String> {
    let kept = |path: &String| after.history.iter().any(|version| version.path == *path);
    let mut stale: Vec<String> = Vec::new();
    let left = earlier(before).into_iter().map(|version| version.path);
    for path in left.chain(before.stale.iter().cloned()) {
        if !kept(&path) && !stale.contains(&path) {
            stale.push(path);
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::api::IsoSpec;
    use crate::api::names::FORCE_ISO_REFRESH;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn pool(retain: i32) -> VsphereAgentPool {
        let mut pool = VsphereAgentPool::new("ns", "p", crate::api::PoolSpec::default());
        pool.spec.iso = Some(IsoSpec { retain_versions: Some(retain), ..IsoSpec::default() });
        pool
    }

    fn found(sha256: &str, path: &str) -> Refreshed {
        Refreshed { path: path.into(), sha256: sha256.into(), bytes: 7, uploaded: true }
    }

    #[test]
    fn the_iso_is_looked_at_when_something_about_it_changed_or_its_time_has_come() {
        let mut pool = pool(2);
        assert_eq!(due(&pool, "u", at(0)), Due::Now, "never looked at");
        pool.status.iso =
            Some(after_refresh(&pool, "u", &found("s", "agent-forge/ns/p/s.iso"), at(0)));
        assert_eq!(due(&pool, "u", at(9)), Due::At(at(10)));
        assert_eq!(due(&pool, "u", at(10)), Due::Now, "at the interval");
        assert_eq!(due(&pool, "other", at(1)), Due::Now, "another address");
        let mut moved = pool.clone();
        moved.spec.iso.as_mut().unwrap().path_prefix = Some("elsewhere".into());
        assert_eq!(due(&moved, "u", at(1)), Due::Now, "another directory");
        pool.metadata.annotations = Some([(FORCE_ISO_REFRESH.to_owned(), "1".to_owned())].into());
        assert_eq!(due(&pool, "u", at(1)), Due::Now, "forced");
        let after = after_refresh(&pool, "u", &found("s", "agent-forge/ns/p/s.iso"), at(1));
        assert_eq!(after.force_refresh_token, "1");
        pool.status.iso = Some(after);
        assert_eq!(due(&pool, "u", at(2)), Due::At(at(11)), "the same word forces once");
        pool.spec.iso.as_mut().unwrap().check_interval = Some("-1m".into());
        assert_eq!(due(&pool, "u", at(2)), Due::At(at(11)), "an odd interval is the usual one");
    }

    #[test]
    fn history_keeps_the_newest_and_the_rest_is_stale() {
        let mut pool = pool(2);
        let version = |name: &str| IsoVersion {
            path: format!("{name}.iso"),
            sha256: name.into(),
            ..IsoVersion::default()
        };
        let before = IsoStatus {
            path: "old-1.iso".into(),
            sha256: "old-1".into(),
            history: ["old-1", "old-2", "old-3"].map(version).into(),
            ..IsoStatus::default()
        };
        pool.status.iso = Some(before.clone());
        let after = after_refresh(&pool, "u", &found("new", "new.iso"), at(0));
        let paths: Vec<&str> = after.history.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["new.iso", "old-1.iso"]);
        assert_eq!(stale_paths(&before, &after), ["old-2.iso", "old-3.iso"]);
        // One was in a drive: it is not forgotten, unless it becomes the current one again.
        let mut after = after;
        after.stale = vec!["old-3.iso".into()];
        pool.status.iso = Some(after.clone());
        let next = after_refresh(&pool, "u", &found("newer", "newer.iso"), at(1));
        assert_eq!(stale_paths(&after, &next), ["old-1.iso", "old-3.iso"]);
        let back = after_refresh(&pool, "u", &found("old-3", "old-3.iso"), at(1));
        assert_eq!(stale_paths(&after, &back), ["old-1.iso"]);
    }

    #[test]
    fn the_same_content_elsewhere_is_another_file() {
        for (retain, kept, stale) in [
            (2, vec!["b/s.iso", "a/s.iso"], vec![]),
            (1, vec!["b/s.iso"], vec!["a/s.iso".to_owned()]),
        ] {
            let mut pool = pool(retain);
            let before =
                IsoStatus { path: "a/s.iso".into(), sha256: "s".into(), ..IsoStatus::default() };
            pool.status.iso = Some(before.clone());
            let after = after_refresh(&pool, "u", &found("s", "b/s.iso"), at(0));
            let paths: Vec<&str> = after.history.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(paths, kept);
            assert_eq!(stale_paths(&before, &after), stale);
        }
    }

    #[test]
    fn a_look_that_found_nothing_new_keeps_the_time_of_the_upload() {
        let mut pool = pool(2);
        let path = "agent-forge/ns/p/s.iso";
        pool.status.iso = Some(after_refresh(&pool, "u", &found("s", path), at(0)));
        let again = Refreshed { uploaded: false, ..found("s", path) };
        let after = after_refresh(&pool, "u", &again, at(10));
        assert_eq!((after.uploaded_at, after.checked_at), (Some(Time(at(0))), Some(Time(at(10)))));
        assert_eq!(after.history.len(), 1);
    }
}
