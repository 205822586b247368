//! Bytes in both directions, until it is over or nothing was heard for too long.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};

/// Bytes that are moved at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Moves bytes from `from` to `to` until `from` ends.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece).await?;
        activity.touch();
        let Some(read @ [_, ..]) = piece.get(..count) else {
            return Ok(());
        };
        to.write_all(read).await?;
        activity.touch();
    }
}

/// Ends when nothing was heard for `limit`.
async fn silence(limit: Duration, activity: &Activity) {
    let never = CancellationToken::new();
    loop {
        let left = limit.saturating_sub(activity.quiet_for());
        if left.is_zero() {
            return;
        }
        clock::sleep(left, &never).await;
    }
}

/// Connects two streams until both sides are done, each of which may be done
/// before the other, or until one of them fails.
pub(super) async fn tunnel<C, S>(client: C, server: S, idle: Duration)
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let activity = Activity::new();
    let (client_read, mut client_write) = tokio::io::split(client);
    let (server_read, mut server_write) = tokio::io::split(server);
    let up = async {
        pump(client_read, &mut server_write, &activity).await?;
        server_write.shutdown().await
    };
    let down = async {
        pump(server_read, &mut client_write, &activity).await?;
        client_write.shutdown().await
    };
    tokio::select! {
        _ = async { tokio::try_join!(up, down) } => {}
        () = silence(idle, &activity) => {}
    }
}

/// Sends the rest of a request, `body_bytes` of it and nothing behind them, and
/// brings the answer back.
pub(super) async fn exchange<C, S>(client: C, server: S, body_bytes: u64, idle: Duration)
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let activity = Activity::new();
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (server_read, mut server_write) = tokio::io::split(server);
    let up = async {
        // A server that has heard enough may still answer.
        let body = (&mut client_read).take(body_bytes);
        let _ = pump(body, &mut server_write, &activity).await;
        // Unread bytes would break the connection before the answer is read.
        let _ = tokio::io::copy(&mut client_read, &mut tokio::io::sink()).await;
        std::future::pending::<()>().await;
    };
    let down = async {
        pump(server_read, &mut client_write, &activity).await?;
        client_write.shutdown().await
    };
    tokio::select! {
        _ = down => {}
        () = up => {}
        () = silence(idle, &activity) => {}
    }
}
