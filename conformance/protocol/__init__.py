"""The engine protocol, one module a stage; `conformance.engine.Engine` is all of it."""
