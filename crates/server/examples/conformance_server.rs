//! `conformance` under a name that no other crate of the workspace uses: the client has an example of that name too, and a
//! build of both keeps one of the two programs. The tests start this one.

#[path = "conformance/main.rs"]
mod conformance;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    conformance::main()
}
