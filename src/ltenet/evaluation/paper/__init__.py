"""The paper's experiments, each as one call: our figures beside the published ones."""
