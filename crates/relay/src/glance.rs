//! The positions of a frame's members: [`mcp_elicit_core::wire::frame`], by the names that are used here.

pub use mcp_elicit_core::wire::frame::{FrameIndex as Glance, Shape, Unclear, member, sole_member};
