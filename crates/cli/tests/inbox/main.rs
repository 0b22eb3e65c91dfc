//! The gateway's inbox as used by people, scripts and attackers, and in crashes: the real program, real sockets, real
//! files.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod accepted;
mod access;
mod asker;
mod attacks;
mod audited;
mod browser;
mod callers;
mod children;
#[cfg(feature = "full")]
mod collector;
mod company;
mod contract;
mod credential;
mod dialog;
mod drained;
mod ended;
#[cfg(feature = "full")]
mod excluded;
mod gateway;
mod held_bytes;
mod hostile_upstream;
mod http;
mod killed;
mod logs;
mod many;
mod matrix;
mod monitored;
#[cfg(feature = "full")]
mod oidc;
mod opener;
mod other_pages;
mod owned_tokens;
#[cfg(feature = "full")]
#[path = "../raw/people.rs"]
mod people;
#[cfg(all(unix, feature = "full"))]
#[path = "../raw/pooler.rs"]
mod pooler;
#[cfg(feature = "full")]
mod provider;
#[cfg(feature = "full")]
mod proxied;
#[path = "../raw/mod.rs"]
mod raw;
#[cfg(all(unix, feature = "full"))]
mod replicas;
mod restored;
mod rotated;
mod sealed;
mod sessions;
#[cfg(feature = "full")]
mod signed_in;
#[cfg(feature = "full")]
mod traced;
mod turns;
mod unwritable;
