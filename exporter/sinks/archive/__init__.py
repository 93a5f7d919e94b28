"""The archive: stores sessions as objects, each written once, with a manifest per session.

The input is batches of redacted events, gathered by the lane (`Sink.gathering`); the output is objects in a directory,
or in any other store of bytes by name. `docs/archive.md` describes the format.

Read in this order: `objects` (the interface of a store, and a directory as a store), `manifest` (which events
are in which object, and which are hidden), `sink` (the order of effects: object, manifest, mark).
"""
