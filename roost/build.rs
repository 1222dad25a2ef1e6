//! What `/mon/version` says of the program: which commit it was built from, and when.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-env-changed=ROOST_GIT_HASH");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = said("git", &["rev-parse", "--git-path", file]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    // Whoever builds without a repository, such as from an archive, can say it.
    let hash = std::env::var("ROOST_GIT_HASH").ok();
    let hash = hash.or_else(|| said("git", &["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=ROOST_GIT_HASH={}", hash.unwrap_or_else(|| "unknown".to_owned()));
    // A build that can be repeated says the time that it is given.
    let epoch =
        std::env::var("SOURCE_DATE_EPOCH").map_or_else(|_| "now".to_owned(), |it| format!("@{it}"));
    let time = said("date", &["-u", "-d", &epoch, "+%Y-%m-%dT%H:%M:%SZ"]);
    println!("cargo:rustc-env=ROOST_BUILD_TIME={}", time.unwrap_or_else(|| "unknown".to_owned()));
}

/// What a program prints, if it is there and succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
