"""How good maps are: methods under one signature, benchmarks, cached predictions, results."""
