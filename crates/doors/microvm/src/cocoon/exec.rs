//! A program in the guest, with its streams.

use std::convert::Infallible;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::child::{exec_outcome, keep_end};
use super::{CocoonCli, QUICK, argv};
use crate::error::RuntimeError;
use crate::runtime::{ExecOptions, ExecStreams, Output};

pub(super) async fn exec(
    cli: &CocoonCli,
    vm: &str,
    options: ExecOptions,
    streams: ExecStreams,
) -> Result<i32, RuntimeError> {
    let forwards = streams.stdin.is_some();
    let interactive = forwards && wants_interactive(cli).await?;
    let stdin = if forwards { Stdio::piped() } else { Stdio::null() };
    let mut group = cli.caller.spawn(&argv::exec(vm, &options, interactive), stdin)?;
    let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
    let input = group.child.stdin.take();
    let mut last_words = Vec::new();

    let feed = async {
        if let (Some(mut from), Some(mut to)) = (streams.stdin, input) {
            // A program need not read its input; that it does not is no failure.
            let _ = tokio::io::copy(&mut from, &mut to).await;
        }
        // Input that ended does not end the program.
        std::future::pending::<Infallible>().await
    };
    let run = async {
        let mut nothing = Vec::new();
        tokio::try_join!(
            pass(out, streams.stdout, &mut nothing),
            pass(err, streams.stderr, &mut last_words)
        )?;
        group.child.wait().await
    };
    let status = tokio::select! {
        status = run => status,
        never = feed => match never {},
    };
    let status =
        status.map_err(|source| RuntimeError::Pipe { command: "vm exec".to_owned(), source })?;
    exec_outcome(vm, status, &last_words)
}

/// Copies as it comes; a listener that went away ends the copy and with it the program.
async fn pass(
    from: Option<impl AsyncRead + Unpin>,
    to: Option<Output>,
    kept: &mut Vec<u8>,
) -> std::io::Result<()> {
    let (Some(mut from), mut to) = (from, to) else { return Ok(()) };
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return match to {
                Some(mut to) => to.shutdown().await,
                None => Ok(()),
            };
        }
        keep_end(kept, &buffer[..count]);
        if let Some(to) = &mut to {
            to.write_all(&buffer[..count]).await?;
            to.flush().await?;
        }
    }
}

/// The first releases always forward standard input, later ones only with `-i`: their help tells.
async fn wants_interactive(cli: &CocoonCli) -> Result<bool, RuntimeError> {
    let ask = async || {
        let help = cli.caller.text(argv::exec_help(), QUICK).await?;
        Ok(help.contains("-i,") || help.contains("--interactive"))
    };
    cli.wants_interactive.get_or_try_init(ask).await.copied()
}
