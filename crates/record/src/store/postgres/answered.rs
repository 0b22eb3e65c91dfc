//! Connections that end if the server does not answer.
//!
//! A server that hangs keeps its connections, and the kernel of its machine confirms what it is sent, so that neither
//! `tcp_user_timeout` nor keepalives end them. So each connection ends by itself if nothing has come for a time after the
//! last bytes that were sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Makes connections as `C` does, each with a limit on the time in which the server answers.
#[derive(Clone, Copy)]
pub(super) struct AnsweredWithin<C> {
    pub(super) connect: C,
    /// The longest time after the last bytes that were sent in which nothing comes.
    pub(super) within: Duration,
}

impl<S, C: MakeTlsConnect<S>> MakeTlsConnect<S> for AnsweredWithin<C>
where
    C::TlsConnect: Send + 'static,
    <C::TlsConnect as TlsConnect<S>>::Future: Send + 'static,
    <C::TlsConnect as TlsConnect<S>>::Stream: Send,
{
    type Stream = AnsweredStream<C::Stream>;
    type TlsConnect = AnsweredWithin<C::TlsConnect>;
    type Error = C::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, C::Error> {
        Ok(AnsweredWithin {
            connect: self.connect.make_tls_connect(domain)?,
            within: self.within,
        })
    }
}

impl<S, C: TlsConnect<S>> TlsConnect<S> for AnsweredWithin<C>
where
    C::Future: Send + 'static,
    C::Stream: Send,
{
    type Stream = AnsweredStream<C::Stream>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, C::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        let within = self.within;
        let connected = self.connect.connect(stream);
        let connected = connected.map(move |stream| {
            Ok(AnsweredStream {
                stream: stream?,
                within,
                wait: None,
            })
        });
        connected.boxed()
    }
}

/// A connection that ends if the server does not answer.
pub(super) struct AnsweredStream<S> {
    stream: S,
    within: Duration,
    /// The end of the time for an answer; `None` if nothing was sent since the last one.
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for AnsweredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.wait = None;
            return read;
        }
        let Some(wait) = &mut self.wait else {
            return Poll::Pending;
        };
        wait.as_mut().poll(context).map(|()| {
            let why = "the database does not answer";
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AnsweredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            let within = self.within;
            let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(within)));
            wait.as_mut().reset(Instant::now() + within);
            // Wakes the task at the end of the time, in which the next read fails.
            let _pending = wait.as_mut().poll(context);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for AnsweredStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    fn watched<S>(stream: S) -> AnsweredStream<S> {
        AnsweredStream {
            stream,
            within: WITHIN,
            wait: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_an_answer_ends_and_an_idle_one_stays() {
        let (here, mut there) = tokio::io::duplex(64);
        let mut here = watched(here);
        let mut byte = [0; 1];
        // Nothing was sent: a notice may come at any time.
        let idle = tokio::time::timeout(WITHIN * 100, here.read_exact(&mut byte)).await;
        assert!(idle.is_err());
        here.write_all(b"a").await.unwrap();
        sleep(WITHIN / 2).await;
        there.write_all(b"b").await.unwrap();
        here.read_exact(&mut byte).await.unwrap();
        let idle = tokio::time::timeout(WITHIN * 100, here.read_exact(&mut byte)).await;
        assert!(idle.is_err());
        here.write_all(b"a").await.unwrap();
        let silent = here.read_exact(&mut byte).await;
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
