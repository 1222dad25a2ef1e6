//! `roost version`.

use roost_client::deliver;
use serde_json::json;

pub(crate) fn print(output: &str) -> anyhow::Result<()> {
    let (version, commit, built) =
        (env!("CARGO_PKG_VERSION"), env!("ROOST_GIT_HASH"), env!("ROOST_BUILD_TIME"));
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    if output == "json" {
        let json = json!({"version": version, "commit": commit, "built": built, "target": target});
        return deliver(&format!("{json:#}\n"));
    }
    deliver(&format!("roost {version}\ncommit {commit}\nbuilt {built}\nfor {target}\n"))
}
