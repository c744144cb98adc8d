"""Other methods under the same signature as ours."""
